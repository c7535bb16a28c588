//! The tables of the index and their keys: big-endian numbers and hashes, no text.

use crate::backend::TableId;
use crate::backend::encrypted::{HiddenKeyBytes, prefix_end};
use crate::model::{
    BranchNumber, CheckpointId, Kind, ObjectId, OperationId, RevisionId, SessionNumber, Timestamp,
};

/// Object number -> stored object.
pub use crate::backend::OBJECTS;
/// First half of an object's name -> its number.
pub const OBJECT_NAMES: TableId = TableId(1);
/// Session, branch, sequence -> [`super::RevisionRow`].
pub const REVISIONS: TableId = TableId(2);
/// Session, sequence -> [`super::SequenceRow`].
pub const SEQUENCES: TableId = TableId(3);
/// Session, branch, effective time, sequence -> nothing.
pub const TIMES: TableId = TableId(4);
/// First half of a revision's id, or a checkpoint's id -> session, sequence.
pub const IDS: TableId = TableId(5);
/// Session, time, sequence -> [`super::CheckpointRow`].
pub const CHECKPOINTS: TableId = TableId(6);
/// Session, sequence of a checkpoint -> its time.
pub const CHECKPOINT_TIMES: TableId = TableId(7);
/// Time, session, sequence -> nothing: the checkpoints of all sessions.
pub const ALL_CHECKPOINTS: TableId = TableId(8);
/// Session, hash of a tag, time, sequence -> nothing.
pub const TAGS: TableId = TableId(9);
/// Session, hash of an entity, branch, sequence -> the part of that revision's delta that contains
/// it.
pub const HISTORY: TableId = TableId(10);
/// Session, kind, time, place, hash of the id, page -> [`super::FactRow`].
pub const FACTS: TableId = TableId(11);
/// Session, kind, hash of the id, time, place, page -> [`super::FactRow`].
pub const FACT_IDS: TableId = TableId(12);
/// Session, effective time of a checkout, position of its record -> branch.
pub const SWITCHES: TableId = TableId(13);
/// Session, branch, sequence -> [`super::KeyframeRow`].
pub const KEYFRAMES: TableId = TableId(14);
/// Session, branch, sequence of a reset -> the branch and sequence that its claims come from;
/// sequence 0 for no claims.
pub const RESETS: TableId = TableId(15);
/// Session, position of its first record, operation id -> [`super::OperationRow`].
pub const OPERATIONS: TableId = TableId(16);
/// Operation id -> its key in [`OPERATIONS`].
pub const OPERATION_IDS: TableId = TableId(17);
/// Position -> [`super::RecordRow`] of the record that begins there.
pub const RECORDS: TableId = TableId(18);
/// Session, hash of a source -> [`super::BookmarkRow`].
pub const BOOKMARKS: TableId = TableId(19);
/// Session, hash of a blob's name, offset -> [`super::SegmentRow`].
pub const SEGMENTS: TableId = TableId(20);
/// Number of a counter -> its value.
pub const COUNTERS: TableId = TableId(21);
/// Session, hash of an event's key -> the id of its checkpoint.
pub const CHECKPOINT_KEYS: TableId = TableId(22);
/// Session, branch, sequence folded into, first sequence of the fold -> its [`super::FoldRow`].
pub const FOLDS: TableId = TableId(23);
/// Session, branch, sequence folded into, first sequence of the fold, sequence -> the
/// [`super::RevisionRow`] before the fold.
pub const FOLDED: TableId = TableId(24);
/// Time, operation id -> the session of a pruning operation that was not swept yet.
pub const PRUNINGS: TableId = TableId(25);
/// Session, branch, sequence of a revision with two parents -> the sequence of the second.
pub const MERGES: TableId = TableId(26);
/// Number of an object that nothing refers to yet -> [`super::PrewrittenRow`].
pub const PREWRITTEN: TableId = TableId(27);
/// Session -> the encoded session.
pub const SESSIONS: TableId = TableId(28);
/// Session -> the encoded session: a second copy, in other blocks.
pub const SESSION_COPIES: TableId = TableId(29);
/// Id of a session, session -> nothing.
pub const SESSION_IDS: TableId = TableId(30);
/// Hash of a name, session -> nothing. This table and the next three contain only sessions that
/// were not removed.
pub const SESSION_NAMES: TableId = TableId(31);
/// Hash of an agent's own session id or of its beginning, session -> nothing.
pub const SESSION_AGENTS: TableId = TableId(32);
/// Hash of the name of a source, or of the prefix of an unfinished import, session -> nothing.
pub const SESSION_SOURCES: TableId = TableId(33);
/// Kind, time of the last event (or of the beginning of the session), session -> nothing.
pub const SESSION_TIMES: TableId = TableId(34);
/// Session, position of a record that continued an operation, operation id -> nothing.
pub const CONTINUATIONS: TableId = TableId(35);

const LAST: TableId = CONTINUATIONS;

/// Returns whether the keys of a table begin with a session.
#[must_use]
pub const fn begins_with_session(table: TableId) -> bool {
    table.0 <= LAST.0
        && !matches!(
            table,
            OBJECTS
                | OBJECT_NAMES
                | IDS
                | ALL_CHECKPOINTS
                | OPERATION_IDS
                | RECORDS
                | COUNTERS
                | PRUNINGS
                | PREWRITTEN
                | SESSIONS
                | SESSION_COPIES
                | SESSION_IDS
                | SESSION_NAMES
                | SESSION_AGENTS
                | SESSION_SOURCES
                | SESSION_TIMES
        )
}

/// Returns the tables whose keys begin with a session.
pub fn session_tables() -> impl Iterator<Item = TableId> {
    (0..=LAST.0).map(TableId).filter(|table| begins_with_session(*table))
}

/// The key of the counter of objects.
pub const NEXT_OBJECT: &[u8] = &[0];

/// The key of the store's head in the table of counters.
pub const HEAD: &[u8] = &[1];

/// The key of the totals in the table of counters.
pub const TOTALS: &[u8] = &[2];

/// Returns the key bytes that an encrypted store hides in a table: hashes of recorded data, and
/// ids.
#[must_use]
pub const fn hidden(table: TableId) -> Option<HiddenKeyBytes> {
    Some(match table {
        OBJECT_NAMES | OPERATION_IDS => HiddenKeyBytes::new(0, 16),
        // Ids are looked up by prefix.
        IDS | SESSION_IDS => HiddenKeyBytes { bucket: 2, ..HiddenKeyBytes::new(0, 16) },
        SESSION_NAMES | SESSION_AGENTS | SESSION_SOURCES => HiddenKeyBytes::new(0, 8),
        TAGS | HISTORY | BOOKMARKS | SEGMENTS | CHECKPOINT_KEYS => HiddenKeyBytes::new(4, 8),
        FACT_IDS => HiddenKeyBytes::new(5, 8),
        FACTS => HiddenKeyBytes::new(21, 8),
        OPERATIONS | CONTINUATIONS => HiddenKeyBytes::new(12, 16),
        PRUNINGS => HiddenKeyBytes::new(8, 16),
        _ => return None,
    })
}

/// Builds keys of tables.
#[derive(Clone, Debug, Default)]
pub struct KeyBuilder(Vec<u8>);

/// Starts a key with a session.
#[must_use]
pub fn of(session: SessionNumber) -> KeyBuilder {
    KeyBuilder(session.to_be_bytes().to_vec())
}

impl KeyBuilder {
    /// Starts a key without a session.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a number.
    #[must_use]
    pub fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_be_bytes());
        self
    }

    /// Appends a branch.
    #[must_use]
    pub fn branch(mut self, branch: BranchNumber) -> Self {
        self.0.extend_from_slice(&branch.to_be_bytes());
        self
    }

    /// Appends a session.
    #[must_use]
    pub fn session(self, session: SessionNumber) -> Self {
        self.branch(session)
    }

    /// Appends a time. Earlier times sort first, also before 1970.
    #[must_use]
    pub fn time(self, time: Timestamp) -> Self {
        self.number(time.as_micros().cast_unsigned() ^ (1 << 63))
    }

    /// Appends a kind.
    #[must_use]
    pub fn kind(mut self, kind: Kind) -> Self {
        self.0.push(kind.code());
        self
    }

    /// Appends bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends the hash of a text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        let short = text_hash(text);
        self.bytes(&short)
    }

    /// Returns the key.
    #[must_use]
    pub fn build(self) -> Vec<u8> {
        self.0
    }

    /// Returns the first key after all keys with this prefix; an empty key if there is none.
    #[must_use]
    pub fn end(self) -> Vec<u8> {
        prefix_end(self.0)
    }
}

const TEXT_CONTEXT: &[u8; 32] = b"forge text in table keys, vers 1";

/// Returns eight bytes that represent a text in table keys.
#[must_use]
pub fn text_hash(text: &str) -> [u8; 8] {
    let hash = blake3::keyed_hash(TEXT_CONTEXT, text.as_bytes());
    *hash.as_bytes().first_chunk().expect("8 of 32 bytes")
}

/// Returns the key of an object's name.
#[must_use]
pub fn object_name(id: &ObjectId) -> Vec<u8> {
    super::row::object_key(id).to_vec()
}

/// Returns the key of a revision's id.
#[must_use]
pub fn revision_id(id: &RevisionId) -> Vec<u8> {
    let half: &[u8; 16] = id.as_bytes().first_chunk().expect("16 of 32 bytes");
    half.to_vec()
}

/// Returns the key of a checkpoint's id.
#[must_use]
pub fn checkpoint_id(id: &CheckpointId) -> Vec<u8> {
    id.as_bytes().to_vec()
}

/// Returns the key of an operation's record: of its first one in [`OPERATIONS`], of a later one in
/// [`CONTINUATIONS`].
#[must_use]
pub fn operation_place(session: SessionNumber, position: u64, id: &OperationId) -> Vec<u8> {
    of(session).number(position).bytes(id.as_bytes()).build()
}

/// Returns the key of an operation's id.
#[must_use]
pub fn operation_id(id: &OperationId) -> Vec<u8> {
    id.as_bytes().to_vec()
}

/// Returns whether a table finds a session's data by an id that an incomplete session and the one
/// that it replaces have in common. The values of its rows begin with the session.
#[must_use]
pub const fn is_id_table(table: TableId) -> bool {
    matches!(table, IDS | OPERATION_IDS)
}

/// Returns the key of a row of an [id table](is_id_table) for an incomplete session. The key of the
/// same row of a complete session is the id alone.
#[must_use]
pub fn in_incomplete(mut id: Vec<u8>, session: SessionNumber) -> Vec<u8> {
    id.extend_from_slice(&session.to_be_bytes());
    id
}

/// Reads the number at the end of a key; `None` if the key is too short.
#[must_use]
pub fn last_number(key: &[u8]) -> Option<u64> {
    key.last_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

/// Reads the number at this offset of a key.
#[must_use]
pub fn number_at(key: &[u8], offset: usize) -> Option<u64> {
    key.get(offset..)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

/// Reads the session or branch at this offset of a key.
#[must_use]
pub fn short_at(key: &[u8], offset: usize) -> Option<u32> {
    key.get(offset..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// Reads the time at this offset of a key.
#[must_use]
pub fn time_at(key: &[u8], offset: usize) -> Option<Timestamp> {
    number_at(key, offset).map(|number| Timestamp::from_micros((number ^ (1 << 63)).cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_times_sort_in_the_order_of_the_times() {
        let key = |micros| of(1).time(Timestamp::from_micros(micros)).build();
        assert!(key(-2) < key(-1) && key(-1) < key(0) && key(0) < key(i64::MAX));
        assert_eq!(time_at(&key(-2), 4), Some(Timestamp::from_micros(-2)));
    }

    #[test]
    fn the_encrypted_bytes_of_keys_are_text_hashes_and_ids() {
        let (time, id) = (Timestamp::from_micros(7), [0xab; 16]);
        let fact = of(1).kind(Kind::Message);
        let keys = [
            (TAGS, of(1).text("x").time(time).number(2)),
            (HISTORY, of(1).bytes(&text_hash("x")).branch(0).number(2)),
            (BOOKMARKS, of(1).text("x")),
            (SEGMENTS, of(1).text("x").number(0)),
            (CHECKPOINT_KEYS, of(1).text("x")),
            (FACTS, fact.clone().time(time).number(3).text("x").number(4)),
            (FACT_IDS, fact.text("x").time(time).number(3).number(4)),
            (OPERATIONS, of(1).number(96).bytes(&id)),
            (CONTINUATIONS, of(1).number(128).bytes(&id)),
            (PRUNINGS, KeyBuilder::new().time(time).bytes(&id)),
            (OBJECT_NAMES, KeyBuilder::new().bytes(&id)),
            (OPERATION_IDS, KeyBuilder::new().bytes(&id)),
            (IDS, KeyBuilder::new().bytes(&id)),
            (SESSION_IDS, KeyBuilder::new().bytes(&id).session(1)),
            (SESSION_NAMES, KeyBuilder::new().text("x").session(1)),
            (SESSION_AGENTS, KeyBuilder::new().text("x").session(1)),
            (SESSION_SOURCES, KeyBuilder::new().text("x").session(1)),
        ];
        for (table, key) in &keys {
            let (key, hidden) = (key.clone().build(), hidden(*table).unwrap());
            let part = key.get(hidden.at..hidden.at + hidden.bytes).unwrap();
            assert!(part == text_hash("x") || part == id, "{table:?}");
        }
        let others = (0..=u8::MAX).map(TableId).filter(|table| hidden(*table).is_some());
        assert_eq!(others.count(), keys.len());
    }

    #[test]
    fn every_table_states_correctly_whether_its_keys_begin_with_a_session() {
        let without = [
            OBJECTS, OBJECT_NAMES, IDS, ALL_CHECKPOINTS, OPERATION_IDS, RECORDS, COUNTERS,
            PRUNINGS, PREWRITTEN, SESSIONS, SESSION_COPIES, SESSION_IDS, SESSION_NAMES,
            SESSION_AGENTS, SESSION_SOURCES, SESSION_TIMES,
        ];
        for number in 0..=u8::MAX {
            // Unknown tables count as tables without a session.
            let with = number <= LAST.0 && !without.contains(&TableId(number));
            assert_eq!(begins_with_session(TableId(number)), with);
        }
    }

    #[test]
    fn the_end_of_a_prefix_is_after_all_keys_with_it() {
        assert_eq!(of(u32::MAX).end(), Vec::<u8>::new());
        assert_eq!(of(7).branch(u32::MAX).end(), of(8).build());
        assert!(of(7).branch(3).number(u64::MAX).build() < of(7).branch(3).end());
    }
}

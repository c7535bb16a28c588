//! Refs: the current state of a session and its branches, and what a segment of the journal begins
//! with.

use super::codec::{DecodeError, is_zero};
use super::header::RevisionHeader;
use super::record::RecordBytes;
use crate::model::{
    BranchMetadata, BranchName, BranchNumber, BranchStatus, OperationId, RevisionId, SessionKind,
    SessionMetadata, SessionNumber, StateDigest, Timestamp,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

mod session_codec;

use session_codec::{check_session, decode, encode};

/// The head of a branch: its newest revision or, if it has none yet, the revision that it was
/// forked from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchHead {
    /// The sequence number of the revision.
    pub sequence: u64,
    /// The id of the revision.
    pub id: RevisionId,
    /// The effective time of the revision: its raw time or its parent's effective time, whichever
    /// is later.
    pub effective: Timestamp,
    /// The digest of the revision's state.
    #[serde(serialize_with = "write_digest", deserialize_with = "read_digest")]
    pub digest: StateDigest,
    /// The number of claims in that state.
    pub count: u64,
}

impl BranchHead {
    /// Makes the head for the revision with this header.
    pub(crate) const fn of(header: &RevisionHeader, id: RevisionId, effective: Timestamp) -> Self {
        let RevisionHeader { sequence, digest, count, .. } = *header;
        Self { sequence, id, effective, digest, count }
    }
}

fn write_digest<S: Serializer>(digest: &StateDigest, serializer: S) -> Result<S::Ok, S::Error> {
    RevisionId::from_bytes(digest.to_bytes()).serialize(serializer)
}

fn read_digest<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StateDigest, D::Error> {
    Ok(StateDigest::from_bytes(RevisionId::deserialize(deserializer)?.as_bytes()))
}

/// A change of the status and metadata of a branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchChange {
    /// The time of the change.
    pub time: Timestamp,
    /// The status after the change.
    pub status: BranchStatus,
    /// The metadata after the change.
    pub metadata: BranchMetadata,
}

/// The present state of a branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchRefs {
    /// The name of the branch.
    pub name: BranchName,
    /// The branch and sequence number it was forked from (0: before the first revision); `None` for
    /// `main`.
    pub base: Option<(BranchNumber, u64)>,
    /// The head; `None` before the first revision.
    pub head: Option<BranchHead>,
    /// The changes of status and metadata, earliest first; the first is the creation.
    pub changes: Vec<BranchChange>,
    /// Whether the creation of the branch was undone.
    pub hidden: bool,
}

/// How far a source was imported. The index stores the whole bookmark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BookmarkRef {
    /// The source.
    pub source: String,
    /// The number of its bytes that were imported.
    pub bytes: u64,
}

/// The present state of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionRefs {
    /// The metadata of the session.
    pub info: SessionMetadata,
    /// The next sequence number of a revision or checkpoint.
    pub next_sequence: u64,
    /// The branches by number.
    pub branches: Vec<BranchRefs>,
    /// The number of the current branch.
    pub current_branch: BranchNumber,
    /// The time of its earliest revision, checkpoint or fact.
    pub first_event: Option<Timestamp>,
    /// The time of its latest revision, checkpoint or fact.
    pub last_event: Option<Timestamp>,
    /// The number of its checkpoints.
    pub checkpoints: u64,
    /// The time of its latest checkpoint.
    pub last_checkpoint: Option<Timestamp>,
    /// The number of its pages of facts.
    pub pages: u64,
    /// The number of facts recorded in it.
    pub facts: u64,
    /// Operations whose facts are hidden.
    pub hidden: Vec<OperationId>,
    /// The progress of imports from its sources.
    pub bookmarks: Vec<BookmarkRef>,
    /// Microseconds between scheduled checkpoints.
    pub schedule: Option<i64>,
    /// The growing blobs whose beginning was dropped.
    pub dropped: Vec<DroppedText>,
    /// Why the session is hidden; `None` if it is visible.
    #[serde(rename = "gone")]
    pub removal: Option<SessionRemoval>,
}

/// Why a session is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionRemoval {
    /// This operation pruned or dropped the session. It can be undone.
    Pruned(OperationId),
    /// The session was permanently removed: only its number and its id are left.
    Swept,
    /// The session is not complete yet. When it is, it replaces the session with the same id.
    Incomplete,
}

/// The dropped beginning of a growing blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DroppedText {
    /// The name of the blob.
    pub blob: String,
    /// The number of dropped bytes.
    pub bytes: u64,
    /// The operation that dropped the bytes, as long as it can be undone.
    pub pruning: Option<OperationId>,
}

/// The head of the store, with which a segment of the journal begins: how many sessions there are,
/// and the sessions used last. The other sessions are in the index, in the generation that ends
/// where the segment begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreHead {
    /// The number of sessions, including removed ones.
    pub sessions: u64,
    /// The number of sessions of each kind that were not removed, in the order of
    /// [`SessionKind::ALL`]; 0 for a kind that the writer, an earlier forge, did not know.
    #[serde(deserialize_with = "visible_counts")]
    pub visible: [u64; SessionKind::ALL.len()],
    /// The sum of the hashes of all sessions. It shows whether the index has all of them,
    /// unchanged.
    pub digest: RecordBytes,
    /// The sessions used last, the latest at the end.
    pub recent: Vec<RecentSession>,
    /// The session that was chosen to be current.
    pub pinned: Option<SessionNumber>,
    /// The session in which a person or a hook last worked.
    pub last_used: Option<SessionNumber>,
    /// The number of purges of secrets: when it changes, caches of older content must be discarded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub purges: u64,
}

/// A session with its number, encoded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecentSession {
    /// The number of the session.
    pub number: SessionNumber,
    /// The encoded session.
    pub session: RecordBytes,
}

/// Reads the number of sessions of each kind. The counts of kinds that were added later are
/// missing, and become 0.
fn visible_counts<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<[u64; SessionKind::ALL.len()], D::Error> {
    let mut counts = Vec::<u64>::deserialize(from)?;
    if counts.len() < SessionKind::ALL.len() {
        counts.resize(SessionKind::ALL.len(), 0);
    }
    counts.try_into().map_err(|_| de::Error::custom("it counts sessions of unknown kinds"))
}

impl StoreHead {
    /// Returns the digest of all sessions. If its field is empty, as in a new store, it is the
    /// digest of no sessions.
    #[must_use]
    pub fn digest(&self) -> StateDigest {
        self.digest.0.as_slice().try_into().map_or(StateDigest::EMPTY, StateDigest::from_bytes)
    }

    /// Checks the counts and the length of the digest, and that the named sessions exist and can be
    /// decoded.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let known = |number: SessionNumber| u64::from(number) < self.sessions;
        if [self.pinned, self.last_used].into_iter().flatten().any(|number| !known(number)) {
            return Err("it names a session that does not exist");
        }
        if self.sessions > u64::from(SessionNumber::MAX) {
            return Err("it counts more sessions than a store can hold");
        }
        if !self.visible.iter().all(|count| *count <= self.sessions) {
            return Err("it counts more sessions of a kind than there are");
        }
        if ![0, 32].contains(&self.digest.0.len()) {
            return Err("its digest is not 32 bytes long");
        }
        let sound =
            |one: &RecentSession| known(one.number) && check_session(&one.session.0).is_ok();
        if !self.recent.iter().all(sound) {
            return Err("a session in it cannot be decoded");
        }
        Ok(())
    }
}

const SESSION_CONTEXT: &[u8; 32] = b"forge session of a store, vers 1";

/// Returns the hash of a session, as it is added to the digest of all sessions.
#[must_use]
pub fn session_hash(number: SessionNumber, encoded: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(SESSION_CONTEXT);
    hasher.update(&number.to_be_bytes()).update(encoded);
    *hasher.finalize().as_bytes()
}

/// Encodes a session.
#[must_use]
pub fn encode_session(session: &SessionRefs) -> Vec<u8> {
    encode(session)
}

/// Decodes a session.
pub fn decode_session(bytes: &[u8]) -> Result<SessionRefs, DecodeError> {
    decode::<true>(bytes)
}

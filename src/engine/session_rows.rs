//! The rows of sessions in the index: each session, a copy of it, and the rows that find it by id,
//! name, agent, source and time.

use super::row_overlay::RowOverlay;
use super::table_rows::{self, TableRows};
use crate::backend::{ScanDirection, Snapshot, TableId};
use crate::error::{Error, Result};
use crate::format::key::{self, KeyBuilder, of};
use crate::format::{SessionRefs, decode_session, encode_session, session_hash};
use crate::model::{SessionId, SessionKind, SessionNumber, StateDigest, Timestamp};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Prefix of the source by which a session names an agent's session that was joined to it. The
/// agent's own id follows.
pub(crate) const JOINED: &str = "joined:";

/// Prefix of the mark of a stream whose import has begun but not ended. The stream's name follows.
pub(crate) const UNFINISHED: &str = "unfinished:";

/// Prefix of the mark of how far an unfinished import has written its stream to a session other
/// than the session of the bookmark. The stream's name follows.
pub(crate) const WRITTEN: &str = "unfinished:unfinished:";

/// Returns whether a source is the mark of an unfinished import. An import has one such mark; in
/// each other session that it writes to, it has a mark with [`WRITTEN`].
pub(crate) fn is_mark_of_import(source: &str) -> bool {
    source.starts_with(UNFINISHED) && !source.starts_with(WRITTEN)
}

/// The length of the shortest beginning of an agent's own id in bytes, or of a session's id in
/// hexadecimal digits, by which a session is found.
pub(crate) const MIN_PREFIX: usize = 4;

/// The key by which sessions are looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SessionLookup<'a> {
    /// The id. This also finds removed sessions.
    Id(SessionId),
    /// The beginning of the id in lower-case hexadecimal digits, at least [`MIN_PREFIX`].
    IdPrefix(&'a str),
    /// The exact name.
    Name(&'a str),
    /// The agent's own id.
    Agent(&'a str),
    /// The beginning of the agent's own id, at least [`MIN_PREFIX`] bytes.
    AgentPrefix(&'a str),
    /// A source: of an import, of a joined session of an agent, or a mark.
    Source(&'a str),
    /// The mark of any unfinished import.
    Unfinished,
}

/// What a lookup reads in a generation: the table, the first key, and the end of the range of keys.
pub(super) type LookupKey = (TableId, Vec<u8>, Vec<u8>);

impl SessionLookup<'_> {
    /// Returns whether a session has this key.
    pub(super) fn matches(&self, session: &SessionRefs) -> bool {
        if let Self::Id(id) = self {
            return session.info.id == *id;
        }
        if session.removal.is_some() {
            return false;
        }
        let agent = session.info.agent_session.as_deref();
        let mut sources = session.bookmarks.iter().map(|bookmark| bookmark.source.as_str());
        match self {
            Self::Id(_) => false,
            Self::IdPrefix(prefix) => session.info.id.to_string().starts_with(prefix),
            Self::Name(name) => session.info.name == *name,
            Self::Agent(wanted) => agent == Some(wanted),
            Self::AgentPrefix(prefix) => agent.is_some_and(|agent| agent.starts_with(prefix)),
            Self::Source(wanted) => sources.any(|source| source == *wanted),
            Self::Unfinished => sources.any(is_mark_of_import),
        }
    }

    /// Returns a hash of the key, for an index in memory; `None` if the lookup must examine the
    /// sessions in memory one by one.
    pub(super) fn hash_in_memory(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        match self {
            Self::Id(id) => (0, id).hash(&mut hasher),
            Self::Name(name) => (1, name).hash(&mut hasher),
            Self::Agent(agent) => (2, agent).hash(&mut hasher),
            Self::Source(source) => (3, source).hash(&mut hasher),
            Self::IdPrefix(_) | Self::AgentPrefix(_) | Self::Unfinished => return None,
        }
        Some(hasher.finish())
    }

    /// Returns bytes that are in the encoded form of each session that matches; `None` if no such
    /// bytes are known.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Id(id) => Some(id.as_bytes()),
            Self::IdPrefix(_) => None,
            Self::Name(text) | Self::Agent(text) | Self::AgentPrefix(text) | Self::Source(text) => {
                Some(text.as_bytes())
            }
            Self::Unfinished => Some(UNFINISHED.as_bytes()),
        }
    }

    /// Returns the table to read, the first key, and the end of the range of keys.
    pub(super) fn key(&self) -> LookupKey {
        let (table, prefix) = match self {
            Self::Id(id) => (key::SESSION_IDS, KeyBuilder::new().bytes(id.as_bytes())),
            Self::IdPrefix(prefix) => {
                (key::SESSION_IDS, KeyBuilder::new().bytes(&id_bytes(prefix)))
            }
            Self::Name(name) => (key::SESSION_NAMES, KeyBuilder::new().text(name)),
            Self::Agent(agent) => (key::SESSION_AGENTS, KeyBuilder::new().text(agent)),
            Self::AgentPrefix(prefix) => {
                let beginning = agent_beginning(prefix).unwrap_or_default();
                (key::SESSION_AGENTS, KeyBuilder::new().text(&beginning))
            }
            Self::Source(source) => (key::SESSION_SOURCES, KeyBuilder::new().text(source)),
            Self::Unfinished => (key::SESSION_SOURCES, KeyBuilder::new().text(UNFINISHED)),
        };
        (table, prefix.clone().build(), prefix.end())
    }

    /// Returns the numbers of the sessions of a generation that may match: all that match, and
    /// perhaps others. They are ascending.
    pub(super) fn candidates(&self, base: &dyn Snapshot) -> Result<Vec<SessionNumber>> {
        let (table, from, to) = self.key();
        let rows = table_rows::rows_between(base, table, &from, &to)?;
        let mut numbers: Vec<SessionNumber> =
            rows.iter().filter_map(|(key, _)| session_at_end(key)).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }
}

/// Calls a function with each exact key of a session: id, name, agent and sources.
pub(super) fn each_lookup(session: &SessionRefs, mut each: impl FnMut(SessionLookup<'_>)) {
    each(SessionLookup::Id(session.info.id));
    each(SessionLookup::Name(&session.info.name));
    session.info.agent_session.iter().for_each(|agent| each(SessionLookup::Agent(agent)));
    session.bookmarks.iter().for_each(|bookmark| each(SessionLookup::Source(&bookmark.source)));
}

/// Returns the number of the session at the end of a key.
fn session_at_end(key: &[u8]) -> Option<SessionNumber> {
    key.last_chunk().map(|bytes| SessionNumber::from_be_bytes(*bytes))
}

/// Decodes the beginning of an id from hexadecimal digits. The last digit of an odd number is
/// ignored.
fn id_bytes(prefix: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        prefix.chars().map_while(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect()
}

/// Returns the text under which the beginning of an agent's own id is stored; `None` if the id is
/// too short.
fn agent_beginning(agent: &str) -> Option<String> {
    Some(format!("{}\0", agent.get(..MIN_PREFIX)?))
}

/// Makes the copy of a session and the rows that find it, and passes them to `sink`.
pub(super) fn derive_session(
    number: SessionNumber,
    session: &SessionRefs,
    sink: &mut dyn FnMut(TableId, Vec<u8>, Vec<u8>) -> Result<()>,
) -> Result<()> {
    for (table, key) in finding_rows(number, session) {
        sink(table, key, Vec::new())?;
    }
    sink(key::SESSION_COPIES, of(number).build(), encode_session(session))
}

/// Returns the tables and keys of the rows that find a session. These rows have no value.
fn finding_rows(number: SessionNumber, session: &SessionRefs) -> Vec<(TableId, Vec<u8>)> {
    let key = KeyBuilder::new;
    let id = key().bytes(session.info.id.as_bytes()).session(number).build();
    let mut rows = vec![(key::SESSION_IDS, id)];
    if session.removal.is_some() {
        return rows;
    }
    let text = |text: &str| key().text(text).session(number).build();
    rows.push((key::SESSION_NAMES, text(&session.info.name)));
    if let Some(agent) = &session.info.agent_session {
        rows.push((key::SESSION_AGENTS, text(agent)));
        let beginning = agent_beginning(agent);
        rows.extend(beginning.map(|beginning| (key::SESSION_AGENTS, text(&beginning))));
    }
    for bookmark in &session.bookmarks {
        rows.push((key::SESSION_SOURCES, text(&bookmark.source)));
        if is_mark_of_import(&bookmark.source) {
            rows.push((key::SESSION_SOURCES, text(UNFINISHED)));
        }
    }
    let time = kind_key(session.info.kind).time(session.last_time()).session(number).build();
    rows.push((key::SESSION_TIMES, time));
    rows
}

fn kind_key(kind: SessionKind) -> KeyBuilder {
    KeyBuilder::new().bytes(&[kind as u8])
}

/// Makes the error for a session that the index lacks.
pub(super) fn missing_session(number: SessionNumber) -> Error {
    Error::missing(format!("the session number {number}"))
}

/// Puts the rows of a session, and deletes the rows that only its old version had.
pub(super) fn put_session(
    rows: &mut RowOverlay,
    number: SessionNumber,
    old: Option<&SessionRefs>,
    new: &SessionRefs,
) -> Result<()> {
    for (table, key) in old.map(|old| finding_rows(number, old)).unwrap_or_default() {
        rows.delete(table, key);
    }
    rows.put(key::SESSIONS, of(number).build(), encode_session(new));
    derive_session(number, new, &mut |table, key, value| {
        rows.put(table, key, value);
        Ok(())
    })
}

/// Returns the session with this number in a generation; `None` if the generation does not have it.
pub(super) fn stored_session(
    base: &dyn Snapshot,
    number: SessionNumber,
) -> Result<Option<SessionRefs>> {
    let row = base.get(key::SESSIONS, &of(number).build())?;
    row.map(|row| decoded(number, &row)).transpose()
}

/// Returns the session with this number in a generation.
///
/// # Errors
/// [`Error::Corrupt`] if the generation does not have the session.
pub(super) fn session_in(base: &dyn Snapshot, number: SessionNumber) -> Result<SessionRefs> {
    stored_session(base, number)?.ok_or_else(|| missing_session(number))
}

fn decoded(number: SessionNumber, row: &[u8]) -> Result<SessionRefs> {
    decode_session(row).map_err(Error::corrupt(format!("the session number {number}")))
}

/// Returns at most `limit` sessions of a generation, beginning with the number `from`.
pub(super) fn sessions_from(
    base: &dyn Snapshot,
    from: SessionNumber,
    limit: usize,
) -> Result<Vec<(SessionNumber, SessionRefs)>> {
    let from = of(from).build();
    let rows = base.scan(key::SESSIONS, &from, &[], ScanDirection::Ascending, limit)?;
    rows.iter()
        .filter_map(|(place, row)| Some((session_at_end(place)?, row)))
        .map(|(number, row)| Ok((number, decoded(number, row)?)))
        .collect()
}

/// The time of the last event of a session, and the number of the session. Lists of sessions have
/// this order.
pub(super) type SessionTime = (Timestamp, SessionNumber);

/// Returns at most `limit` sessions of a kind with the time of their last event, the latest first:
/// only sessions later than `after` and earlier than `before`, if these are given.
pub(super) fn latest_sessions(
    base: &dyn Snapshot,
    kind: SessionKind,
    (after, before): (Option<SessionTime>, Option<SessionTime>),
    limit: usize,
) -> Result<Vec<SessionTime>> {
    let place = |(time, number): SessionTime| kind_key(kind).time(time).session(number);
    let from = after.map_or_else(|| kind_key(kind), |session| place(session).bytes(&[0])).build();
    let to = before.map_or_else(|| kind_key(kind).end(), |session| place(session).build());
    let rows = base.scan(key::SESSION_TIMES, &from, &to, ScanDirection::Descending, limit)?;
    let read = |key: &[u8]| Some((key::time_at(key, 1)?, session_at_end(key)?));
    Ok(rows.iter().filter_map(|(key, _)| read(key)).collect())
}

/// Returns the digest of all sessions of a generation, and the number of sessions.
pub(crate) fn digest_of_all(base: &dyn Snapshot) -> Result<(StateDigest, u64)> {
    let (mut digest, mut count) = (StateDigest::EMPTY, 0);
    for row in TableRows::all(base, key::SESSIONS) {
        let (place, row) = row?;
        digest = digest.plus(&session_hash(session_at_end(&place).unwrap_or(0), &row));
        count += 1;
    }
    Ok((digest, count))
}

//! Four systems on the store, each a folder of its own: workflow runs, the progress of long pipelines, programs of
//! several agents, message threads.
//!
//! What one of them keeps are claims in a session of its own kind, whose name is its key: the run, the execution, the
//! program, the thread. Such a session is never current, so the restore, undo, branch or prune of a debugging effort
//! does not touch it, and it has a history, a past and branches as every session has. Nothing here reads or writes
//! but through the facade in [`store`](crate::store); what decides something is a pure function beside it.

mod compound_id;
pub mod program;
pub mod progress;
pub mod run;
pub mod thread;

pub use compound_id::{MAX_KEY_BYTES, join, split};

use crate::error::{Error, Result};
use crate::model::{SessionKind, Timestamp};
use crate::store::{NewSession, Session, SessionListEntry, Store, WriteContext};

/// The word for what is kept in a session of this kind.
#[must_use]
pub const fn word(kind: SessionKind) -> &'static str {
    match kind {
        SessionKind::Debug => "session",
        SessionKind::Run => "run",
        SessionKind::Progress => "progress",
        SessionKind::Program => "program",
        SessionKind::Thread => "thread",
    }
}

/// The session of this kind and key.
///
/// # Errors
/// [`Error::NotFound`].
pub fn open(store: &Store, kind: SessionKind, key: &str) -> Result<Session> {
    store.session_by_kind(kind, key)?.ok_or_else(|| Error::not_found(word(kind), key))
}

/// The session of this kind and key, made if there is none. It never becomes the current one.
///
/// # Errors
/// [`Error::Invalid`] for what is no key; as every write.
pub fn open_or_create(
    store: &Store,
    act: &WriteContext,
    kind: SessionKind,
    key: &str,
) -> Result<Session> {
    if let Some(session) = store.session_by_kind(kind, key)? {
        return Ok(session);
    }
    let new = NewSession { name: key.to_owned(), kind, ..NewSession::default() };
    match store.create_session(act, new) {
        // Somebody else was faster.
        Err(Error::Duplicate { .. }) => open(store, kind, key),
        made => made,
    }
}

/// All sessions of this kind, the one that something was last recorded in first.
///
/// # Errors
/// As every read.
pub fn newest_first(store: &Store, kind: SessionKind) -> Result<Vec<SessionListEntry>> {
    let mut found = store.sessions_by_kind(kind)?;
    // Of two of one time the later made is the newer.
    found.reverse();
    found.sort_by_key(|one| std::cmp::Reverse(last_event(one)));
    Ok(found)
}

/// When something was last recorded in a session; when it began, if nothing was.
#[must_use]
pub fn last_event(one: &SessionListEntry) -> Timestamp {
    one.last_event.unwrap_or(one.started_at)
}

#[cfg(test)]
mod tests;

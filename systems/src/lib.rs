//! Six systems built on `forge-store`, each in a module of its own: workflow [`run`]s, [`progress`]
//! of long pipelines, [`program`]s of several agents, message [`thread`]s, the state of an agent
//! framework's [`graph`], and [`memory`], which has values under keys.
//!
//! Each stores its data as claims and facts in a session of its own kind, which is named after the
//! run, execution, program, thread or memory. Such a session is never current, so restoring,
//! undoing, branching or pruning a debugging session does not affect it, and it has a history and
//! branches like every session. All reads and writes use the public API of [`forge_store`];
//! decisions are made by pure functions.

#![warn(missing_debug_implementations)]

/// Defines an enumeration whose values have words.
macro_rules! words {
    ($(#[$about:meta])* pub enum $name:ident {
        $($(#[$doc:meta])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$about])*
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Returns the word for it.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Returns the value with this word.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

mod compound_id;
pub mod graph;
pub mod memory;
pub mod program;
pub mod progress;
mod row_import;
pub mod run;
pub mod thread;

pub use compound_id::{MAX_COMPOUND_ID_BYTES, join, split};
pub use row_import::RowImport;

use forge_store::error::{Error, Result};
use forge_store::model::{SessionKind, Timestamp};
use forge_store::store::{NewSession, Session, SessionListEntry, Store, WriteContext};

/// Returns what messages call a session of this kind.
#[must_use]
pub const fn word(kind: SessionKind) -> &'static str {
    match kind {
        SessionKind::Debug => "session",
        other => other.name(),
    }
}

/// Opens the session of this kind and key.
///
/// # Errors
/// [`Error::NotFound`].
pub fn open(store: &Store, kind: SessionKind, key: &str) -> Result<Session> {
    store.session_by_kind(kind, key)?.ok_or_else(|| Error::not_found(word(kind), key))
}

/// Opens the session of this kind and key, or creates it. It never becomes the current one.
///
/// # Errors
/// [`Error::Invalid`] if the key is not valid; or any error of a write.
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
        // Another process created it first.
        Err(Error::Duplicate { .. }) => open(store, kind, key),
        made => made,
    }
}

/// Returns what `write` returns, which opens or creates the session of this kind and key and writes
/// to it. If there is no such session, `write` is first tried on a store in memory, so that a write
/// that is refused creates nothing.
///
/// # Errors
/// Any error of a read, or of `write`.
pub fn write_or_begin<T>(
    store: &Store,
    kind: SessionKind,
    key: &str,
    write: impl Fn(&Store) -> Result<T>,
) -> Result<T> {
    if store.session_by_kind(kind, key)?.is_none() {
        write(&Store::in_memory()?)?;
    }
    write(store)
}

/// Lists all sessions of this kind, in the order of their last events, the latest first.
pub fn newest_first(store: &Store, kind: SessionKind) -> Result<Vec<SessionListEntry>> {
    let mut found = store.sessions_by_kind(kind)?;
    // If times are equal, the session created later comes first.
    found.reverse();
    found.sort_by_key(|one| std::cmp::Reverse(last_event(one)));
    Ok(found)
}

/// Returns when something was last recorded in a session, or when it began if nothing was.
#[must_use]
pub fn last_event(one: &SessionListEntry) -> Timestamp {
    one.last_event.unwrap_or(one.started_at)
}

#[cfg(test)]
mod tests;

//! The input for a new session.

use crate::model::{SessionKind, Timestamp};

/// The metadata of a new session.
#[derive(Clone, Debug, Default)]
pub struct NewSession {
    /// Its name. No other session of its kind has it: a name in use is refused, or replaced by
    /// the next free one.
    pub name: String,
    /// The kind of the session.
    pub kind: SessionKind,
    /// The agent that works in it.
    pub agent: Option<String>,
    /// The agent's own id of the session.
    pub agent_session: Option<String>,
    /// When it began, if not now.
    pub started_at: Option<Timestamp>,
    /// Whether it becomes the last used session even if there is one. Only a debugging session can.
    pub takes_over: bool,
}

impl NewSession {
    /// Makes a debugging session with this name, begun by a person: it becomes the last used one.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), takes_over: true, ..Self::default() }
    }

    /// Makes a debugging session begun by an import: it becomes the last used one only if there is
    /// none.
    pub fn imported(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

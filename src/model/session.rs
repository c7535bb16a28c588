//! Sessions.

use super::{SessionId, Timestamp};
use serde::{Deserialize, Serialize};

/// The number of a session within its store, counted from 0 without gaps. It never leaves the
/// store.
pub type SessionNumber = u32;

/// The kind of a session.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    /// A debugging session. Only these can be current.
    #[default]
    Debug,
    /// A workflow run.
    Run,
    /// The progress of one execution of a pipeline.
    Progress,
    /// A program of several agents.
    Program,
    /// A message thread of an LLM agent.
    Thread,
    /// A thread of a graph of an agent framework.
    Graph,
    /// A memory: values under keys.
    Memory,
}

impl SessionKind {
    /// All kinds. Stored data name a kind by its place here.
    pub const ALL: [Self; 7] = [
        Self::Debug,
        Self::Run,
        Self::Progress,
        Self::Program,
        Self::Thread,
        Self::Graph,
        Self::Memory,
    ];

    /// Returns the word for this kind, as in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Run => "run",
            Self::Progress => "progress",
            Self::Program => "program",
            Self::Thread => "thread",
            Self::Graph => "graph",
            Self::Memory => "memory",
        }
    }
}

/// A session, apart from its contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMetadata {
    /// The permanent id.
    pub id: SessionId,
    /// The name, unique within its kind. For every kind except `debug` it is the key by which
    /// programs find the session.
    pub name: String,
    /// The kind of the session.
    pub kind: SessionKind,
    /// The agent that works in it, if any (`claude-code`, ...).
    pub agent: Option<String>,
    /// The agent's own id of the session, by which hooks and imports find it.
    pub agent_session: Option<String>,
    /// When the session began.
    pub started_at: Timestamp,
}

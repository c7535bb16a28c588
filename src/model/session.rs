//! Sessions.

use super::{SessionId, Timestamp};
use serde::{Deserialize, Serialize};

/// A session's number within its store, dense from 0; never leaves the store.
pub type SessionNumber = u32;

/// What a session is for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum SessionKind {
    /// A debugging effort. Only these can be current.
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
}

/// One effort: what a session is, apart from what happened in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMetadata {
    /// Names it for ever.
    pub id: SessionId,
    /// The name people give it; of a run, progress, program or thread its key. Unique within its kind.
    pub name: String,
    /// What it is for.
    pub kind: SessionKind,
    /// Which agent works in it, if one does (`claude-code`, ...).
    pub agent: Option<String>,
    /// The agent's own id of the session, by which hooks and imports find it.
    pub agent_session: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
}

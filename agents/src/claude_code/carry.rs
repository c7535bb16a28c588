//! What reading on needs to know of what was read.

use crate::piece::SessionDraft;
use crate::verification::Verification;
use forge_store::model::{Map, Timestamp, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The state of a [`super::Reader`] between two pieces of one file: kept with the import's bookmark.
///
/// Its size follows what is open (calls without a result, tasks, sub-agents), not the length of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carry {
    pub(super) offset: u64,
    pub(super) lines: u64,
    pub(super) tail: Tail,
    pub(super) session: SessionState,
    /// The time the next "five minutes" count from: of the last checkpoint, else of the first message.
    pub(super) last_checkpoint: Option<Timestamp>,
    /// A compaction whose summary has not come yet.
    pub(super) compaction: Option<Compaction>,
    pub(super) calls: BTreeMap<String, OpenCall>,
    /// The task list: the fields of each task as last seen.
    pub(super) tasks: BTreeMap<String, Map>,
    /// What each agent's own list of to-dos held last, by agent (`""`: the main one).
    pub(super) todos: BTreeMap<String, BTreeMap<String, Map>>,
    pub(super) agents: BTreeMap<String, AgentState>,
    /// The last lines of side chains that name no agent, each with the agent it belongs to.
    pub(super) chains: Vec<(String, String)>,
}

impl Carry {
    /// How many bytes of the file were read: where the next piece begins.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How many lines those were.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }
}

/// How the last line that was taken ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Tail {
    /// With its line break.
    #[default]
    Whole,
    /// Without: it was a whole object at the end of the file.
    Unended,
    /// Not yet: it is too long and being passed over.
    Overlong,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SessionState {
    pub(super) id: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) git_branch: Option<String>,
    pub(super) started_at: Option<Timestamp>,
    pub(super) title: Option<String>,
    pub(super) first_prompt: Option<String>,
}

impl SessionState {
    pub(super) fn draft(&self) -> Option<SessionDraft> {
        Some(SessionDraft {
            agent_session: self.id.clone()?,
            cwd: self.cwd.clone(),
            git_branch: self.git_branch.clone(),
            started_at: self.started_at,
            title: self.title.clone().or_else(|| self.first_prompt.clone()),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Compaction {
    pub(super) uuid: String,
    pub(super) at: Timestamp,
    pub(super) body: Map,
}

/// A tool call that awaits its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct OpenCall {
    pub(super) called_at: Timestamp,
    pub(super) cwd: Option<String>,
    pub(super) tool: String,
    pub(super) asked: Asked,
}

/// What a call asked for, as far as its result does not say it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Asked {
    Command {
        command: Value,
        description: Value,
        background: bool,
        commit: bool,
        verification: Option<Verification>,
    },
    Edit {
        path: Option<String>,
        /// The patch as the call describes it; used where the result says no more than that it was done.
        patch: Value,
        added: u64,
        removed: u64,
    },
    Agent {
        kind: Option<String>,
        description: Option<String>,
        /// The hash of its prompt: how a side chain without a name is recognised.
        prompt: String,
    },
    NewTask {
        fields: Map,
    },
    TaskChange {
        id: String,
        fields: Map,
    },
    Todos {
        items: BTreeMap<String, Map>,
    },
}

/// A sub-agent so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct AgentState {
    /// What does not change: its type, description, prompt, the call that started it.
    pub(super) fields: Map,
    pub(super) messages: u64,
    pub(super) tool_calls: u64,
}

//! The state between two pieces of a transcript.

use super::checkpoint_name::RecentEvents;
use super::open_call::OpenCall;
use super::prompt_queue::PromptQueue;
use crate::codex::state::CodexState;
use crate::long_text;
use crate::piece::SessionDraft;
use crate::verification::CheckCommandLine;
use forge_store::model::{FieldMap, Timestamp, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The state of a [`super::TranscriptReader`] between two pieces of one file, saved with the
/// import's bookmark.
///
/// Its size depends on what is open (calls without a result, tasks, sub-agents), not on the length
/// of the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TranscriptState {
    pub(crate) offset: u64,
    pub(crate) lines: u64,
    pub(crate) tail: LastLineState,
    pub(crate) session: SessionState,
    /// The time from which the five minutes before the next checkpoint count: that of the last
    /// checkpoint, or else of the first message.
    pub(crate) last_checkpoint: Option<Timestamp>,
    /// A compaction whose summary has not come yet.
    pub(crate) compaction: Option<PendingCompaction>,
    pub(crate) calls: BTreeMap<String, OpenCall>,
    /// The task list: the fields of each task as last seen.
    pub(crate) tasks: BTreeMap<String, FieldMap>,
    /// The last to-do list of each agent, by agent (`""`: the main agent).
    pub(crate) todos: BTreeMap<String, BTreeMap<String, FieldMap>>,
    pub(crate) agents: BTreeMap<String, SubAgentState>,
    /// The last lines of side chains that name no agent, each with the agent it belongs to.
    pub(crate) chains: Vec<(String, String)>,
    /// What only lines of agents other than Claude Code need.
    pub(crate) other: OtherAgentState,
    /// What only lines of Claude Code need.
    pub(crate) claude: ClaudeState,
    /// What happened since the last checkpoint.
    pub(crate) recent: RecentEvents,
    /// What a [`crate::TranscriptMirror`] notes about the transcript.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mirror: Option<crate::mirror::MirrorNote>,
}

/// The state that only lines of Claude Code need about earlier lines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ClaudeState {
    /// The session that the transcript belongs to, if the caller knows it.
    pub(crate) own_session: Option<String>,
    /// Prompts that were typed while the agent worked.
    pub(crate) queue: PromptQueue,
    /// Commands that run in the background, by the id of their call.
    pub(crate) background: BTreeMap<String, BackgroundCommand>,
    /// The hash of the last summary of a compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<String>,
    /// The last model that answered.
    pub(crate) model: Option<String>,
    /// The last permission mode.
    pub(crate) mode: Option<String>,
}

/// The state that only lines of agents other than Claude Code need about earlier lines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OtherAgentState {
    /// The last model.
    pub(crate) model: Option<String>,
    /// What only lines of Codex need.
    pub(crate) codex: CodexState,
    /// The ids of the last messages and calls that already are facts: their lines may come again.
    #[serde(rename = "told")]
    pub(crate) reported: Vec<String>,
    /// Whether the session is a sub-agent's own: no person typed its prompts.
    pub(crate) sub_agent: bool,
    /// Commands in the background, by process id: a later line may say how they ended.
    pub(crate) running: BTreeMap<String, BackgroundProcess>,
}

/// A command in the background, with the data for the version of its fact when it ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BackgroundProcess {
    pub(crate) id: String,
    pub(crate) command: Value,
    pub(crate) description: Value,
    pub(crate) more: FieldMap,
    pub(crate) verification: Option<CheckCommandLine>,
}

impl OtherAgentState {
    /// Marks an id as reported. Returns whether it was marked before.
    pub(crate) fn mark_reported(&mut self, id: &str) -> bool {
        /// The maximum number of ids. A message is written again while its calls run, not later.
        const KEPT: usize = 256;
        if self.reported.iter().any(|known| known == id) {
            return true;
        }
        if self.reported.len() == KEPT {
            self.reported.remove(0);
        }
        self.reported.push(id.to_owned());
        false
    }
}

impl TranscriptState {
    /// Returns how many bytes of the file were read: where the next piece begins.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns how many lines were read.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }
}

/// How the last line that was read ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LastLineState {
    /// With its line break.
    #[default]
    Whole,
    /// Without one: it was a complete object at the end of the file.
    Unended,
    /// Not yet: the line is too long and is being skipped.
    Overlong,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SessionState {
    pub(crate) id: Option<String>,
    pub(crate) cwd: Option<String>,
    pub(crate) git_branch: Option<String>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) title: Option<String>,
    /// The last title that the agent gave.
    pub(crate) ai_title: Option<String>,
    pub(crate) first_prompt: Option<String>,
    /// The first slash command with arguments.
    pub(crate) first_command: Option<String>,
}

impl SessionState {
    /// Keeps the headline of the first prompt, which becomes the title if the session has no other.
    pub(crate) fn note_prompt(&mut self, text: &str) {
        if self.first_prompt.is_none() {
            self.first_prompt = long_text::headline(text);
        }
    }

    /// Keeps a slash command, which becomes the title if the session has no prompt in words. One
    /// without arguments, such as `/clear`, says nothing about the session.
    pub(crate) fn note_command(&mut self, command: &str) {
        if self.first_command.is_none() && command.contains(' ') {
            self.first_command = long_text::headline(command);
        }
    }

    pub(crate) fn draft(&self) -> Option<SessionDraft> {
        let asked = self.first_prompt.as_ref().or(self.first_command.as_ref());
        let title = self.title.as_ref().or(self.ai_title.as_ref()).or(asked);
        Some(SessionDraft {
            agent_session: self.id.clone()?,
            cwd: self.cwd.clone(),
            git_branch: self.git_branch.clone(),
            started_at: self.started_at,
            title: title.cloned(),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PendingCompaction {
    pub(crate) uuid: String,
    pub(crate) at: Timestamp,
    pub(crate) body: FieldMap,
}

/// A command that runs in the background.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BackgroundCommand {
    pub(super) task: Option<String>,
    pub(super) command: Value,
    pub(super) description: Value,
    pub(super) cwd: Option<String>,
    pub(super) called_at: Timestamp,
    pub(super) agent: Option<String>,
    pub(super) commit: bool,
    pub(super) verification: Option<CheckCommandLine>,
    /// Whether a report without an exit code said that it ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) ended: bool,
}

/// The known state of a sub-agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SubAgentState {
    /// The fields of every version: type, description, prompt, start, the call that started it,
    /// and its parent agent once that is known.
    pub(crate) fields: FieldMap,
    pub(crate) messages: u64,
    pub(crate) tool_calls: u64,
    /// The hash of the status and the result in the last report about it.
    #[serde(rename = "ended")]
    pub(crate) last_report: Option<String>,
    /// Whether the last report said that it still runs.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) goes_on: bool,
}

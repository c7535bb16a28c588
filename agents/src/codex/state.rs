//! What reading on in a rollout needs to know of earlier lines.

use crate::claude_code::open_call::{OpenCall, PatchedFile};
use forge_store::model::{FieldMap, Timestamp, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The part of the carry that only rollouts use. Every list in it is bounded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CodexState {
    /// A sub-agent's session: its user messages were written by the parent agent.
    pub(crate) sub_agent: bool,
    /// The lines that a fork copied from its origin, while they last.
    pub(crate) copying: Option<ForkCopyState>,
    /// Lines with a smaller ordinal were copied from another session.
    pub(crate) own_from: Option<i64>,
    /// When this session began, as its first line says.
    pub(crate) began: Option<Timestamp>,
    /// The prompts and searches of the last lines; two lines report each.
    pub(crate) reported: Vec<SeenReport>,
    /// The calls whose end is known.
    pub(crate) ended: Vec<String>,
    /// The commands that went to the background.
    pub(crate) running: Vec<CodexRunningCommand>,
    /// The open calls that wait for what goes on in the background, by call.
    pub(crate) polls: BTreeMap<String, PollTarget>,
    /// The open calls of other tools.
    pub(crate) tools: BTreeMap<String, OpenToolCall>,
    /// The open scripts of code mode: the commands in each, by call.
    pub(crate) scripts: BTreeMap<String, Vec<ScriptCommand>>,
    /// The scripts that go on after their call returned: the names of their commands, by the cell they run in.
    pub(crate) cells: BTreeMap<String, Vec<String>>,
    /// Commands of scripts that returned, whose end no line has reported.
    pub(crate) unended: Vec<ScriptCommand>,
    /// Whether the client reports commands as events of their own.
    pub(crate) reports_commands: bool,
    /// Patches that are part of a longer command line, by call.
    pub(crate) patches: BTreeMap<String, Vec<PatchedFile>>,
    /// The last message of the model, until its tokens are known.
    pub(crate) untold_tokens: Option<LastMessage>,
    /// The total of tokens that was reported last.
    pub(crate) total_tokens: Option<i64>,
}

/// Copied lines follow each other closely.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ForkCopyState {
    /// The time of the last of them.
    pub(crate) last: Timestamp,
}

/// Something that several lines report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SeenReport {
    /// The hash of what it says.
    pub(crate) hash: String,
    /// The kinds of lines that have reported it, a bit each.
    pub(crate) sources: u8,
    pub(crate) at: Timestamp,
}

/// A command that goes on after its call returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CodexRunningCommand {
    pub(crate) id: String,
    /// The number that polls name; `None` once another process has it.
    pub(crate) process: Option<String>,
    pub(crate) call: OpenCall,
    /// The end of what it has printed.
    pub(crate) tail: String,
    /// What it printed last, as its fact shows it.
    pub(crate) shown: Value,
}

/// What an open call waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PollTarget {
    /// The command of this process.
    Process(String),
    /// The script in this cell.
    Cell(String),
}

/// A call of a tool that awaits its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenToolCall {
    pub(crate) called_at: Timestamp,
    /// The tool, as the agent names it.
    pub(crate) tool: String,
    /// The fields that its fact gets from the call.
    pub(crate) fields: FieldMap,
    /// Those of the sub-agent that it starts.
    pub(crate) agent: Option<FieldMap>,
    /// The questions that it asks the person, by their names.
    pub(crate) questions: BTreeMap<String, String>,
}

/// A command that stands as a text in a script of code mode.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScriptCommand {
    pub(crate) id: String,
    /// The hash of its command line.
    pub(crate) hash: String,
    pub(crate) call: OpenCall,
}

/// A message as its fact has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LastMessage {
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    pub(crate) place: (u64, u64),
    pub(crate) value: FieldMap,
}

/// How many open or ended things are remembered of each kind.
const MAX_REMEMBERED_CALLS: usize = 256;
/// Two lines that report one thing lie no further apart than this.
const SAME_MICROS: i64 = 60_000_000;

impl CodexState {
    /// Whether this was not reported before by another kind of line. `source` is the bit of this kind.
    pub(crate) fn is_news(&mut self, hash: String, source: u8, at: Timestamp) -> bool {
        self.reported.retain(|one| at.micros_since(one.at) <= SAME_MICROS);
        let same =
            self.reported.iter_mut().find(|one| one.hash == hash && one.sources & source == 0);
        if let Some(same) = same {
            same.sources |= source;
            return false;
        }
        push(&mut self.reported, SeenReport { hash, sources: source, at });
        true
    }

    /// Whether the end of this call is known.
    pub(crate) fn has_ended(&self, id: &str) -> bool {
        self.ended.iter().any(|ended| ended == id)
    }

    /// Notes that the end of this call is known.
    pub(crate) fn end(&mut self, id: &str) {
        if !self.has_ended(id) {
            push(&mut self.ended, id.to_owned());
        }
    }

    /// Notes that a command goes on as this process.
    pub(crate) fn start(&mut self, running: CodexRunningCommand) {
        for one in &mut self.running {
            // A new process of the same number: the one before is gone, whatever became of it.
            if one.process == running.process {
                one.process = None;
            }
        }
        self.running.retain(|one| one.id != running.id);
        push(&mut self.running, running);
    }

    /// Takes a command that went to the background.
    pub(crate) fn stop(
        &mut self,
        is_it: impl Fn(&CodexRunningCommand) -> bool,
    ) -> Option<CodexRunningCommand> {
        let place = self.running.iter().rposition(is_it)?;
        Some(self.running.remove(place))
    }
}

/// Appends to a bounded list; the oldest makes room.
pub(crate) fn push<T>(list: &mut Vec<T>, one: T) {
    if list.len() >= MAX_REMEMBERED_CALLS {
        list.remove(0);
    }
    list.push(one);
}

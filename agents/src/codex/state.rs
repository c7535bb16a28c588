//! The state of a rollout's reader: what later lines need from earlier lines.

use crate::claude_code::open_call::{OpenCall, PatchedFile};
use forge_store::model::{FieldMap, Timestamp, Value};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// The part of the carry that only rollouts use. The length of its lists is limited, and so is the
/// number of cells. An entry of a map is removed when the result of its call or script is read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CodexState {
    /// Whether no person wrote its user messages: the session of a sub-agent, or an internal one.
    pub(crate) sub_agent: bool,
    /// Set while the lines are read that a fork copied from its origin.
    pub(crate) copying: Option<ForkCopyState>,
    /// Lines with a smaller ordinal were copied from another session.
    pub(crate) own_from: Option<i64>,
    /// When this session began, by its first line.
    pub(crate) began: Option<Timestamp>,
    /// The prompts and searches of the last minute. Several lines can report the same one.
    pub(crate) reported: Vec<SeenReport>,
    /// The ids of calls whose end is known.
    pub(crate) ended: Vec<String>,
    /// The commands that went to the background.
    pub(crate) running: Vec<CodexRunningCommand>,
    /// The open calls that wait for background work, by call.
    pub(crate) polls: BTreeMap<String, PollTarget>,
    /// The open calls of other tools.
    pub(crate) tools: BTreeMap<String, OpenToolCall>,
    /// The open calls that have a fact already: a turn or event ended before their result came.
    pub(crate) recorded_open: Vec<String>,
    /// The open scripts of code mode: the commands in each, by call.
    pub(crate) scripts: BTreeMap<String, Vec<ScriptCommand>>,
    /// The scripts that still run after their call returned: the ids of their commands, by cell.
    pub(crate) cells: BTreeMap<String, Vec<String>>,
    /// Commands of scripts that returned, whose end no line has reported yet.
    pub(crate) unended: Vec<ScriptCommand>,
    /// Whether the client reports commands as events of their own.
    pub(crate) reports_commands: bool,
    /// Patches that are part of a longer command line, by call.
    pub(crate) patches: BTreeMap<String, Vec<PatchedFile>>,
    /// The last message of the model, until its token usage is known.
    #[serde(rename = "untold_tokens")]
    pub(crate) message_without_usage: Option<LastMessage>,
    /// The token total that was reported last.
    pub(crate) total_tokens: Option<i64>,
}

/// The state of reading copied lines, which follow each other closely.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ForkCopyState {
    /// The time of the last copied line.
    pub(crate) last: Timestamp,
}

/// Something that several lines report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SeenReport {
    /// The hash of its content.
    pub(crate) hash: String,
    /// The kinds of lines that have reported it, one bit each.
    pub(crate) sources: u8,
    pub(crate) at: Timestamp,
}

/// A command that still runs after its call returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CodexRunningCommand {
    pub(crate) id: String,
    /// The number of the process, which polls name; `None` once another process has the number.
    pub(crate) process: Option<String>,
    pub(crate) call: OpenCall,
    /// The last part of its output.
    pub(crate) tail: String,
    /// Its last output, as its fact shows it.
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

/// A tool call that waits for its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenToolCall {
    pub(crate) called_at: Timestamp,
    /// The tool, as the agent names it.
    pub(crate) tool: String,
    /// The fields that its fact gets from the call.
    pub(crate) fields: FieldMap,
    /// The fields of the sub-agent that it starts.
    pub(crate) agent: Option<FieldMap>,
    /// The questions that it asks the person, by their ids.
    pub(crate) questions: BTreeMap<String, String>,
}

/// A command that a script of code mode contains as a literal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScriptCommand {
    pub(crate) id: String,
    /// The hash of its command line.
    pub(crate) hash: String,
    pub(crate) call: OpenCall,
}

/// The last message of the model, with the fields of its fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LastMessage {
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    pub(crate) place: (u64, u64),
    pub(crate) value: FieldMap,
}

/// The maximum number of entries in a list, and of cells.
const MAX_REMEMBERED: usize = 256;
/// The maximum time between two lines that report the same thing, in microseconds.
const SAME_MICROS: i64 = 60_000_000;

impl CodexState {
    /// Notes a report by the kind of line with the bit `source`. Returns whether no other kind of
    /// line reported it before.
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

    /// Notes that a command still runs as this process.
    pub(crate) fn start(&mut self, running: CodexRunningCommand) {
        for one in &mut self.running {
            // The new process has the same number, so the earlier process has ended. How it ended
            // is not known.
            if one.process == running.process {
                one.process = None;
            }
        }
        self.running.retain(|one| one.id != running.id);
        push(&mut self.running, running);
    }

    /// Notes the commands of a script that still runs, if there are any. If there are too many
    /// cells, cells whose commands have all ended are dropped first: their end reports nothing.
    pub(crate) fn keep_cell(&mut self, cell: String, commands: Vec<String>) {
        if commands.is_empty() {
            return;
        }
        if self.cells.len() >= MAX_REMEMBERED {
            let unended: HashSet<&str> = self.unended.iter().map(|one| one.id.as_str()).collect();
            self.cells
                .retain(|_, commands| commands.iter().any(|id| unended.contains(id.as_str())));
            while self.cells.len() >= MAX_REMEMBERED {
                self.cells.pop_first();
            }
        }
        self.cells.insert(cell, commands);
    }

    /// Removes and returns the latest command in the background for which `is_it` is true.
    pub(crate) fn stop(
        &mut self,
        is_process: impl Fn(&CodexRunningCommand) -> bool,
    ) -> Option<CodexRunningCommand> {
        let place = self.running.iter().rposition(is_process)?;
        Some(self.running.remove(place))
    }
}

/// Appends to a bounded list; removes the oldest entry if the list is full.
pub(crate) fn push<T>(list: &mut Vec<T>, one: T) {
    if list.len() >= MAX_REMEMBERED {
        list.remove(0);
    }
    list.push(one);
}

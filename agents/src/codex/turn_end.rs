//! Calls that are still open when their turn ends: no line says how they ended.

use super::command_end::{self, CodexCommandEnd, note_recorded_open};
use super::{call, tool};
use crate::claude_code::line_context::PieceBuilder;
use crate::claude_code::open_call::{CallRequest, OpenCall};
use forge_store::model::Value;

/// Records every open call of a turn that ended: `interrupted` if the turn was aborted, `unknown`
/// if another turn begins.
///
/// The calls stay open, because a later result makes another version of their facts.
pub(super) fn record_open_calls(work: &mut PieceBuilder<'_>, outcome: &'static str) {
    let is_new = |id: &String| !work.carry.other.codex.recorded_open.contains(id);
    let calls = work.carry.calls.iter().filter(|(id, _)| is_new(id));
    let calls: Vec<(String, OpenCall)> =
        calls.map(|(id, open)| (id.clone(), open.clone())).collect();
    let tools = work.carry.other.codex.tools.keys().filter(|id| is_new(id));
    let tools: Vec<String> = tools.cloned().collect();
    for (id, open) in calls {
        match &open.request {
            CallRequest::Command { .. } => {
                command_end::push_command(work, &id, &open, unreported_end(outcome));
            }
            CallRequest::Patch { files } => {
                if let Some(first) = files.first() {
                    tool::edit_not_made(work, &id, &first.path, outcome, Value::Null);
                }
            }
            _ => {}
        }
        note_recorded_open(work, id);
    }
    for id in tools {
        tool::open_at_turn_end(work, &id, outcome);
        note_recorded_open(work, id);
    }
    // A script may have ended before its later commands, so their outcome is not known.
    let scripts = std::mem::take(&mut work.carry.other.codex.scripts);
    for commands in scripts.into_values() {
        for command in &commands {
            let end = unreported_end("unknown");
            command_end::push_command(work, &command.id, &command.call, end);
        }
        call::await_end(work, commands);
    }
}

/// Returns the end of a command when no line says how it ended.
fn unreported_end(outcome: &'static str) -> CodexCommandEnd<'static> {
    CodexCommandEnd {
        exit_code: None,
        outcome,
        duration_ms: None,
        not_started: false,
        output: "",
        shown: Value::Null,
    }
}

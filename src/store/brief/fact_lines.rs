//! The lines of a brief about facts.

use super::brief_line::{BriefLine, cut, entity_title, line};
use crate::engine::fact::SourcedFact;
use crate::model::claim::{
    CommandOutcome, ExecutedCommand, FactText, FieldValue, Task, ToolOutcome, VocabularyWord,
};
use crate::model::{Kind, Timestamp, Value};
use crate::store::check_results::{display_text, text_preview};
use std::collections::{BTreeMap, BTreeSet};

/// How many of the last commands a brief shows.
const COMMANDS: usize = 5;
/// How many of the last refusals a brief shows.
const REFUSED: usize = 5;
/// How many characters of two commands, without digits, are compared: if they are equal, the
/// commands are similar.
const LIKENESS_CHARS: usize = 32;

/// Returns the last commands, the latest first. Of similar commands only the latest is listed.
/// Commands that begin with `sleep` or `forge` are left out.
pub(super) fn last_commands(facts: &[SourcedFact]) -> Vec<BriefLine> {
    let mut lines: Vec<(String, BriefLine)> = Vec::new();
    for known in facts.iter().rev().filter(|known| known.fact.kind == Kind::Command) {
        let text = known.fact.value.field("command").and_then(FactText::read);
        let text = display_text(&text).unwrap_or_default();
        let Some(likeness) = likeness(&text) else { continue };
        if let Some((_, like)) = lines.iter_mut().find(|(other, _)| *other == likeness) {
            like.similar += 1;
            continue;
        }
        if lines.len() >= COMMANDS {
            break;
        }
        let found = ExecutedCommand::from_value(&known.fact.value).unwrap_or_default();
        let line = BriefLine {
            word: found.outcome.map(VocabularyWord::word),
            exit_code: found.exit_code,
            ..line(Kind::Command, known.fact.id.clone(), Some(&text), known.fact.at)
        };
        lines.push((likeness, line));
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

/// Returns what similar commands have in common: the beginning without digits. `None` for a command
/// that begins with `sleep` or `forge`.
fn likeness(command: &str) -> Option<String> {
    let first = command.split_whitespace().next()?;
    if matches!(first, "sleep" | "forge") {
        return None;
    }
    let letters = command.chars().filter(|c| !c.is_ascii_digit());
    Some(letters.take(LIKENESS_CHARS).collect())
}

/// How the reasons of calls begin that the agent's program cancelled or could not begin: no person
/// and no rule refused them.
const CANCELLED: [&str; 11] = [
    "Sibling tool call errored",
    "Cancelled: ",
    "Streaming fallback",
    "InputValidationError",
    "No such tool available",
    "Tool use aborted",
    "Tool permission request failed",
    "Tool permission stream closed",
    "Auto mode could not evaluate this action",
    "[Tool call skipped",
    "[Tool call not completed",
];
/// A part of the reason if the program could not ask whether a call is allowed.
const NOT_ASKED: &str = ", so auto mode cannot determine the safety of ";

/// Tools that edit the file at their path.
const EDITS: [&str; 3] = ["Edit", "MultiEdit", "Write"];

/// Returns the last commands and tool calls that were refused, the latest first. Of equal ones only
/// the latest is listed. Those that were allowed later, or only cancelled, are left out.
pub(super) fn last_refused(facts: &[SourcedFact]) -> Vec<BriefLine> {
    let mut lines: Vec<BriefLine> = Vec::new();
    let mut allowed: BTreeSet<String> = BTreeSet::new();
    // A successful edit is recorded as code.
    let mut edited: BTreeMap<&str, Timestamp> = BTreeMap::new();
    for fact in facts.iter().map(|known| &known.fact).filter(|fact| fact.kind == Kind::Code) {
        if let Some(path) = fact.value.field("path").and_then(Value::as_text) {
            let last = edited.entry(path).or_insert(fact.at);
            *last = fact.at.max(*last);
        }
    }
    for known in facts.iter().rev() {
        let fact = &known.fact;
        let text_of = |field| fact.value.field(field).and_then(FactText::read);
        let is_refused = match fact.kind {
            Kind::Command => outcome(&fact.value) == Some(CommandOutcome::Refused),
            Kind::Tool => {
                let tool = text_of("tool");
                let tool = text_preview(&tool).unwrap_or_default();
                let path = fact.value.field("path").and_then(Value::as_text);
                let last_edit = path.filter(|_| EDITS.contains(&tool)).and_then(|p| edited.get(p));
                if last_edit.is_some_and(|last_edit| *last_edit > fact.at) {
                    continue;
                }
                outcome(&fact.value) == Some(ToolOutcome::Refused)
            }
            _ => continue,
        };
        let text = entity_title(fact.kind, &fact.value);
        if !is_refused {
            allowed.insert(text);
            continue;
        }
        let reason = text_of("reason");
        let reason_text = text_preview(&reason).unwrap_or_default();
        let said = reason_text.strip_prefix("Error: ").unwrap_or(reason_text);
        if CANCELLED.iter().any(|beginning| said.starts_with(beginning)) || said.contains(NOT_ASKED)
        {
            continue;
        }
        if allowed.contains(&text) || lines.iter().any(|line| line.text == text) {
            continue;
        }
        let word = Some(CommandOutcome::Refused.word());
        let line = line(fact.kind, fact.id.clone(), Some(&text), fact.at);
        let reason = display_text(&reason).map(|reason| cut(&reason));
        lines.push(BriefLine { word, reason, ..line });
        if lines.len() == REFUSED {
            break;
        }
    }
    lines
}

/// Returns how a command or a tool ended.
fn outcome<O: FieldValue>(value: &Value) -> Option<O> {
    value.field("outcome").and_then(O::read)
}

/// Returns the open tasks in the order of the facts, those that were begun first. Those on a
/// sub-agent's own list are left out: no other agent continues them.
pub(super) fn open_tasks(facts: &[SourcedFact]) -> Vec<BriefLine> {
    let mut lines = Vec::new();
    for known in facts.iter().filter(|known| known.fact.kind == Kind::Task) {
        let Ok(found) = Task::from_value(&known.fact.value) else { continue };
        if found.is_open() && found.agent.is_none() {
            let text = display_text(&found.subject).or_else(|| display_text(&found.description));
            let reason = text_preview(&found.status).map(cut);
            let line = line(Kind::Task, known.fact.id.clone(), text.as_deref(), known.fact.at);
            lines.push(BriefLine { reason, ..line });
        }
    }
    lines.sort_by_key(|line| line.reason.as_deref() != Some("in_progress"));
    lines
}

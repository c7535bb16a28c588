//! Builds the lines of the timeline, and filters them.

use crate::answer::{RowSign, TimelineRow, field_text, text_of};
use crate::effect::MomentTarget;
use crate::query::TimelineFilter;
use forge_store::model::text::trim_cut_end;
use forge_store::model::{AutoTrigger, CheckpointTrigger, EntryChange, Fact, Kind, Value};
use forge_store::store::{PageItem, PageItemContent};

/// Returns the display name of a trigger.
pub(super) const fn trigger_word(trigger: CheckpointTrigger) -> &'static str {
    match trigger {
        CheckpointTrigger::Manual => "manual",
        CheckpointTrigger::Scheduled => "scheduled",
        CheckpointTrigger::Automatic(automatic) => match automatic {
            AutoTrigger::HypothesisStatusChange => "status change",
            AutoTrigger::NewContradictionDetected => "contradiction",
            AutoTrigger::VerificationComplete => "verification",
            AutoTrigger::BranchSwitch => "branch switch",
            AutoTrigger::GapFilled => "gap filled",
            AutoTrigger::CodeModified => "code modified",
            AutoTrigger::SignificantTimePassed => "time passed",
            AutoTrigger::ContextCompactionWarning => "compaction",
        },
    }
}

/// Returns the text of an entity in one line.
pub(super) fn entity_title(kind: Kind, value: &Value) -> String {
    let names: &[&str] = match kind {
        Kind::Message | Kind::Prompt => &["text"],
        Kind::Command => &["command", "description"],
        Kind::Code => &["path", "commit", "patch"],
        Kind::Verification => &["name", "command", "description"],
        Kind::Measurement => &["name"],
        Kind::Task => &["subject", "description"],
        _ => &["description", "text", "name", "type", "rule"],
    };
    let mut title =
        names.iter().find_map(|name| value.field(name)).map(text_of).unwrap_or_default();
    let part = |name| value.field(name).map(text_of).unwrap_or_default();
    if kind == Kind::Measurement {
        title = format!("{title} = {} {}", part("value"), part("unit"));
    }
    let is_captured_code = kind == Kind::Code && value.field("commit").is_some();
    if is_captured_code || matches!(kind, Kind::Tool | Kind::Notice) {
        title = forge_store::store::entity_title(kind, value);
    }
    if kind == Kind::Dependency {
        let how = value.field("type").map_or_else(|| "requires".to_owned(), text_of);
        title = format!("{} {} {}", part("from"), how.replace('_', " "), part("to"));
    }
    one_line(&title)
}

/// Returns at most the first 400 bytes of a text, in one line.
pub(super) fn one_line(text: &str) -> String {
    const MAX_LINE_BYTES: usize = 400;
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > MAX_LINE_BYTES {
            line.truncate(line.floor_char_boundary(MAX_LINE_BYTES));
            line.truncate(trim_cut_end(&line).len());
            line.push('…');
            break;
        }
    }
    line
}

/// Returns one side of a changed field in one line.
pub(super) fn side(field: &str, value: Option<&Value>) -> String {
    let text = value.map(|value| one_line(&field_text(field, value)));
    text.filter(|text| !text.is_empty()).unwrap_or_else(|| "none".to_owned())
}

/// Describes a change in a few words. The number is its importance, from 0 to 2.
fn change_words(change: &EntryChange) -> (String, u8) {
    let id = &change.key.id;
    let kind = change.key.kind;
    let field = |entry: &Option<forge_store::model::ClaimEntry>, name: &str| {
        let value = entry.as_ref().and_then(|entry| entry.value.field(name));
        value.map(|value| field_text(name, value))
    };
    match (&change.old, &change.new) {
        (None, Some(new)) => {
            let weight = u8::from(matches!(kind, Kind::Hypothesis | Kind::Gap));
            (format!("+ {kind} {id}: {}", entity_title(kind, &new.value)), weight)
        }
        (Some(_), None) => (format!("- {kind} {id}"), 1),
        _ => {
            let [old, new] = [&change.old, &change.new].map(|side| field(side, "status"));
            if let Some(new) = new.filter(|new| Some(new) != old.as_ref()) {
                let words = format!("{kind} {id} is {} now", new.replace('_', " "));
                let reason =
                    field(&change.new, "reason").or_else(|| field(&change.new, "resolution"));
                let reason =
                    reason.map(|reason| format!(": {}", one_line(&reason))).unwrap_or_default();
                return (format!("{words}{reason}"), 2);
            }
            let [old, new] = [&change.old, &change.new].map(|side| field(side, "confidence"));
            match new.filter(|new| Some(new) != old.as_ref()) {
                Some(new) => {
                    let old = old.unwrap_or_else(|| "none".to_owned());
                    (format!("{kind} {id}: confidence {old} → {new}"), 0)
                }
                None => (format!("{kind} {id} changed"), 0),
            }
        }
    }
}

pub(super) fn changes_status(change: &EntryChange) -> bool {
    change_words(change).1 == 2
}

pub(super) fn row(item: &PageItem) -> TimelineRow {
    let target = MomentTarget::Time(item.place.time);
    let row = TimelineRow::new(item.place, target, item.branch.clone());
    match &item.content {
        PageItemContent::Checkpoint(checkpoint) => {
            let (sign, weight) = match checkpoint.trigger {
                CheckpointTrigger::Manual => (RowSign::Manual, 3),
                CheckpointTrigger::Scheduled => (RowSign::Scheduled, 0),
                CheckpointTrigger::Automatic(_) if checkpoint.is_compaction() => {
                    (RowSign::Compaction, 3)
                }
                CheckpointTrigger::Automatic(
                    AutoTrigger::HypothesisStatusChange | AutoTrigger::NewContradictionDetected,
                ) => (RowSign::Automatic, 2),
                CheckpointTrigger::Automatic(AutoTrigger::SignificantTimePassed) => {
                    (RowSign::Automatic, 0)
                }
                CheckpointTrigger::Automatic(_) => (RowSign::Automatic, 1),
            };
            TimelineRow {
                target: MomentTarget::Sequence(checkpoint.sequence),
                sign,
                title: one_line(&checkpoint.message),
                by: trigger_word(checkpoint.trigger).to_owned(),
                tags: checkpoint.tags.clone(),
                id: checkpoint.id.to_string(),
                weight,
                ..row
            }
        }
        PageItemContent::Revision { entry, parents, changes } => {
            let words: Vec<(String, u8)> = changes.iter().map(change_words).collect();
            let weight = words.iter().map(|(_, weight)| *weight).max().unwrap_or(0);
            let merged = parents.get(1).copied();
            let sign = match (entry.reset_to, merged) {
                (_, Some(_)) => RowSign::Merge,
                (Some(_), None) => RowSign::Restore,
                (None, None) if weight == 2 => RowSign::Status,
                _ => RowSign::Revision,
            };
            // The most important change is named; the others are counted.
            let first =
                words.iter().max_by_key(|(_, weight)| *weight).map(|(words, _)| words.clone());
            let title = match (entry.reset_to, first) {
                (Some(to), _) if merged.is_some() => {
                    format!("takes over the claims of #{to} unchanged")
                }
                (Some(0), _) => "back to no claims at all".to_owned(),
                (Some(to), _) => format!("back to the claims of #{to}"),
                (None, Some(first)) if words.len() > 1 => {
                    format!("{first} (and {} more)", words.len() - 1)
                }
                (None, Some(first)) => first,
                (None, None) => entry.verb.clone(),
            };
            TimelineRow {
                target: MomentTarget::Sequence(entry.sequence),
                sign,
                title,
                by: entry.verb.clone(),
                id: entry.id.to_string(),
                weight: if sign == RowSign::Restore || sign == RowSign::Merge { 2 } else { weight },
                merged,
                ..row
            }
        }
        PageItemContent::Fact(known) => {
            let fact = &known.fact;
            let sign = fact_sign(fact);
            TimelineRow {
                sign,
                title: entity_title(fact.kind, &fact.value),
                by: fact.kind.name().to_owned(),
                id: fact.id.clone(),
                weight: u8::from(sign != RowSign::Fact || fact.kind == Kind::Prompt),
                ..row
            }
        }
    }
}

fn fact_sign(fact: &Fact) -> RowSign {
    let status = fact.value.field("status").and_then(Value::as_text);
    let code = fact.value.field("exit_code").and_then(Value::as_i64);
    match (fact.kind, status) {
        (Kind::Verification, Some("passed")) => RowSign::Passed,
        (Kind::Verification, Some("failed" | "error" | "timed_out")) => RowSign::Failed,
        (Kind::Command, _) if code.is_some_and(|code| code != 0) => RowSign::Failed,
        _ => RowSign::Fact,
    }
}

/// Returns whether an item is a message without text. Many messages of an agent contain only tool
/// calls.
pub(super) fn has_no_text(item: &PageItem) -> bool {
    matches!(&item.content, PageItemContent::Fact(known)
        if known.fact.kind == Kind::Message && entity_title(Kind::Message, &known.fact.value).is_empty())
}

pub(super) fn matches_filter(item: &PageItem, filter: &TimelineFilter) -> bool {
    if filter.is_empty() {
        return true;
    }
    let time = item.place.time;
    if filter.since.is_some_and(|since| time < since)
        || filter.until.is_some_and(|until| time > until)
    {
        return false;
    }
    if filter.branch.as_ref().is_some_and(|branch| item.branch != *branch) {
        return false;
    }
    let (kinds, tags, trigger, text): (Vec<Kind>, &[String], &str, String) = match &item.content {
        PageItemContent::Checkpoint(checkpoint) => (
            Vec::new(),
            &checkpoint.tags,
            trigger_word(checkpoint.trigger),
            format!("{} {} {}", checkpoint.message, checkpoint.id, checkpoint.tags.join(" ")),
        ),
        PageItemContent::Revision { entry, changes, .. } => {
            let mut text = format!("{} {}", entry.verb, entry.id);
            for change in changes {
                let value = change.new.as_ref().or(change.old.as_ref()).map(|entry| &entry.value);
                text.push_str(&format!(
                    " {} {}",
                    change.key,
                    value.map(text_of).unwrap_or_default()
                ));
            }
            (changes.iter().map(|change| change.key.kind).collect(), &[], "", text)
        }
        PageItemContent::Fact(known) => {
            let text = format!("{} {}", known.fact.id, text_of(&known.fact.value));
            (vec![known.fact.kind], &[], "", text)
        }
    };
    (filter.kinds.is_empty() || kinds.iter().any(|kind| filter.kinds.contains(kind)))
        && filter.tag.as_ref().is_none_or(|tag| tags.contains(tag))
        && filter.trigger.as_ref().is_none_or(|wanted| trigger.contains(&wanted.replace('_', " ")))
        && filter.matches(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text was only cut after a word, so one word of a megabyte made a line of a megabyte.
    #[test]
    fn a_line_is_cut_within_a_word() {
        assert_eq!(one_line("two\n words "), "two words");
        assert_eq!(one_line(&"x".repeat(400)), "x".repeat(400));
        assert_eq!(one_line(&"x".repeat(1 << 20)), format!("{}…", "x".repeat(400)));
        assert_eq!(one_line(&"é".repeat(201)), format!("{}…", "é".repeat(200)));
        assert_eq!(one_line(&format!("a {}", "é".repeat(300))), format!("a {}…", "é".repeat(199)));
    }
}

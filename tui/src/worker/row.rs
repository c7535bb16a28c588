//! Lines of the timeline.

use crate::answer::{Row, Sign, text_of};
use crate::effect::Target;
use crate::query::Filter;
use forge_store::model::{AutoTrigger, Change, Fact, Kind, Trigger, Value};
use forge_store::store::{PageItem, Recorded};

/// A trigger as a person reads it.
pub(super) const fn trigger_word(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::Manual => "manual",
        Trigger::Scheduled => "scheduled",
        Trigger::Automatic(automatic) => match automatic {
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

/// What an entity says, in a line.
pub(super) fn says(kind: Kind, value: &Value) -> String {
    let names: &[&str] = match kind {
        Kind::Message | Kind::Prompt => &["text"],
        Kind::Command => &["command", "description"],
        Kind::Code => &["path", "commit", "patch"],
        Kind::Verification => &["name", "command", "description"],
        Kind::Measurement => &["name"],
        Kind::Task => &["subject", "description"],
        _ => &["description", "text", "name", "type", "rule"],
    };
    let mut said = names.iter().find_map(|name| value.field(name)).map(text_of).unwrap_or_default();
    if kind == Kind::Measurement {
        let part = |name| value.field(name).map(text_of).unwrap_or_default();
        said = format!("{said} = {} {}", part("value"), part("unit"));
    }
    if matches!(kind, Kind::Tool | Kind::Notice) {
        said = forge_store::store::title(kind, value);
    }
    if kind == Kind::Dependency {
        let part = |name| value.field(name).map(text_of).unwrap_or_default();
        let how = value.field("type").map_or_else(|| "requires".to_owned(), text_of);
        said = format!("{} {} {}", part("from"), how.replace('_', " "), part("to"));
    }
    one_line(&said)
}

/// A text as one line.
pub(super) fn one_line(text: &str) -> String {
    const MOST: usize = 400;
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > MOST {
            line.push('…');
            break;
        }
    }
    line
}

/// A change in a few words: what a person scans a timeline for.
fn change_words(change: &Change) -> (String, u8) {
    let id = &change.key.id;
    let kind = change.key.kind;
    let field = |entry: &Option<forge_store::model::Entry>, name: &str| {
        entry.as_ref().and_then(|entry| entry.value.field(name)).map(text_of)
    };
    match (&change.old, &change.new) {
        (None, Some(new)) => {
            let weight = u8::from(matches!(kind, Kind::Hypothesis | Kind::Gap));
            (format!("+ {kind} {id}: {}", says(kind, &new.value)), weight)
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
                    let old = old.unwrap_or_else(|| "?".to_owned());
                    (format!("{kind} {id}: confidence {old} -> {new}"), 0)
                }
                None => (format!("{kind} {id} changed"), 0),
            }
        }
    }
}

/// Whether a change is one of a status.
pub(super) fn changes_status(change: &Change) -> bool {
    change_words(change).1 == 2
}

/// The line of an item.
pub(super) fn row(item: &PageItem) -> Row {
    let row = Row {
        place: item.place,
        target: Target::Time(item.place.time),
        branch: item.branch.clone(),
        sign: Sign::Fact,
        title: String::new(),
        by: String::new(),
        tags: Vec::new(),
        id: String::new(),
        weight: 0,
        merged: None,
    };
    match &item.what {
        Recorded::Checkpoint(checkpoint) => {
            let sign = match checkpoint.trigger {
                Trigger::Manual => Sign::Manual,
                Trigger::Scheduled => Sign::Scheduled,
                Trigger::Automatic(AutoTrigger::ContextCompactionWarning) => Sign::Compaction,
                Trigger::Automatic(_) => Sign::Automatic,
            };
            let weight = match checkpoint.trigger {
                Trigger::Manual | Trigger::Automatic(AutoTrigger::ContextCompactionWarning) => 3,
                Trigger::Automatic(
                    AutoTrigger::HypothesisStatusChange | AutoTrigger::NewContradictionDetected,
                ) => 2,
                Trigger::Automatic(AutoTrigger::SignificantTimePassed) | Trigger::Scheduled => 0,
                Trigger::Automatic(_) => 1,
            };
            Row {
                target: Target::Sequence(checkpoint.sequence),
                sign,
                title: one_line(&checkpoint.message),
                by: trigger_word(checkpoint.trigger).to_owned(),
                tags: checkpoint.tags.clone(),
                id: checkpoint.id.to_string(),
                weight,
                ..row
            }
        }
        Recorded::Revision { entry, parents, changes } => {
            let words: Vec<(String, u8)> = changes.iter().map(change_words).collect();
            let weight = words.iter().map(|(_, weight)| *weight).max().unwrap_or(0);
            let merged = parents.get(1).copied();
            let sign = match (entry.reset_to, merged) {
                (_, Some(_)) => Sign::Merge,
                (Some(_), None) => Sign::Restore,
                (None, None) if weight == 2 => Sign::Status,
                _ => Sign::Revision,
            };
            // What matters most is said, the rest counted.
            let first =
                words.iter().max_by_key(|(_, weight)| *weight).map(|(words, _)| words.clone());
            let title = match (entry.reset_to, first) {
                (Some(to), _) if merged.is_some() => format!("the claims of #{to} as they are"),
                (Some(0), _) => "back to no claims at all".to_owned(),
                (Some(to), _) => format!("back to the claims of #{to}"),
                (None, Some(first)) if words.len() > 1 => {
                    format!("{first} (and {} more)", words.len() - 1)
                }
                (None, Some(first)) => first,
                (None, None) => entry.verb.clone(),
            };
            Row {
                target: Target::Sequence(entry.sequence),
                sign,
                title,
                by: entry.verb.clone(),
                id: entry.id.to_string(),
                weight: if sign == Sign::Restore || sign == Sign::Merge { 2 } else { weight },
                merged,
                ..row
            }
        }
        Recorded::Fact(known) => {
            let fact = &known.fact;
            let sign = fact_sign(fact);
            Row {
                sign,
                title: says(fact.kind, &fact.value),
                by: fact.kind.name().to_owned(),
                id: fact.id.clone(),
                weight: u8::from(sign != Sign::Fact || fact.kind == Kind::Prompt),
                ..row
            }
        }
    }
}

fn fact_sign(fact: &Fact) -> Sign {
    let status = fact.value.field("status").and_then(Value::as_text);
    let code = fact.value.field("exit_code").and_then(Value::as_i64);
    match (fact.kind, status) {
        (Kind::Verification, Some("passed")) => Sign::Passed,
        (Kind::Verification, Some("failed" | "error" | "timed_out")) => Sign::Failed,
        (Kind::Command, _) if code.is_some_and(|code| code != 0) => Sign::Failed,
        _ => Sign::Fact,
    }
}

/// Whether an item passes a filter.
pub(super) fn passes(item: &PageItem, filter: &Filter) -> bool {
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
    let (kinds, tags, trigger, text): (Vec<Kind>, &[String], &str, String) = match &item.what {
        Recorded::Checkpoint(checkpoint) => (
            Vec::new(),
            &checkpoint.tags,
            trigger_word(checkpoint.trigger),
            format!("{} {} {}", checkpoint.message, checkpoint.id, checkpoint.tags.join(" ")),
        ),
        Recorded::Revision { entry, changes, .. } => {
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
        Recorded::Fact(known) => {
            let text = format!("{} {}", known.fact.id, text_of(&known.fact.value));
            (vec![known.fact.kind], &[], "", text)
        }
    };
    (filter.kinds.is_empty() || kinds.iter().any(|kind| filter.kinds.contains(kind)))
        && filter.tag.as_ref().is_none_or(|tag| tags.contains(tag))
        && filter.trigger.as_ref().is_none_or(|wanted| trigger.contains(&wanted.replace('_', " ")))
        && filter.matches(&text)
}

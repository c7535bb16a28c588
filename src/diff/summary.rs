//! Summarises a diff in one sentence.

use super::{ChangeKind, TypedChange};
use crate::model::time_grammar::describe_distance;
use crate::model::{Kind, Value};
use std::collections::BTreeSet;

/// Maximum number of entities named for one kind of change. If there are more, all are counted
/// instead.
const MAX_NAMED_IDS: usize = 3;

/// Summarises the changes in one readable sentence, like `2 hypotheses added, H3 rejected,
/// confidence of H1 0.40 → 0.82, 3 gaps filled, 12 commands; 1 h 20 min later`.
///
/// `time_delta` is the time from the old moment to the new one in microseconds, negative if the new
/// one is earlier; `None` omits it.
#[must_use]
pub fn summary(changes: &[TypedChange], time_delta: Option<i64>) -> String {
    let mut parts = Vec::new();
    for kind in Kind::claims() {
        claims(kind, changes, &mut parts);
    }
    for kind in Kind::facts() {
        for (what, word) in [
            (ChangeKind::Added, ""),
            (ChangeKind::Updated, " updated"),
            (ChangeKind::Removed, " fewer"),
        ] {
            let count = ids(changes, kind, |change| change.change == what).len();
            if count > 0 {
                parts.push(format!("{}{word}", counted(count, kind)));
            }
        }
    }
    let mut sentence = parts.join(", ");
    if sentence.is_empty() {
        "no changes".clone_into(&mut sentence);
    }
    if let Some(micros) = time_delta {
        sentence.push_str("; ");
        sentence.push_str(&distance(micros));
    }
    sentence
}

fn claims(kind: Kind, changes: &[TypedChange], parts: &mut Vec<String>) {
    for (what, word) in [(ChangeKind::Added, "added"), (ChangeKind::Removed, "removed")] {
        let count = ids(changes, kind, |change| change.change == what).len();
        if count > 0 {
            parts.push(format!("{} {word}", counted(count, kind)));
        }
    }
    let of_kind = || changes.iter().filter(|change| change.kind == kind);
    let mut mentioned = BTreeSet::new();

    let status = || of_kind().filter(|change| change.change == ChangeKind::StatusChanged);
    let words: BTreeSet<String> = status().map(|change| plain(change.new.as_ref())).collect();
    for word in words {
        let to_this = |change: &TypedChange| {
            change.change == ChangeKind::StatusChanged && plain(change.new.as_ref()) == word
        };
        let ids = ids(changes, kind, to_this);
        let said = word.replace('_', " ");
        // Gaps are counted, since their ids mean little to a person.
        parts.push(if ids.len() > MAX_NAMED_IDS || kind == Kind::Gap {
            format!("{} {said}", counted(ids.len(), kind))
        } else {
            let ids: Vec<_> = ids.iter().copied().collect();
            format!("{} {said}", ids.join(" and "))
        });
        mentioned.extend(ids);
    }

    let moved: Vec<_> = of_kind().filter(|c| c.change == ChangeKind::ConfidenceChanged).collect();
    if moved.len() > MAX_NAMED_IDS {
        parts.push(format!("confidence of {} changed", counted(moved.len(), kind)));
    } else {
        for change in &moved {
            let [old, new] = [&change.old, &change.new].map(|value| plain(value.as_ref()));
            parts.push(format!("confidence of {} {old} → {new}", change.id));
        }
    }
    mentioned.extend(moved.iter().map(|change| change.id.as_str()));

    let doubted = ids(changes, kind, |change| {
        change.field.as_deref() == Some("in_doubt") && change.new == Some(Value::Bool(true))
    });
    if !doubted.is_empty() {
        parts.push(format!("{} put in doubt", counted(doubted.len(), kind)));
        mentioned.extend(doubted);
    }

    let updated = ids(changes, kind, |change| change.change == ChangeKind::Updated);
    let rest = updated.difference(&mentioned).count();
    if rest > 0 {
        parts.push(format!("{} updated", counted(rest, kind)));
    }
}

/// Returns the ids of the entities of a kind that have such a change, each once.
fn ids(changes: &[TypedChange], kind: Kind, such: impl Fn(&TypedChange) -> bool) -> BTreeSet<&str> {
    let found = changes.iter().filter(|change| change.kind == kind && such(change));
    found.map(|change| change.id.as_str()).collect()
}

fn counted(count: usize, kind: Kind) -> String {
    let word = match (kind, count) {
        (Kind::Evidence, 1) => "piece of evidence",
        (Kind::Evidence, _) => "pieces of evidence",
        (Kind::Code, 1) => "code change",
        (Kind::Code, _) => "code changes",
        (kind, 1) => kind.name(),
        (kind, _) => kind.plural(),
    };
    format!("{count} {}", word.replace('_', " "))
}

/// Formats a field's value for a person.
fn plain(value: Option<&Value>) -> String {
    match value {
        Some(Value::Text(text)) => text.clone(),
        Some(value) => value.as_f64().map_or_else(|| "none".to_owned(), |n| format!("{n:.2}")),
        None => "none".to_owned(),
    }
}

/// Formats a time delta in its two greatest units.
fn distance(micros: i64) -> String {
    let direction = if micros < 0 { "earlier" } else { "later" };
    match micros.unsigned_abs() {
        0 => "at the same time".to_owned(),
        1..1_000_000 => format!("less than 1 s {direction}"),
        _ => format!("{} {direction}", describe_distance(micros)),
    }
}

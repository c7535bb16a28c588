//! Reports what changed between two moments.

use super::entity::{self, value_text};
use super::moment::{MomentJson, seconds};
use crate::output::{Report, Screen, Tone};
use crate::text::with_previews;
use forge_store::diff::{ChangeKind, LineChange, TypedChange, compare_lines, summary};
use forge_store::model::{Kind, Value};
use forge_store::store::entity_title;
use serde::Serialize;

/// The maximum number of changes of one kind of fact that are printed.
const FACTS_SHOWN: usize = 8;
/// The maximum length in bytes of a text that is printed beside the changed one. Longer texts are
/// compared line by line.
const LONG_BYTES: usize = 60;

/// The changes between two moments.
#[derive(Debug, Serialize)]
pub struct CheckpointDiffReport {
    pub session: String,
    /// The moment that the changes start from.
    pub from: MomentJson,
    /// The moment that the changes lead to.
    pub to: MomentJson,
    /// The time from the first moment to the second, negative if the second is earlier; null if
    /// nothing is recorded.
    pub time_delta_seconds: Option<f64>,
    pub changes: Vec<TypedChange>,
    /// A summary in one sentence.
    pub summary: String,
}

impl CheckpointDiffReport {
    /// Creates a report of the changes of these kinds; without kinds, of all changes. `micros` is
    /// the time between the moments in microseconds.
    pub fn new(
        session: String,
        (from, to): (MomentJson, MomentJson),
        micros: Option<i64>,
        mut changes: Vec<TypedChange>,
        kinds: &[Kind],
    ) -> Self {
        changes.retain(|change| kinds.is_empty() || kinds.contains(&change.kind));
        let summary = summary(&changes, micros);
        let changes = changes.into_iter().map(readable).collect();
        Self { session, from, to, time_delta_seconds: micros.map(seconds), changes, summary }
    }
}

/// Returns the change for people: long texts are cut, and a reference is replaced by the beginning
/// of its text.
pub fn readable(mut change: TypedChange) -> TypedChange {
    change.old = change.old.map(|value| with_previews(&value));
    change.new = change.new.map(|value| with_previews(&value));
    change
}

impl Report for CheckpointDiffReport {
    fn human(&self, screen: &mut Screen) {
        self.from.print("from ", screen);
        self.to.print("to   ", screen);
        screen.line(Tone::Heading, &self.summary);
        print_changes(&self.changes, screen);
    }
}

/// Prints changes, claims before facts.
pub fn print_changes(changes: &[TypedChange], screen: &mut Screen) {
    print_some_changes(changes, usize::MAX, "'--json' has all", screen);
}

/// Prints at most `limit` changes of each kind, of facts at most `FACTS_SHOWN`. If there are more,
/// `rest_is` says how to see them.
pub fn print_some_changes(
    changes: &[TypedChange],
    limit: usize,
    rest_is: &str,
    screen: &mut Screen,
) {
    for &kind in Kind::ALL {
        let mut of_kind: Vec<_> = changes.iter().filter(|change| change.kind == kind).collect();
        if kind.is_claim() {
            of_kind.sort_by_cached_key(|change| id_order(&change.id));
        }
        if of_kind.is_empty() {
            continue;
        }
        screen.heading(&crate::text::name_title(kind.plural()));
        let shown = limit.min(if kind.is_claim() { of_kind.len() } else { FACTS_SHOWN });
        for change in of_kind.iter().take(shown) {
            print_change(change, screen);
        }
        let rest = of_kind.len().saturating_sub(shown);
        if rest > 0 {
            screen.dim(&format!("  and {rest} more ({rest_is})"));
        }
    }
}

/// Returns a key by which `E2` comes before `E10`: of two numbers, the shorter one comes first.
fn id_order(id: &str) -> Vec<(usize, &[u8])> {
    let runs = id.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    let is_number = |run: &[u8]| run.first().is_some_and(u8::is_ascii_digit);
    runs.map(|run| (if is_number(run) { run.len() } else { 0 }, run)).collect()
}

pub fn print_change(change: &TypedChange, screen: &mut Screen) {
    let title = |value: &Option<Value>| {
        value.as_ref().map(|value| entity_title(change.kind, value)).unwrap_or_default()
    };
    match (change.change, &change.field) {
        (ChangeKind::Added, _) => {
            let text = spaced(&title(&change.new));
            let id = format!("  + {}", change.id);
            screen.short_line(&[(Tone::Added, &id), (Tone::Plain, &text)]);
        }
        (ChangeKind::Removed, _) => {
            let text = spaced(&title(&change.old));
            let id = format!("  - {}", change.id);
            screen.short_line(&[(Tone::Removed, &id), (Tone::Plain, &text)]);
        }
        (_, field) => {
            let name = field.as_deref().unwrap_or("value").replace('_', " ");
            let [old, new] =
                [&change.old, &change.new].map(|value| field_text(&name, value.as_ref()));
            let id = format!("  ~ {} ", change.id);
            if old.len().max(new.len()) <= LONG_BYTES && !old.contains('\n') && !new.contains('\n')
            {
                screen.short_line(&[
                    (Tone::Id, &id),
                    (Tone::Dim, &format!("{name}: ")),
                    (Tone::Removed, &old),
                    (Tone::Dim, " → "),
                    (Tone::Added, &new),
                ]);
                return;
            }
            screen.short_line(&[(Tone::Id, &id), (Tone::Dim, &format!("{name}:"))]);
            for (change, line) in compare_lines(&old, &new) {
                let (sign, tone) = match change {
                    LineChange::Removed => ("-", Tone::Removed),
                    LineChange::Added => ("+", Tone::Added),
                    LineChange::Kept => (" ", Tone::Dim),
                };
                let text = line.trim_end_matches('\n');
                screen.short_line(&[(tone, &format!("      {sign} {text}"))]);
            }
        }
    }
}

/// Returns a text with a space before it; an empty text stays empty.
fn spaced(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" {text}") }
}

/// Returns the value of a field as text for people; of a long text, only the beginning.
fn field_text(field: &str, value: Option<&Value>) -> String {
    match value {
        None => "none".to_owned(),
        Some(value) => match value.field("text").filter(|_| value.field("blob").is_some()) {
            Some(beginning) => value_text(beginning),
            None => entity::field_text(field, value),
        },
    }
}

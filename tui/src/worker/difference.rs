//! Compares two moments: changes grouped by kind, with line diffs of texts.

use super::resolved_moment;
use super::row::{entity_title, side};
use crate::answer::{SheetLine, SheetSection, TextSheet, field_text};
use crate::app::DisplayZone;
use crate::effect::MomentTarget;
use crate::sheet::{line, section};
use crate::theme::TextTone;
use forge_store::diff::{ChangeKind, LineChange, TypedChange, compare_lines};
use forge_store::error::Result;
use forge_store::model::{Kind, Timestamp, Value};
use forge_store::shell::quoted;
use forge_store::store::{ResolvedMoment, Session};
use std::collections::BTreeMap;

/// A group with more lines than this is folded at first.
const FOLDED_FROM: usize = 60;
/// Maximum number of entities of a group that are shown.
const MAX_ENTITIES: usize = 500;

/// Returns the difference between two moments as a sheet, and whether there is one. `preview`: only
/// the claims, as the preview of a restore.
pub(super) fn sheet(
    session: &Session,
    from: MomentTarget,
    to: MomentTarget,
    preview: bool,
    zone: DisplayZone,
) -> Result<(TextSheet, bool)> {
    let (mut from, mut to) = (from, to);
    let (mut earlier, mut later) = (resolved_moment(session, from)?, resolved_moment(session, to)?);
    // A difference is read from the earlier moment to the later one, wherever the mark is.
    if !preview && order(&earlier) > order(&later) {
        std::mem::swap(&mut from, &mut to);
        std::mem::swap(&mut earlier, &mut later);
    }
    let comparison = session.compare(&earlier, &later)?;
    let mut changes = comparison.changes;
    if preview {
        // A restore does not change facts.
        changes.retain(|change| change.kind.is_claim());
    }
    let any = !changes.is_empty();
    let when = |target: MomentTarget, resolved: &ResolvedMoment| -> Result<String> {
        let time = match target {
            MomentTarget::Time(_) => None,
            _ => session.time_of(resolved)?,
        };
        let clock = time.map(|time| format!(" {}", zone.clock(time))).unwrap_or_default();
        Ok(format!("{}{clock}", zone.moment(target)))
    };
    let times = format!("{}  to  {}", when(from, &earlier)?, when(to, &later)?);
    let lines = vec![line(TextTone::Dim, 0, times), line(TextTone::Heading, 0, comparison.summary)];
    let mut sections = vec![section("", lines)];
    if preview {
        let words = "y restores the claims of that moment, as a new revision; u reverts it";
        sections = vec![section("", vec![line(TextTone::Warning, 0, words)])];
    }
    let mut groups: BTreeMap<Kind, BTreeMap<&str, Vec<&TypedChange>>> = BTreeMap::new();
    for change in &changes {
        groups.entry(change.kind).or_default().entry(&change.id).or_default().push(change);
    }
    for (kind, entities) in groups {
        let count = entities.len();
        let mut lines = Vec::new();
        for (id, changes) in entities.into_iter().take(MAX_ENTITIES) {
            entity(kind, id, &changes, &mut lines);
        }
        if count > MAX_ENTITIES {
            lines.push(line(TextTone::Dim, 2, format!("and {} more", count - MAX_ENTITIES)));
        }
        let folded = lines.len() > FOLDED_FROM;
        sections.push(SheetSection {
            title: format!("{} ({count})", kind.plural()),
            lines,
            folded,
        });
    }
    let [shown_from, shown_to] = [from, to].map(|target| zone.moment(target));
    let title = if preview {
        format!("restore {shown_to}")
    } else {
        format!("from {shown_from} to {shown_to}")
    };
    let [from, to] = [from, to].map(|target| quoted(&target.to_string()));
    let command = if preview {
        format!("forge checkpoint restore {to}")
    } else {
        format!("forge checkpoint diff {from} {to}")
    };
    Ok((TextSheet { title, command, id: String::new(), sections }, any))
}

/// Returns the key by which moments are sorted.
pub(super) fn order(resolved: &ResolvedMoment) -> (Timestamp, u64) {
    let time = resolved.time().unwrap_or(Timestamp::MAX);
    let named = resolved.named_checkpoint().map(|checkpoint| checkpoint.sequence);
    let sequence = named.or_else(|| resolved.revision()).unwrap_or(0);
    (time, sequence)
}

fn entity(kind: Kind, id: &str, changes: &[&TypedChange], lines: &mut Vec<SheetLine>) {
    let whole = |value: &Option<Value>| {
        value.as_ref().map(|value| entity_title(kind, value)).unwrap_or_default()
    };
    match changes {
        [one] if one.change == ChangeKind::Added => {
            lines.push(line(TextTone::Added, 2, format!("+ {id}  {}", whole(&one.new))));
        }
        [one] if one.change == ChangeKind::Removed => {
            lines.push(line(TextTone::Removed, 2, format!("- {id}  {}", whole(&one.old))));
        }
        several => {
            lines.push(line(TextTone::Id, 2, format!("~ {id}")));
            for change in several {
                field(change, lines);
            }
        }
    }
}

fn field(change: &TypedChange, lines: &mut Vec<SheetLine>) {
    let name = change.field.as_deref().unwrap_or("value");
    let [old, new] = [&change.old, &change.new]
        .map(|value| value.as_ref().map(|value| field_text(name, value)).unwrap_or_default());
    if !old.contains('\n') && !new.contains('\n') && old.len() + new.len() <= 120 {
        let [old, new] = [&change.old, &change.new].map(|value| side(name, value.as_ref()));
        lines.push(line(TextTone::Plain, 6, format!("{name}: {old} → {new}")));
        return;
    }
    lines.push(line(TextTone::Dim, 6, format!("{name}:")));
    text_difference(&old, &new, lines);
}

/// Adds the lines in which two texts differ, with one line of context.
fn text_difference(old: &str, new: &str, lines: &mut Vec<SheetLine>) {
    let compared = compare_lines(old, new);
    let differs =
        |index: usize| compared.get(index).is_some_and(|(change, _)| *change != LineChange::Kept);
    for (index, &(change, text)) in compared.iter().enumerate() {
        let (mark, tone) = match change {
            LineChange::Removed => ('-', TextTone::Removed),
            LineChange::Added => ('+', TextTone::Added),
            LineChange::Kept if differs(index + 1) || index > 0 && differs(index - 1) => {
                (' ', TextTone::Dim)
            }
            LineChange::Kept => continue,
        };
        let text = text.trim_end_matches(['\n', '\r']);
        lines.push(line(tone, 8, format!("{mark} {text}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_texts_only_the_lines_that_differ_are_shown() {
        let mut lines = Vec::new();
        text_difference("a\nb\nc\nd\ne\n", "a\nb\nC\nd\ne\n", &mut lines);
        let texts: Vec<&str> = lines.iter().map(|line| line.parts[0].1.as_str()).collect();
        assert_eq!(texts, ["  b", "- c", "+ C", "  d"]);
    }
}

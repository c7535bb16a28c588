//! The details of one entity or one moment.

use super::point;
use super::row::{entity_title, one_line, trigger_word};
use super::text;
use crate::answer::{SheetLine, TextSheet, TimelineRow, text_of};
use crate::app::DisplayZone;
use crate::effect::{MomentTarget, quoted};
use crate::sheet::{line, section};
use crate::theme::TextTone;
use forge_store::diff::{ChangeKind, describe};
use forge_store::error::{Error, Result};
use forge_store::model::claim::references;
use forge_store::model::{FactOrigin, Key, Kind, TextRef, Value};
use forge_store::store::{ResolvedMoment, Session};

/// How many bytes of a long text are shown.
const MAX_TEXT_BYTES: usize = 200_000;
/// How many steps of a history are shown.
const MAX_STEPS: usize = 200;

pub(super) fn entity(
    session: &Session,
    point: &ResolvedMoment,
    target: MomentTarget,
    key: &Key,
    zone: DisplayZone,
) -> Result<TextSheet> {
    let mut sections = Vec::new();
    if key.kind.is_claim() {
        let entry = session.claim(point, key)?;
        let entry = entry.ok_or_else(|| Error::not_found(key.kind.name(), key.id.clone()))?;
        let mut lines =
            vec![line(TextTone::Dim, 2, format!("added {}", zone.show(entry.added_at)))];
        fields(&entry.value, &mut lines, |text| text::read(session, None, text))?;
        sections.push(section("fields", lines));
        let history = session.history(point, key)?;
        let mut lines = Vec::new();
        for step in history.iter().take(MAX_STEPS) {
            let revision = &step.revision;
            let head =
                format!("#{} {} {}", revision.sequence, zone.show(revision.time), revision.verb);
            lines.push(line(TextTone::Id, 2, head));
            for change in describe(std::slice::from_ref(&step.change)) {
                let [old, new] = [&change.old, &change.new]
                    .map(|value| one_line(&value.as_ref().map(text_of).unwrap_or_default()));
                let (tone, text) = match (change.change, change.field) {
                    (ChangeKind::Added, _) => (TextTone::Added, "+ added".to_owned()),
                    (ChangeKind::Removed, _) => (TextTone::Removed, "- removed".to_owned()),
                    (_, field) => {
                        (TextTone::Plain, format!("{}: {old} -> {new}", field.unwrap_or_default()))
                    }
                };
                lines.push(line(tone, 6, text));
            }
        }
        sections.push(section(format!("history ({} changes)", history.len()), lines));
        sections.push(section("what depends on it", dependents(session, point, key)?));
    } else {
        let upto = point.time();
        let mut versions = session.fact_versions(key.kind, &key.id)?;
        if versions.iter().any(|known| known.fact.origin != FactOrigin::Hook) {
            versions.retain(|known| known.fact.origin != FactOrigin::Hook);
        }
        let known =
            versions.iter().rev().find(|known| upto.is_none_or(|upto| known.fact.at <= upto));
        let known = known.ok_or_else(|| Error::not_found(key.kind.name(), key.id.clone()))?;
        let happened = format!("happened {}", zone.show(known.fact.at));
        let mut lines = vec![line(TextTone::Dim, 2, happened)];
        let source = known.source.as_deref();
        fields(&known.fact.value, &mut lines, |text| text::read(session, source, text))?;
        sections.push(section("fields", lines));
        if versions.len() > 1 {
            let lines = versions.iter().rev().take(MAX_STEPS).map(|known| {
                let status = known.fact.value.field("status").map(text_of).unwrap_or_default();
                line(TextTone::Plain, 2, format!("{} {status}", zone.show(known.fact.at)))
            });
            sections.push(section(format!("versions ({})", versions.len()), lines.collect()));
        }
    }
    let command = format!(
        "forge {} show {} --at {}",
        key.kind.name().replace('_', "-"),
        quoted(&key.id),
        quoted(&target.to_string())
    );
    Ok(TextSheet { title: key.to_string(), command, id: key.id.clone(), sections })
}

/// The fields of a value, with long texts in full.
fn fields(
    value: &Value,
    lines: &mut Vec<SheetLine>,
    read: impl Fn(&TextRef) -> Result<String>,
) -> Result<()> {
    let Value::Map(map) = value else {
        lines.push(line(TextTone::Plain, 2, text_of(value)));
        return Ok(());
    };
    for (name, value) in map {
        let text = match TextRef::from_value(value) {
            None => text_of(value),
            Some(text) => {
                let mut whole = read(&text)?;
                let shown = whole.floor_char_boundary(MAX_TEXT_BYTES);
                let more = whole.len() - shown;
                if more > 0 {
                    whole.truncate(shown);
                    whole.push_str(&format!("\n… {more} bytes more"));
                }
                whole
            }
        };
        if text.contains('\n') {
            lines.push(line(TextTone::Dim, 2, format!("{name}:")));
            let patch = name == "patch";
            for row in text.lines() {
                let tone = match row.as_bytes().first() {
                    Some(b'+') if patch => TextTone::Added,
                    Some(b'-') if patch => TextTone::Removed,
                    Some(b'@') if patch => TextTone::Id,
                    _ => TextTone::Plain,
                };
                lines.push(line(tone, 4, row));
            }
        } else {
            lines.push(line(TextTone::Plain, 2, format!("{name}: {text}")));
        }
    }
    Ok(())
}

/// The claims that refer to this one.
fn dependents(session: &Session, point: &ResolvedMoment, key: &Key) -> Result<Vec<SheetLine>> {
    let state = session.state(point)?;
    let mut lines = Vec::new();
    for kind in [Kind::Hypothesis, Kind::Evidence, Kind::Belief, Kind::Dependency, Kind::Gap] {
        for (id, entry) in state.claims_of(kind)? {
            if references(kind, &entry.value).contains(key) {
                let text = format!("{kind} {id}: {}", entity_title(kind, &entry.value));
                lines.push(line(TextTone::Plain, 2, text));
            }
        }
    }
    if lines.is_empty() {
        lines.push(line(TextTone::Dim, 2, "nothing"));
    }
    Ok(lines)
}

pub(super) fn moment(session: &Session, row: &TimelineRow, zone: DisplayZone) -> Result<TextSheet> {
    let mut lines = vec![
        line(TextTone::Plain, 2, format!("moment: {}", row.target)),
        line(TextTone::Plain, 2, format!("time: {}", zone.show(row.place.time))),
        line(TextTone::Plain, 2, format!("branch: {}", row.branch)),
        line(TextTone::Plain, 2, format!("id: {}", row.id)),
        line(TextTone::Plain, 2, format!("what: {}", row.title)),
    ];
    let mut sections = Vec::new();
    let mut command = format!("forge checkpoint at {}", quoted(&row.target.to_string()));
    let found = point(session, row.target)?;
    if let Some(checkpoint) = found.named_checkpoint() {
        command = format!("forge checkpoint show '#{}'", checkpoint.sequence);
        lines.push(line(
            TextTone::Plain,
            2,
            format!("trigger: {}", trigger_word(checkpoint.trigger)),
        ));
        lines.push(line(TextTone::Tag, 2, format!("tags: {}", checkpoint.tags.join(", "))));
        if let Some(revision) = checkpoint.revision {
            lines.push(line(TextTone::Plain, 2, format!("claims: those of #{revision}")));
        }
        if checkpoint.body != Value::Null {
            let mut body = Vec::new();
            fields(&checkpoint.body, &mut body, |text| text::read_of_any(session, text))?;
            sections.push(section("body", body));
        }
    } else if row.sign == crate::answer::RowSign::Fact
        || matches!(row.sign, crate::answer::RowSign::Passed | crate::answer::RowSign::Failed)
    {
        let kind: Kind = row.by.parse().map_err(|_| Error::not_found("kind", row.by.clone()))?;
        return entity(session, &found, row.target, &Key::new(kind, row.id.clone()), zone);
    } else if let MomentTarget::Sequence(sequence) = row.target {
        let mut changed = Vec::new();
        for change in describe(&session.changes_of(sequence)?) {
            let [old, new] = [&change.old, &change.new]
                .map(|value| one_line(&value.as_ref().map(text_of).unwrap_or_default()));
            let name = format!("{} {}", change.kind, change.id);
            let (tone, text) = match (change.change, change.field) {
                (ChangeKind::Added, _) => (TextTone::Added, format!("+ {name}: {new}")),
                (ChangeKind::Removed, _) => (TextTone::Removed, format!("- {name}: {old}")),
                (_, field) => (
                    TextTone::Plain,
                    format!("~ {name} {}: {old} -> {new}", field.unwrap_or_default()),
                ),
            };
            changed.push(line(tone, 2, text));
        }
        sections.push(section(format!("changes ({})", changed.len()), changed));
    }
    sections.insert(0, section("", lines));
    Ok(TextSheet { title: row.title.clone(), command, id: row.id.clone(), sections })
}

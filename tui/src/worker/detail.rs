//! The details of one entity or one moment.

use super::claim;
use super::resolved_moment;
use super::row::{entity_title, side, trigger_word};
use crate::answer::{RowSign, SheetLine, SheetSection, TextSheet, TimelineRow, text_of};
use crate::app::DisplayZone;
use crate::effect::MomentTarget;
use crate::sheet::{line, section};
use crate::story_view::StoryLine;
use crate::theme::TextTone;
use forge_store::diff::{ChangeKind, describe};
use forge_store::error::{Error, Result};
use forge_store::model::{FactOrigin, Key, Kind, TextRef, Value};
use forge_store::shell::quoted;
use forge_store::store::{ResolvedMoment, Session};
use forge_store::story::{PatchLineKind, StoryKind, call_of_check, patch_lines};

/// The maximum number of bytes that are shown of a long text.
const MAX_TEXT_BYTES: usize = 200_000;
/// The maximum number of versions that are shown of a fact.
const MAX_VERSIONS: usize = 200;
/// The maximum number of entities that are shown of one line.
const MAX_ENTITIES: usize = 60;

/// Returns the details of a line of the timeline.
pub(super) fn row(session: &Session, row: &TimelineRow, zone: DisplayZone) -> Result<TextSheet> {
    let Some(story) = &row.story else { return moment(session, row, zone) };
    if !story.hidden.is_empty() {
        return Ok(folded(row, story, zone));
    }
    let found = resolved_moment(session, row.target)?;
    let mut sheets: Vec<TextSheet> = Vec::new();
    for key in story.entities().take(MAX_ENTITIES) {
        // The details of a hypothesis include the evidence that moved its confidence.
        if key.kind == Kind::Evidence && story.kind == Some(StoryKind::Hypothesis) {
            continue;
        }
        match entity(session, &found, row.target, key, zone) {
            Ok(sheet) => sheets.push(sheet),
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if sheets.is_empty() {
        return moment(session, row, zone);
    }
    let count = sheets.len();
    let first = sheets.remove(0);
    if count == 1 {
        return Ok(first);
    }
    let mut whole = TextSheet { title: format!("{count} edits"), ..first };
    whole.sections.extend(sheets.into_iter().flat_map(|sheet| sheet.sections));
    Ok(whole)
}

/// Returns the rows that a folded line hides.
fn folded(row: &TimelineRow, story: &StoryLine, zone: DisplayZone) -> TextSheet {
    let mut lines = vec![line(TextTone::Dim, 0, "<enter> unfolds it")];
    for hidden in story.hidden.iter().rev() {
        let (sign, tone) = hidden.story.as_ref().map_or(("·", TextTone::Dim), |story| story.sign);
        let time = format!("{} ", zone.clock(hidden.place.time));
        lines.push(
            line(TextTone::Dim, 0, time)
                .and(tone, format!("{sign} "))
                .and(TextTone::Plain, hidden.title.clone()),
        );
    }
    TextSheet {
        title: row.title.clone(),
        sections: vec![section("", lines)],
        ..TextSheet::default()
    }
}

/// Returns the details of an entity at a moment.
pub(super) fn entity(
    session: &Session,
    resolved: &ResolvedMoment,
    target: MomentTarget,
    key: &Key,
    zone: DisplayZone,
) -> Result<TextSheet> {
    let sections = if key.kind.is_claim() {
        let entry = session.claim(resolved, key)?;
        let entry = entry.ok_or_else(|| Error::not_found(key.kind.name(), key.id.clone()))?;
        claim::sections(session, resolved, key, &entry, zone)?
    } else {
        fact(session, resolved, key, zone)?
    };
    let command = format!(
        "forge {} show {} --at {}",
        key.kind.name().replace('_', "-"),
        quoted(&key.id),
        quoted(&target.to_string())
    );
    let title = match key.kind {
        kind if kind.is_claim() => key.to_string(),
        kind => kind.name().replace('_', " "),
    };
    Ok(TextSheet { title, command, id: key.id.clone(), sections })
}

/// Returns the fields of a fact that are shown before all others, by its kind.
const fn text_fields(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Prompt | Kind::Message => &["text"],
        Kind::Command => &["command", "stdout_preview", "stderr_preview", "stdout", "stderr"],
        Kind::Code => &["patch"],
        Kind::Verification => &["name", "details", "output"],
        Kind::Task => &["subject", "description"],
        Kind::Agent => &["description", "prompt", "result"],
        _ => &["name", "text", "description"],
    }
}

fn fact(
    session: &Session,
    resolved: &ResolvedMoment,
    key: &Key,
    zone: DisplayZone,
) -> Result<Vec<SheetSection>> {
    let upto = resolved.time();
    let mut versions = session.fact_versions(key.kind, &key.id)?;
    if versions.iter().any(|known| known.fact.origin != FactOrigin::Hook) {
        versions.retain(|known| known.fact.origin != FactOrigin::Hook);
    }
    let known = versions.iter().rev().find(|known| upto.is_none_or(|upto| known.fact.at <= upto));
    let known = known.ok_or_else(|| Error::not_found(key.kind.name(), key.id.clone()))?;
    let value = &known.fact.value;
    let source = known.source.as_deref();
    let read = |text: &TextRef| session.text(source, text, &forge_agents::resolve);
    let first = text_fields(key.kind);
    let mut lines = Vec::new();
    let time = zone.show(known.fact.at);
    let path = value.field("path").map(text_of).unwrap_or_default();
    let short_path = path_end(&path);
    let head = if path.is_empty() { String::new() } else { format!("{short_path}  ") };
    let at = time.get(..19).unwrap_or(&time).to_owned();
    lines.push(
        line(TextTone::Heading, 0, head)
            .and(status_tone(value), outcome(value))
            .and(TextTone::Dim, at),
    );
    for name in first {
        let Some(field) = value.field(name) else { continue };
        let text = whole(field, read)?;
        if text.trim().is_empty() {
            continue;
        }
        let has_path = *name == "patch" && !path.is_empty();
        let text = if has_path { without_file_names(&text) } else { &text };
        put_text(key.kind, name, text, &mut lines);
    }
    let mut sections = vec![section("", lines)];
    let mut more = Vec::new();
    if let Value::Map(fields) = value {
        for (name, field) in fields {
            let is_shown = name == "path" && short_path == path;
            if first.contains(&name.as_str()) || is_shown || *field == Value::Null {
                continue;
            }
            let text = whole(field, read)?;
            if text.contains('\n') {
                // Other texts of an edit, such as the whole file before it, are folded: the patch
                // says what changed.
                let lines = text.lines().map(|row| line(TextTone::Plain, 2, row)).collect();
                let title = name.replace('_', " ");
                let folded = key.kind == Kind::Code;
                sections.push(SheetSection { title, lines, folded });
            } else if !text.is_empty() {
                let name = format!("{} ", name.replace('_', " "));
                more.push(line(TextTone::Dim, 2, name).and(TextTone::Plain, text));
            }
        }
    }
    if !more.is_empty() {
        sections.insert(1, section("Recorded", more));
    }
    if key.kind == Kind::Verification && value.field("output").is_none() {
        // The output of an agent's check is that of the call with its id.
        let call = call_of_check(&key.id);
        match fact(session, resolved, &Key::new(Kind::Command, call), zone) {
            Ok(mut command) => {
                command.truncate(1);
                sections.splice(1..1, command);
            }
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    if versions.len() > 1 {
        let lines = versions.iter().rev().take(MAX_VERSIONS).map(|known| {
            let status = known.fact.value.field("status").map(text_of).unwrap_or_default();
            line(TextTone::Plain, 2, format!("{} {status}", zone.show(known.fact.at)))
        });
        sections.push(section(format!("Versions ({})", versions.len()), lines.collect()));
    }
    Ok(sections)
}

/// Returns the patch of one file without the two lines that name it.
fn without_file_names(patch: &str) -> &str {
    let Some((before, rest)) = patch.split_once('\n') else { return patch };
    let Some((after, changes)) = rest.split_once('\n') else { return patch };
    if before.starts_with("--- ") && after.starts_with("+++ ") { changes } else { patch }
}

/// Returns the last components of a long path, as many as fit on a line. A path whose last
/// component is too long is not cut.
fn path_end(path: &str) -> String {
    const SHOWN_BYTES: usize = 44;
    let begins = path.match_indices('/').map(|(at, _)| at);
    let cut = begins.filter(|at| path.len() - at <= SHOWN_BYTES).min();
    match cut {
        Some(at) if path.len() > SHOWN_BYTES => format!("…{}", &path[at..]),
        _ => path.to_owned(),
    }
}

/// Returns how a command or check ended: a word, an exit code, or both.
fn outcome(value: &Value) -> String {
    let code = value.field("exit_code").and_then(Value::as_i64);
    let word = ["status", "outcome"].into_iter().find_map(|name| value.field(name)).map(text_of);
    match (word, code) {
        (Some(word), Some(code)) => format!("{} (exit {code})  ", word.replace('_', " ")),
        (Some(word), None) if !word.is_empty() => format!("{}  ", word.replace('_', " ")),
        (_, Some(code)) => format!("exit {code}  "),
        _ => String::new(),
    }
}

fn status_tone(value: &Value) -> TextTone {
    let code = value.field("exit_code").and_then(Value::as_i64);
    match (value.field("status").map(text_of).as_deref(), code) {
        (Some("passed" | "completed"), _) | (_, Some(0)) => TextTone::Good,
        (Some("failed" | "error" | "timed_out"), _) | (_, Some(_)) => TextTone::Bad,
        _ => TextTone::Plain,
    }
}

const fn patch_tone(kind: PatchLineKind) -> TextTone {
    match kind {
        PatchLineKind::Added => TextTone::PatchAdded,
        PatchLineKind::Removed => TextTone::PatchRemoved,
        PatchLineKind::Hunk => TextTone::Id,
        PatchLineKind::Header | PatchLineKind::Context => TextTone::Plain,
    }
}

/// Adds the lines of a field of a fact.
fn put_text(kind: Kind, name: &str, text: &str, lines: &mut Vec<SheetLine>) {
    if name == "patch" {
        lines.extend(patch_lines(text).map(|(kind, row)| line(patch_tone(kind), 0, row)));
        return;
    }
    let tone = if name.starts_with("stderr") { TextTone::Removed } else { TextTone::Plain };
    for (place, row) in text.lines().enumerate() {
        match (kind, name, place) {
            (Kind::Command, "command", 0) => {
                lines.push(line(TextTone::Dim, 0, "$ ").and(TextTone::Heading, row));
            }
            (Kind::Command, "command", _) => lines.push(line(TextTone::Heading, 2, row)),
            _ => lines.push(line(tone, 0, row)),
        }
    }
}

/// Returns a field as a text. A long text is read and shown up to [`MAX_TEXT_BYTES`].
fn whole(value: &Value, read: impl Fn(&TextRef) -> Result<String>) -> Result<String> {
    let Some(text) = TextRef::from_value(value) else { return Ok(text_of(value)) };
    let mut whole = match read(&text) {
        Ok(whole) => whole,
        // Of a pruned text, only the beginning is left.
        Err(Error::TextRemoved { .. }) => return Ok(text_of(value)),
        Err(error) => return Err(error),
    };
    let shown = whole.floor_char_boundary(MAX_TEXT_BYTES);
    let more = whole.len() - shown;
    if more > 0 {
        whole.truncate(shown);
        whole.push_str(&format!("\n… {more} bytes more"));
    }
    Ok(whole)
}

/// Returns the details of a checkpoint, a revision, or a fact.
fn moment(session: &Session, row: &TimelineRow, zone: DisplayZone) -> Result<TextSheet> {
    let number = match row.target {
        MomentTarget::Time(_) => String::new(),
        target => format!("{target}  "),
    };
    let found = resolved_moment(session, row.target)?;
    // A line of the story that changes no claim has no branch of its own.
    let branch = match &row.story {
        Some(_) => session.state(&found)?.current_branch()?,
        None => row.branch.clone(),
    };
    let mut lines = vec![
        line(TextTone::Heading, 0, row.title.clone()),
        line(TextTone::Id, 0, number)
            .and(TextTone::Dim, format!("{}  on {branch}", zone.show(row.place.time))),
    ];
    if let Some(story) = row.story.as_ref().filter(|story| !story.reason.is_empty()) {
        lines.insert(1, line(TextTone::Plain, 0, story.reason.clone()));
    }
    let mut sections = Vec::new();
    let mut command = format!("forge checkpoint at {}", quoted(&row.target.to_string()));
    let mut id = row.id.clone();
    if let Some(checkpoint) = found.named_checkpoint() {
        // Only what has a key and this tag is known as a compaction by its own command.
        let is_listed =
            checkpoint.key.is_some() && checkpoint.tags.iter().any(|tag| tag == "compaction");
        let is_compaction = checkpoint.is_compaction() && is_listed;
        let noun = if is_compaction { "compaction" } else { "checkpoint" };
        command = format!("forge {noun} show '#{}'", checkpoint.sequence);
        id = checkpoint.id.to_string();
        let trigger = format!("trigger: {}", trigger_word(checkpoint.trigger));
        lines.push(line(TextTone::Dim, 0, trigger));
        if !checkpoint.tags.is_empty() {
            lines.push(line(TextTone::Tag, 0, format!("[{}]", checkpoint.tags.join(" "))));
        }
        if let Some(revision) = checkpoint.revision {
            lines.push(line(TextTone::Plain, 0, format!("the claims are those of #{revision}")));
        }
        if let Value::Map(fields) = &checkpoint.body {
            let mut short = Vec::new();
            for (name, value) in fields {
                let text = whole(value, |text| {
                    // The checkpoint does not name the source of the text.
                    let source = session.source_of(text, &forge_agents::resolve)?;
                    session.text(source.as_deref(), text, &forge_agents::resolve)
                })?;
                let name = name.replace('_', " ");
                if text.contains('\n') {
                    let rows = text.lines().map(|row| line(TextTone::Plain, 2, row));
                    sections.push(section(name, rows.collect()));
                } else {
                    let name = format!("{name} ");
                    short.push(line(TextTone::Dim, 2, name).and(TextTone::Plain, text));
                }
            }
            if !short.is_empty() {
                sections.push(section("Recorded", short));
            }
        }
    } else if row.story.is_none()
        && matches!(row.sign, RowSign::Fact | RowSign::Passed | RowSign::Failed)
    {
        let kind: Kind = row.by.parse().map_err(|_| Error::not_found("kind", row.by.clone()))?;
        return entity(session, &found, row.target, &Key::new(kind, row.id.clone()), zone);
    } else if let MomentTarget::Sequence(sequence) = row.target {
        let mut changed = Vec::new();
        for change in describe(&session.changes_of(sequence)?) {
            let field = change.field.as_deref().unwrap_or_default();
            let [old, new] = [&change.old, &change.new].map(|value| side(field, value.as_ref()));
            let name = format!("{} {}", change.kind, change.id);
            let text = |value: &Option<Value>| {
                value.as_ref().map(|value| entity_title(change.kind, value)).unwrap_or_default()
            };
            let (tone, text) = match change.change {
                ChangeKind::Added => (TextTone::Added, format!("+ {name}: {}", text(&change.new))),
                ChangeKind::Removed => {
                    (TextTone::Removed, format!("- {name}: {}", text(&change.old)))
                }
                _ => (TextTone::Plain, format!("~ {name} {field}: {old} → {new}")),
            };
            changed.push(line(tone, 2, text));
        }
        sections.push(section(format!("Changes ({})", changed.len()), changed));
    }
    sections.insert(0, section("", lines));
    Ok(TextSheet { title: row.title.clone(), command, id, sections })
}

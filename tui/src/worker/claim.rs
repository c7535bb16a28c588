//! The details of a claim: its text, how its confidence changed and why, what it rests on, what
//! rests on it, and its history.

use super::row::{entity_title, side};
use crate::answer::{SheetLine, SheetSection, field_text, text_of};
use crate::app::DisplayZone;
use crate::sheet::{line, section};
use crate::theme::TextTone;
use forge_store::diff::{ChangeKind, describe};
use forge_store::error::Result;
use forge_store::model::claim::references;
use forge_store::model::{ClaimEntry, Key, Kind, TextRef, Timestamp, Value};
use forge_store::store::{
    ClaimGraph, GraphDirection, HistoryEntry, ResolvedMoment, Session, StateAt,
};
use std::collections::BTreeSet;

/// The maximum number of changes of a claim that are shown: the newest.
const MAX_STEPS: usize = 200;
/// The width of a bar that shows a strength or a confidence, in columns.
const BAR: usize = 5;

/// Returns the sections about a claim.
pub(super) fn sections(
    session: &Session,
    moment: &ResolvedMoment,
    key: &Key,
    entry: &ClaimEntry,
    zone: DisplayZone,
) -> Result<Vec<SheetSection>> {
    let mut history = session.history(moment, key)?;
    let count = history.len();
    history.truncate(MAX_STEPS);
    let state = session.state(moment)?;
    let evidence = evidence_of(&state, key)?;
    let mut sections = vec![section("", head(session, key, entry)?)];
    let path = path(&history, &evidence, zone);
    if !path.is_empty() {
        sections.push(section("How sure, and why", path));
    }
    if key.kind == Kind::Hypothesis {
        for (title, is_for) in [("For", true), ("Against", false)] {
            let mut lines: Vec<SheetLine> = evidence
                .iter()
                .filter(|one| (one.strength >= 0.0) == is_for)
                .map(|one| evidence_line(one, is_for))
                .collect();
            if lines.is_empty() {
                lines.push(line(TextTone::Dim, 2, "nothing"));
            }
            sections.push(section(title, lines));
        }
    }
    let graph = ClaimGraph::read(&state)?;
    let neighbours = |direction| graph.neighbours(key, direction).map(|(other, _)| other);
    // A dependency is a relation of two beliefs. It rests on nothing.
    let ends = match key.kind {
        Kind::Dependency => references(key.kind, &entry.value),
        _ => Vec::new(),
    };
    for (title, lines) in [
        ("Its beliefs", related(&graph, key, ends.iter())),
        ("It rests on", related(&graph, key, neighbours(GraphDirection::Down))),
        ("What rests on it", related(&graph, key, neighbours(GraphDirection::Up))),
    ] {
        if !lines.is_empty() {
            sections.push(section(title, lines));
        }
    }
    let changes = changes(&history, zone);
    if changes.len() > 1 {
        let title = match history.len() {
            shown if shown < count => format!("The newest {shown} of {count} changes"),
            _ => format!("Every change ({count})"),
        };
        sections.push(SheetSection { title, lines: changes, folded: true });
    }
    Ok(sections)
}

/// Evidence about a hypothesis.
pub(super) struct EvidenceFor {
    pub(super) id: String,
    pub(super) strength: f64,
    pub(super) text: String,
    pub(super) source: String,
    added: Timestamp,
}

/// Returns the evidence about a hypothesis, the strongest first.
pub(super) fn evidence_of(state: &StateAt, key: &Key) -> Result<Vec<EvidenceFor>> {
    if key.kind != Kind::Hypothesis {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for (id, entry) in state.claims_of(Kind::Evidence)? {
        let value = &entry.value;
        if value.field("hypothesis").and_then(Value::as_text) != Some(key.id.as_str()) {
            continue;
        }
        found.push(EvidenceFor {
            id,
            strength: value.field("strength").and_then(Value::as_f64).unwrap_or(0.0),
            text: entity_title(Kind::Evidence, value),
            source: value.field("source").map(text_of).unwrap_or_default(),
            added: entry.added_at,
        });
    }
    found.sort_by(|a, b| b.strength.abs().total_cmp(&a.strength.abs()));
    Ok(found)
}

/// Draws the absolute value of a number from -1 to 1 as a bar.
fn bar(value: f64) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 40")]
    let eighths = (value.abs().clamp(0.0, 1.0) * (BAR * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.push_str(PARTS.get(eighths % 8).copied().unwrap_or_default());
    format!("{bar:<BAR$}")
}

fn evidence_line(one: &EvidenceFor, is_for: bool) -> SheetLine {
    let source = if one.source.is_empty() { String::new() } else { format!("  [{}]", one.source) };
    let tone = if is_for { TextTone::Good } else { TextTone::Bad };
    line(tone, 2, format!("{} {:.2} ", bar(one.strength), one.strength.abs()))
        .and(TextTone::Id, format!("{} ", one.id))
        .and(TextTone::Plain, one.text.clone())
        .and(TextTone::Dim, source)
}

/// Returns the sign of a status and a space; an empty text for a status that has no sign.
pub(super) fn status_sign(status: &str) -> (&'static str, TextTone) {
    match status {
        "confirmed" | "filled" => ("✓ ", TextTone::Good),
        "rejected" | "unfillable" => ("✗ ", TextTone::Bad),
        "archived" | "obsolete" => ("– ", TextTone::Dim),
        "open" | "filling" => ("? ", TextTone::Warning),
        _ => ("", TextTone::Plain),
    }
}

/// Returns what a claim says, and its fields.
fn head(session: &Session, key: &Key, entry: &ClaimEntry) -> Result<Vec<SheetLine>> {
    let value = &entry.value;
    let field = |name: &str| value.field(name).map(text_of).filter(|text| !text.is_empty());
    let status = field("status").unwrap_or_default();
    let (sign, tone) = status_sign(&status);
    let id_tone = TextTone::of_key(key);
    let confidence = value.field("confidence").and_then(Value::as_f64);
    let confidence =
        confidence.map(|number| format!("  {} {number:.2}", bar(number))).unwrap_or_default();
    let mut lines = vec![
        line(id_tone, 0, format!("{} ", key.id))
            .and(tone, format!("{sign}{}", status.replace('_', " ")))
            .and(id_tone, confidence),
    ];
    for name in ["description", "reason", "resolution", "doubt_reason"] {
        let Some(value) = value.field(name) else { continue };
        let text = match TextRef::from_value(value) {
            Some(text) => session.text(None, &text, &forge_agents::resolve)?,
            None => text_of(value),
        };
        let (tone, text) = match name {
            "description" => (TextTone::Plain, text),
            "reason" => (TextTone::Good, format!("because {text}")),
            "resolution" => (TextTone::Good, text),
            _ => (TextTone::Warning, format!("in doubt: {text}")),
        };
        lines.push(line(tone, 0, text));
    }
    let shown =
        ["description", "reason", "resolution", "doubt_reason", "status", "confidence", "in_doubt"];
    if let Value::Map(fields) = value {
        for (name, value) in fields.iter().filter(|(name, _)| !shown.contains(&name.as_str())) {
            let text = field_text(name, value);
            if !text.is_empty() {
                let name = format!("{} ", name.replace('_', " "));
                lines.push(line(TextTone::Dim, 0, name).and(TextTone::Plain, text));
            }
        }
    }
    Ok(lines)
}

/// Returns the changes of the confidence or status, oldest first, with the evidence that was added
/// at the same time.
fn path(history: &[HistoryEntry], evidence: &[EvidenceFor], zone: DisplayZone) -> Vec<SheetLine> {
    let confidence = |entry: &Option<ClaimEntry>| {
        entry.as_ref().and_then(|entry| entry.value.field("confidence")).and_then(Value::as_f64)
    };
    let status = |entry: &Option<ClaimEntry>| {
        entry.as_ref().and_then(|entry| entry.value.field("status")).map(text_of)
    };
    let mut lines = Vec::new();
    for step in history.iter().rev() {
        let (old, new) = (confidence(&step.change.old), confidence(&step.change.new));
        let settled =
            status(&step.change.new).filter(|new| Some(new) != status(&step.change.old).as_ref());
        let Some(new) = new.filter(|new| old != Some(*new) || settled.is_some()) else { continue };
        let (tone, moved) = match old {
            Some(old) if new > old => (TextTone::Good, format!("{old:.2} → {new:.2}")),
            Some(old) if new < old => (TextTone::Bad, format!("{old:.2} → {new:.2}")),
            _ => (TextTone::Plain, format!("       {new:.2}")),
        };
        let time = step.revision.time;
        let mut shown = line(TextTone::Dim, 2, format!("{} ", zone.clock(time)))
            .and(tone, format!("{moved}  "));
        if let Some(status) = settled.filter(|status| status != "active") {
            shown = shown.and(TextTone::Heading, format!("{}  ", status.replace('_', " ")));
        }
        for cause in evidence.iter().filter(|one| one.added == time) {
            shown = shown
                .and(TextTone::Id, format!("{} ", cause.id))
                .and(TextTone::Plain, format!("{} ", cause.text));
        }
        lines.push(shown.and(TextTone::Dim, format!("#{}", step.revision.sequence)));
    }
    lines
}

/// Returns a line for each of these claims, which are related to the claim `key`.
fn related<'k>(
    graph: &ClaimGraph,
    key: &'k Key,
    others: impl Iterator<Item = &'k Key>,
) -> Vec<SheetLine> {
    let mut seen = BTreeSet::from([key]);
    let mut lines = Vec::new();
    for other in others {
        // The evidence about a hypothesis has sections of its own.
        if key.kind == Kind::Hypothesis && other.kind == Kind::Evidence {
            continue;
        }
        let Some(value) = graph.claim(other) else { continue };
        if seen.insert(other) {
            let id = line(TextTone::Id, 2, format!("{} ", other.id));
            lines.push(id.and(TextTone::Plain, entity_title(other.kind, value)));
        }
    }
    lines
}

/// Returns every change of a claim, field by field, the newest first.
fn changes(history: &[HistoryEntry], zone: DisplayZone) -> Vec<SheetLine> {
    let mut lines = Vec::new();
    for step in history {
        let revision = &step.revision;
        let head = format!("#{} {} {}", revision.sequence, zone.show(revision.time), revision.verb);
        lines.push(line(TextTone::Id, 2, head));
        for change in describe(std::slice::from_ref(&step.change)) {
            let field = change.field.as_deref().unwrap_or_default();
            let [old, new] = [&change.old, &change.new].map(|value| side(field, value.as_ref()));
            let (tone, text) = match change.change {
                ChangeKind::Added => (TextTone::Added, "+ added".to_owned()),
                ChangeKind::Removed => (TextTone::Removed, "- removed".to_owned()),
                _ => (TextTone::Plain, format!("{field}: {old} → {new}")),
            };
            lines.push(line(tone, 6, text));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use forge_store::model::claim::{
        Belief, Dependency, DependencyType, Evidence, Gap, GapBlocking, Hypothesis,
    };
    use forge_store::store::{NewSession, Store, WriteContext};

    fn session() -> (Session, WriteContext) {
        let context = WriteContext::asked("test", Timestamp::from_micros(0));
        let store = Store::in_memory().unwrap();
        (store.create_session(&context, NewSession::named("claims")).unwrap(), context)
    }

    fn claim_sections(session: &Session, kind: Kind, id: &str) -> Vec<SheetSection> {
        let (moment, key) = (session.head().unwrap(), Key::new(kind, id));
        let entry = session.claim(&moment, &key).unwrap().unwrap();
        sections(session, &moment, &key, &entry, DisplayZone::Local).unwrap()
    }

    /// The ids of the claims that a claim rests on, and of those that rest on it.
    fn neighbours(session: &Session, kind: Kind, id: &str) -> [String; 2] {
        let sections = claim_sections(session, kind, id);
        ["It rests on", "What rests on it"].map(|title| {
            let lines = sections.iter().filter(|section| section.title == title);
            let ids = lines.flat_map(|section| &section.lines).map(|line| line.parts[0].1.trim());
            ids.collect::<Vec<_>>().join(" ")
        })
    }

    /// Each dependency was shown as if its first belief rested on its second.
    #[test]
    fn a_belief_rests_on_what_supports_it_and_not_on_what_contradicts_it() {
        let (session, context) = session();
        let mut write = session.write(&context).add("one", Hypothesis::default());
        for id in ["one", "ground", "reason", "opposite"] {
            write = write.add(id, Belief::default());
        }
        write.commit().unwrap();
        for (from, kind, to) in [
            ("one", DependencyType::Requires, "ground"),
            ("reason", DependencyType::Supports, "one"),
            ("one", DependencyType::Contradicts, "opposite"),
        ] {
            let dependency = Dependency::default().from(from).to(to).dependency_type(kind);
            session.write(&context).add("", dependency).commit().unwrap();
        }
        assert_eq!(neighbours(&session, Kind::Belief, "one"), ["ground reason", ""]);
        assert_eq!(neighbours(&session, Kind::Belief, "ground"), ["", "one"]);
        assert_eq!(neighbours(&session, Kind::Belief, "reason"), ["", "one"]);
        assert_eq!(neighbours(&session, Kind::Belief, "opposite"), ["", ""]);
        let dependency = Dependency::id("one", "opposite");
        let sections = claim_sections(&session, Kind::Dependency, &dependency);
        let beliefs = sections.iter().find(|section| section.title == "Its beliefs").unwrap();
        let ids = beliefs.lines.iter().map(|line| line.parts[0].1.trim());
        assert_eq!(ids.collect::<Vec<_>>(), ["one", "opposite"]);
        assert_eq!(neighbours(&session, Kind::Dependency, &dependency), ["", ""]);
        // Its id is the id of a belief.
        assert_eq!(neighbours(&session, Kind::Hypothesis, "one"), ["", ""]);
    }

    /// The pages of the evidence and of the gap said that these rest on the hypothesis.
    #[test]
    fn a_hypothesis_rests_on_its_evidence_and_on_the_gaps_that_block_it() {
        let (session, context) = session();
        session.write(&context).add("H1", Hypothesis::default()).commit().unwrap();
        let blocks = GapBlocking::Hypotheses(vec!["H1".to_owned()]);
        let write = session.write(&context).add("E1", Evidence::default().hypothesis("H1"));
        let write = write.add("G1", Gap::default().blocking(blocks));
        write.add("B1", Belief::default().source("H1")).commit().unwrap();
        // The evidence about a hypothesis has sections of its own.
        assert_eq!(neighbours(&session, Kind::Hypothesis, "H1"), ["G1", "B1"]);
        assert_eq!(neighbours(&session, Kind::Evidence, "E1"), ["", "H1"]);
        assert_eq!(neighbours(&session, Kind::Gap, "G1"), ["", "H1"]);
        assert_eq!(neighbours(&session, Kind::Belief, "B1"), ["H1", ""]);
    }

    /// The title counted only the changes that were shown.
    #[test]
    fn the_title_of_a_shortened_list_of_changes_has_their_number() {
        let (session, context) = session();
        for number in 0..=MAX_STEPS {
            let belief = Belief::default().description(number.to_string());
            session.write(&context).put("one", belief).commit().unwrap();
        }
        let sections = claim_sections(&session, Kind::Belief, "one");
        assert_eq!(sections.last().unwrap().title, "The newest 200 of 201 changes");
    }
}

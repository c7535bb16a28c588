//! Builds two sheets: what a claim rests on and what rests on it, over several steps; and the
//! evidence about a hypothesis with the commands and checks that it comes from.

use super::claim::{self, EvidenceFor};
use super::detail;
use super::row::entity_title;
use crate::answer::{SheetLine, SheetSection, TextSheet};
use crate::app::DisplayZone;
use crate::effect::MomentTarget;
use crate::sheet::{line, section};
use crate::theme::TextTone;
use forge_store::error::{Error, Result};
use forge_store::model::{Key, Kind, Value};
use forge_store::shell::quoted;
use forge_store::store::{ClaimGraph, GraphDirection, ResolvedMoment, Session};
use std::collections::BTreeSet;

/// The maximum number of steps between the claim and another claim that is shown.
const MAX_STEPS: u16 = 8;
/// The maximum number of lines shown of the command or check that evidence comes from.
const OUTPUT_LINES: usize = 12;

/// Adds a line for each claim that is one step away, and below it lines for the claims that are
/// further away. Each claim is added once.
fn walk(
    graph: &ClaimGraph,
    from: &Key,
    direction: GraphDirection,
    depth: u16,
    seen: &mut BTreeSet<Key>,
    lines: &mut Vec<SheetLine>,
) {
    if depth > MAX_STEPS {
        return;
    }
    for (far, _) in graph.neighbours(from, direction) {
        let Some(value) = graph.claim(far) else { continue };
        if seen.insert(far.clone()) {
            lines.push(claim_line(far, value, depth));
            walk(graph, far, direction, depth + 1, seen, lines);
        }
    }
}

fn claim_line(key: &Key, value: &Value, depth: u16) -> SheetLine {
    let text = |name: &str| value.field(name).and_then(Value::as_text).unwrap_or_default();
    let mut shown = line(TextTone::of_key(key), depth * 2, format!("{} ", key.id));
    if let Some(strength) = value.field("strength").and_then(Value::as_f64) {
        let (tone, word) = match strength < 0.0 {
            true => (TextTone::Bad, "against"),
            false => (TextTone::Good, "for"),
        };
        shown = shown.and(tone, format!("{word} {:.2} ", strength.abs()));
    }
    let (sign, tone) = claim::status_sign(text("status"));
    if !sign.is_empty() {
        shown = shown.and(tone, sign);
    }
    if let Some(sure) = value.field("confidence").and_then(Value::as_f64) {
        shown = shown.and(TextTone::Dim, format!("{sure:.2} "));
    }
    shown = shown.and(TextTone::Plain, entity_title(key.kind, value));
    if value.field("in_doubt").and_then(Value::as_bool) == Some(true) {
        shown = shown.and(TextTone::Warning, "  in doubt");
    }
    shown
}

pub(super) fn why(
    session: &Session,
    moment: &ResolvedMoment,
    target: MomentTarget,
    key: &Key,
) -> Result<TextSheet> {
    let graph = ClaimGraph::read(&session.state(moment)?)?;
    let Some(value) = graph.claim(key) else {
        return Err(Error::not_found(key.kind.name(), key.id.clone()));
    };
    let mut sections = vec![section("", vec![claim_line(key, value, 0)])];
    let directions =
        [("It rests on", GraphDirection::Down), ("What rests on it", GraphDirection::Up)];
    for (title, direction) in directions {
        let (mut lines, mut seen) = (Vec::new(), BTreeSet::from([key.clone()]));
        walk(&graph, key, direction, 1, &mut seen, &mut lines);
        if lines.is_empty() {
            lines.push(line(TextTone::Dim, 2, "nothing"));
        }
        sections.push(section(title, lines));
    }
    let command = format!("forge why {} --at {}", quoted(&key.id), quoted(&target.to_string()));
    Ok(TextSheet { title: format!("why {}", key.id), command, id: key.id.clone(), sections })
}

/// Returns the evidence about a hypothesis, each piece with the command or check it comes from.
pub(super) fn sources(
    session: &Session,
    moment: &ResolvedMoment,
    target: MomentTarget,
    hypothesis: &str,
    zone: DisplayZone,
) -> Result<TextSheet> {
    let key = Key::new(Kind::Hypothesis, hypothesis);
    let state = session.state(moment)?;
    let Some(value) = state.claim(key.kind, &key.id)? else {
        return Err(Error::not_found(key.kind.name(), key.id));
    };
    let mut sections = vec![section("", vec![claim_line(&key, &value, 0)])];
    for one in claim::evidence_of(&state, &key)? {
        sections.push(evidence(session, moment, target, &one, zone)?);
    }
    if sections.len() == 1 {
        sections.push(section("", vec![line(TextTone::Dim, 0, "no evidence yet: + adds some")]));
    }
    let title = format!("evidence about {hypothesis}");
    let id = hypothesis.to_owned();
    Ok(TextSheet { title, command: String::new(), id, sections })
}

fn evidence(
    session: &Session,
    moment: &ResolvedMoment,
    target: MomentTarget,
    one: &EvidenceFor,
    zone: DisplayZone,
) -> Result<SheetSection> {
    let way = if one.strength < 0.0 { "against" } else { "for" };
    let title = format!("{} {way} it {:.2}", one.id, one.strength.abs());
    let mut lines = vec![line(TextTone::Plain, 2, one.text.clone())];
    let name = one.source.strip_prefix("command:").unwrap_or(&one.source);
    if name.is_empty() {
        lines.push(line(TextTone::Dim, 2, "no source is recorded"));
        return Ok(section(title, lines));
    }
    let mut shown = None;
    for kind in [Kind::Command, Kind::Verification] {
        match detail::entity(session, moment, target, &Key::new(kind, name), zone) {
            Ok(sheet) => {
                shown = Some(sheet);
                break;
            }
            Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let Some(sheet) = shown else {
        lines.push(line(TextTone::Dim, 2, format!("source: {}", one.source)));
        return Ok(section(title, lines));
    };
    let all = sheet.sections.into_iter().next().map(|first| first.lines).unwrap_or_default();
    let more = all.len().saturating_sub(OUTPUT_LINES);
    let inner = all.into_iter().take(OUTPUT_LINES);
    lines.extend(inner.map(|line| SheetLine { indent: line.indent + 4, ..line }));
    if more > 0 {
        let words = format!("{more} more lines: forge show {}", quoted(name));
        lines.push(line(TextTone::Dim, 4, words));
    }
    Ok(section(title, lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use forge_store::model::Timestamp;
    use forge_store::model::claim::{Belief, Hypothesis};
    use forge_store::store::{NewSession, Store, WriteContext};

    /// The page showed nothing below a hypothesis that is only the source of a belief.
    #[test]
    fn a_belief_rests_on_the_claim_that_its_source_names() {
        let context = WriteContext::asked("test", Timestamp::from_micros(0));
        let store = Store::in_memory().unwrap();
        let session = store.create_session(&context, NewSession::named("sources")).unwrap();
        let write = session.write(&context).add("H1", Hypothesis::default());
        write.add("B1", Belief::default().source("H1")).commit().unwrap();
        let key = Key::new(Kind::Hypothesis, "H1");
        let sheet = why(&session, &session.head().unwrap(), MomentTarget::Head, &key).unwrap();
        let rests = sheet.sections.last().unwrap();
        assert_eq!(rests.title, "What rests on it");
        assert_eq!(rests.lines[0].parts[0].1, "B1 ");
    }
}

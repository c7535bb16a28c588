//! Builds two sheets: what a claim rests on and what rests on it, over several steps; and the
//! evidence about a hypothesis with the commands and checks that it comes from.

use super::detail;
use super::idea::{self, EvidenceFor};
use super::row::entity_title;
use crate::answer::{SheetLine, SheetSection, TextSheet};
use crate::app::DisplayZone;
use crate::effect::MomentTarget;
use crate::sheet::{line, section};
use crate::theme::TextTone;
use forge_store::error::{Error, Result};
use forge_store::model::claim::{Dependency, references};
use forge_store::model::{Key, Kind, Value};
use forge_store::shell::quoted;
use forge_store::store::{ResolvedMoment, Session, StateAt};
use forge_store::story::short_number;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of steps between the claim and another claim that is shown.
const MAX_STEPS: u16 = 8;
/// The maximum number of lines shown of the command or check that evidence comes from.
const OUTPUT_LINES: usize = 12;

/// The direction in which the relations are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WalkDirection {
    /// To what a claim rests on.
    Down,
    /// To what rests on the claim.
    Up,
}

/// What each claim of a state rests on.
struct ClaimGraph {
    claims: BTreeMap<Key, Value>,
    /// Pairs of a claim and what it rests on.
    edges: Vec<(Key, Key)>,
}

impl ClaimGraph {
    fn read(state: &StateAt) -> Result<Self> {
        let mut graph = Self { claims: BTreeMap::new(), edges: Vec::new() };
        for kind in Kind::claims() {
            for (id, entry) in state.claims_of(kind)? {
                let key = Key::new(kind, id);
                graph.add(&key, &entry.value);
                graph.claims.insert(key, entry.value);
            }
        }
        Ok(graph)
    }

    fn add(&mut self, key: &Key, value: &Value) {
        if key.kind == Kind::Dependency {
            let dependency = Dependency::from_value(value).ok();
            let rests = dependency.as_ref().and_then(Dependency::rests_on);
            let belief = |id: &str| Key::new(Kind::Belief, id);
            self.edges.extend(rests.map(|(upper, lower)| (belief(upper), belief(lower))));
            return;
        }
        for other in references(key.kind, value) {
            // A hypothesis rests on its evidence, and waits for the gaps that block it.
            self.edges.push(match key.kind {
                Kind::Evidence | Kind::Gap => (other, key.clone()),
                _ => (key.clone(), other),
            });
        }
    }

    /// Adds a line for each claim that is one step away, and below it lines for the claims that are
    /// further away. Each claim is added once.
    fn walk(
        &self,
        from: &Key,
        direction: WalkDirection,
        depth: u16,
        seen: &mut BTreeSet<Key>,
        lines: &mut Vec<SheetLine>,
    ) {
        if depth > MAX_STEPS {
            return;
        }
        for (upper, lower) in &self.edges {
            let (near, far) = match direction {
                WalkDirection::Down => (upper, lower),
                WalkDirection::Up => (lower, upper),
            };
            if near != from || !self.claims.contains_key(far) || !seen.insert(far.clone()) {
                continue;
            }
            lines.push(self.line(far, depth));
            self.walk(far, direction, depth + 1, seen, lines);
        }
    }

    fn line(&self, key: &Key, depth: u16) -> SheetLine {
        let value = self.claims.get(key);
        let field = |name: &str| value.and_then(|value| value.field(name));
        let text = |name: &str| field(name).and_then(Value::as_text).unwrap_or_default();
        let tone = match key.kind {
            Kind::Hypothesis => TextTone::of_idea(&key.id),
            _ => TextTone::Id,
        };
        let mut shown = line(tone, depth * 2, format!("{} ", key.id));
        if let Some(strength) = field("strength").and_then(Value::as_f64) {
            let (tone, word) = match strength < 0.0 {
                true => (TextTone::Bad, "against"),
                false => (TextTone::Good, "for"),
            };
            shown = shown.and(tone, format!("{word} {} ", short_number(strength.abs())));
        }
        let (sign, tone) = idea::status_sign(text("status"));
        if !sign.is_empty() {
            shown = shown.and(tone, sign);
        }
        if let Some(sure) = field("confidence").and_then(Value::as_f64) {
            shown = shown.and(TextTone::Dim, format!("{} ", short_number(sure)));
        }
        let said = value.map(|value| entity_title(key.kind, value)).unwrap_or_default();
        shown = shown.and(TextTone::Plain, said);
        if field("in_doubt").and_then(Value::as_bool) == Some(true) {
            shown = shown.and(TextTone::Warning, "  in doubt");
        }
        shown
    }
}

pub(super) fn why(
    session: &Session,
    point: &ResolvedMoment,
    target: MomentTarget,
    key: &Key,
) -> Result<TextSheet> {
    let graph = ClaimGraph::read(&session.state(point)?)?;
    if !graph.claims.contains_key(key) {
        return Err(Error::not_found(key.kind.name(), key.id.clone()));
    }
    let mut sections = vec![section("", vec![graph.line(key, 0)])];
    let directions =
        [("It rests on", WalkDirection::Down), ("What rests on it", WalkDirection::Up)];
    for (title, direction) in directions {
        let (mut lines, mut seen) = (Vec::new(), BTreeSet::from([key.clone()]));
        graph.walk(key, direction, 1, &mut seen, &mut lines);
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
    point: &ResolvedMoment,
    target: MomentTarget,
    hypothesis: &str,
    zone: DisplayZone,
) -> Result<TextSheet> {
    let key = Key::new(Kind::Hypothesis, hypothesis);
    let state = session.state(point)?;
    let graph = ClaimGraph::read(&state)?;
    if !graph.claims.contains_key(&key) {
        return Err(Error::not_found(key.kind.name(), key.id));
    }
    let mut sections = vec![section("", vec![graph.line(&key, 0)])];
    for one in idea::evidence_of(&state, &key)? {
        sections.push(evidence(session, point, target, &one, zone)?);
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
    point: &ResolvedMoment,
    target: MomentTarget,
    one: &EvidenceFor,
    zone: DisplayZone,
) -> Result<SheetSection> {
    let way = if one.strength < 0.0 { "against" } else { "for" };
    let title = format!("{} {way} it {}", one.id, short_number(one.strength.abs()));
    let mut lines = vec![line(TextTone::Plain, 2, one.text.clone())];
    let name = one.source.strip_prefix("command:").unwrap_or(&one.source);
    if name.is_empty() {
        lines.push(line(TextTone::Dim, 2, "no source is recorded"));
        return Ok(section(title, lines));
    }
    let mut shown = None;
    for kind in [Kind::Command, Kind::Verification] {
        match detail::entity(session, point, target, &Key::new(kind, name), zone) {
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

//! Finds what an entity rests on, and what rests on it, in a state.

use crate::error::CommandError;
use crate::report::entity::EntityJson;
use crate::report::log::RevisionLine;
use crate::report::why::{RelatedEntity, WhyReport};
use crate::session_reader::{KnownEntity, SessionReader};
use crate::text::TextLength;
use forge_store::diff::describe;
use forge_store::model::claim::Dependency;
use forge_store::model::{Key, Kind, Value};
use forge_store::store::{ClaimGraph, GraphDirection, StateAt, entity_title};
use std::collections::{BTreeSet, VecDeque};

/// Returns everything about an entity in a state.
pub fn why(
    reading: &SessionReader,
    state: &StateAt,
    known: &KnownEntity,
) -> Result<WhyReport, CommandError> {
    let graph = ClaimGraph::read(state)?;
    let me = Key::new(known.kind(), known.id());
    let mut evidence = evidence(&graph, &me);
    evidence.sort_by(|a, b| {
        let strength = |link: &RelatedEntity| link.strength.unwrap_or_default().abs();
        strength(b).total_cmp(&strength(a)).then_with(|| a.id.cmp(&b.id))
    });
    let (contradicting, supporting) =
        evidence.into_iter().partition(|link| link.strength.unwrap_or_default() < 0.0);
    let doubt = known.value().field("doubt_reason").and_then(Value::as_text);
    let in_doubt = known.value().field("in_doubt").and_then(Value::as_bool) == Some(true);
    let mut texts = reading.texts(TextLength::Preview);
    let mut history = Vec::new();
    if let KnownEntity::Claim(key, _) = known {
        for entry in reading.session.history(state.moment(), key)? {
            history.push(RevisionLine::new(entry.revision, describe(&[entry.change])));
        }
    }
    Ok(WhyReport {
        session: state.info()?.name,
        at: state.time()?,
        fields: EntityJson::new(known.clone(), &mut texts)?,
        doubt: in_doubt.then(|| doubt.unwrap_or("no reason given").to_owned()),
        supporting,
        contradicting,
        rests_on: walk(&graph, &me, GraphDirection::Down),
        supports: walk(&graph, &me, GraphDirection::Up),
        contradicts: contradictions(&graph, state, &me)?,
        history,
        entity: me,
    })
}

fn link(
    graph: &ClaimGraph,
    key: &Key,
    relation: &str,
    strength: Option<f64>,
    distance: usize,
) -> RelatedEntity {
    let value = graph.claim(key);
    let text = |name| value.and_then(|value: &Value| value.field(name)?.as_text());
    RelatedEntity {
        kind: key.kind,
        id: key.id.clone(),
        text: value.map(|value| entity_title(key.kind, value)).unwrap_or_default(),
        relation: relation.to_owned(),
        strength,
        status: text("status").map(str::to_owned),
        in_doubt: value.and_then(|value| value.field("in_doubt")?.as_bool()) == Some(true),
        distance,
    }
}

/// Returns the evidence that an entity rests on directly. Evidence that a belief names has the
/// strength that it has for its own hypothesis.
fn evidence(graph: &ClaimGraph, me: &Key) -> Vec<RelatedEntity> {
    let own = graph.neighbours(me, GraphDirection::Down);
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (basis, edge) in own.filter(|(basis, _)| basis.kind == Kind::Evidence) {
        if seen.insert(basis) {
            let stated = graph.claim(basis).and_then(|value| value.field("strength"));
            let strength = edge.strength.or_else(|| stated.and_then(Value::as_f64));
            found.push(link(graph, basis, edge.relation, strength, 1));
        }
    }
    found
}

/// Returns what an entity rests on, or what rests on it, nearest first. The evidence that the
/// entity rests on directly is left out: see [`evidence`].
fn walk(graph: &ClaimGraph, me: &Key, direction: GraphDirection) -> Vec<RelatedEntity> {
    let mut seen = BTreeSet::from([me]);
    let mut waiting = VecDeque::from([(me, 0)]);
    let mut found = Vec::new();
    while let Some((here, distance)) = waiting.pop_front() {
        for (far, edge) in graph.neighbours(here, direction) {
            let is_own_evidence =
                direction == GraphDirection::Down && distance == 0 && far.kind == Kind::Evidence;
            if is_own_evidence || !seen.insert(far) {
                continue;
            }
            found.push(link(graph, far, edge.relation, edge.strength, distance + 1));
            waiting.push_back((far, distance + 1));
        }
    }
    found
}

/// Returns the beliefs that cannot be true together with this one.
fn contradictions(
    graph: &ClaimGraph,
    state: &StateAt,
    me: &Key,
) -> Result<Vec<RelatedEntity>, CommandError> {
    let mut found = Vec::new();
    if me.kind != Kind::Belief {
        return Ok(found);
    }
    for (_, entry) in state.claims_of(Kind::Dependency)? {
        let Ok(dependency) = Dependency::from_value(&entry.value) else { continue };
        let (Some(from), Some(to)) = (&dependency.from, &dependency.to) else { continue };
        let other = match dependency.rests_on() {
            None if *from == me.id => to,
            None if *to == me.id => from,
            _ => continue,
        };
        let other = Key::new(Kind::Belief, other.as_str());
        let strength = dependency.strength.map(|strength| strength.value());
        found.push(link(graph, &other, "contradicts", strength, 1));
    }
    Ok(found)
}

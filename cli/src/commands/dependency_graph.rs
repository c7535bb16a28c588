//! Finds what an entity rests on, and what rests on it, in a state.

use crate::error::CommandError;
use crate::report::entity::EntityJson;
use crate::report::log::RevisionLine;
use crate::report::why::{RelatedEntity, WhyReport};
use crate::session_reader::{KnownEntity, SessionReader, entities_of_kind};
use crate::text::TextLength;
use forge_store::diff::describe;
use forge_store::model::claim::{
    Belief, Dependency, DependencyType, Evidence, Gap, GapBlocking, VocabularyWord,
};
use forge_store::model::{Key, Kind, Value};
use forge_store::store::{StateAt, entity_title};
use std::collections::{BTreeSet, VecDeque};

/// Returns everything about an entity in a state.
pub fn why(
    reading: &SessionReader,
    state: &StateAt,
    known: &KnownEntity,
) -> Result<WhyReport, CommandError> {
    let graph = DependencyGraph::read(state)?;
    let me = (known.kind(), known.id().to_owned());
    let mut evidence = graph.evidence(&me);
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
        for entry in reading.session.history(state.point(), key)? {
            history.push(RevisionLine::new(entry.revision, describe(&[entry.change])));
        }
    }
    Ok(WhyReport {
        session: state.info()?.name,
        at: state.time()?,
        entity: Key { kind: me.0, id: me.1.clone() },
        fields: EntityJson::new(known.clone(), &mut texts)?,
        doubt: in_doubt.then(|| doubt.unwrap_or("no reason given").to_owned()),
        supporting,
        contradicting,
        rests_on: graph.walk(&me, WalkDirection::Down),
        supports: graph.walk(&me, WalkDirection::Up),
        contradicts: graph.contradictions(&me),
        history,
    })
}

type GraphNode = (Kind, String);

/// The relation of an entity to another entity that it rests on.
struct DependencyEdge {
    dependent: GraphNode,
    basis: GraphNode,
    relation: &'static str,
    strength: Option<f64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WalkDirection {
    Down,
    Up,
}

/// The relations between the claims of a state.
struct DependencyGraph {
    known: Vec<KnownEntity>,
    edges: Vec<DependencyEdge>,
    /// Pairs of beliefs that cannot both be true, each with the strength of the contradiction.
    contradictions: Vec<(String, String, Option<f64>)>,
}

impl DependencyGraph {
    fn read(state: &StateAt) -> Result<Self, CommandError> {
        let mut graph = Self { known: Vec::new(), edges: Vec::new(), contradictions: Vec::new() };
        for kind in Kind::claims() {
            graph.known.extend(entities_of_kind(state, kind)?);
        }
        let found: Vec<(Key, Value)> = graph
            .known
            .iter()
            .map(|known| (Key::new(known.kind(), known.id()), known.value().clone()))
            .collect();
        for (key, value) in &found {
            graph.add_edges(key, value);
        }
        Ok(graph)
    }

    fn add_edges(&mut self, key: &Key, value: &Value) {
        let me = (key.kind, key.id.clone());
        let text = |name: &str| value.field(name).and_then(Value::as_text).map(str::to_owned);
        match key.kind {
            Kind::Hypothesis => {
                if let Some(parent) = text("parent") {
                    self.add(me, (Kind::Hypothesis, parent), "parent", None);
                }
            }
            Kind::Belief => {
                let Ok(belief) = Belief::from_value(value) else { return };
                if let Some(hypothesis) = belief.hypothesis {
                    self.add(me.clone(), (Kind::Hypothesis, hypothesis), "hypothesis", None);
                }
                for evidence in belief.evidence.unwrap_or_default() {
                    self.add(me.clone(), (Kind::Evidence, evidence), "evidence", None);
                }
                // A source is any text; if it is the id of a claim, the belief rests on that claim.
                for kind in [Kind::Hypothesis, Kind::Evidence] {
                    let source = belief.source.as_deref().unwrap_or_default();
                    if self.find(&(kind, source.to_owned())).is_some() {
                        self.add(me.clone(), (kind, source.to_owned()), "source", None);
                    }
                }
            }
            Kind::Evidence => {
                let Ok(evidence) = Evidence::from_value(value) else { return };
                if let Some(hypothesis) = evidence.hypothesis {
                    let strength = evidence.strength.map(|strength| strength.value());
                    self.add((Kind::Hypothesis, hypothesis), me, "evidence", strength);
                }
            }
            Kind::Dependency => {
                let Ok(dependency) = Dependency::from_value(value) else { return };
                let strength = dependency.strength.map(|strength| strength.value());
                let of = dependency.dependency_type.unwrap_or(DependencyType::Requires);
                if let Some((dependent, basis)) = dependency.rests_on() {
                    let belief = |id: &str| (Kind::Belief, id.to_owned());
                    self.add(belief(dependent), belief(basis), of.word(), strength);
                } else if let (Some(from), Some(to)) = (dependency.from, dependency.to) {
                    self.contradictions.push((from, to, strength));
                }
            }
            Kind::Gap => {
                let Ok(gap) = Gap::from_value(value) else { return };
                if let Some(GapBlocking::Hypotheses(ids)) = gap.blocking {
                    for id in ids {
                        self.add((Kind::Hypothesis, id), me.clone(), "blocked by", None);
                    }
                }
            }
            _ => {}
        }
    }

    fn add(
        &mut self,
        dependent: GraphNode,
        basis: GraphNode,
        relation: &'static str,
        strength: Option<f64>,
    ) {
        self.edges.push(DependencyEdge { dependent, basis, relation, strength });
    }

    fn find(&self, node: &GraphNode) -> Option<&KnownEntity> {
        self.known.iter().find(|known| known.kind() == node.0 && known.id() == node.1)
    }

    fn link(
        &self,
        node: &GraphNode,
        relation: &str,
        strength: Option<f64>,
        distance: usize,
    ) -> RelatedEntity {
        let found = self.find(node);
        let value = found.map(KnownEntity::value);
        let text = |name| value.and_then(|value: &Value| value.field(name)?.as_text());
        RelatedEntity {
            kind: node.0,
            id: node.1.clone(),
            text: value.map(|value| entity_title(node.0, value)).unwrap_or_default(),
            relation: relation.to_owned(),
            strength,
            status: text("status").map(str::to_owned),
            in_doubt: value.and_then(|value| value.field("in_doubt")?.as_bool()) == Some(true),
            distance,
        }
    }

    /// Returns the evidence that an entity rests on directly. Evidence that a belief names has the
    /// strength that it has for its own hypothesis.
    fn evidence(&self, me: &GraphNode) -> Vec<RelatedEntity> {
        let own = self.edges.iter().filter(|edge| edge.dependent == *me);
        let own = own.filter(|edge| edge.basis.0 == Kind::Evidence);
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        for edge in own.filter(|edge| seen.insert(edge.basis.clone())) {
            let stated = self.find(&edge.basis).and_then(|known| known.value().field("strength"));
            let strength = edge.strength.or_else(|| stated.and_then(Value::as_f64));
            found.push(self.link(&edge.basis, edge.relation, strength, 1));
        }
        found
    }

    /// Returns what an entity rests on, or what rests on it, nearest first. The evidence that the
    /// entity rests on directly is left out: see [`Self::evidence`].
    fn walk(&self, me: &GraphNode, way: WalkDirection) -> Vec<RelatedEntity> {
        let mut seen = BTreeSet::from([me.clone()]);
        let mut waiting = VecDeque::from([(me.clone(), 0)]);
        let mut found = Vec::new();
        while let Some((here, distance)) = waiting.pop_front() {
            for edge in &self.edges {
                let (near, far) = match way {
                    WalkDirection::Down => (&edge.dependent, &edge.basis),
                    WalkDirection::Up => (&edge.basis, &edge.dependent),
                };
                let is_own_evidence =
                    way == WalkDirection::Down && distance == 0 && far.0 == Kind::Evidence;
                if *near != here || is_own_evidence || !seen.insert(far.clone()) {
                    continue;
                }
                found.push(self.link(far, edge.relation, edge.strength, distance + 1));
                waiting.push_back((far.clone(), distance + 1));
            }
        }
        found
    }

    fn contradictions(&self, me: &GraphNode) -> Vec<RelatedEntity> {
        if me.0 != Kind::Belief {
            return Vec::new();
        }
        let others = self.contradictions.iter().filter_map(|(from, to, strength)| {
            let other = if *from == me.1 {
                to
            } else if *to == me.1 {
                from
            } else {
                return None;
            };
            Some(self.link(&(Kind::Belief, other.clone()), "contradicts", *strength, 1))
        });
        others.collect()
    }
}

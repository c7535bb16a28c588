//! Which claims of a state rest on which.

use super::state::StateAt;
use crate::error::Result;
use crate::model::claim::{
    Belief, Dependency, DependencyType, Evidence, Gap, GapBlocking, VocabularyWord,
};
use crate::model::{Key, Kind, Value};
use std::collections::BTreeMap;

/// The relation of a belief to the claim whose id is its source.
const SOURCE: &str = "source";

/// The relation of a claim to a claim that it rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimEdge {
    /// The claim that rests on the other one.
    pub dependent: Key,
    /// The claim that the other one rests on. It may be missing in the state.
    pub basis: Key,
    /// The relation in one or two words: `parent`, `evidence`, the type of a dependency.
    pub relation: &'static str,
    /// The strength of the evidence or of the dependency, if there is one.
    pub strength: Option<f64>,
}

/// The direction in which the edges of a [`ClaimGraph`] are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphDirection {
    /// To what a claim rests on.
    Down,
    /// To what rests on the claim.
    Up,
}

/// The claims of a state, and which of them rest on which.
///
/// A hypothesis rests on its parent, on its evidence, and on the gaps that block it. A belief rests
/// on the claims that its fields `hypothesis`, `evidence` and `source` name, and on other beliefs
/// through dependencies: see [`Dependency::rests_on`].
#[derive(Clone, Debug)]
pub struct ClaimGraph {
    claims: BTreeMap<Key, Value>,
    edges: Vec<ClaimEdge>,
    /// For each claim, the places in `edges` of the edges to what it rests on.
    down: BTreeMap<Key, Vec<usize>>,
    /// For each claim, the places in `edges` of the edges to what rests on it.
    up: BTreeMap<Key, Vec<usize>>,
}

impl ClaimGraph {
    /// Reads the claims of a state.
    pub fn read(state: &StateAt) -> Result<Self> {
        let mut found = Vec::new();
        for kind in Kind::claims() {
            let claims = state.claims_of(kind)?.into_iter();
            found.extend(claims.map(|(id, entry)| (Key::new(kind, id), entry.value)));
        }
        let mut edges = Vec::new();
        for (key, value) in &found {
            add_edges(key, value, &mut edges);
        }
        let claims: BTreeMap<Key, Value> = found.into_iter().collect();
        // A source is any text; if it is the id of a claim, the belief rests on that claim.
        edges.retain(|edge| edge.relation != SOURCE || claims.contains_key(&edge.basis));
        let mut down = BTreeMap::<Key, Vec<usize>>::new();
        let mut up = BTreeMap::<Key, Vec<usize>>::new();
        for (place, edge) in edges.iter().enumerate() {
            down.entry(edge.dependent.clone()).or_default().push(place);
            up.entry(edge.basis.clone()).or_default().push(place);
        }
        Ok(Self { claims, edges, down, up })
    }

    /// Returns the value of a claim, if it exists.
    #[must_use]
    pub fn claim(&self, key: &Key) -> Option<&Value> {
        self.claims.get(key)
    }

    /// Returns the claims that are one step away, each with its edge. A claim comes once for each
    /// of its edges. The order is that of the claims that state the edges: by kind, then by the
    /// time they were added.
    pub fn neighbours(
        &self,
        key: &Key,
        direction: GraphDirection,
    ) -> impl Iterator<Item = (&Key, &ClaimEdge)> {
        let places = match direction {
            GraphDirection::Down => &self.down,
            GraphDirection::Up => &self.up,
        };
        places.get(key).into_iter().flatten().filter_map(move |place| {
            let edge = self.edges.get(*place)?;
            let far = match direction {
                GraphDirection::Down => &edge.basis,
                GraphDirection::Up => &edge.dependent,
            };
            Some((far, edge))
        })
    }
}

/// Adds the edges that the fields of a claim state.
fn add_edges(key: &Key, value: &Value, edges: &mut Vec<ClaimEdge>) {
    let mut add = |dependent: Key, basis: Key, relation: &'static str, strength: Option<f64>| {
        edges.push(ClaimEdge { dependent, basis, relation, strength });
    };
    match key.kind {
        Kind::Hypothesis => {
            if let Some(parent) = value.field("parent").and_then(Value::as_text) {
                add(key.clone(), Key::new(Kind::Hypothesis, parent), "parent", None);
            }
        }
        Kind::Belief => {
            let Ok(belief) = Belief::from_value(value) else { return };
            if let Some(hypothesis) = belief.hypothesis {
                add(key.clone(), Key::new(Kind::Hypothesis, hypothesis), "hypothesis", None);
            }
            for evidence in belief.evidence.unwrap_or_default() {
                add(key.clone(), Key::new(Kind::Evidence, evidence), "evidence", None);
            }
            if let Some(source) = belief.source {
                for kind in [Kind::Hypothesis, Kind::Evidence] {
                    add(key.clone(), Key::new(kind, source.as_str()), SOURCE, None);
                }
            }
        }
        Kind::Evidence => {
            let Ok(evidence) = Evidence::from_value(value) else { return };
            if let Some(hypothesis) = evidence.hypothesis {
                let strength = evidence.strength.map(|strength| strength.value());
                add(Key::new(Kind::Hypothesis, hypothesis), key.clone(), "evidence", strength);
            }
        }
        Kind::Dependency => {
            let Ok(dependency) = Dependency::from_value(value) else { return };
            if let Some((dependent, basis)) = dependency.rests_on() {
                let of = dependency.dependency_type.unwrap_or(DependencyType::Requires);
                let strength = dependency.strength.map(|strength| strength.value());
                let belief = |id: &str| Key::new(Kind::Belief, id);
                add(belief(dependent), belief(basis), of.word(), strength);
            }
        }
        Kind::Gap => {
            let Ok(gap) = Gap::from_value(value) else { return };
            if let Some(GapBlocking::Hypotheses(ids)) = gap.blocking {
                for id in ids {
                    add(Key::new(Kind::Hypothesis, id), key.clone(), "blocked by", None);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;
    use crate::model::claim::Hypothesis;
    use crate::store::{NewSession, Store, WriteContext};

    #[test]
    fn a_belief_rests_on_the_claim_that_its_source_names() {
        let context = WriteContext::asked("test", Timestamp::default());
        let store = Store::in_memory().unwrap();
        let session = store.create_session(&context, NewSession::named("s")).unwrap();
        let write = session.write(&context).add("H1", Hypothesis::default());
        let write = write.add("named", Belief::default().source("H1"));
        write.add("said", Belief::default().source("the log")).commit().unwrap();
        let graph = ClaimGraph::read(&session.state(&session.head().unwrap()).unwrap()).unwrap();
        let below = |id: &str| {
            let belief = Key::new(Kind::Belief, id);
            let found = graph.neighbours(&belief, GraphDirection::Down);
            found.map(|(key, edge)| (key.to_string(), edge.relation)).collect::<Vec<_>>()
        };
        assert_eq!(below("named"), [("hypothesis H1".to_owned(), "source")]);
        assert!(below("said").is_empty());
        let hypothesis = Key::new(Kind::Hypothesis, "H1");
        let above = graph.neighbours(&hypothesis, GraphDirection::Up);
        let above: Vec<_> = above.map(|(key, edge)| (key.to_string(), edge.relation)).collect();
        assert_eq!(above, [("belief named".to_owned(), "source")]);
    }
}

//! The references of a claim to other claims.

use super::{Belief, Dependency, Evidence, Gap, GapBlocking, Hypothesis};
use crate::model::{Key, Kind, Value};

/// Returns the keys of the claims that a claim refers to, each once, sorted. These claims must
/// exist at the end of the revision that adds the reference. Facts, and values with an invalid
/// field, have no references.
#[must_use]
pub fn references(kind: Kind, value: &Value) -> Vec<Key> {
    // Most values have no references; then their fields need not be parsed.
    let mut names = value.as_map().into_iter().flat_map(|fields| fields.keys());
    if names.all(|name| referenced_kind(kind, name).is_none()) {
        return Vec::new();
    }
    let mut keys = unsorted_references(kind, value).unwrap_or_default();
    keys.sort();
    keys.dedup();
    keys
}

/// Returns the kind of the claims that a field refers to by id; `None` if the field refers to none.
#[must_use]
pub fn referenced_kind(kind: Kind, field: &str) -> Option<Kind> {
    Some(match (kind, field) {
        (Kind::Hypothesis, "parent")
        | (Kind::Gap, "blocking")
        | (Kind::Evidence | Kind::Belief, "hypothesis") => Kind::Hypothesis,
        (Kind::Belief, "evidence") => Kind::Evidence,
        (Kind::Dependency, "from" | "to") => Kind::Belief,
        _ => return None,
    })
}

fn unsorted_references(kind: Kind, value: &Value) -> Option<Vec<Key>> {
    let hypothesis = |id: String| Key::new(Kind::Hypothesis, id);
    Some(match kind {
        Kind::Hypothesis => {
            Hypothesis::from_value(value).ok()?.parent.into_iter().map(hypothesis).collect()
        }
        Kind::Evidence => {
            Evidence::from_value(value).ok()?.hypothesis.into_iter().map(hypothesis).collect()
        }
        Kind::Belief => {
            let belief = Belief::from_value(value).ok()?;
            let evidence = belief.evidence.unwrap_or_default();
            let evidence = evidence.into_iter().map(|id| Key::new(Kind::Evidence, id));
            belief.hypothesis.into_iter().map(hypothesis).chain(evidence).collect()
        }
        Kind::Dependency => {
            let Dependency { from, to, .. } = Dependency::from_value(value).ok()?;
            from.into_iter().chain(to).map(|id| Key::new(Kind::Belief, id)).collect()
        }
        Kind::Gap => match Gap::from_value(value).ok()?.blocking {
            Some(GapBlocking::Hypotheses(ids)) => ids.into_iter().map(hypothesis).collect(),
            Some(GapBlocking::All(_)) | None => Vec::new(),
        },
        _ => Vec::new(),
    })
}

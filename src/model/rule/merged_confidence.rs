//! The confidence of a hypothesis that two sides of a merge gathered evidence on.

use super::evidence::posterior;
use crate::model::claim::{Confidence, Strength};
use std::collections::{BTreeMap, BTreeSet};

/// Evidence explains a confidence if it leads to one that differs by less than this.
const TOLERANCE: f64 = 1e-9;

/// The confidence of a hypothesis, and the strengths of its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct WeighedHypothesis {
    /// The confidence of the hypothesis.
    pub confidence: Confidence,
    /// The strength of each piece of evidence that has one, by the id of the evidence.
    pub strengths: BTreeMap<String, Strength>,
}

impl WeighedHypothesis {
    /// Returns the confidence after the strengths of the evidence become `strengths`: the effect of
    /// each old strength is taken away, that of the new one added.
    fn moved(&self, strengths: &BTreeMap<String, Strength>) -> Confidence {
        let ids: BTreeSet<&String> = self.strengths.keys().chain(strengths.keys()).collect();
        ids.into_iter().fold(self.confidence, |confidence, id| {
            let (old, new) = (self.strengths.get(id), strengths.get(id));
            if old == new {
                return confidence;
            }
            let taken_away = old.and_then(|old| Strength::new(-old.value()));
            let applied = taken_away.into_iter().chain(new.copied());
            applied.fold(confidence, posterior)
        })
    }

    /// Returns whether the evidence that was added, removed or changed since `base` explains the
    /// confidence.
    fn follows_from(&self, base: &Self) -> bool {
        let expected = base.moved(&self.strengths);
        self.strengths != base.strengths
            && (expected.value() - self.confidence.value()).abs() < TOLERANCE
    }
}

/// Returns the confidence of a hypothesis whose confidence two sides changed, as if the evidence of
/// both had been added one after the other.
///
/// `None` if no evidence explains the change of either side, or if both changed the same piece of
/// evidence differently. If evidence explains the change of one side only, this evidence moves the
/// confidence that the other side set. Swapping the sides gives the same confidence.
#[must_use]
pub fn merged_confidence(
    base: &WeighedHypothesis,
    ours: &WeighedHypothesis,
    theirs: &WeighedHypothesis,
) -> Option<Confidence> {
    let sides = [base, ours, theirs];
    let ids: BTreeSet<&String> = sides.iter().flat_map(|side| side.strengths.keys()).collect();
    let mut merged = BTreeMap::new();
    for id in ids {
        let [old, our, their] = sides.map(|side| side.strengths.get(id));
        let strength = match (our == old, their == old) {
            (true, _) => their,
            (_, true) => our,
            _ if our == their => our,
            _ => return None,
        };
        merged.extend(strength.map(|strength| (id.clone(), *strength)));
    }
    match (ours.follows_from(base), theirs.follows_from(base)) {
        (true, true) => Some(base.moved(&merged)),
        (false, true) => Some(ours.moved(&merged)),
        (true, false) => Some(theirs.moved(&merged)),
        (false, false) => None,
    }
}

//! The confidence in each hypothesis over time, with the cause of each change.

use super::claim_item::{number, raw_text};
use crate::model::claim::{HypothesisStatus, VocabularyWord};
use crate::model::{ClaimEntry, EntryChange, Kind, Timestamp};
use crate::store::LogEntry;
use std::collections::{BTreeMap, HashMap};

/// The history of a hypothesis: its confidence and its status over time, on all branches.
#[derive(Clone, Debug, PartialEq)]
pub struct HypothesisPath {
    /// The id of the hypothesis.
    pub id: String,
    /// What it says.
    pub description: String,
    /// When it was stated; in a story with a cut, when it first changed after the cut.
    pub stated_at: Timestamp,
    /// Its changes, oldest first. Without a cut, the first one stated it.
    pub steps: Vec<HypothesisStep>,
}

/// A change of a hypothesis.
#[derive(Clone, Debug, PartialEq)]
pub struct HypothesisStep {
    /// When it changed.
    pub at: Timestamp,
    /// The number of the revision.
    pub sequence: u64,
    /// The branch on which it changed.
    pub branch: String,
    /// The confidence on that branch before; `None` if there was none.
    pub before: Option<f64>,
    /// The confidence on that branch afterwards.
    pub confidence: Option<f64>,
    /// The new status, if this change changed it.
    pub status: Option<HypothesisStatus>,
    /// The new reason, if this change changed it.
    pub reason: Option<String>,
    /// The evidence about it that the same revision added.
    pub evidence: Vec<StepEvidence>,
}

/// Evidence about a hypothesis that a revision added.
#[derive(Clone, Debug, PartialEq)]
pub struct StepEvidence {
    /// The id of the evidence.
    pub id: String,
    /// From -1 (against) to 1 (for).
    pub strength: Option<f64>,
    /// What it says.
    pub description: String,
}

/// Collects the paths of hypotheses while revisions are read.
#[derive(Debug, Default)]
pub(super) struct HypothesisCollector {
    paths: Vec<HypothesisPath>,
    /// The place of each hypothesis in `paths`, by its id.
    places: HashMap<String, usize>,
}

/// The evidence that a revision added, by its hypothesis.
type NewEvidence<'a> = BTreeMap<&'a str, Vec<StepEvidence>>;

impl HypothesisCollector {
    pub(super) fn add(&mut self, revision: &LogEntry, changes: &[EntryChange]) {
        let mut evidence = new_evidence(changes);
        for change in changes.iter().filter(|change| change.key.kind == Kind::Hypothesis) {
            let Some(new) = &change.new else { continue };
            let id = &change.key.id;
            let found = evidence.remove(id.as_str()).unwrap_or_default();
            let step = step(revision, change, new, found);
            let description = raw_text(new, "description").unwrap_or_default().to_owned();
            let known = self.places.get(id).and_then(|place| self.paths.get_mut(*place));
            let Some(path) = known else {
                self.places.insert(id.clone(), self.paths.len());
                let (id, stated_at, steps) = (id.clone(), revision.time, vec![step]);
                self.paths.push(HypothesisPath { id, description, stated_at, steps });
                continue;
            };
            path.description = description;
            let is_change = step.status.is_some() || step.before != step.confidence;
            if is_change || !step.evidence.is_empty() {
                path.steps.push(step);
            }
        }
        // The remaining evidence came without a change of its hypothesis.
        for (id, found) in evidence {
            let place = self.places.get(id);
            if let Some(path) = place.and_then(|place| self.paths.get_mut(*place)) {
                let on_branch = |step: &&HypothesisStep| step.branch == revision.branch;
                let last = path.steps.iter().rfind(on_branch).or(path.steps.last());
                let confidence = last.and_then(|step| step.confidence);
                path.steps.push(HypothesisStep {
                    at: revision.time,
                    sequence: revision.sequence,
                    branch: revision.branch.clone(),
                    before: confidence,
                    confidence,
                    status: None,
                    reason: None,
                    evidence: found,
                });
            }
        }
    }

    /// Returns the paths, in the order in which the hypotheses first changed.
    pub(super) fn finish(self) -> Vec<HypothesisPath> {
        self.paths
    }
}

fn new_evidence(changes: &[EntryChange]) -> NewEvidence<'_> {
    let mut found = NewEvidence::new();
    for change in changes.iter().filter(|change| change.key.kind == Kind::Evidence) {
        let (None, Some(new)) = (&change.old, &change.new) else { continue };
        let Some(about) = raw_text(new, "hypothesis") else { continue };
        found.entry(about).or_default().push(StepEvidence {
            id: change.key.id.clone(),
            strength: number(new, "strength"),
            description: raw_text(new, "description").unwrap_or_default().to_owned(),
        });
    }
    found
}

fn step(
    revision: &LogEntry,
    change: &EntryChange,
    new: &ClaimEntry,
    evidence: Vec<StepEvidence>,
) -> HypothesisStep {
    let old = change.old.as_ref();
    let changed = |name: &str| {
        let now = raw_text(new, name)?;
        (old.and_then(|old| raw_text(old, name)) != Some(now)).then_some(now)
    };
    HypothesisStep {
        at: revision.time,
        sequence: revision.sequence,
        branch: revision.branch.clone(),
        before: old.and_then(|old| number(old, "confidence")),
        confidence: number(new, "confidence"),
        status: changed("status").and_then(HypothesisStatus::from_word),
        reason: changed("reason").map(str::to_owned),
        evidence,
    }
}

//! The confidence in each hypothesis over time, with the cause of each change.

use crate::model::claim::{HypothesisStatus, VocabularyWord};
use crate::model::{ClaimEntry, EntryChange, Kind, Timestamp, Value};
use crate::store::LogEntry;

/// How a hypothesis fared: its confidence and its status over time, on all branches.
#[derive(Clone, Debug, PartialEq)]
pub struct IdeaPath {
    /// The id of the hypothesis.
    pub id: String,
    /// What it says.
    pub description: String,
    /// When it was stated.
    pub stated_at: Timestamp,
    /// Its changes, oldest first. The first one stated it.
    pub steps: Vec<IdeaStep>,
}

/// A change of a hypothesis.
#[derive(Clone, Debug, PartialEq)]
pub struct IdeaStep {
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
    /// The status, if this change set another one.
    pub status: Option<HypothesisStatus>,
    /// Why, if this change says so.
    pub reason: Option<String>,
    /// The evidence about it that the same revision added.
    pub evidence: Vec<StepEvidence>,
}

/// Evidence that came with a change of a hypothesis.
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
pub(super) struct IdeaCollector {
    paths: Vec<IdeaPath>,
}

impl IdeaCollector {
    /// Adds the changes of the next revision.
    pub(super) fn add(&mut self, revision: &LogEntry, changes: &[EntryChange]) {
        for change in changes.iter().filter(|change| change.key.kind == Kind::Hypothesis) {
            let Some(new) = &change.new else { continue };
            let text = |name: &str| new.value.field(name)?.as_text().map(str::to_owned);
            let id = &change.key.id;
            let step = step(revision, changes, change, new);
            let is_change = step.status.is_some() || step.before != step.confidence;
            match self.paths.iter_mut().find(|path| path.id == *id) {
                Some(path) => {
                    path.description = text("description").unwrap_or_default();
                    if is_change || !step.evidence.is_empty() {
                        path.steps.push(step);
                    }
                }
                None => self.paths.push(IdeaPath {
                    id: id.clone(),
                    description: text("description").unwrap_or_default(),
                    stated_at: revision.time,
                    steps: vec![step],
                }),
            }
        }
        self.add_evidence(revision, changes);
    }

    /// Adds evidence that came without a change of its hypothesis.
    fn add_evidence(&mut self, revision: &LogEntry, changes: &[EntryChange]) {
        for change in changes.iter().filter(|change| change.key.kind == Kind::Evidence) {
            let (None, Some(new)) = (&change.old, &change.new) else { continue };
            let about = new.value.field("hypothesis").and_then(Value::as_text);
            let path = self.paths.iter_mut().find(|path| Some(path.id.as_str()) == about);
            let Some(path) = path else { continue };
            let is_known = path.steps.iter().any(|step| {
                step.sequence == revision.sequence
                    && step.evidence.iter().any(|known| known.id == change.key.id)
            });
            if is_known {
                continue;
            }
            let on_branch = |step: &&IdeaStep| step.branch == revision.branch;
            let last = path.steps.iter().rfind(on_branch).or(path.steps.last());
            let confidence = last.and_then(|step| step.confidence);
            path.steps.push(IdeaStep {
                at: revision.time,
                sequence: revision.sequence,
                branch: revision.branch.clone(),
                before: confidence,
                confidence,
                status: None,
                reason: None,
                evidence: vec![step_evidence(change)],
            });
        }
    }

    /// Returns the paths, in the order in which the hypotheses were stated.
    pub(super) fn finish(self) -> Vec<IdeaPath> {
        self.paths
    }
}

fn step(
    revision: &LogEntry,
    changes: &[EntryChange],
    change: &EntryChange,
    new: &ClaimEntry,
) -> IdeaStep {
    let text = |entry: Option<&ClaimEntry>, name: &str| {
        entry?.value.field(name)?.as_text().map(str::to_owned)
    };
    let number = |entry: Option<&ClaimEntry>, name: &str| entry?.value.field(name)?.as_f64();
    let old = change.old.as_ref();
    let changed = |name: &str| {
        let now = text(Some(new), name)?;
        (text(old, name).as_ref() != Some(&now)).then_some(now)
    };
    let about = |other: &&EntryChange| {
        other.key.kind == Kind::Evidence
            && other.old.is_none()
            && text(other.new.as_ref(), "hypothesis").as_ref() == Some(&change.key.id)
    };
    let evidence = changes.iter().filter(about).map(step_evidence);
    IdeaStep {
        at: revision.time,
        sequence: revision.sequence,
        branch: revision.branch.clone(),
        before: number(old, "confidence"),
        confidence: number(Some(new), "confidence"),
        status: changed("status").as_deref().and_then(HypothesisStatus::from_word),
        reason: changed("reason"),
        evidence: evidence.collect(),
    }
}

fn step_evidence(change: &EntryChange) -> StepEvidence {
    let field = |name: &str| change.new.as_ref()?.value.field(name);
    let description = field("description").and_then(Value::as_text);
    StepEvidence {
        id: change.key.id.clone(),
        strength: field("strength").and_then(Value::as_f64),
        description: description.unwrap_or_default().to_owned(),
    }
}

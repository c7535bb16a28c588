//! Computes the confidence of hypotheses over time from the story.

use crate::answer::{ConfidencePoint, ConfidenceSeries};
use forge_store::error::{ErrorKind, Result};
use forge_store::model::claim::{Hypothesis, HypothesisStatus, VocabularyWord};
use forge_store::model::{ClaimEntry, Kind};
use forge_store::store::{BranchTimeline, HistoryRank, Session, StateAt};
use forge_store::story::{HypothesisPath, HypothesisStep, Story, StoryCut};
use std::collections::BTreeMap;

/// Maximum number of hypotheses. More lines cannot be distinguished.
const MAX_SERIES: usize = 52;
/// The confidence of a hypothesis that has none.
const NEUTRAL: f64 = 0.5;

/// Returns the confidence over time of the last [`MAX_SERIES`] hypotheses, on the branch of the
/// head, and the number of all hypotheses. If the story begins later than the session, the lines
/// begin with the story.
pub(super) fn series(
    story: &Story,
    session: &Session,
    head: &StateAt,
) -> Result<(Vec<ConfidenceSeries>, usize)> {
    let (lines, branch) = (session.branch_lines()?, head.current_branch()?);
    let lineage = Lineage::new(&lines, &branch);
    let before = match story.cut {
        Some(cut) => hypotheses_before(session, cut)?,
        None => BTreeMap::new(),
    };
    let paths: BTreeMap<&str, &HypothesisPath> =
        story.hypotheses.iter().map(|path| (path.id.as_str(), path)).collect();
    let claims = head.claims_of(Kind::Hypothesis)?;
    let count = claims.len();
    let mut series = Vec::new();
    for (id, entry) in claims.into_iter().rev().take(MAX_SERIES) {
        let held = Hypothesis::from_value(&entry.value).unwrap_or_default();
        let mut points = Vec::new();
        if let Some(cut) = story.cut {
            let known = before.get(&id);
            let unchanged = !paths.contains_key(id.as_str());
            points.extend(known.or(unchanged.then_some(&held)).map(|held| ConfidencePoint {
                at: cut.at,
                sequence: cut.sequence,
                value: held.confidence.map_or(NEUTRAL, |confidence| confidence.value()),
                status: word(held.status),
            }));
        }
        if let Some(path) = paths.get(id.as_str()) {
            add_points(path, &lineage, &mut points);
        }
        series.push(ConfidenceSeries {
            title: held.description.unwrap_or_default(),
            status: word(held.status),
            id,
            points,
        });
    }
    series.reverse();
    Ok((series, count))
}

/// Adds the changes of a hypothesis that are in the history of the head.
fn add_points(path: &HypothesisPath, lineage: &Lineage<'_>, points: &mut Vec<ConfidencePoint>) {
    for step in path.steps.iter().filter(|step| lineage.contains(step)) {
        let status = match (step.status, points.last()) {
            (Some(status), _) => status.word().to_owned(),
            (None, Some(last)) => last.status.clone(),
            (None, None) => word(None),
        };
        let value = step.confidence.unwrap_or(NEUTRAL);
        // A step may change nothing here, such as evidence alone.
        let is_change =
            points.last().is_none_or(|last| last.value != value || last.status != status);
        if is_change {
            points.push(ConfidencePoint { at: step.at, sequence: step.sequence, value, status });
        }
    }
}

fn word(status: Option<HypothesisStatus>) -> String {
    status.unwrap_or(HypothesisStatus::Active).word().to_owned()
}

/// Returns the hypotheses as they were before the story begins.
fn hypotheses_before(session: &Session, cut: StoryCut) -> Result<BTreeMap<String, Hypothesis>> {
    let moment = match session.at_sequence(cut.sequence.saturating_sub(1)) {
        Ok(moment) => moment,
        // Pruning removed the older revisions.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let claims = session.state(&moment)?.claims_of(Kind::Hypothesis)?.into_iter();
    let read = |(id, entry): (String, ClaimEntry)| {
        Hypothesis::from_value(&entry.value).ok().map(|held| (id, held))
    };
    Ok(claims.filter_map(read).collect())
}

/// The revisions in the history of the head of a branch, along first parents.
struct Lineage<'a> {
    /// The branches, with the number of the last revision of each that is in the history.
    branches: BTreeMap<&'a str, u64>,
}

impl<'a> Lineage<'a> {
    fn new(lines: &'a [BranchTimeline], branch: &'a str) -> Self {
        let mut branches = BTreeMap::new();
        let mut next = Some((branch, u64::MAX));
        while let Some((name, last)) = next {
            if branches.insert(name, last).is_some() {
                break;
            }
            let line = lines.iter().find(|line| line.name == name);
            next = line.and_then(|line| line.base.as_ref()).and_then(|(base, place)| {
                match place.as_ref()?.rank {
                    HistoryRank::Sequence(sequence) => Some((base.as_str(), sequence.min(last))),
                    HistoryRank::Fact { .. } => None,
                }
            });
        }
        Self { branches }
    }

    fn contains(&self, step: &HypothesisStep) -> bool {
        self.branches.get(step.branch.as_str()).is_some_and(|last| step.sequence <= *last)
    }
}

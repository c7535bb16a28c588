//! The hypotheses with their evidence, the beliefs and the questions.

use super::fact_texts::FactTexts;
use super::{BeliefRow, EvidenceRow, GapRow, GivenUpBranch, HypothesisMove, HypothesisRow};
use crate::page_text::PageText;
use forge_store::error::Result;
use forge_store::model::claim::{
    Belief, Criticality, Dependency, Evidence, Gap, GapBlocking, GapStatus, Hypothesis,
    HypothesisStatus, VocabularyWord,
};
use forge_store::model::{BranchStatus, Kind};
use forge_store::store::{BranchSummary, StateAt};
use forge_store::story::{HypothesisPath, StepEvidence};
use std::collections::HashMap;

/// The numbers of the story's lines, by the number of a revision and the id of a hypothesis.
pub(super) type AnchorsByRevision = HashMap<(u64, String), usize>;

/// Returns the hypotheses, including those that only another branch has.
pub(super) fn hypotheses(
    texts: &FactTexts<'_>,
    state: &StateAt,
    anchors: &AnchorsByRevision,
) -> Result<Vec<HypothesisRow>> {
    let mut evidence: HashMap<String, Vec<EvidenceRow>> = HashMap::new();
    for (id, entry) in state.claims_of(Kind::Evidence)? {
        let Ok(found) = Evidence::from_value(&entry.value) else { continue };
        let Some(about) = found.hypothesis else { continue };
        evidence.entry(about).or_default().push(EvidenceRow {
            id: texts.clean(&id),
            strength: found.strength.map(|strength| strength.value()),
            text: texts.clean(&found.description.unwrap_or_default()),
            source: found.source.as_deref().map(|source| texts.clean(source)),
        });
    }
    let mut hypotheses = Vec::new();
    for path in &texts.story.hypotheses {
        let held = state.claim(Kind::Hypothesis, &path.id)?;
        let held = held.and_then(|value| Hypothesis::from_value(&value).ok());
        let mut rows = evidence.remove(&path.id).unwrap_or_default();
        // Evidence on other branches changed the confidence there, so it is shown too.
        for found in path.steps.iter().flat_map(|step| &step.evidence) {
            let row = step_evidence(texts, found);
            if !rows.iter().any(|known| known.id == row.id) {
                rows.push(row);
            }
        }
        let strength = |row: &EvidenceRow| row.strength.unwrap_or(0.0).abs();
        rows.sort_by(|a, b| strength(b).total_cmp(&strength(a)).then_with(|| a.id.cmp(&b.id)));
        hypotheses.push(hypothesis(texts, path, held, rows, anchors));
    }
    Ok(hypotheses)
}

fn step_evidence(texts: &FactTexts<'_>, found: &StepEvidence) -> EvidenceRow {
    EvidenceRow {
        id: texts.clean(&found.id),
        strength: found.strength,
        text: texts.clean(&found.description),
        source: None,
    }
}

fn hypothesis(
    texts: &FactTexts<'_>,
    path: &HypothesisPath,
    held: Option<Hypothesis>,
    evidence: Vec<EvidenceRow>,
    anchors: &AnchorsByRevision,
) -> HypothesisRow {
    let moves = path.steps.iter().map(|step| HypothesisMove {
        at: step.at,
        branch: (step.branch != "main").then(|| texts.clean(&step.branch)),
        before: step.before,
        confidence: step.confidence,
        status: step.status,
        reason: step.reason.as_deref().map(|reason| texts.clean(reason)),
        evidence: step.evidence.iter().map(|found| step_evidence(texts, found)).collect(),
        anchor: anchors.get(&(step.sequence, path.id.clone())).copied(),
    });
    let last = path.steps.last();
    let is_held = held.is_some();
    let held = held.unwrap_or_default();
    let status = is_held.then(|| held.status.unwrap_or(HypothesisStatus::Active));
    let settled =
        path.steps.iter().skip(1).rfind(|step| step.status.is_some() && step.status == status);
    HypothesisRow {
        id: texts.clean(&path.id),
        text: texts.clean(held.description.as_deref().unwrap_or(&path.description)),
        status,
        confidence: match is_held {
            true => held.confidence.map(|confidence| confidence.value()),
            false => last.and_then(|step| step.confidence),
        },
        reason: held.reason.as_deref().map(|reason| texts.clean(reason)),
        stated_at: path.stated_at,
        settled_at: settled.map(|step| step.at),
        steps: moves.collect(),
        evidence,
    }
}

/// Returns the beliefs, the most confident first. A missing confidence counts as 0.5.
pub(super) fn beliefs(texts: &FactTexts<'_>, state: &StateAt) -> Result<Vec<BeliefRow>> {
    let mut rests_on: HashMap<String, Vec<PageText>> = HashMap::new();
    for (_, entry) in state.claims_of(Kind::Dependency)? {
        let Ok(found) = Dependency::from_value(&entry.value) else { continue };
        if let Some((upper, lower)) = found.rests_on() {
            rests_on.entry(upper.to_owned()).or_default().push(texts.clean(lower));
        }
    }
    let mut beliefs = Vec::new();
    for (id, entry) in state.claims_of(Kind::Belief)? {
        let Ok(found) = Belief::from_value(&entry.value) else { continue };
        let doubt = found.doubt_reason.as_deref().unwrap_or("what it rests on is in doubt");
        beliefs.push(BeliefRow {
            rests_on: rests_on.remove(&id).unwrap_or_default(),
            id: texts.clean(&id),
            confidence: found.confidence.map(|confidence| confidence.value()),
            text: texts.clean(found.description.as_deref().unwrap_or_default()),
            doubt: (found.in_doubt == Some(true)).then(|| texts.clean(doubt)),
        });
    }
    let sure = |row: &BeliefRow| row.confidence.unwrap_or(0.5);
    beliefs.sort_by(|a, b| sure(b).total_cmp(&sure(a)));
    Ok(beliefs)
}

/// Returns the questions of the branch: the open ones first, the most critical first.
pub(super) fn gaps(
    texts: &FactTexts<'_>,
    state: &StateAt,
    answers: &HashMap<String, (String, String)>,
) -> Result<Vec<GapRow>> {
    let mut gaps = Vec::new();
    for (id, entry) in state.claims_of(Kind::Gap)? {
        let Ok(found) = Gap::from_value(&entry.value) else { continue };
        let status = found.status.unwrap_or(GapStatus::Open);
        let is_open = status.is_open();
        let criticality = found.criticality.unwrap_or(Criticality::Medium);
        let blocks = match &found.blocking {
            Some(GapBlocking::All(true)) => Some(texts.clean("everything")),
            Some(GapBlocking::Hypotheses(ids)) if !ids.is_empty() => {
                Some(texts.clean(&ids.join(", ")))
            }
            _ => None,
        };
        let elsewhere = answers.get(&id).filter(|_| is_open);
        let row = GapRow {
            id: texts.clean(&id),
            text: texts.clean(found.description.as_deref().unwrap_or_default()),
            criticality: criticality.word(),
            is_open,
            status: status.word(),
            since: entry.added_at,
            blocks,
            answer: found.resolution.as_deref().map(|answer| texts.clean(answer)),
            answered_elsewhere: elsewhere
                .map(|(branch, answer)| (texts.clean(branch), texts.clean(answer))),
        };
        gaps.push((criticality, row));
    }
    gaps.sort_by_key(|(criticality, row)| (!row.is_open, std::cmp::Reverse(*criticality)));
    Ok(gaps.into_iter().map(|(_, row)| row).collect())
}

pub(super) fn given_up(texts: &FactTexts<'_>, branches: &[BranchSummary]) -> Vec<GivenUpBranch> {
    let abandoned = branches.iter().filter(|branch| branch.status == BranchStatus::Abandoned);
    let part = |branch: &BranchSummary| GivenUpBranch {
        name: texts.clean(&branch.name),
        hypothesis: branch.metadata.hypothesis.as_deref().map(|id| texts.clean(id)),
        approach: branch.metadata.approach.as_deref().map(|text| texts.clean(text)),
        results: branch.metadata.results.iter().map(|text| texts.clean(text)).collect(),
    };
    abandoned.map(part).collect()
}

//! The lines of a brief about claims.

use super::brief_line::{BriefLine, cut, entity_title, line};
use crate::error::Result;
use crate::model::claim::{Belief, Criticality, Gap, Hypothesis, HypothesisStatus, VocabularyWord};
use crate::model::{ClaimEntry, Kind, Value};
use crate::store::state::StateAt;

/// Maximum number of beliefs, of notes and of pieces of evidence in a brief: the last ones.
const CLAIMS: usize = 5;

/// The hypotheses of a moment by status, without archived ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HypothesisLines {
    /// Confirmed hypotheses.
    pub confirmed: Vec<BriefLine>,
    /// Rejected hypotheses.
    pub rejected: Vec<BriefLine>,
    /// Hypotheses that are active or under test, the most probable first.
    pub active: Vec<BriefLine>,
    /// The ids of each confirmed hypothesis that has a parent, and of its parent.
    pub(super) settled_parents: Vec<(String, String)>,
}

impl StateAt {
    /// Returns the hypotheses that are not archived.
    pub fn hypothesis_lines(&self) -> Result<HypothesisLines> {
        let mut lines = HypothesisLines::default();
        for (id, entry) in self.claims_of(Kind::Hypothesis)? {
            let Ok(found) = Hypothesis::from_value(&entry.value) else { continue };
            let status = found.status.unwrap_or(HypothesisStatus::Active);
            if let (HypothesisStatus::Confirmed, Some(parent)) = (status, &found.parent) {
                lines.settled_parents.push((id.clone(), parent.clone()));
            }
            let list = match status {
                HypothesisStatus::Confirmed => &mut lines.confirmed,
                HypothesisStatus::Rejected => &mut lines.rejected,
                HypothesisStatus::Active | HypothesisStatus::UnderTest => &mut lines.active,
                HypothesisStatus::Archived => continue,
            };
            // A hypothesis that is open again may still have the reason of its earlier decision.
            let is_settled =
                matches!(status, HypothesisStatus::Confirmed | HypothesisStatus::Rejected);
            let reason = found.reason.as_deref().filter(|_| is_settled);
            list.push(BriefLine {
                word: Some(status.word()),
                confidence: found.confidence.map(|confidence| confidence.value()),
                reason: reason.map(cut),
                ..line(Kind::Hypothesis, id, found.description.as_deref(), entry.added_at)
            });
        }
        let sureness = |line: &BriefLine| line.confidence.unwrap_or(crate::model::rule::PRIOR);
        lines.active.sort_by(|a, b| sureness(b).total_cmp(&sureness(a)));
        Ok(lines)
    }

    /// Returns the beliefs that are in doubt.
    pub(super) fn doubted(&self) -> Result<Vec<BriefLine>> {
        let mut lines = Vec::new();
        for (id, entry) in self.claims_of(Kind::Belief)? {
            let Ok(found) = Belief::from_value(&entry.value) else { continue };
            if found.in_doubt == Some(true) {
                lines.push(BriefLine {
                    confidence: found.confidence.map(|confidence| confidence.value()),
                    reason: found.doubt_reason.as_deref().map(cut),
                    ..line(Kind::Belief, id, found.description.as_deref(), entry.added_at)
                });
            }
        }
        Ok(lines)
    }

    /// Returns the open gaps, the most critical first.
    pub fn open_gaps(&self) -> Result<Vec<BriefLine>> {
        let mut lines = Vec::new();
        for (id, entry) in self.claims_of(Kind::Gap)? {
            let Ok(found) = Gap::from_value(&entry.value) else { continue };
            if found.is_open() {
                let criticality = found.criticality.unwrap_or(Criticality::Medium);
                let line = BriefLine {
                    word: Some(criticality.word()),
                    ..line(Kind::Gap, id, found.description.as_deref(), entry.added_at)
                };
                lines.push((criticality, line));
            }
        }
        lines.sort_by_key(|(criticality, _)| std::cmp::Reverse(*criticality));
        Ok(lines.into_iter().map(|(_, line)| line).collect())
    }
}

/// Returns the lines of the last of these claims, the latest first. `claims` must be sorted by
/// time.
pub(super) fn last_claims(kind: Kind, claims: Vec<(String, ClaimEntry)>) -> Vec<BriefLine> {
    let last = claims.into_iter().rev().take(CLAIMS);
    let lines = last.map(|(id, entry)| {
        let number = |name: &str| entry.value.field(name).and_then(Value::as_f64);
        let about = entry.value.field("hypothesis").and_then(Value::as_text);
        let about = about.filter(|_| kind == Kind::Evidence);
        let strength = number("strength").map(|strength| format!(" {strength:+.2}"));
        BriefLine {
            confidence: number("confidence"),
            reason: about.map(|about| format!("{about}{}", strength.unwrap_or_default())),
            ..line(kind, id, Some(&entity_title(kind, &entry.value)), entry.added_at)
        }
    });
    lines.collect()
}

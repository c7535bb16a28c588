//! Confirming and rejecting hypotheses.

use super::{
    ClaimLookup, RuleError, RuleOutcome, dependencies, find, in_doubt, sorted, text, with,
};
use crate::model::claim::HypothesisStatus;
use crate::model::{AutoTrigger, Key, Kind, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Confirms a hypothesis: sets status and reason only. Without a reason, the reason of the previous
/// status is removed.
///
/// Trigger: [`AutoTrigger::HypothesisStatusChange`], unless it was already confirmed. A confirmed
/// special case of a rejected hypothesis is reported as a contradiction.
///
/// # Errors
/// [`RuleError::NotFound`].
pub fn confirm_hypothesis(
    claims: &impl ClaimLookup,
    id: &str,
    reason: Option<&str>,
) -> Result<RuleOutcome, RuleError> {
    let value = find(claims, Kind::Hypothesis, id)?;
    let contradiction = text(&value, "parent")
        .filter(|parent| {
            let parent = claims.claim(&Key::new(Kind::Hypothesis, *parent));
            parent.is_some_and(|parent| text(&parent, "status") == Some("rejected"))
        })
        .map(|parent| format!("hypothesis {id} is confirmed and its parent {parent} is rejected"));
    let status_changes = text(&value, "status") != Some("confirmed");
    Ok(RuleOutcome {
        changes: decided(id, &value, "confirmed", reason).into_iter().collect(),
        trigger: status_changes.then_some(AutoTrigger::HypothesisStatusChange),
        tag: status_changes.then_some("hypothesis_confirmed"),
        contradiction,
        ..RuleOutcome::default()
    })
}

/// Rejects a hypothesis and all its descendants that are not already rejected or archived, and puts
/// in doubt the beliefs that rest on the rejected hypotheses, at any distance. No confidence
/// changes. A belief already in doubt keeps its reason. A second rejection for the same reason
/// changes nothing.
///
/// Trigger: [`AutoTrigger::HypothesisStatusChange`], unless it was already rejected.
///
/// # Errors
/// [`RuleError::NotFound`].
pub fn reject_hypothesis(
    claims: &impl ClaimLookup,
    id: &str,
    reason: Option<&str>,
) -> Result<RuleOutcome, RuleError> {
    let value = find(claims, Kind::Hypothesis, id)?;
    let mut changes: Vec<_> = decided(id, &value, "rejected", reason).into_iter().collect();
    let mut rejected = BTreeSet::from([id.to_owned()]);
    for (child, parent, value) in descendants(claims, id) {
        let status = text(&value, "status");
        if matches!(status, Some("rejected" | "archived")) {
            continue;
        }
        let why = format!("parent {parent} was rejected");
        changes.extend(decided(&child, &value, "rejected", Some(&why)));
        rejected.insert(child);
    }
    changes.extend(beliefs_to_doubt(claims, &rejected));
    let status_changes = text(&value, "status") != Some("rejected");
    Ok(RuleOutcome {
        changes: sorted(changes),
        trigger: status_changes.then_some(AutoTrigger::HypothesisStatusChange),
        tag: status_changes.then_some("hypothesis_rejected"),
        ..RuleOutcome::default()
    })
}

/// Returns the hypothesis with this status and reason; `None` if nothing changes.
fn decided(id: &str, value: &Value, status: &str, reason: Option<&str>) -> Option<(Key, Value)> {
    debug_assert!(status.parse::<HypothesisStatus>().is_ok());
    // The reason of an earlier, different decision does not apply.
    let other = text(value, "status") != Some(status);
    let reason = reason.map(Value::from).or(other.then_some(Value::Null));
    let value = with(value, [("status", Some(status.into())), ("reason", reason)])?;
    Some((Key::new(Kind::Hypothesis, id), value.without_nulls()))
}

/// Returns all descendants of a hypothesis, each once, with its parent; parents before children,
/// siblings by id.
fn descendants(claims: &impl ClaimLookup, id: &str) -> Vec<(String, String, Value)> {
    let mut children: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    for (child, value) in claims.all(Kind::Hypothesis) {
        if let Some(parent) = text(&value, "parent").map(str::to_owned) {
            children.entry(parent).or_default().insert(child, value);
        }
    }
    let mut seen = BTreeSet::from([id.to_owned()]);
    let mut waiting = VecDeque::from([id.to_owned()]);
    let mut found = Vec::new();
    while let Some(parent) = waiting.pop_front() {
        for (child, value) in children.remove(&parent).unwrap_or_default() {
            // Imported claims may contain a cycle of parents.
            if seen.insert(child.clone()) {
                waiting.push_back(child.clone());
                found.push((child, parent.clone(), value));
            }
        }
    }
    found
}

/// Returns the beliefs to put in doubt when these hypotheses are rejected, with their new values.
fn beliefs_to_doubt(claims: &impl ClaimLookup, rejected: &BTreeSet<String>) -> Vec<(Key, Value)> {
    // Evidence against a rejected hypothesis stays valid.
    let mut evidence_for_rejected = BTreeMap::new();
    for (id, value) in claims.all(Kind::Evidence) {
        let against = value.field("strength").and_then(Value::as_f64).is_some_and(|s| s < 0.0);
        if let Some(hypothesis) = text(&value, "hypothesis").filter(|h| rejected.contains(*h))
            && !against
        {
            evidence_for_rejected.insert(id, hypothesis.to_owned());
        }
    }
    let mut causes = BTreeMap::new();
    for (id, value) in claims.all(Kind::Belief) {
        if let Some(ground) = rejected_support(&value, rejected, &evidence_for_rejected) {
            causes.insert(id, format!("hypothesis {ground} was rejected"));
        }
    }
    spread_doubt(claims, causes)
}

/// Returns the beliefs to put in doubt, with their new values: those that have a cause, and those
/// that rest on them at any distance. `causes` has the cause of a belief by the id of the belief.
pub(super) fn spread_doubt(
    claims: &impl ClaimLookup,
    causes: BTreeMap<String, String>,
) -> Vec<(Key, Value)> {
    let beliefs: BTreeMap<_, _> = claims.all(Kind::Belief).into_iter().collect();
    let mut waiting: VecDeque<(String, String)> =
        causes.iter().map(|(id, cause)| (id.clone(), cause.clone())).collect();
    let mut reasons = causes;
    let mut resting: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for dependency in dependencies(claims) {
        if let Some((rests, ground)) = dependency.rests_on() {
            resting.entry(ground.to_owned()).or_default().insert(rests.to_owned());
        }
    }
    while let Some((ground, cause)) = waiting.pop_front() {
        for id in resting.remove(&ground).unwrap_or_default() {
            if !reasons.contains_key(&id) {
                reasons.insert(id.clone(), format!("rests on belief {ground}: {cause}"));
                waiting.push_back((id, cause.clone()));
            }
        }
    }
    let put_in_doubt = |(id, reason): (String, String)| {
        let value = beliefs.get(&id).filter(|value| !in_doubt(value))?;
        let fields = [("in_doubt", Some(true.into())), ("doubt_reason", Some(reason.into()))];
        Some((Key::new(Kind::Belief, id), with(value, fields)?))
    };
    reasons.into_iter().filter_map(put_in_doubt).collect()
}

/// Returns the rejected hypothesis that a belief rests on directly or through evidence for it; of
/// several, the first by id. `evidence_for_rejected` has the hypothesis by the id of the evidence.
fn rejected_support(
    belief: &Value,
    rejected: &BTreeSet<String>,
    evidence_for_rejected: &BTreeMap<String, String>,
) -> Option<String> {
    let hypothesis = text(belief, "hypothesis");
    let source = text(belief, "source");
    let evidence = belief.field("evidence").and_then(Value::as_list).unwrap_or_default();
    let by_name = hypothesis.into_iter().chain(source).filter_map(|id| rejected.get(id));
    let evidence = evidence.iter().filter_map(Value::as_text).chain(source);
    let by_evidence = evidence.filter_map(|id| evidence_for_rejected.get(id));
    by_name.chain(by_evidence).min().cloned()
}

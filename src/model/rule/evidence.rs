//! The effect of evidence on confidence.

use super::retraction::doubt_without_evidence;
use super::{ClaimLookup, RuleError, RuleOutcome, find, new_claim, sorted, text, with};
use crate::model::claim::{self, Confidence, Evidence, Strength};
use crate::model::{AutoTrigger, Key, Kind, Value};

/// Factor by which evidence of strength 1 multiplies the odds of its hypothesis: even odds become 9
/// to 1, which is a confidence of 0.9.
pub const LIKELIHOOD_RATIO: f64 = 9.0;

/// The confidence of a hypothesis for which no confidence is recorded.
pub const PRIOR: f64 = 0.5;

/// Lowest confidence that evidence leads to: no amount of it gives certainty.
pub const MIN_CONFIDENCE: f64 = 0.01;

/// Highest confidence that evidence leads to.
pub const MAX_CONFIDENCE: f64 = 0.99;

/// Returns the confidence in a hypothesis after evidence of this strength.
///
/// Bayes' theorem in its odds form: posterior odds = prior odds x likelihood ratio. The ratio of
/// evidence is [`LIKELIHOOD_RATIO`]`^strength`. So the strengths of several pieces of evidence add
/// up: a strength is proportional to the logarithm of the ratio, which is I. J. Good's *weight of
/// evidence* ("Probability and the Weighing of Evidence", 1950).
/// The order of evidence does not matter while no bound is reached: results stay within
/// [`MIN_CONFIDENCE`]`..=`[`MAX_CONFIDENCE`]. A confidence that was set beyond these bounds stays
/// as it is, or moves in the direction of the evidence.
///
/// ```
/// use forge_store::model::{claim::{Confidence, Strength}, rule::posterior};
///
/// let even = Confidence::new(0.5).unwrap();
/// let sure = posterior(even, Strength::new(1.0).unwrap());
/// assert!((sure.value() - 0.9).abs() < 1e-12);
/// ```
#[must_use]
pub fn posterior(prior: Confidence, strength: Strength) -> Confidence {
    let (prior, strength) = (prior.value(), strength.value());
    let start = prior.clamp(MIN_CONFIDENCE, MAX_CONFIDENCE);
    let odds = start / (1.0 - start) * LIKELIHOOD_RATIO.powf(strength);
    let moved = (odds / (1.0 + odds)).clamp(MIN_CONFIDENCE, MAX_CONFIDENCE);
    let moved = if strength > 0.0 {
        moved.max(prior)
    } else if strength < 0.0 {
        moved.min(prior)
    } else {
        prior
    };
    Confidence::new(moved).expect("the value was clamped, or is the prior confidence")
}

/// Adds evidence and updates the confidence of its hypothesis as [`posterior`] describes. Evidence
/// without strength, or with strength 0, does not change the confidence.
///
/// The status of the hypothesis is unchanged. Evidence against a confirmed hypothesis, or for a
/// rejected one, is reported as a contradiction, with the trigger
/// [`AutoTrigger::NewContradictionDetected`]; other evidence has no trigger.
///
/// # Errors
/// [`RuleError::NotFound`] if its hypothesis does not exist, [`RuleError::AlreadyExists`] if its id
/// is taken, or an error for its fields or id.
pub fn add_evidence(
    claims: &impl ClaimLookup,
    id: &str,
    value: &Value,
) -> Result<RuleOutcome, RuleError> {
    let (key, value) = new_claim(claims, Kind::Evidence, id, value)?;
    let evidence = Evidence::from_value(&value)?;
    let mut changes = vec![(key, value)];
    let mut contradiction = None;
    if let Some(hypothesis_id) = evidence.hypothesis {
        let hypothesis = find(claims, Kind::Hypothesis, &hypothesis_id)?;
        if let Some(strength) = effective(evidence.strength) {
            let confidence = posterior(confidence_of(&hypothesis), strength);
            changes.extend(with_confidence(&hypothesis_id, &hypothesis, confidence));
            contradiction = contradicted(id, &hypothesis_id, &hypothesis, strength);
        }
    }
    Ok(outcome(changes, Vec::new(), contradiction))
}

/// Changes evidence. If its strength or its hypothesis changes, the confidence is computed as if
/// the old evidence had not been added (see [`retract_evidence`]) and the new one was added now.
///
/// # Errors
/// [`RuleError::NotFound`] if the evidence or its new hypothesis does not exist, or an error for
/// its fields.
pub fn update_evidence(
    claims: &impl ClaimLookup,
    id: &str,
    value: &Value,
) -> Result<RuleOutcome, RuleError> {
    let key = Key::new(Kind::Evidence, id);
    let old = Evidence::from_value(&find(claims, Kind::Evidence, id)?)?;
    let value = claim::check(Kind::Evidence, value)?;
    let new = Evidence::from_value(&value)?;
    let mut changes = vec![(key, value)];
    let mut contradiction = None;
    if (&old.hypothesis, old.strength) != (&new.hypothesis, new.strength) {
        let mut moved = without(claims, id, &old);
        if let Some(hypothesis_id) = &new.hypothesis {
            let hypothesis = find(claims, Kind::Hypothesis, hypothesis_id)?;
            if let Some(strength) = effective(new.strength) {
                let same = moved.take_if(|(moved_id, ..)| *moved_id == *hypothesis_id);
                let prior = same.map_or_else(|| confidence_of(&hypothesis), |(.., prior)| prior);
                let confidence = posterior(prior, strength);
                changes.extend(with_confidence(hypothesis_id, &hypothesis, confidence));
                contradiction = contradicted(id, hypothesis_id, &hypothesis, strength);
            }
        }
        changes.extend(moved.and_then(|(id, hypothesis, confidence)| {
            with_confidence(&id, &hypothesis, confidence)
        }));
    }
    Ok(outcome(changes, Vec::new(), contradiction))
}

/// Retracts evidence: removes it, divides the odds of its hypothesis by the likelihood ratio of the
/// evidence, and puts in doubt the beliefs that rest on it, at any distance.
///
/// A confidence at [`MAX_CONFIDENCE`] or [`MIN_CONFIDENCE`] may not show the effect of all
/// evidence. Then the confidence is also computed from the other evidence alone, beginning with
/// even odds, and the result that is nearer to the bound applies.
///
/// # Errors
/// [`RuleError::NotFound`] if the evidence does not exist.
pub fn retract_evidence(claims: &impl ClaimLookup, id: &str) -> Result<RuleOutcome, RuleError> {
    let old = Evidence::from_value(&find(claims, Kind::Evidence, id)?)?;
    let mut changes = Vec::new();
    if let Some((hypothesis_id, hypothesis, confidence)) = without(claims, id, &old) {
        changes.extend(with_confidence(&hypothesis_id, &hypothesis, confidence));
    }
    changes.extend(doubt_without_evidence(claims, id));
    Ok(outcome(changes, vec![Key::new(Kind::Evidence, id)], None))
}

/// Returns the id and the value of the hypothesis of this evidence, and the confidence in it
/// without the evidence; `None` if the evidence has no hypothesis or no effect.
fn without(
    claims: &impl ClaimLookup,
    id: &str,
    evidence: &Evidence,
) -> Option<(String, Value, Confidence)> {
    let hypothesis_id = evidence.hypothesis.as_deref()?;
    let hypothesis = claims.claim(&Key::new(Kind::Hypothesis, hypothesis_id))?;
    let strength = effective(evidence.strength)?;
    let now = confidence_of(&hypothesis);
    let back = Strength::new(-strength.value()).map_or(now, |back| posterior(now, back));
    let bound = now.value() >= MAX_CONFIDENCE || now.value() <= MIN_CONFIDENCE;
    let confidence = if bound {
        let mut rest = Confidence::EVEN;
        for (other, value) in claims.all(Kind::Evidence) {
            let is_rest = other != id && text(&value, "hypothesis") == Some(hypothesis_id);
            let strength = value.field("strength").and_then(Value::as_f64).and_then(Strength::new);
            if let Some(strength) = strength.filter(|_| is_rest) {
                rest = posterior(rest, strength);
            }
        }
        let is_upper = now.value() >= MAX_CONFIDENCE;
        if (rest.value() > back.value()) == is_upper { rest } else { back }
    } else {
        back
    };
    Some((hypothesis_id.to_owned(), hypothesis, confidence))
}

/// Returns the strength if it changes confidence: if it is not 0.
fn effective(strength: Option<Strength>) -> Option<Strength> {
    strength.filter(|strength| strength.value() != 0.0)
}

fn confidence_of(hypothesis: &Value) -> Confidence {
    let confidence = hypothesis.field("confidence").and_then(Value::as_f64);
    confidence.and_then(Confidence::new).unwrap_or(Confidence::EVEN)
}

fn with_confidence(id: &str, hypothesis: &Value, confidence: Confidence) -> Option<(Key, Value)> {
    let moved = with(hypothesis, [("confidence", Some(confidence.value().into()))])?;
    Some((Key::new(Kind::Hypothesis, id), moved))
}

/// Describes how evidence contradicts the status of its hypothesis; `None` if it does not.
fn contradicted(
    id: &str,
    hypothesis_id: &str,
    hypothesis: &Value,
    strength: Strength,
) -> Option<String> {
    let speaks = if strength.value() > 0.0 { "for" } else { "against" };
    let ((Some(status @ "confirmed"), "against") | (Some(status @ "rejected"), "for")) =
        (text(hypothesis, "status"), speaks)
    else {
        return None;
    };
    Some(format!("evidence {id} speaks {speaks} hypothesis {hypothesis_id}, which is {status}"))
}

fn outcome(
    changes: Vec<(Key, Value)>,
    removed: Vec<Key>,
    contradiction: Option<String>,
) -> RuleOutcome {
    RuleOutcome {
        changes: sorted(changes),
        removed,
        trigger: contradiction.is_some().then_some(AutoTrigger::NewContradictionDetected),
        tag: contradiction.is_some().then_some("contradiction_detected"),
        contradiction,
    }
}

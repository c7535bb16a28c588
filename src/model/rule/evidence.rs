//! The effect of evidence on confidence.

use super::{ClaimLookup, RuleError, RuleOutcome, find, new_claim, sorted, text, with};
use crate::model::claim::{Confidence, Evidence, Strength};
use crate::model::{AutoTrigger, Key, Kind, Value};

/// Factor by which evidence of strength 1 multiplies the odds of its hypothesis: even odds become 9
/// to 1, which is 0.9.
pub const LIKELIHOOD_RATIO: f64 = 9.0;

/// The confidence of a hypothesis without a stated one.
pub const PRIOR: f64 = 0.5;

/// Lowest confidence that evidence leads to: no amount of it gives certainty.
pub const MIN_CONFIDENCE: f64 = 0.01;

/// Highest confidence that evidence leads to.
pub const MAX_CONFIDENCE: f64 = 0.99;

/// Returns the confidence in a hypothesis after evidence of this strength.
///
/// Bayes' theorem in its odds form: posterior odds = prior odds x likelihood ratio, where a
/// strength means the ratio [`LIKELIHOOD_RATIO`]`^strength`; so strengths add up in the logarithm,
/// which is I. J. Good's *weight of evidence* ("Probability and the Weighing of Evidence", 1950).
/// The order of evidence does not matter while no bound is reached: results stay within
/// [`MIN_CONFIDENCE`]`..=`[`MAX_CONFIDENCE`], and a confidence that was set beyond them only moves
/// in the direction of the evidence.
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
    Confidence::new(moved).expect("it was clamped, or is the prior, which is one")
}

/// Adds evidence and updates the confidence of its hypothesis as [`posterior`] describes. Evidence
/// without strength, or with strength 0, changes nothing.
///
/// The status of the hypothesis is unchanged. Evidence against a confirmed hypothesis, or for a
/// rejected one, is reported as a contradiction, with the trigger
/// [`AutoTrigger::NewContradictionDetected`]; other evidence has no trigger.
///
/// # Errors
/// [`RuleError::NotFound`] for its hypothesis, [`RuleError::AlreadyThere`] for its id, or an error
/// for its fields or id.
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
        let strength = evidence.strength.filter(|strength| strength.value() != 0.0);
        if let Some(strength) = strength {
            let said = hypothesis.field("confidence").and_then(Value::as_f64);
            let prior = said.and_then(Confidence::new).or(Confidence::new(PRIOR));
            let confidence = prior.map(|prior| posterior(prior, strength).value().into());
            if let Some(moved) = with(&hypothesis, [("confidence", confidence)]) {
                changes.push((Key::new(Kind::Hypothesis, hypothesis_id.clone()), moved));
            }
            let speaks = if strength.value() > 0.0 { "for" } else { "against" };
            let status = text(&hypothesis, "status");
            if let (Some(status @ "confirmed"), "against") | (Some(status @ "rejected"), "for") =
                (status, speaks)
            {
                contradiction = Some(format!(
                    "evidence {id} speaks {speaks} hypothesis {hypothesis_id}, which is {status}"
                ));
            }
        }
    }
    Ok(RuleOutcome {
        changes: sorted(changes),
        trigger: contradiction.is_some().then_some(AutoTrigger::NewContradictionDetected),
        tag: contradiction.is_some().then_some("contradiction_detected"),
        contradiction,
    })
}

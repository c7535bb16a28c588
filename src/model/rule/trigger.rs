//! Which changes cause a checkpoint.

use super::text;
use crate::model::{AutoTrigger, Kind, Value};

/// Returns the trigger of the checkpoint that a change of one claim or fact causes, if it causes
/// one, and the tag of the checkpoint if the event is significant. For changes that no rule makes:
/// a rule returns its trigger itself.
#[must_use]
pub fn trigger_of(
    kind: Kind,
    old: Option<&Value>,
    new: &Value,
) -> Option<(AutoTrigger, Option<&'static str>)> {
    let before_and_after = |name| (old.and_then(|old| text(old, name)), text(new, name));
    let (status_before, status) = before_and_after("status");
    match kind {
        // A hypothesis without a status is active; one created as active changes nothing.
        Kind::Hypothesis => {
            let (before, status) = (status_before.unwrap_or("active"), status.unwrap_or("active"));
            let tag = match status {
                "confirmed" => Some("hypothesis_confirmed"),
                "rejected" => Some("hypothesis_rejected"),
                _ => None,
            };
            (before != status).then_some((AutoTrigger::HypothesisStatusChange, tag))
        }
        Kind::Gap => (status == Some("filled") && status_before != status)
            .then_some((AutoTrigger::GapFilled, None)),
        Kind::Dependency => {
            let (type_before, type_now) = before_and_after("type");
            (type_now == Some("contradicts") && type_before != type_now)
                .then_some((AutoTrigger::NewContradictionDetected, Some("contradiction_detected")))
        }
        Kind::Verification => (old.is_none() || status_before != status)
            .then_some((AutoTrigger::VerificationComplete, None)),
        Kind::Code => old.is_none().then_some((AutoTrigger::CodeModified, None)),
        _ => None,
    }
}

//! Which changes call for a checkpoint.

use super::text;
use crate::model::{AutoTrigger, Kind, Value};

/// The event that a change of one claim or fact is, if it is one that calls for a checkpoint, and the tag of that
/// checkpoint where the event is significant. For what is updated by hand, without a rule.
#[must_use]
pub fn trigger_of(
    kind: Kind,
    old: Option<&Value>,
    new: &Value,
) -> Option<(AutoTrigger, Option<&'static str>)> {
    let field = |name| (old.and_then(|old| text(old, name)), text(new, name));
    let (status_before, status) = field("status");
    match kind {
        // A hypothesis without a status is active; one that begins as active changes nothing.
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
            let (type_before, type_now) = field("type");
            (type_now == Some("contradicts") && type_before != type_now)
                .then_some((AutoTrigger::NewContradictionDetected, Some("contradiction_detected")))
        }
        Kind::Verification => (old.is_none() || status_before != status)
            .then_some((AutoTrigger::VerificationComplete, None)),
        Kind::Code => old.is_none().then_some((AutoTrigger::CodeModified, None)),
        _ => None,
    }
}

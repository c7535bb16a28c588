//! Filling gaps.

use super::{ClaimLookup, RuleError, RuleOutcome, find, text, with};
use crate::model::{AutoTrigger, Key, Kind, Value};

/// Fills a gap: sets its status to `filled`, and its resolution. `None` leaves the resolution as it
/// is.
///
/// Trigger: [`AutoTrigger::GapFilled`], unless the gap was already filled.
///
/// # Errors
/// [`RuleError::NotFound`].
pub fn fill_gap(
    claims: &impl ClaimLookup,
    id: &str,
    resolution: Option<&str>,
) -> Result<RuleOutcome, RuleError> {
    let value = find(claims, Kind::Gap, id)?;
    let fields = [("status", Some("filled".into())), ("resolution", resolution.map(Value::from))];
    let filled = with(&value, fields);
    let status_changes = text(&value, "status") != Some("filled");
    Ok(RuleOutcome {
        changes: filled.map(|value| (Key::new(Kind::Gap, id), value)).into_iter().collect(),
        trigger: status_changes.then_some(AutoTrigger::GapFilled),
        ..RuleOutcome::default()
    })
}

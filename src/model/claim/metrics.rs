//! Figures about a session: computed, never stored.

use super::field::FieldValue;
use super::{GapStatus, HypothesisStatus, VerificationStatus};
use crate::model::{Timestamp, Value};
use serde::{Serialize, Serializer};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Longest pause between two events that counts as time in debugging.
pub const IDLE_AFTER: Duration = Duration::from_secs(5 * 60);

/// Figures about a session up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SessionMetrics {
    /// Number of checkpoints, from any author and trigger.
    pub checkpoints_created: u64,
    /// Number of hypotheses that are `under_test`, `confirmed` or `rejected`.
    pub hypotheses_tested: u64,
    /// Number of verifications that were run: all except `skipped`.
    pub verifications_run: u64,
    /// Number of gaps that are `filled`.
    pub gaps_filled: u64,
    /// The time between consecutive events, without pauses over [`IDLE_AFTER`]; in JSON
    /// `time_in_debugging_seconds`.
    #[serde(rename = "time_in_debugging_seconds", serialize_with = "seconds")]
    pub time_in_debugging: Duration,
}

impl SessionMetrics {
    /// Computes the figures of a state from its checkpoints so far, its hypotheses, gaps and
    /// verifications, and the times of all events (facts, revisions, checkpoints), as
    /// [`time_in_debugging`] takes them.
    #[must_use]
    pub fn compute<'a>(
        checkpoints: u64,
        hypotheses: impl IntoIterator<Item = &'a Value>,
        gaps: impl IntoIterator<Item = &'a Value>,
        verifications: impl IntoIterator<Item = &'a Value>,
        periods: impl IntoIterator<Item = RangeInclusive<Timestamp>>,
    ) -> Self {
        Self {
            checkpoints_created: checkpoints,
            hypotheses_tested: count(hypotheses, |status| {
                matches!(
                    status,
                    Some(
                        HypothesisStatus::UnderTest
                            | HypothesisStatus::Confirmed
                            | HypothesisStatus::Rejected
                    )
                )
            }),
            verifications_run: count(verifications, |status| {
                status != Some(VerificationStatus::Skipped)
            }),
            gaps_filled: count(gaps, |status| status == Some(GapStatus::Filled)),
            time_in_debugging: time_in_debugging(periods),
        }
    }
}

/// Returns the sum of the pauses between consecutive events, without those longer than
/// [`IDLE_AFTER`]. The events are given as time ranges in any order. Each range begins and ends
/// with an event, and contains no pause longer than that. A single event is a range too.
#[must_use]
pub fn time_in_debugging(periods: impl IntoIterator<Item = RangeInclusive<Timestamp>>) -> Duration {
    let mut periods: Vec<_> = periods.into_iter().map(RangeInclusive::into_inner).collect();
    periods.sort_unstable();
    let mut total = Duration::ZERO;
    let mut last: Option<Timestamp> = None;
    for (start, end) in periods {
        let before = last.unwrap_or(start);
        let pause = since(start, before);
        // A range inside an earlier one was counted with it.
        let counted = if pause <= IDLE_AFTER { pause } else { Duration::ZERO };
        total += counted + since(end, start.max(before));
        last = Some(end.max(before));
    }
    total
}

fn since(later: Timestamp, earlier: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(later.micros_since(earlier)).unwrap_or(0))
}

fn count<'a, S: FieldValue>(
    values: impl IntoIterator<Item = &'a Value>,
    counts: impl Fn(Option<S>) -> bool,
) -> u64 {
    let status = |value: &Value| value.field("status").and_then(S::read);
    values.into_iter().filter(|value| counts(status(value))).count() as u64
}

fn seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

//! Retention: the rules that keep checkpoints, and the reasons why each checkpoint is kept.

use super::{Checkpoint, CheckpointTrigger, Timestamp};
use std::collections::BTreeSet;

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;

/// The retention rules for the checkpoints, revisions and transcripts of a session, and for whole
/// sessions. A checkpoint is kept if any rule matches; the newest is always kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Number of newest checkpoints to keep.
    pub last: u64,
    /// Keep checkpoints younger than this, in microseconds.
    pub within: i64,
    /// Keep the newest checkpoint of each of the last hours (UTC) that have any: at most this
    /// number of hours.
    pub hourly: u64,
    /// The same for days (UTC).
    pub daily: u64,
    /// The same for weeks, which begin on Monday.
    pub weekly: u64,
    /// Keep checkpoints with one of these tags.
    pub tags: BTreeSet<String>,
    /// Keep checkpoints that a person or agent asked for.
    pub manual: bool,
    /// Keep significant checkpoints: see [`is_significant`].
    pub significant: bool,
    /// Age in microseconds after which revisions are folded if nothing that is kept names them.
    pub revisions: i64,
    /// Time in microseconds after the end of a session when its transcripts and outputs are
    /// dropped; `None`: never.
    pub texts: Option<i64>,
    /// Time in microseconds after the end of a session when all its data is dropped; `None`: never.
    pub sessions: Option<i64>,
}

impl RetentionPolicy {
    /// Default age after which revisions are folded: 7 days.
    pub const REVISIONS: i64 = 7 * DAY;

    /// Returns the minimum: only the newest checkpoint, and manual and significant ones, are kept.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            last: 0,
            within: 0,
            hourly: 0,
            daily: 0,
            weekly: 0,
            tags: BTreeSet::new(),
            manual: true,
            significant: true,
            revisions: Self::REVISIONS,
            texts: None,
            sessions: None,
        }
    }

    /// Returns the reasons why each of these checkpoints is kept, in the same order; none if it is
    /// to be removed. `checkpoints` must be sorted, the newest first.
    #[must_use]
    pub fn retention_reasons(
        &self,
        checkpoints: &[Checkpoint],
        now: Timestamp,
    ) -> Vec<Vec<RetentionReason>> {
        let mut hours = TimeBuckets::new(self.hourly, HOUR, 0);
        let mut days = TimeBuckets::new(self.daily, DAY, 0);
        // 1970 began on a Thursday.
        let mut weeks = TimeBuckets::new(self.weekly, 7 * DAY, 3 * DAY);
        (0..)
            .zip(checkpoints)
            .map(|(place, one)| {
                let tag = one.tags.iter().find(|tag| self.tags.contains(*tag));
                let rules = [
                    (place == 0, RetentionReason::Newest),
                    (place < self.last, RetentionReason::Last),
                    (
                        self.within > 0 && now.micros_since(one.time) < self.within,
                        RetentionReason::Within,
                    ),
                    (
                        self.manual && one.trigger == CheckpointTrigger::Manual,
                        RetentionReason::Manual,
                    ),
                    (self.significant && is_significant(one), RetentionReason::Significant),
                    (hours.begins(one.time), RetentionReason::Hourly),
                    (days.begins(one.time), RetentionReason::Daily),
                    (weeks.begins(one.time), RetentionReason::Weekly),
                ];
                let kept = rules.into_iter().filter(|(keeps, _)| *keeps).map(|(_, reason)| reason);
                kept.chain(tag.map(|tag| RetentionReason::Tagged(tag.clone()))).collect()
            })
            .collect()
    }
}

impl Default for RetentionPolicy {
    /// Keeps all checkpoints of the last hour, manual and significant ones, and one for each
    /// earlier hour.
    fn default() -> Self {
        Self { within: HOUR, hourly: u64::MAX, ..Self::none() }
    }
}

/// Returns whether a checkpoint records an important event: a hypothesis confirmed or rejected, a
/// contradiction, a merge, or a compaction.
#[must_use]
pub fn is_significant(checkpoint: &Checkpoint) -> bool {
    const TAGS: [&str; 4] =
        ["hypothesis_confirmed", "hypothesis_rejected", "contradiction_detected", "branch_merged"];
    checkpoint.is_compaction() || checkpoint.tags.iter().any(|tag| TAGS.contains(&tag.as_str()))
}

/// The rule that keeps a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetentionReason {
    /// It is the newest.
    Newest,
    /// It is one of the newest ones.
    Last,
    /// It is young enough.
    Within,
    /// A person or agent asked for it.
    Manual,
    /// It is significant.
    Significant,
    /// It is the newest of its hour.
    Hourly,
    /// It is the newest of its day.
    Daily,
    /// It is the newest of its week.
    Weekly,
    /// It has this tag.
    Tagged(String),
    /// A checkpoint of this program refers to it.
    Program(String),
}

impl RetentionReason {
    /// Returns the word for this reason; for a tag or a program, followed by its name.
    #[must_use]
    pub fn word(&self) -> String {
        match self {
            Self::Newest => "newest".to_owned(),
            Self::Last => "last".to_owned(),
            Self::Within => "within".to_owned(),
            Self::Manual => "manual".to_owned(),
            Self::Significant => "significant".to_owned(),
            Self::Hourly => "hourly".to_owned(),
            Self::Daily => "daily".to_owned(),
            Self::Weekly => "weekly".to_owned(),
            Self::Tagged(tag) => format!("tag {tag}"),
            Self::Program(name) => format!("program {name}"),
        }
    }
}

/// Periods of equal length. The newest checkpoint of each period is kept, for a limited number of
/// periods.
struct TimeBuckets {
    /// How many more periods may keep a checkpoint.
    left: u64,
    /// The length of a period in microseconds.
    length: i64,
    /// How long before 1970 a period began, in microseconds.
    offset: i64,
    /// The last period that kept a checkpoint.
    last: Option<i64>,
}

impl TimeBuckets {
    const fn new(left: u64, length: i64, offset: i64) -> Self {
        Self { left, length, offset, last: None }
    }

    /// Returns whether the checkpoint of this time is the newest of its period and is kept. No call
    /// may have a later time than the call before it.
    fn begins(&mut self, time: Timestamp) -> bool {
        let period = time.as_micros().saturating_add(self.offset).div_euclid(self.length);
        if self.left == 0 || self.last == Some(period) {
            return false;
        }
        self.left -= 1;
        self.last = Some(period);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AutoTrigger, CheckpointId, Value};
    use proptest::prelude::*;

    fn checkpoint(quarters: i64, trigger: CheckpointTrigger, tag: Option<&str>) -> Checkpoint {
        let time = Timestamp::from_micros(quarters * HOUR / 4);
        let tags = tag.into_iter().map(str::to_owned).collect();
        Checkpoint { tags, trigger, ..Checkpoint::new(CheckpointId::from_bytes([0; 16]), 1, time) }
    }

    const PASSED: CheckpointTrigger =
        CheckpointTrigger::Automatic(AutoTrigger::SignificantTimePassed);

    fn kept(retention: &RetentionPolicy, quarters: &[i64], now: i64) -> Vec<String> {
        let all: Vec<_> = quarters.iter().map(|at| checkpoint(*at, PASSED, None)).collect();
        let now = Timestamp::from_micros(now * HOUR / 4);
        let judged = retention.retention_reasons(&all, now);
        judged
            .iter()
            .map(|why| why.iter().map(RetentionReason::word).collect::<Vec<_>>().join(" "))
            .collect()
    }

    #[test]
    fn by_default_checkpoints_of_the_last_hour_are_kept_and_then_one_per_hour() {
        let found = kept(&RetentionPolicy::default(), &[100, 99, 97, 96, 95, 94, 90, 89, 88], 100);
        let wanted =
            ["newest within hourly", "within hourly", "within", "", "hourly", "", "hourly"];
        assert_eq!(found[..7], wanted, "{found:?}");
        assert_eq!(found[7..], ["", ""]);
    }

    #[test]
    fn manual_significant_and_tagged_checkpoints_are_kept_unless_the_policy_says_otherwise() {
        let compaction = CheckpointTrigger::Automatic(AutoTrigger::ContextCompactionWarning);
        let all = [
            checkpoint(40, PASSED, None),
            checkpoint(4, CheckpointTrigger::Manual, None),
            checkpoint(3, compaction, None),
            checkpoint(2, PASSED, Some("hypothesis_rejected")),
            checkpoint(1, PASSED, Some("release")),
            checkpoint(0, PASSED, Some("other")),
        ];
        let judge = |retention: &RetentionPolicy| -> Vec<bool> {
            let now = Timestamp::from_micros(99 * HOUR);
            retention.retention_reasons(&all, now).iter().map(|why| !why.is_empty()).collect()
        };
        let tags = BTreeSet::from(["release".to_owned()]);
        let tagged = RetentionPolicy { tags, ..RetentionPolicy::none() };
        assert_eq!(judge(&tagged), [true, true, true, true, true, false]);
        let bare = RetentionPolicy { manual: false, significant: false, ..RetentionPolicy::none() };
        assert_eq!(judge(&bare), [true, false, false, false, false, false]);
    }

    #[test]
    fn a_compaction_that_did_not_follow_is_not_significant() {
        let compaction = CheckpointTrigger::Automatic(AutoTrigger::ContextCompactionWarning);
        let announced = checkpoint(1, compaction, None);
        let body = Value::from([("not_followed", true.into())]);
        assert!(is_significant(&announced));
        assert!(!is_significant(&Checkpoint { body, ..announced }));
    }

    #[test]
    fn a_week_begins_on_monday_and_a_day_at_midnight_utc() {
        // 1970-01-05 was a Monday.
        let monday = 4 * 24 * 4;
        let weekly = RetentionPolicy { weekly: 2, ..RetentionPolicy::none() };
        assert_eq!(
            kept(&weekly, &[monday, monday - 1, monday - 2], monday),
            ["newest weekly", "weekly", ""]
        );
        let daily = RetentionPolicy { daily: u64::MAX, ..RetentionPolicy::none() };
        assert_eq!(
            kept(&daily, &[97, 96, 95, -1, -2], 97),
            ["newest daily", "", "daily", "daily", ""]
        );
    }

    proptest! {
        #[test]
        fn additional_rules_drop_nothing_more_and_the_newest_checkpoint_is_kept(
            mut quarters in prop::collection::vec(-50_i64..500, 1..60),
            last in 0_u64..5, hourly in 0_u64..5, daily in 0_u64..5, within in 0_i64..40,
        ) {
            quarters.sort_unstable_by(|a, b| b.cmp(a));
            let all: Vec<_> = quarters.iter().map(|at| checkpoint(*at, PASSED, None)).collect();
            let now = Timestamp::from_micros(500 * HOUR);
            let some = RetentionPolicy { last, hourly, ..RetentionPolicy::none() };
            let more = RetentionPolicy { daily, within: within * HOUR, ..some.clone() };
            let (some, more) = (some.retention_reasons(&all, now), more.retention_reasons(&all, now));
            prop_assert!(!some[0].is_empty());
            for (some, more) in some.iter().zip(&more) {
                prop_assert!(some.is_empty() || !more.is_empty());
            }
            prop_assert!(some.iter().filter(|why| why.contains(&RetentionReason::Hourly)).count() as u64 <= hourly);
        }
    }
}

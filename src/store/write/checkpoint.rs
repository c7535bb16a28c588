//! The checkpoint of a write: a given one, one that a rule requests, or a scheduled one.

use super::{HeadClaims, NewCheckpoint, Session, SessionWrite};
use crate::engine::checkpoint as checkpoints;
use crate::engine::plan_context::PlanContext;
use crate::engine::refs::session as session_refs;
use crate::engine::timeline;
use crate::error::Result;
use crate::format::SessionRefs;
use crate::model::rule::RuleOutcome;
use crate::model::{
    AutoTrigger, BranchNumber, Checkpoint, CheckpointId, CheckpointTrigger, SessionNumber,
    Timestamp,
};

/// The time since the last checkpoint after which `SignificantTimePassed` makes one.
pub const SIGNIFICANT_MICROS: i64 = 5 * 60 * 1_000_000;

/// The events that make automatic checkpoints, as settings ask for them. The default is all events.
#[derive(Clone, Debug, Default)]
pub struct CheckpointTriggers {
    /// The triggers that are switched on; `None` means all.
    pub on: Option<Vec<AutoTrigger>>,
    /// Whether significant time has passed since the last checkpoint, and is a reason for one.
    pub significant: bool,
}

impl CheckpointTriggers {
    /// Returns the triggers for a write to this session now. More than `micros` since its last
    /// checkpoint are significant.
    pub fn of_session(
        session: &Session,
        now: Timestamp,
        on: Option<Vec<AutoTrigger>>,
        micros: i64,
    ) -> Result<Self> {
        let mut triggers = Self { on, significant: false };
        if triggers.select(Some(AutoTrigger::SignificantTimePassed)).is_some() {
            let summary = session.summary()?;
            let last = summary.last_checkpoint.unwrap_or(summary.info.started_at);
            triggers.significant = now.micros_since(last) > micros;
        }
        Ok(triggers)
    }

    /// Returns the event to make a checkpoint for: this one if it is switched on, or else the
    /// passing of significant time.
    #[must_use]
    pub fn select(&self, event: Option<AutoTrigger>) -> Option<AutoTrigger> {
        event
            .filter(|event| self.on.as_ref().is_none_or(|on| on.contains(event)))
            .or(self.significant.then_some(AutoTrigger::SignificantTimePassed))
    }
}

impl SessionWrite<'_> {
    /// Applies the settings of automatic checkpoints to what a rule returned.
    pub(super) fn triggered(&self, claims: &HeadClaims, outcome: RuleOutcome) -> RuleOutcome {
        match self.triggers {
            Some(triggers) => outcome.triggered(claims, |event| triggers.select(event)),
            None => outcome,
        }
    }

    pub(super) fn scheduled(&self, session: &SessionRefs) -> Option<NewCheckpoint> {
        let every = session.schedule?;
        let last = session.last_checkpoint.unwrap_or(session.info.started_at);
        (self.act.now.micros_since(last) >= every)
            .then(|| NewCheckpoint::new("scheduled", CheckpointTrigger::Scheduled))
    }

    /// Returns whether to make this checkpoint. Only checkpoints for passed time are throttled.
    pub(super) fn is_wanted(&self, session: &SessionRefs, wanted: &NewCheckpoint) -> bool {
        wanted.trigger != CheckpointTrigger::Automatic(AutoTrigger::SignificantTimePassed)
            || self.by_import
            // In a session with imports only imports make these checkpoints, by the times of the
            // imported events: else the result would depend on when other writes happen.
            || session.bookmarks.is_empty()
                && session
                    .last_checkpoint
                    .is_none_or(|last| self.act.now.micros_since(last) > SIGNIFICANT_MICROS)
    }

    pub(super) fn make_checkpoint(
        &self,
        context: &PlanContext<'_>,
        number: SessionNumber,
        (wanted, replaces): (NewCheckpoint, bool),
        (id, sequence): (CheckpointId, u64),
        (branch, new_head): (BranchNumber, Option<u64>),
    ) -> Result<Option<Checkpoint>> {
        let key = wanted.key.as_ref();
        let known = key.map(|event| checkpoints::by_key(&context.view()?, number, event));
        let known = known.transpose()?.flatten();
        // A checkpoint of a change has the time that was given for the change.
        let changed_at = self.time.filter(|_| !self.by_import && new_head.is_some());
        let time = wanted.at.or(changed_at).unwrap_or(self.act.now);
        let (branch, revision) = match wanted.at {
            Some(time) if new_head.is_none() && self.preceding.is_none() => {
                let view = context.view()?;
                let branch = timeline::branch_at(&view, number, time)?;
                let at = timeline::revision_at(&view, &context.refs, number, branch, time)?;
                (branch, at.map(|(at, _)| at.sequence))
            }
            _ => {
                let head = match &self.preceding {
                    Some(preceding) => preceding.moment.revision(),
                    None => {
                        let head = session_refs(&context.refs, number)?.branch(branch)?.head;
                        head.map(|head| head.sequence)
                    }
                };
                (branch, new_head.or(head))
            }
        };
        let past = wanted.at.is_some();
        let checkpoint = Checkpoint {
            id,
            sequence,
            time,
            branch,
            revision,
            message: wanted.message,
            tags: wanted.tags,
            trigger: wanted.trigger,
            body: wanted.body.without_nulls(),
            key: wanted.key,
        };
        Ok(match known {
            Some(known) if replaces => checkpoints::replaced(&known, checkpoint),
            Some(known) => checkpoints::merge_reported(&known, checkpoint, past),
            None => Some(checkpoint),
        })
    }
}

/// Replaces the general message of an automatic checkpoint by one that says what happened. Keeps
/// every other message.
pub(super) fn name_automatic(
    wanted: &mut NewCheckpoint,
    name: impl FnOnce(AutoTrigger) -> Option<String>,
) {
    if let CheckpointTrigger::Automatic(trigger) = wanted.trigger
        && wanted.message == event_message(trigger)
        && let Some(name) = name(trigger)
    {
        wanted.message = name;
    }
}

/// Returns the general message of an automatic checkpoint.
const fn event_message(trigger: AutoTrigger) -> &'static str {
    match trigger {
        AutoTrigger::HypothesisStatusChange => "a hypothesis changed its status",
        AutoTrigger::NewContradictionDetected => "a contradiction was found",
        AutoTrigger::VerificationComplete => "a verification finished",
        AutoTrigger::BranchSwitch => "another branch was checked out",
        AutoTrigger::GapFilled => "a gap was filled",
        AutoTrigger::CodeModified => "code was modified",
        AutoTrigger::SignificantTimePassed => Checkpoint::TIME_PASSED,
        AutoTrigger::ContextCompactionWarning => "context is about to be compacted",
    }
}

/// Makes the automatic checkpoint of an event.
pub(super) fn automatic(trigger: AutoTrigger, tag: Option<&str>) -> NewCheckpoint {
    let message = event_message(trigger);
    let mut checkpoint = NewCheckpoint::new(message, CheckpointTrigger::Automatic(trigger));
    checkpoint.tags = std::iter::once("auto").chain(tag).map(str::to_owned).collect();
    checkpoint.tags.sort();
    checkpoint
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significant_time_counts_only_where_no_event_does() {
        let on = Some(vec![AutoTrigger::GapFilled, AutoTrigger::SignificantTimePassed]);
        let triggers = CheckpointTriggers { on, significant: true };
        let of = |event| triggers.select(event);
        assert_eq!(of(Some(AutoTrigger::GapFilled)), Some(AutoTrigger::GapFilled));
        assert_eq!(of(Some(AutoTrigger::BranchSwitch)), Some(AutoTrigger::SignificantTimePassed));
        assert_eq!(of(None), Some(AutoTrigger::SignificantTimePassed));
        let none = CheckpointTriggers { on: Some(Vec::new()), significant: false };
        assert_eq!(none.select(Some(AutoTrigger::GapFilled)), None);
    }
}

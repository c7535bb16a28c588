//! How commands write: one operation, its automatic checkpoint, and what is told of it.

use crate::args::value::Moment as Given;
use crate::context::Context;
use crate::error::CommandError;
use crate::workplace::{self, Access, Need};
use forge_store::error::Error;
use forge_store::model::rule::{ClaimLookup, RuleError, RuleOutcome};
use forge_store::model::time_grammar::{MomentBase, MomentExpression};
use forge_store::model::{AutoTrigger, Fact, FactOrigin, Key, Kind, Timestamp, Value};
use forge_store::store::{
    ClaimChange, HeadClaims, Session, SessionWrite, Store, WriteContext, WriteReport,
};

/// A store and a session to write to, and who does it.
pub struct Writing {
    /// The store.
    pub store: Store,
    /// The session.
    pub session: Session,
    /// Who does what, when.
    pub act: WriteContext,
    triggers: Triggers,
}

impl Writing {
    /// Opens the store and the session for this verb.
    ///
    /// # Errors
    ///
    /// As opening does.
    pub fn begin(context: &Context, verb: &str, need: Need) -> Result<Self, CommandError> {
        let store = workplace::open(context, Access::Write)?;
        let session = workplace::session(context, &store, need)?;
        let triggers = Triggers::of(context, &session)?;
        Ok(Self { store, session, act: workplace::act(context, verb), triggers })
    }

    /// The id of the claim that was named: its whole, or the beginning of it alone.
    ///
    /// # Errors
    ///
    /// Not found, with the nearest ids; ambiguous.
    pub fn claim_id(&self, kind: Kind, name: &str) -> Result<String, CommandError> {
        let head = self.session.head()?;
        if self.session.claim(&head, &Key::new(kind, name))?.is_some() {
            return Ok(name.to_owned());
        }
        workplace::claim_id(&self.session.state(&head)?, kind, name)
    }

    /// The ids of the claims that were named.
    ///
    /// # Errors
    ///
    /// As [`Self::claim_id`].
    pub fn claim_ids(&self, kind: Kind, names: &[String]) -> Result<Vec<String>, CommandError> {
        names.iter().map(|name| self.claim_id(kind, name)).collect()
    }

    /// Writes what a rule makes of the claims as they stand.
    ///
    /// # Errors
    ///
    /// As every write.
    pub fn by_rule(
        &self,
        rule: impl Fn(&HeadClaims) -> Result<RuleOutcome, RuleError>,
    ) -> Result<WriteReport, CommandError> {
        Ok(self.write_by_rule(&rule)?)
    }

    /// Writes a new claim, under this id or the next free one, as `rule` says it is added. Returns its id too.
    ///
    /// # Errors
    ///
    /// As every write.
    pub fn add(
        &self,
        kind: Kind,
        id: Option<&str>,
        rule: impl Fn(&HeadClaims, &str) -> Result<RuleOutcome, RuleError>,
    ) -> Result<(String, WriteReport), CommandError> {
        if let Some(id) = id {
            let done = self.write_by_rule(&|claims| rule(claims, id))?;
            return Ok((id.to_owned(), done));
        }
        let guarded = |claims: &HeadClaims, id: &str| Ok(self.guarded(claims, rule(claims, id)?));
        let done = self.write().rule_with_next_id(kind, initial(kind), guarded).commit()?;
        Ok((done.new_id.clone().unwrap_or_default(), done))
    }

    /// Writes a new claim with these fields.
    ///
    /// # Errors
    ///
    /// As every write.
    pub fn add_value(
        &self,
        kind: Kind,
        id: Option<&str>,
        value: &Value,
    ) -> Result<(String, WriteReport), CommandError> {
        self.add_value_with(kind, id, value, |_| None)
    }

    /// Writes a new claim with these fields, and with it the fact that tells of its id.
    ///
    /// # Errors
    ///
    /// As every write.
    pub fn add_value_with(
        &self,
        kind: Kind,
        id: Option<&str>,
        value: &Value,
        fact: impl Fn(&str) -> Option<Fact>,
    ) -> Result<(String, WriteReport), CommandError> {
        let event = forge_store::model::rule::trigger_of(kind, None, value);
        let event = self.triggers.of_event(event.map(|(trigger, _)| trigger));
        let mut write = match id {
            Some(id) => self
                .write()
                .change(ClaimChange::add(Key::new(kind, id), value.clone()))
                .facts(fact(id), None),
            None => {
                let write = self.write().add_next(kind, initial(kind), value.clone());
                write.fact_of_next(fact)
            }
        };
        if let Some(trigger) = event {
            write = write.event(trigger);
        }
        let done = write.commit()?;
        let id = id.map(str::to_owned).or_else(|| done.new_id.clone()).unwrap_or_default();
        Ok((id, done))
    }

    /// Changes fields of a claim; those that are null stay as they are.
    ///
    /// # Errors
    ///
    /// As every write.
    pub fn update(
        &self,
        kind: Kind,
        id: &str,
        fields: &Value,
        edit: impl Fn(&mut Value),
    ) -> Result<WriteReport, CommandError> {
        self.by_rule(|claims| {
            let key = Key::new(kind, id);
            let old = claims.claim(&key).ok_or(RuleError::NotFound(key))?;
            let mut new = old.clone();
            if let (Value::Map(new), Some(fields)) = (&mut new, fields.as_map()) {
                new.extend(fields.iter().map(|(name, field)| (name.clone(), field.clone())));
            }
            edit(&mut new);
            Ok(changed(kind, id, Some(&old), new))
        })
    }

    /// Writes a fact, and makes the checkpoint of this event.
    ///
    /// # Errors
    ///
    /// As every write.
    pub fn fact(
        &self,
        fact: Fact,
        event: Option<AutoTrigger>,
    ) -> Result<WriteReport, CommandError> {
        let mut write = self.session.write(&self.act).fact(fact);
        if let Some(trigger) = self.triggers.of_event(event) {
            write = write.event(trigger);
        }
        Ok(write.commit()?)
    }

    /// Refuses a fact under an id that somebody chose and another fact has.
    ///
    /// # Errors
    ///
    /// As every write.
    pub fn refuse_known(&self, fact: &Fact, chosen: Option<&str>) -> Result<(), CommandError> {
        let Some(id) = chosen else { return Ok(()) };
        let state = self.session.state(&self.session.head()?)?;
        if state.facts_of(fact.kind)?.iter().any(|known| known.fact.id == id) {
            return Err(Error::Duplicate { kind: fact.kind.name(), id: id.to_owned() }.into());
        }
        Ok(())
    }

    /// Whether the event of this trigger makes a checkpoint.
    #[must_use]
    pub fn makes_checkpoint(&self, trigger: AutoTrigger) -> bool {
        self.triggers.of_event(Some(trigger)) == Some(trigger)
    }

    /// Something to be written by this act.
    pub fn write(&self) -> SessionWrite<'_> {
        self.session.write(&self.act)
    }

    /// To be called after the answer was printed.
    pub fn finish(&self) {
        workplace::finish(&self.store);
    }

    fn write_by_rule(
        &self,
        rule: &impl Fn(&HeadClaims) -> Result<RuleOutcome, RuleError>,
    ) -> Result<WriteReport, Error> {
        self.write().rule(|claims| Ok(self.guarded(claims, rule(claims)?))).commit()
    }

    /// Drops from a rule's outcome what the claims contain already, and checkpoints that are switched off.
    fn guarded(&self, claims: &HeadClaims, mut outcome: RuleOutcome) -> RuleOutcome {
        // An equal value is no change, and no reason for a checkpoint.
        outcome.changes.retain(|(key, value)| claims.claim(key).as_ref() != Some(value));
        let event = match outcome.changes.as_slice() {
            [] => None,
            _ => self.triggers.of_event(outcome.trigger),
        };
        if event != outcome.trigger {
            outcome.tag = None;
        }
        outcome.trigger = event;
        outcome
    }
}

/// The outcome of one claim coming to these fields.
#[must_use]
pub fn changed(kind: Kind, id: &str, old: Option<&Value>, new: Value) -> RuleOutcome {
    let event = forge_store::model::rule::trigger_of(kind, old, &new);
    RuleOutcome {
        changes: vec![(Key::new(kind, id), new)],
        trigger: event.map(|(trigger, _)| trigger),
        tag: event.and_then(|(_, tag)| tag),
        contradiction: None,
    }
}

/// What new ids of a kind begin with.
fn initial(kind: Kind) -> &'static str {
    match kind {
        Kind::Hypothesis => "H",
        Kind::Evidence => "E",
        Kind::Belief => "B",
        Kind::Gap => "G",
        Kind::Note => "N",
        _ => "X",
    }
}

/// A fact that somebody records now, under this id or one of its own.
///
/// # Errors
///
/// If the system gives no random numbers.
pub fn new_fact(
    kind: Kind,
    id: Option<&str>,
    at: Timestamp,
    now: Timestamp,
    value: Value,
) -> Result<Fact, CommandError> {
    let id = match id {
        Some(id) => id.to_owned(),
        None => fact_id(kind)?,
    };
    let place = u64::try_from(now.as_micros()).unwrap_or(0);
    Ok(Fact { kind, id, at, origin: FactOrigin::Recorded, place, recorded_at: now, value })
}

/// A time that somebody gave, or now.
#[derive(Debug)]
pub enum PastTime<'a> {
    /// It is known without looking at the session.
    Known(Timestamp),
    /// It is that of a moment of the session.
    Of(&'a Given),
}

/// The time that was given for something that happened, read before anything is written.
///
/// # Errors
///
/// Invalid if it is no moment.
pub fn past_time<'a>(
    context: &Context,
    given: Option<&'a Given>,
) -> Result<PastTime<'a>, CommandError> {
    let Some(given) = given else { return Ok(PastTime::Known(context.now)) };
    match context.moment(given)? {
        // Facts may be older than the session, so this is not looked up in it.
        MomentExpression { base: MomentBase::Time(time), back: 0 } => {
            if let Some(note) = &time.note {
                context.out.warn(&note.to_string());
            }
            Ok(PastTime::Known(time.time))
        }
        _ => Ok(PastTime::Of(given)),
    }
}

impl PastTime<'_> {
    /// The time.
    ///
    /// # Errors
    ///
    /// If there is no such moment.
    pub fn resolved(
        &self,
        context: &Context,
        session: &Session,
    ) -> Result<Timestamp, CommandError> {
        match self {
            Self::Known(time) => Ok(*time),
            Self::Of(given) => {
                let moment = workplace::moment(context, session, given)?;
                if let MomentExpression { base: MomentBase::Time(time), back: 0 } = moment {
                    return Ok(time.time);
                }
                Ok(workplace::resolve(context, session, &moment)?.time().unwrap_or(context.now))
            }
        }
    }
}

/// An id that no other fact has. Facts of one kind and id are versions of one thing, so a count would lose some where
/// two processes record at once.
fn fact_id(kind: Kind) -> Result<String, CommandError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| {
        CommandError::internal("the system gives no random numbers").caused_by(error.to_string())
    })?;
    let letter = kind.name().chars().next().unwrap_or('x');
    Ok(format!("{letter}-{:016x}", u64::from_be_bytes(bytes)))
}

/// Which events make checkpoints here and now.
struct Triggers {
    on: Vec<AutoTrigger>,
    /// Whether significant time has passed since the last checkpoint.
    significant: bool,
}

impl Triggers {
    fn of(context: &Context, session: &Session) -> Result<Self, CommandError> {
        if !context.config.is_on("auto_checkpoint.enabled") {
            return Ok(Self { on: Vec::new(), significant: false });
        }
        let on = TRIGGERS.iter().filter(|(_, key)| context.config.is_on(key));
        let on: Vec<AutoTrigger> = on.map(|(trigger, _)| *trigger).collect();
        let summary = session.summary()?;
        let last = summary.last_checkpoint.unwrap_or(summary.info.started_at);
        let micros = context
            .config
            .duration("auto_checkpoint.significant_time")
            .map_or(i64::MAX, |time| i64::try_from(time.as_micros()).unwrap_or(i64::MAX));
        let passed = context.now.micros_since(last) > micros;
        Ok(Self { significant: passed && on.contains(&AutoTrigger::SignificantTimePassed), on })
    }

    /// The event to make a checkpoint for: this one, else that time has passed.
    fn of_event(&self, event: Option<AutoTrigger>) -> Option<AutoTrigger> {
        event
            .filter(|event| self.on.contains(event))
            .or(self.significant.then_some(AutoTrigger::SignificantTimePassed))
    }
}

/// The triggers, each with the setting that switches it.
const TRIGGERS: [(AutoTrigger, &str); 8] = [
    (AutoTrigger::HypothesisStatusChange, "auto_checkpoint.hypothesis_status_change"),
    (AutoTrigger::NewContradictionDetected, "auto_checkpoint.new_contradiction_detected"),
    (AutoTrigger::VerificationComplete, "auto_checkpoint.verification_complete"),
    (AutoTrigger::BranchSwitch, "auto_checkpoint.branch_switch"),
    (AutoTrigger::GapFilled, "auto_checkpoint.gap_filled"),
    (AutoTrigger::CodeModified, "auto_checkpoint.code_modified"),
    (AutoTrigger::SignificantTimePassed, "auto_checkpoint.significant_time_passed"),
    (AutoTrigger::ContextCompactionWarning, "auto_checkpoint.context_compaction_warning"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trigger_has_its_setting() {
        for (_, name) in TRIGGERS {
            assert!(crate::config::Key::named(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn significant_time_counts_only_where_no_event_does() {
        let on = vec![AutoTrigger::GapFilled, AutoTrigger::SignificantTimePassed];
        let triggers = Triggers { on, significant: true };
        let of = |event| triggers.of_event(event);
        assert_eq!(of(Some(AutoTrigger::GapFilled)), Some(AutoTrigger::GapFilled));
        assert_eq!(of(Some(AutoTrigger::BranchSwitch)), Some(AutoTrigger::SignificantTimePassed));
        assert_eq!(of(None), Some(AutoTrigger::SignificantTimePassed));
        let none = Triggers { on: Vec::new(), significant: false };
        assert_eq!(none.of_event(Some(AutoTrigger::GapFilled)), None);
    }

    #[test]
    fn ids_of_facts_differ() {
        let id = || fact_id(Kind::Verification).unwrap();
        assert_ne!(id(), id());
        assert!(id().starts_with("v-") && id().len() == 18);
    }
}

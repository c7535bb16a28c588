//! Writes the changes of a command: as one operation, with its automatic checkpoint.

use crate::args::value::{MomentArg, to_micros};
use crate::context::Context;
use crate::error::CommandError;
use crate::output::time::local;
use crate::workspace::{self, SessionNeed, StoreAccess};
use forge_store::error::Error;
use forge_store::model::rule::{ClaimLookup, RuleError, RuleOutcome};
use forge_store::model::time_grammar::{MomentBase, MomentExpression};
use forge_store::model::{AutoTrigger, Fact, FactOrigin, FieldMap, Key, Kind, Timestamp, Value};
use forge_store::store::{
    CheckpointTriggers, ClaimChange, HeadClaims, Session, SessionWrite, Store, WriteContext,
    WriteReport, new_fact_id,
};

/// A store and a session to write to, with the context of the write.
#[derive(Clone)]
pub struct SessionWriter {
    pub store: Store,
    pub session: Session,
    /// The author, verb and time of the write.
    pub write_context: WriteContext,
    triggers: CheckpointTriggers,
    /// When the changes of claims took place, if not when they are recorded.
    changed_at: Option<Timestamp>,
}

impl SessionWriter {
    /// Opens the store and the session for this verb.
    pub fn begin(context: &Context, verb: &str, need: SessionNeed) -> Result<Self, CommandError> {
        let store = workspace::open_store(context, StoreAccess::Write)?;
        let session = workspace::choose_session(context, &store, need)?;
        let time = context.config.duration("auto_checkpoint.significant_time");
        let micros = time.map_or(i64::MAX, to_micros);
        let on = Some(enabled_triggers(context));
        let triggers = CheckpointTriggers::of_session(&session, context.now, on, micros)?;
        let write_context = workspace::write_context(context, verb);
        Ok(Self { store, session, write_context, triggers, changed_at: None })
    }

    /// Returns the writer for a write at this time.
    pub fn at(&self, now: Timestamp) -> Self {
        let write_context = WriteContext { now, ..self.write_context.clone() };
        Self { write_context, ..self.clone() }
    }

    /// Returns the writer for changes of claims that took place at the given time. The operation
    /// keeps the time of the recording.
    ///
    /// # Errors
    ///
    /// Invalid if it is no moment, is in the future, or is before the last change on the branch:
    /// times never decrease along a branch.
    pub fn changing_at(
        self,
        context: &Context,
        at: Option<&MomentArg>,
    ) -> Result<Self, CommandError> {
        let Some(at) = at else { return Ok(self) };
        let time = past_time(context, &self.session, Some(at))?;
        let shown = |time| local(time, &context.zone);
        let refuse = |problem: String, hint: &str| {
            Err(CommandError::invalid(format!("{} is {problem}", shown(time))).hinted(hint))
        };
        if time > context.now {
            return refuse("in the future".to_owned(), "without '--at' it is recorded as of now");
        }
        let head = self.session.head()?;
        match self.session.time_of(&head)? {
            Some(last) if time < last => refuse(
                format!("before the last change on this branch, at {}", shown(last)),
                "changes are recorded in their order: name a later time, or leave '--at' out",
            ),
            _ => Ok(Self { changed_at: Some(time), ..self }),
        }
    }

    /// Returns the id of the claim with this name: its full id or a unique prefix.
    ///
    /// # Errors
    ///
    /// Not found, with the nearest ids; ambiguous.
    pub fn claim_id(&self, kind: Kind, name: &str) -> Result<String, CommandError> {
        let head = self.session.head()?;
        if self.session.claim(&head, &Key::new(kind, name))?.is_some() {
            return Ok(name.to_owned());
        }
        workspace::claim_id(&self.session.state(&head)?, kind, name)
    }

    /// Applies a rule to the current claims and writes the outcome.
    pub fn write_rule(
        &self,
        rule: impl Fn(&HeadClaims) -> Result<RuleOutcome, RuleError>,
    ) -> Result<WriteReport, CommandError> {
        Ok(self.write().rule(rule).commit()?)
    }

    /// Writes a new claim, under this id or the next free one; `rule` computes the changes. Also
    /// returns its id.
    pub fn add_by_rule(
        &self,
        kind: Kind,
        id: Option<&str>,
        rule: impl Fn(&HeadClaims, &str) -> Result<RuleOutcome, RuleError>,
    ) -> Result<(String, WriteReport), CommandError> {
        if let Some(id) = id {
            let done = self.write().rule(|claims| rule(claims, id)).commit()?;
            return Ok((id.to_owned(), done));
        }
        let done = self.write().rule_with_next_id(kind, kind.id_prefix(), rule).commit()?;
        Ok((done.new_id.clone().unwrap_or_default(), done))
    }

    /// Writes a new claim with these fields, together with the fact about its id, if there is one.
    pub fn add_value(
        &self,
        kind: Kind,
        id: Option<&str>,
        value: &Value,
        fact: impl Fn(&str) -> Option<Fact>,
    ) -> Result<(String, WriteReport), CommandError> {
        let event = forge_store::model::rule::trigger_of(kind, None, value);
        let write = match id {
            Some(id) => self
                .write()
                .change(ClaimChange::add(Key::new(kind, id), value.clone()))
                .facts(fact(id), None),
            None => {
                let write = self.write().add_next(kind, kind.id_prefix(), value.clone());
                write.fact_of_next(fact)
            }
        };
        let done = write.event(event.map(|(trigger, _)| trigger)).commit()?;
        let id = id.map(str::to_owned).or_else(|| done.new_id.clone()).unwrap_or_default();
        Ok((id, done))
    }

    /// Changes fields of a claim.
    pub fn update(
        &self,
        kind: Kind,
        id: &str,
        change: impl Fn(&mut FieldMap),
    ) -> Result<WriteReport, CommandError> {
        self.write_rule(|claims| {
            let key = Key::new(kind, id);
            let old = claims.claim(&key).ok_or_else(|| RuleError::NotFound(key.clone()))?;
            let mut new = old.clone();
            if let Value::Map(fields) = &mut new {
                change(fields);
            }
            Ok(RuleOutcome::of_change(key, Some(&old), new))
        })
    }

    /// Writes a fact, and a checkpoint if this event, or the time since the last checkpoint, is a
    /// reason for one.
    pub fn write_fact(
        &self,
        fact: Fact,
        event: Option<AutoTrigger>,
    ) -> Result<WriteReport, CommandError> {
        self.write_facts([fact], event)
    }

    /// Writes facts together, like [`Self::write_fact`].
    pub fn write_facts(
        &self,
        facts: impl IntoIterator<Item = Fact>,
        event: Option<AutoTrigger>,
    ) -> Result<WriteReport, CommandError> {
        let write = self.session.write(&self.write_context).triggers(&self.triggers);
        Ok(write.facts(facts, None).event(event).commit()?)
    }

    /// Refuses a fact whose id was chosen and belongs to another fact already.
    pub fn refuse_taken_id(&self, fact: &Fact, chosen: Option<&str>) -> Result<(), CommandError> {
        let Some(id) = chosen else { return Ok(()) };
        let state = self.session.state(&self.session.head()?)?;
        if state.facts_of(fact.kind)?.iter().any(|known| known.fact.id == id) {
            return Err(Error::Duplicate { kind: fact.kind.name(), id: id.to_owned() }.into());
        }
        Ok(())
    }

    /// Returns whether an event with this trigger makes a checkpoint.
    pub fn makes_checkpoint(&self, trigger: AutoTrigger) -> bool {
        self.triggers.select(Some(trigger)) == Some(trigger)
    }

    /// Starts a write in this context.
    pub fn write(&self) -> SessionWrite<'_> {
        let write = self.session.write(&self.write_context).triggers(&self.triggers);
        match self.changed_at {
            Some(time) => write.at(time),
            None => write,
        }
    }
}

/// Creates a fact that is recorded now, under this id or a generated one.
pub fn new_fact(
    kind: Kind,
    id: Option<&str>,
    at: Timestamp,
    now: Timestamp,
    value: Value,
) -> Result<Fact, CommandError> {
    let id = match id {
        Some(id) => id.to_owned(),
        None => new_fact_id(kind)?,
    };
    let place = u64::try_from(now.as_micros()).unwrap_or(0);
    Ok(Fact { kind, id, at, origin: FactOrigin::Recorded, place, recorded_at: now, value })
}

/// Returns the time of the moment that was given; now if none was.
pub fn past_time(
    context: &Context,
    session: &Session,
    given: Option<&MomentArg>,
) -> Result<Timestamp, CommandError> {
    let Some(given) = given else { return Ok(context.now) };
    // Facts may be older than the session, so a plain time is not looked up in it.
    if let MomentExpression { base: MomentBase::Time(time), back: 0 } = context.moment(given)? {
        if let Some(note) = &time.note {
            context.out.warn(&note.to_string());
        }
        return Ok(time.time);
    }
    let moment = workspace::parsed_moment(context, session, given)?;
    if let MomentExpression { base: MomentBase::Time(time), back: 0 } = moment {
        return Ok(time.time);
    }
    Ok(workspace::resolve_here(context, session, &moment)?.time().unwrap_or(context.now))
}

/// Returns the events that make checkpoints according to the settings.
pub fn enabled_triggers(context: &Context) -> Vec<AutoTrigger> {
    if !context.config.is_on("auto_checkpoint.enabled") {
        return Vec::new();
    }
    let on = TRIGGERS.iter().filter(|(_, key)| context.config.is_on(key));
    on.map(|(trigger, _)| *trigger).collect()
}

/// The triggers, each with its setting.
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
            assert!(crate::config::SettingKey::find(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn ids_of_facts_differ() {
        let id = || new_fact_id(Kind::Verification).unwrap();
        assert_ne!(id(), id());
        assert!(id().starts_with("v-") && id().len() == 18);
    }
}

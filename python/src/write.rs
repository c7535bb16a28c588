//! Writes to a session: the verbs with their rules, and the report of what they did.

use crate::moment::find_claim;
use crate::plain::{PlainValue, checkpoint_fields, plain_map};
use forge_store::error::Error;
use forge_store::model::claim::{self, DependencyType};
use forge_store::model::rule::{self, ClaimLookup, RuleError, RuleOutcome};
use forge_store::model::{FactOrigin, FieldMap};
use forge_store::store::{CheckpointTriggers, HeadClaims, SIGNIFICANT_MICROS, new_fact_id};
use forge_store::{
    Dependency, Fact, Key, Kind, Session, SessionWrite, Strength, Timestamp, Value, WriteContext,
    WriteReport,
};

/// A session to write to, with the context of one write.
pub(crate) struct VerbWriter<'a> {
    session: &'a Session,
    context: &'a WriteContext,
    /// All events or none. If they are all, and the last checkpoint is more than five minutes old,
    /// every change of claims and every fact makes a checkpoint.
    triggers: CheckpointTriggers,
}

impl<'a> VerbWriter<'a> {
    pub(crate) fn new(
        session: &'a Session,
        context: &'a WriteContext,
        automatic: bool,
    ) -> Result<Self, Error> {
        let on = if automatic { None } else { Some(Vec::new()) };
        let triggers =
            CheckpointTriggers::of_session(session, context.now, on, SIGNIFICANT_MICROS)?;
        Ok(Self { session, context, triggers })
    }

    /// Writes a new claim, under this id or the next free one.
    pub(crate) fn add(
        &self,
        kind: Kind,
        id: Option<&str>,
        mut fields: FieldMap,
    ) -> Result<PlainValue, Error> {
        fields.retain(|_, field| *field != Value::Null);
        if kind == Kind::Gap || kind == Kind::Hypothesis {
            let status = if kind == Kind::Gap { "open" } else { "active" };
            fields.entry("status".to_owned()).or_insert_with(|| status.into());
        }
        let grounds = match kind {
            Kind::Belief => fields.remove("on").unwrap_or_default(),
            _ => Value::Null,
        };
        let grounds: Vec<&str> =
            grounds.as_list().unwrap_or_default().iter().filter_map(Value::as_text).collect();
        if let Some(id) = id {
            claim::check_id(id).map_err(|error| Error::invalid(error.to_string()))?;
        }
        let value = claim::check(kind, &Value::Map(fields))
            .map_err(|error| Error::invalid(error.to_string()))?;
        let rule = |claims: &HeadClaims, id: &str| {
            if kind == Kind::Evidence {
                return rule::add_evidence(claims, id, &value);
            }
            let key = Key::new(kind, id);
            if claims.claim(&key).is_some() {
                return Err(RuleError::AlreadyExists(key));
            }
            // No other belief rests on a new one, so there can be no other cycle.
            if grounds.contains(&id) {
                return Err(RuleError::Cycle(vec![id.to_owned(), id.to_owned()]));
            }
            let mut outcome = RuleOutcome::of_change(key, None, value.clone());
            outcome.changes.extend(grounds.iter().map(|ground| {
                let dependency = Dependency::id(id, ground);
                (Key::new(Kind::Dependency, dependency), requires(id, ground, None).to_value())
            }));
            Ok(outcome)
        };
        let done = match id {
            Some(id) => self.rule(|claims| rule(claims, id))?,
            None => self.write().rule_with_next_id(kind, kind.id_prefix(), rule).commit()?,
        };
        let id = id.map(str::to_owned).or_else(|| done.new_id.clone());
        self.report(done, id)
    }

    /// Changes fields of a claim. A field that is null is removed.
    pub(crate) fn update(&self, name: &str, changed: &FieldMap) -> Result<PlainValue, Error> {
        let key = find_claim(self.session, &self.session.head()?, name)?;
        let status = changed.get("status").and_then(Value::as_text);
        let verb = match (key.kind, status) {
            (Kind::Hypothesis, Some("confirmed")) => Some("confirm"),
            (Kind::Hypothesis, Some("rejected")) => Some("reject"),
            (Kind::Gap, Some("filled")) => Some("fill"),
            _ => None,
        };
        if let Some(verb) = verb {
            return Err(Error::invalid(format!(
                "this status has consequences for other claims: use session.{verb}('{}', ...)",
                key.id
            )));
        }
        if key.kind == Kind::Hypothesis
            && let Some(parent) = changed.get("parent").and_then(Value::as_text)
            && let Some(path) = self.session.parent_cycle(&key.id, parent)?
        {
            return Err(Error::invalid(format!(
                "a cycle of parents, {}: name another parent",
                path.join(" -> ")
            )));
        }
        if key.kind == Kind::Gap && self.session.is_resolved_while_open(&key.id, changed)? {
            return Err(Error::invalid(format!(
                "the gap {id} is open and cannot have a resolution: use session.fill('{id}', ...), \
                or give the status 'unfillable' or 'obsolete' too",
                id = key.id
            )));
        }
        let done = self.rule(|claims| {
            let old = claims.claim(&key).ok_or_else(|| RuleError::NotFound(key.clone()))?;
            let mut fields = old.as_map().cloned().unwrap_or_default();
            rule::change_fields(key.kind, &mut fields, changed.clone());
            let new = claim::check(key.kind, &Value::Map(fields))?;
            match key.kind {
                Kind::Evidence => rule::update_evidence(claims, &key.id, &new),
                _ => Ok(RuleOutcome::of_change(key.clone(), Some(&old), new)),
            }
        })?;
        self.report(done, Some(key.id))
    }

    /// Confirms or rejects a hypothesis, with the consequences for other claims.
    pub(crate) fn settle(
        &self,
        id: &str,
        confirms: bool,
        reason: Option<&str>,
    ) -> Result<PlainValue, Error> {
        let done = self.rule(|claims| match confirms {
            true => rule::confirm_hypothesis(claims, id, reason),
            false => rule::reject_hypothesis(claims, id, reason),
        })?;
        self.report(done, Some(id.to_owned()))
    }

    /// Fills a gap with what was found out.
    pub(crate) fn fill(&self, id: &str, resolution: &str) -> Result<PlainValue, Error> {
        let done = self.rule(|claims| rule::fill_gap(claims, id, Some(resolution)))?;
        self.report(done, Some(id.to_owned()))
    }

    /// Retracts evidence, a belief or a note, with the consequences for other claims.
    pub(crate) fn retract(&self, name: &str) -> Result<PlainValue, Error> {
        let key = find_claim(self.session, &self.session.head()?, name)?;
        let done = match key.kind {
            Kind::Evidence => self.rule(|claims| rule::retract_evidence(claims, &key.id)),
            Kind::Belief => self.rule(|claims| rule::retract_belief(claims, &key.id)),
            Kind::Note => self.rule(|claims| rule::retract_note(claims, &key.id)),
            Kind::Hypothesis => Err(Error::invalid(format!(
                "a hypothesis is not retracted: use session.reject('{}', ...)",
                key.id
            ))),
            kind => Err(Error::invalid(format!(
                "a {kind} is not retracted: change it with session.update('{}', ...)",
                key.id
            ))),
        };
        self.report(done?, Some(key.id))
    }

    /// Adds the dependency of one belief on another.
    pub(crate) fn depend(
        &self,
        from: &str,
        to: &str,
        strength: Option<f64>,
    ) -> Result<PlainValue, Error> {
        let strength = strength
            .map(|number| {
                Strength::new(number).ok_or_else(|| {
                    Error::invalid(format!("the strength {number} is not between -1 and 1"))
                })
            })
            .transpose()?;
        let dependency = requires(from, to, strength);
        let done = self.rule(|claims| rule::add_dependency(claims, &dependency))?;
        self.report(done, Some(Dependency::id(from, to)))
    }

    /// Adds the contradiction of two beliefs, which become doubtful.
    pub(crate) fn contradict(
        &self,
        one: &str,
        other: &str,
        reason: Option<&str>,
    ) -> Result<PlainValue, Error> {
        let done = self.rule(|claims| rule::contradict_beliefs(claims, one, other, reason))?;
        self.report(done, Some(Dependency::id(one, other)))
    }

    /// Records a fact.
    pub(crate) fn record(
        &self,
        kind: Kind,
        id: Option<&str>,
        at: Option<Timestamp>,
        mut fields: FieldMap,
    ) -> Result<PlainValue, Error> {
        let id = match id {
            Some(id) => id.to_owned(),
            None => new_fact_id(kind)?,
        };
        let now = self.context.now;
        let mut write = self.write();
        for (_, field) in &mut fields {
            // A long text is replaced by a reference to an object of its own.
            if let Value::Text(text) = field {
                *field = write.text(text);
            }
        }
        let value = Value::Map(fields).without_nulls();
        let trigger = rule::trigger_of(kind, None, &value).map(|(trigger, _)| trigger);
        let fact = Fact {
            kind,
            id: id.clone(),
            at: at.unwrap_or(now),
            origin: FactOrigin::Recorded,
            place: u64::try_from(now.as_micros()).unwrap_or(0),
            recorded_at: now,
            value,
        };
        self.report(write.fact(fact).event(trigger).commit()?, Some(id))
    }

    /// Commits a write to which `prepare` adds the changes.
    pub(crate) fn commit(
        &self,
        prepare: impl FnOnce(SessionWrite<'a>) -> SessionWrite<'a>,
    ) -> Result<PlainValue, Error> {
        self.report(prepare(self.session.write(self.context)).commit()?, None)
    }

    /// Returns what a write did, as fields.
    pub(crate) fn report(
        &self,
        done: WriteReport,
        id: Option<String>,
    ) -> Result<PlainValue, Error> {
        let checkpoint = done
            .checkpoint
            .map(|one| {
                Ok::<_, Error>(checkpoint_fields(
                    one.clone(),
                    self.session.branch_name(one.branch)?,
                ))
            })
            .transpose()?;
        Ok(plain_map! {
            "id": id,
            "operation": done.operation.to_string(),
            "session": done.session,
            "branch": done.branch,
            "revision": done.revision.map(|(number, _)| number),
            "checkpoint": checkpoint,
            "warnings": done.warnings,
            "spooled": done.spooled,
        })
    }

    fn rule(
        &self,
        rule: impl Fn(&HeadClaims) -> Result<RuleOutcome, RuleError>,
    ) -> Result<WriteReport, Error> {
        self.write().rule(rule).commit()
    }

    fn write(&self) -> SessionWrite<'_> {
        self.session.write(self.context).triggers(&self.triggers)
    }
}

fn requires(from: &str, to: &str, strength: Option<Strength>) -> Dependency {
    Dependency {
        from: Some(from.to_owned()),
        to: Some(to.to_owned()),
        dependency_type: Some(DependencyType::Requires),
        strength,
        ..Dependency::default()
    }
}

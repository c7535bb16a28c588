//! Writing claims and facts as typed records.

use super::checkpoint::automatic;
use super::{SessionWrite, WriteReport};
use crate::engine::commit::random;
use crate::engine::revision_plan::ClaimChange;
use crate::error::{Error, Result};
use crate::format::hex;
use crate::model::claim::{Dependency, TypedRecord};
use crate::model::time_grammar::{MomentBase, MomentExpression};
use crate::model::{Fact, FactOrigin, Key, Kind, rule};
use crate::store::{Session, WriteContext};

/// How many new ids are tried while other processes take them first.
const ATTEMPTS: usize = 16;

impl SessionWrite<'_> {
    /// Adds a typed record under an id that is not taken: a claim, or a fact that happens at the
    /// time of the write.
    ///
    /// What follows from it is written too: evidence changes the confidence of its hypothesis, and
    /// an event such as a finished verification makes its automatic checkpoint, unless the write
    /// has a checkpoint of its own. The id of a dependency is made of its two ends.
    ///
    /// ```
    /// use forge_store::{Belief, Evidence, Hypothesis, NewSession, Store, Timestamp, WriteContext};
    ///
    /// let store = Store::in_memory()?;
    /// let context = WriteContext::asked("first look", Timestamp::from_micros(0));
    /// let session = store.create_session(&context, NewSession::named("broken build"))?;
    /// // One revision with all three, or nothing.
    /// session
    ///     .write(&context)
    ///     .add("cache", Hypothesis::default().description("the cache is stale"))
    ///     .add("clean", Evidence::default().hypothesis("cache"))
    ///     .add("green", Belief::default().hypothesis("cache"))
    ///     .commit()?;
    /// assert_eq!(session.head()?.revision(), Some(1));
    /// # Ok::<(), forge_store::Error>(())
    /// ```
    pub fn add<R: TypedRecord>(mut self, id: impl Into<String>, record: R) -> Self {
        let (id, value) = (id.into(), record.into_value());
        match R::KIND {
            Kind::Evidence => {
                return self.rule(move |claims| rule::add_evidence(claims, &id, &value));
            }
            Kind::Dependency => {
                return self.rule(move |claims| {
                    rule::add_dependency(claims, &Dependency::from_value(&value)?)
                });
            }
            _ => {}
        }
        if let (Some((trigger, tag)), None) =
            (rule::trigger_of(R::KIND, None, &value), &self.checkpoint)
        {
            self.checkpoint = Some(automatic(trigger, tag));
        }
        if R::KIND.is_claim() {
            return self.change(ClaimChange::add(Key::new(R::KIND, id), value));
        }
        let now = self.act.now;
        let place = u64::try_from(now.as_micros()).unwrap_or(0);
        let at = self.time.unwrap_or(now);
        let origin = FactOrigin::Recorded;
        self.fact(Fact { kind: R::KIND, id, at, origin, place, recorded_at: now, value })
    }

    /// Sets a claim to this typed record, whether or not it exists. Nothing follows from it: other
    /// claims stay as they are.
    pub fn put<R: TypedRecord>(self, id: impl Into<String>, record: R) -> Self {
        self.change(ClaimChange::put(Key::new(R::KIND, id), record.into_value()))
    }
}

impl Session {
    /// Adds a typed record under a new id: a claim under the next free one (`H1`, `H2`, ... for
    /// hypotheses), a fact under a random one. Returns the id and what the write did.
    /// [`SessionWrite::add`] says what follows from a record, and takes ids of one's own.
    ///
    /// ```
    /// use forge_store::{Hypothesis, NewSession, Store, Timestamp, WriteContext};
    ///
    /// let store = Store::in_memory()?;
    /// let context = WriteContext::asked("first look", Timestamp::from_micros(0));
    /// let session = store.create_session(&context, NewSession::named("broken build"))?;
    /// let cause = Hypothesis {
    ///     description: Some("the cache is stale".to_owned()),
    ///     ..Hypothesis::default()
    /// };
    /// let (id, _) = session.add(&context, cause.clone())?;
    /// assert_eq!(id, "H1");
    /// assert_eq!(session.state(&session.head()?)?.get(&id)?, Some(cause));
    /// # Ok::<(), forge_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for fields that are not valid, [`Error::NotFound`] for a claim that it
    /// names, [`Error::Conflict`] if others take every new id first, or any error of a write.
    pub fn add<R: TypedRecord>(
        &self,
        context: &WriteContext,
        record: R,
    ) -> Result<(String, WriteReport)> {
        if R::KIND == Kind::Dependency {
            let report = self.write(context).add("", record).commit()?;
            let added = report.changed.iter().find(|(key, _)| key.kind == Kind::Dependency);
            return Ok((added.map(|(key, _)| key.id.clone()).unwrap_or_default(), report));
        }
        for _ in 0..ATTEMPTS {
            let id = self.new_id(R::KIND)?;
            match self.write(context).add(id.as_str(), record.clone()).commit() {
                Err(Error::Duplicate { .. }) => {}
                written => return Ok((id, written?)),
            }
        }
        Err(Error::Conflict(format!(
            "others take every new id for a {} first: try again, or choose an id",
            R::KIND
        )))
    }

    /// Returns an id for a new claim or fact of this kind. That of a claim is free on all branches,
    /// so that two of them do not mean different things by one id.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn new_id(&self, kind: Kind) -> Result<String> {
        if !kind.is_claim() {
            // A count would be taken twice: facts of one kind and id are versions of one fact.
            let letter = kind.name().chars().next().unwrap_or('x');
            return Ok(format!("{letter}-{}", hex(&random::<8>()?)));
        }
        let letter = match kind {
            Kind::Hypothesis => "H",
            Kind::Evidence => "E",
            Kind::Belief => "B",
            Kind::Gap => "G",
            Kind::Note => "N",
            _ => "X",
        };
        let head = self.head()?;
        let mut points = Vec::new();
        for branch in self.branches(&head)?.into_iter().filter(|branch| !branch.current) {
            let base = MomentBase::Branch(branch.name);
            points.push(self.resolve(&MomentExpression { base, back: 0 })?);
        }
        points.push(head);
        let is_taken = |number: u64| -> Result<bool> {
            let key = Key::new(kind, format!("{letter}{number}"));
            for point in &points {
                if self.claim(point, &key)?.is_some() {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        // Doubles, then halves, so that a session with many claims needs few lookups.
        let (mut taken, mut free) = (0, 1);
        while is_taken(free)? {
            taken = free;
            free = taken.saturating_mul(2);
        }
        while free - taken > 1 {
            let middle = taken + (free - taken) / 2;
            if is_taken(middle)? {
                taken = middle;
            } else {
                free = middle;
            }
        }
        Ok(format!("{letter}{free}"))
    }
}

//! Writes claims and facts that are typed records.

use super::checkpoint::automatic;
use super::{SessionWrite, WriteReport};
use crate::engine::random::random;
use crate::engine::revision_plan::ClaimChange;
use crate::error::Result;
use crate::model::claim::{Dependency, TypedRecord};
use crate::model::{Fact, FactOrigin, Key, Kind, Value, hex, rule};
use crate::store::{Session, WriteContext};

impl SessionWrite<'_> {
    /// Adds a typed record: a claim under an id that is not taken, or a fact that happens at the
    /// time of the write. A fact with the id of another fact of its kind is a new version of that
    /// fact.
    ///
    /// The consequences of the record are written too: evidence changes the confidence of its
    /// hypothesis, and an event such as a finished verification makes an automatic checkpoint,
    /// unless the write has a checkpoint of its own. For a dependency, `id` is ignored: the id is
    /// made of its two ends.
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
        self = self.with_automatic_checkpoint(R::KIND, &value);
        if R::KIND.is_claim() {
            return self.change(ClaimChange::add(Key::new(R::KIND, id), value));
        }
        let now = self.act.now;
        let place = u64::try_from(now.as_micros()).unwrap_or(0);
        let at = self.time.unwrap_or(now);
        let origin = FactOrigin::Recorded;
        self.fact(Fact { kind: R::KIND, id, at, origin, place, recorded_at: now, value })
    }

    /// Adds the automatic checkpoint that adding this value triggers, if any, unless the write has
    /// a checkpoint.
    fn with_automatic_checkpoint(mut self, kind: Kind, value: &Value) -> Self {
        if self.checkpoint.is_none()
            && let Some((trigger, tag)) = rule::trigger_of(kind, None, value)
        {
            self.checkpoint = Some(automatic(trigger, tag));
        }
        self
    }

    /// Sets a claim to this typed record, whether or not the claim exists. This has no consequences
    /// for other claims.
    pub fn put<R: TypedRecord>(self, id: impl Into<String>, record: R) -> Self {
        self.change(ClaimChange::put(Key::new(R::KIND, id), record.into_value()))
    }
}

impl Session {
    /// Adds a typed record under a new id: a claim under the next free id (`H1`, `H2`, ... for
    /// hypotheses), a fact under a random id, a dependency under the id of its two ends. Returns
    /// the id and what the write did. [`SessionWrite::add`] adds a record under an id that you
    /// choose, and describes the consequences of a record.
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
    /// [`Error::Invalid`] if a field is not valid; [`Error::NotFound`] if the record names a claim
    /// that does not exist; or any error of a write.
    ///
    /// [`Error::Invalid`]: crate::Error::Invalid
    /// [`Error::NotFound`]: crate::Error::NotFound
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
        if !R::KIND.is_claim() {
            let id = new_fact_id(R::KIND)?;
            let report = self.write(context).add(id.as_str(), record).commit()?;
            return Ok((id, report));
        }
        let (kind, value, write) = (R::KIND, record.into_value(), self.write(context));
        let write = if kind == Kind::Evidence {
            write.rule_with_next_id(kind, kind.id_prefix(), move |claims, id| {
                rule::add_evidence(claims, id, &value)
            })
        } else {
            write.with_automatic_checkpoint(kind, &value).add_next(kind, kind.id_prefix(), value)
        };
        let report = write.commit()?;
        Ok((report.new_id.clone().unwrap_or_default(), report))
    }
}

/// Returns a random id for a new fact. Facts with one kind and id are versions of one fact, so two
/// processes that counted their facts would replace each other's.
pub fn new_fact_id(kind: Kind) -> Result<String> {
    let letter = kind.name().chars().next().unwrap_or('x');
    Ok(format!("{letter}-{}", hex(&random::<8>()?)))
}

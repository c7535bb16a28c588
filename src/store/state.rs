//! What was known at a point, and what changed between two.

use super::resolve_moment::ResolvedMoment;
use super::session::{BranchSummary, Session, branches};
use crate::diff::{self, TypedChange};
use crate::engine::checkpoint;
use crate::engine::fact::{self, FactClock, SourcedFact};
use crate::engine::journal_follower::ReadSnapshot;
use crate::engine::lineage;
use crate::engine::lookup;
use crate::engine::materialize::materialize;
use crate::engine::refs::session as session_refs;
use crate::engine::state::{RevisionState, StateDifferences};
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::{decode_entry, encode_key};
use crate::model::claim::{IDLE_AFTER, SessionMetrics};
use crate::model::{
    Checkpoint, ClaimEntry, EntryChange, Key, Kind, RevisionId, SessionMetadata, Timestamp, Value,
};

/// A revision in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevisionSummary {
    /// Its number in the session's one count.
    pub sequence: u64,
    /// Its id.
    pub id: RevisionId,
    /// Its effective time.
    pub time: Timestamp,
    /// The branch it lies on.
    pub branch: String,
    /// How many claims its state has.
    pub claims: u64,
}

/// What was known at a point: claims at hand, facts read when asked for.
pub struct StateAt {
    view: ReadSnapshot,
    session: Session,
    point: ResolvedMoment,
    clock: FactClock,
    claims: RevisionState,
}

impl Session {
    /// Returns what was known at a point.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn state(&self, point: &ResolvedMoment) -> Result<StateAt> {
        self.state_by(point, FactClock::Happened)
    }

    /// Returns what was known at a point, by one clock or the other.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn state_by(&self, point: &ResolvedMoment, clock: FactClock) -> Result<StateAt> {
        let view = self.view()?;
        let claims = match point.at {
            None => RevisionState::default(),
            Some(at) => materialize(&view, &view.refs, self.number, at)?,
        };
        Ok(StateAt { view, session: self.clone(), point: point.clone(), clock, claims })
    }

    /// Returns the revision of a point, without its state; `None` before the first.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn revision_of(&self, point: &ResolvedMoment) -> Result<Option<RevisionSummary>> {
        self.revision_in(&self.view()?, point)
    }

    fn revision_in(
        &self,
        view: &ReadSnapshot,
        point: &ResolvedMoment,
    ) -> Result<Option<RevisionSummary>> {
        let Some(at) = point.at else { return Ok(None) };
        let (head, _) = timeline::head_at(view, self.number, at)?;
        let session = session_refs(&view.refs, self.number)?;
        Ok(Some(RevisionSummary {
            sequence: head.sequence,
            id: head.id,
            time: head.effective,
            branch: session.branch(at.branch)?.name.clone(),
            claims: head.count,
        }))
    }

    /// Returns the branch of a point.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn branch_of(&self, point: &ResolvedMoment) -> Result<String> {
        self.branch_name(point.branch)
    }

    /// Returns the time of a point: its own, or that of the last thing recorded; `None` if nothing
    /// is.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn time_of(&self, point: &ResolvedMoment) -> Result<Option<Timestamp>> {
        self.shown_time(&self.view()?, point)
    }

    /// One claim at a point, without the rest of the state.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn claim(&self, point: &ResolvedMoment, key: &Key) -> Result<Option<ClaimEntry>> {
        let view = self.view()?;
        self.check_in_sight(&view, point)?;
        let Some(at) = point.at else { return Ok(None) };
        lookup::entry(&view, &view.refs, self.number, at, &encode_key(key))?
            .map(|bytes| decode_entry(&bytes).map_err(Error::corrupt(format_args!("the {key}"))))
            .transpose()
    }

    /// Several claims at a point, all at one moment, without the rest of the state; `None` where
    /// there is none.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn claims(&self, point: &ResolvedMoment, keys: &[Key]) -> Result<Vec<Option<ClaimEntry>>> {
        let view = self.view()?;
        self.check_in_sight(&view, point)?;
        let Some(at) = point.at else { return Ok(vec![None; keys.len()]) };
        let stretches = lineage::state_ranges(&view, &view.refs, self.number, at)?;
        keys.iter()
            .map(|key| {
                lookup::entry_in(&view, &view.refs, self.number, &stretches, &encode_key(key))?
                    .map(|bytes| {
                        decode_entry(&bytes).map_err(Error::corrupt(format_args!("the {key}")))
                    })
                    .transpose()
            })
            .collect()
    }

    /// Returns the claims that changed from one point to another, as stored: nothing is decoded.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn changed_claims(
        &self,
        from: &ResolvedMoment,
        to: &ResolvedMoment,
    ) -> Result<StateDifferences> {
        let view = self.view()?;
        [from, to].into_iter().try_for_each(|point| self.check_in_sight(&view, point))?;
        crate::engine::compare::compare_encoded(&view, &view.refs, self.number, from.at, to.at)
    }

    /// Returns what changed from one point to another.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn compare(&self, from: &ResolvedMoment, to: &ResolvedMoment) -> Result<StateComparison> {
        let view = self.view()?;
        [from, to].into_iter().try_for_each(|point| self.check_in_sight(&view, point))?;
        let claims =
            crate::engine::compare::compare(&view, &view.refs, self.number, from.at, to.at)?;
        let mut changes = diff::describe(&claims);
        let times = (from.until(), to.until());
        for kind in Kind::facts() {
            if times.0 != times.1 {
                let old = fact::facts_at(
                    &view,
                    &view.refs,
                    self.number,
                    kind,
                    times.0,
                    FactClock::Happened,
                )?;
                let new = fact::facts_at(
                    &view,
                    &view.refs,
                    self.number,
                    kind,
                    times.1,
                    FactClock::Happened,
                )?;
                let plain = |known: &[SourcedFact]| -> Vec<crate::model::Fact> {
                    known.iter().map(|known| known.fact.clone()).collect()
                };
                changes.extend(diff::describe_facts(&plain(&old), &plain(&new)));
            }
        }
        let delta = self.shown_time(&view, to)?.zip(self.shown_time(&view, from)?);
        let time_delta_micros = delta.map(|(to, from)| to.micros_since(from));
        let summary = diff::summary(&changes, time_delta_micros);
        Ok(StateComparison { claims, changes, time_delta_micros, summary })
    }

    /// Checks that the revision of a point is still in sight: it may have been pruned since the
    /// point was found.
    fn check_in_sight(&self, view: &ReadSnapshot, point: &ResolvedMoment) -> Result<()> {
        point.at.map_or(Ok(()), |at| lineage::check_in_sight(view, self.number, at))
    }

    /// Returns the time that a point is shown with: its own, or that of the last thing recorded.
    fn shown_time(&self, view: &ReadSnapshot, point: &ResolvedMoment) -> Result<Option<Timestamp>> {
        match point.time {
            Some(time) => Ok(Some(time)),
            None => Ok(session_refs(&view.refs, self.number)?.last_event),
        }
    }
}

/// What changed from one point to another.
#[derive(Clone, Debug)]
pub struct StateComparison {
    /// The claims that changed, with both entries.
    pub claims: Vec<EntryChange>,
    /// All changes, claims and facts, in terms of their kinds.
    pub changes: Vec<TypedChange>,
    /// Microseconds from the one to the other; `None` if nothing has happened at all.
    pub time_delta_micros: Option<i64>,
    /// One sentence.
    pub summary: String,
}

impl StateAt {
    /// Returns the point.
    #[must_use]
    pub const fn point(&self) -> &ResolvedMoment {
        &self.point
    }

    /// Returns the session.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Returns what the session is.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn info(&self) -> Result<SessionMetadata> {
        Ok(session_refs(&self.view.refs, self.session.number)?.info.clone())
    }

    /// Returns the claims.
    #[must_use]
    pub const fn claims(&self) -> &RevisionState {
        &self.claims
    }

    /// One claim.
    ///
    /// # Errors
    /// If what is stored is damaged.
    pub fn claim(&self, kind: Kind, id: &str) -> Result<Option<Value>> {
        Ok(self.claims.entry(&Key::new(kind, id))?.map(|entry| entry.value))
    }

    /// Returns the claims of a kind, sorted by their own time, then id.
    ///
    /// # Errors
    /// If what is stored is damaged.
    pub fn claims_of(&self, kind: Kind) -> Result<Vec<(String, ClaimEntry)>> {
        let mut claims = self
            .claims
            .entries_of_kind(kind)
            .map(|entry| entry.map(|(key, entry)| (key.id, entry)))
            .collect::<Result<Vec<_>>>()?;
        claims.sort_by(|a, b| (a.1.added_at, &a.0).cmp(&(b.1.added_at, &b.0)));
        Ok(claims)
    }

    /// Returns the facts of a kind, sorted by time, then id.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn facts_of(&self, kind: Kind) -> Result<Vec<SourcedFact>> {
        let time = self.until();
        fact::facts_at(&self.view, &self.view.refs, self.session.number, kind, time, self.clock)
    }

    fn until(&self) -> Timestamp {
        self.point.until()
    }

    /// Returns the time of this state: the point's own, or that of the last thing recorded.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn time(&self) -> Result<Option<Timestamp>> {
        self.session.shown_time(&self.view, &self.point)
    }

    /// Returns the last checkpoint at or before this moment; the one that was named, if one was.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn checkpoint(&self) -> Result<Option<Checkpoint>> {
        match &self.point.checkpoint {
            Some(named) => Ok(Some((**named).clone())),
            None => checkpoint::last_at(&self.view, self.session.number, self.until()),
        }
    }

    /// Returns the revision that the claims are those of; `None` before the first.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn revision(&self) -> Result<Option<RevisionSummary>> {
        self.session.revision_in(&self.view, &self.point)
    }

    /// Microseconds from the last revision or fact at or before this moment to this moment.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn distance_micros(&self) -> Result<Option<i64>> {
        let Some(time) = self.time()? else { return Ok(None) };
        let fact = fact::last_at(&self.view, &self.view.refs, self.session.number, time)?;
        let revision = self.revision()?.map(|revision| revision.time);
        Ok(fact.max(revision).map(|last| time.micros_since(last)))
    }

    /// Returns the branches at this moment.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn branches(&self) -> Result<Vec<BranchSummary>> {
        branches(&self.view, self.session.number, &self.point)
    }

    /// Returns the branch that was checked out (for a branch or its past, the branch named).
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn current_branch(&self) -> Result<String> {
        let session = session_refs(&self.view.refs, self.session.number)?;
        Ok(session.branch(self.point.branch)?.name.clone())
    }

    /// Returns the session's figures up to this moment.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn metrics(&self) -> Result<SessionMetrics> {
        let number = self.session.number;
        let refs = &self.view.refs;
        let checkpoints = checkpoint::count(&self.view, refs, number, self.until())?;
        let values = |kind| -> Result<Vec<Value>> {
            Ok(self.claims_of(kind)?.into_iter().map(|(_, entry)| entry.value).collect())
        };
        let mut stretches =
            timeline::active_periods(&self.view, refs, number, self.until(), IDLE_AFTER)?;
        let mut verifications = Vec::new();
        for kind in Kind::facts() {
            for known in self.facts_of(kind)? {
                stretches.push(known.fact.at..=known.fact.at);
                if kind == Kind::Verification {
                    verifications.push(known.fact.value);
                }
            }
        }
        Ok(SessionMetrics::compute(
            checkpoints,
            &values(Kind::Hypothesis)?,
            &values(Kind::Gap)?,
            &verifications,
            stretches,
        ))
    }
}

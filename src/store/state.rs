//! The state at a moment, and the comparison of two moments.

use super::branch::{BranchSummary, branches};
use super::history::LogItem;
use super::resolve_moment::ResolvedMoment;
use super::session::Session;
use crate::diff::{self, TypedChange};
use crate::engine::checkpoint::{self, CheckpointFilter};
use crate::engine::fact::{self, FactClock, SourcedFact};
use crate::engine::lineage;
use crate::engine::lookup;
use crate::engine::materialize::materialize;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::session as session_refs;
use crate::engine::state::{RevisionState, StateDifferences};
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::{decode_entry, encode_key};
use crate::model::claim::{IDLE_AFTER, SessionMetrics, TypedRecord};
use crate::model::{
    Checkpoint, ClaimEntry, EntryChange, Key, Kind, RevisionId, SessionMetadata, Timestamp, Value,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// A summary of a revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RevisionSummary {
    /// The sequence number.
    pub sequence: u64,
    /// The revision id.
    pub id: RevisionId,
    /// The effective time.
    pub time: Timestamp,
    /// The branch it is on.
    pub branch: String,
    /// How many claims its state has.
    #[serde(skip)]
    pub claims: u64,
}

/// The state at a moment. Claims are in memory, in their stored form; facts are read on demand.
pub struct StateAt {
    view: ReadSnapshot,
    session: Session,
    moment: ResolvedMoment,
    clock: FactClock,
    claims: RevisionState,
}

impl Session {
    /// Returns the state at a moment.
    pub fn state(&self, moment: &ResolvedMoment) -> Result<StateAt> {
        self.state_by(moment, FactClock::Happened)
    }

    /// Returns the state at a moment. `clock` selects which time of a fact counts.
    pub fn state_by(&self, moment: &ResolvedMoment, clock: FactClock) -> Result<StateAt> {
        let view = self.view()?;
        let claims = match moment.at {
            None => RevisionState::default(),
            Some(at) => materialize(&view, &view.refs, self.number, at)?,
        };
        Ok(StateAt { view, session: self.clone(), moment: moment.clone(), clock, claims })
    }

    /// Returns the revision of a moment, without its state; `None` before the first.
    pub fn revision_of(&self, moment: &ResolvedMoment) -> Result<Option<RevisionSummary>> {
        self.revision_in(&self.view()?, moment)
    }

    fn revision_in(
        &self,
        view: &ReadSnapshot,
        moment: &ResolvedMoment,
    ) -> Result<Option<RevisionSummary>> {
        let Some(at) = moment.at else { return Ok(None) };
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

    /// Returns the branch of a moment.
    pub fn branch_of(&self, moment: &ResolvedMoment) -> Result<String> {
        self.branch_name(moment.branch)
    }

    /// Returns the time of a moment: its own, or that of the last recorded event; `None` if there
    /// is none.
    pub fn time_of(&self, moment: &ResolvedMoment) -> Result<Option<Timestamp>> {
        self.shown_time(&self.view()?, moment)
    }

    /// Reads one claim at a moment, without the rest of the state.
    pub fn claim(&self, moment: &ResolvedMoment, key: &Key) -> Result<Option<ClaimEntry>> {
        let view = self.view()?;
        self.check_in_sight(&view, moment)?;
        let Some(at) = moment.at else { return Ok(None) };
        lookup::entry(&view, &view.refs, self.number, at, &encode_key(key))?
            .map(|bytes| decode_entry(&bytes).map_err(Error::corrupt(format_args!("the {key}"))))
            .transpose()
    }

    /// Reads several claims at a moment from one snapshot, without the rest of the state; `None`
    /// for a claim that does not exist.
    pub fn claims(&self, moment: &ResolvedMoment, keys: &[Key]) -> Result<Vec<Option<ClaimEntry>>> {
        let view = self.view()?;
        self.check_in_sight(&view, moment)?;
        let Some(at) = moment.at else { return Ok(vec![None; keys.len()]) };
        let ranges = lineage::state_ranges(&view, &view.refs, self.number, at)?;
        keys.iter()
            .map(|key| {
                lookup::entry_in(&view, &view.refs, self.number, &ranges, &encode_key(key))?
                    .map(|bytes| {
                        decode_entry(&bytes).map_err(Error::corrupt(format_args!("the {key}")))
                    })
                    .transpose()
            })
            .collect()
    }

    /// Returns the claims that differ between two moments, as stored, without decoding them.
    pub fn changed_claims(
        &self,
        from: &ResolvedMoment,
        to: &ResolvedMoment,
    ) -> Result<StateDifferences> {
        let view = self.view()?;
        [from, to].into_iter().try_for_each(|moment| self.check_in_sight(&view, moment))?;
        crate::engine::compare::compare_encoded(&view, &view.refs, self.number, from.at, to.at)
    }

    /// Compares two moments.
    pub fn compare(&self, from: &ResolvedMoment, to: &ResolvedMoment) -> Result<StateComparison> {
        let view = self.view()?;
        [from, to].into_iter().try_for_each(|moment| self.check_in_sight(&view, moment))?;
        let claims =
            crate::engine::compare::compare(&view, &view.refs, self.number, from.at, to.at)?;
        let mut changes = diff::describe(&claims);
        let (old, new) = (from.until(), to.until());
        for kind in Kind::facts().filter(|_| old != new) {
            let facts_at = |time| -> Result<Vec<crate::model::Fact>> {
                let clock = FactClock::Happened;
                let known = fact::facts_at(&view, &view.refs, self.number, kind, time, clock)?;
                Ok(known.into_iter().map(|known| known.fact).collect())
            };
            changes.extend(diff::describe_facts(&facts_at(old)?, &facts_at(new)?));
        }
        let delta = self.shown_time(&view, to)?.zip(self.shown_time(&view, from)?);
        let time_delta_micros = delta.map(|(to, from)| to.micros_since(from));
        let summary = diff::summary(&changes, time_delta_micros);
        Ok(StateComparison { claims, changes, time_delta_micros, summary })
    }

    /// Checks that the revision of a moment is still visible: it may have been pruned since the
    /// moment was resolved.
    fn check_in_sight(&self, view: &ReadSnapshot, moment: &ResolvedMoment) -> Result<()> {
        moment.at.map_or(Ok(()), |at| lineage::check_visible(view, self.number, at))
    }

    /// Returns the time to show for a moment: its own, or that of the last recorded event.
    fn shown_time(
        &self,
        view: &ReadSnapshot,
        moment: &ResolvedMoment,
    ) -> Result<Option<Timestamp>> {
        match moment.time {
            Some(time) => Ok(Some(time)),
            None => Ok(session_refs(&view.refs, self.number)?.last_event),
        }
    }
}

fn typed<R: TypedRecord>(id: &str, value: &Value) -> Result<R> {
    R::from_value(value).map_err(|error| Error::Corrupt {
        what: format!("the {} {id}", R::KIND),
        source: Box::new(error),
    })
}

impl fmt::Debug for StateAt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("StateAt")
            .field("session", &self.session)
            .field("moment", &self.moment)
            .field("claims", &self.claims.len())
            .finish_non_exhaustive()
    }
}

/// The differences between two moments.
#[derive(Clone, Debug)]
pub struct StateComparison {
    /// The claims that differ, with both entries.
    pub claims: Vec<EntryChange>,
    /// All changes of claims and facts, described by kind.
    pub changes: Vec<TypedChange>,
    /// Microseconds from the first moment to the second; `None` if nothing is recorded.
    pub time_delta_micros: Option<i64>,
    /// A summary in one sentence.
    pub summary: String,
}

impl StateAt {
    /// Returns the moment of this state.
    #[must_use]
    pub const fn moment(&self) -> &ResolvedMoment {
        &self.moment
    }

    /// Returns the session of this state.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the metadata of the session.
    pub fn info(&self) -> Result<SessionMetadata> {
        Ok(session_refs(&self.view.refs, self.session.number)?.info.clone())
    }

    /// Returns the claims of this state.
    #[must_use]
    pub const fn claims(&self) -> &RevisionState {
        &self.claims
    }

    /// Returns the value of one claim.
    pub fn claim(&self, kind: Kind, id: &str) -> Result<Option<Value>> {
        Ok(self.claims.entry(&Key::new(kind, id))?.map(|entry| entry.value))
    }

    /// Returns the claims of a kind, sorted by the time they were added, then by id.
    pub fn claims_of(&self, kind: Kind) -> Result<Vec<(String, ClaimEntry)>> {
        let mut claims = self
            .claims
            .entries_of_kind(kind)
            .map(|entry| entry.map(|(key, entry)| (key.id, entry)))
            .collect::<Result<Vec<_>>>()?;
        claims.sort_by(|a, b| (a.1.added_at, &a.0).cmp(&(b.1.added_at, &b.0)));
        Ok(claims)
    }

    /// Returns one claim or fact as a typed record; `None` if it does not exist.
    pub fn get<R: TypedRecord>(&self, id: &str) -> Result<Option<R>> {
        if R::KIND.is_claim() {
            return self.claim(R::KIND, id)?.map(|value| typed(id, &value)).transpose();
        }
        let facts = self.facts_of(R::KIND)?;
        let found = facts.iter().find(|known| known.fact.id == id);
        found.map(|known| typed(id, &known.fact.value)).transpose()
    }

    /// Returns all claims or facts of a kind as typed records, each with its id: claims by the time
    /// they were added, facts by the time they happened.
    ///
    /// ```
    /// use forge_store::{Note, NewSession, Store, Timestamp, WriteContext};
    ///
    /// let store = Store::in_memory()?;
    /// let context = WriteContext::asked("first look", Timestamp::from_micros(0));
    /// let session = store.create_session(&context, NewSession::named("broken build"))?;
    /// session.add(&context, Note::default().description("the log is empty"))?;
    /// for (id, note) in session.state(&session.head()?)?.all::<Note>()? {
    ///     println!("{id}: {}", note.description.unwrap_or_default());
    /// }
    /// # Ok::<(), forge_store::Error>(())
    /// ```
    pub fn all<R: TypedRecord>(&self) -> Result<Vec<(String, R)>> {
        let values: Vec<(String, Value)> = if R::KIND.is_claim() {
            let claims = self.claims_of(R::KIND)?.into_iter();
            claims.map(|(id, entry)| (id, entry.value)).collect()
        } else {
            let facts = self.facts_of(R::KIND)?.into_iter();
            facts.map(|known| (known.fact.id, known.fact.value)).collect()
        };
        let records = values.into_iter().map(|(id, value)| Ok((typed(&id, &value)?, id)));
        records.map(|record: Result<(R, String)>| record.map(|(record, id)| (id, record))).collect()
    }

    /// Returns the facts of a kind, sorted by time, then id.
    pub fn facts_of(&self, kind: Kind) -> Result<Vec<SourcedFact>> {
        let time = self.until();
        fact::facts_at(&self.view, &self.view.refs, self.session.number, kind, time, self.clock)
    }

    /// Returns the facts of all kinds, by kind, then sorted by time, then id. Reads the stored
    /// pages once, where a call for each kind would read them for each kind.
    pub fn facts(&self) -> Result<Vec<SourcedFact>> {
        let time = self.until();
        fact::all_facts_at(&self.view, &self.view.refs, self.session.number, time, self.clock)
    }

    fn until(&self) -> Timestamp {
        self.moment.until()
    }

    /// Returns the time of this state: the moment's own, or that of the last recorded event.
    pub fn time(&self) -> Result<Option<Timestamp>> {
        self.session.shown_time(&self.view, &self.moment)
    }

    /// Returns the named checkpoint, or the last one at or before this moment.
    pub fn checkpoint(&self) -> Result<Option<Checkpoint>> {
        match &self.moment.checkpoint {
            Some(named) => Ok(Some((**named).clone())),
            None => checkpoint::last_at(&self.view, self.session.number, self.until()),
        }
    }

    /// Returns the revision of this state; `None` before the first.
    pub fn revision(&self) -> Result<Option<RevisionSummary>> {
        self.session.revision_in(&self.view, &self.moment)
    }

    /// Returns the microseconds from the last revision or fact at or before this moment to this
    /// moment; `None` if there is none.
    pub fn distance_micros(&self) -> Result<Option<i64>> {
        let Some(time) = self.time()? else { return Ok(None) };
        let fact = fact::last_at(&self.view, &self.view.refs, self.session.number, time)?;
        let revision = self.revision()?.map(|revision| revision.time);
        Ok(fact.max(revision).map(|last| time.micros_since(last)))
    }

    /// Returns the branches as they were at this moment.
    pub fn branches(&self) -> Result<Vec<BranchSummary>> {
        branches(&self.view, self.session.number, &self.moment)
    }

    /// Returns the revisions of all branches and the checkpoints up to this moment, ordered by
    /// number.
    pub fn records(&self) -> Result<Vec<LogItem>> {
        let (mut items, _) = self.session.records_at(&self.view, 0, usize::MAX)?;
        items.retain(|item| item.time() <= self.until());
        Ok(items)
    }

    /// Returns the last `count` revisions and checkpoints of the session up to this moment, ordered
    /// by number, and whether the session has older ones. Folded revisions count, too, unless all
    /// `count` are folded. The older ones are not read. Later ones are, `count` at a time.
    ///
    /// # Errors
    /// Fails if the store cannot be read or is damaged.
    pub fn last_records(&self, count: usize) -> Result<(Vec<LogItem>, bool)> {
        let count = count.max(1);
        let mut end = u64::MAX;
        loop {
            let (from, has_older) = self.session.number_of_last(&self.view, end, count)?;
            let (mut items, _) = self.session.records_at(&self.view, from, count)?;
            let read = items.len();
            items.retain(|item| item.time() <= self.until());
            // Lost revisions have no time of their own: only others tell what is up to this moment.
            if has_older && items.iter().all(|item| matches!(item, LogItem::Lost(_))) {
                end = from;
                continue;
            }
            let after = items.last().map_or(from, |item| item.sequence().saturating_add(1));
            if items.len() == read || !has_older || after >= end {
                return Ok((items, has_older));
            }
            // Later ones do not count, so count again from the last one that is not later.
            end = after;
        }
    }

    /// Returns the checkpoints from a time up to this moment, the latest first.
    pub fn checkpoints_since(&self, since: Timestamp) -> Result<Vec<Checkpoint>> {
        let (since, until) = (Some(since), Some(self.until()));
        let filter = CheckpointFilter { since, until, ..CheckpointFilter::default() };
        checkpoint::list(&self.view, self.session.number, &filter)
    }

    /// Returns the changes of these revisions by number, read in batches. Resets are left out, and
    /// so are revisions with lost changes: [`StateAt::changes_of`] reads each of these, or fails.
    pub fn changes_of_many(&self, sequences: &[u64]) -> Result<BTreeMap<u64, Vec<EntryChange>>> {
        self.session.changes_in_batches(&self.view, sequences)
    }

    /// Returns the changes of one revision.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such revision.
    pub fn changes_of(&self, sequence: u64) -> Result<Vec<EntryChange>> {
        self.session.changes_at(&self.view, sequence)
    }

    /// Returns the current branch at this moment; for a branch expression, the named branch.
    pub fn current_branch(&self) -> Result<String> {
        let session = session_refs(&self.view.refs, self.session.number)?;
        Ok(session.branch(self.moment.branch)?.name.clone())
    }

    /// Returns the session's metrics up to this moment.
    pub fn metrics(&self) -> Result<SessionMetrics> {
        let number = self.session.number;
        let refs = &self.view.refs;
        let checkpoints = checkpoint::count(&self.view, refs, number, self.until())?;
        let values = |kind| -> Result<Vec<Value>> {
            Ok(self.claims_of(kind)?.into_iter().map(|(_, entry)| entry.value).collect())
        };
        let mut periods =
            timeline::active_periods(&self.view, refs, number, self.until(), IDLE_AFTER)?;
        let mut verifications = Vec::new();
        for known in self.facts()? {
            periods.push(known.fact.at..=known.fact.at);
            if known.fact.kind == Kind::Verification {
                verifications.push(known.fact.value);
            }
        }
        Ok(SessionMetrics::compute(
            checkpoints,
            &values(Kind::Hypothesis)?,
            &values(Kind::Gap)?,
            &verifications,
            periods,
        ))
    }
}

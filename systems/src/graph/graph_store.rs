//! Reads the threads of a graph, and writes what tasks wrote.

use super::channel_state::{ChannelStates, ClaimPrefix, read_channels};
use super::damaged;
use super::delta_history::{ChannelHistories, HistoryNode, HistorySource, delta_history};
use super::label::{label, namespace_label};
use super::latest_step::{LatestStep, greatest_step};
use super::pending_write::{PendingWrite, fold_writes};
use super::step_cache::StepCache;
use super::step_record::{
    StepClaim, StepRecord, is_dropped, namespace_tag, step_event, step_key, steps_of, writes_of,
    writes_value,
};
use super::typed_bytes::TypedBytes;
use forge_store::error::{Error, Result};
use forge_store::model::claim::check_id;
use forge_store::model::{
    Checkpoint, ClaimEntry, Fact, FactOrigin, Kind, SessionId, SessionKind, Timestamp, Value,
};
use forge_store::store::{CheckpointFilter, ResolvedMoment, Session, Store, WriteContext};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of locks for puts: each thread has one of them.
const PUT_LOCKS: usize = 64;

/// The maximum number of namespaces whose latest step is remembered.
const MAX_LATEST: usize = 4096;

/// The threads of a graph in a store. Clones are cheap and share what was read.
#[derive(Clone, Debug)]
pub struct GraphStore {
    pub(super) store: Store,
    shared: Arc<SharedState>,
}

#[derive(Debug)]
struct SharedState {
    cache: Mutex<StepCache>,
    /// The latest step of each namespace, by session and namespace.
    latest: Mutex<HashMap<(SessionId, String), LatestStep>>,
    /// The time of the last pending write: pending writes are ordered by their times.
    last_write: Mutex<Timestamp>,
    /// Locks by which puts to one thread wait for each other, instead of conflicting in the store.
    put_locks: Vec<Mutex<()>>,
}

/// The address of a checkpoint of a graph.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepAddress {
    /// The id of the thread.
    pub thread: String,
    /// The namespace; empty for the root graph.
    pub namespace: String,
    /// The id of the checkpoint.
    pub id: String,
}

/// A checkpoint of a graph as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredStep {
    /// Its namespace.
    pub namespace: String,
    /// Its id.
    pub id: String,
    /// The checkpoint before it.
    pub parent: Option<String>,
    /// The checkpoint without the values of its channels.
    pub head: TypedBytes,
    /// The metadata.
    pub metadata: TypedBytes,
    /// The values of its channels, by name.
    pub channels: BTreeMap<String, TypedBytes>,
    /// What tasks wrote after it, sorted by path, task and slot.
    pub writes: Vec<PendingWrite>,
}

impl GraphStore {
    /// Makes a view of the threads of a graph in a store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        let shared = SharedState {
            cache: Mutex::default(),
            latest: Mutex::default(),
            last_write: Mutex::new(Timestamp::from_micros(i64::MIN)),
            put_locks: (0..PUT_LOCKS).map(|_| Mutex::default()).collect(),
        };
        Self { store, shared: Arc::new(shared) }
    }

    /// Returns the store.
    #[must_use]
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the session of a thread.
    pub fn session(&self, thread: &str) -> Result<Option<Session>> {
        self.store.session_by_kind(SessionKind::Graph, &session_name(thread))
    }

    /// Returns the session of a thread. Creates it if it does not exist.
    pub(super) fn open_or_create(&self, act: &WriteContext, thread: &str) -> Result<Session> {
        crate::open_or_create(&self.store, act, SessionKind::Graph, &session_name(thread))
    }

    pub(super) fn cache(&self) -> MutexGuard<'_, StepCache> {
        self.shared.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes puts to the thread whose session has this name wait for each other.
    pub(super) fn put_lock(&self, session: &str) -> Option<MutexGuard<'_, ()>> {
        let mut hasher = DefaultHasher::new();
        session.hash(&mut hasher);
        let lock = self.shared.put_locks.get(hasher.finish() as usize % PUT_LOCKS)?;
        Some(lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records what a task wrote after a checkpoint, which need not exist yet. The task and path
    /// given here replace those in `writes`.
    ///
    /// # Errors
    /// Any error of a write; then nothing was recorded.
    pub fn put_writes(
        &self,
        now: Timestamp,
        address: &StepAddress,
        (task, path): (&str, &str),
        writes: &[PendingWrite],
    ) -> Result<()> {
        let value = writes_value(task, path, writes);
        let act = WriteContext::asked("graph write", now);
        let session = self.open_or_create(&act, &address.thread)?;
        self.record_writes(now, &session, &step_event(&address.namespace, &address.id), &[value])
    }

    /// Records versions of the fact with the pending writes of a checkpoint, in this order.
    pub(super) fn record_writes(
        &self,
        now: Timestamp,
        session: &Session,
        event: &str,
        values: &[Value],
    ) -> Result<()> {
        let act = WriteContext::asked("graph write", now);
        let facts = values.iter().map(|value| {
            let at = self.next_write_time(now);
            let (kind, origin) = (Kind::GraphWrite, FactOrigin::Recorded);
            let (id, value) = (event.to_owned(), value.clone());
            Fact { kind, id, at, origin, place: 0, recorded_at: now, value }
        });
        session.write(&act).facts(facts, None).commit().map(drop)
    }

    /// Returns a time for a pending write: `now`, or later than the times of all before.
    fn next_write_time(&self, now: Timestamp) -> Timestamp {
        let mut last = self.shared.last_write.lock().unwrap_or_else(PoisonError::into_inner);
        *last = now.max(last.plus_micros(1));
        *last
    }

    /// Returns the step with the greatest id of a namespace.
    ///
    /// Reads only the checkpoints since the last call, unless they are too many, or others were
    /// dropped or brought back.
    fn latest_step(
        &self,
        session: &Session,
        namespace: &str,
    ) -> Result<Option<(Checkpoint, StepRecord)>> {
        let summary = session.summary()?;
        let (number, count) = (summary.last_sequence, summary.checkpoints);
        let place = (summary.info.id, namespace.to_owned());
        let lock = || self.shared.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&place).cloned();
        let known = match known {
            Some(known) if (known.number, known.count) == (number, count) => Some(known.id),
            Some(known) => known.next(session, namespace, number, count)?,
            None => None,
        };
        let (id, step) = match known {
            Some(id) => (id, None),
            None => {
                let steps = steps_tagged(session, Some(namespace_tag(namespace)))?;
                let step = greatest_step(steps, namespace);
                (step.as_ref().map(|(_, record)| record.id.clone()), step)
            }
        };
        let mut latest = lock();
        if latest.len() >= MAX_LATEST {
            latest.clear();
        }
        latest.insert(place, LatestStep { number, count, id: id.clone() });
        drop(latest);
        match (step, id) {
            (None, Some(id)) => step_in(session, namespace, &id),
            (step, _) => Ok(step),
        }
    }

    /// Returns a checkpoint; without an id, the one with the greatest id in its namespace.
    pub fn get(
        &self,
        thread: &str,
        namespace: &str,
        id: Option<&str>,
    ) -> Result<Option<StoredStep>> {
        let Some(session) = self.session(thread)? else { return Ok(None) };
        let found = match id {
            Some(id) => step_in(&session, namespace, id)?,
            None => self.latest_step(&session, namespace)?,
        };
        let Some((checkpoint, record)) = found else { return Ok(None) };
        let (head, channels) = self.step_state(&session, &checkpoint, &record)?;
        let writes = writes_in(&session, &step_event(namespace, &record.id))?;
        let values = channels.iter().map(|(name, one)| (name.clone(), one.payload.clone()));
        Ok(Some(StoredStep {
            channels: values.collect(),
            namespace: record.namespace,
            id: record.id,
            parent: record.parent,
            head,
            metadata: record.metadata,
            writes,
        }))
    }

    /// Returns the head and the channels of a checkpoint; the channels from the cache, if they are
    /// there.
    pub(super) fn step_state(
        &self,
        session: &Session,
        checkpoint: &Checkpoint,
        record: &StepRecord,
    ) -> Result<(TypedBytes, ChannelStates)> {
        let (namespace, operation) = (&record.namespace, &record.operation);
        let moment = session.at_checkpoint(checkpoint)?;
        let known = self.cache().get(operation);
        let (claim, channels) = match known {
            Some(known) => (step_at(session, &moment, namespace)?, known),
            None => {
                let state = session.state(&moment)?;
                let claim = state.claims().entry(&step_key(namespace))?;
                (step_claim(claim)?, read_channels(&state, &namespace_label(namespace))?)
            }
        };
        let Some(claim) = claim.filter(|claim| claim.operation == *operation) else {
            let id = &record.id;
            return Err(damaged(format!("the checkpoint '{id}'"), "its revision has another step"));
        };
        self.cache().insert(operation.clone(), channels.clone());
        Ok((claim.head, channels))
    }

    /// Returns the channels of a checkpoint, from the cache if they are there.
    pub(super) fn channels_of(
        &self,
        session: &Session,
        checkpoint: &Checkpoint,
        record: &StepRecord,
    ) -> Result<ChannelStates> {
        let known = self.cache().get(&record.operation);
        known.map_or_else(|| Ok(self.step_state(session, checkpoint, record)?.1), Ok)
    }

    /// Returns the channels of a namespace at a moment where `operation` wrote its latest step,
    /// from the cache if they are there.
    pub(super) fn channels_at(
        &self,
        session: &Session,
        moment: &ResolvedMoment,
        (namespace, operation): (&str, &str),
    ) -> Result<ChannelStates> {
        if let Some(known) = self.cache().get(operation) {
            return Ok(known);
        }
        let channels = read_channels(&session.state(moment)?, &namespace_label(namespace))?;
        self.cache().insert(operation.to_owned(), channels.clone());
        Ok(channels)
    }

    /// Returns the checkpoints of a thread, or of all threads, with the greatest ids first: only
    /// those in `namespace`, only those with the id `id`, and only those with ids smaller than
    /// `before`, where these are given.
    pub fn list(
        &self,
        thread: Option<&str>,
        namespace: Option<&str>,
        id: Option<&str>,
        before: Option<&str>,
    ) -> Result<Vec<StepAddress>> {
        let sessions: Vec<Session> = match thread {
            Some(thread) => self.session(thread)?.into_iter().collect(),
            None => {
                let all = self.store.sessions_by_kind(SessionKind::Graph)?;
                all.into_iter().map(|one| one.session).collect()
            }
        };
        let mut found = Vec::new();
        for session in sessions {
            let steps: Vec<_> = match (namespace, id) {
                (Some(namespace), Some(id)) => {
                    step_in(&session, namespace, id)?.into_iter().collect()
                }
                _ => steps_tagged(&session, namespace.map(namespace_tag))?,
            };
            let steps = steps.into_iter().map(|(_, record)| record).filter(|record| {
                namespace.is_none_or(|namespace| record.namespace == namespace)
                    && id.is_none_or(|id| record.id == id)
                    && before.is_none_or(|before| record.id.as_str() < before)
            });
            let name = session.summary()?.info.name;
            found.extend(steps.map(|record| StepAddress {
                thread: record.thread.unwrap_or_else(|| name.clone()),
                namespace: record.namespace,
                id: record.id,
            }));
        }
        found.sort_by(|one, other| other.id.cmp(&one.id));
        Ok(found)
    }

    /// Returns the histories of channels before a checkpoint; without an id, before the latest
    /// checkpoint of the namespace. They are empty if the checkpoint does not exist.
    pub fn history(
        &self,
        thread: &str,
        namespace: &str,
        id: Option<&str>,
        channels: &[String],
    ) -> Result<ChannelHistories> {
        let nothing = || channels.iter().map(|name| (name.clone(), Default::default())).collect();
        let Some(session) = self.session(thread)? else { return Ok(nothing()) };
        let latest = match id {
            Some(id) => Some(id.to_owned()),
            None => self.latest_step(&session, namespace)?.map(|(_, record)| record.id),
        };
        let Some(target) = latest else { return Ok(nothing()) };
        self.history_in(&session, namespace, &target, channels)
    }

    pub(super) fn history_in(
        &self,
        session: &Session,
        namespace: &str,
        target: &str,
        channels: &[String],
    ) -> Result<ChannelHistories> {
        delta_history(&NamespaceSteps { graph: self, session, namespace }, target, channels)
    }
}

/// The checkpoints of one namespace, as [`delta_history`] reads them.
struct NamespaceSteps<'a> {
    graph: &'a GraphStore,
    session: &'a Session,
    namespace: &'a str,
}

impl HistorySource for NamespaceSteps<'_> {
    type Error = Error;

    fn node(&self, id: &str) -> Result<Option<HistoryNode>> {
        let found = step_in(self.session, self.namespace, id)?;
        Ok(found.map(|(_, record)| HistoryNode { parent: record.parent, carried: record.carried }))
    }

    fn writes(&self, id: &str) -> Result<Vec<PendingWrite>> {
        writes_in(self.session, &step_event(self.namespace, id))
    }

    fn values(
        &self,
        id: &str,
        channels: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, TypedBytes>> {
        let Some((checkpoint, record)) = step_in(self.session, self.namespace, id)? else {
            return Ok(BTreeMap::new());
        };
        // Most steps have no value of these channels, and reading single claims is cheap.
        let namespace = namespace_label(self.namespace);
        let keys = channels.iter().map(|name| ClaimPrefix::new(&namespace, name).channel());
        let keys: Vec<_> = keys.collect();
        let moment = self.session.at_checkpoint(&checkpoint)?;
        if self.session.claims(&moment, &keys)?.iter().all(Option::is_none) {
            return Ok(BTreeMap::new());
        }
        let held = self.graph.channels_of(self.session, &checkpoint, &record)?;
        let held = held.iter().filter(|(name, _)| channels.contains(*name));
        Ok(held.map(|(name, one)| (name.clone(), one.payload.clone())).collect())
    }
}

/// Returns the name of the session of a thread: the thread's id if that is a valid name, else a
/// label with its hash.
pub(super) fn session_name(thread: &str) -> String {
    // An id with '~' could equal the label of another id, so it is replaced by a label, too.
    let is_own = check_id(thread).is_ok() && !thread.contains('~');
    if is_own { thread.to_owned() } else { label(&format!("\0{thread}")) }
}

/// Returns the claim of the latest step of a namespace at a moment.
pub(super) fn step_at(
    session: &Session,
    moment: &ResolvedMoment,
    namespace: &str,
) -> Result<Option<StepClaim>> {
    step_claim(session.claim(moment, &step_key(namespace))?)
}

/// Reads the claim of the latest step of a namespace.
pub(super) fn step_claim(claim: Option<ClaimEntry>) -> Result<Option<StepClaim>> {
    claim.map(|entry| StepClaim::of_value(&entry.value)).transpose()
}

/// Returns the checkpoint of a step, and the record in its body.
pub(super) fn step_in(
    session: &Session,
    namespace: &str,
    id: &str,
) -> Result<Option<(Checkpoint, StepRecord)>> {
    let Some(checkpoint) = session.checkpoint_of(&step_event(namespace, id))? else {
        return Ok(None);
    };
    let record = StepRecord::of_checkpoint(&checkpoint)?;
    let record = record.filter(|record| record.namespace == namespace && record.id == id);
    Ok(record.map(|record| (checkpoint, record)))
}

/// Returns the steps with this tag, or all steps.
pub(super) fn steps_tagged(
    session: &Session,
    tag: Option<String>,
) -> Result<Vec<(Checkpoint, StepRecord)>> {
    let filter = CheckpointFilter { tag, ..CheckpointFilter::default() };
    steps_of(session.checkpoints(&filter)?)
}

/// Returns the versions of the fact with the pending writes of a step since they were last dropped,
/// the oldest first.
pub(super) fn write_values(session: &Session, event: &str) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    for known in session.fact_versions(Kind::GraphWrite, event)? {
        if is_dropped(&known.fact.value) {
            values.clear();
        } else {
            values.push(known.fact.value);
        }
    }
    Ok(values)
}

fn writes_in(session: &Session, event: &str) -> Result<Vec<PendingWrite>> {
    let values = write_values(session, event)?;
    let writes = values.iter().map(writes_of).collect::<Result<Vec<_>>>()?;
    Ok(fold_writes(writes.into_iter().flatten()))
}

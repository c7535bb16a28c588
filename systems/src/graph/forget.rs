//! Drops checkpoints and threads, and copies threads.
//!
//! What is dropped is hidden at once; a sweep removes it, and until then `undo` brings it back. A
//! checkpoint whose parent is dropped has no parent any more, and gets the history that its
//! channels need.

use super::damaged;
use super::graph_store::{GraphStore, session_name, step_in, steps_tagged, write_values};
use super::prune_plan::{PruneNode, StepName, older_checkpoints, orphans};
use super::put::{CopyParts, ForkPolicy, NewChannel, NewStep, NewValue, PutOutcome, StepNotes};
use super::step_record::{StepRecord, dropped_value, is_dropped, run_tag, step_event};
use forge_store::error::Result;
use forge_store::model::{Checkpoint, CheckpointId, Kind, SessionKind, Timestamp, Value};
use forge_store::store::{Session, WriteContext};
use std::collections::{BTreeMap, BTreeSet};

/// What pruning keeps of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepStrategy {
    /// The latest checkpoint of each namespace, without calls of subgraphs that belong to earlier
    /// steps.
    Latest,
    /// Nothing.
    Nothing,
}

impl GraphStore {
    /// Drops a thread with all its namespaces. Does nothing if the thread is unknown.
    ///
    /// # Errors
    /// Any error of a write; then nothing was dropped.
    pub fn delete_thread(&self, now: Timestamp, thread: &str) -> Result<()> {
        let _only = self.put_lock(&session_name(thread));
        let Some(session) = self.session(thread)? else { return Ok(()) };
        let act = WriteContext::asked("graph delete", now);
        self.store.drop_session(&act, &session).map(drop)
    }

    /// Drops the older checkpoints of these threads, or the threads. Skips unknown threads.
    ///
    /// # Errors
    /// Any error of a write. The threads before the failed one were pruned.
    pub fn prune(&self, now: Timestamp, threads: &[String], keep: KeepStrategy) -> Result<()> {
        for thread in threads {
            match (keep, self.session(thread)?) {
                (_, None) => {}
                (KeepStrategy::Nothing, Some(_)) => self.delete_thread(now, thread)?,
                (KeepStrategy::Latest, Some(session)) => {
                    let _only = self.put_lock(&session_name(thread));
                    let steps = steps_tagged(&session, None)?;
                    let nodes: Vec<PruneNode> = steps.iter().map(|(_, one)| node(one)).collect();
                    self.drop_steps(now, &session, &steps, &older_checkpoints(&nodes))?;
                }
            }
        }
        Ok(())
    }

    /// Drops the checkpoints that these runs made, in all threads.
    ///
    /// # Errors
    /// Any error of a write. In some threads, the checkpoints may already be dropped.
    pub fn delete_for_runs(&self, now: Timestamp, runs: &[String]) -> Result<()> {
        for one in self.store.sessions_by_kind(SessionKind::Graph)? {
            let mut removed: BTreeSet<StepName> = BTreeSet::new();
            for run in runs {
                let steps = steps_tagged(&one.session, Some(run_tag(run)))?.into_iter();
                let of_run = steps.filter(|(_, record)| record.run_id.as_ref() == Some(run));
                removed.extend(of_run.map(|(_, record)| (record.namespace, record.id)));
            }
            if !removed.is_empty() {
                let _only = self.put_lock(&one.name);
                let steps = steps_tagged(&one.session, None)?;
                self.drop_steps(now, &one.session, &steps, &removed)?;
            }
        }
        Ok(())
    }

    /// Drops checkpoints. In the same record, the checkpoints that lose their parent get the
    /// history that they need. Then drops the pending writes of the dropped checkpoints.
    fn drop_steps(
        &self,
        now: Timestamp,
        session: &Session,
        steps: &[(Checkpoint, StepRecord)],
        removed: &BTreeSet<StepName>,
    ) -> Result<()> {
        let act = WriteContext::asked("graph prune", now);
        let nodes: Vec<PruneNode> = steps.iter().map(|(_, record)| node(record)).collect();
        let by_name: BTreeMap<StepName, &(Checkpoint, StepRecord)> = steps
            .iter()
            .map(|step| ((step.1.namespace.clone(), step.1.id.clone()), step))
            .collect();
        let mut bodies: BTreeMap<CheckpointId, Value> = BTreeMap::new();
        for orphan in orphans(&nodes, removed) {
            let Some((checkpoint, record)) = by_name.get(&orphan.name) else { continue };
            let mut new = record.clone();
            let (namespace, id) = &orphan.name;
            new.carried = self.history_in(session, namespace, id, &record.delta)?;
            for (name, history) in &record.carried {
                new.carried.entry(name.clone()).or_insert_with(|| history.clone());
            }
            new.parent = None;
            bodies.insert(checkpoint.id, new.to_value());
        }
        let dropped: Vec<CheckpointId> =
            removed.iter().filter_map(|name| by_name.get(name)).map(|(one, _)| one.id).collect();
        let amended: Vec<CheckpointId> = bodies.keys().copied().collect();
        session.drop_and_amend_checkpoints(&act, &dropped, &amended, |checkpoint| {
            if let Some(body) = bodies.get(&checkpoint.id) {
                checkpoint.body = body.clone();
            }
        })?;
        let mut names = removed.iter().filter(|name| by_name.contains_key(*name));
        names.try_for_each(|(namespace, id)| {
            self.drop_writes(now, session, &step_event(namespace, id))
        })
    }

    /// Drops the pending writes of a step, so that a checkpoint that is put again under the same id
    /// does not find them.
    fn drop_writes(&self, now: Timestamp, session: &Session, event: &str) -> Result<()> {
        if write_values(session, event)?.is_empty() {
            return Ok(());
        }
        self.record_writes(now, session, event, &[dropped_value()])
    }

    /// Copies the checkpoints of a thread, and its pending writes, also if their checkpoints do not
    /// exist yet. Checkpoints that the target already has under the same namespace and id stay, so
    /// a copy that did not end can be repeated. Does nothing if the source is unknown or empty.
    ///
    /// # Errors
    /// Any error of a write. The target may then have a part of the checkpoints.
    pub fn copy_thread(&self, now: Timestamp, source: &str, target: &str) -> Result<()> {
        if session_name(source) == session_name(target) {
            return Ok(());
        }
        self.copy_thread_to(now, source, self, target)
    }

    /// Copies a thread to another store, as [`GraphStore::copy_thread`] does within one store.
    ///
    /// # Errors
    /// See [`GraphStore::copy_thread`].
    pub fn copy_thread_to(
        &self,
        now: Timestamp,
        source: &str,
        other: &Self,
        target: &str,
    ) -> Result<()> {
        let Some(from) = self.session(source)? else { return Ok(()) };
        let mut steps = steps_tagged(&from, None)?;
        steps.sort_by_key(|(checkpoint, _)| checkpoint.sequence);
        // Only the ids are kept: the writes of each event are read when they are copied.
        let writes = from.recent_facts(&from.head()?, Kind::GraphWrite, usize::MAX)?.into_iter();
        let written = writes.filter(|known| !is_dropped(&known.fact.value));
        let events: Vec<String> = written.map(|known| known.fact.id).collect();
        if steps.is_empty() && events.is_empty() {
            return Ok(());
        }
        let to = other.open_or_create(&WriteContext::asked("graph copy", now), target)?;
        for (checkpoint, record) in &steps {
            if step_in(&to, &record.namespace, &record.id)?.is_none() {
                other.put_step(now, &self.step_copy(&from, checkpoint, record, target)?, record)?;
            }
        }
        for event in events.iter().rev() {
            if to.fact_versions(Kind::GraphWrite, event)?.is_empty() {
                other.record_writes(now, &to, event, &write_values(&from, event)?)?;
            }
        }
        other.store.sync()
    }

    /// Returns the input that makes a copy of a checkpoint in another thread.
    fn step_copy(
        &self,
        from: &Session,
        checkpoint: &Checkpoint,
        record: &StepRecord,
        target: &str,
    ) -> Result<NewStep> {
        let (head, channels) = self.step_state(from, checkpoint, record)?;
        let channels = channels.iter().map(|(name, one)| NewChannel {
            name: name.clone(),
            version: one.version.clone(),
            is_new: true,
            value: NewValue::Given(one.payload.clone()),
        });
        Ok(NewStep {
            thread: target.to_owned(),
            namespace: record.namespace.clone(),
            id: record.id.clone(),
            parent: record.parent.clone(),
            head,
            metadata: record.metadata.clone(),
            channels: channels.collect(),
            notes: StepNotes {
                message: checkpoint.message.clone(),
                source: record.source.clone(),
                step: record.step,
                run_id: record.run_id.clone(),
                root: record.root.clone(),
                delta: record.delta.clone(),
            },
            fork: ForkPolicy::Branch,
        })
    }

    /// Puts the copy of a checkpoint.
    fn put_step(&self, now: Timestamp, new: &NewStep, record: &StepRecord) -> Result<()> {
        let copy = CopyParts { carried: record.carried.clone(), is_import: true };
        match self.put_copy(now, new, &copy)? {
            PutOutcome::Written { .. } => Ok(()),
            PutOutcome::NeedsValues(_) | PutOutcome::WouldFork => {
                Err(damaged(format!("the checkpoint '{}'", record.id), "it could not be copied"))
            }
        }
    }
}

fn node(record: &StepRecord) -> PruneNode {
    PruneNode {
        name: (record.namespace.clone(), record.id.clone()),
        parent: record.parent.clone(),
        root: record.root.clone(),
    }
}

//! Puts a checkpoint of a graph, as one record with the claims that changed.

use super::channel_state::{ChannelState, ChannelStates, ClaimPrefix};
use super::delta_history::ChannelHistories;
use super::graph_store::{GraphStore, session_name, step_at, step_claim, step_in};
use super::label::{label, namespace_label};
use super::step_record::{
    StepClaim, StepRecord, calls_key, calls_of, calls_value, step_event, step_key,
};
use super::typed_bytes::TypedBytes;
use forge_store::error::{Error, Result};
use forge_store::model::time_grammar::{MomentBase, MomentExpression};
use forge_store::model::{Checkpoint, CheckpointTrigger, Key, Kind, Timestamp};
use forge_store::store::{ClaimChange, NewCheckpoint, ResolvedMoment, Session, WriteContext};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What to do if another checkpoint of the namespace follows the parent already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForkPolicy {
    /// Begin a branch.
    #[default]
    Branch,
    /// Write nothing, and return [`PutOutcome::WouldFork`].
    Refuse,
}

/// The value that a channel of a new checkpoint has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewValue {
    /// It has no value.
    None,
    /// It has this value.
    Given(TypedBytes),
    /// It has a value, which the caller gives only if [`PutOutcome::NeedsValues`] names the
    /// channel.
    Held,
}

/// A channel of a new checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewChannel {
    /// Its name.
    pub name: String,
    /// The framework's version of its value, as text.
    pub version: String,
    /// Whether it was written to. If not, and its version is the parent's, it has the parent's
    /// value.
    pub is_new: bool,
    /// Its value.
    pub value: NewValue,
}

/// The description of a checkpoint, by which people find it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepNotes {
    /// The message of the checkpoint.
    pub message: String,
    /// What made it: `input`, `loop`, `update` or `fork`.
    pub source: Option<String>,
    /// The number of the step.
    pub step: Option<i64>,
    /// The run that made it.
    pub run_id: Option<String>,
    /// For a checkpoint of a subgraph: the checkpoint of the root graph that it belongs to.
    pub root: Option<String>,
    /// The channels whose values are computed from the writes of tasks.
    pub delta: Vec<String>,
}

/// A checkpoint to put.
#[derive(Clone, Debug, Default)]
pub struct NewStep {
    /// The id of the thread.
    pub thread: String,
    /// The namespace; empty for the root graph.
    pub namespace: String,
    /// The id of the checkpoint.
    pub id: String,
    /// The checkpoint before it.
    pub parent: Option<String>,
    /// The checkpoint without the values of its channels.
    pub head: TypedBytes,
    /// The metadata.
    pub metadata: TypedBytes,
    /// Its channels.
    pub channels: Vec<NewChannel>,
    /// Its description.
    pub notes: StepNotes,
    /// What to do about a fork.
    pub fork: ForkPolicy,
}

/// What a put did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// It was written to this branch, which it began if `is_fork`.
    Written {
        /// The branch.
        branch: String,
        /// Whether the branch begins with this checkpoint.
        is_fork: bool,
    },
    /// Nothing was written: the values of these channels are needed.
    NeedsValues(Vec<String>),
    /// Nothing was written: the checkpoint would begin a branch, because another one follows its
    /// parent already.
    WouldFork,
}

/// Maximum number of attempts of a put: it is planned again if the thread changed meanwhile.
const MAX_ATTEMPTS: usize = 1000;

/// The number of characters of an id in the name of a branch.
const FORK_CHARS: usize = 8;

/// Where a checkpoint is written, and what it is compared with.
struct PutTarget {
    moment: ResolvedMoment,
    is_fork: bool,
    /// The channels of the namespace at that moment.
    base: ChannelStates,
    /// Whether these are the channels of the parent: then a value with the same version stays.
    is_parent: bool,
}

/// How a copy of a checkpoint differs from a put.
#[derive(Clone, Debug, Default)]
pub(super) struct CopyParts {
    pub(super) carried: ChannelHistories,
    pub(super) is_import: bool,
}

impl GraphStore {
    /// Puts a checkpoint. One with the same namespace and id is replaced.
    ///
    /// # Errors
    /// Any error of a write. Then the checkpoint was not written; the thread may have been created.
    pub fn put(&self, now: Timestamp, new: &NewStep) -> Result<PutOutcome> {
        self.put_copy(now, new, &CopyParts::default())
    }

    pub(super) fn put_copy(
        &self,
        now: Timestamp,
        new: &NewStep,
        copy: &CopyParts,
    ) -> Result<PutOutcome> {
        let _guard = self.put_lock(&session_name(&new.thread));
        let act = WriteContext::asked("graph put", now);
        let _request = self.store.request();
        let session = self.open_or_create(&act, &new.thread)?;
        let mut attempts = 1;
        loop {
            match self.try_put(&act, &session, new, copy) {
                Err(Error::Conflict(_)) if attempts < MAX_ATTEMPTS => attempts += 1,
                done => return done,
            }
        }
    }

    fn try_put(
        &self,
        act: &WriteContext,
        session: &Session,
        new: &NewStep,
        copy: &CopyParts,
    ) -> Result<PutOutcome> {
        let target = self.target(session, new)?;
        if target.is_fork && new.fork == ForkPolicy::Refuse {
            return Ok(PutOutcome::WouldFork);
        }
        let namespace = namespace_label(&new.namespace);
        let mut changes = Vec::new();
        let (channels, needed) = next_channels(&target, &namespace, new, &mut changes);
        if !needed.is_empty() {
            return Ok(PutOutcome::NeedsValues(needed));
        }
        call_changes(session, &target.moment, new, &mut changes)?;
        let operation = self.store.new_operation()?;
        let record = StepRecord {
            thread: (session_name(&new.thread) != new.thread).then(|| new.thread.clone()),
            namespace: new.namespace.clone(),
            id: new.id.clone(),
            parent: new.parent.clone(),
            root: new.notes.root.clone(),
            operation: operation.to_string(),
            metadata: new.metadata.clone(),
            source: new.notes.source.clone(),
            step: new.notes.step,
            run_id: new.notes.run_id.clone(),
            delta: new.notes.delta.clone(),
            carried: copy.carried.clone(),
        };
        let claim = StepClaim {
            namespace: new.namespace.clone(),
            id: new.id.clone(),
            operation: record.operation.clone(),
            head: new.head.clone(),
        };
        changes.push(ClaimChange::put(step_key(&new.namespace), claim.to_value()));
        let checkpoint = checkpoint_of(new, &record);
        let mut write = session.write(act).part_of(operation).changes(changes);
        write = match target.is_fork {
            true => write.after_or_fork(&target.moment, fork_name(&new.id)),
            false => write.after(&target.moment),
        };
        write = write.replacing_checkpoint(checkpoint);
        if copy.is_import {
            write = write.imported();
        }
        let written = write.commit()?;
        self.cache().insert(record.operation, channels);
        Ok(PutOutcome::Written { branch: written.branch, is_fork: target.is_fork })
    }

    /// Decides where a checkpoint is written: to the branch whose latest step of the namespace is
    /// the parent, or to a new branch if another step of the namespace follows the parent already.
    /// Steps of other namespaces make no difference.
    fn target(&self, session: &Session, new: &NewStep) -> Result<PutTarget> {
        let parent = match &new.parent {
            Some(parent) => step_in(session, &new.namespace, parent)?,
            None => None,
        };
        let head = session.head()?;
        if let Some((checkpoint, record)) = parent {
            let (moment, is_fork) = self.place_after(session, head, &checkpoint, &record)?;
            let base = self.channels_of(session, &checkpoint, &record)?;
            return Ok(PutTarget { moment, is_fork, base, is_parent: true });
        }
        // The first step of a subgraph follows the step of the root graph that called the subgraph.
        let root = match &new.notes.root {
            Some(root) if !new.namespace.is_empty() => step_in(session, "", root)?,
            _ => None,
        };
        let (moment, is_fork) = match root {
            Some((checkpoint, record)) => self.place_after(session, head, &checkpoint, &record)?,
            None => (head, false),
        };
        let base = match step_at(session, &moment, &new.namespace)? {
            Some(claim) => {
                self.channels_at(session, &moment, (&new.namespace, claim.operation.as_str()))?
            }
            None => ChannelStates::new(),
        };
        Ok(PutTarget { moment, is_fork, base, is_parent: false })
    }

    /// Returns the head of a branch on which this step is the latest of its namespace, preferring
    /// the current branch; else the moment of the step itself, where a branch must begin. The
    /// second value is whether a branch must begin.
    fn place_after(
        &self,
        session: &Session,
        head: ResolvedMoment,
        checkpoint: &Checkpoint,
        record: &StepRecord,
    ) -> Result<(ResolvedMoment, bool)> {
        let is_latest = |moment: &ResolvedMoment| -> Result<bool> {
            // At the step's own revision nothing is later.
            if checkpoint.revision.is_some() && moment.revision() == checkpoint.revision {
                return Ok(true);
            }
            let claim = step_at(session, moment, &record.namespace)?;
            Ok(claim.is_some_and(|claim| claim.operation == record.operation))
        };
        if is_latest(&head)? {
            return Ok((head, false));
        }
        let branch = session.branch_name(checkpoint.branch)?;
        let own = MomentExpression { base: MomentBase::Branch(branch), back: 0 };
        let own = session.resolve(&own)?;
        if is_latest(&own)? {
            return Ok((own, false));
        }
        Ok((session.at_checkpoint(checkpoint)?, true))
    }
}

/// Returns the channels of the new checkpoint, and the names of the channels whose values must be
/// given. Adds to `changes` what differs from the channels of the base.
fn next_channels(
    target: &PutTarget,
    namespace: &str,
    new: &NewStep,
    changes: &mut Vec<ClaimChange>,
) -> (ChannelStates, Vec<String>) {
    let (mut channels, mut needed) = (ChannelStates::new(), Vec::new());
    for channel in &new.channels {
        let known = target.base.get(&channel.name);
        let same = known.filter(|known| {
            target.is_parent && !channel.is_new && known.version == channel.version
        });
        if let Some(same) = same {
            channels.insert(channel.name.clone(), Arc::clone(same));
            continue;
        }
        let prefix = ClaimPrefix::new(namespace, &channel.name);
        match &channel.value {
            NewValue::Given(payload) => {
                let (version, payload) = (channel.version.clone(), payload.clone());
                let known = known.map(|known| &**known);
                let state = ChannelState::with_value(known, &prefix, version, payload, changes);
                channels.insert(channel.name.clone(), Arc::new(state));
            }
            NewValue::Held => needed.push(channel.name.clone()),
            NewValue::None => {
                if let Some(known) = known {
                    known.add_removal(&prefix, changes);
                }
            }
        }
    }
    let stays: BTreeSet<&str> = new.channels.iter().map(|one| one.name.as_str()).collect();
    for (name, known) in target.base.iter().filter(|(name, _)| !stays.contains(name.as_str())) {
        known.add_removal(&ClaimPrefix::new(namespace, name), changes);
    }
    (channels, needed)
}

/// Adds the changes of a step to the list of subgraph calls that have claims. The first step of a
/// call adds the call. A step of the root graph removes the claims of the calls of earlier steps:
/// they have ended, and their checkpoints keep their own revisions. The calls of this step and of
/// later ones can be there before it, because the framework does not wait for its own checkpoint
/// before it runs a subgraph.
fn call_changes(
    session: &Session,
    moment: &ResolvedMoment,
    new: &NewStep,
    changes: &mut Vec<ClaimChange>,
) -> Result<()> {
    if !new.namespace.is_empty() && !new.namespace.contains(':') {
        return Ok(());
    }
    let known = session.claim(moment, &calls_key())?.map(|entry| entry.value);
    let mut calls = known.as_ref().map(calls_of).unwrap_or_default();
    if !new.namespace.is_empty() {
        if calls.insert(namespace_label(&new.namespace)) {
            changes.push(ClaimChange::put(calls_key(), calls_value(&calls)));
        }
        return Ok(());
    }
    let mut ended = BTreeSet::new();
    for call in &calls {
        if root_of_call(session, moment, call)?.is_none_or(|root| root < new.id) {
            ended.insert(call.clone());
        }
    }
    if ended.is_empty() {
        return Ok(());
    }
    calls.retain(|call| !ended.contains(call));
    changes.push(match calls.is_empty() {
        true => ClaimChange::remove(calls_key()),
        false => ClaimChange::put(calls_key(), calls_value(&calls)),
    });
    let state = session.state(moment)?;
    for kind in [Kind::GraphStep, Kind::Channel, Kind::ChannelElement] {
        for entry in state.claims().entries_of_kind(kind) {
            let (key, _) = entry?;
            if key.id.split('/').next().is_some_and(|namespace| ended.contains(namespace)) {
                changes.push(ClaimChange::remove(key));
            }
        }
    }
    Ok(())
}

/// Returns the step of the root graph that made the call of a subgraph with this label; `None` if
/// that is not recorded.
fn root_of_call(session: &Session, moment: &ResolvedMoment, call: &str) -> Result<Option<String>> {
    let claim = session.claim(moment, &Key::new(Kind::GraphStep, call))?;
    let Some(claim) = step_claim(claim)? else { return Ok(None) };
    let step = step_in(session, &claim.namespace, &claim.id)?;
    Ok(step.and_then(|(_, record)| record.root))
}

fn checkpoint_of(new: &NewStep, record: &StepRecord) -> NewCheckpoint {
    let message = new.notes.message.clone();
    let mut checkpoint =
        NewCheckpoint::new(message, CheckpointTrigger::Scheduled).tags(record.tags());
    checkpoint.body = record.to_value();
    checkpoint.key = Some(step_event(&new.namespace, &new.id));
    checkpoint
}

/// Returns the name of a branch that begins with a checkpoint.
fn fork_name(id: &str) -> String {
    let plain: Vec<char> = label(id).chars().filter(char::is_ascii_alphanumeric).collect();
    let short = plain.get(plain.len().saturating_sub(FORK_CHARS)..).unwrap_or_default();
    format!("fork-{}", short.iter().collect::<String>())
}

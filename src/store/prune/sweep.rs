//! Sweeping: permanently removes what was pruned, and pre-written objects without a record that
//! names them.

use crate::engine::commit::CommitDurability;
use crate::engine::prune::{self, PendingPruning, PrewrittenObjects};
use crate::engine::read_snapshot::ReadSnapshot;
use crate::error::Result;
use crate::format::{Record, RecordChange};
use crate::model::Timestamp;
use crate::store::Store;
use crate::store::write_context::WriteContext;

/// Younger pre-written objects are kept, whatever the undo period is: their writer may still append
/// the record that names them.
const MIN_PREWRITTEN_AGE_MICROS: i64 = 24 * 3_600_000_000;

/// How many attempts may fail because more records were written during the search than the follower
/// remembers. The attempt after that searches while it holds the lock.
const MAX_UNLOCKED_ATTEMPTS: u32 = 3;

/// What a sweep permanently removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// How many prunings were swept.
    pub prunings: u64,
    /// How many unreferenced large values were removed.
    pub values: u64,
    /// How many pre-written objects without a record were removed.
    pub prewritten: u64,
}

impl Store {
    /// Permanently removes what was pruned or dropped up to `until`, in all sessions: this cannot
    /// be undone. Headers of revisions stay, so that the chain can still be verified. Pre-written
    /// objects up to `until` that nothing names are removed too, if they are older than a day.
    pub fn sweep(&self, now: Timestamp, until: Timestamp) -> Result<SweepReport> {
        let mut swept = SweepReport::default();
        let mut failures = 0;
        loop {
            // Spooled writes have no position in the journal yet. They are left out here, and
            // examined when they are appended.
            let view = self.engine.follower.written_view()?;
            let Some(pruning) = prune::prunings(&view, until)?.into_iter().next() else { break };
            let Some(values) = self.sweep_one(now, &view, &pruning, failures)? else {
                failures += 1;
                continue;
            };
            failures = 0;
            swept.values += values;
            swept.prunings += 1;
        }
        swept.prewritten =
            self.sweep_prewritten(now, until.min(now.plus_micros(-MIN_PREWRITTEN_AGE_MICROS)))?;
        if swept.prunings > 0 || swept.prewritten > 0 {
            self.engine.sync()?;
        }
        Ok(swept)
    }

    /// Removes objects that were pre-written up to a time and that nothing names. Returns how many.
    fn sweep_prewritten(&self, now: Timestamp, until: Timestamp) -> Result<u64> {
        for failures in 0.. {
            let view = self.engine.follower.written_view()?;
            let prewritten = PrewrittenObjects::written_until(&view, until)?;
            if prewritten.is_empty() {
                break;
            }
            if let Some(count) =
                self.sweep_found_prewritten(now, until, (&view, prewritten), failures)?
            {
                return Ok(count);
            }
        }
        Ok(0)
    }

    /// Removes the pre-written objects found in a snapshot, after `failures` failed attempts.
    /// Returns how many; `None` to try again.
    fn sweep_found_prewritten(
        &self,
        now: Timestamp,
        until: Timestamp,
        (view, prewritten): (&ReadSnapshot, PrewrittenObjects),
        failures: u32,
    ) -> Result<Option<u64>> {
        let operation = WriteContext::hook("sweep", now).operation()?;
        // As for prunings: search everything before the lock is taken, and only newer records under
        // it.
        let found = prewritten.find_garbage(view)?;
        let seen = crate::backend::Snapshot::position(view);
        self.engine.commit(CommitDurability::Later, &mut |context| {
            let view = context.view()?;
            let still = PrewrittenObjects::written_until(&view, until)?;
            let change = match self.engine.follower.records_since(seen) {
                Some(since) => found.change(&still, since.iter().map(|placed| &placed.record))?,
                None if failures < MAX_UNLOCKED_ATTEMPTS => return Ok((None, None)),
                None => still.clone().find_garbage(&view)?.change(&still, std::iter::empty())?,
            };
            let count = match &change {
                Some(RecordChange::SweptAhead { objects, parts, .. }) => {
                    objects.len() + parts.len()
                }
                _ => 0,
            };
            let changes = Vec::from_iter(change);
            let record = Record { operation: operation.clone(), changes };
            Ok(((!record.changes.is_empty()).then_some(record), Some(count as u64)))
        })
    }

    /// Sweeps a pruning found in `view`, after `failures` failed attempts. Returns how many large
    /// values were removed; `None` if it was swept or undone concurrently, or if more was written
    /// than the follower remembers: then try again.
    fn sweep_one(
        &self,
        now: Timestamp,
        view: &ReadSnapshot,
        pruning: &PendingPruning,
        failures: u32,
    ) -> Result<Option<u64>> {
        let operation = WriteContext::hook("sweep", now).operation()?;
        // Searching all objects takes long, so it is done before the lock is taken; only newer
        // records are searched under the lock.
        let found = prune::unreferenced_blobs(view, pruning)?;
        let seen = crate::backend::Snapshot::position(view);
        self.engine.commit(CommitDurability::Later, &mut |context| {
            let pending = prune::prunings(&context.view()?, pruning.time)?;
            let since = self.engine.follower.records_since(seen);
            let mut changes = since.iter().flatten().flat_map(|placed| &placed.record.changes);
            let came_back = |change: &RecordChange| {
                matches!(
                    change,
                    RecordChange::Unfolded { .. }
                        | RecordChange::CheckpointShown { .. }
                        | RecordChange::SessionShown { .. }
                )
            };
            if !pending.iter().any(|one| one.operation == pruning.operation)
                || changes.any(came_back)
            {
                return Ok((None, None));
            }
            let blobs = match since {
                Some(records) => {
                    let mut loose = found.clone();
                    records.iter().try_for_each(|placed| loose.keep_recorded(&placed.record))?;
                    loose.into_ids()
                }
                // More was written than the follower remembers.
                None if failures < MAX_UNLOCKED_ATTEMPTS => return Ok((None, None)),
                None => prune::unreferenced_blobs(&context.view()?, pruning)?.into_ids(),
            };
            let values = blobs.len() as u64;
            let change = RecordChange::Swept {
                session: pruning.session,
                operation: pruning.operation,
                blobs,
                sessions: prune::pruned_sessions(
                    &context.view()?,
                    &context.refs,
                    &pruning.operation,
                )?,
            };
            let record = Record { operation: operation.clone(), changes: vec![change] };
            Ok((Some(record), Some(values)))
        })
    }
}

#[cfg(test)]
mod tests;

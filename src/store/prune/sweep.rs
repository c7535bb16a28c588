//! Sweeping: what was pruned, and what was written ahead of a record that never came, goes for
//! good.

use crate::engine::commit::CommitDurability;
use crate::engine::journal_follower::ReadSnapshot;
use crate::engine::prune::{self, PendingPruning, PrewrittenObjects};
use crate::error::Result;
use crate::format::{Record, RecordChange};
use crate::model::Timestamp;
use crate::store::Store;
use crate::store::write_context::WriteContext;

/// What was written ahead in the last day is left alone, whatever is said of prunings: who wrote it
/// may be about to name it.
const MIN_PREWRITTEN_AGE_MICROS: i64 = 24 * 3_600_000_000;

/// So often what only a pruning names is looked for beside those who write. If they write more each
/// time than is remembered of it, they wait for the next look.
const MAX_UNLOCKED_ATTEMPTS: u32 = 3;

/// What a sweep dropped for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Prunings.
    pub prunings: u64,
    /// Large values that nothing named any more.
    pub values: u64,
    /// Objects that were written ahead of a record that never came.
    pub prewritten: u64,
}

impl Store {
    /// Drops for good what was pruned up to `until`, in all sessions: then it cannot be taken back.
    /// Headers of revisions stay, so that the chain can still be checked. What was written ahead by
    /// who was killed before anything named it goes too, if it is older than a day.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    pub fn sweep(&self, now: Timestamp, until: Timestamp) -> Result<SweepReport> {
        let mut swept = SweepReport::default();
        let mut looks = 0;
        loop {
            // Without what waits in the spool: that takes no place in the journal yet, and is
            // looked at as it comes there.
            let view = self.engine.follower.written_view()?;
            let Some(pruning) = prune::prunings(&view, until)?.into_iter().next() else { break };
            let SweepOutcome::Done(values) = self.sweep_one(now, &view, &pruning, looks)? else {
                looks += 1;
                continue;
            };
            looks = 0;
            swept.values += values;
            swept.prunings += 1;
        }
        swept.prewritten =
            self.sweep_ahead(now, until.min(now.plus_micros(-MIN_PREWRITTEN_AGE_MICROS)))?;
        if swept.prunings > 0 || swept.prewritten > 0 {
            self.engine.sync()?;
        }
        Ok(swept)
    }

    /// Drops what was written ahead up to a time and never named. Returns how many objects those
    /// were.
    fn sweep_ahead(&self, now: Timestamp, until: Timestamp) -> Result<u64> {
        for looks in 0.. {
            let view = self.engine.follower.written_view()?;
            let ahead = PrewrittenObjects::written_until(&view, until)?;
            if ahead.is_empty() {
                break;
            }
            if let Some(count) = self.sweep_seen_ahead(now, until, (&view, ahead), looks)? {
                return Ok(count);
            }
        }
        Ok(0)
    }

    /// Sweeps what was written ahead as it is seen in a view, after so many looks in vain; `None`:
    /// look again.
    fn sweep_seen_ahead(
        &self,
        now: Timestamp,
        until: Timestamp,
        (view, ahead): (&ReadSnapshot, PrewrittenObjects),
        looks: u32,
    ) -> Result<Option<u64>> {
        let operation = WriteContext::hook("sweep", now).operation()?;
        // As for prunings: everything is looked through before the lock is taken, and what came
        // since under it.
        let found = ahead.look(view)?;
        let seen = crate::backend::Snapshot::position(view);
        self.engine.commit(CommitDurability::Later, &mut |desk| {
            let view = desk.view()?;
            let still = PrewrittenObjects::written_until(&view, until)?;
            let change = match self.engine.follower.records_since(seen) {
                Some(since) => found.change(&still, since.iter().map(|placed| &placed.record))?,
                None if looks < MAX_UNLOCKED_ATTEMPTS => return Ok((None, None)),
                None => still.clone().look(&view)?.change(&still, std::iter::empty())?,
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

    /// Sweeps a pruning as it is seen in `view`, after so many looks in vain.
    fn sweep_one(
        &self,
        now: Timestamp,
        view: &ReadSnapshot,
        pruning: &PendingPruning,
        looks: u32,
    ) -> Result<SweepOutcome> {
        let operation = WriteContext::hook("sweep", now).operation()?;
        // Looking through all objects takes long: it is done before the lock is taken, and what
        // came since is looked through under it.
        let found = prune::unreferenced_blobs(view, pruning)?;
        let seen = crate::backend::Snapshot::position(view);
        self.engine.commit(CommitDurability::Later, &mut |desk| {
            let pending = prune::prunings(&desk.view()?, pruning.time)?;
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
                return Ok((None, SweepOutcome::Again));
            }
            let blobs = match since {
                Some(records) => {
                    let mut loose = found.clone();
                    records.iter().try_for_each(|placed| loose.keep_recorded(&placed.record))?;
                    loose.into_ids()
                }
                // More has happened than is remembered.
                None if looks < MAX_UNLOCKED_ATTEMPTS => return Ok((None, SweepOutcome::Again)),
                None => prune::unreferenced_blobs(&desk.view()?, pruning)?.into_ids(),
            };
            let values = blobs.len() as u64;
            let change = RecordChange::Swept {
                session: pruning.session,
                operation: pruning.operation,
                blobs,
            };
            let record = Record { operation: operation.clone(), changes: vec![change] };
            Ok((Some(record), SweepOutcome::Done(values)))
        })
    }
}

/// What came of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SweepOutcome {
    /// So many large values are gone.
    Done(u64),
    /// Somebody swept it meanwhile, or brought back what may name what was found loose, or wrote
    /// more than is remembered: look again.
    Again,
}

#[cfg(test)]
mod tests;

//! Rehearsing an import: lines are first applied to a copy of the store in memory, so that a line
//! that cannot be applied is found before anything is written. The records that this makes are then
//! appended to the journal at once.

use crate::backend::memory::{MemoryLog, SingleGeneration};
use crate::backend::{LogPosition, LogTail, SealMode};
use crate::engine::commit::SealStatus;
use crate::error::Result;
use crate::store::{Options, Store};
use std::sync::Arc;

pub(super) struct StoreCopy {
    pub(super) store: Store,
    log: MemoryLog,
    /// Where the journal of the copied store ended.
    from: LogPosition,
}

impl StoreCopy {
    /// Returns how many bytes were written to the copy.
    pub(super) fn written_bytes(&self) -> u64 {
        self.store.engine.follower.end().saturating_sub(self.from)
    }

    /// Appends what was written to the copy to the copied store. Returns `false`, and appends
    /// nothing, if another process has written there since.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    pub(super) fn append_to(&self, store: &Store) -> Result<bool> {
        let payloads = self.log.take_payloads(self.from);
        let records = self.store.engine.follower.take_records(self.from);
        store.engine.append_planned(self.from, records, payloads)
    }
}

impl Store {
    /// Returns a copy of this store in memory. What is written to it changes nothing here. It reads
    /// the newest generation of this store and the known tail, and has its own journal after that.
    pub(super) fn copy_in_memory(&self) -> Result<StoreCopy> {
        let engine = &self.engine;
        let (generation, tail) = engine.follower.copied_tail()?;
        let from = tail.end();
        let log = MemoryLog::continuing(LogTail { frames: Vec::new(), end: from }, from);
        let log = log.without_hashes();
        let store = Self::assemble(
            Arc::new(log.clone()),
            Arc::new(SingleGeneration(generation)),
            engine.marker.clone(),
            Options::default().redaction(engine.options.redaction.clone()),
            (SealStatus::Unsealed, SealMode::Absent, None),
            None,
        );
        store.engine.follower.begin_with(tail);
        Ok(StoreCopy { store, log, from })
    }
}

#[cfg(test)]
#[path = "rehearsal_tests.rs"]
mod tests;

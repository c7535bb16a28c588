//! Rehearses an import: lines are first applied to a copy of the store in memory, so that a line
//! that cannot be applied is found before anything is written. The resulting records are then
//! appended to the journal at once.

use crate::backend::memory::{MemoryLog, SingleGeneration};
use crate::backend::{LogPosition, LogTail, SealMode};
use crate::engine::commit::SealStatus;
use crate::error::Result;
use crate::store::{Options, Store};
use std::sync::Arc;

/// A copy of a store in memory.
pub(super) struct StoreCopy {
    pub(super) store: Store,
    log: MemoryLog,
    /// The end of the journal of the copied store.
    from: LogPosition,
}

impl StoreCopy {
    /// Returns how many bytes were written to the copy.
    pub(super) fn written_bytes(&self) -> u64 {
        self.store.engine.follower.end().saturating_sub(self.from)
    }

    /// Appends the records of the copy to the copied store. Returns `false`, and appends nothing,
    /// if something was written to that store since.
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
    /// Returns a copy of this store in memory. Writes to the copy do not change this store. The
    /// copy reads the newest generation of this store and the known tail, and has another journal
    /// after that.
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

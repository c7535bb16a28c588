//! Rehearsing an import: lines are first applied to a copy of the store in memory, so that a line
//! that cannot be applied is found before anything is written.

use crate::backend::memory::{MemoryLog, SingleGeneration};
use crate::backend::{self, SealMode};
use crate::engine::commit::SealStatus;
use crate::error::{Error, Result};
use crate::store::{Options, Store};
use std::sync::Arc;

impl Store {
    /// Returns a copy of this store in memory. What is written to it changes nothing here. It reads
    /// the newest generation of this store and has its own journal after that.
    pub(super) fn copy_in_memory(&self) -> Result<Self> {
        const MAX_ATTEMPTS: usize = 100;
        let engine = &self.engine;
        for _ in 0..MAX_ATTEMPTS {
            let generation = engine.follower.index.snapshot()?;
            let start = generation.position();
            let tail = match engine.follower.log.read(start, u64::MAX) {
                // A newer generation has replaced it.
                Err(backend::Error::Gone { .. }) => continue,
                tail => tail?,
            };
            let options = Options::default().redaction(engine.options.redaction.clone());
            return Ok(Self::assemble(
                Arc::new(MemoryLog::continuing(tail, start)),
                Arc::new(SingleGeneration(generation)),
                engine.marker.clone(),
                options,
                (SealStatus::Unsealed, SealMode::Absent, None),
                None,
            ));
        }
        Err(Error::Internal("the index moves on faster than it can be read".to_owned()))
    }
}

#[cfg(test)]
#[path = "rehearsal_tests.rs"]
mod tests;

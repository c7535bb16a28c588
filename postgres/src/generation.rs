//! Generations of an index.

use forge_store::store::database::LogPosition;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a found generation may be opened without looking for a newer one.
const FOUND_FOR: Duration = Duration::from_secs(60);

/// A generation and its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generation {
    pub(crate) number: i64,
    pub(crate) position: LogPosition,
}

/// The generation that the last query of the position found. It is opened next, without another
/// query.
#[derive(Debug, Default)]
pub(crate) struct FoundGeneration(Mutex<Option<(Generation, Instant)>>);

impl FoundGeneration {
    /// Sets the generation, or clears it.
    pub(crate) fn set(&self, found: Option<Generation>) {
        let found = found.map(|found| (found, Instant::now()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// Returns the generation, unless it was found too long ago, and clears it.
    pub(crate) fn take(&self) -> Option<Generation> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        found.filter(|(_, at)| at.elapsed() < FOUND_FOR).map(|(found, _)| found)
    }
}

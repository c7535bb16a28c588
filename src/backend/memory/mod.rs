//! A log and an index in memory: for tests and temporary stores.
//!
//! Clones share their content, as two processes share a folder. The content is lost with the last
//! clone.

#[cfg(test)]
mod counting_log;
mod index;
mod log;
mod single_generation;

#[cfg(test)]
pub(crate) use counting_log::CountingLog;
pub use index::MemoryIndex;
pub use log::MemoryLog;
pub(crate) use single_generation::SingleGeneration;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also after a panic: a caller's function, which may panic, runs only under the
/// lock of a log's writers, which protects no data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

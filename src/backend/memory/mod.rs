//! A log and an index in memory: for tests and temporary stores.
//!
//! Clones share their content, as two processes share a folder. It is lost with the last clone.

mod index;
mod log;
mod single_generation;

pub use index::MemoryIndex;
pub use log::MemoryLog;
pub(crate) use single_generation::SingleGeneration;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also after a panic: every change is a single assignment, so none is left half
/// done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! A log and an index in memory: for tests and throw-away stores.
//!
//! Clones share what they hold, as two processes share a folder. Nothing survives the last of them.

mod index;
mod log;

pub use index::MemoryIndex;
pub use log::MemoryLog;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic elsewhere: every change here is made in one assignment, so none is ever half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

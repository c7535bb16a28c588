//! Turns of the threads of one process.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Locks a mutex, also after a panic of a thread that had it.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A lock for the threads of one process, with a timeout.
#[derive(Debug, Default)]
pub(crate) struct ThreadTurn {
    taken: Mutex<bool>,
    /// Notified when `taken` becomes false.
    freed: Condvar,
}

/// The turn of a thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ThreadTurnGuard<'a>(&'a ThreadTurn);

impl ThreadTurn {
    /// Waits until no other thread has its turn; `None` if that takes longer than `timeout`.
    pub(crate) fn wait(&self, timeout: Duration) -> Option<ThreadTurnGuard<'_>> {
        let since = Instant::now();
        let mut taken = locked(&self.taken);
        while *taken {
            let left = timeout.checked_sub(since.elapsed()).filter(|left| !left.is_zero())?;
            let waited = self.freed.wait_timeout(taken, left);
            taken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *taken = true;
        Some(ThreadTurnGuard(self))
    }
}

impl Drop for ThreadTurnGuard<'_> {
    fn drop(&mut self) {
        *locked(&self.0.taken) = false;
        self.0.freed.notify_one();
    }
}

//! The append lock: one writer at a time, over all processes and threads.

use super::segment;
use crate::backend::thread_turn::{ThreadTurn, ThreadTurnGuard};
use crate::backend::{Error, LockHolder};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

pub(super) const NAME: &str = "append.lock";
/// The number of attempts before a waiter sleeps: a holder usually writes a few KB and releases the
/// lock.
const YIELDS: u32 = 16;
/// The first sleep between two attempts.
const SHORTEST_PARK: Duration = Duration::from_micros(50);
/// The longest sleep between two attempts during [`USUAL_WAIT`]: a waiter that tries rarely loses
/// against waiters that try often.
const LONGEST_PARK: Duration = Duration::from_micros(250);
/// A wait that takes longer than this is not caused by ordinary appends.
const USUAL_WAIT: Duration = Duration::from_millis(100);
/// The longest sleep between two attempts after [`USUAL_WAIT`].
const LONGEST_LATE_PARK: Duration = Duration::from_millis(2);

/// The file `append.lock`. It is never removed, so that every process locks the same file.
#[derive(Debug)]
pub(crate) struct AppendLock {
    file: File,
    path: PathBuf,
    /// The threads share the lock on the file, so they also exclude each other.
    turn: ThreadTurn,
}

/// The append lock, held until this is dropped.
#[derive(Debug)]
pub(crate) struct AppendLockGuard<'a> {
    file: &'a File,
    _turn: ThreadTurnGuard<'a>,
}

impl AppendLock {
    /// Opens the lock file, creating it if necessary.
    pub(crate) fn create(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(NAME);
        match segment::create_private(&path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io("create", &path)(error)),
        }
        Self::open(folder)
    }

    /// Opens the existing lock file.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(NAME);
        let opened = OpenOptions::new().read(true).write(true).open(&path);
        let file = opened.map_err(Error::io("open", &path))?;
        Ok(Self { file, path, turn: ThreadTurn::default() })
    }

    /// Acquires the lock.
    ///
    /// # Errors
    /// [`Error::Busy`] if the lock is not free within `timeout`.
    pub(crate) fn acquire(&self, timeout: Duration) -> Result<AppendLockGuard<'_>, Error> {
        let since = Instant::now();
        let turn = self.turn.wait(timeout).ok_or_else(|| self.busy(since))?;
        self.lock_file(since, timeout)?;
        Ok(AppendLockGuard { file: &self.file, _turn: turn })
    }

    /// Locks the file against other processes and other handles. `since` is when the wait began.
    fn lock_file(&self, since: Instant, timeout: Duration) -> Result<(), Error> {
        let mut park = SHORTEST_PARK;
        for attempt in 0_u32.. {
            match self.file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => {
                    return Err(Error::io("lock", &self.path)(error));
                }
            }
            let waited = since.elapsed();
            let Some(left) = timeout.checked_sub(waited).filter(|left| !left.is_zero()) else {
                break;
            };
            if attempt < YIELDS {
                thread::yield_now();
            } else {
                thread::park_timeout(park.min(left));
                let longest = if waited < USUAL_WAIT { LONGEST_PARK } else { LONGEST_LATE_PARK };
                park = (park * 3 / 2).min(longest);
            }
        }
        Err(self.busy(since))
    }

    fn busy(&self, since: Instant) -> Error {
        Error::Busy {
            lock: "append lock",
            holder: LockHolder::of(&self.file),
            waited: since.elapsed(),
        }
    }
}

impl Drop for AppendLockGuard<'_> {
    fn drop(&mut self) {
        // Unlocking fails only for a file that is not open.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_held_by_another_thread_is_busy_and_then_free() {
        let folder = tempfile::tempdir().unwrap();
        let lock = AppendLock::create(folder.path()).unwrap();
        let held = lock.acquire(Duration::ZERO).unwrap();
        thread::scope(|scope| {
            let refused = scope.spawn(|| lock.acquire(Duration::ZERO).map(drop)).join().unwrap();
            assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
        });
        drop(held);
        lock.acquire(Duration::ZERO).unwrap();
    }

    #[test]
    fn a_lock_held_by_another_open_file_is_busy_and_names_this_process() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (
            AppendLock::create(folder.path()).unwrap(),
            AppendLock::create(folder.path()).unwrap(),
        );
        let _held = one.acquire(Duration::ZERO).unwrap();
        let Err(Error::Busy { holder, .. }) = two.acquire(Duration::from_millis(1)) else {
            panic!("the lock was acquired twice");
        };
        if cfg!(target_os = "linux") {
            assert_eq!(holder.unwrap().pid, std::process::id());
        }
    }
}

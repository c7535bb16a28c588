//! The stamp of a session: a file whose time says when a hook last requested a sync, and whose lock
//! a process holds while it syncs or pulls the session.

use crate::error::CommandError;
use crate::hook::log;
use crate::private_files;
use forge_store::model::Timestamp;
use forge_store::store::Store;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many digits of a session's hash name its stamp.
const NAME_DIGITS: usize = 16;

/// The stamp of a session, which need not exist.
pub(super) struct ExchangeStamp {
    path: PathBuf,
}

impl ExchangeStamp {
    /// Returns the stamp of an agent's session; `None` for a store without notes.
    pub(super) fn of(store: &Store, session: &str) -> Option<Self> {
        let folder = log::store_log(&store.notes()?).parent()?.to_owned();
        // An agent's id can be any text.
        let name: String =
            blake3::hash(session.as_bytes()).to_hex().chars().take(NAME_DIGITS).collect();
        Some(Self { path: folder.join(format!("{name}.sync")) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns how long ago a sync was requested, in microseconds; `None` if none was, or if the
    /// clock was set back.
    pub(super) fn age_micros(&self, now: Timestamp) -> Option<i64> {
        let time = self.time()?.duration_since(UNIX_EPOCH).ok()?;
        let time = Timestamp::from_micros(i64::try_from(time.as_micros()).ok()?);
        Some(now.micros_since(time)).filter(|age| *age >= 0)
    }

    /// Records that a sync is requested now.
    pub(super) fn touch(&self, now: Timestamp) -> Result<(), CommandError> {
        let micros = Duration::from_micros(now.as_micros().unsigned_abs());
        self.open()
            .and_then(|file| file.set_modified(UNIX_EPOCH + micros))
            .map_err(|error| self.failed(error))
    }

    /// Runs `once` under the lock, and again as long as a sync was requested during the run.
    /// Returns the last result, or the last success if another process took the lock between two
    /// runs. `None` if another process holds the lock at the beginning: that process runs it again
    /// for this one. With `waits`, waits for the lock instead.
    ///
    /// # Errors
    ///
    /// The error of the last run; any error of the file.
    pub(super) fn settle<T>(
        &self,
        waits: bool,
        mut once: impl FnMut() -> Result<T, CommandError>,
    ) -> Result<Option<T>, CommandError> {
        let mut done = None;
        loop {
            let file = self.open().map_err(|error| self.failed(error))?;
            let locked =
                if waits { file.lock().map_err(TryLockError::Error) } else { file.try_lock() };
            match locked {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(done),
                Err(TryLockError::Error(error)) => return Err(self.failed(error)),
            }
            let seen = self.time();
            let result = once();
            drop(file);
            // After the lock is released, because a process that requests a sync later finds it
            // free.
            if self.time() == seen {
                return result.map(Some);
            }
            done = result.ok().or(done);
        }
    }

    fn time(&self) -> Option<SystemTime> {
        fs::metadata(&self.path).and_then(|about| about.modified()).ok()
    }

    fn open(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            private_files::create_directories(folder)?;
        }
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&self.path)
    }

    fn failed(&self, error: io::Error) -> CommandError {
        CommandError::io_at("cannot use", &self.path, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_micros(1_770_000_000_000_000 + second * 1_000_000)
    }

    #[test]
    fn the_age_is_that_of_the_last_touch() {
        let folder = tempfile::tempdir().unwrap();
        let stamp = ExchangeStamp { path: folder.path().join("log/x.sync") };
        assert_eq!(stamp.age_micros(at(0)), None);
        stamp.touch(at(0)).unwrap();
        assert_eq!(stamp.age_micros(at(59)), Some(59_000_000));
        stamp.touch(at(60)).unwrap();
        assert_eq!(stamp.age_micros(at(60)), Some(0));
        assert_eq!(stamp.age_micros(at(59)), None, "the clock was set back");
    }

    #[test]
    fn a_sync_requested_during_another_is_done_by_the_process_that_holds_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let stamp = ExchangeStamp { path: folder.path().join("x.sync") };
        stamp.touch(at(0)).unwrap();
        let mut calls = 0;
        let done = stamp.settle(false, || {
            calls += 1;
            if calls == 1 {
                stamp.touch(at(1))?;
                // The process without the lock ends at once.
                assert!(
                    stamp
                        .settle(false, || -> Result<(), _> { panic!("it has no lock") })?
                        .is_none()
                );
            }
            Ok(calls)
        });
        assert_eq!(done.unwrap(), Some(2));
        let failed = stamp.settle(false, || Err::<(), _>(CommandError::invalid("no")));
        assert_eq!(failed.unwrap_err().message(), "no");
        assert_eq!(stamp.settle(false, || Ok(3)).unwrap(), Some(3));
    }
}

//! What can go wrong where bytes are kept.

use super::{IntegrityBreach, LockHolder, LogPosition};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What can go wrong where bytes are kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried (`open`, `append to`, `sync`, ...).
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// That part of the log has been removed: read the newest generation of the index and go on from there.
    #[error("the journal no longer holds position {position}; it starts at {start}")]
    Gone {
        /// What was asked for.
        position: LogPosition,
        /// Where the log starts.
        start: LogPosition,
    },
    /// What was known to be durable is missing or wrong.
    #[error("the journal is damaged at position {position}: {reason}")]
    Damaged {
        /// Where.
        position: LogPosition,
        /// What is wrong there.
        reason: String,
    },
    /// What is there is not what the holder of the store's key has written.
    #[error("{what} ({})", breach.name())]
    Breach {
        /// In which way.
        breach: IntegrityBreach,
        /// What, and where.
        what: String,
    },
    /// Somebody else held the lock for too long.
    #[error("{} has held the {lock} for {:.1} s", holder.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string), waited.as_secs_f32())]
    Busy {
        /// Which one (`append lock`, `lock of the index`).
        lock: &'static str,
        /// Who, as far as known.
        holder: Option<LockHolder>,
        /// How long this process waited.
        waited: Duration,
    },
    /// The index lacks rows that must be there, or a file of it is not what was written.
    #[error("the index is damaged: {what}")]
    DamagedIndex {
        /// What is wrong about it.
        what: String,
    },
    /// The index could not be read or written.
    #[error("cannot {action} the index")]
    Index {
        /// What was tried.
        action: &'static str,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Whether it went wrong since there is no room on the disk, or none for this user.
    pub(crate) fn is_disk_full(&self) -> bool {
        is_disk_full(self)
    }

    /// Adds to an I/O error what was tried on which file.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

/// Whether an error, or what it goes back to, is that there is no room on the disk, or none for this user.
pub(crate) fn is_disk_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        // RocksDB tells it in words.
        let said = error.to_string();
        if matches!(kind, Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded))
            || ["No space left on device", "Disk quota exceeded"]
                .iter()
                .any(|words| said.contains(words))
        {
            return true;
        }
        next = error.source();
    }
    false
}

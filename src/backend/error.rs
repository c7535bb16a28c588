//! Errors of the storage layer.

use super::{IntegrityBreach, LockHolder, LogPosition};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An error of the storage layer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file system operation failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The operation (`open`, `append to`, `sync`, ...).
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The requested part of the log has been removed. The reader must continue at the position of
    /// the newest generation of the index.
    #[error(
        "files of the index are missing: it ends at position {position}, and the journal begins at \
         {start}"
    )]
    Gone {
        /// The requested position.
        position: LogPosition,
        /// The position at which the log starts.
        start: LogPosition,
    },
    /// Data that was known to be durable is missing or wrong.
    #[error("the journal is damaged at position {position}: {reason}")]
    Damaged {
        /// The position of the damage.
        position: LogPosition,
        /// A description of the flaw.
        reason: String,
    },
    /// The data was not written by a holder of the store's key.
    #[error("{what} ({})", breach.name())]
    Breach {
        /// The kind of breach.
        breach: IntegrityBreach,
        /// What is affected, and where.
        what: String,
    },
    /// Another process or thread held the lock for longer than the timeout.
    #[error("{} has held the {lock} for {:.1} s", holder.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string), waited.as_secs_f32())]
    Busy {
        /// The lock (`append lock`, `lock of the index`).
        lock: &'static str,
        /// The holder, if known.
        holder: Option<LockHolder>,
        /// How long this process waited.
        waited: Duration,
    },
    /// A database could not be read or written.
    #[error("cannot {action} the database {place}{}", if *unsure { ": it is unknown whether the operation was done" } else { "" })]
    Database {
        /// The operation (`read`, `append to`, ...).
        action: &'static str,
        /// The address of the database.
        place: String,
        /// Whether the operation may have been done.
        unsure: bool,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The address of a database cannot be used. The message never contains a password.
    #[error(transparent)]
    DatabaseAddress {
        /// What is wrong, and what to do.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The index lacks rows that must exist, or one of its files is corrupt.
    #[error("the index is damaged: {what}")]
    DamagedIndex {
        /// A description of the damage.
        what: String,
    },
    /// The index could not be read or written.
    #[error("cannot {action} the index")]
    Index {
        /// The operation.
        action: &'static str,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Returns whether the cause is a full disk or an exhausted quota.
    pub(crate) fn is_disk_full(&self) -> bool {
        is_disk_full(self)
    }

    /// Converts an I/O error, adding the operation and the file.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

/// Returns whether an error, or an error that caused it, is a full disk or an exhausted quota.
pub(crate) fn is_disk_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        // RocksDB reports a full disk only in the text of its message.
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

//! The interface of a database that contains a store: a table of frames, and an index.

use super::{Error, Index, LogPosition, RecordHash};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A store in a database. Calls block the thread.
pub trait Database: Send + Sync + fmt::Debug {
    /// Returns the address of the database and the name of the store in it.
    fn place(&self) -> &DatabasePlace;

    /// Returns the marker of the store; `None` if there is no store of this name. In a store of
    /// files, the marker is the content of the file `FORMAT`.
    ///
    /// # Errors
    /// [`Error::Database`].
    fn marker(&self) -> Result<Option<String>, Error>;

    /// Creates the store with this id, marker and first frame. If a store of this name exists,
    /// returns `false` and changes nothing.
    ///
    /// # Errors
    /// [`Error::Database`].
    fn create(&self, id: &[u8; 16], marker: &str, first: Option<&FrameRow>) -> Result<bool, Error>;

    /// Returns the frames of the log of the store with this id.
    fn frames(&self, store: &[u8; 16]) -> Box<dyn FrameTable>;

    /// Returns the index of the store with this id.
    fn index(&self, store: &[u8; 16]) -> Box<dyn Index>;

    /// Returns a sentence for each setting or state of the database that puts the store at risk.
    ///
    /// # Errors
    /// [`Error::Database`].
    fn risks(&self) -> Result<Vec<String>, Error>;

    /// Returns the name and version of the database, as it reports them.
    ///
    /// # Errors
    /// [`Error::Database`].
    fn version(&self) -> Result<String, Error>;

    /// Returns whether the files of the database may still contain data that a purge has removed
    /// from the rows of the store with this id.
    ///
    /// # Errors
    /// [`Error::Database`].
    fn keeps_purged(&self, store: &[u8; 16]) -> Result<bool, Error>;

    /// Sets what [`Database::keeps_purged`] returns from now on.
    ///
    /// # Errors
    /// [`Error::Database`].
    fn set_keeps_purged(&self, store: &[u8; 16], keeps: bool) -> Result<(), Error>;

    /// Rewrites the files of the tables without deleted and replaced rows. Other users of the
    /// tables wait meanwhile.
    ///
    /// # Errors
    /// [`Error::Database`].
    fn vacuum(&self) -> Result<(), Error>;
}

/// Connects to databases by their address, to open stores whose folder names a database.
pub trait DatabaseConnector: Send + Sync + fmt::Debug + UnwindSafe + RefUnwindSafe {
    /// Returns the store at this place. The store need not exist. `folder` is the folder that names
    /// the place. A connector may refuse a folder that it does not trust, because connecting can
    /// reveal credentials.
    ///
    /// # Errors
    /// [`Error::DatabaseAddress`] if the address cannot be used; [`Error::Database`] if the folder
    /// is refused.
    fn connect(&self, place: &DatabasePlace, folder: &Path) -> Result<Arc<dyn Database>, Error>;
}

/// The place of a store in a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabasePlace {
    /// The address of the database, without a password.
    pub address: String,
    /// The name of the store in the database.
    pub name: String,
}

impl fmt::Display for DatabasePlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} in {}", self.name, self.address)
    }
}

/// The bounds of the log at one moment: those that one statement of the database sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogHead {
    /// The position of the oldest frame.
    pub start: LogPosition,
    /// The position at which the newest frame ends.
    pub end: LogPosition,
    /// The hash of the newest frame; zeros if there is none.
    pub hash: RecordHash,
}

/// A frame as a row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameRow {
    /// The position at which it begins.
    pub position: LogPosition,
    /// The position at which it ends.
    pub end: LogPosition,
    /// Its hash.
    pub hash: RecordHash,
    /// Whether a segment begins with this frame. Only whole segments are removed.
    pub begins_segment: bool,
    /// Its bytes, including the header.
    pub bytes: Vec<u8>,
}

/// Frames of a log, and the bounds of the log at the same moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameRows {
    /// The bounds of the log when the frames were read.
    pub head: LogHead,
    /// Consecutive frames.
    pub frames: Vec<FrameRow>,
}

/// The frames of a log, as rows of a table to which many processes write.
///
/// Errors are [`Error::Database`]. If its field `unsure` is true, the call may have taken effect.
pub trait FrameTable: Send + Sync {
    /// Returns the frame at `from`, if the log does not end there, and the later frames that begin
    /// less than `limit` bytes after `from`.
    fn read(&self, from: LogPosition, limit: u64) -> Result<FrameRows, Error>;

    /// Reads like [`FrameTable::read`], from the position of the newest generation of the index on.
    /// Also returns that position. The next snapshot of the index opens this generation.
    fn read_after_index(&self, limit: u64) -> Result<(LogPosition, FrameRows), Error>;

    /// Appends frames to the log, durably, if the log still has the end and hash of `head`.
    /// Otherwise returns `false`, and appends nothing.
    ///
    /// # Errors
    /// [`Error::Busy`] if another writer held the log for longer than the timeout.
    fn append(&self, head: &LogHead, frames: &[FrameRow], timeout: Duration)
    -> Result<bool, Error>;

    /// Waits until all frames in the table are durable. Needed after an append whose answer was
    /// lost: its frames may be in the table, but not yet on a standby that the database waits for.
    ///
    /// # Errors
    /// [`Error::Busy`] if another writer held the log for longer than the timeout.
    fn settle(&self, timeout: Duration) -> Result<(), Error>;

    /// Locks the log: no other writer can append until the result is dropped. Waits for at most
    /// `timeout`.
    ///
    /// # Errors
    /// [`Error::Busy`] after the timeout.
    fn lock(&self, timeout: Duration) -> Result<Box<dyn LockedFrames + '_>, Error>;

    /// Removes the segments that end at or before a position.
    fn remove_before(&self, before: LogPosition) -> Result<(), Error>;
}

/// The frames of a locked log: no other writer can append to it until this value is dropped.
pub trait LockedFrames {
    /// Reads like [`FrameTable::read`].
    fn read(&mut self, from: LogPosition, limit: u64) -> Result<FrameRows, Error>;

    /// Appends frames at the end of the log, durably, and releases the lock.
    fn append(self: Box<Self>, frames: &[FrameRow]) -> Result<(), Error>;
}

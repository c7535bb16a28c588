//! What a database has to do to hold a store: a table of frames, and an index.

use super::{Error, Index, LogPosition, RecordHash};
use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A store in a database. Handles are cheap to share; calls block.
pub trait Database: Send + Sync + fmt::Debug {
    /// Returns the address of the database and the name of the store in it.
    fn place(&self) -> &DatabasePlace;

    /// Returns the marker of the store, which is the text of `FORMAT` in a store of files; `None`
    /// if there is no store of this name.
    ///
    /// # Errors
    /// [`Error::Database`].
    fn marker(&self) -> Result<Option<String>, Error>;

    /// Creates the store with this id, marker and first frame. Returns `false`, and changes
    /// nothing, if there is one of this name.
    ///
    /// # Errors
    /// [`Error::Database`].
    fn create(&self, id: &[u8; 16], marker: &str, first: Option<&FrameRow>) -> Result<bool, Error>;

    /// Returns the frames of the log of the store with this id.
    fn frames(&self, store: &[u8; 16]) -> Box<dyn FrameTable>;

    /// Returns the index of the store with this id.
    fn index(&self, store: &[u8; 16]) -> Box<dyn Index>;

    /// Returns the settings and states of the database that put the store at risk, one sentence
    /// each.
    ///
    /// # Errors
    /// [`Error::Database`].
    fn risks(&self) -> Result<Vec<String>, Error>;

    /// Returns the version of the database, as it names itself.
    ///
    /// # Errors
    /// [`Error::Database`].
    fn version(&self) -> Result<String, Error>;

    /// Returns whether the files of the database may still contain what a purge of the store with
    /// this id has removed from its rows.
    ///
    /// # Errors
    /// [`Error::Database`].
    fn keeps_purged(&self, store: &[u8; 16]) -> Result<bool, Error>;

    /// Sets what [`Database::keeps_purged`] returns from now on.
    ///
    /// # Errors
    /// [`Error::Database`].
    fn set_keeps_purged(&self, store: &[u8; 16], keeps: bool) -> Result<(), Error>;

    /// Rewrites the files of the database without what deleted and replaced rows left in them.
    /// Other users of the tables wait meanwhile.
    ///
    /// # Errors
    /// [`Error::Database`].
    fn vacuum(&self) -> Result<(), Error>;
}

/// Connects to databases by their address. It opens the stores whose folder names a database.
pub trait DatabaseConnector: Send + Sync + fmt::Debug + UnwindSafe + RefUnwindSafe {
    /// Returns the store at this place, which `folder` names. The store need not exist. A connector
    /// may refuse a folder that it does not trust: connecting can reveal credentials.
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

/// The bounds of the log, as one statement of the database sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogHead {
    /// The position of the oldest frame.
    pub start: LogPosition,
    /// The end of the newest frame.
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
    /// Its bytes, with the header.
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

/// The frames of a log, as rows of a table that many processes write.
///
/// Errors are [`Error::Database`]. If such an error is `unsure`, the call may have had its effect.
pub trait FrameTable: Send + Sync {
    /// Returns the frames from `from` on, until they have `limit` bytes (at least one frame) or the
    /// log ends.
    fn read(&self, from: LogPosition, limit: u64) -> Result<FrameRows, Error>;

    /// Reads like [`FrameTable::read`] from the position of the newest generation of the index on,
    /// and also returns that position. The next snapshot of the index opens this generation.
    fn read_after_index(&self, limit: u64) -> Result<(LogPosition, FrameRows), Error>;

    /// Appends frames to the log, durably, if the log still has the end and hash of `head`.
    /// Otherwise returns `false`, and appends nothing.
    ///
    /// # Errors
    /// [`Error::Busy`] if another writer held the log for longer than the timeout.
    fn append(&self, head: &LogHead, frames: &[FrameRow], timeout: Duration)
    -> Result<bool, Error>;

    /// Waits until everything that was appended is as durable as after an append. Called after an
    /// append whose answer was lost: its frames may be in the table, but not yet on a standby that
    /// the database waits for.
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

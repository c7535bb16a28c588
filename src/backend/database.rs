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

    /// Returns what of the database's settings and state puts the store at risk, one sentence each.
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

    /// Records whether [`Database::keeps_purged`] is so from now on, until the files are rewritten.
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

/// Connects to databases by their address. A store whose folder names a database is opened with it.
pub trait DatabaseConnector: Send + Sync + fmt::Debug + UnwindSafe + RefUnwindSafe {
    /// Returns the store of this name at an address, which a folder names. It need not exist. A
    /// connector may refuse a folder that it does not trust: connecting can reveal credentials.
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

/// The log as one statement sees it.
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
    /// Whether a segment begins with it: only whole segments are removed.
    pub begins_segment: bool,
    /// Its bytes, with the header.
    pub bytes: Vec<u8>,
}

/// Frames of a log, and the log at that moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameRows {
    /// The log when they were read.
    pub head: LogHead,
    /// Consecutive frames.
    pub frames: Vec<FrameRow>,
}

/// The frames of a log, as rows of a table that many processes write.
///
/// Errors are [`Error::Database`]; one that is `unsure` leaves open whether the call had an effect.
pub trait FrameTable: Send + Sync {
    /// Returns the frames from `from` on, until they have `limit` bytes (at least one) or the log
    /// ends, and the log at the same moment.
    fn read(&self, from: LogPosition, limit: u64) -> Result<FrameRows, Error>;

    /// Reads like [`FrameTable::read`] from the position of the newest generation of the index on,
    /// and returns that position. The index opens this generation next.
    fn read_after_index(&self, limit: u64) -> Result<(LogPosition, FrameRows), Error>;

    /// Appends frames after the end of the log, durably, if `head` still has the right end and
    /// hash. Returns `false`, and appends nothing, otherwise.
    ///
    /// # Errors
    /// [`Error::Busy`] if another writer held the log for longer than the timeout.
    fn append(&self, head: &LogHead, frames: &[FrameRow], timeout: Duration)
    -> Result<bool, Error>;

    /// Returns when everything that was appended is durable, as an append does. Asked for after an
    /// append whose answer was lost: what is in the table by then may not be on a standby yet that
    /// the database waits for.
    ///
    /// # Errors
    /// [`Error::Busy`] if another writer held the log for longer than the timeout.
    fn settle(&self, timeout: Duration) -> Result<(), Error>;

    /// Waits until no other writer can append, at most `timeout`.
    ///
    /// # Errors
    /// [`Error::Busy`] after the timeout.
    fn lock(&self, timeout: Duration) -> Result<Box<dyn LockedFrames + '_>, Error>;

    /// Removes the segments that end at or before a position.
    fn remove_before(&self, before: LogPosition) -> Result<(), Error>;
}

/// The frames of a log to which no other writer can append until this is dropped.
pub trait LockedFrames {
    /// Reads like [`FrameTable::read`].
    fn read(&mut self, from: LogPosition, limit: u64) -> Result<FrameRows, Error>;

    /// Appends frames at the end of the log, durably, and releases the lock.
    fn append(self: Box<Self>, frames: &[FrameRow]) -> Result<(), Error>;
}

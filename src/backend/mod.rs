//! Where bytes are kept: a [`WriteAheadLog`] that is the write-ahead log, and an [`Index`] behind it.
//!
//! Both speak bytes only and know nothing of what the bytes mean. Implementations: [`memory`] for tests and throw-away
//! stores, files ([`journal`]) and RocksDB ([`rocks`]) for everything else. A remote store fits the same contracts: an
//! append at an expected position is an insert or a put-if-absent there.

mod cipher;
pub mod encrypted;
mod error;
pub(crate) mod files;
pub mod journal;
mod lock_holder;
pub mod memory;
pub mod plain_file;
pub mod rocks;
mod seal;
pub mod spool;

pub(crate) use cipher::EncryptionContext;
pub use cipher::{CIPHER_BYTES, Cipher};
pub use error::Error;
pub(crate) use error::is_disk_full;
pub use lock_holder::LockHolder;
pub use seal::{IntegrityBreach, SealKey, SealMode};

use std::sync::Arc;
use std::time::Duration;

/// Bytes of frames since the beginning of the log: where a frame begins or ends.
pub type LogPosition = u64;

/// What the lock of those who apply is called in messages.
const INDEX_LOCK: &str = "lock of the index";

/// The hash that names a record and links the next one to it; all zeros before the first.
pub type RecordHash = [u8; 32];

/// One record as the log holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFrame {
    /// Where it begins.
    pub position: LogPosition,
    /// Where the next one begins.
    pub end: LogPosition,
    /// Its hash.
    pub hash: RecordHash,
    /// What was appended.
    pub payload: Vec<u8>,
}

/// Records in order, and where they end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTail {
    /// The records.
    pub frames: Vec<LogFrame>,
    /// The position after the last of them (where the read began, if there are none).
    pub end: LogPosition,
}

/// Where a record went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendedRecord {
    /// Where it begins.
    pub position: LogPosition,
    /// Where it ends: what to pass to [`WriteAheadLog::sync`].
    pub end: LogPosition,
    /// Its hash.
    pub hash: RecordHash,
}

/// An append-only sequence of records shared by many processes. See `docs/format.md`, "Journal".
pub trait WriteAheadLog: Send + Sync {
    /// The records from `from` on, whole ones only, at most about `limit` bytes of them (at least one record if there
    /// is one). Waits for nobody. A torn tail ends the read.
    ///
    /// # Errors
    /// [`Error::Gone`] if the segment that holds `from` has been removed: a newer generation of the index covers it.
    /// [`Error::Damaged`] if a record that was known to be synced is missing or wrong.
    fn read(&self, from: LogPosition, limit: u64) -> Result<LogTail, Error>;

    /// Waits for the append lock (at most `timeout`), calls `build` with all records from `from` on, and appends what
    /// it returns as one record. `None` appends nothing. Not durable before [`WriteAheadLog::sync`]. A torn tail is cut first.
    ///
    /// # Errors
    /// [`Error::Busy`] if the lock could not be had, with who holds it; otherwise as [`WriteAheadLog::read`], and
    /// [`Error::Io`]: then nothing was appended.
    fn append(
        &self,
        from: LogPosition,
        timeout: Duration,
        build: &mut dyn FnMut(&LogTail) -> Option<Vec<u8>>,
    ) -> Result<Option<AppendedRecord>, Error>;

    /// Makes everything before `to` durable: when this returns it survives kill -9 and power loss.
    ///
    /// # Errors
    /// [`Error::Io`]: then nothing appended since the last successful sync may be acknowledged.
    fn sync(&self, to: LogPosition) -> Result<(), Error>;

    /// Ends the current segment and begins the next one with the record that `first` returns (called under the
    /// append lock with all records from `from` on). Both segments are durable on return. Returns the new segment's
    /// first record.
    ///
    /// # Errors
    /// As [`WriteAheadLog::append`].
    fn rotate(
        &self,
        from: LogPosition,
        timeout: Duration,
        first: &mut dyn FnMut(&LogTail) -> Option<Vec<u8>>,
    ) -> Result<Option<AppendedRecord>, Error>;

    /// Removes the segments that end at or before `before`. Those still in use by readers of this process stay
    /// readable there.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn remove_before(&self, before: LogPosition) -> Result<(), Error>;

    /// Makes room for about so many bytes behind the end, if less than half of that is there, so that syncs of what
    /// is appended cost less; from then on who appends through this handle makes a little more where it ends. `from` is an end of
    /// the log as last seen. Changes nothing that is read.
    ///
    /// # Errors
    /// As [`WriteAheadLog::append`].
    fn make_room(&self, _from: LogPosition, _bytes: u64) -> Result<(), Error> {
        Ok(())
    }

    /// As [`WriteAheadLog::make_room`], in the segment that [`WriteAheadLog::rotate`] begins next: appends are not held up by it.
    ///
    /// # Errors
    /// As [`WriteAheadLog::append`].
    fn make_room_in_next(&self, _bytes: u64) -> Result<(), Error> {
        Ok(())
    }

    /// Gives back the room that is left, and makes no more.
    ///
    /// # Errors
    /// As [`WriteAheadLog::append`].
    fn give_back_room(&self, _from: LogPosition) -> Result<(), Error> {
        Ok(())
    }

    /// How many times this handle has asked the disk to make something durable.
    fn syncs(&self) -> u64 {
        0
    }

    /// Where the log ended, and with which record, when it was last seen by a witness outside the store.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn witnessed(&self) -> Result<Option<(LogPosition, RecordHash)>, Error> {
        Ok(None)
    }

    /// The position at which the oldest segment starts.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn start(&self) -> Result<LogPosition, Error>;
}

/// Writes that wait for the append lock, by name. See `docs/format.md`, "Spool".
pub trait Spool: Send + Sync {
    /// What waits, sorted by name: also what was acknowledged and is missing, and not what was brought in. Names are 32
    /// hex digits.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn names(&self) -> Result<Vec<String>, Error>;

    /// What an earlier repair could not read, and kept.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn set_aside(&self) -> Result<Vec<String>, Error>;

    /// Whether it is known outside the store that one was acknowledged, and has not been brought in since.
    fn is_acknowledged(&self, name: &str) -> bool;

    /// The bytes of one that waits, of those of its files that are whole; if none is, of the first. `None` if it waits no
    /// longer.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Breach`] if it does not bear the seal that it must, or was acknowledged and is missing.
    fn read(&self, name: &str, is_whole: &dyn Fn(&[u8]) -> bool) -> Result<Option<Vec<u8>>, Error>;

    /// Lets something wait: when this returns it survives kill -9 and power loss. All of it is there, or nothing.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Error>;

    /// Notes that these stand in the journal, durably, and forgets them. One that is gone is no error; one that comes back
    /// waits no more.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn brought(&self, names: &[String]) -> Result<(), Error>;

    /// Removes what writers that were killed left unfinished, and what was brought in; nothing that anybody is writing.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn sweep(&self) -> Result<(), Error>;
}

/// A table of the index; its number is the first byte of its keys on disk. The tables are listed in `format::key`.
/// Number 255 belongs to the index itself: rows of it are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u8);

/// Large values keyed by ever-growing numbers: kept apart from the small rows, so that compaction moves the files of
/// this table instead of rewriting them.
pub const OBJECTS: TableId = TableId(0);

/// Where an index keeps rows of its own.
const RESERVED: TableId = TableId(255);
/// The number at which an index may store the rows of several tables together; see [`rocks::Clustered`].
const CLUSTERS: TableId = TableId(254);

/// Refuses rows of the tables that belong to the index itself.
fn check_tables(batch: &RowBatch) -> Result<(), Error> {
    let own = |table: &TableId| matches!(*table, RESERVED | CLUSTERS);
    if let Some((TableId(number), ..)) = batch.rows.iter().find(|(table, ..)| own(table)) {
        let source = format!("table {number} belongs to the index itself").into();
        return Err(Error::Index { action: "write to", source });
    }
    Ok(())
}

/// Rows to write, all or none. A later row of the same key wins. `None` deletes.
#[derive(Clone, Debug, Default)]
pub struct RowBatch {
    /// Table, key, value.
    pub rows: Vec<(TableId, Vec<u8>, Option<Vec<u8>>)>,
}

/// A key and its value.
pub type TableRow = (Vec<u8>, Vec<u8>);

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanDirection {
    /// Smallest key first.
    Ascending,
    /// Greatest key first.
    Descending,
}

/// One consistent moment of an index. Cheap to share; holds what it reads from being removed until it is dropped.
pub trait Snapshot: Send + Sync {
    /// Everything in the log before this position is in this snapshot, nothing after it.
    fn position(&self) -> LogPosition;

    /// The value of one key.
    ///
    /// # Errors
    /// [`Error::Index`] if it cannot be read.
    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    /// The values of many keys, in the order asked for.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    fn get_many(&self, table: TableId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        keys.iter().map(|key| self.get(table, key)).collect()
    }

    /// At most `limit` rows with `from <= key < to` (an empty `to` means to the table's end), in key order or
    /// against it. To go on after the last row `r`: ascending from `r` followed by a zero byte, descending to `r`.
    ///
    /// # Errors
    /// As [`Snapshot::get`]; a damaged file is an error, never a shorter answer.
    fn scan(
        &self,
        table: TableId,
        from: &[u8],
        to: &[u8],
        direction: ScanDirection,
        limit: usize,
    ) -> Result<Vec<TableRow>, Error>;
}

/// A snapshot with nothing in it: before the first generation, and below rows that stand alone.
pub(crate) struct EmptySnapshot;

impl Snapshot for EmptySnapshot {
    fn position(&self) -> LogPosition {
        0
    }

    fn get(&self, _: TableId, _: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(None)
    }

    fn scan(
        &self,
        _: TableId,
        _: &[u8],
        _: &[u8],
        _: ScanDirection,
        _: usize,
    ) -> Result<Vec<TableRow>, Error> {
        Ok(Vec::new())
    }
}

/// Tables published in generations, each at a position of the log.
pub trait Index: Send + Sync {
    /// The newest generation (empty and at position 0 before the first).
    ///
    /// # Errors
    /// [`Error::Index`] or [`Error::Io`] if it cannot be opened.
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, Error>;

    /// The position of the newest generation, without opening it.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn position(&self) -> Result<LogPosition, Error>;

    /// The right to write the next generation; `None` while somebody else, here or in another process, has it.
    /// Never waits.
    ///
    /// # Errors
    /// As [`Index::snapshot`].
    fn try_writer(&self) -> Result<Option<Box<dyn IndexWriter>>, Error>;

    /// As [`Index::try_writer`], but begins with nothing: what is published takes the place of all there was. Waits for whoever
    /// applies, at most `timeout`.
    ///
    /// # Errors
    /// [`Error::Busy`] if the lock could not be had, with who holds it; otherwise as [`Index::snapshot`].
    fn empty_writer(&self, timeout: Duration) -> Result<Box<dyn IndexWriter>, Error>;

    /// Removes older generations that nobody reads, and gives the folders of those that somebody does. Nothing happens while
    /// somebody else applies.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be listed.
    fn tidy(&self) -> Result<Vec<std::path::PathBuf>, Error> {
        Ok(Vec::new())
    }

    /// Rewrites what is stored so that it takes the least room and nothing overwritten is left in it. `false` if
    /// somebody else is applying, or if there is nothing to do.
    ///
    /// # Errors
    /// As [`IndexWriter::publish`].
    fn compact(&self) -> Result<bool, Error> {
        Ok(false)
    }
}

/// Writes the next generation of an index. Dropped without [`IndexWriter::publish`], nothing has changed.
pub trait IndexWriter: Send + Sync {
    /// What is written so far, on top of the newest generation.
    fn view(&self) -> &dyn Snapshot;

    /// Writes rows.
    ///
    /// # Errors
    /// [`Error::Index`].
    fn write(&mut self, batch: RowBatch) -> Result<(), Error>;

    /// Makes what was written the newest generation, durable and at this position, and lets older generations go
    /// that nobody reads.
    ///
    /// # Errors
    /// [`Error::Index`] or [`Error::Io`]: then the newest generation is what it was.
    fn publish(self: Box<Self>, position: LogPosition) -> Result<(), Error>;
}

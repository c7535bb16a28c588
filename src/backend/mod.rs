//! Storage of bytes: a [`WriteAheadLog`], and an [`Index`] that is updated from it. A [`depot`]
//! stores what several stores share.
//!
//! All store opaque bytes. Implementations of log and index: [`memory`] for tests and temporary
//! stores; files ([`journal`]) and RocksDB ([`rocks`]) for a store in a folder; a [`database`],
//! where an append at an expected position is the insert of a row ([`framed_log`]).

mod cipher;
pub mod database;
pub mod depot;
pub mod encrypted;
mod error;
pub(crate) mod files;
mod frame;
pub mod framed_log;
pub mod journal;
mod lock_holder;
pub mod memory;
pub mod plain_file;
pub mod rocks;
mod row_layer;
mod seal;
pub(crate) mod sealed_index;
pub mod spool;
pub mod store_place;
mod thread_turn;

pub use cipher::{CIPHER_BYTES, Cipher};
pub(crate) use cipher::{ContentKey, EncryptionContext, debug_by_name};
pub use depot::DepotError;
pub use error::Error;
pub(crate) use error::is_disk_full;
pub use lock_holder::LockHolder;
pub use seal::{IntegrityBreach, SealKey, SealMode};
pub(crate) use thread_turn::{ThreadTurn, locked};

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A position in the log: bytes of frames since its beginning, at the start or end of a frame.
pub type LogPosition = u64;

/// The target of traces of the calls that read the journal and the index.
pub const CALLS: &str = "forge_store::calls";

/// The name of the lock for index writers, in messages.
const INDEX_LOCK: &str = "lock of the index";

/// The hash that identifies a record and links the next one to it; all zeros before the first.
pub type RecordHash = [u8; 32];

/// One record in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFrame {
    /// The position at which it begins.
    pub position: LogPosition,
    /// The position at which the next record begins.
    pub end: LogPosition,
    /// The hash of the record.
    pub hash: RecordHash,
    /// The appended bytes.
    pub payload: Vec<u8>,
}

/// Consecutive records, and the position at which they end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogTail {
    /// The records.
    pub frames: Vec<LogFrame>,
    /// The end of the last record, or the start of the read if there are none.
    pub end: LogPosition,
}

/// The place of a new record in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendedRecord {
    /// The position at which it begins.
    pub position: LogPosition,
    /// The position at which it ends, to be passed to [`WriteAheadLog::sync`].
    pub end: LogPosition,
    /// The hash of the record.
    pub hash: RecordHash,
}

/// An append-only sequence of records shared by many processes. See `docs/format.md`, "Journal".
pub trait WriteAheadLog: Send + Sync {
    /// Returns the whole records from `from` on, until they have at least `limit` bytes or the log
    /// ends. Takes no locks. A torn tail ends the read.
    ///
    /// # Errors
    /// [`Error::Gone`] if the segment that contains `from` has been removed: a newer generation of
    /// the index covers it. [`Error::Damaged`] if a record that was known to be synced is missing
    /// or wrong.
    fn read(&self, from: LogPosition, limit: u64) -> Result<LogTail, Error>;

    /// Returns the position of the newest generation of the index, and reads from there like
    /// [`WriteAheadLog::read`]: with one request if log and index are in one database.
    ///
    /// # Errors
    /// See [`WriteAheadLog::read`] and [`Index::position`].
    fn read_after_index(
        &self,
        index: &dyn Index,
        limit: u64,
    ) -> Result<(LogPosition, Result<LogTail, Error>), Error> {
        let position = index.position()?;
        Ok((position, self.read(position, limit)))
    }

    /// Returns whether records are sent over a network, so that compressing them first saves time.
    fn is_remote(&self) -> bool {
        false
    }

    /// Waits for the append lock (at most `timeout`), calls `build` with all records from `from`
    /// on, and appends what it returns as one record. `None` appends nothing. The record is not
    /// durable before [`WriteAheadLog::sync`]. A torn tail is cut first.
    ///
    /// A log without a lock calls `build` with what it knows of the log, and if another writer
    /// appended meanwhile, again with the records since; only the result of the last call counts.
    ///
    /// # Errors
    /// [`Error::Busy`], with the holder, if the lock could not be acquired; the errors of
    /// [`WriteAheadLog::read`]; and [`Error::Io`]. After an error nothing was appended.
    fn append(
        &self,
        from: LogPosition,
        timeout: Duration,
        build: &mut dyn FnMut(&LogTail) -> Option<Vec<u8>>,
    ) -> Result<Option<AppendedRecord>, Error>;

    /// Appends one record per payload with one write, if the log ends at `from`. Returns `None`,
    /// and appends nothing, if another writer has appended after `from`. After a crash, the log may
    /// contain the first of these records without the others.
    ///
    /// # Errors
    /// See [`WriteAheadLog::append`].
    fn append_all(
        &self,
        from: LogPosition,
        timeout: Duration,
        payloads: &[Vec<u8>],
    ) -> Result<Option<Vec<AppendedRecord>>, Error>;

    /// Makes everything before `to` durable: once this returns, it survives kill -9 and power loss.
    ///
    /// # Errors
    /// [`Error::Io`]: then nothing appended since the last successful sync may be acknowledged.
    fn sync(&self, to: LogPosition) -> Result<(), Error>;

    /// Ends the current segment and begins the next one with the record that `first` returns.
    /// `first` is called under the append lock with all records from `from` on. Both segments are
    /// durable on return. Returns the new segment's first record.
    fn rotate(
        &self,
        from: LogPosition,
        timeout: Duration,
        first: &mut dyn FnMut(&LogTail) -> Option<Vec<u8>>,
    ) -> Result<Option<AppendedRecord>, Error>;

    /// Removes the segments that end at or before `before`. Readers of this process can still read
    /// the segments that they have open.
    fn remove_before(&self, before: LogPosition) -> Result<(), Error>;

    /// Preallocates about `bytes` bytes after the end of the log, if less than half of that is
    /// left, so that syncs of later records cost less. From then on, appends through this handle
    /// preallocate a little more when they reach the end of this room. `from` is the last known end
    /// of the log. Readers see no difference.
    fn make_room(&self, _from: LogPosition, _bytes: u64) -> Result<(), Error> {
        Ok(())
    }

    /// Preallocates room like [`WriteAheadLog::make_room`], in the segment that
    /// [`WriteAheadLog::rotate`] begins next. Appends are not delayed.
    fn make_room_in_next(&self, _bytes: u64) -> Result<(), Error> {
        Ok(())
    }

    /// Removes the preallocated room, and stops preallocating.
    fn give_back_room(&self, _from: LogPosition) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the number of syncs through this handle.
    fn syncs(&self) -> u64 {
        0
    }

    /// Returns the end of the log and the hash of its last record, as last seen by a witness
    /// outside the store.
    fn witnessed(&self) -> Result<Option<(LogPosition, RecordHash)>, Error> {
        Ok(None)
    }

    /// Records that the index has the record that the witness saw.
    fn note_witness_checked(&self) {}

    /// Returns the position at which the oldest segment starts.
    fn start(&self) -> Result<LogPosition, Error>;
}

/// Writes that wait for the append lock, by name. See `docs/format.md`, "Spool".
pub trait Spool: Send + Sync {
    /// Returns the names of the waiting writes, sorted: with acknowledged writes that are missing,
    /// and without writes that were appended to the journal already. Names are 32 hex digits.
    fn names(&self) -> Result<Vec<String>, Error>;

    /// Returns the names of unreadable writes that an earlier repair kept.
    fn set_aside(&self) -> Result<Vec<String>, Error>;

    /// Returns whether a record outside the store shows that the write was acknowledged and not yet
    /// appended to the journal.
    fn is_acknowledged(&self, name: &str) -> bool;

    /// Returns the bytes of a waiting write from the first of its files that is whole, or from the
    /// first file if none is. `None` if the write no longer waits.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Breach`] if the seal of the write is missing or wrong, or if the
    /// write was acknowledged and is missing.
    fn read(&self, name: &str, is_whole: &dyn Fn(&[u8]) -> bool) -> Result<Option<Vec<u8>>, Error>;

    /// Stores a write as a whole or not at all. On return the write is durable: it survives kill -9
    /// and power loss.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Error>;

    /// Records that these writes are durable in the journal, and removes them. A missing one is no
    /// error; a file that reappears later is ignored.
    fn record_appended(&self, names: &[String]) -> Result<(), Error>;

    /// Removes unfinished files of killed writers, and writes already appended to the journal.
    /// Files that are being written stay.
    fn sweep(&self) -> Result<(), Error>;
}

/// A table of the index, by its number. The tables are listed in `format::key`. The numbers 254 and
/// 255 are reserved for the index itself: callers cannot write rows of these tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u8);

/// Large values keyed by ascending numbers. They are kept apart from the small rows, so that
/// compaction moves the files of this table instead of rewriting them.
pub const OBJECTS: TableId = TableId(0);

/// The table for rows of the index itself.
const RESERVED: TableId = TableId(255);
/// The number at which an index may store the rows of several tables together; see
/// [`rocks::ClusteredTables`].
const CLUSTERS: TableId = TableId(254);

/// Rejects rows of the tables that belong to the index itself.
///
/// # Errors
/// [`Error::Index`].
pub fn check_tables(batch: &RowBatch) -> Result<(), Error> {
    let own = |table: &TableId| matches!(*table, RESERVED | CLUSTERS);
    if let Some((TableId(number), ..)) = batch.rows.iter().find(|(table, ..)| own(table)) {
        let source = format!("table {number} belongs to the index itself").into();
        return Err(Error::Index { action: "write to", source });
    }
    Ok(())
}

/// Rows to write atomically. A later row with the same key wins. `None` deletes.
#[derive(Clone, Debug, Default)]
pub struct RowBatch {
    /// Table, key and value of each row.
    pub rows: Vec<(TableId, Vec<u8>, Option<Vec<u8>>)>,
}

/// A key and its value.
pub type TableRow = (Vec<u8>, Vec<u8>);

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanDirection {
    /// Smallest key first.
    Ascending,
    /// Greatest key first.
    Descending,
}

/// The rows that a scan asks for; see [`Snapshot::rows`].
#[derive(Clone, Copy, Debug)]
pub struct ScanRequest<'a> {
    /// The table.
    pub table: TableId,
    /// The start of the range.
    pub from: &'a [u8],
    /// The end of the range, exclusive. If it is empty, the range ends at the end of the table.
    pub to: &'a [u8],
    /// The order of the rows.
    pub direction: ScanDirection,
    /// The maximum number of rows.
    pub limit: usize,
}

/// The last rows of a table in a range of keys; see [`Snapshot::prefetch`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRows {
    /// The table.
    pub table: TableId,
    /// The start of the range.
    pub from: Vec<u8>,
    /// The end of the range, exclusive.
    pub to: Vec<u8>,
    /// The number of rows.
    pub limit: usize,
}

impl LastRows {
    /// Returns the range of one row.
    pub(crate) fn one(table: TableId, key: Vec<u8>) -> Self {
        let to = [&key, &[0][..]].concat();
        Self { table, from: key, to, limit: 1 }
    }
}

/// One consistent state of an index. Cheap to share. Its files or rows are kept until it is
/// dropped, unless it [expires](Snapshot::expires_soon).
pub trait Snapshot: Send + Sync {
    /// Returns the log position of this snapshot, which contains everything before this position
    /// and nothing after it.
    fn position(&self) -> LogPosition;

    /// Returns whether this snapshot will soon be removed although it is in use, so that the next
    /// request should open the newest one instead.
    fn expires_soon(&self) -> bool {
        false
    }

    /// Returns the value of one key.
    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    /// Returns the values of many keys, in the order of the keys.
    fn get_many(&self, table: TableId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        keys.iter().map(|key| self.get(table, key)).collect()
    }

    /// Reads the last rows of several ranges at once, which the caller will scan next. Only a
    /// snapshot that is read over a network calls `ranges`; for all others this does nothing.
    ///
    /// # Errors
    /// See [`Snapshot::get`].
    fn prefetch(&self, _ranges: &dyn Fn() -> Vec<LastRows>) -> Result<(), Error> {
        Ok(())
    }

    /// Returns at most `limit` rows with `from <= key < to` (an empty `to` means the end of the
    /// table), in ascending or descending key order. To continue after the last row `r`: ascending
    /// from `r` followed by a zero byte, descending to `r`.
    ///
    /// # Errors
    /// See [`Snapshot::get`]; a damaged file is an error, never a shorter result.
    fn rows(&self, request: ScanRequest<'_>) -> Result<Vec<TableRow>, Error>;

    /// Does the same as [`Snapshot::rows`], with the fields of the request as arguments.
    ///
    /// # Errors
    /// See [`Snapshot::rows`].
    fn scan(
        &self,
        table: TableId,
        from: &[u8],
        to: &[u8],
        direction: ScanDirection,
        limit: usize,
    ) -> Result<Vec<TableRow>, Error> {
        self.rows(ScanRequest { table, from, to, direction, limit })
    }

    /// Returns, for each of several tables, all rows whose keys begin with a number of four bytes
    /// in this range, in key order. `None` if one scan of each table is as fast: if these tables
    /// are not stored together, or if the range has more than `limit` rows of all tables together.
    ///
    /// # Errors
    /// See [`Snapshot::rows`].
    fn scan_clusters(
        &self,
        _tables: &[TableId],
        _clusters: Range<u32>,
        _limit: usize,
    ) -> Result<Option<Vec<Vec<TableRow>>>, Error> {
        Ok(None)
    }
}

/// An empty snapshot: used before the first generation, and as the base of rows without one.
pub(crate) struct EmptySnapshot;

impl Snapshot for EmptySnapshot {
    fn position(&self) -> LogPosition {
        0
    }

    fn get(&self, _: TableId, _: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(None)
    }

    fn rows(&self, _: ScanRequest<'_>) -> Result<Vec<TableRow>, Error> {
        Ok(Vec::new())
    }
}

/// Tables published in generations, each at a position of the log.
pub trait Index: Send + Sync {
    /// Opens the newest generation (empty and at position 0 before the first).
    ///
    /// # Errors
    /// [`Error::Index`] or [`Error::Io`] if it cannot be opened.
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, Error>;

    /// Returns the position of the newest generation, without opening it.
    fn position(&self) -> Result<LogPosition, Error>;

    /// Returns the writer of the next generation. `None` while another writer exists, in this or in
    /// another process. Never waits.
    fn try_writer(&self) -> Result<Option<Box<dyn IndexWriter>>, Error>;

    /// Returns a writer like [`Index::try_writer`] that starts empty: what it publishes replaces
    /// all rows. Waits for another writer, at most `timeout`.
    ///
    /// # Errors
    /// [`Error::Busy`], with the holder, if the lock could not be acquired; otherwise see
    /// [`Index::snapshot`].
    fn empty_writer(&self, timeout: Duration) -> Result<Box<dyn IndexWriter>, Error>;

    /// Removes older generations without readers, and returns the folders of the others. Removes
    /// nothing while another writer exists.
    fn tidy(&self) -> Result<Vec<std::path::PathBuf>, Error> {
        Ok(Vec::new())
    }

    /// Rewrites the files so that they take the least space and contain no overwritten rows.
    /// Returns `false`, and does nothing, if another writer exists or if there is nothing to do.
    fn compact(&self) -> Result<bool, Error> {
        Ok(false)
    }
}

/// Writes the next generation of an index. If it is dropped without [`IndexWriter::publish`],
/// nothing changes.
pub trait IndexWriter: Send + Sync {
    /// Returns the rows written so far, on top of the generation that the writer began with, if
    /// any.
    fn view(&self) -> &dyn Snapshot;

    /// Writes rows.
    fn write(&mut self, batch: RowBatch) -> Result<(), Error>;

    /// Publishes the written rows as the newest generation at this position, durably, and removes
    /// older generations without readers.
    ///
    /// # Errors
    /// [`Error::Index`] or [`Error::Io`]: then the newest generation is unchanged.
    fn publish(self: Box<Self>, position: LogPosition) -> Result<(), Error>;
}

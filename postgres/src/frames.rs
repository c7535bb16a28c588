//! The journal of a store in a database: its frames are rows of a table.

use crate::connection::Connection;
use crate::generation::{FoundGeneration, Generation};
use crate::pool::{ConnectionPool, Failure, Parameter, check_standby};
use crate::schema::{self, milliseconds, number, position, wait_for_commit};
use forge_store::error::BackendError;
use forge_store::store::database::{
    FrameRow, FrameRows, FrameTable, LockedFrames, LogHead, LogPosition, RecordHash,
};
use postgres::Row;
use postgres::types::Type;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The name of the lock of the log's writer, for messages.
const LOG_LOCK: &str = "lock of the log";
/// How long a writer that holds the lock may send nothing before the database closes its connection
/// and so releases the lock.
const LOCKED_IDLE: &str = "10min";

/// Reads the log, and the frames that begin in a range, in one statement, so that both are from the
/// same moment.
const READ: &str = "
select s.version, l.start, l.stop, l.hash, f.position, f.stop, f.hash, f.begins_segment, f.bytes
from forge.log l join forge.store s on s.id = l.store
left join lateral (
  select * from forge.frame f
  where f.store = l.store and f.position >= $2 and f.position < $3
  order by f.position
) f on true
where l.store = $1";

/// Limits the wait for the lock, and the time that its holder may send nothing, in this
/// transaction.
const LOCK_SETTINGS: &str = "
select set_config('lock_timeout', $1, true),
  set_config('idle_in_transaction_session_timeout', $2, true)";

/// Reads the newest generation of the index with its position, and the same as [`READ`] from that
/// position on.
const READ_AFTER_INDEX: &str = "
select s.version, l.start, l.stop, l.hash, f.position, f.stop, f.hash, f.begins_segment, f.bytes,
  i.generation, i.position
from forge.log l join forge.store s on s.id = l.store join forge.index i on i.store = l.store
left join lateral (
  select * from forge.frame f
  where f.store = l.store and f.position >= i.position and f.position < i.position + $2
  order by f.position
) f on true
where l.store = $1";

/// Makes a statement that inserts frames and moves the end of the log, if the end is the expected
/// one; otherwise it changes nothing. The settings apply to its transaction: the wait for a lock
/// has a limit, and the commit waits until it is durable, also on synchronous standbys.
macro_rules! append_frames {
    ($frames:literal) => {
        concat!(
            "
with settings as materialized (
  select set_config('lock_timeout', $2, true), ",
            wait_for_commit!(),
            "
), moved as (
  update forge.log l set stop = $5, hash = $6 from settings
  where l.store = $1 and l.stop = $3 and l.hash = $4 returning 1
)
insert into forge.frame (store, position, stop, hash, begins_segment, bytes)
select $1, ",
            $frames,
            "
returning position"
        )
    };
}

/// Appends one frame. A statement without arrays is planned in three quarters of the time.
const APPEND_ONE: &str = append_frames!("$7, $8, $9, $10, $11 from moved");

/// Appends several frames.
const APPEND: &str = append_frames!("f.* from moved, unnest($7, $8, $9, $10, $11) f");

/// Removes the segments before the last one that begins at or before a position. The removal is
/// durable, because the segments may contain what was purged.
const REMOVE: &str = concat!(
    "
with settings as materialized (
  select ",
    wait_for_commit!(),
    "
), kept as (
  select max(position) as start from forge.frame
  where store = $1 and begins_segment and position <= $2
), moved as (
  update forge.log l set start = kept.start from kept, settings
  where l.store = $1 and l.start < kept.start
)
delete from forge.frame f using kept where f.store = $1 and f.position < kept.start"
);

/// The frames of one store.
pub(crate) struct PostgresFrames {
    pub(crate) pool: Arc<ConnectionPool>,
    pub(crate) store: [u8; 16],
    /// The generation that the index opens next.
    pub(crate) found: Arc<FoundGeneration>,
}

impl PostgresFrames {
    fn store(&self) -> &[u8] {
        &self.store
    }

    /// Decodes the rows of [`READ`].
    fn rows(&self, rows: &[Row]) -> Result<FrameRows, BackendError> {
        let Some(first) = rows.first() else {
            return Err(self.pool.error("read", false, "it no longer contains the store"));
        };
        let version: i32 = first.get(0);
        if version != schema::VERSION {
            let source = format!(
                "its tables have version {version}, and this version of forge has {}: use the \
                version of forge that made them",
                schema::VERSION
            );
            return Err(self.pool.error("read", false, source));
        }
        let head = self.head(first, 1)?;
        let mut frames = Vec::with_capacity(rows.len());
        for row in rows {
            let Some(start) = row.get::<_, Option<i64>>(4) else { break };
            frames.push(FrameRow {
                position: position(start),
                end: position(row.get(5)),
                hash: self.hash(row.get(6))?,
                begins_segment: row.get(7),
                bytes: row.get(8),
            });
        }
        Ok(FrameRows { head, frames })
    }

    /// Decodes the start, the end and the hash of the log, whose columns begin at `at`.
    fn head(&self, row: &Row, at: usize) -> Result<LogHead, BackendError> {
        let (start, end) = (position(row.get(at)), position(row.get(at + 1)));
        Ok(LogHead { start, end, hash: self.hash(row.get(at + 2))? })
    }

    fn hash(&self, bytes: &[u8]) -> Result<RecordHash, BackendError> {
        let source = "a hash in it has the wrong length";
        bytes.try_into().map_err(|_| self.pool.error("read", false, source))
    }

    fn append_failed(&self, failure: Failure, since: Instant) -> BackendError {
        if failure.is_lock_timeout() {
            let waited = since.elapsed();
            return BackendError::Busy { lock: LOG_LOCK, holder: None, waited };
        }
        self.pool.failed("append to", failure)
    }
}

/// Returns the end of the range in which the frames to read begin. The range is never empty, so
/// that the frame at `from` is read with any limit.
fn read_end(from: LogPosition, limit: u64) -> i64 {
    number(from.saturating_add(limit.max(1)))
}

/// Calls `run` with the statement that appends frames after the end of the log, and with its
/// parameters. Returns `None` if there are no frames.
fn with_append<T>(
    store: &[u8],
    head: &LogHead,
    frames: &[FrameRow],
    timeout: Duration,
    run: impl FnOnce(&'static str, &[Parameter<'_>; 11]) -> T,
) -> Option<T> {
    let last = frames.last()?;
    let (timeout, end, new_end) = (milliseconds(timeout), number(head.end), number(last.end));
    let (hash, new_hash) = (&head.hash[..], &last.hash[..]);
    let positions: Vec<i64> = frames.iter().map(|frame| number(frame.position)).collect();
    let stops: Vec<i64> = frames.iter().map(|frame| number(frame.end)).collect();
    let hashes: Vec<&[u8]> = frames.iter().map(|frame| &frame.hash[..]).collect();
    let segments: Vec<bool> = frames.iter().map(|frame| frame.begins_segment).collect();
    let bytes: Vec<&[u8]> = frames.iter().map(|frame| &frame.bytes[..]).collect();
    let (statement, of_frames): (_, [Parameter<'_>; 5]) =
        match (&*positions, &*stops, &*hashes, &*segments, &*bytes) {
            ([position], [stop], [hash], [begins_segment], [bytes]) => (
                APPEND_ONE,
                [
                    (position, Type::INT8),
                    (stop, Type::INT8),
                    (hash, Type::BYTEA),
                    (begins_segment, Type::BOOL),
                    (bytes, Type::BYTEA),
                ],
            ),
            _ => (
                APPEND,
                [
                    (&positions, Type::INT8_ARRAY),
                    (&stops, Type::INT8_ARRAY),
                    (&hashes, Type::BYTEA_ARRAY),
                    (&segments, Type::BOOL_ARRAY),
                    (&bytes, Type::BYTEA_ARRAY),
                ],
            ),
        };
    let [position, stop, frame_hash, segment, bytes] = of_frames;
    let parameters: [Parameter<'_>; 11] = [
        (&store, Type::BYTEA),
        (&timeout, Type::TEXT),
        (&end, Type::INT8),
        (&hash, Type::BYTEA),
        (&new_end, Type::INT8),
        (&new_hash, Type::BYTEA),
        position,
        stop,
        frame_hash,
        segment,
        bytes,
    ];
    Some(run(statement, &parameters))
}

impl FrameTable for PostgresFrames {
    fn read(&self, from: LogPosition, limit: u64) -> Result<FrameRows, BackendError> {
        let rows = self.pool.read(
            "read",
            READ,
            &[
                (&self.store(), Type::BYTEA),
                (&number(from), Type::INT8),
                (&read_end(from, limit), Type::INT8),
            ],
        )?;
        self.rows(&rows)
    }

    fn read_after_index(&self, limit: u64) -> Result<(LogPosition, FrameRows), BackendError> {
        let parameters =
            [(&self.store() as _, Type::BYTEA), (&number(limit.max(1)) as _, Type::INT8)];
        let rows = self.pool.read("read", READ_AFTER_INDEX, &parameters)?;
        let frames = self.rows(&rows)?;
        let start = rows.first().map_or(0, |row| position(row.get(10)));
        if let Some(row) = rows.first() {
            self.found.set(Some(Generation { number: row.get(9), position: start }));
        }
        Ok((start, frames))
    }

    fn append(
        &self,
        head: &LogHead,
        frames: &[FrameRow],
        timeout: Duration,
    ) -> Result<bool, BackendError> {
        let since = Instant::now();
        let appended = with_append(self.store(), head, frames, timeout, |statement, parameters| {
            self.pool.write_durably("append to", statement, parameters)
        });
        let Some(appended) = appended else { return Ok(true) };
        match appended? {
            Ok(rows) => Ok(!rows.is_empty()),
            // Nothing was appended: the caller reads the log and builds its record again.
            Err(failure) if failure.is_serialization() => Ok(false),
            Err(failure) => Err(self.append_failed(failure, since)),
        }
    }

    fn settle(&self, timeout: Duration) -> Result<(), BackendError> {
        let since = Instant::now();
        let settled = self.pool.settle("append to", self.store(), timeout)?;
        settled.map_err(|failure| self.append_failed(failure, since))
    }

    fn lock(&self, timeout: Duration) -> Result<Box<dyn LockedFrames + '_>, BackendError> {
        let since = Instant::now();
        let mut client = self.pool.take("lock")?;
        let mut lock = || -> Result<Vec<Row>, Failure> {
            // The default of a role may be stricter. Then a transaction that had to wait for the
            // lock would fail.
            client.batch_execute("begin isolation level read committed")?;
            let limit = milliseconds(timeout);
            let settings = [(&limit as _, Type::TEXT), (&LOCKED_IDLE as _, Type::TEXT)];
            client.query_typed(LOCK_SETTINGS, &settings)?;
            let rows = client.query_typed(
                "select start, stop, hash from forge.log where store = $1 for update",
                &[(&self.store(), Type::BYTEA)],
            )?;
            Ok(rows)
        };
        match lock() {
            Ok(rows) => {
                // After an error the connection is closed, which rolls the transaction back.
                let Some(row) = rows.first() else {
                    return Err(self.pool.error("lock", false, "it no longer contains the store"));
                };
                let head = self.head(row, 0)?;
                Ok(Box::new(LockedLog { frames: self, client: Some(client), head }))
            }
            Err(failure) => Err(match self.append_failed(failure, since) {
                // Nothing was written yet.
                BackendError::Database { place, source, .. } => {
                    BackendError::Database { action: "lock", place, unsure: false, source }
                }
                other => other,
            }),
        }
    }

    fn remove_before(&self, before: LogPosition) -> Result<(), BackendError> {
        let parameters = [(&self.store() as _, Type::BYTEA), (&number(before) as _, Type::INT8)];
        // If the outcome is not known, the next call removes what is left.
        self.pool
            .write_durably("remove records from", REMOVE, &parameters)?
            .map(drop)
            .map_err(|failure| self.pool.failed("remove records from", failure))
    }
}

/// The log in a transaction that holds the lock of its row.
struct LockedLog<'a> {
    frames: &'a PostgresFrames,
    /// `None` once the transaction has ended.
    client: Option<Connection>,
    head: LogHead,
}

impl LockedFrames for LockedLog<'_> {
    fn read(&mut self, from: LogPosition, limit: u64) -> Result<FrameRows, BackendError> {
        let client = self.client.as_mut().expect("the transaction is open");
        let rows = client.query_typed(
            READ,
            &[
                (&self.frames.store(), Type::BYTEA),
                (&number(from), Type::INT8),
                (&read_end(from, limit), Type::INT8),
            ],
        );
        let rows = rows.map_err(|error| self.frames.pool.error("read", false, error))?;
        self.frames.rows(&rows)
    }

    fn append(mut self: Box<Self>, frames: &[FrameRow]) -> Result<(), BackendError> {
        let mut client = self.client.take().expect("the transaction is open");
        let pool = &self.frames.pool;
        let (head, since) = (self.head, Instant::now());
        // The lock is held already, so the statement does not wait for it.
        let timeout = Duration::from_secs(1);
        let store = self.frames.store();
        let mut append = || -> Result<bool, Failure> {
            let rows = with_append(store, &head, frames, timeout, |statement, parameters| {
                client.query_typed(statement, parameters)
            });
            let is_appended = rows.transpose()?.is_none_or(|rows| !rows.is_empty());
            client.batch_execute("commit")?;
            check_standby(&client)?;
            Ok(is_appended)
        };
        match append() {
            Ok(true) => {
                pool.give_back(client);
                Ok(())
            }
            Ok(false) => Err(pool.error("append to", false, "another writer ignored the lock")),
            Err(failure) => Err(self.frames.append_failed(failure, since)),
        }
    }
}

impl Drop for LockedLog<'_> {
    fn drop(&mut self) {
        // A connection on which the rollback fails is closed, which rolls back too.
        if let Some(mut client) = self.client.take()
            && client.batch_execute("rollback").is_ok()
        {
            self.frames.pool.give_back(client);
        }
    }
}

//! The index of a store in a database, as versioned rows.
//!
//! A row says with which generation it appeared and with which it was replaced or deleted. So a
//! snapshot is the number of a generation, and no transaction is open while it is read. The writer
//! works on the next generation, which no reader sees before it is published. The writer has a
//! lease by the clock of the database. It also has an epoch: each of its statements compares the
//! epoch, and each write changes it. So a writer changes nothing any more if it was stopped and
//! another one has begun, or if its last rows are not on the standby that has taken over.

use crate::generation::{FoundGeneration, Generation};
use crate::pool::{ConnectionPool, Failure, Parameter, READ_AGAIN_FOR};
use crate::row_view::{IndexRows, RowView};
use crate::schema::{number, position, wait_for_commit};
use forge_store::error::BackendError;
use forge_store::store::database::{
    Index, IndexWriter, LogPosition, RowBatch, Snapshot, check_tables,
};
use postgres::types::Type;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The name of the lock of the index's writer, for messages.
const INDEX_LOCK: &str = "lock of the index";
/// How long a writer may send nothing before another process may become the writer.
const LEASE: &str = "30 s";
/// How long a generation is kept after it was replaced.
const KEPT: &str = "15 min";
/// How long a process waits before it tries again to become the writer.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// A statement gets no further row after this many rows or bytes.
const MAX_STATEMENT_ROWS: usize = 10_000;
const MAX_STATEMENT_BYTES: usize = 16 << 20;

/// Becomes the writer if there is none, or if the lease of the last one has ended. The epoch grows
/// by a random number. So two writers have different epochs, even if a standby has taken over that
/// does not know of the first one.
const BEGIN: &str = "
update forge.index
set epoch = epoch + 1 + floor(random() * 1000000000)::bigint,
  leased_until = clock_timestamp() + $2::text::interval
where store = $1 and leased_until < clock_timestamp()
returning epoch, generation, position, dirty";

/// Undoes what a writer that published nothing has written.
const CLEAN: &str = "
with mine as (
  update forge.index
  set dirty = false, epoch = epoch + 1, leased_until = clock_timestamp() + $3::text::interval
  where store = $1 and epoch = $2 returning generation
), removed as (
  delete from forge.row r using mine where r.store = $1 and r.since > mine.generation
), opened as (
  update forge.row r set until = 9223372036854775807 from mine
  where r.store = $1 and r.until < 9223372036854775807 and r.until > mine.generation
    and r.since <= mine.generation
)
select 1 from mine";

/// Writes rows of the next generation, `$4`. `$5` and `$6` are the keys of all rows, `$7` and `$8`
/// the keys of the deleted rows, `$9` to `$11` the other rows. The earlier versions of all these
/// rows end with `$4`, except versions from before the generation `$12`, with which the writer's
/// view begins.
const WRITE: &str = "
with mine as (
  update forge.index
  set dirty = true, epoch = epoch + 1, leased_until = clock_timestamp() + $3::text::interval
  where store = $1 and epoch = $2 returning 1
), closed as (
  update forge.row r set until = $4 from mine, unnest($5, $6) k (tbl, key)
  where r.store = $1 and r.tbl = k.tbl and r.key = k.key
    and r.since >= $12 and r.since < $4 and r.until = 9223372036854775807
), removed as (
  delete from forge.row r using mine, unnest($7, $8) k (tbl, key)
  where r.store = $1 and r.tbl = k.tbl and r.key = k.key and r.since = $4
), written as (
  insert into forge.row (store, tbl, key, since, value)
  select $1, p.tbl, p.key, $4, p.value from mine, unnest($9, $10, $11) p (tbl, key, value)
  on conflict (store, tbl, key, since) do update set value = excluded.value
)
select 1 from mine";

/// Makes the next generation, `$3`, the newest one.
const PUBLISH: &str = "
with mine as (
  update forge.index set generation = $3, position = $4, dirty = false, leased_until = '-infinity'
  where store = $1 and epoch = $2 and generation = $3 - 1 returning 1
)
insert into forge.generation (store, number, epoch, published)
select $1, $3, $2, clock_timestamp() from mine
returning 1";

/// Does the same for a writer that began empty, and removes all older rows and generations. The
/// removal is durable, because they may contain what was purged.
const REPLACE: &str = concat!(
    "
with settings as materialized (
  select ",
    wait_for_commit!(),
    "
), mine as (
  update forge.index
  set generation = $3, position = $4, oldest = $3, dirty = false, leased_until = '-infinity'
  from settings where store = $1 and epoch = $2 and generation = $3 - 1 returning 1
), removed as (
  delete from forge.row r using mine where r.store = $1 and r.since < $3
), forgotten as (
  delete from forge.generation g using mine where g.store = $1 and g.number < $3
)
insert into forge.generation (store, number, epoch, published)
select $1, $3, $2, clock_timestamp() from mine
returning 1"
);

/// Finds the generation of this writer if it was published.
const IS_PUBLISHED: &str =
    "select 1 from forge.generation where store = $1 and number = $3 and epoch = $2";

const RELEASE: &str =
    "update forge.index set leased_until = '-infinity' where store = $1 and epoch = $2";

/// Removes the rows that no kept generation shows, unless there is a writer.
const TIDY: &str = "
with kept as (
  select max(number) as number from forge.generation
  where store = $1 and published < clock_timestamp() - $2::text::interval
), moved as (
  update forge.index i set oldest = kept.number from kept
  where i.store = $1 and i.oldest < kept.number and i.leased_until < clock_timestamp()
  returning kept.number
), forgotten as (
  delete from forge.generation g using moved where g.store = $1 and g.number < moved.number
)
delete from forge.row r using moved
where r.store = $1 and r.until < 9223372036854775807 and r.until <= moved.number";

/// The index of one store.
#[derive(Debug)]
pub(crate) struct PostgresIndex {
    shared: Arc<IndexRows>,
}

impl PostgresIndex {
    pub(crate) fn new(
        pool: Arc<ConnectionPool>,
        store: [u8; 16],
        found: Arc<FoundGeneration>,
    ) -> Self {
        Self { shared: Arc::new(IndexRows { pool, store, found }) }
    }

    /// Becomes the writer if there is none.
    fn begin(&self, timeout: Duration) -> Result<Option<PostgresIndexWriter>, BackendError> {
        let shared = &self.shared;
        let parameters = [(&shared.store() as _, Type::BYTEA), (&LEASE as _, Type::TEXT)];
        let begun = shared.pool.write("write to", BEGIN, &parameters)?;
        // If the answer is lost, the lease ends by itself.
        let rows = begun.map_err(|failure| shared.pool.failed("write to", failure))?;
        let Some(row) = rows.first() else { return Ok(None) };
        let newest = Generation { number: row.get(1), position: position(row.get(2)) };
        let mut writer = PostgresIndexWriter {
            view: RowView::of_writer(Arc::clone(shared), newest),
            epoch: row.get(0),
            timeout,
            is_published: false,
        };
        if row.get(3) {
            writer.change("clean", CLEAN, &[(&LEASE, Type::TEXT)])?;
        }
        Ok(Some(writer))
    }
}

impl Index for PostgresIndex {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, BackendError> {
        let found = match self.shared.found.take() {
            Some(found) => found,
            None => self.shared.newest()?,
        };
        Ok(Arc::new(RowView::of_reader(Arc::clone(&self.shared), found)))
    }

    fn position(&self) -> Result<LogPosition, BackendError> {
        let found = self.shared.newest()?;
        self.shared.found.set(Some(found));
        Ok(found.position)
    }

    fn try_writer(&self) -> Result<Option<Box<dyn IndexWriter>>, BackendError> {
        Ok(self.begin(READ_AGAIN_FOR)?.map(|writer| Box::new(writer) as Box<dyn IndexWriter>))
    }

    fn empty_writer(&self, timeout: Duration) -> Result<Box<dyn IndexWriter>, BackendError> {
        let since = Instant::now();
        loop {
            if let Some(mut writer) = self.begin(timeout)? {
                writer.view.clear();
                return Ok(Box::new(writer));
            }
            let waited = since.elapsed();
            if waited >= timeout {
                return Err(BackendError::Busy { lock: INDEX_LOCK, holder: None, waited });
            }
            thread::park_timeout(LOOK_AGAIN_AFTER);
        }
    }

    fn tidy(&self) -> Result<Vec<std::path::PathBuf>, BackendError> {
        let shared = &self.shared;
        let parameters = [(&shared.store() as _, Type::BYTEA), (&KEPT as _, Type::TEXT)];
        let tidied = shared.pool.write("remove old rows from", TIDY, &parameters)?;
        tidied.map_err(|failure| shared.pool.failed("remove old rows from", failure))?;
        Ok(Vec::new())
    }
}

/// Writes the next generation.
struct PostgresIndexWriter {
    view: RowView,
    epoch: i64,
    /// How long to try to find out whether the generation was published.
    timeout: Duration,
    is_published: bool,
}

impl PostgresIndexWriter {
    fn pool(&self) -> &ConnectionPool {
        &self.view.rows.pool
    }

    /// Runs a statement that adds 1 to the epoch.
    fn change(
        &mut self,
        action: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<(), BackendError> {
        let changed = self.run(action, statement, parameters)?;
        changed.map_err(|failure| self.pool().failed(action, failure))?;
        self.epoch += 1;
        Ok(())
    }

    /// Runs a statement of the writer, whose first two parameters are the store and the epoch.
    fn run(
        &self,
        action: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Result<(), Failure>, BackendError> {
        let mut all: Vec<Parameter<'_>> = Vec::with_capacity(2 + parameters.len());
        let store = self.view.rows.store();
        all.extend([(&store as _, Type::BYTEA), (&self.epoch as _, Type::INT8)]);
        all.extend(parameters.iter().cloned());
        let pool = self.pool();
        let sent = match statement {
            REPLACE => pool.write_durably(action, statement, &all),
            _ => pool.write(action, statement, &all),
        };
        match sent? {
            Ok(rows) if rows.is_empty() => {
                let source = "meanwhile another process became the writer of the index";
                Err(self.pool().error(action, false, source))
            }
            sent => Ok(sent.map(drop)),
        }
    }

    /// Writes rows with one statement. A row without a value is deleted.
    fn write_rows(
        &mut self,
        rows: &BTreeMap<(i16, &[u8]), Option<&[u8]>>,
    ) -> Result<(), BackendError> {
        let (tables, keys): (Vec<i16>, Vec<&[u8]>) = rows.keys().copied().unzip();
        let deleted = rows.iter().filter(|(_, value)| value.is_none());
        let (deleted_tables, deleted_keys): (Vec<i16>, Vec<&[u8]>) =
            deleted.map(|(key, _)| *key).unzip();
        let (mut put_tables, mut put_keys, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for ((table, key), value) in rows {
            if let Some(value) = value {
                put_tables.push(*table);
                put_keys.push(*key);
                values.push(*value);
            }
        }
        let (generation, first) = (self.view.generation, self.view.first);
        self.change(
            "write to",
            WRITE,
            &[
                (&LEASE, Type::TEXT),
                (&generation, Type::INT8),
                (&tables, Type::INT2_ARRAY),
                (&keys, Type::BYTEA_ARRAY),
                (&deleted_tables, Type::INT2_ARRAY),
                (&deleted_keys, Type::BYTEA_ARRAY),
                (&put_tables, Type::INT2_ARRAY),
                (&put_keys, Type::BYTEA_ARRAY),
                (&values, Type::BYTEA_ARRAY),
                (&first, Type::INT8),
            ],
        )
    }

    /// Returns whether the generation of this writer was published.
    fn was_published(&self) -> Result<bool, BackendError> {
        let rows = self.pool().read(
            "read",
            IS_PUBLISHED,
            &[
                (&self.view.rows.store(), Type::BYTEA),
                (&self.epoch, Type::INT8),
                (&self.view.generation, Type::INT8),
            ],
        )?;
        Ok(!rows.is_empty())
    }
}

impl IndexWriter for PostgresIndexWriter {
    fn view(&self) -> &dyn Snapshot {
        &self.view
    }

    fn write(&mut self, batch: RowBatch) -> Result<(), BackendError> {
        check_tables(&batch)?;
        let (mut rows, mut bytes) = (BTreeMap::new(), 0);
        for (table, key, value) in &batch.rows {
            if rows.len() >= MAX_STATEMENT_ROWS || bytes >= MAX_STATEMENT_BYTES {
                self.write_rows(&rows)?;
                rows.clear();
                bytes = 0;
            }
            bytes += key.len() + value.as_ref().map_or(0, Vec::len);
            rows.insert((i16::from(table.0), key.as_slice()), value.as_deref());
        }
        if rows.is_empty() { Ok(()) } else { self.write_rows(&rows) }
    }

    fn publish(mut self: Box<Self>, position: LogPosition) -> Result<(), BackendError> {
        let statement = if self.view.first == 0 { PUBLISH } else { REPLACE };
        let parameters: &[Parameter<'_>] =
            &[(&self.view.generation, Type::INT8), (&number(position), Type::INT8)];
        let action = "publish in";
        let published = self.run(action, statement, parameters)?.or_else(|failure| {
            let store = self.view.rows.store();
            self.pool().confirm(action, store, self.timeout, failure, || self.was_published())
        });
        self.view.rows.found.set(None);
        published?;
        self.is_published = true;
        Ok(())
    }
}

impl Drop for PostgresIndexWriter {
    fn drop(&mut self) {
        if !self.is_published {
            let parameters =
                [(&self.view.rows.store() as _, Type::BYTEA), (&self.epoch as _, Type::INT8)];
            // If this fails, the lease ends by itself.
            let _ = self.pool().write("release", RELEASE, &parameters);
        }
    }
}

//! An index as versioned rows.
//!
//! A row says with which generation it appeared and with which it was replaced or deleted, so a
//! snapshot is a number: no transaction is open while it is read. A writer works on the next
//! generation, which no reader sees before it is published. It has a lease by the clock of the
//! database, and an epoch that every statement of it compares: a writer that was stopped for longer
//! than its lease changes nothing any more.

use crate::known_rows::{KeyRange, KnownRows, end_of_common_prefix};
use crate::pool::{ConnectionPool, Parameter};
use forge_store::error::BackendError;
use forge_store::store::database::{
    Index, IndexWriter, LastRows, LogPosition, RowBatch, ScanDirection, Snapshot, TableId,
    TableRow, check_tables,
};
use postgres::Row;
use postgres::types::Type;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The target of traces of the calls that read the index.
const CALLS: &str = "forge_store::calls";
/// The name in messages of the lock for index writers.
const INDEX_LOCK: &str = "lock of the index";
/// How long a writer may send nothing before another one may take its place.
const LEASE: &str = "30 s";
/// How long after its replacement a generation is kept.
const KEPT: &str = "15 min";
/// How old a snapshot is when the next request should open a new one: half of [`KEPT`], so that a
/// request has the other half.
const STALE_AFTER: Duration = Duration::from_secs(450);
/// How long the generation that a look at the position has found may be opened.
const FOUND_FOR: Duration = Duration::from_secs(60);
/// How often a writer that must wait looks again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// The number of the table of objects.
const OBJECTS: u8 = 0;
/// The most rows and bytes of one statement.
const MAX_STATEMENT_ROWS: usize = 10_000;
const MAX_STATEMENT_BYTES: usize = 16 << 20;

const NEWEST: &str = "select generation, position from forge.index where store = $1";

/// The value of a row in a generation, and the oldest generation that is complete.
const GET: &str = "
select i.oldest, r.value from forge.index i
left join forge.row r on r.store = i.store and r.tbl = $2 and r.key = $3
  and r.since between $4 and $5 and r.until > $5
where i.store = $1";

/// The same of many keys, by their number.
const GET_MANY: &str = "
select i.oldest, k.number, r.value from forge.index i
cross join unnest($3) with ordinality k (key, number)
left join forge.row r on r.store = i.store and r.tbl = $2 and r.key = k.key
  and r.since between $4 and $5 and r.until > $5
where i.store = $1";

/// The last rows of several ranges, by the number of the range.
const LAST_ROWS: &str = "
select i.oldest, w.number, r.key, r.value from forge.index i
cross join unnest($2, $3, $6, $7) with ordinality w (tbl, first, stop, most, number)
left join lateral (
  select key, value from forge.row
  where store = $1 and tbl = w.tbl and key >= w.first and key < w.stop
    and since between $4 and $5 and until > $5
  order by key desc limit w.most
) r on true
where i.store = $1";

/// The first row from the end of a scan, `$7`, to the end of its prefix, `$8`.
const NEXT_ROW: &str = "left join lateral (
  select key, value from forge.row where store = $1 and tbl = $2 and key >= $7 and key < $8
    and since between $4 and $5 and until > $5
  order by key limit 1
) n on true";
/// The same if the next row is not asked for.
const NO_NEXT_ROW: &str = "cross join (select null::bytea as key, null::bytea as value) n";

/// Becomes the writer if there is none, or if the lease of the last one has ended.
const BEGIN: &str = "
update forge.index set epoch = epoch + 1, leased_until = clock_timestamp() + $2::text::interval
where store = $1 and leased_until < clock_timestamp()
returning epoch, generation, position, dirty";

/// Undoes what a writer that published nothing has written.
const CLEAN: &str = "
with mine as (
  update forge.index set dirty = false, leased_until = clock_timestamp() + $3::text::interval
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
/// the keys of deleted ones, `$9` to `$11` the others. What was there is closed unless it appeared
/// before the generation `$12`, with which the view begins.
const WRITE: &str = "
with mine as (
  update forge.index set dirty = true, leased_until = clock_timestamp() + $3::text::interval
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

/// Does the same for a writer that began empty, and removes everything else, durably: it may have
/// been purged.
const REPLACE: &str = "
with settings as materialized (
  select set_config('synchronous_commit',
    case when current_setting('synchronous_commit') in ('off', 'local') then 'on'
    else current_setting('synchronous_commit') end, true)
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
returning 1";

/// Returns whether this writer has published a generation.
const IS_PUBLISHED: &str =
    "select 1 from forge.generation where store = $1 and number = $3 and epoch = $2";

const RELEASE: &str =
    "update forge.index set leased_until = '-infinity' where store = $1 and epoch = $2";

/// Removes the rows that only generations before the oldest kept one show, unless there is a
/// writer.
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

/// The rows of one store.
#[derive(Debug)]
struct IndexRows {
    pool: Arc<ConnectionPool>,
    store: [u8; 16],
    found: Arc<FoundGeneration>,
}

/// A generation and its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generation {
    pub(crate) number: i64,
    pub(crate) position: LogPosition,
}

/// The generation that the last look at the position has found: it is opened next, without another
/// look.
#[derive(Debug, Default)]
pub(crate) struct FoundGeneration(Mutex<Option<(Generation, Instant)>>);

impl FoundGeneration {
    /// Sets the generation, or clears it.
    pub(crate) fn set(&self, found: Option<Generation>) {
        let found = found.map(|found| (found, Instant::now()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    fn take(&self) -> Option<Generation> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        found.filter(|(_, at)| at.elapsed() < FOUND_FOR).map(|(found, _)| found)
    }
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
    fn begin(&self) -> Result<Option<PostgresIndexWriter>, BackendError> {
        let shared = &self.shared;
        let parameters = [(&shared.store() as _, Type::BYTEA), (&LEASE as _, Type::TEXT)];
        let begun = shared.pool.write("write to", BEGIN, &parameters)?;
        // A lease whose grant was not answered ends by itself.
        let rows = begun.map_err(|failure| shared.pool.failed("write to", failure))?;
        let Some(row) = rows.first() else { return Ok(None) };
        let newest = Generation { number: row.get(1), position: position_in(row, 2) };
        let writer = PostgresIndexWriter {
            view: RowView {
                rows: Arc::clone(shared),
                first: 0,
                generation: newest.number + 1,
                position: newest.position,
                opened: None,
                known: Mutex::default(),
            },
            epoch: row.get(0),
            is_published: false,
        };
        if row.get(3) {
            writer.run("clean", CLEAN, &[(&LEASE, Type::TEXT)])?;
        }
        Ok(Some(writer))
    }
}

fn position_in(row: &Row, column: usize) -> LogPosition {
    LogPosition::try_from(row.get::<_, i64>(column)).unwrap_or_default()
}

fn number(position: LogPosition) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

impl IndexRows {
    fn store(&self) -> &[u8] {
        &self.store
    }

    /// Returns the newest generation.
    fn newest(&self) -> Result<Generation, BackendError> {
        let rows = self.pool.read("read", NEWEST, &[(&self.store(), Type::BYTEA)])?;
        let row = rows.first();
        let row = row.ok_or_else(|| self.pool.error("read", false, "it has no such store"))?;
        Ok(Generation { number: row.get(0), position: position_in(row, 1) })
    }
}

impl Index for PostgresIndex {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, BackendError> {
        let found = match self.shared.found.take() {
            Some(found) => found,
            None => self.shared.newest()?,
        };
        Ok(Arc::new(RowView {
            rows: Arc::clone(&self.shared),
            first: 0,
            generation: found.number,
            position: found.position,
            opened: Some(Instant::now()),
            known: Mutex::default(),
        }))
    }

    fn position(&self) -> Result<LogPosition, BackendError> {
        let found = self.shared.newest()?;
        self.shared.found.set(Some(found));
        Ok(found.position)
    }

    fn try_writer(&self) -> Result<Option<Box<dyn IndexWriter>>, BackendError> {
        Ok(self.begin()?.map(|writer| Box::new(writer) as Box<dyn IndexWriter>))
    }

    fn empty_writer(&self, timeout: Duration) -> Result<Box<dyn IndexWriter>, BackendError> {
        let since = Instant::now();
        loop {
            if let Some(mut writer) = self.begin()? {
                writer.view.first = writer.view.generation;
                writer.view.position = 0;
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

/// The rows of one generation.
struct RowView {
    rows: Arc<IndexRows>,
    /// The generation with which the view begins: older rows are not in it.
    first: i64,
    generation: i64,
    position: LogPosition,
    /// When it was opened; `None` for the view of a writer.
    opened: Option<Instant>,
    /// What was read before; empty for the view of a writer, whose rows change.
    known: Mutex<KnownRows>,
}

impl RowView {
    /// Checks that the generation was complete when it was read. The oldest complete one is in the
    /// first column.
    fn check(&self, rows: &[Row]) -> Result<(), BackendError> {
        let oldest: Option<i64> = rows.first().map(|row| row.get(0));
        let source = match oldest {
            Some(oldest) if oldest <= self.generation => return Ok(()),
            Some(_) => "what was being read was replaced more than 15 minutes ago: read it again",
            None => "it has no such store any more",
        };
        Err(self.rows.pool.error("read", false, source))
    }

    fn read(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, BackendError> {
        let rows = self.rows.pool.read("read", statement, parameters)?;
        self.check(&rows)?;
        Ok(rows)
    }
}

impl RowView {
    fn known(&self) -> MutexGuard<'_, KnownRows> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps rows for the next reads, and a range that has no others.
    fn keep<'a>(
        &self,
        table: TableId,
        rows: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
        range: Option<KeyRange<'_>>,
    ) {
        // The rows of a writer change.
        if self.opened.is_some() {
            self.known().add(table, rows, range);
        }
    }
}

impl Snapshot for RowView {
    fn position(&self) -> LogPosition {
        self.position
    }

    fn expires_soon(&self) -> bool {
        self.opened.is_some_and(|opened| opened.elapsed() > STALE_AFTER)
    }

    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, BackendError> {
        tracing::trace!(target: CALLS, call = "get", table = table.0);
        if let Some(value) = self.known().get(table, key) {
            return Ok(value);
        }
        let rows = self.read(
            GET,
            &[
                (&self.rows.store(), Type::BYTEA),
                (&i16::from(table.0), Type::INT2),
                (&key, Type::BYTEA),
                (&self.first, Type::INT8),
                (&self.generation, Type::INT8),
            ],
        )?;
        let value: Option<Vec<u8>> = rows.first().and_then(|row| row.get(1));
        self.keep(table, value.iter().map(|value| (key, value.as_slice())), None);
        Ok(value)
    }

    fn get_many(
        &self,
        table: TableId,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Vec<u8>>>, BackendError> {
        tracing::trace!(target: CALLS, call = "get_many", table = table.0);
        let (mut values, mut places, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        {
            let known = self.known();
            for (place, key) in keys.iter().enumerate() {
                let value = known.get(table, key);
                if value.is_none() {
                    places.push(place);
                    asked.push(key.as_slice());
                }
                values.push(value.flatten());
            }
        }
        let keys = asked;
        if keys.is_empty() {
            return Ok(values);
        }
        let rows = self.read(
            GET_MANY,
            &[
                (&self.rows.store(), Type::BYTEA),
                (&i16::from(table.0), Type::INT2),
                (&keys, Type::BYTEA_ARRAY),
                (&self.first, Type::INT8),
                (&self.generation, Type::INT8),
            ],
        )?;
        for row in rows {
            let number = usize::try_from(row.get::<_, i64>(1) - 1).unwrap_or(usize::MAX);
            if let (Some(place), Some(key)) = (places.get(number), keys.get(number)) {
                let value: Option<Vec<u8>> = row.get(2);
                self.keep(table, value.iter().map(|value| (*key, value.as_slice())), None);
                values[*place] = value;
            }
        }
        Ok(values)
    }

    fn prefetch(&self, ranges: &[LastRows]) -> Result<(), BackendError> {
        tracing::trace!(target: CALLS, call = "prefetch");
        let tables: Vec<i16> = ranges.iter().map(|range| i16::from(range.table.0)).collect();
        let starts: Vec<&[u8]> = ranges.iter().map(|range| range.from.as_slice()).collect();
        let ends: Vec<&[u8]> = ranges.iter().map(|range| range.to.as_slice()).collect();
        let limits = ranges.iter().map(|range| i64::try_from(range.limit).unwrap_or(i64::MAX));
        let limits: Vec<i64> = limits.collect();
        let rows = self.read(
            LAST_ROWS,
            &[
                (&self.rows.store(), Type::BYTEA),
                (&tables, Type::INT2_ARRAY),
                (&starts, Type::BYTEA_ARRAY),
                (&self.first, Type::INT8),
                (&self.generation, Type::INT8),
                (&ends, Type::BYTEA_ARRAY),
                (&limits, Type::INT8_ARRAY),
            ],
        )?;
        for (number, range) in (1_i64..).zip(ranges) {
            let own = rows.iter().filter(|row| row.get::<_, i64>(1) == number);
            let own = own.filter_map(|row| Some((row.get::<_, Option<Vec<u8>>>(2)?, row.get(3))));
            let found: Vec<TableRow> = own.collect();
            let first = found.iter().map(|(key, _)| key.as_slice()).min();
            let from = match first {
                Some(first) if found.len() >= range.limit => first,
                _ => &range.from,
            };
            let rows = found.iter().map(|(key, value)| (key.as_slice(), value.as_slice()));
            self.keep(range.table, rows, Some(KeyRange { from, to: &range.to }));
        }
        Ok(())
    }

    fn scan(
        &self,
        table: TableId,
        from: &[u8],
        to: &[u8],
        direction: ScanDirection,
        limit: usize,
    ) -> Result<Vec<TableRow>, BackendError> {
        tracing::trace!(target: CALLS, call = "scan", table = table.0);
        let asked = KeyRange { from, to };
        if let Some(rows) = self.known().scan(table, asked, direction, limit) {
            return Ok(rows);
        }
        let order = if direction == ScanDirection::Ascending { "asc" } else { "desc" };
        let has_end = !to.is_empty();
        // The next row after the range is read too, so that a scan that ends a little later, or
        // that goes on there, needs no look. Objects are large.
        let bound = end_of_common_prefix(asked).filter(|_| has_end && table.0 != OBJECTS);
        let end = if has_end { "and key < $7" } else { "" };
        let next = if bound.is_some() { NEXT_ROW } else { NO_NEXT_ROW };
        let statement = format!(
            "select i.oldest, n.key, n.value, r.key, r.value from forge.index i {next} left join lateral (
               select key, value from forge.row
               where store = $1 and tbl = $2 and key >= $3 {end}
                 and since between $4 and $5 and until > $5
               order by key {order} limit $6
             ) r on true where i.store = $1"
        );
        let most = i64::try_from(limit).ok();
        let (store, number) = (self.rows.store(), i16::from(table.0));
        let mut parameters: Vec<Parameter<'_>> = vec![
            (&store, Type::BYTEA),
            (&number, Type::INT2),
            (&from, Type::BYTEA),
            (&self.first, Type::INT8),
            (&self.generation, Type::INT8),
            (&most, Type::INT8),
        ];
        if has_end {
            parameters.push((&to, Type::BYTEA));
        }
        if let Some(bound) = &bound {
            parameters.push((bound, Type::BYTEA));
        }
        let rows = self.read(&statement, &parameters)?;
        let pair = |row: &Row, at| Some((row.get::<_, Option<Vec<u8>>>(at)?, row.get(at + 1)));
        let mut found: Vec<TableRow> = rows.iter().map_while(|row| pair(row, 3)).collect();
        // The order of a subquery is not promised, and is almost always kept.
        found.sort();
        let is_whole = found.len() < limit;
        let next: Option<TableRow> = rows.first().and_then(|row| pair(row, 1));
        let end = match &next {
            Some((key, _)) => [key, &[0][..]].concat(),
            None => bound.unwrap_or_else(|| to.to_vec()),
        };
        let after_last = found.last().map(|(key, _)| [key, &[0][..]].concat());
        let range = match (direction, found.first(), &after_last) {
            _ if is_whole => Some(KeyRange { from, to: &end }),
            (ScanDirection::Ascending, _, Some(after)) => Some(KeyRange { from, to: after }),
            (ScanDirection::Descending, Some((key, _)), _) => {
                Some(KeyRange { from: key, to: &end })
            }
            _ => None,
        };
        // After a limit, the range ends before the next row.
        let is_next_known = range.is_some_and(|range| range.to == end);
        let rows = found.iter().chain(next.iter().filter(|_| is_next_known));
        self.keep(table, rows.map(|(key, value)| (key.as_slice(), value.as_slice())), range);
        if direction == ScanDirection::Descending {
            found.reverse();
        }
        Ok(found)
    }
}

/// Writes the next generation.
struct PostgresIndexWriter {
    view: RowView,
    epoch: i64,
    is_published: bool,
}

impl PostgresIndexWriter {
    fn pool(&self) -> &ConnectionPool {
        &self.view.rows.pool
    }

    /// Runs a statement of the writer, whose first two parameters are the store and the epoch.
    fn run(
        &self,
        action: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<(), BackendError> {
        let mut all: Vec<Parameter<'_>> = Vec::with_capacity(2 + parameters.len());
        let store = self.view.rows.store();
        all.extend([(&store as _, Type::BYTEA), (&self.epoch as _, Type::INT8)]);
        all.extend(parameters.iter().cloned());
        let rows = self.pool().write(action, statement, &all)?;
        let rows = rows.map_err(|failure| self.pool().failed(action, failure))?;
        if rows.is_empty() {
            let source = "another process has become the writer of the index meanwhile";
            return Err(self.pool().error(action, false, source));
        }
        Ok(())
    }

    /// Writes rows with one statement. They have different keys.
    fn write_rows(&self, rows: &BTreeMap<(i16, &[u8]), Option<&[u8]>>) -> Result<(), BackendError> {
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
        self.run(
            "write to",
            WRITE,
            &[
                (&LEASE, Type::TEXT),
                (&self.view.generation, Type::INT8),
                (&tables, Type::INT2_ARRAY),
                (&keys, Type::BYTEA_ARRAY),
                (&deleted_tables, Type::INT2_ARRAY),
                (&deleted_keys, Type::BYTEA_ARRAY),
                (&put_tables, Type::INT2_ARRAY),
                (&put_keys, Type::BYTEA_ARRAY),
                (&values, Type::BYTEA_ARRAY),
                (&self.view.first, Type::INT8),
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
        let published = self.run("publish in", statement, parameters);
        // Whether it was published can be looked up if the connection broke.
        if let Err(error) = published
            && !self.was_published()?
        {
            return Err(error);
        }
        self.is_published = true;
        self.view.rows.found.set(None);
        Ok(())
    }
}

impl Drop for PostgresIndexWriter {
    fn drop(&mut self) {
        if !self.is_published {
            let parameters =
                [(&self.view.rows.store() as _, Type::BYTEA), (&self.epoch as _, Type::INT8)];
            // Otherwise the lease ends by itself.
            let _ = self.pool().write("release", RELEASE, &parameters);
        }
    }
}

//! The rows of one generation of an index, as a reader or the writer sees them.

use crate::generation::{FoundGeneration, Generation};
use crate::known_rows::{KeyRange, KnownRows, end_of_common_prefix};
use crate::pool::{ConnectionPool, Parameter};
use crate::schema::position;
use forge_store::error::BackendError;
use forge_store::store::database::{
    CALLS, LastRows, LogPosition, ScanDirection, ScanRequest, Snapshot, TableId, TableRow,
};
use postgres::Row;
use postgres::types::Type;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The age from which the next request should open a new snapshot: half of the time for which a
/// replaced generation is kept, so that a request has the other half.
const STALE_AFTER: Duration = Duration::from_secs(450);
/// The number of the table of objects.
const OBJECTS: u8 = 0;

const NEWEST: &str = "select generation, position from forge.index where store = $1";

/// The value of a row in a generation, and the oldest generation that is complete.
const GET: &str = "
select i.oldest, r.value from forge.index i
left join forge.row r on r.store = i.store and r.tbl = $2 and r.key = $3
  and r.since between $4 and $5 and r.until > $5
where i.store = $1";

/// Like [`GET`] for many keys. Each row has the number of its key, from 1 on.
const GET_MANY: &str = "
select i.oldest, k.number, r.value from forge.index i
cross join unnest($3) with ordinality k (key, number)
left join forge.row r on r.store = i.store and r.tbl = $2 and r.key = k.key
  and r.since between $4 and $5 and r.until > $5
where i.store = $1";

/// The last rows of several ranges. Each row has the number of its range, from 1 on.
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

/// The first row between the end of a scan, `$7`, and the end of its prefix, `$8`.
const NEXT_ROW: &str = "left join lateral (
  select key, value from forge.row where store = $1 and tbl = $2 and key >= $7 and key < $8
    and since between $4 and $5 and until > $5
  order by key limit 1
) n on true";
/// The part of the statement in place of [`NEXT_ROW`] if that row is not needed.
const NO_NEXT_ROW: &str = "cross join (select null::bytea as key, null::bytea as value) n";

/// The rows of one store.
#[derive(Debug)]
pub(crate) struct IndexRows {
    pub(crate) pool: Arc<ConnectionPool>,
    pub(crate) store: [u8; 16],
    pub(crate) found: Arc<FoundGeneration>,
}

impl IndexRows {
    pub(crate) fn store(&self) -> &[u8] {
        &self.store
    }

    /// Returns the newest generation.
    pub(crate) fn newest(&self) -> Result<Generation, BackendError> {
        let rows = self.pool.read("read", NEWEST, &[(&self.store(), Type::BYTEA)])?;
        let row = rows.first();
        let row = row.ok_or_else(|| self.pool.error("read", false, "it has no such store"))?;
        Ok(Generation { number: row.get(0), position: position(row.get(1)) })
    }
}

/// The rows of one generation.
pub(crate) struct RowView {
    pub(crate) rows: Arc<IndexRows>,
    /// The generation with which the view begins: older rows are not in it.
    pub(crate) first: i64,
    pub(crate) generation: i64,
    position: LogPosition,
    /// When it was opened; `None` for the view of a writer.
    opened: Option<Instant>,
    /// What was read before; empty for the view of a writer, whose rows change.
    known: Mutex<KnownRows>,
}

impl RowView {
    /// Creates the view of a reader.
    pub(crate) fn of_reader(rows: Arc<IndexRows>, found: Generation) -> Self {
        let Generation { number, position } = found;
        let opened = Some(Instant::now());
        Self { rows, first: 0, generation: number, position, opened, known: Mutex::default() }
    }

    /// Creates the view of the writer of the generation after the newest one.
    pub(crate) fn of_writer(rows: Arc<IndexRows>, newest: Generation) -> Self {
        let Generation { number, position } = newest;
        let generation = number + 1;
        Self { rows, first: 0, generation, position, opened: None, known: Mutex::default() }
    }

    /// Makes the view of a writer empty.
    pub(crate) fn clear(&mut self) {
        self.first = self.generation;
        self.position = 0;
    }

    /// Checks that the generation was complete when it was read. The oldest complete one is in the
    /// first column.
    fn check(&self, rows: &[Row]) -> Result<(), BackendError> {
        let oldest: Option<i64> = rows.first().map(|row| row.get(0));
        let source = match oldest {
            Some(oldest) if oldest <= self.generation => return Ok(()),
            Some(_) => "what was being read was replaced more than 15 minutes ago: read it again",
            None => "it no longer contains the store",
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

    fn known(&self) -> MutexGuard<'_, KnownRows> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps rows for the next reads, and a range that has no others.
    fn keep<'a>(
        &self,
        table: TableId,
        rows: impl Iterator<Item = (&'a [u8], &'a [u8])>,
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
        let (mut values, mut places, mut missing) = (Vec::new(), Vec::new(), Vec::new());
        {
            let known = self.known();
            for (place, key) in keys.iter().enumerate() {
                let value = known.get(table, key);
                if value.is_none() {
                    places.push(place);
                    missing.push(key.as_slice());
                }
                values.push(value.flatten());
            }
        }
        let keys = missing;
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

    fn prefetch(&self, ranges: &dyn Fn() -> Vec<LastRows>) -> Result<(), BackendError> {
        let ranges = ranges();
        if ranges.is_empty() {
            return Ok(());
        }
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
        for (number, range) in (1_i64..).zip(&ranges) {
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

    fn rows(&self, request: ScanRequest<'_>) -> Result<Vec<TableRow>, BackendError> {
        let ScanRequest { table, from, to, direction, limit } = request;
        tracing::trace!(target: CALLS, call = "scan", table = table.0);
        let requested = KeyRange { from, to };
        if let Some(rows) = self.known().scan(table, requested, direction, limit) {
            return Ok(rows);
        }
        let order = if direction == ScanDirection::Ascending { "asc" } else { "desc" };
        let has_end = !to.is_empty();
        // The next row after the range is read too, so that a scan that ends a little later, or
        // that continues there, needs no query. Not for objects, because they are large.
        let bound = end_of_common_prefix(requested).filter(|_| has_end && table.0 != OBJECTS);
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
        // SQL does not guarantee the order of a subquery, but it is almost always kept.
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
        // If the limit ended the scan, the known range ends before the next row.
        let is_next_known = range.is_some_and(|range| range.to == end);
        let rows = found.iter().chain(next.iter().filter(|_| is_next_known));
        self.keep(table, rows.map(|(key, value)| (key.as_slice(), value.as_slice())), range);
        if direction == ScanDirection::Descending {
            found.reverse();
        }
        Ok(found)
    }
}

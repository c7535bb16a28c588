//! Reads the index in an open RocksDB database.

use super::folder::GenerationLease;
use super::layout::{self, ClusterPrefix, ClusteredTables, TableKeyRange};
use super::options::{self, OBJECTS, ROWS};
use super::{POSITION_KEY, index_error, manifest};
use crate::backend::{
    self, CALLS, CLUSTERS, Error, LogPosition, ScanDirection, ScanRequest, Snapshot, TableId,
    TableRow,
};
use rocksdb::{Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBRawIterator, ReadOptions};
use std::ops::Range;
use std::path::Path;

/// Bounds of stored keys: the first key, and the end (exclusive), if any.
type StoredKeyBounds<'a> = (&'a [u8], Option<&'a [u8]>);

/// An open database: a generation, or a working copy of one.
pub(super) struct RocksDatabase {
    db: DB,
    position: LogPosition,
    clustered: ClusteredTables,
    /// The lease of a generation for readers, whose reads are logged. It is released after `db` is
    /// closed.
    lease: Option<GenerationLease>,
}

impl RocksDatabase {
    /// Opens a generation. Writes nothing.
    pub(super) fn open_read_only(
        path: &Path,
        position: LogPosition,
        cache: &Cache,
    ) -> Result<Self, Error> {
        manifest::check(path)?;
        let options = options::database_to_read();
        let families = options::families_to_read(cache);
        let db = DB::open_cf_descriptors_read_only(&options, path, families, false)
            .map_err(index_error("open"))?;
        Self::checked(db, Some(position), ClusteredTables::default())
    }

    /// Opens a working copy of the generation at `position`. If `position` is `None`, creates an
    /// empty database with these clustered tables.
    pub(super) fn open_work(
        path: &Path,
        position: Option<LogPosition>,
        families: [ColumnFamilyDescriptor; 2],
        clustered: ClusteredTables,
    ) -> Result<Self, Error> {
        manifest::check(path)?;
        let mut options = options::database_to_write();
        options.create_if_missing(position.is_none());
        options.create_missing_column_families(position.is_none());
        let db = DB::open_cf_descriptors(&options, path, families).map_err(index_error("open"))?;
        Self::checked(db, position, clustered)
    }

    /// Checks that the position row has the position `expected`, which is in the folder's name.
    /// Takes the clustered tables from the position row, if there is one.
    fn checked(
        db: DB,
        expected: Option<LogPosition>,
        clustered: ClusteredTables,
    ) -> Result<Self, Error> {
        let position = expected.unwrap_or(0);
        let mut database = Self { db, position, clustered, lease: None };
        let row = database.position_row()?;
        if let Some((_, clustered)) = row {
            database.clustered = clustered;
        }
        let found = row.map(|(position, _)| position);
        if found != expected {
            let text = |p: Option<LogPosition>| p.map_or("none".to_owned(), |p| p.to_string());
            let (found, expected) = (text(found), text(expected));
            let what = format!("its rows are at position {found}, but its name says {expected}");
            return Err(Error::DamagedIndex { what });
        }
        Ok(database)
    }

    /// Keeps the lease of the generation while the database is open.
    pub(super) fn leased(self, lease: GenerationLease) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// Reads the position row: the position, and the clustered tables, if the row contains them.
    fn position_row(&self) -> Result<Option<(LogPosition, ClusteredTables)>, Error> {
        let row = self.db.get_pinned_cf(self.family(ROWS)?, POSITION_KEY);
        let Some(row) = row.map_err(index_error("read"))? else { return Ok(None) };
        let (numbers, rest) = row.as_chunks();
        match (numbers, rest) {
            ([position], []) => {
                Ok(Some((u64::from_be_bytes(*position), ClusteredTables::default())))
            }
            ([position, clustered], []) => {
                let clustered = ClusteredTables(u64::from_be_bytes(*clustered));
                Ok(Some((u64::from_be_bytes(*position), clustered)))
            }
            _ => Err(Error::DamagedIndex {
                what: "its position row is neither 8 nor 16 bytes long".to_owned(),
            }),
        }
    }

    /// Returns the value of the position row for this position.
    pub(super) fn position_bytes(&self, position: LogPosition) -> Vec<u8> {
        let mut bytes = position.to_be_bytes().to_vec();
        if self.clustered != ClusteredTables::default() {
            bytes.extend(self.clustered.0.to_be_bytes());
        }
        bytes
    }

    pub(super) const fn clustered(&self) -> ClusteredTables {
        self.clustered
    }

    pub(super) const fn rocks(&self) -> &DB {
        &self.db
    }

    pub(super) fn family(&self, name: &str) -> Result<&ColumnFamily, Error> {
        self.db.cf_handle(name).ok_or_else(|| Error::DamagedIndex {
            what: format!("it has no column family `{name}`"),
        })
    }
}

/// Returns the column family of a table.
pub(super) const fn family_of(table: TableId) -> &'static str {
    if table.0 == backend::OBJECTS.0 { OBJECTS } else { ROWS }
}

/// Returns the read options of a table. Blocks of objects are not cached: a reader keeps the
/// objects that it opens, and rarely reads another object of the same block. The memory of an
/// uncached block is reused for the next block, while the cache would touch new pages.
fn reading(table: TableId) -> ReadOptions {
    let mut reading = ReadOptions::default();
    reading.fill_cache(table != backend::OBJECTS);
    reading
}

impl Snapshot for RocksDatabase {
    fn position(&self) -> LogPosition {
        self.position
    }

    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        if self.lease.is_some() {
            tracing::trace!(target: CALLS, call = "get", table = table.0);
        }
        let family = self.family(family_of(table))?;
        let stored = self.clustered.stored_key(table, key);
        self.db.get_cf_opt(family, stored, &reading(table)).map_err(index_error("read"))
    }

    fn get_many(&self, table: TableId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        if self.lease.is_some() {
            tracing::trace!(target: CALLS, call = "get_many", table = table.0, keys = keys.len());
        }
        let family = self.family(family_of(table))?;
        let stored: Vec<_> = keys.iter().map(|key| self.clustered.stored_key(table, key)).collect();
        let places = stored.iter().map(AsRef::<[u8]>::as_ref);
        self.db
            .batched_multi_get_cf_opt(family, places, false, &reading(table))
            .into_iter()
            .map(|found| found.map(|value| value.map(|v| v.to_vec())).map_err(index_error("read")))
            .collect()
    }

    fn rows(&self, request: ScanRequest<'_>) -> Result<Vec<TableRow>, Error> {
        let ScanRequest { table, from, to, direction, limit } = request;
        if self.lease.is_some() {
            tracing::trace!(target: CALLS, call = "scan", table = table.0);
        }
        if limit == 0 || (!to.is_empty() && from >= to) {
            return Ok(Vec::new());
        }
        let range = TableKeyRange { table, from, to };
        if !self.clustered.holds(table) {
            let (first, end) = range.stored();
            return self.rows_in(table, (&first, end.as_deref()), direction, limit);
        }
        match range.only_cluster() {
            Some(cluster) => {
                let (first, end) = range.stored_in(cluster);
                self.rows_in(table, (&first, Some(&end)), direction, limit)
            }
            None => self.rows_of_clusters(range, direction, limit),
        }
    }

    fn scan_clusters(
        &self,
        tables: &[TableId],
        clusters: Range<u32>,
        limit: usize,
    ) -> Result<Option<Vec<Vec<TableRow>>>, Error> {
        if self.lease.is_some() {
            tracing::trace!(target: CALLS, call = "scan_clusters", tables = tables.len());
        }
        if !tables.iter().all(|table| self.clustered.holds(*table)) {
            return Ok(None);
        }
        let mut found = vec![Vec::new(); tables.len()];
        if clusters.is_empty() {
            return Ok(Some(found));
        }
        let begin = |cluster: u32| layout::around(cluster.to_be_bytes()).0;
        let (first, end) = (begin(clusters.start), begin(clusters.end));
        let mut passed = 0;
        self.each(CLUSTERS, (&first, Some(&end)), ScanDirection::Ascending, |stored, value| {
            let own = layout::table_of(stored);
            let place = tables.iter().position(|table| own == Some(*table));
            if let Some((table, rows)) =
                place.and_then(|place| Some((*tables.get(place)?, found.get_mut(place)?)))
            {
                rows.push((layout::key_in(table, stored), value.to_vec()));
            }
            passed += 1;
            passed <= limit
        })?;
        Ok((passed <= limit).then_some(found))
    }
}

impl RocksDatabase {
    /// Returns rows of one table, by the bounds of their stored keys.
    fn rows_in(
        &self,
        table: TableId,
        ends: StoredKeyBounds<'_>,
        direction: ScanDirection,
        limit: usize,
    ) -> Result<Vec<TableRow>, Error> {
        let mut rows = Vec::new();
        self.each(table, ends, direction, |stored, value| {
            rows.push((layout::key_in(table, stored), value.to_vec()));
            rows.len() < limit
        })?;
        Ok(rows)
    }

    /// Returns rows of a clustered table, cluster by cluster.
    fn rows_of_clusters(
        &self,
        range: TableKeyRange<'_>,
        direction: ScanDirection,
        limit: usize,
    ) -> Result<Vec<TableRow>, Error> {
        let mut rows = Vec::new();
        // The range that is still to be scanned.
        let (mut first, mut end) = range.clusters();
        let mut scan = self.row_scan(CLUSTERS, (&first, Some(&end)), direction)?;
        scan.seek((&first, &end));
        while rows.len() < limit
            && let Some(cluster) = scan.cluster()?
        {
            let (begin, after) = layout::around(cluster);
            match direction {
                ScanDirection::Ascending => first = after,
                ScanDirection::Descending => end = begin,
            }
            let (from, to) = range.stored_in(cluster);
            scan.move_to((&from, &to))?;
            scan.each(|stored, value| {
                let is_within = stored >= &*from && stored < &*to;
                if is_within {
                    rows.push((layout::key_in(range.table, stored), value.to_vec()));
                }
                is_within && rows.len() < limit
            })?;
            if rows.len() < limit {
                scan.move_to((&first, &end))?;
            }
        }
        Ok(rows)
    }

    /// Calls `row` for each stored row within the bounds, until `row` returns `false`.
    fn each(
        &self,
        table: TableId,
        ends: StoredKeyBounds<'_>,
        direction: ScanDirection,
        row: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Error> {
        let mut scan = self.row_scan(table, ends, direction)?;
        match direction {
            ScanDirection::Ascending => scan.iterator.seek(ends.0),
            ScanDirection::Descending => scan.iterator.seek_to_last(),
        }
        scan.each(row)
    }

    /// Begins a scan of stored rows within these bounds.
    fn row_scan(
        &self,
        table: TableId,
        (first, end): StoredKeyBounds<'_>,
        direction: ScanDirection,
    ) -> Result<StoredRowScan<'_>, Error> {
        let family = self.family(family_of(table))?;
        let mut bounds = reading(table);
        bounds.set_iterate_lower_bound(first);
        if let Some(end) = end {
            bounds.set_iterate_upper_bound(end);
        }
        let iterator = self.db.raw_iterator_cf_opt(family, bounds);
        Ok(StoredRowScan { iterator, direction })
    }
}

/// A scan of stored rows in one direction.
struct StoredRowScan<'a> {
    iterator: DBRawIterator<'a>,
    direction: ScanDirection,
}

impl StoredRowScan<'_> {
    /// Moves to the row with `first <= key < end` that is the first in the direction of the scan.
    /// If there is none, moves to a row outside or to the end of the scan.
    fn seek(&mut self, (first, end): (&[u8], &[u8])) {
        match self.direction {
            ScanDirection::Ascending => self.iterator.seek(first),
            ScanDirection::Descending => {
                self.iterator.seek_for_prev(end);
                if self.iterator.key() == Some(end) {
                    self.iterator.prev();
                }
            }
        }
    }

    /// Does the same as [`StoredRowScan::seek`], from a row that comes before these bounds in the
    /// direction of the scan. Most clusters are small, so the bounds are often a few rows away, and
    /// stepping over these rows takes less time than a search.
    fn move_to(&mut self, (first, end): (&[u8], &[u8])) -> Result<(), Error> {
        const STEPS: usize = 16;
        let direction = self.direction;
        let mut steps = 0;
        let mut is_there = false;
        self.each(|stored, _| {
            is_there = match direction {
                ScanDirection::Ascending => stored >= first,
                ScanDirection::Descending => stored < end,
            };
            steps += 1;
            !is_there && steps <= STEPS
        })?;
        if !is_there && steps > STEPS {
            self.seek((first, end));
        }
        Ok(())
    }

    /// Returns the cluster of the current row; `None` if there is no row.
    fn cluster(&self) -> Result<Option<ClusterPrefix>, Error> {
        let found = self.iterator.key().and_then(layout::cluster_of);
        self.iterator.status().map_err(index_error("scan"))?;
        Ok(found)
    }

    /// Calls `row` for each row from the current one on. If `row` returns `false`, that row stays
    /// the current one.
    fn each(&mut self, mut row: impl FnMut(&[u8], &[u8]) -> bool) -> Result<(), Error> {
        while let Some((key, value)) = self.iterator.item() {
            if !row(key, value) {
                break;
            }
            match self.direction {
                ScanDirection::Ascending => self.iterator.next(),
                ScanDirection::Descending => self.iterator.prev(),
            }
        }
        // A damaged file only ends the iterator. Without this check, rows would be missing and
        // there would be no error.
        self.iterator.status().map_err(index_error("scan"))
    }
}

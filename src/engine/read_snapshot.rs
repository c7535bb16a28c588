//! A snapshot for readers: a generation and the rows of the tail after it.

use crate::backend::{
    self, LastRows, LogPosition, ScanDirection, ScanRequest, Snapshot, TableId, TableRow,
};
use crate::engine::index::{self, PositionedRecord};
use crate::engine::object;
use crate::engine::object_cache::ObjectCache;
use crate::engine::parallel;
use crate::engine::refs::{StoreRefs, put_changed_sessions};
use crate::engine::row_overlay::{OverlaySnapshot, RowOverlay};
use crate::engine::scanned_object::ObjectSource;
use crate::error::{Error, Result};
use crate::format::key::{self, KeyBuilder, of};
use crate::format::{Record, RecordRow};
use crate::model::{ObjectId, SessionNumber};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A consistent snapshot of a store.
#[derive(Clone)]
pub(crate) struct ReadSnapshot {
    pub(super) base: Arc<dyn Snapshot>,
    pub(super) rows: Arc<RowOverlay>,
    /// All rows of the tail, if `rows` is without the operation rows.
    pub(super) operation_rows: Option<Arc<LazyOperationRows>>,
    pub(super) position: LogPosition,
    pub(super) object_cache: Arc<ObjectCache>,
    /// Whether it contains a record that is not in the journal yet: its numbers may change.
    pub(crate) planned: bool,
    pub(crate) refs: Arc<StoreRefs>,
}

/// All rows of a tail, made when operation rows are first read. Operation rows are a third of the
/// work, because each operation is first looked up in the index.
pub(super) struct LazyOperationRows {
    records: Arc<Vec<Arc<PositionedRecord>>>,
    rows: OnceLock<RowOverlay>,
}

impl LazyOperationRows {
    pub(super) const fn of(records: Arc<Vec<Arc<PositionedRecord>>>) -> Self {
        Self { records, rows: OnceLock::new() }
    }

    /// Returns the rows if they were made.
    pub(super) fn made(&self) -> Option<&RowOverlay> {
        self.rows.get()
    }

    fn rows(&self, base: &dyn Snapshot) -> Result<&RowOverlay> {
        if let Some(rows) = self.made() {
            return Ok(rows);
        }
        let mut rows = object::rows_of_tail();
        index::apply_all(base, &mut rows, &mut StoreRefs::default(), &self.records)?;
        Ok(self.rows.get_or_init(|| rows))
    }
}

impl ObjectSource for ReadSnapshot {
    fn object_cache(&self) -> Option<&ObjectCache> {
        Some(&self.object_cache)
    }
}

impl ReadSnapshot {
    /// Returns the same snapshot with one more record that is not in the journal yet.
    pub(crate) fn with_record(mut self, record: Record) -> Result<Self> {
        // Any position after the end will do: only this snapshot uses it.
        let placed = PositionedRecord { position: self.position, hash: Default::default(), record };
        if let Some(whole) = self.operation_rows.take() {
            self.rows = Arc::new(whole.rows(&*self.base)?.clone());
        }
        let rows = Arc::make_mut(&mut self.rows);
        index::apply(&*self.base, rows, Arc::make_mut(&mut self.refs), &placed)?;
        self.position += 1;
        // In the journal, other objects may get the numbers of the record's objects.
        self.object_cache = Arc::default();
        self.planned = true;
        Ok(self)
    }

    /// Returns the hash of the last record that begins before a position; `None` if there is none.
    /// The position and the hash identify a history: another history has another hash there.
    pub(crate) fn hash_before(&self, position: LogPosition) -> Result<Option<[u8; 32]>> {
        let to = KeyBuilder::new().number(position).build();
        let rows = self.scan(key::RECORDS, &[], &to, ScanDirection::Descending, 1)?;
        let row = rows.first().map(|(_, row)| RecordRow::decode(row)).transpose();
        Ok(row.map_err(Error::corrupt("a record's row"))?.map(|row| row.hash))
    }

    /// Checks that a record can be appended, so that errors are found before it is in the journal.
    /// Returns the ids of large values and long texts that it refers to and that are missing.
    pub(crate) fn check(&self, record: Record) -> Result<BTreeSet<ObjectId>> {
        let placed = PositionedRecord { position: self.position, hash: Default::default(), record };
        index::try_apply(self, &mut RowOverlay::default(), &mut (*self.refs).clone(), &placed)
    }

    /// Checks all sessions for missing rows. Otherwise each is checked when it is first read.
    pub(crate) fn check_density(&self) -> Result<()> {
        let shares = parallel::shares(self.refs.sessions.len() as SessionNumber);
        let checked = parallel::map(&shares, 2, |(first, end)| {
            // The generation checks all sessions of a scanned range, even if the scan returns no
            // row.
            let (from, to) = (of(*first).build(), of(*end).build());
            self.base.scan(key::SEQUENCES, &from, &to, ScanDirection::Ascending, 0).map(drop)
        });
        checked.into_iter().collect::<Result<(), _>>().map_err(Error::from)
    }

    /// Adds the rows of the sessions that the tail changes. Readers take these from the refs.
    pub(crate) fn with_session_rows(mut self) -> Result<Self> {
        put_changed_sessions(&*self.base, Arc::make_mut(&mut self.rows), &self.refs)?;
        Ok(self)
    }

    /// Returns the generation below the tail.
    pub(crate) fn generation(&self) -> &dyn Snapshot {
        &*self.base
    }

    /// Returns the same snapshot without the object cache, and without operation rows that are not
    /// in `rows`.
    pub(crate) fn merged(&self) -> OverlaySnapshot<'_> {
        self.over(&self.rows)
    }

    /// Returns whether the operation rows were made.
    #[cfg(test)]
    pub(crate) fn has_operations(&self) -> bool {
        self.operation_rows.as_ref().is_none_or(|whole| whole.made().is_some())
    }

    fn over<'a>(&'a self, rows: &'a RowOverlay) -> OverlaySnapshot<'a> {
        OverlaySnapshot::new(&*self.base, rows, self.position)
    }

    /// Returns the snapshot with all rows, including the rows of operations.
    fn with_operations(&self) -> Result<OverlaySnapshot<'_>, backend::Error> {
        let rows =
            self.operation_rows.as_ref().map_or(Ok(&*self.rows), |whole| whole.rows(&*self.base));
        rows.map(|rows| self.over(rows)).map_err(|error| match error {
            Error::Backend(error) => error,
            other => backend::Error::Index { action: "read", source: Box::new(other) },
        })
    }
}

impl Snapshot for ReadSnapshot {
    fn position(&self) -> LogPosition {
        self.position
    }

    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, backend::Error> {
        if index::is_operation_row(table, key) {
            return self.with_operations()?.get(table, key);
        }
        self.merged().get(table, key)
    }

    fn get_many(
        &self,
        table: TableId,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Vec<u8>>>, backend::Error> {
        if keys.iter().any(|key| index::is_operation_row(table, key)) {
            return self.with_operations()?.get_many(table, keys);
        }
        self.merged().get_many(table, keys)
    }

    fn prefetch(&self, ranges: &dyn Fn() -> Vec<LastRows>) -> Result<(), backend::Error> {
        self.base.prefetch(ranges)
    }

    fn rows(&self, request: ScanRequest<'_>) -> Result<Vec<TableRow>, backend::Error> {
        if index::is_operation_table(request.table) || request.table == key::COUNTERS {
            return self.with_operations()?.rows(request);
        }
        self.merged().rows(request)
    }

    fn scan_clusters(
        &self,
        tables: &[TableId],
        clusters: Range<u32>,
        limit: usize,
    ) -> Result<Option<Vec<Vec<TableRow>>>, backend::Error> {
        if tables.iter().any(|table| index::is_operation_table(*table)) {
            return Ok(None);
        }
        self.merged().scan_clusters(tables, clusters, limit)
    }
}

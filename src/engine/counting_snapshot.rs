//! Counting the rows that code reads, for tests.

use super::row_overlay::OverlaySnapshot;
use crate::backend::{Error, LogPosition, ScanRequest, Snapshot, TableId, TableRow};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A snapshot that counts the rows read from it. A lookup by key counts as one row, even if it
/// finds none.
pub(crate) struct CountingSnapshot<'a> {
    view: OverlaySnapshot<'a>,
    /// The table whose rows are counted; all tables if `None`.
    table: Option<TableId>,
    rows: AtomicUsize,
}

impl<'a> CountingSnapshot<'a> {
    pub(crate) fn new(view: OverlaySnapshot<'a>, table: Option<TableId>) -> Self {
        Self { view, table, rows: AtomicUsize::new(0) }
    }

    /// Returns the number of rows read so far.
    pub(crate) fn rows(&self) -> usize {
        self.rows.load(Ordering::Relaxed)
    }

    fn count(&self, table: TableId, rows: usize) {
        if self.table.is_none_or(|counted| counted == table) {
            self.rows.fetch_add(rows, Ordering::Relaxed);
        }
    }
}

impl Snapshot for CountingSnapshot<'_> {
    fn position(&self) -> LogPosition {
        self.view.position()
    }

    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.count(table, 1);
        self.view.get(table, key)
    }

    fn rows(&self, request: ScanRequest<'_>) -> Result<Vec<TableRow>, Error> {
        let rows = self.view.rows(request)?;
        self.count(request.table, rows.len());
        Ok(rows)
    }
}

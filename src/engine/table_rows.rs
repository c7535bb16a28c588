//! Reads tables page by page, so that a table of any size needs little memory.

use crate::backend::{ScanDirection, Snapshot, TableId, TableRow};
use crate::error::Result;
use crate::format::key;
use std::vec;

/// Number of rows per page.
const PAGE_ROWS: usize = 1000;
/// Number of rows per page of objects, which may be large.
const PAGE_OBJECTS: usize = 64;

/// The rows of a table, or of a range of its keys, in key order.
pub(crate) struct TableRows<'a> {
    view: &'a dyn Snapshot,
    table: TableId,
    /// The first key of the next page.
    from: Vec<u8>,
    /// The end of the range; empty for the end of the table.
    to: Vec<u8>,
    page: vec::IntoIter<TableRow>,
    is_last_page: bool,
}

impl<'a> TableRows<'a> {
    /// Reads all rows of a table.
    pub(crate) fn all(view: &'a dyn Snapshot, table: TableId) -> Self {
        Self::range(view, table, Vec::new(), Vec::new())
    }

    /// Reads the rows with `from <= key < to`.
    pub(crate) fn range(
        view: &'a dyn Snapshot,
        table: TableId,
        from: Vec<u8>,
        to: Vec<u8>,
    ) -> Self {
        Self { view, table, from, to, page: Vec::new().into_iter(), is_last_page: false }
    }
}

impl Iterator for TableRows<'_> {
    type Item = Result<TableRow>;

    fn next(&mut self) -> Option<Result<TableRow>> {
        if self.page.as_slice().is_empty() && !self.is_last_page {
            let limit = if self.table == key::OBJECTS { PAGE_OBJECTS } else { PAGE_ROWS };
            let direction = ScanDirection::Ascending;
            match self.view.scan(self.table, &self.from, &self.to, direction, limit) {
                Ok(rows) => {
                    self.is_last_page = rows.len() < limit;
                    if let Some((last, _)) = rows.last() {
                        self.from.clone_from(last);
                        self.from.push(0);
                    }
                    self.page = rows.into_iter();
                }
                Err(error) => {
                    self.is_last_page = true;
                    return Some(Err(error.into()));
                }
            }
        }
        self.page.next().map(Ok)
    }
}

/// Calls a function for each row of a table, in key order.
pub(crate) fn for_each_row(
    view: &dyn Snapshot,
    table: TableId,
    mut row: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    for found in TableRows::all(view, table) {
        let (key, value) = found?;
        row(&key, &value)?;
    }
    Ok(())
}

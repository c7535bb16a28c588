//! Reads the rows of a table: all at once, or page by page, which needs little memory however large
//! the table is.

use crate::backend::{ScanDirection, Snapshot, TableId, TableRow};
use crate::error::Result;
use crate::format::key::{self, KeyBuilder};
use std::vec;

/// Number of rows per page.
const PAGE_ROWS: usize = 1000;
/// Number of rows per page of objects, which may be large.
const PAGE_OBJECTS: usize = 64;

/// Iterates over the rows of a table, or of a range of its keys, in key order. Reads page by page.
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

/// Returns all rows of a table whose keys begin with this prefix, in key order.
pub(crate) fn rows(
    view: &dyn Snapshot,
    table: TableId,
    prefix: KeyBuilder,
) -> Result<Vec<TableRow>> {
    rows_between(view, table, &prefix.clone().build(), &prefix.end())
}

/// Returns all rows with `from <= key < to`, in key order. An empty `to` is the end of the table.
pub(crate) fn rows_between(
    view: &dyn Snapshot,
    table: TableId,
    from: &[u8],
    to: &[u8],
) -> Result<Vec<TableRow>> {
    Ok(view.scan(table, from, to, ScanDirection::Ascending, usize::MAX)?)
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

/// Counts the rows of a table.
pub(crate) fn count_rows(view: &dyn Snapshot, table: TableId) -> Result<u64> {
    let mut count = 0;
    for_each_row(view, table, |_, _| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{self, LogPosition, ScanRequest};

    /// A table whose keys are the numbers up to a bound.
    struct NumberTable(u16);

    impl Snapshot for NumberTable {
        fn position(&self) -> LogPosition {
            0
        }

        fn get(&self, _: TableId, _: &[u8]) -> Result<Option<Vec<u8>>, backend::Error> {
            Ok(None)
        }

        fn rows(&self, request: ScanRequest<'_>) -> Result<Vec<TableRow>, backend::Error> {
            let ScanRequest { from, to, limit, .. } = request;
            let keys = (0..self.0).map(|number| number.to_be_bytes().to_vec());
            let inside = |key: &Vec<u8>| &**key >= from && (to.is_empty() || &**key < to);
            Ok(keys.filter(inside).take(limit).map(|key| (key, Vec::new())).collect())
        }
    }

    #[test]
    fn every_row_of_a_range_is_read_once_at_any_number_of_pages() {
        for (table, page) in [(key::FACTS, PAGE_ROWS), (key::OBJECTS, PAGE_OBJECTS)] {
            let page = u16::try_from(page).unwrap();
            for count in [0, 1, page - 1, page, page + 1, 2 * page, 2 * page + 1] {
                let view = NumberTable(count);
                let numbers = |rows: TableRows<'_>| {
                    rows.map(|row| u16::from_be_bytes(row.unwrap().0.try_into().unwrap()))
                        .collect::<Vec<_>>()
                };
                assert_eq!(numbers(TableRows::all(&view, table)), Vec::from_iter(0..count));
                let [from, to] = [1_u16, page + 1].map(|key| key.to_be_bytes().to_vec());
                let inside = Vec::from_iter(1..count.min(page + 1));
                assert_eq!(numbers(TableRows::range(&view, table, from, to)), inside);
            }
        }
    }
}

//! Rows in memory on top of a snapshot: the part of the journal that no generation contains yet.

use super::object_cache::ObjectCache;
use super::scanned_object::ObjectSource;
use crate::backend::{
    self, LastRows, LogPosition, RowBatch, ScanDirection, ScanRequest, Snapshot, TableId, TableRow,
};
use crate::format::{OperationRow, key};
use crate::model::SessionNumber;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};

/// The rows of one table; `None` is a tombstone that hides a row of the snapshot.
type TableOverlay = BTreeMap<Vec<u8>, Option<OverlayRow>>;

#[derive(Clone, Debug)]
enum OverlayRow {
    Encoded(Vec<u8>),
    /// The row of an operation, encoded only when it is read. An import is one operation of many
    /// records: if its row were encoded for each of them, the cost would be quadratic.
    Operation(Box<OperationRow>),
}

impl OverlayRow {
    fn encoded(&self) -> Vec<u8> {
        match self {
            Self::Encoded(bytes) => bytes.clone(),
            Self::Operation(row) => row.encode(),
        }
    }

    fn into_encoded(self) -> Vec<u8> {
        match self {
            Self::Encoded(bytes) => bytes,
            Self::Operation(row) => row.encode(),
        }
    }
}

/// Rows on top of a snapshot.
///
/// There is one map per table, so that a row can be looked up by a borrowed key.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowOverlay {
    tables: Vec<TableOverlay>,
    latest: Option<LatestRevision>,
}

/// The revision that was put last. The next revision usually starts from its state, and needs the
/// size of that state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LatestRevision {
    pub(crate) session: SessionNumber,
    pub(crate) sequence: u64,
    pub(crate) state_bytes: u64,
}

impl RowOverlay {
    fn table_rows(&self, table: TableId) -> Option<&TableOverlay> {
        self.tables.get(usize::from(table.0)).filter(|rows| !rows.is_empty())
    }

    fn table_rows_mut(&mut self, table: TableId) -> &mut TableOverlay {
        let place = usize::from(table.0);
        if self.tables.len() <= place {
            self.tables.resize_with(place + 1, TableOverlay::default);
        }
        if table == key::REVISIONS {
            self.latest = None;
        }
        &mut self.tables[place]
    }

    fn find(&self, table: TableId, key: &[u8]) -> Option<&Option<OverlayRow>> {
        self.table_rows(table)?.get(key)
    }

    /// Returns the revision that was put last, unless a revision row was changed since.
    pub(crate) const fn latest(&self) -> Option<LatestRevision> {
        self.latest
    }

    /// Records which revision was put last.
    pub(crate) const fn put_latest(&mut self, latest: LatestRevision) {
        self.latest = Some(latest);
    }

    /// Returns whether a row was put or deleted in this overlay.
    pub(crate) fn has_change(&self, table: TableId, key: &[u8]) -> bool {
        self.find(table, key).is_some()
    }

    pub(crate) fn put(&mut self, table: TableId, key: Vec<u8>, value: Vec<u8>) {
        self.table_rows_mut(table).insert(key, Some(OverlayRow::Encoded(value)));
    }

    pub(crate) fn put_operation(&mut self, key: Vec<u8>, row: OperationRow) {
        let row = OverlayRow::Operation(Box::new(row));
        self.table_rows_mut(key::OPERATIONS).insert(key, Some(row));
    }

    /// Returns the row of an operation for modification, if [`RowOverlay::put_operation`] put it.
    pub(crate) fn operation_mut(&mut self, key: &[u8]) -> Option<&mut OperationRow> {
        match self.table_rows_mut(key::OPERATIONS).get_mut(key)?.as_mut()? {
            OverlayRow::Operation(row) => Some(row),
            OverlayRow::Encoded(_) => None,
        }
    }

    pub(crate) fn delete(&mut self, table: TableId, key: Vec<u8>) {
        self.table_rows_mut(table).insert(key, None);
    }

    pub(crate) fn contains(&self, table: TableId, key: &[u8]) -> bool {
        self.find(table, key).is_some_and(Option::is_some)
    }

    /// Adds rows, which replace those with the same keys.
    pub(crate) fn extend(&mut self, rows: Self) {
        for (table, rows) in (0..).zip(rows.tables) {
            if !rows.is_empty() {
                self.table_rows_mut(TableId(table)).extend(rows);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.tables.iter().map(TableOverlay::len).sum()
    }

    pub(crate) fn into_batch(self) -> RowBatch {
        let tables = (0..).zip(self.tables);
        let rows = tables.flat_map(|(table, rows)| {
            rows.into_iter()
                .map(move |(key, row)| (TableId(table), key, row.map(OverlayRow::into_encoded)))
        });
        RowBatch { rows: rows.collect() }
    }
}

/// A snapshot with an overlay: its rows hide rows of `base` with the same keys.
#[derive(Clone, Copy)]
pub(crate) struct OverlaySnapshot<'a> {
    pub(crate) base: &'a dyn Snapshot,
    pub(crate) rows: &'a RowOverlay,
    pub(crate) position: LogPosition,
    /// Has the opened objects, for the writer of a generation, which reads and checks each object
    /// once. Meanwhile no object number is assigned twice.
    pub(crate) object_cache: Option<&'a ObjectCache>,
}

impl<'a> OverlaySnapshot<'a> {
    /// Creates a snapshot without a cache: a check of the index must read what is on disk.
    pub(crate) const fn new(
        base: &'a dyn Snapshot,
        rows: &'a RowOverlay,
        position: LogPosition,
    ) -> Self {
        Self { base, rows, position, object_cache: None }
    }
}

impl ObjectSource for OverlaySnapshot<'_> {
    fn object_cache(&self) -> Option<&ObjectCache> {
        self.object_cache
    }
}

impl Snapshot for OverlaySnapshot<'_> {
    fn position(&self) -> LogPosition {
        self.position
    }

    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, backend::Error> {
        match self.rows.find(table, key) {
            Some(row) => Ok(row.as_ref().map(OverlayRow::encoded)),
            None => self.base.get(table, key),
        }
    }

    fn get_many(
        &self,
        table: TableId,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Vec<u8>>>, backend::Error> {
        let mut values: Vec<Option<Vec<u8>>> = Vec::with_capacity(keys.len());
        let (mut places, mut missing) = (Vec::new(), Vec::new());
        for (place, key) in keys.iter().enumerate() {
            if let Some(row) = self.rows.find(table, key) {
                values.push(row.as_ref().map(OverlayRow::encoded));
            } else {
                values.push(None);
                places.push(place);
                missing.push(key.clone());
            }
        }
        if !missing.is_empty() {
            for (place, value) in places.into_iter().zip(self.base.get_many(table, &missing)?) {
                if let Some(slot) = values.get_mut(place) {
                    *slot = value;
                }
            }
        }
        Ok(values)
    }

    fn prefetch(&self, ranges: &dyn Fn() -> Vec<LastRows>) -> Result<(), backend::Error> {
        self.base.prefetch(ranges)
    }

    fn scan_clusters(
        &self,
        tables: &[TableId],
        clusters: Range<u32>,
        limit: usize,
    ) -> Result<Option<Vec<Vec<TableRow>>>, backend::Error> {
        let [from, to] = [clusters.start, clusters.end].map(u32::to_be_bytes);
        let bounds = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        let is_above = |table: &TableId| {
            let rows = self.rows.table_rows(*table).filter(|_| from < to);
            rows.is_some_and(|rows| rows.range::<[u8], _>(bounds).next().is_some())
        };
        if tables.iter().any(is_above) {
            return Ok(None);
        }
        self.base.scan_clusters(tables, clusters, limit)
    }

    fn rows(&self, request: ScanRequest<'_>) -> Result<Vec<TableRow>, backend::Error> {
        let ScanRequest { table, from, to, direction, limit } = request;
        if !to.is_empty() && from >= to {
            return Ok(Vec::new());
        }
        let end = if to.is_empty() { Bound::Unbounded } else { Bound::Excluded(to) };
        let above = self.rows.table_rows(table).into_iter();
        let above = above.flat_map(|rows| rows.range::<[u8], _>((Bound::Included(from), end)));
        let above: OverlayRowIterator<'_> = match direction {
            ScanDirection::Ascending => Box::new(above),
            ScanDirection::Descending => Box::new(above.rev()),
        };
        let mut above = above.peekable();
        if above.peek().is_none() {
            return self.base.rows(request);
        }
        let first = |left: &[u8], right: &[u8]| match direction {
            ScanDirection::Ascending => left < right,
            ScanDirection::Descending => left > right,
        };
        let mut below = BaseRowBuffer {
            from: from.to_vec(),
            to: to.to_vec(),
            is_more: true,
            rows: Vec::new().into_iter(),
        };
        let mut result = Vec::new();
        while result.len() < limit {
            let other = below.first(self.base, table, direction, limit - result.len())?;
            match (above.peek(), other) {
                (None, None) => break,
                (Some((key, _)), Some(other)) if first(other, key) => {
                    result.extend(below.rows.next());
                }
                (None, Some(_)) => result.extend(below.rows.next()),
                (Some((key, row)), other) => {
                    if other.is_some_and(|other| other == *key) {
                        below.rows.next();
                    }
                    if let Some(row) = row {
                        result.push(((*key).clone(), row.encoded()));
                    }
                    above.next();
                }
            }
        }
        Ok(result)
    }
}

/// The rows of the overlay, in scan direction.
type OverlayRowIterator<'a> = Box<dyn Iterator<Item = (&'a Vec<u8>, &'a Option<OverlayRow>)> + 'a>;

/// The rows of the base snapshot, read on demand: more are read if the overlay hides some.
struct BaseRowBuffer {
    /// The key range that was not read yet: `from` to `to` (exclusive).
    from: Vec<u8>,
    to: Vec<u8>,
    is_more: bool,
    rows: std::vec::IntoIter<TableRow>,
}

impl BaseRowBuffer {
    /// Returns the key of the next row. If the buffer is empty, `count` rows are read.
    fn first(
        &mut self,
        base: &dyn Snapshot,
        table: TableId,
        direction: ScanDirection,
        count: usize,
    ) -> Result<Option<&[u8]>, backend::Error> {
        if self.is_more && self.rows.as_slice().is_empty() {
            let rows = base.scan(table, &self.from, &self.to, direction, count)?;
            self.is_more = rows.len() == count;
            if let Some((last, _)) = rows.last() {
                match direction {
                    ScanDirection::Ascending => {
                        self.from.clone_from(last);
                        self.from.push(0);
                    }
                    ScanDirection::Descending => {
                        self.to.clone_from(last);
                        // There is no key before the empty key.
                        self.is_more &= !last.is_empty();
                    }
                }
                self.is_more &= self.to.is_empty() || self.from < self.to;
            }
            self.rows = rows.into_iter();
        }
        Ok(self.rows.as_slice().first().map(|(key, _)| key.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::EmptySnapshot;
    use proptest::collection::{btree_map, vec};
    use proptest::option;
    use proptest::prelude::*;

    #[test]
    fn a_scan_of_a_table_shows_no_rows_of_other_tables() {
        let mut rows = RowOverlay::default();
        let keys = |rows: &RowOverlay, table, from: &[u8], to: &[u8]| {
            let view = OverlaySnapshot::new(&EmptySnapshot, rows, 0);
            let found = view.scan(table, from, to, ScanDirection::Ascending, 9).unwrap();
            found.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        for table in [TableId(1), TableId(2), TableId(4)] {
            for key in [1, 2, 3] {
                rows.put(table, vec![key], vec![table.0]);
            }
        }
        rows.delete(TableId(2), vec![2]);
        assert_eq!(keys(&rows, TableId(2), &[], &[]), [[1], [3]]);
        assert_eq!(keys(&rows, TableId(2), &[2], &[3]), [[0; 1]; 0]);
        assert_eq!(keys(&rows, TableId(4), &[2], &[]), [[2], [3]]);
        assert_eq!(keys(&rows, TableId(3), &[], &[]), [[0; 1]; 0]);
        assert_eq!(keys(&rows, TableId(9), &[], &[]), [[0; 1]; 0]);
        assert!(rows.contains(TableId(1), &[2]) && !rows.contains(TableId(2), &[2]));
        assert!(rows.has_change(TableId(2), &[2]) && !rows.has_change(TableId(3), &[2]));
        let mut more = RowOverlay::default();
        more.put(TableId(3), vec![7], Vec::new());
        rows.extend(more);
        assert_eq!(rows.len(), 10);
        let batch: Vec<_> =
            rows.into_batch().rows.into_iter().map(|row| (row.0.0, row.1)).collect();
        assert!(batch.is_sorted() && batch.len() == 10, "{batch:?}");
    }

    proptest! {
        /// If the overlay hides rows, a scan with a limit must read the snapshot more than once.
        #[test]
        fn a_scan_shows_rows_of_the_overlay_and_rows_of_the_base_that_it_does_not_replace(
            below in btree_map(vec(0_u8..3, 0..3), 0_u8..9, 0..14),
            above in btree_map(vec(0_u8..3, 0..3), option::of(0_u8..9), 0..14),
            from in vec(0_u8..3, 0..3),
            to in vec(0_u8..3, 0..3),
            limit in 0_usize..9,
        ) {
            let table = TableId(1);
            let (mut under, mut over) = (RowOverlay::default(), RowOverlay::default());
            let mut wanted = BTreeMap::new();
            for (key, value) in below {
                under.put(table, key.clone(), vec![value]);
                wanted.insert(key, vec![value]);
            }
            for (key, value) in above {
                match value {
                    Some(value) => {
                        over.put(table, key.clone(), vec![value]);
                        wanted.insert(key, vec![value]);
                    }
                    None => {
                        over.delete(table, key.clone());
                        wanted.remove(&key);
                    }
                }
            }
            let base = OverlaySnapshot::new(&EmptySnapshot, &under, 0);
            let view = OverlaySnapshot::new(&base, &over, 0);
            let limit = if limit == 8 { usize::MAX } else { limit };
            let within = |key: &Vec<u8>| *key >= from && (to.is_empty() || *key < to);
            let mut wanted: Vec<_> = wanted.into_iter().filter(|(key, _)| within(key)).collect();
            for direction in [ScanDirection::Ascending, ScanDirection::Descending] {
                let found = view.scan(table, &from, &to, direction, limit).unwrap();
                prop_assert_eq!(&found, &wanted.get(..limit.min(wanted.len())).unwrap());
                wanted.reverse();
            }
        }
    }

    #[test]
    fn a_change_of_any_revision_forgets_the_cached_latest_one() {
        let latest = LatestRevision { session: 1, sequence: 2, state_bytes: 3 };
        let mut rows = RowOverlay::default();
        rows.put_latest(latest);
        rows.put(key::HISTORY, vec![1], Vec::new());
        assert_eq!(rows.latest(), Some(latest));
        rows.delete(key::REVISIONS, vec![1]);
        assert_eq!(rows.latest(), None);
        rows.put_latest(latest);
        rows.put(key::REVISIONS, vec![1], Vec::new());
        assert_eq!(rows.latest(), None);
    }
}

//! Scans in the order of the original keys, over rows that are stored in the order of their keys on
//! disk.
//!
//! The rows whose keys agree up to the hidden part form a *group*. Groups have the right order on
//! disk, and so do the rows with the same hidden part, but not the rows of a group. A scan within
//! one hidden part is a plain scan on disk. Any other scan reads whole groups and sorts each of
//! them. Most groups have one or two rows. Sorted rows of a large group are cached, so that a
//! reader that pages through it does not read the whole group for each page.

use super::RowCipher;
use super::hidden_keys::{self, HiddenKeyBytes, prefix_end};
use crate::backend::{Error, ScanDirection, ScanRequest, Snapshot, TableId, TableRow, locked};
use std::sync::Mutex;

/// The number of sorted rows of a group that are kept even if the limit of the scan is smaller.
const MIN_GROUP_ROWS: usize = 1 << 18;
/// Surplus rows are only cached if there are at least this many.
const MIN_CACHED_ROWS: usize = 256;
/// Maximum number of rows per read from disk.
const PAGE_ROWS: usize = 1024;

impl ScanRequest<'_> {
    /// Returns whether a key is in the range.
    fn holds(&self, key: &[u8]) -> bool {
        key >= self.from && (self.to.is_empty() || key < self.to)
    }

    /// Returns whether all keys in the range share the first `bytes` bytes of `from`.
    fn begins_alike(&self, bytes: usize) -> bool {
        let Some(prefix) = self.from.get(..bytes) else { return false };
        let end = prefix_end(prefix.to_vec());
        end.is_empty() || (!self.to.is_empty() && *self.to <= *end)
    }
}

/// A cache of consecutive rows of a table that were read ahead, in ascending order.
#[derive(Debug, Default)]
pub struct ReadAheadWindow(Option<(TableId, Vec<TableRow>)>);

impl ReadAheadWindow {
    /// Returns the rows of a scan, if the cache certainly has all of them.
    fn rows(&self, range: &ScanRequest<'_>) -> Option<Vec<TableRow>> {
        let (table, rows) = self.0.as_ref()?;
        let within = *table == range.table
            && range.direction == ScanDirection::Ascending
            && rows.first().is_some_and(|(first, _)| **first <= *range.from);
        if !within {
            return None;
        }
        let begin = rows.partition_point(|(key, _)| **key < *range.from);
        let rest = rows.get(begin..)?;
        let found: Vec<_> = rest
            .iter()
            .take(range.limit)
            .take_while(|(key, _)| range.holds(key))
            .cloned()
            .collect();
        (found.len() == range.limit || found.len() < rest.len()).then_some(found)
    }
}

/// Returns the rows of a scan, decrypted and in the order of their original keys.
pub(super) fn scan(
    layer: &RowCipher,
    inner: &dyn Snapshot,
    window: &Mutex<ReadAheadWindow>,
    range: ScanRequest<'_>,
) -> Result<Vec<TableRow>, Error> {
    let ScanRequest { table, from, to, limit, .. } = range;
    if limit == 0 || (!to.is_empty() && from >= to) {
        return Ok(Vec::new());
    }
    let Some(hidden) = (layer.hidden)(table) else {
        return opened(layer, table, inner.rows(range)?);
    };
    if range.begins_alike(hidden.end()) {
        let (low, high) = bounds_in_hidden_part(layer, hidden, &range);
        let stored = ScanRequest { from: &low, to: &high, ..range };
        return opened(layer, table, inner.rows(stored)?);
    }
    if let Some(rows) = locked(window).rows(&range) {
        return Ok(rows);
    }
    let mut groups =
        GroupSorter { range, hidden, found: Vec::new(), group: Vec::new(), surplus: Vec::new() };
    let (low, high) = bounds_of_groups(layer, hidden, &range);
    for_each_row(layer, inner, &range, (low, high), |row| groups.take(row))?;
    groups.close();
    if groups.surplus.len() >= MIN_CACHED_ROWS {
        let last = groups.found.last().cloned();
        let ahead = last.into_iter().chain(std::mem::take(&mut groups.surplus)).collect();
        *locked(window) = ReadAheadWindow(Some((table, ahead)));
    }
    Ok(groups.found)
}

/// Decrypts rows.
fn opened(layer: &RowCipher, table: TableId, rows: Vec<TableRow>) -> Result<Vec<TableRow>, Error> {
    rows.into_iter().map(|(key, value)| layer.open(table, key, &value)).collect()
}

/// Returns the bounds on disk of a range whose keys all have the same hidden part.
fn bounds_in_hidden_part(
    layer: &RowCipher,
    hidden: HiddenKeyBytes,
    range: &ScanRequest<'_>,
) -> (Vec<u8>, Vec<u8>) {
    let end = hidden.end();
    let low = layer.stored(range.table, range.from).unwrap_or_default();
    let alike = range.to.len() >= end && range.to[..end] == range.from[..end];
    let high = if alike {
        layer.stored(range.table, range.to).unwrap_or_default()
    } else {
        prefix_end(low[..end].to_vec())
    };
    (low, high)
}

/// Returns the bounds on disk of all groups that a range touches.
fn bounds_of_groups(
    layer: &RowCipher,
    hidden: HiddenKeyBytes,
    range: &ScanRequest<'_>,
) -> (Vec<u8>, Vec<u8>) {
    if hidden.bucket > 0 && range.begins_alike(hidden.at + hidden.bucket) {
        let low = hidden_keys::bucket(&layer.cipher, hidden, range.table, range.from);
        let high = prefix_end(low.clone());
        return (low, high);
    }
    let group = |key: &[u8]| key[..key.len().min(hidden.at)].to_vec();
    let high = match range.to.len() > hidden.at {
        true => prefix_end(group(range.to)),
        false => range.to.to_vec(),
    };
    (group(range.from), high)
}

/// Calls `row` for each row between two keys on disk, in the direction of the scan, until `row`
/// returns `false`.
fn for_each_row(
    layer: &RowCipher,
    inner: &dyn Snapshot,
    range: &ScanRequest<'_>,
    (mut low, mut high): (Vec<u8>, Vec<u8>),
    mut row: impl FnMut(TableRow) -> bool,
) -> Result<(), Error> {
    // For a scan of one or two rows, a small first page is usually enough.
    let mut page = range.limit.saturating_add(1).clamp(4, PAGE_ROWS);
    loop {
        let rows = inner.scan(range.table, &low, &high, range.direction, page)?;
        let more = rows.len() == page;
        if let Some((last, _)) = rows.last().filter(|_| more) {
            match range.direction {
                ScanDirection::Ascending => low = [last.as_slice(), &[0]].concat(),
                ScanDirection::Descending => high.clone_from(last),
            }
        }
        for (key, value) in rows {
            if !row(layer.open(range.table, key, &value)?) {
                return Ok(());
            }
        }
        // No key precedes the empty key, and as a bound it means the end of the table.
        if !more || (range.direction == ScanDirection::Descending && high.is_empty()) {
            return Ok(());
        }
        page = PAGE_ROWS;
    }
}

/// Collects the rows of a scan, sorted group by group.
struct GroupSorter<'a> {
    range: ScanRequest<'a>,
    hidden: HiddenKeyBytes,
    /// The rows of the groups that have ended, in order; at most the limit.
    found: Vec<TableRow>,
    /// The rows of the current group that may be needed.
    group: Vec<TableRow>,
    /// The rows of the last group beyond the limit, in order. They follow `found` without a gap.
    surplus: Vec<TableRow>,
}

impl GroupSorter<'_> {
    /// Adds a row. Returns whether more rows are needed.
    fn take(&mut self, row: TableRow) -> bool {
        let at = self.hidden.at;
        if self.group.last().is_some_and(|last| last.0.get(..at) != row.0.get(..at)) {
            self.close();
            if self.found.len() == self.range.limit {
                return false;
            }
        }
        if self.range.holds(&row.0) {
            self.group.push(row);
            let room = self.room();
            if self.group.len() >= room.saturating_mul(2) {
                self.sort();
                self.group.truncate(room);
            }
        }
        true
    }

    /// Returns how many rows of the current group are kept.
    fn room(&self) -> usize {
        (self.range.limit - self.found.len()).max(MIN_GROUP_ROWS)
    }

    /// Sorts the current group in the direction of the scan.
    fn sort(&mut self) {
        self.group.sort_unstable_by(|one, other| match self.range.direction {
            ScanDirection::Ascending => one.0.cmp(&other.0),
            ScanDirection::Descending => other.0.cmp(&one.0),
        });
    }

    /// Ends the current group and moves its rows to the result.
    fn close(&mut self) {
        if self.group.is_empty() {
            return;
        }
        self.sort();
        let room = self.room();
        self.group.truncate(room);
        let wanted = (self.range.limit - self.found.len()).min(self.group.len());
        let mut rest = self.group.split_off(wanted);
        self.found.append(&mut self.group);
        std::mem::swap(&mut self.surplus, &mut rest);
        // The cache is only used for ascending scans.
        if self.range.direction == ScanDirection::Descending {
            self.surplus.clear();
        }
    }
}

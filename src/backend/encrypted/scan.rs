//! Scans in the order of the original keys, over rows that are stored in the order of their keys on
//! disk.
//!
//! Rows with the same prefix before the hidden part form a *group*. Groups have the right order on
//! disk, and so do the rows that share one hidden part; rows within a group do not. A scan within
//! one hidden part is a plain scan on disk. Any other scan reads whole groups and sorts each. Most
//! groups have one or two rows. Of a large group, the sorted rows are cached, so that a reader that
//! pages through it does not read the whole group for each page.

use super::RowCipher;
use super::hidden_keys::{self, HiddenKeyBytes, prefix_end};
use crate::backend::{Error, ScanDirection, Snapshot, TableId, TableRow};
use std::sync::{Mutex, PoisonError};

/// Minimum capacity for the sorted rows of a group.
const WINDOW_ROWS: usize = 1 << 18;
/// Minimum number of surplus rows that are cached.
const WORTH_ROWS: usize = 256;
/// Rows per read from disk.
const PAGE_ROWS: usize = 1024;

/// The arguments of a scan.
#[derive(Clone, Copy)]
pub(super) struct ScanRequest<'a> {
    pub(super) table: TableId,
    pub(super) from: &'a [u8],
    pub(super) to: &'a [u8],
    pub(super) direction: ScanDirection,
    pub(super) limit: usize,
}

impl ScanRequest<'_> {
    fn holds(&self, key: &[u8]) -> bool {
        key >= self.from && (self.to.is_empty() || key < self.to)
    }

    /// Returns whether all keys in the range share the first `bytes` bytes of `from`.
    fn begins_alike(&self, bytes: usize) -> bool {
        let Some(prefix) = self.from.get(..bytes) else { return false };
        let end = prefix_end(prefix);
        end.is_empty() || (!self.to.is_empty() && *self.to <= *end)
    }
}

/// A cache of rows that were read ahead, in order and without gaps.
#[derive(Default)]
pub(super) struct ReadAheadWindow(Option<(TableId, Vec<TableRow>)>);

impl ReadAheadWindow {
    /// Returns the rows of a range if the cache certainly holds all of them.
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

pub(super) fn scan(
    layer: &RowCipher,
    inner: &dyn Snapshot,
    window: &Mutex<ReadAheadWindow>,
    range: ScanRequest<'_>,
) -> Result<Vec<TableRow>, Error> {
    let ScanRequest { table, from, to, direction, limit } = range;
    if limit == 0 || (!to.is_empty() && from >= to) {
        return Ok(Vec::new());
    }
    let Some(hidden) = (layer.hidden)(table) else {
        return opened(layer, table, inner.scan(table, from, to, direction, limit)?);
    };
    if range.begins_alike(hidden.end()) {
        let (low, high) = within(layer, hidden, &range);
        return opened(layer, table, inner.scan(table, &low, &high, direction, limit)?);
    }
    if let Some(rows) = held(window).rows(&range) {
        return Ok(rows);
    }
    let mut groups =
        GroupSorter { range, hidden, found: Vec::new(), group: Vec::new(), more: Vec::new() };
    let (low, high) = around(layer, hidden, &range);
    each(layer, inner, &range, (low, high), |row| groups.take(row))?;
    groups.close();
    if groups.more.len() >= WORTH_ROWS {
        let last = groups.found.last().cloned();
        let ahead = last.into_iter().chain(std::mem::take(&mut groups.more)).collect();
        *held(window) = ReadAheadWindow(Some((table, ahead)));
    }
    Ok(groups.found)
}

fn held(window: &Mutex<ReadAheadWindow>) -> std::sync::MutexGuard<'_, ReadAheadWindow> {
    window.lock().unwrap_or_else(PoisonError::into_inner)
}

fn opened(layer: &RowCipher, table: TableId, rows: Vec<TableRow>) -> Result<Vec<TableRow>, Error> {
    rows.into_iter().map(|(key, value)| layer.open(table, key, &value)).collect()
}

/// Returns the bounds on disk of a range within one hidden part.
fn within(
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
        prefix_end(&low[..end])
    };
    (low, high)
}

/// Returns the bounds on disk of all groups that a range touches.
fn around(
    layer: &RowCipher,
    hidden: HiddenKeyBytes,
    range: &ScanRequest<'_>,
) -> (Vec<u8>, Vec<u8>) {
    if hidden.bucket > 0 && range.begins_alike(hidden.at + hidden.bucket) {
        let low = hidden_keys::bucket(&layer.cipher, hidden, range.table, range.from);
        let high = prefix_end(&low);
        return (low, high);
    }
    let group = |key: &[u8]| key[..key.len().min(hidden.at)].to_vec();
    let high = match range.to.len() > hidden.at {
        true => prefix_end(&group(range.to)),
        false => range.to.to_vec(),
    };
    (group(range.from), high)
}

/// Calls `row` for each row between two keys on disk until it returns `false`.
fn each(
    layer: &RowCipher,
    inner: &dyn Snapshot,
    range: &ScanRequest<'_>,
    (mut low, mut high): (Vec<u8>, Vec<u8>),
    mut row: impl FnMut(TableRow) -> bool,
) -> Result<(), Error> {
    // A small first page is usually enough for a scan of one or two rows.
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
        // No key precedes the empty key.
        if !more || (range.direction == ScanDirection::Descending && high.is_empty()) {
            return Ok(());
        }
        page = PAGE_ROWS;
    }
}

/// Sorts the rows of each group.
struct GroupSorter<'a> {
    range: ScanRequest<'a>,
    hidden: HiddenKeyBytes,
    found: Vec<TableRow>,
    group: Vec<TableRow>,
    /// The rows of the last group beyond the limit, in order; they follow `found` without a gap.
    more: Vec<TableRow>,
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

    /// Returns the minimum number of rows to keep of the current group.
    fn room(&self) -> usize {
        (self.range.limit - self.found.len()).max(WINDOW_ROWS)
    }

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
        std::mem::swap(&mut self.more, &mut rest);
        if self.range.direction == ScanDirection::Descending {
            self.more.clear();
        }
    }
}

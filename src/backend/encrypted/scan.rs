//! Rows in the order of their own keys, of rows that lie in the order of their keys on disk.
//!
//! Rows that begin alike up to what is hidden are a *group*. Groups follow each other on disk as they should, and so do
//! the rows of one hidden part; within a group they do not. A scan within one hidden part is one on disk. Any other
//! reads whole groups and sorts each. Most have a row or two; of those that are large, so many rows are kept that
//! somebody who reads on page by page does not read the group for each page.

use super::Layer;
use super::hidden::{self, Hidden, behind};
use crate::backend::{Direction, Error, Row, Snapshot, Table};
use std::sync::{Mutex, PoisonError};

/// Rows of a group that are kept at once, if no more are asked for.
const WINDOW_ROWS: usize = 1 << 18;
/// Fewer rows that were not asked for are not worth keeping.
const WORTH_ROWS: usize = 256;
/// Rows that are read from disk at once.
const PAGE_ROWS: usize = 1024;

/// What a scan asks for.
#[derive(Clone, Copy)]
pub(super) struct Range<'a> {
    pub(super) table: Table,
    pub(super) from: &'a [u8],
    pub(super) to: &'a [u8],
    pub(super) direction: Direction,
    pub(super) limit: usize,
}

impl Range<'_> {
    fn holds(&self, key: &[u8]) -> bool {
        key >= self.from && (self.to.is_empty() || key < self.to)
    }

    /// Whether all keys between its ends begin with the first bytes of `from`, so many.
    fn begins_alike(&self, bytes: usize) -> bool {
        let Some(prefix) = self.from.get(..bytes) else { return false };
        let end = behind(prefix);
        end.is_empty() || (!self.to.is_empty() && *self.to <= *end)
    }
}

/// Rows that were read ahead, in order: all there are between the first and the last of them.
#[derive(Default)]
pub(super) struct Window(Option<(Table, Vec<Row>)>);

impl Window {
    /// The rows of a range, if these are surely all of them.
    fn rows(&self, range: &Range<'_>) -> Option<Vec<Row>> {
        let (table, rows) = self.0.as_ref()?;
        let within = *table == range.table
            && range.direction == Direction::Ascending
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
    layer: &Layer,
    inner: &dyn Snapshot,
    window: &Mutex<Window>,
    range: Range<'_>,
) -> Result<Vec<Row>, Error> {
    let Range { table, from, to, direction, limit } = range;
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
        Groups { range, hidden, found: Vec::new(), group: Vec::new(), more: Vec::new() };
    let (low, high) = around(layer, hidden, &range);
    each(layer, inner, &range, (low, high), |row| groups.take(row))?;
    groups.close();
    if groups.more.len() >= WORTH_ROWS {
        let last = groups.found.last().cloned();
        let ahead = last.into_iter().chain(std::mem::take(&mut groups.more)).collect();
        *held(window) = Window(Some((table, ahead)));
    }
    Ok(groups.found)
}

fn held(window: &Mutex<Window>) -> std::sync::MutexGuard<'_, Window> {
    window.lock().unwrap_or_else(PoisonError::into_inner)
}

fn opened(layer: &Layer, table: Table, rows: Vec<Row>) -> Result<Vec<Row>, Error> {
    rows.into_iter().map(|(key, value)| layer.open(table, key, &value)).collect()
}

/// The ends on disk of a range within one hidden part.
fn within(layer: &Layer, hidden: Hidden, range: &Range<'_>) -> (Vec<u8>, Vec<u8>) {
    let end = hidden.end();
    let low = layer.stored(range.table, range.from).unwrap_or_default();
    let alike = range.to.len() >= end && range.to[..end] == range.from[..end];
    let high = if alike {
        layer.stored(range.table, range.to).unwrap_or_default()
    } else {
        behind(&low[..end])
    };
    (low, high)
}

/// The ends on disk around all groups of a range.
fn around(layer: &Layer, hidden: Hidden, range: &Range<'_>) -> (Vec<u8>, Vec<u8>) {
    if hidden.bucket > 0 && range.begins_alike(hidden.at + hidden.bucket) {
        let low = hidden::bucket(&layer.cipher, hidden, range.table, range.from);
        let high = behind(&low);
        return (low, high);
    }
    let group = |key: &[u8]| key[..key.len().min(hidden.at)].to_vec();
    let high = match range.to.len() > hidden.at {
        true => behind(&group(range.to)),
        false => range.to.to_vec(),
    };
    (group(range.from), high)
}

/// Calls for each row between two keys on disk until that says no.
fn each(
    layer: &Layer,
    inner: &dyn Snapshot,
    range: &Range<'_>,
    (mut low, mut high): (Vec<u8>, Vec<u8>),
    mut row: impl FnMut(Row) -> bool,
) -> Result<(), Error> {
    // Who asks for a row or two most often gets them with the first page.
    let mut page = range.limit.saturating_add(1).clamp(4, PAGE_ROWS);
    loop {
        let rows = inner.scan(range.table, &low, &high, range.direction, page)?;
        let more = rows.len() == page;
        if let Some((last, _)) = rows.last().filter(|_| more) {
            match range.direction {
                Direction::Ascending => low = [last.as_slice(), &[0]].concat(),
                Direction::Descending => high.clone_from(last),
            }
        }
        for (key, value) in rows {
            if !row(layer.open(range.table, key, &value)?) {
                return Ok(());
            }
        }
        // Nothing is before the empty key.
        if !more || (range.direction == Direction::Descending && high.is_empty()) {
            return Ok(());
        }
        page = PAGE_ROWS;
    }
}

/// Puts the rows of each group in order.
struct Groups<'a> {
    range: Range<'a>,
    hidden: Hidden,
    found: Vec<Row>,
    group: Vec<Row>,
    /// What the last group holds beyond the limit, in order, without a gap to what was found.
    more: Vec<Row>,
}

impl Groups<'_> {
    /// Takes a row; whether the next one is wanted.
    fn take(&mut self, row: Row) -> bool {
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

    /// How many rows of the group are kept at least.
    fn room(&self) -> usize {
        (self.range.limit - self.found.len()).max(WINDOW_ROWS)
    }

    fn sort(&mut self) {
        self.group.sort_unstable_by(|one, other| match self.range.direction {
            Direction::Ascending => one.0.cmp(&other.0),
            Direction::Descending => other.0.cmp(&one.0),
        });
    }

    /// Ends a group.
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
        if self.range.direction == Direction::Descending {
            self.more.clear();
        }
    }
}

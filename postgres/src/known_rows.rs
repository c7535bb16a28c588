//! A cache of the rows that a snapshot has read. The rows of a generation do not change, so they
//! need not be read again.

use forge_store::store::database::{ScanDirection, TableId, TableRow};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

/// The maximum size of the cache, in bytes.
const MAX_BYTES: usize = 16 << 20;
/// The memory that a row takes besides its key and value, or a range besides its ends, in bytes.
const ROW_BYTES: usize = 100;

/// Rows by table, and ranges of keys in which all rows are known.
#[derive(Debug, Default)]
pub(crate) struct KnownRows {
    tables: HashMap<u8, KnownTable>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct KnownTable {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The start and the end of each range. Ranges neither overlap nor touch. An empty end is the
    /// end of the table.
    ranges: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A range of keys, without its end. An empty end is the end of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyRange<'a> {
    pub(crate) from: &'a [u8],
    pub(crate) to: &'a [u8],
}

impl KeyRange<'_> {
    /// Returns the memory that the cache takes for this range.
    const fn bytes(&self) -> usize {
        self.from.len() + self.to.len() + ROW_BYTES
    }
}

/// Returns whether one end of a range is before another end, or equal to it.
fn ends_by(end: &[u8], other: &[u8]) -> bool {
    other.is_empty() || (!end.is_empty() && end <= other)
}

impl KnownTable {
    /// Returns the known range that contains a key.
    fn range_at(&self, key: &[u8]) -> Option<KeyRange<'_>> {
        let (from, to) =
            self.ranges.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        (to.is_empty() || key < to.as_slice()).then_some(KeyRange { from, to })
    }

    /// Returns the known range that contains the keys directly before an end.
    fn range_before(&self, end: &[u8]) -> Option<KeyRange<'_>> {
        let before = if end.is_empty() { Bound::Unbounded } else { Bound::Excluded(end) };
        let (from, to) = self.ranges.range::<[u8], _>((Bound::Unbounded, before)).next_back()?;
        ends_by(end, to).then_some(KeyRange { from, to })
    }

    /// Adds a range, and joins it with the ranges that it overlaps or touches. Returns how many
    /// bytes less the joined range takes than all of them.
    fn add_range(&mut self, range: KeyRange<'_>) -> usize {
        let (mut from, mut to) = (range.from.to_vec(), range.to.to_vec());
        let mut bytes = range.bytes();
        loop {
            let until = if to.is_empty() { Bound::Unbounded } else { Bound::Included(&*to) };
            // If the last of these ranges ends before this one begins, all of them do.
            let last = self.ranges.range::<[u8], _>((Bound::Unbounded, until)).next_back();
            let Some((start, end)) = last.filter(|(_, end)| end.is_empty() || from <= **end) else {
                break;
            };
            let (start, end) = (start.clone(), end.clone());
            self.ranges.remove(&start);
            bytes += KeyRange { from: &start, to: &end }.bytes();
            from = from.min(start);
            to = if ends_by(&end, &to) { to } else { end };
        }
        bytes -= KeyRange { from: &from, to: &to }.bytes();
        self.ranges.insert(from, to);
        bytes
    }
}

impl KnownRows {
    /// Returns the value of a row; `Some(None)` if it is known that there is none.
    #[expect(clippy::option_option, reason = "the outer one is whether it is known")]
    pub(crate) fn get(&self, table: TableId, key: &[u8]) -> Option<Option<Vec<u8>>> {
        let table = self.tables.get(&table.0)?;
        match table.rows.get(key) {
            Some(value) => Some(Some(value.clone())),
            None => table.range_at(key).map(|_| None),
        }
    }

    /// Returns the result of a scan, if its whole range is known, or enough of it for `limit` rows.
    pub(crate) fn scan(
        &self,
        table: TableId,
        range: KeyRange<'_>,
        direction: ScanDirection,
        limit: usize,
    ) -> Option<Vec<TableRow>> {
        let table = self.tables.get(&table.0)?;
        let KeyRange { from, to } = range;
        let (known, is_whole) = match direction {
            ScanDirection::Ascending => {
                let known = table.range_at(from)?;
                let end = if ends_by(to, known.to) { to } else { known.to };
                (KeyRange { from, to: end }, ends_by(to, known.to))
            }
            ScanDirection::Descending => {
                let known = table.range_before(to)?;
                (KeyRange { from: from.max(known.from), to }, known.from <= from)
            }
        };
        if !known.to.is_empty() && known.from >= known.to {
            return Some(Vec::new());
        }
        let end = if known.to.is_empty() { Bound::Unbounded } else { Bound::Excluded(known.to) };
        let rows = table.rows.range::<[u8], _>((Bound::Included(known.from), end));
        let copy = |(key, value): (&Vec<u8>, &Vec<u8>)| (key.clone(), value.clone());
        let rows: Vec<_> = match direction {
            ScanDirection::Ascending => rows.take(limit).map(copy).collect(),
            ScanDirection::Descending => rows.rev().take(limit).map(copy).collect(),
        };
        (is_whole || rows.len() == limit).then_some(rows)
    }

    /// Adds rows, and a range in which there are no other rows. Adds nothing if the cache would
    /// become too large.
    pub(crate) fn add<'a>(
        &mut self,
        table: TableId,
        rows: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        range: Option<KeyRange<'_>>,
    ) {
        let table = self.tables.entry(table.0).or_default();
        let rows: Vec<_> = rows.filter(|(key, _)| !table.rows.contains_key(*key)).collect();
        let range = range.filter(|range| range.to.is_empty() || range.from < range.to);
        let range_bytes = range.map_or(0, |range| range.bytes());
        let bytes = rows.iter().map(|(key, value)| key.len() + value.len() + ROW_BYTES);
        let bytes = bytes.sum::<usize>() + range_bytes;
        if self.bytes + bytes > MAX_BYTES {
            return;
        }
        self.bytes += bytes;
        table.rows.extend(rows.into_iter().map(|(key, value)| (key.to_vec(), value.to_vec())));
        if let Some(range) = range {
            self.bytes -= table.add_range(range);
        }
    }
}

/// Returns the first key after all keys that begin with the common prefix of both ends of a range;
/// `None` if the prefix has fewer than eight bytes, or if there is no such key.
pub(crate) fn end_of_common_prefix(range: KeyRange<'_>) -> Option<Vec<u8>> {
    const MIN_BYTES: usize = 8;
    let same = range.from.iter().zip(range.to).take_while(|(from, to)| from == to).count();
    let mut end = range.from.get(..same).filter(|common| common.len() >= MIN_BYTES)?.to_vec();
    while end.last() == Some(&u8::MAX) {
        end.pop();
    }
    *end.last_mut()? += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ScanDirection::{Ascending, Descending};

    const TABLE: TableId = TableId(3);

    /// Of a table whose keys are the even numbers, the ranges `[4, 9)` and `[12, 15)` are known.
    fn known() -> KnownRows {
        let mut known = KnownRows::default();
        for (from, to) in [(4, 9), (12, 15)] {
            add(&mut known, from, to);
        }
        known
    }

    fn add(known: &mut KnownRows, from: u8, to: u8) {
        let rows: Vec<[u8; 1]> = (from..to).filter(|key| key % 2 == 0).map(|key| [key]).collect();
        let pairs = rows.iter().map(|key| (&key[..], &key[..]));
        known.add(TABLE, pairs, Some(KeyRange { from: &[from], to: &[to] }));
    }

    fn scan(
        known: &KnownRows,
        (from, to): (u8, u8),
        direction: ScanDirection,
        limit: usize,
    ) -> Option<Vec<u8>> {
        let rows = known.scan(TABLE, KeyRange { from: &[from], to: &[to] }, direction, limit)?;
        Some(rows.into_iter().map(|(key, _)| key[0]).collect())
    }

    #[test]
    fn an_absent_row_in_a_cached_range_is_known_to_be_absent() {
        let known = known();
        assert_eq!(known.get(TABLE, &[4]), Some(Some(vec![4])));
        assert_eq!(known.get(TABLE, &[5]), Some(None));
        assert_eq!(known.get(TABLE, &[9]), None);
        assert_eq!(known.get(TableId(4), &[4]), None);
    }

    #[test]
    fn a_scan_is_answered_from_the_cache_if_its_range_or_limit_is_covered() {
        let known = known();
        assert_eq!(scan(&known, (5, 9), Ascending, 9), Some(vec![6, 8]));
        assert_eq!(scan(&known, (5, 11), Ascending, 9), None);
        assert_eq!(scan(&known, (5, 11), Ascending, 2), Some(vec![6, 8]));
        assert_eq!(scan(&known, (0, 8), Descending, 9), None);
        assert_eq!(scan(&known, (0, 8), Descending, 2), Some(vec![6, 4]));
        assert_eq!(scan(&known, (4, 8), Descending, 9), Some(vec![6, 4]));
        assert_eq!(scan(&known, (5, 14), Descending, 1), Some(vec![12]));
        assert_eq!(scan(&known, (5, 14), Descending, 2), None);
        assert_eq!(scan(&known, (7, 7), Ascending, 9), Some(vec![]));
    }

    #[test]
    fn adjacent_cached_ranges_become_one() {
        let mut known = known();
        add(&mut known, 9, 12);
        assert_eq!(scan(&known, (4, 15), Ascending, 9), Some(vec![4, 6, 8, 10, 12, 14]));
        known.add(TABLE, std::iter::empty(), Some(KeyRange { from: &[14, 0], to: &[] }));
        assert_eq!(known.get(TABLE, &[200]), Some(None));
        let rest = known.scan(TABLE, KeyRange { from: &[13], to: &[] }, Descending, 9);
        assert_eq!(rest, Some(vec![(vec![14], vec![14])]));
    }

    /// Otherwise, many scans over the same rows would fill the cache although it has few rows.
    #[test]
    fn caching_a_row_again_takes_no_more_space() {
        let mut known = known();
        let bytes = known.bytes;
        let rows = |keys: &'static [[u8; 1]]| keys.iter().map(|key| (&key[..], &key[..]));
        known.add(TABLE, rows(&[[4], [6]]), None);
        assert_eq!(known.bytes, bytes);
        known.add(TABLE, rows(&[[6], [10]]), None);
        assert_eq!(known.bytes, bytes + 2 + ROW_BYTES);
    }

    #[test]
    fn ranges_in_any_order_are_joined_with_their_neighbours() {
        let mut known = KnownRows::default();
        let mut keys = std::collections::BTreeSet::new();
        for step in 0_u8..32 {
            let from = step * 7 % 32;
            add(&mut known, from, from + 1 + step % 3);
            keys.extend(from..from + 1 + step % 3);
            for key in 0..40 {
                assert_eq!(known.get(TABLE, &[key]).is_some(), keys.contains(&key), "{key}");
            }
            let alone = keys.iter().filter(|key| !keys.contains(&(**key + 1))).count();
            let table = &known.tables[&TABLE.0];
            assert_eq!(table.ranges.len(), alone);
            // Regression: ranges were counted again although they were joined.
            let held = table.rows.iter().chain(&table.ranges);
            let bytes: usize = held.map(|(one, other)| one.len() + other.len() + ROW_BYTES).sum();
            assert_eq!(known.bytes, bytes);
        }
    }

    #[test]
    fn the_end_of_a_prefix_is_the_first_key_after_it() {
        let end = |from: &[u8], to: &[u8]| end_of_common_prefix(KeyRange { from, to });
        assert_eq!(end(b"abcdefgh1", b"abcdefgh2"), Some(b"abcdefgi".to_vec()));
        assert_eq!(end(b"abcdefg\xff1", b"abcdefg\xff2"), Some(b"abcdefh".to_vec()));
        assert_eq!(end(b"abc1", b"abc2"), None);
        assert_eq!(end(&[255; 9], &[255; 10]), None);
    }
}

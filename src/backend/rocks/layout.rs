//! The order of rows on disk.
//!
//! Rows are stored table by table, except for *clustered* tables: their rows are grouped by the
//! first four bytes of their keys (the session, in a store), and table by table within each group.
//! Reading one of a thousand sessions then touches adjacent blocks in one or two files, instead of
//! a few blocks in every table. Each generation records which of its tables are clustered.

use crate::backend::{CLUSTERS, Error, OBJECTS, RowBatch, TableId};
use std::borrow::Cow;

/// Number of leading key bytes by which rows are clustered.
const CLUSTER_BYTES: usize = 4;
/// Bytes of a stored key before the rest of a clustered row's key: the number for all clusters, the
/// cluster, the table.
const LEAD_BYTES: usize = 1 + CLUSTER_BYTES + 1;

/// The leading bytes of a key that identify its cluster.
pub(super) type ClusterPrefix = [u8; CLUSTER_BYTES];

/// The set of clustered tables as a bit mask; table numbers from 64 on are never clustered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusteredTables(pub(super) u64);

impl ClusteredTables {
    /// Creates the set of tables for which `is_clustered` is true. Their keys must have at least
    /// four bytes.
    pub fn new(is_clustered: impl Fn(TableId) -> bool) -> Self {
        let bit = |number: u8| u64::from(is_clustered(TableId(number))) << number;
        Self((0..64).map(bit).fold(0, |bits, bit| bits | bit))
    }

    /// Returns whether the rows of this table are clustered.
    pub(super) const fn holds(self, table: TableId) -> bool {
        table.0 < 64 && self.0 >> table.0 & 1 == 1
    }

    /// Rejects rows of clustered tables with keys too short for a cluster: no scan would find them.
    pub(super) fn check(self, batch: &RowBatch) -> Result<(), Error> {
        let lost = |table: TableId, key: &[u8]| self.holds(table) && key.len() < CLUSTER_BYTES;
        let found = batch.rows.iter().find(|(table, key, _)| lost(*table, key));
        let Some((table, key, _)) = found else { return Ok(()) };
        let source = format!("a key of table {} has {} bytes", table.0, key.len()).into();
        Err(Error::Index { action: "write to", source })
    }

    /// Returns the key at which a row is stored.
    pub(super) fn stored_key(self, table: TableId, key: &[u8]) -> Cow<'_, [u8]> {
        if table == OBJECTS {
            return Cow::Borrowed(key);
        }
        let mut stored = Vec::with_capacity(LEAD_BYTES + key.len());
        match key.split_first_chunk() {
            Some((cluster, rest)) if self.holds(table) => {
                stored.extend_from_slice(&lead(*cluster, table));
                stored.extend_from_slice(rest);
            }
            _ => {
                stored.push(table.0);
                stored.extend_from_slice(key);
            }
        }
        Cow::Owned(stored)
    }
}

/// Returns the prefix of the stored keys of a table's rows in a cluster.
pub(super) fn lead(cluster: ClusterPrefix, table: TableId) -> [u8; LEAD_BYTES] {
    let [a, b, c, d] = cluster;
    [CLUSTERS.0, a, b, c, d, table.0]
}

/// Returns the bounds of the stored keys of a cluster: the first key, and the end (exclusive).
pub(super) fn around(cluster: ClusterPrefix) -> (Vec<u8>, Vec<u8>) {
    let first = [&[CLUSTERS.0], &cluster[..]].concat();
    let end = match u32::from_be_bytes(cluster).checked_add(1) {
        Some(next) => [&[CLUSTERS.0], &next.to_be_bytes()[..]].concat(),
        None => vec![CLUSTERS.0 + 1],
    };
    (first, end)
}

/// Returns the cluster that a stored key belongs to; `None` for a table that is not clustered.
pub(super) fn cluster_of(stored: &[u8]) -> Option<ClusterPrefix> {
    let (&number, rest) = stored.split_first()?;
    rest.first_chunk().copied().filter(|_| number == CLUSTERS.0)
}

/// Returns the table of a row that is stored in a cluster.
pub(super) fn table_of(stored: &[u8]) -> Option<TableId> {
    cluster_of(stored)?;
    stored.get(LEAD_BYTES - 1).copied().map(TableId)
}

/// Splits a stored key into table and key. Keys of objects are numbers far below 2^56, so their
/// first byte is zero, which is the number of no other table.
pub(super) fn row_key(stored: &[u8]) -> Option<(TableId, Vec<u8>)> {
    let (&number, key) = stored.split_first()?;
    if TableId(number) == CLUSTERS {
        let (cluster, rest) = key.split_first_chunk::<CLUSTER_BYTES>()?;
        let (&table, rest) = rest.split_first()?;
        return Some((TableId(table), [cluster, rest].concat()));
    }
    match number {
        0 => (stored.len() == 8).then(|| (OBJECTS, stored.to_vec())),
        _ => Some((TableId(number), key.to_vec())),
    }
}

/// Returns the key of a row within its table, from its stored key.
pub(super) fn key_in(table: TableId, stored: &[u8]) -> Vec<u8> {
    match row_key(stored) {
        Some((_, key)) if table != OBJECTS => key,
        _ => stored.to_vec(),
    }
}

/// The rows of a table with `from <= key < to` (no end if `to` is empty).
#[derive(Clone, Copy)]
pub(super) struct TableKeyRange<'a> {
    pub(super) table: TableId,
    pub(super) from: &'a [u8],
    pub(super) to: &'a [u8],
}

impl TableKeyRange<'_> {
    /// Returns the bounds of the stored keys, for a table that is not clustered.
    pub(super) fn stored(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let stored = |key| ClusteredTables::default().stored_key(self.table, key).into_owned();
        let end = match self.to {
            // The next table follows a table, but the objects have a column family of their own.
            [] if self.table == OBJECTS => None,
            [] => self.table.0.checked_add(1).map(|next| vec![next]),
            to => Some(stored(to)),
        };
        (stored(self.from), end)
    }

    /// Returns the bounds of the stored keys of all clusters that may contain rows of the range.
    pub(super) fn clusters(&self) -> (Vec<u8>, Vec<u8>) {
        let begin = |key: &[u8]| [&[CLUSTERS.0], key].concat();
        let end = match self.to.split_first_chunk() {
            Some((cluster, [_, ..])) => around(*cluster).1,
            _ if self.to.is_empty() => vec![CLUSTERS.0 + 1],
            _ => begin(self.to),
        };
        (begin(self.from.get(..CLUSTER_BYTES).unwrap_or(self.from)), end)
    }

    /// Returns the only cluster that may contain rows of the range, if there is just one.
    pub(super) fn only_cluster(&self) -> Option<ClusterPrefix> {
        let cluster = *self.from.first_chunk()?;
        (self.clusters().1 <= around(cluster).1).then_some(cluster)
    }

    /// Returns the bounds of the stored keys of the range within one cluster.
    pub(super) fn stored_in(&self, cluster: ClusterPrefix) -> (Vec<u8>, Vec<u8>) {
        let begins = lead(cluster, self.table);
        let rest = |key: &[u8]| key.strip_prefix(&cluster).map(<[u8]>::to_vec);
        let first = [&begins[..], &rest(self.from).unwrap_or_default()].concat();
        let end = match rest(self.to) {
            Some(rest) => [&begins[..], &rest].concat(),
            None => lead(cluster, TableId(self.table.0 + 1)).to_vec(),
        };
        (first, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn clustered() -> ClusteredTables {
        ClusteredTables::new(|table| [2, 3, 63, 64].contains(&table.0))
    }

    fn row() -> impl Strategy<Value = (TableId, Vec<u8>)> {
        let table = prop::sample::select(vec![1, 2, 3, 4, 63, 64, 253]).prop_map(TableId);
        let cluster = prop::sample::select(vec![0, 1, 0xff, 0x100, u32::MAX - 1, u32::MAX]);
        let rest = prop::collection::vec(prop::sample::select(vec![0, 1, 2, 3, 63, 0xff]), 0..5);
        let key = (cluster, rest);
        (table, key.prop_map(|(cluster, rest)| [&cluster.to_be_bytes()[..], &rest].concat()))
    }

    proptest! {
        #[test]
        fn rows_have_distinct_ordered_keys_and_a_cluster_is_contiguous(
            rows in prop::collection::btree_set(row(), 0..60)
        ) {
            let stored: BTreeMap<Vec<u8>, (TableId, Vec<u8>)> = rows
                .iter()
                .map(|(table, key)| (clustered().stored_key(*table, key).into_owned(), (*table, key.clone())))
                .collect();
            prop_assert_eq!(stored.len(), rows.len());
            let mut last = BTreeMap::new();
            let mut clusters = Vec::new();
            for (stored, (table, key)) in &stored {
                prop_assert_eq!(row_key(stored), Some((*table, key.clone())));
                prop_assert_eq!(&key_in(*table, stored), key);
                prop_assert_eq!(cluster_of(stored).is_some(), [2, 3, 63].contains(&table.0));
                let before = last.insert(*table, key);
                prop_assert!(before.is_none_or(|before| before < key));
                clusters.extend(cluster_of(stored));
            }
            prop_assert!(clusters.is_sorted(), "none comes back");
        }
    }

    #[test]
    fn a_row_of_no_cluster_is_refused() {
        let batch =
            |table, key: &[u8]| RowBatch { rows: vec![(TableId(table), key.to_vec(), None)] };
        assert!(clustered().check(&batch(2, &[0, 0, 0])).is_err());
        assert!(clustered().check(&batch(2, &[0, 0, 0, 0])).is_ok());
        assert!(clustered().check(&batch(1, &[])).is_ok());
        assert!(ClusteredTables::default().check(&batch(2, &[])).is_ok());
    }

    /// Existing stores contain these bytes, so they must not change.
    #[test]
    fn stored_keys_and_the_list_of_clustered_tables_are_those_of_the_format() {
        let key = |table| clustered().stored_key(TableId(table), &[1, 2, 3, 4, 5]).into_owned();
        assert_eq!(key(2), [0xfe, 1, 2, 3, 4, 2, 5]);
        assert_eq!(key(1), [1, 1, 2, 3, 4, 5]);
        assert_eq!(clustered(), ClusteredTables(1 << 63 | 0b1100));
    }
}

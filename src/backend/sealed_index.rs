//! An index whose rows bear seals, on top of an index that cannot be sealed as a whole: rows in a
//! database, which its administrator can change.
//!
//! A seal follows the value of its row, and covers the table, the key and the value. It does not
//! show that a row was deleted, or replaced by an earlier version of the same row.

use super::row_layer::{LayeredIndex, RowLayer};
use super::seal::ROW_SEAL_BYTES;
use super::{
    Error, Index, IntegrityBreach, LastRows, ScanRequest, SealKey, Snapshot, TableId, TableRow,
};
use std::sync::Mutex;

/// An [`Index`] with sealed rows.
pub(crate) type SealedIndex = LayeredIndex<RowSeals>;

impl SealedIndex {
    /// Wraps an index so that its rows are sealed with this key. Without a key, they can be read,
    /// but not written.
    pub(crate) const fn new(inner: Box<dyn Index>, key: Option<SealKey>) -> Self {
        Self { inner, layer: RowSeals(key) }
    }
}

/// Makes and checks the seals of rows. Without a key, seals are not checked.
#[derive(Clone, Debug)]
pub(crate) struct RowSeals(Option<SealKey>);

impl RowSeals {
    /// Checks the seal of a value and removes it.
    fn open(&self, table: TableId, key: &[u8], mut value: Vec<u8>) -> Result<Vec<u8>, Error> {
        let breach = |breach| {
            let what = format!("a row of table {} of the index", table.0);
            Error::Breach { breach, what }
        };
        let (content, seal) = value
            .split_last_chunk::<ROW_SEAL_BYTES>()
            .ok_or_else(|| breach(IntegrityBreach::Unsealed))?;
        if self.0.as_ref().is_some_and(|own| own.row(table, key, content) != *seal) {
            return Err(breach(IntegrityBreach::Altered));
        }
        value.truncate(content.len());
        Ok(value)
    }
}

impl RowLayer for RowSeals {
    type ScanCache = ();

    fn stored_row(
        &self,
        table: TableId,
        key: Vec<u8>,
        mut value: Option<Vec<u8>>,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>), Error> {
        let Some(own) = &self.0 else {
            let source = "the store's key is not on this machine".into();
            return Err(Error::Index { action: "write to", source });
        };
        if let Some(value) = &mut value {
            let seal = own.row(table, &key, value);
            value.extend(seal);
        }
        Ok((key, value))
    }

    fn get(
        &self,
        below: &dyn Snapshot,
        table: TableId,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        below.get(table, key)?.map(|value| self.open(table, key, value)).transpose()
    }

    fn get_many(
        &self,
        below: &dyn Snapshot,
        table: TableId,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let values = keys.iter().zip(below.get_many(table, keys)?);
        values
            .map(|(key, value)| value.map(|value| self.open(table, key, value)).transpose())
            .collect()
    }

    fn prefetch(
        &self,
        below: &dyn Snapshot,
        ranges: &dyn Fn() -> Vec<LastRows>,
    ) -> Result<(), Error> {
        below.prefetch(ranges)
    }

    fn scan(
        &self,
        below: &dyn Snapshot,
        _: &Mutex<()>,
        request: ScanRequest<'_>,
    ) -> Result<Vec<TableRow>, Error> {
        let opened = |(key, value): TableRow| {
            let value = self.open(request.table, &key, value)?;
            Ok((key, value))
        };
        below.rows(request)?.into_iter().map(opened).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::memory::MemoryIndex;
    use crate::backend::{RowBatch, ScanDirection};

    const ROWS: TableId = TableId(3);

    fn written(index: &dyn Index, rows: &[(&[u8], &[u8])]) {
        let mut writer = index.try_writer().unwrap().unwrap();
        let rows = rows.iter().map(|(key, value)| (ROWS, key.to_vec(), Some(value.to_vec())));
        writer.write(RowBatch { rows: rows.collect() }).unwrap();
        writer.publish(1).unwrap();
    }

    #[test]
    fn a_row_that_was_altered_moved_or_added_is_refused() {
        let key = SealKey::new(&[1; 32], &[2; 16], &[3; 32]);
        let sealed = SealedIndex::new(Box::new(MemoryIndex::default()), Some(key));
        written(&sealed, &[(b"a", b"one"), (b"b", b"two")]);
        let rows = sealed.snapshot().unwrap();
        assert_eq!(rows.get(ROWS, b"a").unwrap().unwrap(), b"one");
        let all = rows.scan(ROWS, b"", b"", ScanDirection::Ascending, 9).unwrap();
        assert_eq!(all, [(b"a".to_vec(), b"one".to_vec()), (b"b".to_vec(), b"two".to_vec())]);
        let own = sealed.inner.snapshot().unwrap().get(ROWS, b"a").unwrap().unwrap();
        let altered = [b"onf", own.get(3..).unwrap()].concat();
        let forgeries: [(&[u8], &[u8]); 4] =
            [(b"a", &altered), (b"b", &own), (b"c", &own), (b"d", b"short")];
        for (key, value) in forgeries {
            written(&*sealed.inner, &[(key, value)]);
            let rows = sealed.snapshot().unwrap();
            let is_refused = |read: Result<(), Error>| matches!(read, Err(Error::Breach { .. }));
            assert!(is_refused(rows.get(ROWS, key).map(drop)), "{key:?}");
            assert!(is_refused(rows.get_many(ROWS, &[key.to_vec()]).map(drop)), "{key:?}");
            let scanned = rows.scan(ROWS, key, b"", ScanDirection::Ascending, 1);
            assert!(is_refused(scanned.map(drop)), "{key:?}");
        }
    }

    #[test]
    fn without_the_key_rows_are_read_and_not_written() {
        let key = SealKey::new(&[1; 32], &[2; 16], &[3; 32]);
        let sealed = SealedIndex::new(Box::new(MemoryIndex::default()), Some(key));
        written(&sealed, &[(b"a", b"one")]);
        let without = SealedIndex::new(sealed.inner, None);
        assert_eq!(without.snapshot().unwrap().get(ROWS, b"a").unwrap().unwrap(), b"one");
        let mut writer = without.try_writer().unwrap().unwrap();
        let row = (ROWS, b"b".to_vec(), Some(b"two".to_vec()));
        assert!(writer.write(RowBatch { rows: vec![row] }).is_err());
    }
}

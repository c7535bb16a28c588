//! An index whose rows bear seals, on top of an index that cannot be sealed as a whole: rows in a
//! database, which its administrator can change.
//!
//! A seal follows the value of its row, and covers the table and the key. It does not show that a
//! row was deleted, or replaced by what the same row was before.

use super::encrypted::SnapshotSource;
use super::seal::ROW_SEAL_BYTES;
use super::{
    Error, Index, IndexWriter, IntegrityBreach, LastRows, LogPosition, RowBatch, ScanDirection,
    SealKey, Snapshot, TableId, TableRow, check_tables,
};
use std::sync::Arc;
use std::time::Duration;

/// An [`Index`] with sealed rows.
#[derive(Debug)]
pub(crate) struct SealedIndex<I> {
    inner: I,
    seals: RowSeals,
}

/// Checks and makes the seals of rows. Without a key, seals are not checked.
#[derive(Clone, Debug)]
struct RowSeals(Option<SealKey>);

impl RowSeals {
    /// Returns a value without its seal.
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

impl<I: Index> SealedIndex<I> {
    /// Wraps an index so that its rows are sealed with this key; without it they can be read.
    pub(crate) const fn new(inner: I, key: Option<SealKey>) -> Self {
        Self { inner, seals: RowSeals(key) }
    }

    fn opened<S>(&self, inner: S) -> UnsealedRows<S> {
        UnsealedRows { inner, seals: self.seals.clone() }
    }
}

impl<I: Index> Index for SealedIndex<I> {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, Error> {
        Ok(Arc::new(self.opened(self.inner.snapshot()?)))
    }

    fn position(&self) -> Result<LogPosition, Error> {
        self.inner.position()
    }

    fn try_writer(&self) -> Result<Option<Box<dyn IndexWriter>>, Error> {
        let writer = self.inner.try_writer()?;
        Ok(writer.map(|writer| Box::new(self.opened(writer)) as Box<dyn IndexWriter>))
    }

    fn empty_writer(&self, timeout: Duration) -> Result<Box<dyn IndexWriter>, Error> {
        Ok(Box::new(self.opened(self.inner.empty_writer(timeout)?)))
    }

    fn tidy(&self) -> Result<Vec<std::path::PathBuf>, Error> {
        self.inner.tidy()
    }

    fn compact(&self) -> Result<bool, Error> {
        self.inner.compact()
    }
}

/// The rows of a snapshot or of a writer, without their seals.
struct UnsealedRows<S> {
    inner: S,
    seals: RowSeals,
}

impl<S: SnapshotSource> Snapshot for UnsealedRows<S> {
    fn position(&self) -> LogPosition {
        self.inner.rows().position()
    }

    fn expires_soon(&self) -> bool {
        self.inner.rows().expires_soon()
    }

    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let value = self.inner.rows().get(table, key)?;
        value.map(|value| self.seals.open(table, key, value)).transpose()
    }

    fn get_many(&self, table: TableId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let values = keys.iter().zip(self.inner.rows().get_many(table, keys)?);
        values
            .map(|(key, value)| value.map(|value| self.seals.open(table, key, value)).transpose())
            .collect()
    }

    fn prefetch(&self, ranges: &dyn Fn() -> Vec<LastRows>) -> Result<(), Error> {
        self.inner.rows().prefetch(ranges)
    }

    fn scan(
        &self,
        table: TableId,
        from: &[u8],
        to: &[u8],
        direction: ScanDirection,
        limit: usize,
    ) -> Result<Vec<TableRow>, Error> {
        let rows = self.inner.rows().scan(table, from, to, direction, limit)?;
        rows.into_iter()
            .map(|(key, value)| {
                let value = self.seals.open(table, &key, value)?;
                Ok((key, value))
            })
            .collect()
    }
}

impl IndexWriter for UnsealedRows<Box<dyn IndexWriter>> {
    fn view(&self) -> &dyn Snapshot {
        self
    }

    fn write(&mut self, mut batch: RowBatch) -> Result<(), Error> {
        check_tables(&batch)?;
        let Some(own) = &self.seals.0 else {
            let source = "the store's key is not on this machine".into();
            return Err(Error::Index { action: "write to", source });
        };
        for (table, key, value) in &mut batch.rows {
            if let Some(value) = value {
                let seal = own.row(*table, key, value);
                value.extend(seal);
            }
        }
        self.inner.write(batch)
    }

    fn publish(self: Box<Self>, position: LogPosition) -> Result<(), Error> {
        self.inner.publish(position)
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::MemoryIndex;
    use super::*;

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
        let sealed = SealedIndex::new(MemoryIndex::default(), Some(key));
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
            written(&sealed.inner, &[(key, value)]);
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
        let sealed = SealedIndex::new(MemoryIndex::default(), Some(key));
        written(&sealed, &[(b"a", b"one")]);
        let without = SealedIndex::new(sealed.inner, None);
        assert_eq!(without.snapshot().unwrap().get(ROWS, b"a").unwrap().unwrap(), b"one");
        let mut writer = without.try_writer().unwrap().unwrap();
        let row = (ROWS, b"b".to_vec(), Some(b"two".to_vec()));
        assert!(writer.write(RowBatch { rows: vec![row] }).is_err());
    }
}

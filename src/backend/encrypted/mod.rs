//! An index whose rows are encrypted, on top of any other index.
//!
//! The value of a row is encrypted for its table and its key on disk. In that key, the bytes that
//! reveal the subject are replaced by a keyed hash ([`HiddenKeyBytes`]); the original bytes are
//! kept inside the encrypted value. Callers see the rows as they were written, in the order of
//! their own keys. Rows whose keys differ only after the hidden part have that order on disk
//! already; others are sorted while they are read (`scan`).

mod hidden_keys;
mod rescue;
mod scan;
#[cfg(test)]
mod tests;

pub use hidden_keys::{HiddenKeyBytes, KeyHidingRule};
pub(crate) use rescue::rescued;

use super::{
    Cipher, EncryptionContext, Error, Index, IndexWriter, LogPosition, RESERVED, RowBatch,
    ScanDirection, Snapshot, TableId, TableRow,
};
use scan::ReadAheadWindow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Encrypts and decrypts rows.
#[derive(Clone, Debug)]
struct RowCipher {
    cipher: Cipher,
    hidden: KeyHidingRule,
}

impl RowCipher {
    fn open(&self, table: TableId, on_disk: Vec<u8>, value: &[u8]) -> Result<TableRow, Error> {
        let content = self.cipher.open(EncryptionContext::Row(table, &on_disk), value)?;
        hidden_keys::decode_row((self.hidden)(table), table, on_disk, content)
    }

    fn stored(&self, table: TableId, key: &[u8]) -> Option<Vec<u8>> {
        let stored = hidden_keys::stored(&self.cipher, (self.hidden)(table), table, key);
        stored.map(std::borrow::Cow::into_owned)
    }

    /// Returns a row as it is written to disk.
    fn seal(
        &self,
        table: TableId,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>), Error> {
        let Some(on_disk) = self.stored(table, key) else {
            let source = format!("a key of table {} is too short to be hidden", table.0);
            return Err(Error::Index { action: "write to", source: source.into() });
        };
        let value = value.map(|value| {
            let content = hidden_keys::content((self.hidden)(table), key, value);
            self.cipher.seal(EncryptionContext::Row(table, &on_disk), &content)
        });
        Ok((on_disk, value))
    }

    fn get(
        &self,
        inner: &dyn Snapshot,
        table: TableId,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(on_disk) = self.stored(table, key) else { return Ok(None) };
        let Some(value) = inner.get(table, &on_disk)? else { return Ok(None) };
        self.value_of(table, key, on_disk, &value)
    }

    fn get_many(
        &self,
        inner: &dyn Snapshot,
        table: TableId,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        // A key that is too short becomes the empty key, which no row has.
        let stored = keys.iter().map(|key| self.stored(table, key).unwrap_or_default());
        let stored: Vec<_> = stored.collect();
        let found = inner.get_many(table, &stored)?;
        let rows = keys.iter().zip(stored).zip(found);
        rows.map(|((key, on_disk), value)| match value {
            Some(value) => self.value_of(table, key, on_disk, &value),
            None => Ok(None),
        })
        .collect()
    }

    /// Returns the value of a row if it has this key: two keys may share a hidden key on disk.
    fn value_of(
        &self,
        table: TableId,
        key: &[u8],
        on_disk: Vec<u8>,
        value: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        let (own, value) = self.open(table, on_disk, value)?;
        Ok((own == key).then_some(value))
    }
}

/// An [`Index`] with encrypted rows.
#[derive(Debug)]
pub struct EncryptedIndex<I> {
    inner: I,
    layer: RowCipher,
}

impl<I: Index> EncryptedIndex<I> {
    /// Wraps an index so that its rows are encrypted, and the key bytes chosen by `hidden` are
    /// replaced.
    pub const fn new(inner: I, cipher: Cipher, hidden: KeyHidingRule) -> Self {
        Self { inner, layer: RowCipher { cipher, hidden } }
    }

    fn shown<S>(&self, inner: S) -> DecryptedSnapshot<S> {
        DecryptedSnapshot { inner, layer: self.layer.clone(), window: Mutex::default() }
    }

    fn applier(&self, inner: Option<Box<dyn IndexWriter>>) -> Option<Box<dyn IndexWriter>> {
        inner.map(|inner| Box::new(self.shown(inner)) as Box<dyn IndexWriter>)
    }
}

impl<I: Index> Index for EncryptedIndex<I> {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, Error> {
        Ok(Arc::new(self.shown(self.inner.snapshot()?)))
    }

    fn position(&self) -> Result<LogPosition, Error> {
        self.inner.position()
    }

    fn try_writer(&self) -> Result<Option<Box<dyn IndexWriter>>, Error> {
        Ok(self.applier(self.inner.try_writer()?))
    }

    fn empty_writer(&self, timeout: Duration) -> Result<Box<dyn IndexWriter>, Error> {
        Ok(Box::new(self.shown(self.inner.empty_writer(timeout)?)))
    }

    fn tidy(&self) -> Result<Vec<std::path::PathBuf>, Error> {
        self.inner.tidy()
    }

    fn compact(&self) -> Result<bool, Error> {
        self.inner.compact()
    }
}

/// A source of rows: a snapshot or a writer.
pub(super) trait SnapshotSource: Send + Sync {
    fn rows(&self) -> &dyn Snapshot;
}

impl SnapshotSource for Arc<dyn Snapshot> {
    fn rows(&self) -> &dyn Snapshot {
        &**self
    }
}

impl SnapshotSource for Box<dyn IndexWriter> {
    fn rows(&self) -> &dyn Snapshot {
        self.view()
    }
}

/// The decrypted view of a source.
struct DecryptedSnapshot<S> {
    inner: S,
    layer: RowCipher,
    window: Mutex<ReadAheadWindow>,
}

impl<S: SnapshotSource> Snapshot for DecryptedSnapshot<S> {
    fn position(&self) -> LogPosition {
        self.inner.rows().position()
    }

    fn expires_soon(&self) -> bool {
        self.inner.rows().expires_soon()
    }

    fn get(&self, table: TableId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.layer.get(self.inner.rows(), table, key)
    }

    fn get_many(&self, table: TableId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.layer.get_many(self.inner.rows(), table, keys)
    }

    fn scan(
        &self,
        table: TableId,
        from: &[u8],
        to: &[u8],
        direction: ScanDirection,
        limit: usize,
    ) -> Result<Vec<TableRow>, Error> {
        let range = scan::ScanRequest { table, from, to, direction, limit };
        scan::scan(&self.layer, self.inner.rows(), &self.window, range)
    }
}

impl IndexWriter for DecryptedSnapshot<Box<dyn IndexWriter>> {
    fn view(&self) -> &dyn Snapshot {
        self
    }

    fn write(&mut self, batch: RowBatch) -> Result<(), Error> {
        super::check_tables(&batch)?;
        // The write may change rows that were read ahead.
        *self.window.get_mut().unwrap_or_else(PoisonError::into_inner) = ReadAheadWindow::default();
        let mut hidden = RowBatch::default();
        hidden.rows.reserve(batch.rows.len());
        for (table, key, value) in batch.rows {
            let (key, value) = self.layer.seal(table, &key, value.as_deref())?;
            hidden.rows.push((table, key, value));
        }
        self.inner.write(hidden)
    }

    fn publish(self: Box<Self>, position: LogPosition) -> Result<(), Error> {
        self.inner.publish(position)
    }
}

//! An index whose rows are encrypted, on top of any other index.
//!
//! The value of a row is encrypted so that it can be decrypted only for its table and its key on
//! disk. In that key, the bytes that reveal the subject are replaced by a keyed hash
//! ([`HiddenKeyBytes`]); the encrypted value contains the original bytes. Callers see the rows as
//! they were written, in the order of the original keys. Rows whose keys differ only after the
//! hidden bytes have this order on disk too; others are sorted while they are read (`scan`).

mod hidden_keys;
mod rescue;
mod scan;
#[cfg(test)]
mod tests;

pub(crate) use hidden_keys::prefix_end;
pub use hidden_keys::{HiddenKeyBytes, KeyHidingRule};
pub(crate) use rescue::decrypt_rescued;

use super::row_layer::{LayeredIndex, RowLayer};
use super::{
    Cipher, EncryptionContext, Error, Index, RESERVED, ScanRequest, Snapshot, TableId, TableRow,
};
use scan::ReadAheadWindow;
use std::sync::Mutex;

/// Encrypts and decrypts rows.
#[derive(Clone, Debug)]
pub struct RowCipher {
    cipher: Cipher,
    hidden: KeyHidingRule,
}

impl RowCipher {
    fn open(&self, table: TableId, on_disk: Vec<u8>, value: &[u8]) -> Result<TableRow, Error> {
        let content = self.cipher.open(EncryptionContext::Row(table, &on_disk), value)?;
        hidden_keys::decode_row((self.hidden)(table), table, on_disk, content)
    }

    fn stored(&self, table: TableId, key: &[u8]) -> Option<Vec<u8>> {
        hidden_keys::stored(&self.cipher, (self.hidden)(table), table, key)
    }

    /// Returns the value of a row, if this is the row's original key: hashes are shortened, so two
    /// keys may have the same key on disk.
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

impl RowLayer for RowCipher {
    type ScanCache = ReadAheadWindow;

    fn stored_row(
        &self,
        table: TableId,
        key: Vec<u8>,
        value: Option<Vec<u8>>,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>), Error> {
        let Some(on_disk) = self.stored(table, &key) else {
            let source = format!("a key of table {} is too short to be hidden", table.0);
            return Err(Error::Index { action: "write to", source: source.into() });
        };
        let value = value.map(|value| {
            let content = hidden_keys::content((self.hidden)(table), &key, &value);
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

    fn scan(
        &self,
        inner: &dyn Snapshot,
        window: &Mutex<ReadAheadWindow>,
        request: ScanRequest<'_>,
    ) -> Result<Vec<TableRow>, Error> {
        scan::scan(self, inner, window, request)
    }
}

/// An [`Index`] with encrypted rows.
pub type EncryptedIndex = LayeredIndex<RowCipher>;

impl EncryptedIndex {
    /// Wraps an index so that its rows are encrypted, and the key bytes chosen by `hidden` are
    /// replaced.
    pub const fn new(inner: Box<dyn Index>, cipher: Cipher, hidden: KeyHidingRule) -> Self {
        Self { inner, layer: RowCipher { cipher, hidden } }
    }
}

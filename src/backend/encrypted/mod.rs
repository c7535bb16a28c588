//! An index whose rows are encrypted, on top of any other.
//!
//! The value of a row is encrypted for its table and its key on disk. In that key the bytes that tell what it is of are
//! replaced by a keyed hash ([`Hidden`]), and stand in the encrypted value instead. Everything above sees the rows as they
//! were written, in the order of their own keys: rows whose keys differ only behind what is hidden lie in that order on
//! disk, others are sorted while they are read (`scan`).

mod hidden;
mod rescue;
mod scan;
#[cfg(test)]
mod tests;

pub use hidden::{Hidden, HiddenOf};
pub(crate) use rescue::rescued;

use super::{
    Applier, Batch, Cipher, Direction, Error, Index, Place, Position, RESERVED, Row, Snapshot,
    Table,
};
use scan::Window;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What rows are hidden with.
#[derive(Clone, Debug)]
struct Layer {
    cipher: Cipher,
    hidden: HiddenOf,
}

impl Layer {
    fn open(&self, table: Table, on_disk: Vec<u8>, value: &[u8]) -> Result<Row, Error> {
        let content = self.cipher.open(Place::Row(table, &on_disk), value)?;
        hidden::shown((self.hidden)(table), table, on_disk, content)
    }

    fn stored(&self, table: Table, key: &[u8]) -> Option<Vec<u8>> {
        let stored = hidden::stored(&self.cipher, (self.hidden)(table), table, key);
        stored.map(std::borrow::Cow::into_owned)
    }

    /// A row as it is written.
    fn seal(
        &self,
        table: Table,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>), Error> {
        let Some(on_disk) = self.stored(table, key) else {
            let source = format!("a key of table {} is too short to be hidden", table.0);
            return Err(Error::Index { action: "write to", source: source.into() });
        };
        let value = value.map(|value| {
            let content = hidden::content((self.hidden)(table), key, value);
            self.cipher.seal(Place::Row(table, &on_disk), &content)
        });
        Ok((on_disk, value))
    }

    fn get(
        &self,
        inner: &dyn Snapshot,
        table: Table,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(on_disk) = self.stored(table, key) else { return Ok(None) };
        let Some(value) = inner.get(table, &on_disk)? else { return Ok(None) };
        self.value_of(table, key, on_disk, &value)
    }

    fn get_many(
        &self,
        inner: &dyn Snapshot,
        table: Table,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        // One that is too short is nobody's key; no row has the key that is asked for instead.
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

    /// The value of a row, if it is that of this key: two may share what stands for them.
    fn value_of(
        &self,
        table: Table,
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
    layer: Layer,
}

impl<I: Index> EncryptedIndex<I> {
    /// This index, its rows encrypted, and what is said of the keys of each table hidden.
    pub const fn new(inner: I, cipher: Cipher, hidden: HiddenOf) -> Self {
        Self { inner, layer: Layer { cipher, hidden } }
    }

    fn shown<S>(&self, inner: S) -> Shown<S> {
        Shown { inner, layer: self.layer.clone(), window: Mutex::default() }
    }

    fn applier(&self, inner: Option<Box<dyn Applier>>) -> Option<Box<dyn Applier>> {
        inner.map(|inner| Box::new(self.shown(inner)) as Box<dyn Applier>)
    }
}

impl<I: Index> Index for EncryptedIndex<I> {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, Error> {
        Ok(Arc::new(self.shown(self.inner.snapshot()?)))
    }

    fn position(&self) -> Result<Position, Error> {
        self.inner.position()
    }

    fn try_applier(&self) -> Result<Option<Box<dyn Applier>>, Error> {
        Ok(self.applier(self.inner.try_applier()?))
    }

    fn anew(&self, timeout: Duration) -> Result<Box<dyn Applier>, Error> {
        Ok(Box::new(self.shown(self.inner.anew(timeout)?)))
    }

    fn tidy(&self) -> Result<Vec<std::path::PathBuf>, Error> {
        self.inner.tidy()
    }

    fn compact(&self) -> Result<bool, Error> {
        self.inner.compact()
    }
}

/// What encrypted rows are read from.
trait Source: Send + Sync {
    fn rows(&self) -> &dyn Snapshot;
}

impl Source for Arc<dyn Snapshot> {
    fn rows(&self) -> &dyn Snapshot {
        &**self
    }
}

impl Source for Box<dyn Applier> {
    fn rows(&self) -> &dyn Snapshot {
        self.view()
    }
}

/// Its rows as they were written.
struct Shown<S> {
    inner: S,
    layer: Layer,
    window: Mutex<Window>,
}

impl<S: Source> Snapshot for Shown<S> {
    fn position(&self) -> Position {
        self.inner.rows().position()
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.layer.get(self.inner.rows(), table, key)
    }

    fn get_many(&self, table: Table, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.layer.get_many(self.inner.rows(), table, keys)
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        let range = scan::Range { table, from, to, direction, limit };
        scan::scan(&self.layer, self.inner.rows(), &self.window, range)
    }
}

impl Applier for Shown<Box<dyn Applier>> {
    fn view(&self) -> &dyn Snapshot {
        self
    }

    fn write(&mut self, batch: Batch) -> Result<(), Error> {
        super::check_tables(&batch)?;
        // What was read ahead may be written over.
        *self.window.get_mut().unwrap_or_else(PoisonError::into_inner) = Window::default();
        let mut hidden = Batch::default();
        hidden.rows.reserve(batch.rows.len());
        for (table, key, value) in batch.rows {
            let (key, value) = self.layer.seal(table, &key, value.as_deref())?;
            hidden.rows.push((table, key, value));
        }
        self.inner.write(hidden)
    }

    fn publish(self: Box<Self>, position: Position) -> Result<(), Error> {
        self.inner.publish(position)
    }
}

//! An index that stores its rows in another index, in another form: encrypted or sealed.

use super::{
    Error, Index, IndexWriter, LastRows, LogPosition, RowBatch, ScanRequest, Snapshot, TableId,
    TableRow, check_tables,
};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How rows are stored in the index below. Reads return the rows as they were written.
pub trait RowLayer: Clone + Send + Sync + 'static {
    /// What a snapshot keeps between scans, such as rows that were read ahead.
    type ScanCache: Default + Send;

    /// Returns the key and value under which a row is stored. Without a value, the row is deleted.
    ///
    /// # Errors
    /// [`Error::Index`] if it cannot be stored.
    fn stored_row(
        &self,
        table: TableId,
        key: Vec<u8>,
        value: Option<Vec<u8>>,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>), Error>;

    /// See [`Snapshot::get`].
    fn get(
        &self,
        below: &dyn Snapshot,
        table: TableId,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Error>;

    /// See [`Snapshot::get_many`].
    fn get_many(
        &self,
        below: &dyn Snapshot,
        table: TableId,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Vec<u8>>>, Error>;

    /// See [`Snapshot::prefetch`].
    fn prefetch(
        &self,
        _below: &dyn Snapshot,
        _ranges: &dyn Fn() -> Vec<LastRows>,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// See [`Snapshot::rows`].
    fn scan(
        &self,
        below: &dyn Snapshot,
        cache: &Mutex<Self::ScanCache>,
        request: ScanRequest<'_>,
    ) -> Result<Vec<TableRow>, Error>;
}

/// An [`Index`] whose rows are stored by a [`RowLayer`].
pub struct LayeredIndex<L> {
    pub(super) inner: Box<dyn Index>,
    pub(super) layer: L,
}

impl<L: fmt::Debug> fmt::Debug for LayeredIndex<L> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LayeredIndex").field("layer", &self.layer).finish_non_exhaustive()
    }
}

impl<L: RowLayer> LayeredIndex<L> {
    fn shown<S>(&self, inner: S) -> LayeredSnapshot<S, L> {
        LayeredSnapshot { inner, layer: self.layer.clone(), cache: Mutex::default() }
    }
}

impl<L: RowLayer> Index for LayeredIndex<L> {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, Error> {
        Ok(Arc::new(self.shown(self.inner.snapshot()?)))
    }

    fn position(&self) -> Result<LogPosition, Error> {
        self.inner.position()
    }

    fn try_writer(&self) -> Result<Option<Box<dyn IndexWriter>>, Error> {
        let writer = self.inner.try_writer()?;
        Ok(writer.map(|writer| Box::new(self.shown(writer)) as Box<dyn IndexWriter>))
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

/// A source of stored rows: a snapshot or a writer.
trait SnapshotSource: Send + Sync {
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

/// A snapshot of a source, or a writer to it, with the rows as they were written.
struct LayeredSnapshot<S, L: RowLayer> {
    inner: S,
    layer: L,
    cache: Mutex<L::ScanCache>,
}

impl<S: SnapshotSource, L: RowLayer> Snapshot for LayeredSnapshot<S, L> {
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

    fn prefetch(&self, ranges: &dyn Fn() -> Vec<LastRows>) -> Result<(), Error> {
        self.layer.prefetch(self.inner.rows(), ranges)
    }

    fn rows(&self, request: ScanRequest<'_>) -> Result<Vec<TableRow>, Error> {
        self.layer.scan(self.inner.rows(), &self.cache, request)
    }
}

impl<L: RowLayer> IndexWriter for LayeredSnapshot<Box<dyn IndexWriter>, L> {
    fn view(&self) -> &dyn Snapshot {
        self
    }

    fn write(&mut self, batch: RowBatch) -> Result<(), Error> {
        check_tables(&batch)?;
        // The write may change rows that were read ahead.
        *self.cache.get_mut().unwrap_or_else(PoisonError::into_inner) = L::ScanCache::default();
        let rows = batch.rows.into_iter().map(|(table, key, value)| {
            let (key, value) = self.layer.stored_row(table, key, value)?;
            Ok((table, key, value))
        });
        let stored = RowBatch { rows: rows.collect::<Result<_, Error>>()? };
        self.inner.write(stored)
    }

    fn publish(self: Box<Self>, position: LogPosition) -> Result<(), Error> {
        self.inner.publish(position)
    }
}

//! An index of one generation.

use crate::backend::{Error, INDEX_LOCK, Index, IndexWriter, LogPosition, Snapshot};
use std::sync::Arc;
use std::time::Duration;

/// An [`Index`] that always has this generation. It can have no writer, as if another process held
/// the lock of writers.
pub(crate) struct SingleGeneration(pub(crate) Arc<dyn Snapshot>);

impl Index for SingleGeneration {
    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, Error> {
        Ok(Arc::clone(&self.0))
    }

    fn position(&self) -> Result<LogPosition, Error> {
        Ok(self.0.position())
    }

    fn try_writer(&self) -> Result<Option<Box<dyn IndexWriter>>, Error> {
        Ok(None)
    }

    fn empty_writer(&self, timeout: Duration) -> Result<Box<dyn IndexWriter>, Error> {
        Err(Error::Busy { lock: INDEX_LOCK, holder: None, waited: timeout })
    }
}

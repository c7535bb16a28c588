//! An index in RocksDB, published in generations.
//!
//! Whoever holds the lock copies the newest generation (hard links and a few small files) to a folder `work/`, writes
//! to that, closes it and renames it: a generation never changes once it has its name, and a crash leaves the last one
//! whole. RocksDB's own write-ahead log is off; the [`Log`](super::Log) is the log. Readers open generations
//! read-only, and keep them by a shared lock on a lease file.

mod apply;
mod copy;
mod folder;
mod options;
mod read;
mod rescue;
#[cfg(test)]
mod tests;

pub use copy::copy;
pub use rescue::{Rescued, rescue};

use super::{Applier, Direction, Empty, Error, Index, Position, RESERVED, Row, Snapshot, Table};
use apply::{Compaction, RocksApplier};
use folder::{Folder, Generation, Lease};
use read::Database;
use rocksdb::Cache;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Where the position stands, big-endian.
const POSITION_KEY: [u8; 1] = [RESERVED.0];

/// An [`Index`] in a folder of its own.
pub struct RocksIndex {
    folder: Folder,
    /// The last generation opened here: opened once for all that read it at the same time.
    open: Mutex<Option<(Generation, Weak<Held>)>>,
    cache: Cache,
}

impl RocksIndex {
    /// The index in this folder. Touches nothing: the folder is made by the first applier.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { folder: Folder::new(path.into()), open: Mutex::default(), cache: options::cache() }
    }
}

impl Index for RocksIndex {
    fn compact(&self) -> Result<bool, Error> {
        if self.folder.newest()?.is_none() {
            return Ok(false);
        }
        let Some(lock) = self.folder.try_lock()? else { return Ok(false) };
        let applier =
            Box::new(RocksApplier::open(&self.folder, lock, Compaction::Whole, &self.cache, true)?);
        let position = applier.view().position();
        applier.publish(position)?;
        Ok(true)
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, Error> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(generation) = self.folder.newest()? else { return Ok(Arc::new(Empty)) };
            if let Some((known, held)) = &*open
                && *known == generation
                && let Some(held) = held.upgrade()
            {
                return Ok(held);
            }
            // Gone already: then there is a newer one.
            let Some(lease) = self.folder.hold(generation)? else { continue };
            let path = self.folder.path(generation);
            let database = Database::open_read_only(&path, generation.position, &self.cache)?;
            let held = Arc::new(Held { database, _lease: lease });
            *open = Some((generation, Arc::downgrade(&held)));
            return Ok(held);
        }
    }

    fn position(&self) -> Result<Position, Error> {
        Ok(self.folder.newest()?.map_or(0, |generation| generation.position))
    }

    fn try_applier(&self) -> Result<Option<Box<dyn Applier>>, Error> {
        let Some(lock) = self.folder.try_lock()? else { return Ok(None) };
        let applier =
            RocksApplier::open(&self.folder, lock, Compaction::AsNeeded, &self.cache, true)?;
        Ok(Some(Box::new(applier)))
    }

    fn try_anew(&self) -> Result<Option<Box<dyn Applier>>, Error> {
        let Some(lock) = self.folder.try_lock()? else { return Ok(None) };
        let applier =
            RocksApplier::open(&self.folder, lock, Compaction::AsNeeded, &self.cache, false)?;
        Ok(Some(Box::new(applier)))
    }
}

/// An open generation and what keeps its files. The database is closed first.
struct Held {
    database: Database,
    _lease: Lease,
}

impl fmt::Debug for RocksIndex {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RocksIndex").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Snapshot for Held {
    fn position(&self) -> Position {
        self.database.position()
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.database.get(table, key)
    }

    fn get_many(&self, table: Table, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.database.get_many(table, keys)
    }

    fn scan(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Row>, Error> {
        self.database.scan(table, from, to, direction, limit)
    }
}

/// Hides RocksDB's error type.
fn refused(action: &'static str) -> impl FnOnce(rocksdb::Error) -> Error {
    move |source| Error::Index { action, source: source.into() }
}

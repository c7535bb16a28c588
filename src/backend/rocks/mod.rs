//! An index in RocksDB, published in generations.
//!
//! The holder of the write lock copies the newest generation (hard links and a few small files) to
//! the folder `work/`, writes to the copy, closes it and renames the folder. A generation never
//! changes once it has its name, and a crash leaves the previous generation intact. RocksDB's own
//! write-ahead log is off; the [`WriteAheadLog`](super::WriteAheadLog) replaces it. A reader opens
//! a generation read-only. A shared lock on the generation's lease file keeps its files from being
//! removed meanwhile.

mod bit_repair;
mod copy;
mod folder;
mod generation_seal;
mod index_writer;
mod layout;
mod manifest;
mod options;
mod paced_sync;
mod read;
mod rescue;
mod sst_blocks;
#[cfg(test)]
mod tests;

pub use copy::copy;
pub use layout::ClusteredTables;
pub use rescue::{
    KeyedRow, RepairedGeneration, RescuedIndex, find_repairs, first_rows, rescue,
    rescue_with_repairs,
};

use super::{
    EmptySnapshot, Error, Index, IndexWriter, LogPosition, RESERVED, SealMode, Snapshot,
    debug_by_name, files, locked,
};
pub(crate) use folder::is_own;
use folder::{GenerationId, IndexFolder};
use generation_seal::IndexSealer;
use index_writer::{CompactionMode, RocksIndexWriter};
use read::RocksDatabase;
use rocksdb::Cache;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// The key of the row with the position of the generation (big-endian), followed by its clustered
/// tables if they are not the default.
const POSITION_KEY: [u8; 1] = [RESERVED.0];

/// An [`Index`] in a folder of its own.
pub struct RocksIndex {
    folder: IndexFolder,
    /// The last generation opened here, shared by all its concurrent readers.
    open: Mutex<Option<(GenerationId, Weak<RocksDatabase>)>>,
    cache: Cache,
    /// The tables that are clustered in a new index.
    clustered: ClusteredTables,
    /// Seals and checks the generations, if the store is sealed.
    sealer: Option<IndexSealer>,
}

impl RocksIndex {
    /// Creates a handle for the index in this folder. The first writer creates the folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            folder: IndexFolder::new(path.into()),
            open: Mutex::default(),
            cache: options::cache(),
            clustered: ClusteredTables::default(),
            sealer: None,
        }
    }

    /// Sets the tables that are clustered in a new or rebuilt index; an existing index keeps its
    /// clustered tables.
    #[must_use]
    pub fn with_clustered(self, clustered: ClusteredTables) -> Self {
        Self { clustered, ..self }
    }

    /// Sets whether generations are sealed and checked, and with which key. The file `checked`
    /// records the verified files; without it, all files are read at each check.
    #[must_use]
    pub fn with_seals(self, seals: &SealMode, checked: Option<PathBuf>) -> Self {
        Self { sealer: seals.key().map(|key| IndexSealer::new(key.clone(), checked)), ..self }
    }

    /// Takes the write lock, waiting for another holder at most `timeout`.
    ///
    /// # Errors
    /// [`Error::Busy`], with the holder, if it could not be acquired.
    pub(crate) fn lock(&self, timeout: Duration) -> Result<files::LockedFile, Error> {
        self.folder.lock(timeout)
    }

    /// Seals the newest generation as it is.
    ///
    /// # Errors
    /// See [`Index::snapshot`]; [`Error::Index`] if the folder contains a file that is no part of a
    /// generation.
    pub(crate) fn reseal(&self, _lock: &files::LockedFile) -> Result<(), Error> {
        let Some(sealer) = &self.sealer else { return Ok(()) };
        let Some(generation) = self.folder.newest()? else { return Ok(()) };
        let path = self.folder.path(generation);
        IndexSealer::tidy(&path)?;
        folder::check_names(&path)?;
        let list = sealer.seal(&path, generation, None)?;
        files::sync_folder(&path)?;
        sealer.note(&list, &path);
        // A generation that cannot be opened is an error.
        RocksDatabase::open_read_only(&path, generation.position, &self.cache).map(drop)
    }

    fn compact_whole(&self) -> Result<bool, Error> {
        let Some(lock) = self.folder.try_lock()? else { return Ok(false) };
        let writer = Box::new(RocksIndexWriter::open(self, lock, (CompactionMode::Full, true))?);
        let position = writer.view().position();
        writer.publish(position)?;
        Ok(true)
    }

    /// Rewrites the object files in which much was deleted, one at a time, as far as there is
    /// space. Returns whether any was rewritten; stops if another writer has the lock.
    fn compact_pieces(&self) -> Result<bool, Error> {
        let (mut after, mut done) = (Vec::new(), false);
        loop {
            match self.compact_piece(&after) {
                Ok(Some(last)) => (after, done) = (last, true),
                Ok(None) => return Ok(done),
                Err(error) if error.is_disk_full() && done => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    fn compact_piece(&self, after: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let Some(lock) = self.folder.try_lock()? else { return Ok(None) };
        let writer = RocksIndexWriter::open(self, lock, (CompactionMode::Never, true))?;
        let mut writer = Box::new(writer);
        let Some(last) = writer.rewrite_piece(after)? else { return Ok(None) };
        let position = writer.view().position();
        writer.publish(position)?;
        Ok(Some(last))
    }
}

impl Index for RocksIndex {
    fn compact(&self) -> Result<bool, Error> {
        if self.folder.newest()?.is_none() {
            return Ok(false);
        }
        match self.compact_whole() {
            // A full compaction needs space. Rewriting single files without deleted data frees
            // some.
            Err(error) if error.is_disk_full() && self.compact_pieces()? => {
                match self.compact_whole() {
                    Err(error) if error.is_disk_full() => Ok(true),
                    done => done,
                }
            }
            done => done,
        }
    }

    fn snapshot(&self) -> Result<Arc<dyn Snapshot>, Error> {
        let mut open = locked(&self.open);
        loop {
            let Some(generation) = self.folder.newest()? else {
                return Ok(Arc::new(EmptySnapshot));
            };
            if let Some((known, held)) = &*open
                && *known == generation
                && let Some(held) = held.upgrade()
            {
                return Ok(held);
            }
            // The generation was removed meanwhile, so there is a newer one.
            let Some(lease) = self.folder.hold(generation)? else { continue };
            let path = self.folder.path(generation);
            if let Some(sealer) = &self.sealer {
                sealer.check(&path, generation)?;
            }
            let database = RocksDatabase::open_read_only(&path, generation.position, &self.cache)?;
            let held = Arc::new(database.leased(lease));
            *open = Some((generation, Arc::downgrade(&held)));
            return Ok(held);
        }
    }

    fn position(&self) -> Result<LogPosition, Error> {
        Ok(self.folder.newest()?.map_or(0, |generation| generation.position))
    }

    fn try_writer(&self) -> Result<Option<Box<dyn IndexWriter>>, Error> {
        let Some(lock) = self.folder.try_lock()? else { return Ok(None) };
        let writer = RocksIndexWriter::open(self, lock, (CompactionMode::AsNeeded, true))?;
        Ok(Some(Box::new(writer)))
    }

    fn tidy(&self) -> Result<Vec<PathBuf>, Error> {
        if let Some(_lock) = self.folder.try_lock()? {
            match (&self.sealer, self.folder.newest()?) {
                (Some(sealer), Some(newest)) => {
                    let folder = self.folder.path(newest);
                    sealer.with_links_changed(&folder, || self.folder.tidy())?;
                }
                _ => self.folder.tidy()?,
            }
        }
        self.folder.older()
    }

    fn empty_writer(&self, timeout: Duration) -> Result<Box<dyn IndexWriter>, Error> {
        let lock = self.folder.lock(timeout)?;
        let writer = RocksIndexWriter::open(self, lock, (CompactionMode::AsNeeded, false))?;
        Ok(Box::new(writer))
    }
}

debug_by_name!(RocksIndex { folder });

/// Returns a function that converts RocksDB's errors. Corruption and missing files need a repair;
/// after any other error the caller may retry.
fn index_error(action: &'static str) -> impl FnOnce(rocksdb::Error) -> Error {
    move |source| {
        let is_missing = source.as_ref().contains("No such file or directory");
        if source.kind() == rocksdb::ErrorKind::Corruption || is_missing {
            return Error::DamagedIndex { what: source.into_string() };
        }
        Error::Index { action, source: source.into() }
    }
}

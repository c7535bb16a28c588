//! Writes the next generation of the index.

use super::folder::{GenerationId, IndexFolder};
use super::generation_seal::{IndexSealer, SealedFileList};
use super::options::{self, OBJECTS, ROWS};
use super::paced_sync::with_paced_sync;
use super::read::{RocksDatabase, family_of};
use super::{POSITION_KEY, RocksIndex, index_error};
use crate::backend::files::LockedFile;
use crate::backend::{
    self, Error, IndexWriter, LogPosition, RowBatch, ScanDirection, Snapshot, TableId, check_tables,
};
use rocksdb::properties::BACKGROUND_ERRORS;
use rocksdb::{
    BottommostLevelCompaction, CompactOptions, FlushOptions, WaitForCompactOptions, WriteBatch,
    WriteOptions,
};
use std::collections::HashMap;
use std::fs;
use twox_hash::XxHash3_64;

/// Object files that are smaller than this, and smaller than half of the target size, are merged
/// once there are [`SMALL_FILES`] of them. So each object is rewritten only a few times, and a
/// store of any size has few files.
const SMALL_BYTES: u64 = 8 << 20;
const SMALL_FILES: usize = 16;
/// The number of RocksDB's last level by default. `options` does not change it.
const LAST_LEVEL: i32 = 6;
/// The maximum number of written rows that are read back before publishing.
const SAMPLE_ROWS: usize = 512;

/// How much is compacted before a generation is published.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CompactionMode {
    /// Only enough to keep the number of files small.
    AsNeeded,
    /// Everything, so that nothing overwritten or deleted remains in the files.
    Full,
    /// Nothing, for [`RocksIndexWriter::rewrite_piece`].
    Never,
}

/// The writer of the next generation, in the folder `work/`.
pub(super) struct RocksIndexWriter {
    /// `None` once it is closed.
    database: Option<RocksDatabase>,
    folder: IndexFolder,
    /// The newest generation when the writer was opened; `None` if there was none.
    base: Option<GenerationId>,
    sample: ReadBackSample,
    compaction: CompactionMode,
    object_file_bytes: u64,
    sealer: Option<IndexSealer>,
    /// The sealed files of `base`; empty once the next generation is published.
    sealed: SealedFileList,
    _lock: LockedFile,
}

impl RocksIndexWriter {
    /// Opens the folder `work/` for writing: a copy of the newest generation if `is_copy`,
    /// otherwise an empty index. `lock` is the write lock.
    pub(super) fn open(
        index: &RocksIndex,
        lock: LockedFile,
        (compaction, is_copy): (CompactionMode, bool),
    ) -> Result<Self, Error> {
        let (folder, sealer) = (&index.folder, index.sealer.clone());
        let base = folder.newest()?;
        let sealed = match (&sealer, base) {
            (Some(sealer), Some(base)) => sealer.check(&folder.path(base), base)?,
            _ => SealedFileList::new(),
        };
        folder.tidy()?;
        let bytes = base.map_or(Ok(0), |base| folder.table_bytes(base))?;
        let object_file_bytes = options::object_file_bytes(bytes);
        let mut writer = Self {
            database: None,
            folder: folder.clone(),
            base,
            sample: ReadBackSample::default(),
            compaction,
            object_file_bytes,
            sealer,
            sealed,
            _lock: lock,
        };
        let copy = base.filter(|_| is_copy);
        folder.copy_to_work(copy)?;
        // The new hard links changed the times of the files of the generation. The new times are
        // noted, because its readers would otherwise verify all of its files again.
        if let (Some(sealer), Some(base)) = (&writer.sealer, base) {
            sealer.note(&writer.sealed, &folder.path(base));
        }
        let position = copy.map(|generation| generation.position);
        let compacted = compaction != CompactionMode::Never;
        let families = options::families(&index.cache, object_file_bytes, compacted);
        let (work, clustered) = (folder.work(), index.clustered);
        writer.database = Some(RocksDatabase::open_work(&work, position, families, clustered)?);
        Ok(writer)
    }

    fn database(&self) -> &RocksDatabase {
        self.database.as_ref().expect("open until it is published or dropped")
    }

    fn put(&self, batch: WriteBatch) -> Result<(), Error> {
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        self.database().rocks().write_opt(batch, &options).map_err(index_error("write to"))
    }

    fn flush(&self) -> Result<(), Error> {
        let database = self.database();
        let families = [database.family(ROWS)?, database.family(OBJECTS)?];
        let flush = database.rocks().flush_cfs_opt(&families, &FlushOptions::default());
        flush.map_err(index_error("flush"))
    }

    fn compact(&self) -> Result<(), Error> {
        let database = self.database();
        let rocks = database.rocks();
        if self.compaction == CompactionMode::Never {
            return Ok(());
        }
        let wait = WaitForCompactOptions::default();
        rocks.wait_for_compact(&wait).map_err(index_error("compact"))?;
        if self.compaction == CompactionMode::Full {
            let mut options = CompactOptions::default();
            options.set_bottommost_level_compaction(BottommostLevelCompaction::Force);
            for family in [ROWS, OBJECTS] {
                let family = database.family(family)?;
                rocks.compact_range_cf_opt(family, None::<&[u8]>, None::<&[u8]>, &options);
            }
        } else {
            self.merge_small_objects()?;
        }
        rocks.wait_for_compact(&wait).map_err(index_error("compact"))?;
        // RocksDB reports the errors of a range compaction only in this property.
        match rocks.property_int_value(BACKGROUND_ERRORS).map_err(index_error("compact"))? {
            None | Some(0) => Ok(()),
            Some(_) => Err(Error::Index {
                action: "compact",
                source: "a file of the index could not be read or written".into(),
            }),
        }
    }

    fn merge_small_objects(&self) -> Result<(), Error> {
        let database = self.database();
        let files = database.rocks().live_files().map_err(index_error("list the files of"))?;
        let limit = SMALL_BYTES.min(self.object_file_bytes / 2);
        let small: Vec<_> = files
            .iter()
            .filter(|file| file.column_family_name == OBJECTS && (file.size as u64) < limit)
            .collect();
        if small.len() >= SMALL_FILES {
            let first = small.iter().filter_map(|file| file.start_key.as_deref()).min();
            let last = small.iter().filter_map(|file| file.end_key.as_deref()).max();
            let mut options = CompactOptions::default();
            options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
            let family = database.family(OBJECTS)?;
            database.rocks().compact_range_cf_opt(family, first, last, &options);
        }
        Ok(())
    }

    /// Rewrites the live objects of one file: the first file of the last level that begins after
    /// the key `after` and whose live objects take at most seven eighths of it. This needs only as
    /// much space as these objects. The space of the old file is freed when the old generation is
    /// removed. Returns the last key of the old file; `None` if there is no such file.
    pub(super) fn rewrite_piece(&mut self, after: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut files =
            self.database().rocks().live_files().map_err(index_error("list the files of"))?;
        // Files of other levels may contain deletions that hide objects of the last level.
        files.retain(|file| file.column_family_name == OBJECTS && file.level == LAST_LEVEL);
        files.sort_by(|one, two| one.start_key.cmp(&two.start_key));
        for file in files {
            let (Some(first), Some(last)) = (file.start_key, file.end_key) else { continue };
            if *first <= *after {
                continue;
            }
            let end = [last.as_slice(), &[0]].concat();
            let all = ScanDirection::Ascending;
            let rows = self.database().scan(backend::OBJECTS, &first, &end, all, usize::MAX)?;
            let bytes: usize = rows.iter().map(|(key, value)| key.len() + value.len()).sum();
            if bytes > file.size - file.size / 8 {
                continue;
            }
            let database = self.database();
            let family = database.family(OBJECTS)?;
            let dropped = database.rocks().delete_file_in_range_cf(family, &first, &last);
            dropped.map_err(index_error("drop a file of"))?;
            let rows = rows.into_iter().map(|(key, value)| (backend::OBJECTS, key, Some(value)));
            self.write(RowBatch { rows: rows.collect() })?;
            return Ok(Some(last));
        }
        Ok(None)
    }

    /// Closes the index and publishes it as the next generation, at this position of the journal.
    fn finish(&mut self, position: LogPosition) -> Result<(), Error> {
        let mut batch = WriteBatch::default();
        let bytes = self.database().position_bytes(position);
        batch.put_cf(self.database().family(ROWS)?, POSITION_KEY, bytes);
        self.put(batch)?;
        with_paced_sync(&self.folder.work(), || self.flush().and_then(|()| self.compact()))?;
        self.sample.check(self.database())?;
        self.database = None;
        let number = self.base.map_or(1, |base| base.number + 1);
        let next = GenerationId { number, position };
        let list = self.folder.publish(next, |work| {
            let base = self.base.map(|base| self.folder.path(base));
            let base = base.as_deref().map(|base| (base, &self.sealed));
            self.sealer.as_ref().map(|sealer| sealer.seal(work, next, base)).transpose()
        })?;
        // The generation is published, so a failure here is no error. The next writer removes what
        // cannot be removed now.
        let _ = self.folder.tidy();
        if let (Some(sealer), Some(list)) = (&self.sealer, list) {
            sealer.note(&list, &self.folder.path(next));
            self.sealed = SealedFileList::new();
        }
        Ok(())
    }
}

impl IndexWriter for RocksIndexWriter {
    fn view(&self) -> &dyn Snapshot {
        self.database()
    }

    fn write(&mut self, batch: RowBatch) -> Result<(), Error> {
        check_tables(&batch)?;
        let database = self.database();
        let (rows, objects) = (database.family(ROWS)?, database.family(OBJECTS)?);
        let clustered = database.clustered();
        clustered.check(&batch)?;
        let mut writes = WriteBatch::default();
        for (table, key, value) in &batch.rows {
            let family = if family_of(*table) == OBJECTS { objects } else { rows };
            match value {
                Some(value) => writes.put_cf(family, clustered.stored_key(*table, key), value),
                None => writes.delete_cf(family, clustered.stored_key(*table, key)),
            }
        }
        self.put(writes)?;
        for (table, key, value) in batch.rows {
            self.sample.note(table, key, value.as_deref());
        }
        Ok(())
    }

    fn publish(mut self: Box<Self>, position: LogPosition) -> Result<(), Error> {
        self.finish(position)
    }
}

impl Drop for RocksIndexWriter {
    fn drop(&mut self) {
        self.database = None;
        let work = self.folder.work();
        if work.exists() {
            // If the folder cannot be removed now, the next writer removes it.
            let _ = fs::remove_dir_all(work);
            if let (Some(sealer), Some(base)) = (&self.sealer, self.base)
                && !self.sealed.is_empty()
            {
                sealer.note(&self.sealed, &self.folder.path(base));
            }
        }
    }
}

/// A sample of the written rows, to be read back before publishing. It has at most [`SAMPLE_ROWS`]
/// rows, spread about evenly over all writes.
struct ReadBackSample {
    /// The rows by the hash of table and key. Of two keys with the same hash, the first is kept.
    rows: HashMap<u64, SampledRow>,
    /// The number of rows written so far.
    seen: u64,
    /// Of this number of written rows, one is sampled. The number doubles when the sample is full.
    every: u64,
}

/// A row as it was last written.
struct SampledRow {
    table: TableId,
    key: Vec<u8>,
    /// The hash of the value; `None` if the row was deleted.
    expected: Option<blake3::Hash>,
}

impl Default for ReadBackSample {
    fn default() -> Self {
        Self { rows: HashMap::new(), seen: 0, every: 1 }
    }
}

impl ReadBackSample {
    /// Notes a written row; `value` is `None` if the row was deleted.
    fn note(&mut self, table: TableId, key: Vec<u8>, value: Option<&[u8]>) {
        // Most rows are looked up here but not sampled, so the key of the map is a cheap hash.
        let hash = XxHash3_64::oneshot_with_seed(u64::from(table.0), &key);
        self.seen += 1;
        let is_sampled = match self.rows.get(&hash) {
            Some(known) => (known.table, &known.key) == (table, &key),
            None => self.seen.is_multiple_of(self.every),
        };
        if is_sampled {
            let expected = value.map(blake3::hash);
            self.rows.insert(hash, SampledRow { table, key, expected });
        }
        if self.rows.len() > SAMPLE_ROWS {
            self.every *= 2;
            let mut keep = false;
            self.rows.retain(|_, _| {
                keep = !keep;
                keep
            });
        }
    }

    fn check(&self, database: &RocksDatabase) -> Result<(), Error> {
        for SampledRow { table, key, expected } in self.rows.values() {
            if database.get(*table, key)?.as_deref().map(blake3::hash) != *expected {
                let source = format!("a row of table {} does not read back", table.0);
                return Err(Error::Index { action: "check", source: source.into() });
            }
        }
        Ok(())
    }
}

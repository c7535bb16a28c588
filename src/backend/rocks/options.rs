//! The configuration of RocksDB. The measurements behind it are in `docs/benchmarks.md`.

use crate::backend::files::PIECE_BYTES;
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DBCompressionType, InfoLogger, LogLevel,
    LruCacheOptions, Options,
};

/// The column family of all tables but `OBJECTS`; its keys begin with the table's number.
pub(super) const ROWS: &str = "default";
/// The column family of the table `OBJECTS`.
pub(super) const OBJECTS: &str = "objects";

const MB: usize = 1 << 20;
/// Cache for blocks of rows, their indexes and their filters, of all generations open through one
/// handle.
const CACHE_BYTES: usize = 16 * MB;
/// Memory for written rows before RocksDB flushes them by itself.
const MEMORY_BYTES: usize = 32 * MB;
/// Pause in microseconds between two pieces ([`PIECE_BYTES`]) that the index writer writes, so that
/// concurrent syncs of records can proceed: 330 MB/s.
pub(super) const PIECE_MICROS: i64 = 200;
/// Maximum number of open files per generation, for the writer.
const OPEN_FILES: i32 = 256;
/// Maximum number of open files per generation, for readers. RocksDB reserves ten of them for other
/// purposes, and opens a quarter of the rest when it opens a database.
const READ_FILES: i32 = 42;
/// Number of shard bits of the block cache and of the table cache (shards reduce lock contention).
/// RocksDB's default is 6; every shard costs memory when a store is opened.
const CACHE_SHARD_BITS: i32 = 2;
const FILE_CACHE_SHARD_BITS: i32 = 0;
/// Number of level 0 files that start a compaction. Below it, a write only adds files.
const LEVEL_ZERO_FILES: i32 = 10;

/// Creates the cache of one handle. Tables shared by two generations are cached once.
pub(super) fn cache() -> Cache {
    let mut options = LruCacheOptions::default();
    options.set_capacity(CACHE_BYTES);
    options.set_num_shard_bits(CACHE_SHARD_BITS);
    Cache::new_lru_cache_opts(&options)
}

/// Returns the options of the whole database.
pub(super) fn database() -> Options {
    let mut options = Options::default();
    options.set_atomic_flush(true);
    options.set_max_open_files(OPEN_FILES);
    options.set_table_cache_num_shard_bits(FILE_CACHE_SHARD_BITS);
    options.set_db_write_buffer_size(MEMORY_BYTES);
    options.set_max_background_jobs(2);
    options.set_max_file_opening_threads(1);
    options.set_skip_stats_update_on_db_open(true);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options.set_manifest_preallocation_size(64 << 10);
    options.set_writable_file_max_buffer_size(PIECE_BYTES);
    options.set_bytes_per_sync(PIECE_BYTES);
    // With a logger set, RocksDB writes no LOG file into the folder.
    options.set_info_logger(InfoLogger::new_callback_logger(LogLevel::Error, |level, text| {
        if matches!(level, LogLevel::Error | LogLevel::Fatal) {
            tracing::debug!(target: "forge_store::backend::rocks", "{text}");
        }
    }));
    options
}

/// Returns the [`database`] options for reading only.
pub(super) fn database_to_read() -> Options {
    let mut options = database();
    options.set_max_open_files(READ_FILES);
    options
}

/// Returns the [`database`] options for writing.
pub(super) fn database_to_write() -> Options {
    const FAIRNESS: i32 = 10;
    let mut options = database();
    let a_second = PIECE_BYTES as i64 * 1_000_000 / PIECE_MICROS;
    options.set_ratelimiter(a_second, PIECE_MICROS, FAIRNESS);
    options
}

/// Returns the target size of object files in an index of `bytes` bytes: a 32nd of it, but at least
/// 256 KiB and at most 64 MiB. This keeps the number of files low, and on a full disk one file can
/// be compacted within the space reserved for that.
pub(super) fn object_file_bytes(bytes: u64) -> u64 {
    (bytes / 32).clamp(256 << 10, 64 * MB as u64)
}

/// Returns both column families. `ROWS` is compacted level by level; keys of `OBJECTS` only grow,
/// so its files never overlap and are moved from level to level without being read.
pub(super) fn families(
    cache: &Cache,
    object_file_bytes: u64,
    compacted: bool,
) -> [ColumnFamilyDescriptor; 2] {
    let [mut rows, mut objects] = [rows(cache), objects(cache, object_file_bytes)];
    for options in [&mut rows, &mut objects] {
        options.set_disable_auto_compactions(!compacted);
    }
    named(rows, objects)
}

/// Returns both column families for reading only. The filters of the rows' last level are not used:
/// most requested keys exist there, a block shows when one does not, and a process with few reads
/// would load 400 KB of filter to read a block of 8 KB.
pub(super) fn families_to_read(cache: &Cache) -> [ColumnFamilyDescriptor; 2] {
    let (mut rows, objects) = (rows(cache), objects(cache, object_file_bytes(0)));
    rows.set_optimize_filters_for_hits(true);
    named(rows, objects)
}

fn named(rows: Options, objects: Options) -> [ColumnFamilyDescriptor; 2] {
    [ColumnFamilyDescriptor::new(ROWS, rows), ColumnFamilyDescriptor::new(OBJECTS, objects)]
}

fn rows(cache: &Cache) -> Options {
    let mut blocks = blocks(cache);
    blocks.set_bloom_filter(10.0, false);
    let mut options = family(&blocks);
    options.set_write_buffer_size(16 * MB);
    options.set_target_file_size_base(8 * MB as u64);
    // Level 1 is as large as the files of level 0 when they are merged. A smaller level would be
    // written again by each merge.
    options.set_max_bytes_for_level_base(32 * MB as u64);
    options
}

fn objects(cache: &Cache, file_bytes: u64) -> Options {
    let mut blocks = blocks(cache);
    // Reads of objects bypass the cache, so their index stays with the open file. Storing only one
    // in sixteen keys in full halves its size.
    blocks.set_cache_index_and_filter_blocks(false);
    blocks.set_index_block_restart_interval(16);
    let mut options = family(&blocks);
    options.set_write_buffer_size(32 * MB);
    options.set_target_file_size_base(file_bytes);
    // Nothing is ever merged, so one level below level 0 is enough.
    options.set_max_bytes_for_level_base(1 << 50);
    options
}

fn family(blocks: &BlockBasedOptions) -> Options {
    let mut options = Options::default();
    options.set_compression_type(DBCompressionType::None);
    options.set_level_zero_file_num_compaction_trigger(LEVEL_ZERO_FILES);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_block_based_table_factory(blocks);
    options
}

fn blocks(cache: &Cache) -> BlockBasedOptions {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_size(8 << 10);
    blocks.set_block_cache(cache);
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    blocks
}

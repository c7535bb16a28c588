//! How RocksDB is set up. The figures that led here are in `docs/benchmarks.md`.

use crate::backend::files::PIECE_BYTES;
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DBCompressionType, InfoLogger, LogLevel,
    LruCacheOptions, Options,
};

/// The family of all tables but `OBJECTS`; a key begins with its table's number.
pub(super) const ROWS: &str = "default";
/// The family of the table `OBJECTS`.
pub(super) const OBJECTS: &str = "objects";

const MB: usize = 1 << 20;
/// Blocks of rows, their indexes and their filters, of all generations that one handle has open.
const CACHE_BYTES: usize = 32 * MB;
/// What an applier holds in memory before RocksDB writes it out by itself.
const MEMORY_BYTES: usize = 32 * MB;
/// Between two pieces ([`PIECE_BYTES`]) whoever applies waits this many microseconds, so that who syncs a record meanwhile has its
/// turn: 330 MB/s.
pub(super) const PIECE_MICROS: i64 = 200;
/// Files open at once, per generation, of who writes one.
const OPEN_FILES: i32 = 256;
/// The same of who reads. RocksDB opens a quarter of so many at once, whichever they are; ten it keeps for other things.
const READ_FILES: i32 = 42;
/// How often RocksDB halves the cache of blocks, and that of open files, so that not all wait for one lock. It is 6 times if
/// nothing is said, and each part is memory that a process touches for the first time.
const CACHE_HALVINGS: i32 = 2;
const FILE_CACHE_HALVINGS: i32 = 0;
/// Files of level 0 that start a compaction. Until then an apply only adds files.
const LEVEL_ZERO_FILES: i32 = 10;

/// A cache for one handle. Tables that two generations share are in it once.
pub(super) fn cache() -> Cache {
    let mut options = LruCacheOptions::default();
    options.set_capacity(CACHE_BYTES);
    options.set_num_shard_bits(CACHE_HALVINGS);
    Cache::new_lru_cache_opts(&options)
}

/// What the whole database shares.
pub(super) fn database() -> Options {
    let mut options = Options::default();
    options.set_atomic_flush(true);
    options.set_max_open_files(OPEN_FILES);
    options.set_table_cache_num_shard_bits(FILE_CACHE_HALVINGS);
    options.set_db_write_buffer_size(MEMORY_BYTES);
    options.set_max_background_jobs(2);
    options.set_max_file_opening_threads(1);
    options.set_skip_stats_update_on_db_open(true);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
    options.set_manifest_preallocation_size(64 << 10);
    options.set_writable_file_max_buffer_size(PIECE_BYTES);
    options.set_bytes_per_sync(PIECE_BYTES);
    // With a logger of our own RocksDB writes no LOG file into the folder.
    options.set_info_logger(InfoLogger::new_callback_logger(LogLevel::Error, |level, text| {
        if matches!(level, LogLevel::Error | LogLevel::Fatal) {
            tracing::debug!(target: "forge_store::backend::rocks", "{text}");
        }
    }));
    options
}

/// As [`database`], to be read only.
pub(super) fn database_to_read() -> Options {
    let mut options = database();
    options.set_max_open_files(READ_FILES);
    options
}

/// As [`database`], to be written to.
pub(super) fn database_to_write() -> Options {
    const FAIRNESS: i32 = 10;
    let mut options = database();
    let a_second = PIECE_BYTES as i64 * 1_000_000 / PIECE_MICROS;
    options.set_ratelimiter(a_second, PIECE_MICROS, FAIRNESS);
    options
}

/// How large files of objects become in an index of so many bytes: a 32nd of it. So there are few of them, and on a full disk one
/// can be written anew without what was dropped from it in the room that is kept for that.
pub(super) fn object_file_bytes(bytes: u64) -> u64 {
    (bytes / 32).clamp(256 << 10, 64 * MB as u64)
}

/// Both families. `ROWS` is merged level by level; in `OBJECTS` keys only grow, so its files never overlap and are
/// moved from level to level without being read.
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

/// Both families, to be read only. Of the rows' lowest level filters are left alone: most of what is asked for is there, a
/// block tells of the rest, and a process that asks little would read 400 KB of filter to read one of 8.
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
    // Small, because the lowest levels are rewritten by whoever happens to apply.
    options.set_max_bytes_for_level_base(8 * MB as u64);
    options
}

fn objects(cache: &Cache, file_bytes: u64) -> Options {
    let mut blocks = blocks(cache);
    // Reads of objects leave the cache alone, so what says where they are stays with the open file. With one in sixteen of
    // its keys whole it is half as large.
    blocks.set_cache_index_and_filter_blocks(false);
    blocks.set_index_block_restart_interval(16);
    let mut options = family(&blocks);
    options.set_write_buffer_size(32 * MB);
    options.set_target_file_size_base(file_bytes);
    // One level below level 0 is enough where nothing is ever merged.
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

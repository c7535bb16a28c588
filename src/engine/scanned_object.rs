//! Scanned deltas and chunks: decompressed, checked, and parsed only as far as needed to know where
//! their entries are.

use super::object;
use super::object_cache::ObjectCache;
use super::parallel::{self, cores};
use super::state::SharedBuffer;
use crate::backend::Snapshot;
use crate::error::{Error, Result};
use crate::format::{ChunkEntry, Delta, DeltaChangeRange, ObjectKind, StateChunk, decode_object};
use std::ops::Range;
use std::sync::Arc;

/// Below this number of objects one thread is faster than two.
const PARALLEL_OBJECTS: usize = 12;
/// Minimum cost for a second thread, as computed by
/// [`materialize::cost`](super::materialize::cost): starting the first thread of a process is slow,
/// because its memory is new.
const PARALLEL_COST: u64 = 1_000_000;
/// A cost that always justifies more threads, for callers without an estimate.
pub(super) const ALWAYS_PARALLEL_COST: u64 = u64::MAX;
/// Maximum number of objects per read of the index.
const OBJECTS_AT_ONCE: usize = 16;
/// Maximum number of threads. More would not be faster.
const MAX_WORKERS: usize = 8;

/// A delta or chunk: its bytes, and where its entries are in them.
pub(crate) struct ScannedObject {
    pub(crate) bytes: SharedBuffer,
    pub(crate) ranges: ScannedRanges,
}

/// Where the changes of a delta, or the entries of a chunk, are in its bytes.
pub(crate) enum ScannedRanges {
    Changes(Vec<DeltaChangeRange>),
    Entries(Vec<ChunkEntry>),
}

impl ScannedObject {
    /// Returns how many bytes of memory it takes.
    pub(crate) fn weight(&self) -> usize {
        let ranges = match &self.ranges {
            ScannedRanges::Changes(changes) => size_of_val(changes.as_slice()),
            ScannedRanges::Entries(entries) => size_of_val(entries.as_slice()),
        };
        self.bytes.len() + ranges
    }

    /// Returns the number of changes or entries.
    pub(super) fn len(&self) -> usize {
        match &self.ranges {
            ScannedRanges::Changes(changes) => changes.len(),
            ScannedRanges::Entries(entries) => entries.len(),
        }
    }

    pub(super) fn first_key(&self) -> Option<&[u8]> {
        let key = match &self.ranges {
            ScannedRanges::Changes(changes) => &changes.first()?.key,
            ScannedRanges::Entries(entries) => &entries.first()?.key,
        };
        Some(self.at(key))
    }

    pub(super) fn last_key(&self) -> Option<&[u8]> {
        let key = match &self.ranges {
            ScannedRanges::Changes(changes) => &changes.last()?.key,
            ScannedRanges::Entries(entries) => &entries.last()?.key,
        };
        Some(self.at(key))
    }

    /// Returns the bytes at a range.
    pub(crate) fn at(&self, range: &Range<u32>) -> &[u8] {
        let bytes = self.bytes.get(range.start as usize..range.end as usize);
        bytes.expect("scanned ranges lie inside their object")
    }

    fn open(kind: ObjectKind, number: u64, encoded: &[u8]) -> Result<Self> {
        let what = format_args!("the object number {number}");
        let wrong = || Error::corrupt(what);
        let bytes = decode_object(kind, encoded).map_err(wrong())?;
        let ranges = match kind {
            ObjectKind::Chunk => StateChunk::decode(&bytes).map(ScannedRanges::Entries),
            _ => Delta::scan(&bytes).map(ScannedRanges::Changes),
        };
        Ok(Self { ranges: ranges.map_err(wrong())?, bytes: Arc::new(bytes) })
    }
}

/// A snapshot from which objects are read.
pub(crate) trait ObjectSource: Snapshot {
    /// Returns the cache of opened objects, if there is one.
    fn object_cache(&self) -> Option<&ObjectCache>;
}

/// Opens and scans several objects, on all cores if `cost` justifies it. Returns them in the given
/// order, each checked against its id.
pub(crate) fn scan(
    view: &dyn ObjectSource,
    wanted: &[(ObjectKind, u64)],
    cost: u64,
) -> Result<Vec<Arc<ScannedObject>>> {
    let numbers = wanted.iter().map(|(_, number)| *number);
    let mut found = match view.object_cache() {
        Some(cache) => cache.find(numbers),
        None => vec![None; wanted.len()],
    };
    let missing: Vec<(usize, ObjectKind, u64)> = (0..)
        .zip(wanted)
        .zip(&found)
        .filter(|(_, found)| found.is_none())
        .map(|((place, (kind, number)), _)| (place, *kind, *number))
        .collect();
    let cost = (cost / wanted.len().max(1) as u64).saturating_mul(missing.len() as u64);
    let on_all_cores = missing.len() >= PARALLEL_OBJECTS && cost >= PARALLEL_COST;
    let opened = open_all(view, &missing, on_all_cores)?;
    if let Some(cache) = view.object_cache() {
        cache.keep(missing.iter().map(|(_, _, number)| *number).zip(&opened));
    }
    for ((place, ..), opened) in missing.iter().zip(opened) {
        if let Some(slot) = found.get_mut(*place) {
            *slot = Some(opened);
        }
    }
    Ok(found.into_iter().flatten().collect())
}

/// Reads, opens and scans objects that are not in the cache. Returns them in the given order.
fn open_all(
    view: &dyn ObjectSource,
    missing: &[(usize, ObjectKind, u64)],
    on_all_cores: bool,
) -> Result<Vec<Arc<ScannedObject>>> {
    let open_share = |wanted: &&[(usize, ObjectKind, u64)]| -> Result<Vec<Arc<ScannedObject>>> {
        parallel::yield_to_foreground();
        let numbers: Vec<u64> = wanted.iter().map(|(_, _, number)| *number).collect();
        let encoded = object::encoded_many(view, &numbers)?;
        let open_one = |((_, kind, number), encoded): (&(usize, ObjectKind, u64), Vec<u8>)| {
            ScannedObject::open(*kind, *number, &encoded).map(Arc::new)
        };
        wanted.iter().zip(encoded).map(open_one).collect()
    };
    let parts: Vec<Result<_>> = if on_all_cores {
        // Chunks are much larger than deltas. With few objects at a time, all threads stay busy.
        let objects_per_share = (missing.len() / (4 * cores())).clamp(1, OBJECTS_AT_ONCE);
        let shares: Vec<_> = missing.chunks(objects_per_share).collect();
        parallel::map_while(&shares, MAX_WORKERS, open_share, || ()).0
    } else {
        missing.chunks(OBJECTS_AT_ONCE).map(|wanted| open_share(&wanted)).collect()
    };
    let mut opened = Vec::with_capacity(missing.len());
    for part in parts {
        opened.extend(part?);
    }
    Ok(opened)
}

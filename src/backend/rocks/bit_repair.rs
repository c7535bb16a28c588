//! Finding the one wrong bit of a file by the file's BLAKE3 hash.
//!
//! BLAKE3 hashes chunks of 1,024 bytes and then pairs of hashes, level by level; the last hash of a
//! level without a partner moves up unchanged (the
//! [paper](https://github.com/BLAKE3-team/BLAKE3-specs/blob/master/blake3.pdf), 2.1). With all
//! these hashes in memory, trying a bit means hashing its chunk and one pair per level: about a
//! microsecond, even in a large file.

use blake3::hazmat::{
    ChainingValue, HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root,
};
use blake3::{BLOCK_LEN, CHUNK_LEN, Hash, Hasher};
use std::iter;
use std::num::NonZero;
use std::ops::Range;
use std::sync::OnceLock;
use std::thread::{available_parallelism, scope};

/// Flips the bit within `places` that gives `bytes` this hash. Returns whether there is one;
/// otherwise `bytes` is unchanged.
pub(super) fn by_hash(bytes: &mut [u8], hash: &Hash, places: Range<usize>) -> bool {
    let Some((byte, mask)) = wrong_bit(bytes, hash, &places) else { return false };
    bytes.get_mut(byte).map(|byte| *byte ^= mask).is_some()
}

/// Returns the index of the wrong byte, and the mask of its wrong bit.
fn wrong_bit(bytes: &[u8], hash: &Hash, places: &Range<usize>) -> Option<(usize, u8)> {
    let tree = HashTree::of(bytes);
    let chunks = places.start / CHUNK_LEN..places.end.min(bytes.len()).div_ceil(CHUNK_LEN);
    let found = OnceLock::new();
    let cores = available_parallelism().map_or(1, NonZero::get);
    let share = |core: usize| {
        for chunk in chunks.clone().skip(core).step_by(cores) {
            if found.get().is_some() {
                break;
            }
            if let Some(bit) = tree.wrong_bit(bytes, chunk, places, hash) {
                // At most one bit fits: two would be two contents with the same hash.
                let _ = found.set(bit);
            }
        }
    };
    scope(|scope| {
        let share = &share;
        (1..cores).for_each(|core| drop(scope.spawn(move || share(core))));
        share(0);
    });
    found.into_inner()
}

/// The hashes of a file's chunks and, level by level, of pairs of hashes, up to the last pair.
struct HashTree(Vec<Vec<ChainingValue>>);

impl HashTree {
    fn of(bytes: &[u8]) -> Self {
        let chunk =
            |(number, chunk): (usize, &[u8])| begun(number).update(chunk).finalize_non_root();
        let chunks = bytes.chunks(CHUNK_LEN).enumerate().map(chunk).collect();
        let above = |below: &Vec<ChainingValue>| {
            (below.len() > 2).then(|| below.chunks(2).map(one_of).collect())
        };
        Self(iter::successors(Some(chunks), above).collect())
    }

    fn wrong_bit(
        &self,
        bytes: &[u8],
        number: usize,
        places: &Range<usize>,
        wanted: &Hash,
    ) -> Option<(usize, u8)> {
        let start = number * CHUNK_LEN;
        let mut chunk = bytes.get(start..bytes.len().min(start + CHUNK_LEN))?.to_vec();
        // The part of the chunk before a block is hashed once for all bits of the block.
        let mut before = begun(number);
        for block in (0..chunk.len()).step_by(BLOCK_LEN) {
            let end = chunk.len().min(block + BLOCK_LEN);
            for place in (block..end).filter(|place| places.contains(&(start + place))) {
                for mask in (0..8).map(|bit| 1 << bit) {
                    chunk[place] ^= mask;
                    let mut hasher = before.clone();
                    hasher.update(&chunk[block..]);
                    if self.root_with(number, &hasher, &chunk) == *wanted {
                        return Some((start + place, mask));
                    }
                    chunk[place] ^= mask;
                }
            }
            before.update(&chunk[block..end]);
        }
        None
    }

    /// Returns the hash of the file with chunk `number` replaced by `chunk`. `hasher` has read
    /// `chunk`.
    fn root_with(&self, number: usize, hasher: &Hasher, chunk: &[u8]) -> Hash {
        let [chunks, ..] = self.0.as_slice() else { return blake3::hash(chunk) };
        if chunks.len() == 1 {
            return blake3::hash(chunk);
        }
        let mut value = hasher.finalize_non_root();
        let mut at = number;
        for level in &self.0 {
            if let Some(other) = level.get(at ^ 1) {
                let (left, right) =
                    if at.is_multiple_of(2) { (&value, other) } else { (other, &value) };
                if level.len() == 2 {
                    return merge_subtrees_root(left, right, Mode::Hash);
                }
                value = merge_subtrees_non_root(left, right, Mode::Hash);
            }
            at /= 2;
        }
        unreachable!("the last level is a pair")
    }
}

fn begun(chunk: usize) -> Hasher {
    let mut hasher = Hasher::new();
    hasher.set_input_offset(chunk as u64 * CHUNK_LEN as u64);
    hasher
}

fn one_of(pair: &[ChainingValue]) -> ChainingValue {
    match pair {
        [left, right] => merge_subtrees_non_root(left, right, Mode::Hash),
        _ => pair[0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_bit_is_repaired_in_files_of_all_sizes_and_two_are_left_unchanged() {
        for size in
            [1_usize, 63, 1024, 1025, 2048, 2049, 3000, 4096, 5000, 7 * 1024, 9 * 1024 + 1, 33_000]
        {
            let right: Vec<u8> = (0..size).map(|n| (n * n / 7) as u8).collect();
            let hash = blake3::hash(&right);
            for place in (0..size).step_by(size.div_ceil(23)).chain([size - 1]) {
                let mut bytes = right.clone();
                bytes[place] ^= 1 << (place % 8);
                let wrong = bytes.clone();
                assert!(!by_hash(&mut bytes, &hash, 0..place), "{size}, {place}");
                assert!(!by_hash(&mut bytes, &hash, place + 1..size), "{size}, {place}");
                assert_eq!(bytes, wrong);
                assert!(by_hash(&mut bytes, &hash, place..size), "{size}, {place}");
                assert_eq!(bytes, right);
            }
            let mut bytes = right.clone();
            bytes[0] ^= 1;
            bytes[size - 1] ^= 2;
            let wrong = bytes.clone();
            assert!(!by_hash(&mut bytes, &hash, 0..size.min(2000)));
            assert_eq!(bytes, wrong);
        }
        assert!(!by_hash(&mut [], &blake3::hash(b"x"), 0..10));
    }
}

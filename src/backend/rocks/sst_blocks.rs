//! Reading the entries of RocksDB's table files without RocksDB, correcting a single wrong bit in
//! their lengths and keys.
//!
//! A file is a sequence of blocks. A block is a sequence of entries (bytes shared with the previous
//! key, further bytes of the key, bytes of the value, all as varints; then key suffix and value),
//! the offsets of every sixteenth entry and their number (u32 little-endian), and a trailer of 5
//! bytes: compression type and checksum. The last 8 bytes of a key are its sequence number and
//! whether it was written or deleted. The checksum is defined in RocksDB's `table/format.cc`.

use super::bit_repair;
use std::iter;
use std::ops::Range;
use twox_hash::XxHash3_64;

/// RocksDB's default, which `options` does not change.
const RESTART_ENTRIES: usize = 16;
const TRAILER_BYTES: usize = 5;
const NUMBER_BYTES: usize = 8;
/// Bytes of the footer, from version 6 of RocksDB's table format on: the kind of checksum,
/// `FOOTER_MARK`, the checksum of the footer, the base context of the block checksums, and more.
const FOOTER_BYTES: usize = 53;
const FOOTER_MARK: [u8; 4] = [0x3e, 0, 0x7a, 0];
const XXH3: u8 = 4;
/// Maximum number of bytes of an entry's lengths and key. A wrong bit there can make the rest of
/// the block unreadable. Keys consist of numbers and hashes; none is longer.
const HEADER_BYTES: usize = 96;
/// Maximum distance from the start of a block at which its end is searched.
const MAX_BLOCK_BYTES: usize = 256 << 10;
/// Maximum number of bytes hashed to repair one block: some tenths of a second.
const MAX_HASHED_BYTES: usize = 1 << 30;
/// Maximum number of bytes of a sealed file searched for the wrong bit, from the first wrong block
/// on: a tenth of a second for a block of 8 KB, at most half a minute.
const MAX_TRIED_BYTES: usize = 4 << 20;
/// Maximum number of blocks of a file for which a repair is tried. If more are wrong, nearly
/// everything is.
const MAX_REPAIR_ATTEMPTS: usize = 32;

/// An entry of a block.
pub(super) struct SstEntry {
    pub(super) key: Vec<u8>,
    pub(super) number: u64,
    /// `None` if the key was deleted.
    pub(super) value: Option<Vec<u8>>,
}

/// Returns every entry that can be found, and the number of corrected bits. Reads block by block;
/// after an unreadable block it continues at the next readable one.
pub(super) fn entries(bytes: &[u8]) -> (Vec<SstEntry>, u64) {
    let sum = SstChecksum::of(bytes);
    let (mut found, mut corrected_bits) = (Vec::new(), 0);
    let mut attempts_left = MAX_REPAIR_ATTEMPTS;
    let mut at = 0;
    // Whether a block is known to begin at `at`: after a whole block, the next one begins.
    let mut begins = true;
    while at < bytes.len() {
        let mut block = block(bytes, at);
        let is_right = block.end.zip(sum).is_none_or(|(end, sum)| sum.is_right(bytes, at..end));
        if let Some(sum) = sum
            && begins
            && attempts_left > 0
            && (block.end.is_none() || !is_right)
        {
            attempts_left -= 1;
            if let Some(right) = repair_block(bytes, at, &block, sum) {
                block = right;
                corrected_bits += 1;
            }
        }
        begins = block.end.is_some();
        // A single entry may be a coincidence; several in a row are a block with a damaged end.
        let is_block = begins || block.entries.len() > 1;
        at = block.end.unwrap_or(if is_block { block.stopped + 1 } else { at + 1 });
        if is_block {
            found.append(&mut block.entries);
        }
    }
    (found, corrected_bits)
}

/// The base context of the checksums of a file's blocks.
#[derive(Clone, Copy)]
struct SstChecksum(u32);

impl SstChecksum {
    /// Reads the context from the footer; `None` if the file has no such footer or another kind of
    /// checksum.
    fn of(file: &[u8]) -> Option<Self> {
        let footer = file.get(file.len().checked_sub(FOOTER_BYTES)?..)?;
        let is_known = footer.first() == Some(&XXH3) && footer.get(1..5) == Some(&FOOTER_MARK);
        is_known.then(|| number(footer, 9).map(Self))?
    }

    /// Returns whether the block in this range, including its trailer, has the right checksum.
    fn is_right(self, file: &[u8], block: Range<usize>) -> bool {
        let from = block.start;
        file.get(block).is_some_and(|block| self.agrees(block, from))
    }

    /// Returns whether these bytes have the right checksum for a block at this offset of the file.
    fn agrees(self, block: &[u8], from: usize) -> bool {
        const LAST_BYTE_PRIME: u32 = 0x6b90_83d9;
        let Some((content, trailer)) = block.split_last_chunk::<TRAILER_BYTES>() else {
            return false;
        };
        let hash = XxHash3_64::oneshot(content) as u32;
        let hash = hash ^ u32::from(trailer[0]).wrapping_mul(LAST_BYTE_PRIME);
        let place = (from as u32).wrapping_add((from as u64 >> 32) as u32);
        let context = if self.0 == 0 { 0 } else { self.0 ^ place };
        number(trailer, 1) == Some(hash.wrapping_add(context))
    }
}

/// Repairs a block by flipping the one bit of a length or key that makes its checksum right. Wrong
/// bits in values are not searched: values have their own hashes, and their errors hide no other
/// entries.
fn repair_block(
    bytes: &[u8],
    start: usize,
    broken: &SstBlock,
    sum: SstChecksum,
) -> Option<SstBlock> {
    let bits = 8 * broken.suspects().count();
    let mut left = MAX_HASHED_BYTES;
    broken.ends(bytes, start).into_iter().find_map(|end| {
        left = left.checked_sub(bits.saturating_mul(end - start))?;
        let mut copy = bytes.get(start..end)?.to_vec();
        turn_right(&mut copy, start, broken.suspects(), |copy| sum.agrees(copy, start))?;
        let mut right = block(&copy, 0);
        right.end = right.end.filter(|right| start + right == end).map(|_| end);
        right.end.map(|_| right)
    })
}

/// Flips the first bit at one of these file offsets for which `is_right` accepts the bytes. `start`
/// is the file offset of the bytes. Without such a bit they are unchanged.
pub(super) fn turn_right(
    bytes: &mut [u8],
    start: usize,
    mut places: impl Iterator<Item = usize>,
    is_right: impl Fn(&[u8]) -> bool,
) -> Option<()> {
    places.find_map(|place| {
        (0..8).find_map(|bit| {
            let turn =
                |bytes: &mut [u8]| bytes.get_mut(place - start).map(|byte| *byte ^= 1 << bit);
            turn(bytes)?;
            if is_right(bytes) {
                return Some(());
            }
            turn(bytes);
            None
        })
    })
}

/// Corrects the one wrong bit of a file with a known hash. Returns whether it did; otherwise the
/// file is unchanged.
pub(super) fn repair_file(bytes: &mut [u8], hash: &blake3::Hash) -> bool {
    // The footer comes first: if it is wrong, all blocks look wrong, and it is quick to search.
    let footer = bytes.len().saturating_sub(FOOTER_BYTES)..bytes.len();
    if bit_repair::by_hash(bytes, hash, footer) {
        return true;
    }
    let mut at = 0;
    if let Some(sum) = SstChecksum::of(bytes) {
        // Skips blocks with a right checksum.
        while let Some(end) = block(bytes, at).end.filter(|end| sum.is_right(bytes, at..*end)) {
            at = end;
        }
    }
    bit_repair::by_hash(bytes, hash, at..bytes.len().min(at + MAX_TRIED_BYTES))
}

/// Returns possible ends of the block that starts here: positions after what may be the offsets of
/// its entries and their number. Candidates with several offsets come first: a single one is a zero
/// and a one, which is frequent in rows of numbers.
fn ends(bytes: &[u8], start: usize) -> Vec<usize> {
    let last = bytes.len().min(start.saturating_add(MAX_BLOCK_BYTES));
    let (mut several, mut single) = (Vec::new(), Vec::new());
    for end in start + 8..last.saturating_sub(TRAILER_BYTES - 1) {
        match restarts(bytes, start, end) {
            Some(1) => single.push(end + TRAILER_BYTES),
            Some(_) => several.push(end + TRAILER_BYTES),
            None => {}
        }
    }
    several.append(&mut single);
    several
}

/// Returns the number of entry offsets that end at `end`, if they are plausible: they ascend from
/// zero, and the entries there share no bytes with the previous key. One entry may look wrong,
/// because it may contain the wrong bit.
fn restarts(bytes: &[u8], start: usize, end: usize) -> Option<usize> {
    const NOT_COMPRESSED: u8 = 0;
    let count = number(bytes, end - 4)? as usize;
    let first = (end - 4).checked_sub(count.checked_mul(4)?)?;
    if count == 0 || first <= start || number(bytes, first) != Some(0) {
        return None;
    }
    let (mut before, mut wrong) = (None, 0);
    for place in (first..end - 4).step_by(4) {
        let offset = number(bytes, place)? as usize;
        if before.replace(offset).is_some_and(|before| before >= offset) || offset >= first - start
        {
            return None;
        }
        wrong += usize::from(bytes.get(start + offset) != Some(&0));
    }
    (wrong <= 1 && bytes.get(end) == Some(&NOT_COMPRESSED)).then_some(count)
}

struct SstBlock {
    entries: Vec<SstEntry>,
    /// The range of the lengths and the key of each entry.
    headers: Vec<Range<usize>>,
    /// The position at which no further entry was found.
    stopped: usize,
    /// The end of the block, if it is whole.
    end: Option<usize>,
}

impl SstBlock {
    /// Returns the positions at which a wrong bit is possible, most likely first: where parsing
    /// stopped, then backwards.
    fn suspects(&self) -> impl Iterator<Item = usize> + Clone {
        let stopped = self.stopped..self.stopped + HEADER_BYTES;
        iter::once(stopped).chain(self.headers.iter().rev().cloned()).flatten()
    }

    /// Returns possible ends of the block. The first one fits if the wrong bit is after the last
    /// entry.
    fn ends(&self, bytes: &[u8], start: usize) -> Vec<usize> {
        match self.end {
            Some(end) => vec![end],
            None => {
                iter::once(self.stopped + self.trailer_bytes()).chain(ends(bytes, start)).collect()
            }
        }
    }

    /// Returns the size of everything after the entries.
    fn trailer_bytes(&self) -> usize {
        4 * self.entries.len().div_ceil(RESTART_ENTRIES) + 4 + TRAILER_BYTES
    }
}

/// Parses the block that starts here, as far as possible.
fn block(bytes: &[u8], start: usize) -> SstBlock {
    let mut block =
        SstBlock { entries: Vec::new(), headers: Vec::new(), stopped: start, end: None };
    let mut key: Vec<u8> = Vec::new();
    loop {
        let at = block.stopped;
        let restarts = block.entries.len().div_ceil(RESTART_ENTRIES);
        if restarts > 0
            && number(bytes, at) == Some(0)
            && number(bytes, at + 4 * restarts) == u32::try_from(restarts).ok()
        {
            block.end = Some(at + block.trailer_bytes());
            return block;
        }
        let Some((entry, header, end)) = entry(bytes, at, &mut key) else { return block };
        block.entries.push(entry);
        block.headers.push(header);
        block.stopped = end;
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|four| u32::from_le_bytes(*four))
}

/// Parses the entry at this offset; returns it with the range of its lengths and key, and its end.
/// `key` contains the previous key, and then this one.
fn entry(bytes: &[u8], at: usize, key: &mut Vec<u8>) -> Option<(SstEntry, Range<usize>, usize)> {
    let start = at;
    let (shared, at) = varint(bytes, at)?;
    let (further, at) = varint(bytes, at)?;
    let (length, at) = varint(bytes, at)?;
    let value_start = at.checked_add(further)?;
    let end = value_start.checked_add(length)?;
    let (more, value) = (bytes.get(at..value_start)?, bytes.get(value_start..end)?);
    if shared > key.len() || !(NUMBER_BYTES + 1..HEADER_BYTES).contains(&(shared + further)) {
        return None;
    }
    key.truncate(shared);
    key.extend_from_slice(more);
    let (stored, tail) = key.split_last_chunk::<NUMBER_BYTES>()?;
    let tail = u64::from_le_bytes(*tail);
    let value = match tail & 0xff {
        0 => None,
        1 => Some(value.to_vec()),
        _ => return None,
    };
    Some((SstEntry { key: stored.to_vec(), number: tail >> 8, value }, start..value_start, end))
}

fn varint(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for place in 0..5 {
        let byte = *bytes.get(at + place)?;
        value |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((value, at + place + 1));
        }
    }
    None
}

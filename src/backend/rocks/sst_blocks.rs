//! The entries of RocksDB's files, read without it, with a single wrong bit among their lengths and keys put right.
//!
//! A file is a sequence of blocks. A block is a sequence of entries (shared bytes of the key before, further bytes of the
//! key, bytes of the value, all as varints; then the two), the offsets of every sixteenth entry and their number (u32
//! little-endian), and a trailer of 5 bytes: how it is compressed, and a checksum. The last 8 bytes of a key are its number
//! in the order of writing and whether it was written or deleted. RocksDB's `table/format.cc` has the checksum.

use super::bit_repair;
use std::iter;
use std::ops::Range;
use twox_hash::XxHash3_64;

/// RocksDB's own default, which is not changed in `options`.
const RESTART_ENTRIES: usize = 16;
const TRAILER_BYTES: usize = 5;
const NUMBER_BYTES: usize = 8;
/// At the end of a file, from format 6 of RocksDB's tables on: the kind of checksum, `FOOTER_MARK`, a checksum of the footer, what the
/// checksums of this file's blocks begin with, and more.
const FOOTER_BYTES: usize = 53;
const FOOTER_MARK: [u8; 4] = [0x3e, 0, 0x7a, 0];
const XXH3: u8 = 4;
/// Of an entry that cannot be read so many bytes may be to blame: its lengths and its key. Keys are of numbers and hashes, none longer.
const HEADER_BYTES: usize = 96;
/// So far behind its beginning the end of a block is looked for.
const MAX_BLOCK_BYTES: usize = 256 << 10;
/// So many bytes are hashed at most to put one block right: some tenths of a second.
const MAX_HASHED_BYTES: usize = 1 << 30;
/// Of a file that must be what it was so many bytes are looked through for the wrong bit, from the first block that is not right:
/// a tenth of a second for a block of 8 KB, at most half a minute.
const MAX_TRIED_BYTES: usize = 4 << 20;
/// So many blocks of a file are tried to be put right: more are wrong only if all is.
const MENDS: usize = 32;

/// An entry of a block.
pub(super) struct SstEntry {
    pub(super) key: Vec<u8>,
    pub(super) number: u64,
    /// `None` if the key was deleted.
    pub(super) value: Option<Vec<u8>>,
}

/// Every entry that can be found, and how many wrong bits were put right: block by block, and behind one that cannot be
/// read from the next that can.
pub(super) fn entries(bytes: &[u8]) -> (Vec<SstEntry>, u64) {
    let sum = SstChecksum::of(bytes);
    let (mut found, mut mended) = (Vec::new(), 0);
    let mut mends = MENDS;
    let mut at = 0;
    // Behind a whole block another one begins.
    let mut begins = true;
    while at < bytes.len() {
        let mut block = block(bytes, at);
        let is_right = block.end.zip(sum).is_none_or(|(end, sum)| sum.is_right(bytes, at..end));
        if let Some(sum) = sum
            && begins
            && mends > 0
            && (block.end.is_none() || !is_right)
        {
            mends -= 1;
            if let Some(right) = mend(bytes, at, &block, sum) {
                block = right;
                mended += 1;
            }
        }
        begins = block.end.is_some();
        // One entry alone may be anything that looks like one; several in a row are a block that ends badly.
        let is_some = begins || block.entries.len() > 1;
        at = block.end.unwrap_or(if is_some { block.stopped + 1 } else { at + 1 });
        if is_some {
            found.append(&mut block.entries);
        }
    }
    (found, mended)
}

/// What the checksums of a file's blocks begin with.
#[derive(Clone, Copy)]
struct SstChecksum(u32);

impl SstChecksum {
    /// `None` if its checksums are of another kind.
    fn of(file: &[u8]) -> Option<Self> {
        let footer = file.get(file.len().checked_sub(FOOTER_BYTES)?..)?;
        let is_known = footer.first() == Some(&XXH3) && footer.get(1..5) == Some(&FOOTER_MARK);
        is_known.then(|| number(footer, 9).map(Self))?
    }

    /// Whether the block that stands there, its trailer included, is what was written.
    fn is_right(self, file: &[u8], block: Range<usize>) -> bool {
        let from = block.start;
        file.get(block).is_some_and(|block| self.agrees(block, from))
    }

    /// Whether these bytes are a block that was written at this place of the file.
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

/// The block with the one bit turned that its checksum asks for, if it is one of a length or a key. Wrong bits of values are
/// not looked for: those have hashes of their own, and nothing behind them is lost.
fn mend(bytes: &[u8], start: usize, broken: &SstBlock, sum: SstChecksum) -> Option<SstBlock> {
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

/// Turns the first bit of these bytes at one of these places of the file they begin at that makes them right. Without one they
/// stay as they are.
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

/// Puts the one wrong bit of a file right whose hash is known. Says whether it has; else the file stays as it is.
pub(super) fn mend_file(bytes: &mut [u8], hash: &blake3::Hash) -> bool {
    // What tells how blocks are checked can be wrong itself, and is soon looked through.
    let footer = bytes.len().saturating_sub(FOOTER_BYTES)..bytes.len();
    if bit_repair::by_hash(bytes, hash, footer) {
        return true;
    }
    let mut at = 0;
    if let Some(sum) = SstChecksum::of(bytes) {
        // Blocks of rows that are right are passed over.
        while let Some(end) = block(bytes, at).end.filter(|end| sum.is_right(bytes, at..*end)) {
            at = end;
        }
    }
    bit_repair::by_hash(bytes, hash, at..bytes.len().min(at + MAX_TRIED_BYTES))
}

/// Where the block that begins here may end: behind what could be the offsets of its entries and their number. Those with
/// several offsets come first. A single one is a zero and a one, which rows of numbers have at every turn.
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

/// How many entries of the block between these places have their offset at its end, if that could be one: they ascend
/// from zero, and keys there share nothing with the one before. At one the wrong bit may be.
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
    /// Where the lengths and the key of each stand.
    headers: Vec<Range<usize>>,
    /// Where no other entry was found.
    stopped: usize,
    /// Where it ends, if it is whole.
    end: Option<usize>,
}

impl SstBlock {
    /// Where a wrong bit can have led astray: mostly where it stopped, or shortly before.
    fn suspects(&self) -> impl Iterator<Item = usize> + Clone {
        let stopped = self.stopped..self.stopped + HEADER_BYTES;
        iter::once(stopped).chain(self.headers.iter().rev().cloned()).flatten()
    }

    /// Where it may end: first as if what is wrong were behind its last entry.
    fn ends(&self, bytes: &[u8], start: usize) -> Vec<usize> {
        match self.end {
            Some(end) => vec![end],
            None => {
                iter::once(self.stopped + self.trailer_bytes()).chain(ends(bytes, start)).collect()
            }
        }
    }

    /// What stands behind its entries.
    fn trailer_bytes(&self) -> usize {
        4 * self.entries.len().div_ceil(RESTART_ENTRIES) + 4 + TRAILER_BYTES
    }
}

/// What can be read of the block that begins here.
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

/// The entry that begins here, where its lengths and key stand, and where it ends. `key` is the key before, and then this one.
fn entry(bytes: &[u8], at: usize, key: &mut Vec<u8>) -> Option<(SstEntry, Range<usize>, usize)> {
    let start = at;
    let (shared, at) = varint(bytes, at)?;
    let (further, at) = varint(bytes, at)?;
    let (length, at) = varint(bytes, at)?;
    let behind = at.checked_add(further)?;
    let end = behind.checked_add(length)?;
    let (more, value) = (bytes.get(at..behind)?, bytes.get(behind..end)?);
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
    Some((SstEntry { key: stored.to_vec(), number: tail >> 8, value }, start..behind, end))
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

//! A group of blocks: for each bucket of grams, one bit for each block says whether the block has
//! it. A query reads only the pages of its own buckets, not the grams of every block.

use super::copy_seal::{CopySeal, HEAD_BYTES, PieceOwner};
use super::grams::{BUCKETS, GramSet};
use super::text_block::compress;
use crate::error::Result;
use crate::format::{pack_derived, unpack_bytes};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

const MAGIC: &[u8; 8] = b"forgeSg1";
/// The approximate size of a page before compression.
const PAGE_BYTES: usize = 8 << 10;

/// The rows of a group: for each bucket one bit for each block, in the order of the blocks.
pub(super) struct GroupRows {
    row_bytes: usize,
    rows: Vec<u8>,
}

impl GroupRows {
    /// Makes the rows of a group from the grams of its blocks.
    pub(super) fn of_sets(sets: &[GramSet]) -> Self {
        let mut rows = Self::empty(sets.len().div_ceil(8));
        for (slot, set) in sets.iter().enumerate() {
            for bucket in set.buckets() {
                let at = bucket as usize * rows.row_bytes + slot / 8;
                if let Some(byte) = rows.rows.get_mut(at) {
                    *byte |= 1 << (slot % 8);
                }
            }
        }
        rows
    }

    fn empty(row_bytes: usize) -> Self {
        Self { row_bytes, rows: vec![0; BUCKETS * row_bytes] }
    }

    /// Merges the rows of several groups into one group. The number of blocks in each but the last
    /// must be a multiple of 8.
    pub(super) fn merged(groups: &[Self]) -> Self {
        let mut merged = Self::empty(groups.iter().map(|group| group.row_bytes).sum());
        let mut column = 0;
        for group in groups {
            let into = merged.rows.chunks_exact_mut(merged.row_bytes);
            for (into, row) in into.zip(group.rows.chunks_exact(group.row_bytes)) {
                if let Some(into) = into.get_mut(column..column + row.len()) {
                    into.copy_from_slice(row);
                }
            }
            column += group.row_bytes;
        }
        merged
    }

    pub(super) fn encode(&self, number: u64, seal: &CopySeal) -> Result<Vec<u8>> {
        let owner = PieceOwner::Group(number);
        let (mut pages, mut lengths) = (Vec::new(), Vec::new());
        for (place, page) in
            self.rows.chunks(rows_of_page(self.row_bytes) * self.row_bytes).enumerate()
        {
            let before = pages.len();
            // Many pages have no bit set. They have length 0 in the file.
            if page.iter().any(|byte| *byte != 0) {
                seal.put(owner, place as u64 + 1, compress(page)?, &mut pages);
            }
            lengths.push((pages.len() - before) as u32);
        }
        let mut out = MAGIC.to_vec();
        seal.put(owner, 0, compress(&pack_derived(&lengths))?, &mut out);
        out.append(&mut pages);
        Ok(out)
    }

    /// Reads the rows of group `number`, which has this many blocks; `None` if a piece is not
    /// valid.
    pub(super) fn read(path: &Path, number: u64, blocks: usize, seal: &CopySeal) -> Option<Self> {
        let file = GroupFile::open(path, number, blocks, seal)?;
        let mut rows = Vec::with_capacity(BUCKETS * file.row_bytes);
        for page in 0..file.pages.len() {
            rows.extend(file.page(page)?);
        }
        Some(Self { row_bytes: file.row_bytes, rows })
    }
}

/// The number of rows in a page.
fn rows_of_page(row_bytes: usize) -> usize {
    (PAGE_BYTES / row_bytes).max(1)
}

/// A group's file, from which pages are read.
pub(super) struct GroupFile<'s> {
    file: File,
    number: u64,
    row_bytes: usize,
    /// Where each page begins, and its length.
    pages: Vec<(u64, usize)>,
    seal: &'s CopySeal,
}

impl<'s> GroupFile<'s> {
    /// Opens the file of group `number`, which has this many blocks; `None` if it is not valid.
    pub(super) fn open(
        path: &Path,
        number: u64,
        blocks: usize,
        seal: &'s CopySeal,
    ) -> Option<Self> {
        const FIRST_READ: u64 = 24 << 10;
        let mut file = File::open(path).ok()?;
        let mut begun = Vec::new();
        file.by_ref().take(FIRST_READ).read_to_end(&mut begun).ok()?;
        let head = begun.strip_prefix(MAGIC)?;
        let length = u32::from_le_bytes(*head.first_chunk()?) as usize;
        let end = (MAGIC.len() + HEAD_BYTES).checked_add(length)?;
        if begun.len() < end {
            let more = end - begun.len();
            file.by_ref().take(more as u64).read_to_end(&mut begun).ok()?;
        }
        let (content, _) = seal.open(PieceOwner::Group(number), 0, begun.get(MAGIC.len()..)?)?;
        let plain = zstd::decode_all(&*content).ok()?;
        let lengths: Vec<u32> = unpack_bytes("pages of grams", &plain).ok()?;
        let row_bytes = blocks.div_ceil(8);
        if row_bytes == 0 || lengths.len() != BUCKETS.div_ceil(rows_of_page(row_bytes)) {
            return None;
        }
        let mut at = end as u64;
        let pages = lengths.into_iter().map(|length| {
            let from = at;
            at += u64::from(length);
            (from, length as usize)
        });
        Some(Self { pages: pages.collect(), file, number, row_bytes, seal })
    }

    /// Reads a page; `None` if it is not valid.
    fn page(&self, place: usize) -> Option<Vec<u8>> {
        let whole = rows_of_page(self.row_bytes) * self.row_bytes;
        let bytes = whole.min((BUCKETS * self.row_bytes).saturating_sub(place * whole));
        let (from, length) = *self.pages.get(place)?;
        if length == 0 {
            return Some(vec![0; bytes]);
        }
        let mut piece = vec![0; length];
        self.file.read_exact_at(&mut piece, from).ok()?;
        let (content, _) =
            self.seal.open(PieceOwner::Group(self.number), place as u64 + 1, &piece)?;
        let page = zstd::bulk::decompress(&content, bytes).ok()?;
        (page.len() == bytes).then_some(page)
    }

    /// Returns a bit for each block: whether it has all of these buckets. `None` if a page is not
    /// valid. If the buckets are ascending, each page is read only once.
    pub(super) fn with_all(&self, buckets: &[u32]) -> Option<Vec<u8>> {
        let mut found = vec![u8::MAX; self.row_bytes];
        let mut page: Option<(usize, Vec<u8>)> = None;
        for bucket in buckets.iter().map(|bucket| *bucket as usize) {
            let (place, row) =
                (bucket / rows_of_page(self.row_bytes), bucket % rows_of_page(self.row_bytes));
            if page.as_ref().is_none_or(|(read, _)| *read != place) {
                page = Some((place, self.page(place)?));
            }
            let (_, rows) = page.as_ref()?;
            let row = rows.get(row * self.row_bytes..)?;
            found.iter_mut().zip(row).for_each(|(found, byte)| *found &= byte);
            if found.iter().all(|byte| *byte == 0) {
                break;
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::search::grams::buckets_of;

    #[test]
    fn a_group_finds_the_blocks_that_have_all_grams_alone_and_merged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("7.grams");
        let seal = CopySeal::new(None, None);
        let texts: Vec<String> =
            (0..16).map(|number| format!("block {number} has word{}", number % 3)).collect();
        let sets =
            |texts: &[String]| texts.iter().map(|text| GramSet::of(text)).collect::<Vec<_>>();
        let whole = GroupRows::of_sets(&sets(&texts));
        let merged = GroupRows::merged(&[
            GroupRows::of_sets(&sets(&texts[..8])),
            GroupRows::of_sets(&sets(&texts[8..])),
        ]);
        assert!(whole.rows == merged.rows);
        std::fs::write(&path, merged.encode(7, &seal).unwrap()).unwrap();
        let found = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let bits = GroupFile::open(&path, 7, 16, &seal)
                .unwrap()
                .with_all(&buckets_of(&words))
                .unwrap();
            (0..16).filter(|slot| bits[slot / 8] & 1 << (slot % 8) != 0).collect::<Vec<_>>()
        };
        assert_eq!(found(&["WORD2"]), [2, 5, 8, 11, 14]);
        assert_eq!(found(&["word2", "block 14"]), [14]);
        assert!(found(&["nowhere"]).is_empty());
        assert!(GroupRows::read(&path, 7, 16, &seal).unwrap().rows == whole.rows);
        assert!(GroupFile::open(&path, 8, 16, &seal).is_none(), "it is another group");
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(GroupRows::read(&path, 7, 16, &seal).is_none());
    }
}

//! The copy of all texts of a store, in its folder `search/`: the catalogue, files of blocks, and
//! files of groups.

use super::catalogue::{BlockPlace, Catalogue, GroupPlace};
use super::copy_seal::CopySeal;
use super::gram_group::GroupFile;
use super::text_block::{BlockContent, entries_of};
use crate::backend::{self, files};
use crate::error::Result;
use crate::model::SessionNumber;
use crate::store::Store;
use crate::store::folder::SEARCH_FOLDER;
use crate::store::search::session_texts::KnownTexts;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// The copy of a store's texts, as it was when its catalogue was read.
pub(super) struct TextCopy {
    pub(super) folder: PathBuf,
    pub(super) seal: CopySeal,
    pub(super) catalogue: Catalogue,
}

/// Blocks and groups that a search could not read.
#[derive(Debug, Default)]
pub(super) struct DamagedParts {
    pub(super) blocks: BTreeSet<u64>,
    pub(super) groups: BTreeSet<u64>,
}

/// The file of a copy that says how many purges the store had seen when the copy was begun.
pub(super) const PURGES_FILE: &str = "purges";

/// Removes a copy if the store was purged since the copy was begun: then the store had another
/// number of purges. Another machine can purge a store in a database, but cannot reach this folder.
pub(super) fn forget_purged(folder: &Path, purges: u64) -> Result<()> {
    let file = folder.join(PURGES_FILE);
    let known = fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
    if known.unwrap_or(0) == purges {
        return Ok(());
    }
    files::remove_folder(folder)?;
    files::make_private_folders(folder)?;
    let written = fs::write(&file, format!("{purges}\n"));
    Ok(written.map_err(backend::Error::io("write", &file))?)
}

impl DamagedParts {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.groups.is_empty()
    }
}

impl TextCopy {
    /// Reads the catalogue of a store's copy; `None` for a store in memory.
    pub(super) fn open(store: &Store) -> Result<Option<Self>> {
        let Some(path) = store.path() else { return Ok(None) };
        let folder = path.join(SEARCH_FOLDER);
        if store.database().is_some() {
            forget_purged(&folder, store.engine.follower.refs()?.0.purges)?;
        }
        let seal = CopySeal::new(store.engine.seals.key(), store.engine.cipher.as_ref());
        let catalogue = Catalogue::read(&catalogue_in(&folder), &seal)?;
        Ok(Some(Self { folder, seal, catalogue }))
    }

    /// Reads the bytes of a block; `None` if they cannot be read.
    pub(super) fn bytes_of(&self, block: &BlockPlace) -> Option<Vec<u8>> {
        let file = File::open(blocks_in(&self.folder, block.file)).ok()?;
        let mut bytes = vec![0; usize::try_from(block.length).ok()?];
        file.read_exact_at(&mut bytes, block.offset).ok()?;
        Some(bytes)
    }

    /// Reads a block; `None` if it is damaged.
    pub(super) fn content_of(&self, block: &BlockPlace) -> Option<BlockContent> {
        BlockContent::decode(block.number, &self.bytes_of(block)?, &self.seal)
    }

    /// Returns the texts that the copy has of a session. Adds damaged blocks to `damaged`.
    pub(super) fn known(&self, session: SessionNumber, damaged: &mut DamagedParts) -> KnownTexts {
        let mut known = KnownTexts::default();
        for block in self.catalogue.blocks_of(session) {
            let entries =
                self.bytes_of(block).and_then(|bytes| entries_of(block.number, &bytes, &self.seal));
            match entries {
                Some(parts) => parts
                    .into_iter()
                    .filter(|(number, _)| *number == session)
                    .flat_map(|(_, entries)| entries)
                    .for_each(|entry| known.add(entry)),
                None => drop(damaged.blocks.insert(block.number)),
            }
        }
        known
    }

    /// Returns the numbers of all blocks that have all of these buckets, and of the blocks that are
    /// in no group or in a damaged one. Adds damaged groups to `damaged`.
    pub(super) fn candidates(&self, buckets: &[u32], damaged: &mut DamagedParts) -> BTreeSet<u64> {
        let mut candidates: BTreeSet<u64> = self.catalogue.blocks.keys().copied().collect();
        for group in self.catalogue.groups.values() {
            let path = groups_in(&self.folder, group.number);
            let file = GroupFile::open(&path, group.number, group.blocks.len(), &self.seal);
            let Some(bits) = file.and_then(|file| file.with_all(buckets)) else {
                damaged.groups.insert(group.number);
                continue;
            };
            for (slot, block) in group.blocks.iter().enumerate() {
                let has = bits.get(slot / 8).is_some_and(|byte| byte & 1 << (slot % 8) != 0);
                if !has {
                    candidates.remove(block);
                }
            }
        }
        candidates
    }

    /// Overwrites the blocks that have texts of these sessions. A search finds them damaged.
    pub(super) fn wipe(&self, sessions: &BTreeSet<SessionNumber>) -> Result<()> {
        let blocks = sessions.iter().flat_map(|number| self.catalogue.blocks_of(*number));
        for block in blocks {
            clear_at(&blocks_in(&self.folder, block.file), block)?;
        }
        Ok(())
    }

    /// Returns the blocks by the number of their file.
    pub(super) fn by_file(&self) -> BTreeMap<u64, Vec<&BlockPlace>> {
        let mut files: BTreeMap<u64, Vec<&BlockPlace>> = BTreeMap::new();
        for block in self.catalogue.blocks.values() {
            files.entry(block.file).or_default().push(block);
        }
        files
    }

    /// Returns the blocks whose files are missing or too short.
    pub(super) fn missing_blocks(&self) -> BTreeSet<u64> {
        let files = self.by_file().into_iter();
        let missing = files.flat_map(|(file, blocks)| {
            let length = blocks_in(&self.folder, file).metadata().map_or(0, |about| about.len());
            blocks.into_iter().filter(move |block| block.end() > length).map(|block| block.number)
        });
        missing.collect()
    }

    /// Returns the blocks that are in no group.
    pub(super) fn ungrouped(&self) -> Vec<&BlockPlace> {
        let grouped: BTreeSet<u64> =
            self.catalogue.groups.values().flat_map(|group| &group.blocks).copied().collect();
        let blocks = self.catalogue.blocks.values();
        blocks.filter(|block| !grouped.contains(&block.number)).collect()
    }

    /// Returns the groups of at most this many blocks.
    pub(super) fn small_groups(&self, most: usize) -> Vec<&GroupPlace> {
        self.catalogue.groups.values().filter(|group| group.blocks.len() <= most).collect()
    }
}

pub(super) fn catalogue_in(folder: &Path) -> PathBuf {
    folder.join("catalogue")
}

/// Returns the path of a file of blocks.
pub(super) fn blocks_in(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.texts"))
}

pub(super) fn groups_in(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:08}.grams"))
}

/// Overwrites a block with zeros, and frees its space on disk where the system can. Does nothing if
/// there is no file.
pub(super) fn clear_at(path: &Path, block: &BlockPlace) -> Result<()> {
    let opened = files::if_there(OpenOptions::new().write(true).open(path));
    let Some(file) = opened.map_err(backend::Error::io("open", path))? else { return Ok(()) };
    let zeros = vec![0; usize::try_from(block.length).unwrap_or_default()];
    file.write_all_at(&zeros, block.offset).map_err(backend::Error::io("clear", path))?;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = fallocate(&file, flags, block.offset, block.length);
    }
    Ok(())
}

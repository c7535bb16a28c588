//! Writes the copy of texts for searching: adds texts in blocks, puts blocks into groups, and
//! removes texts and damaged parts.

use super::catalogue::{
    BlockPlace, Catalogue, CatalogueChange, ExaminedJournal, GroupPlace, OPEN_BYTES,
    SessionProgress,
};
use super::gram_group::GroupRows;
use super::grams::GramSet;
use super::text_block::{BLOCK_BYTES, BlockContent, TextEntry};
use super::text_copy::{
    DamagedParts, PURGES_FILE, TextCopy, blocks_in, catalogue_in, clear_at, groups_in,
};
use crate::backend;
use crate::backend::files::{self, LockedFile};
use crate::error::Result;
use crate::model::SessionNumber;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

/// The file whose lock the writer holds.
const LOCK_FILE: &str = "lock";
const NEW_CATALOGUE: &str = "catalogue.new";
/// The size in bytes from which a file of blocks gets no more blocks.
const FILE_BYTES: u64 = if cfg!(test) { 8 << 10 } else { 32 << 20 };
/// The number of blocks in a small group.
const SMALL_GROUP: usize = if cfg!(test) { 8 } else { 16 };
/// The number of blocks in a large group.
const LARGE_GROUP: usize = if cfg!(test) { 16 } else { 256 };
/// The number of new blocks after which they are written to the catalogue, so that little is lost
/// if the process is killed.
const BLOCKS_PER_CHANGE: usize = 16;
/// The maximum number of open blocks.
const OPEN_BLOCKS: usize = 12;

/// Writes a copy. It holds the lock of the copy, so a copy has one writer at a time.
pub(super) struct CopyWriter {
    pub(super) copy: TextCopy,
    catalogue: File,
    _lock: LockedFile,
    /// The change that is written to files of blocks, but not to the catalogue yet.
    change: CatalogueChange,
    /// Texts that are in no block yet.
    building: BlockContent,
    /// The length of the texts in `building`.
    building_bytes: usize,
    /// How much of each of these sessions is in the copy once `building` is written.
    complete: Vec<SessionProgress>,
    /// The grams of new blocks that are not open and are in no group yet.
    grams: BTreeMap<u64, GramSet>,
}

impl CopyWriter {
    /// Locks a copy for writing, and reads its catalogue again. Returns `None` if another writer
    /// holds the lock for longer than `timeout`.
    pub(super) fn begin(copy: TextCopy, timeout: Duration) -> Result<Option<Self>> {
        files::create_private_folder(&copy.folder)
            .map_err(backend::Error::io("make", &copy.folder))?;
        let path = copy.folder.join(LOCK_FILE);
        let lock = open(&path)?;
        let locked = LockedFile::exclusive_within(lock, timeout)
            .map_err(backend::Error::io("lock", &path))?;
        let Ok(lock) = locked else { return Ok(None) };
        let path = catalogue_in(&copy.folder);
        let catalogue = Catalogue::read(&path, &copy.seal)?;
        let writer = Self {
            copy: TextCopy { catalogue, ..copy },
            catalogue: open(&path)?,
            _lock: lock,
            change: CatalogueChange::default(),
            building: BlockContent::default(),
            building_bytes: 0,
            complete: Vec::new(),
            grams: BTreeMap::new(),
        };
        if writer.copy.catalogue.blocks.is_empty() {
            writer.remove_unnamed_files();
        }
        Ok(Some(writer))
    }

    /// Removes damaged blocks and groups from the copy. The sessions of these blocks become
    /// incomplete.
    pub(super) fn forget(&mut self, damaged: &DamagedParts) -> Result<()> {
        let change = self.copy.catalogue.removal_of(&damaged.blocks, &damaged.groups);
        if change == CatalogueChange::default() {
            return Ok(());
        }
        let files: Vec<_> = self.places_of(&change.removed);
        let groups = change.removed_groups.clone();
        self.append(change)?;
        for number in groups {
            files::remove(&groups_in(&self.copy.folder, number))?;
        }
        self.clear(files)
    }

    /// Removes the blocks that have texts of a session. If they also have texts of other sessions,
    /// those are missing until they are copied again.
    pub(super) fn remove_session(&mut self, session: SessionNumber) -> Result<()> {
        let blocks = self.copy.catalogue.blocks_of(session).map(|block| block.number).collect();
        let mut change = self.copy.catalogue.removal_of(&blocks, &BTreeSet::new());
        if !change.incomplete.contains(&session) {
            change.incomplete.push(session);
        }
        let files = self.places_of(&change.removed);
        self.append(change)?;
        self.clear(files)
    }

    /// Removes everything from the copy.
    pub(super) fn restart(&mut self) -> Result<()> {
        self.copy.catalogue = Catalogue::default();
        self.grams.clear();
        self.catalogue.set_len(0).map_err(backend::Error::io("cut", &self.copy.folder))?;
        self.remove_unnamed_files();
        Ok(())
    }

    /// Records up to which position the journal was examined, and which sessions its records
    /// changed.
    pub(super) fn examined(
        &mut self,
        examined: ExaminedJournal,
        changed: impl Iterator<Item = SessionNumber>,
    ) -> Result<()> {
        let (examined, stale) = (Some(examined), changed.collect());
        self.append(CatalogueChange { examined, stale, ..CatalogueChange::default() })
    }

    /// Adds a text of a session. Writes a block if enough texts were added.
    pub(super) fn add(
        &mut self,
        session: SessionNumber,
        entry: TextEntry,
        text: &str,
    ) -> Result<()> {
        self.building.parts.entry(session).or_default().add(entry, text);
        self.building_bytes += text.len();
        if self.building_bytes >= BLOCK_BYTES {
            self.write_block()?;
        }
        Ok(())
    }

    /// Records how much of a session is in the copy once its added texts are written.
    pub(super) fn complete(&mut self, progress: SessionProgress) {
        self.complete.push(progress);
    }

    /// Writes what was added and not written yet, rewrites a long catalogue, and returns the copy.
    pub(super) fn finish(mut self) -> Result<TextCopy> {
        self.absorb_open_blocks();
        self.write_block()?;
        self.commit()?;
        self.group()?;
        if self.copy.catalogue.is_long() {
            let bytes = self.copy.catalogue.encode_whole(&self.copy.seal)?;
            let folder = &self.copy.folder;
            files::replace(&catalogue_in(folder), &folder.join(NEW_CATALOGUE), &bytes)?;
            self.remove_unnamed_files();
        }
        Ok(self.copy)
    }

    /// Moves the texts of open blocks into the next block, the smallest block first, until the next
    /// block is large enough not to be open. An open block that is more than twice as large as the
    /// texts collected so far stays, unless [`OPEN_BLOCKS`] blocks are still open. So a text is
    /// written at most about 20 times.
    fn absorb_open_blocks(&mut self) {
        if self.building_bytes == 0 {
            return;
        }
        let open = self.copy.catalogue.blocks.values().filter(|block| block.is_open());
        let mut open: Vec<BlockPlace> = open.cloned().collect();
        open.sort_by_key(|block| block.bytes);
        let mut left = open.len();
        for block in open {
            if self.building_bytes >= OPEN_BYTES
                || (block.bytes > 2 * self.building_bytes && left < OPEN_BLOCKS)
            {
                break;
            }
            left -= 1;
            // A damaged block stays. A search that reads it reports the damage.
            if let Some(content) = self.copy.content_of(&block) {
                self.building.absorb(content);
                self.building_bytes += block.bytes;
                self.change.removed.push(block.number);
            }
        }
    }

    /// Writes the added texts as a block, and the catalogue after enough new blocks.
    fn write_block(&mut self) -> Result<()> {
        let content = std::mem::take(&mut self.building);
        self.building_bytes = 0;
        let parts = content.summary();
        if !parts.is_empty() {
            let bytes = content.bytes();
            let number = self.next_number();
            let (file, offset) = self.next_place(bytes);
            let encoded = content.encode(number, &self.copy.seal)?;
            let path = blocks_in(&self.copy.folder, file);
            let length = encoded.len() as u64;
            let place = BlockPlace { number, file, offset, length, bytes, parts };
            write_at(&path, offset, &encoded)?;
            if !place.is_open() {
                self.grams.insert(number, GramSet::of(&content.text()));
            }
            self.change.blocks.push(place);
        }
        self.change.sessions.append(&mut self.complete);
        if self.change.blocks.len() >= BLOCKS_PER_CHANGE {
            self.commit()?;
            self.group()?;
        }
        Ok(())
    }

    fn next_number(&mut self) -> u64 {
        self.copy.catalogue.last_number += 1;
        self.copy.catalogue.last_number
    }

    /// Returns the file and the offset for a new block with `bytes` bytes of text. An open block is
    /// alone in its file, so the file can be removed with it.
    fn next_place(&mut self, bytes: usize) -> (u64, u64) {
        let blocks = self.copy.catalogue.blocks.values().chain(&self.change.blocks);
        let last =
            blocks.filter(|block| !block.is_open()).max_by_key(|block| (block.file, block.end()));
        match last {
            Some(last) if bytes >= OPEN_BYTES && last.end() < FILE_BYTES => (last.file, last.end()),
            _ => (self.next_number(), 0),
        }
    }

    /// Appends the pending change to the catalogue, and clears the blocks that it removes.
    fn commit(&mut self) -> Result<()> {
        let change = std::mem::take(&mut self.change);
        if change == CatalogueChange::default() {
            return Ok(());
        }
        let files = self.places_of(&change.removed);
        self.append(change)?;
        self.clear(files)
    }

    fn append(&mut self, change: CatalogueChange) -> Result<()> {
        let copy = &mut self.copy;
        copy.catalogue
            .append(&self.catalogue, change, &copy.seal)
            .map_err(backend::Error::io("write", &catalogue_in(&copy.folder)))?;
        Ok(())
    }

    /// Returns the places of these blocks.
    fn places_of(&self, blocks: &[u64]) -> Vec<BlockPlace> {
        blocks.iter().filter_map(|number| self.copy.catalogue.blocks.get(number)).cloned().collect()
    }

    /// Overwrites blocks that the catalogue does not have any more, and removes files that have no
    /// other block.
    fn clear(&self, blocks: Vec<BlockPlace>) -> Result<()> {
        let files = self.copy.by_file();
        for block in blocks {
            let path = blocks_in(&self.copy.folder, block.file);
            let is_pending = self.change.blocks.iter().any(|new| new.file == block.file);
            if !files.contains_key(&block.file) && !is_pending {
                files::remove(&path)?;
                continue;
            }
            clear_at(&path, &block)?;
        }
        Ok(())
    }

    /// Puts blocks that are not open into small groups, and merges small groups into large ones.
    /// Removes the damaged blocks and groups that it finds.
    fn group(&mut self) -> Result<()> {
        loop {
            let ungrouped = self.copy.ungrouped();
            let closed: Vec<BlockPlace> = ungrouped
                .into_iter()
                .filter(|block| !block.is_open())
                .take(SMALL_GROUP)
                .cloned()
                .collect();
            if closed.len() < SMALL_GROUP {
                break;
            }
            let mut damaged = DamagedParts::default();
            let mut sets = Vec::new();
            for block in &closed {
                let set = self.grams.remove(&block.number).or_else(|| {
                    self.copy.content_of(block).map(|content| GramSet::of(&content.text()))
                });
                match set {
                    Some(set) => sets.push(set),
                    None => drop(damaged.blocks.insert(block.number)),
                }
            }
            if !damaged.is_empty() {
                self.forget(&damaged)?;
                continue;
            }
            let blocks = closed.iter().map(|block| block.number).collect();
            self.write_group(&GroupRows::of_sets(&sets), blocks, &[])?;
        }
        loop {
            let small = self.copy.small_groups(SMALL_GROUP);
            let small: Vec<GroupPlace> =
                small.into_iter().take(LARGE_GROUP / SMALL_GROUP).cloned().collect();
            if small.len() < LARGE_GROUP / SMALL_GROUP {
                return Ok(());
            }
            let mut damaged = DamagedParts::default();
            let mut rows = Vec::new();
            for group in &small {
                let path = groups_in(&self.copy.folder, group.number);
                match GroupRows::read(&path, group.number, group.blocks.len(), &self.copy.seal) {
                    Some(one) => rows.push(one),
                    None => drop(damaged.groups.insert(group.number)),
                }
            }
            if !damaged.is_empty() {
                return self.forget(&damaged);
            }
            let blocks = small.iter().flat_map(|group| &group.blocks).copied().collect();
            let old: Vec<u64> = small.iter().map(|group| group.number).collect();
            self.write_group(&GroupRows::merged(&rows), blocks, &old)?;
        }
    }

    fn write_group(&mut self, rows: &GroupRows, blocks: Vec<u64>, old: &[u64]) -> Result<()> {
        let number = self.next_number();
        let path = groups_in(&self.copy.folder, number);
        write_at(&path, 0, &rows.encode(number, &self.copy.seal)?)?;
        self.append(CatalogueChange {
            removed_groups: old.to_vec(),
            groups: vec![GroupPlace { number, blocks }],
            ..CatalogueChange::default()
        })?;
        for number in old {
            files::remove(&groups_in(&self.copy.folder, *number))?;
        }
        Ok(())
    }

    /// Removes the files that the catalogue does not name. They are left over from killed writers,
    /// lost catalogues and earlier versions of forge.
    fn remove_unnamed_files(&self) {
        let folder = &self.copy.folder;
        let catalogue = &self.copy.catalogue;
        let own: BTreeSet<_> = [LOCK_FILE, PURGES_FILE]
            .into_iter()
            .map(|name| folder.join(name))
            .chain([catalogue_in(folder)])
            .chain(catalogue.blocks.values().map(|block| blocks_in(folder, block.file)))
            .chain(self.change.blocks.iter().map(|block| blocks_in(folder, block.file)))
            .chain(catalogue.groups.keys().map(|number| groups_in(folder, *number)))
            .collect();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !own.contains(&entry.path()) {
                let _ = files::remove(&entry.path());
            }
        }
    }
}

/// Opens a private file, and creates it if it does not exist.
fn open(path: &Path) -> Result<File> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path);
    Ok(opened.map_err(backend::Error::io("open", path))?)
}

/// Writes bytes at an offset of a file, and cuts off the rest of the file.
fn write_at(path: &Path, offset: u64, bytes: &[u8]) -> Result<()> {
    let file = open(path)?;
    let written = || -> io::Result<()> {
        file.write_all_at(bytes, offset)?;
        file.set_len(offset + bytes.len() as u64)
    };
    Ok(written().map_err(backend::Error::io("write", path))?)
}

//! The catalogue of the copy of texts: which blocks there are and where they are, which of them are
//! in a group, and how much of each session they have. It is a log of changes, each a sealed piece.

use super::copy_seal::{CopySeal, PieceOwner};
use super::text_block::{BLOCK_BYTES, PartSummary, compress};
use crate::backend::files::if_there;
use crate::backend::{self, LogPosition, RecordHash};
use crate::error::Result;
use crate::format::{pack_derived, unpack_bytes};
use crate::model::{ObjectId, SessionNumber};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

const MAGIC: &[u8; 8] = b"forgeSc1";
/// A catalogue with fewer bytes of changes than this is not rewritten.
const CHANGE_BYTES: u64 = 256 << 10;
/// A block with less text is open: later texts are added to it.
pub(super) const OPEN_BYTES: usize = BLOCK_BYTES / 2;

/// Where a block is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BlockPlace {
    pub(super) number: u64,
    pub(super) file: u64,
    pub(super) offset: u64,
    pub(super) length: u64,
    /// The length of its texts.
    pub(super) bytes: usize,
    pub(super) parts: Vec<PartSummary>,
}

impl BlockPlace {
    pub(super) const fn is_open(&self) -> bool {
        self.bytes < OPEN_BYTES
    }

    pub(super) const fn end(&self) -> u64 {
        self.offset + self.length
    }
}

/// A group of blocks. Some of them may not exist any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GroupPlace {
    pub(super) number: u64,
    /// The numbers of its blocks, in the order of their bits.
    pub(super) blocks: Vec<u64>,
}

/// How much of a session is in the copy: the session's own counts when it was copied. If they are
/// unchanged, nothing is new.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionProgress {
    pub(super) session: SessionNumber,
    pub(super) facts: u64,
    pub(super) pages: u64,
    pub(super) sequence: u64,
    /// The hashes of its checkpoints, sorted.
    pub(super) checkpoints: Vec<u64>,
}

/// How far the journal was examined for changed sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ExaminedJournal {
    pub(super) position: LogPosition,
    /// The record that ends there.
    pub(super) last: Option<ObjectId>,
}

impl ExaminedJournal {
    pub(super) fn new(position: LogPosition, last: Option<RecordHash>) -> Self {
        Self { position, last: last.map(ObjectId::from_bytes) }
    }
}

/// A change of the catalogue. A whole catalogue is written as one change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CatalogueChange {
    /// The last number that a block, file or group got.
    #[serde(rename = "next")]
    pub(super) last_number: u64,
    pub(super) examined: Option<ExaminedJournal>,
    /// Blocks that do not exist any more.
    pub(super) removed: Vec<u64>,
    /// Groups that do not exist any more.
    pub(super) removed_groups: Vec<u64>,
    /// Sessions that must be copied again, as a whole or in part.
    pub(super) incomplete: Vec<SessionNumber>,
    /// New blocks.
    pub(super) blocks: Vec<BlockPlace>,
    pub(super) groups: Vec<GroupPlace>,
    /// How much of each of these sessions is in the copy now.
    pub(super) sessions: Vec<SessionProgress>,
    /// Sessions that changed after they were copied.
    pub(super) stale: Vec<SessionNumber>,
}

/// What the copy of texts has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Catalogue {
    /// The last number that a block, file or group got.
    pub(super) last_number: u64,
    pub(super) examined: Option<ExaminedJournal>,
    pub(super) blocks: BTreeMap<u64, BlockPlace>,
    pub(super) groups: BTreeMap<u64, GroupPlace>,
    pub(super) sessions: BTreeMap<SessionNumber, SessionProgress>,
    /// Sessions in `sessions` that changed after they were copied.
    pub(super) stale: BTreeSet<SessionNumber>,
    /// The blocks of each session.
    by_session: BTreeMap<SessionNumber, BTreeSet<u64>>,
    /// The length of the valid part of the file.
    length: u64,
    /// Where the first change ends in the file; 0 if there is none.
    first_end: u64,
}

impl Catalogue {
    /// Reads a catalogue as far as it is valid; empty if it does not exist.
    pub(super) fn read(path: &Path, seal: &CopySeal) -> Result<Self> {
        let bytes = if_there(fs::read(path)).map_err(backend::Error::io("read", path))?;
        let Some(bytes) = bytes else { return Ok(Self::default()) };
        let mut catalogue = Self::default();
        let Some(mut rest) = bytes.strip_prefix(MAGIC) else { return Ok(catalogue) };
        catalogue.length = MAGIC.len() as u64;
        while let Some((change, after)) = read_change(rest, catalogue.length, seal) {
            catalogue.length += (rest.len() - after.len()) as u64;
            if catalogue.first_end == 0 {
                catalogue.first_end = catalogue.length;
            }
            catalogue.apply(change);
            rest = after;
        }
        Ok(catalogue)
    }

    pub(super) fn apply(&mut self, change: CatalogueChange) {
        self.last_number = self.last_number.max(change.last_number);
        self.examined = change.examined.or(self.examined);
        for number in &change.removed {
            for part in self.blocks.remove(number).iter().flat_map(|block| &block.parts) {
                if let Some(blocks) = self.by_session.get_mut(&part.session) {
                    blocks.remove(number);
                }
            }
        }
        change.removed_groups.iter().for_each(|number| drop(self.groups.remove(number)));
        for number in change.incomplete {
            self.sessions.remove(&number);
            self.stale.remove(&number);
        }
        self.stale.extend(change.stale.iter().filter(|number| self.sessions.contains_key(number)));
        for block in change.blocks {
            for part in &block.parts {
                self.by_session.entry(part.session).or_default().insert(block.number);
            }
            self.blocks.insert(block.number, block);
        }
        self.groups.extend(change.groups.into_iter().map(|group| (group.number, group)));
        for progress in change.sessions {
            self.stale.remove(&progress.session);
            self.sessions.insert(progress.session, progress);
        }
    }

    /// Returns the change that makes this catalogue from an empty one, without the stale marks.
    fn whole(&self) -> CatalogueChange {
        CatalogueChange {
            last_number: self.last_number,
            examined: self.examined,
            blocks: self.blocks.values().cloned().collect(),
            groups: self.groups.values().cloned().collect(),
            sessions: self.sessions.values().cloned().collect(),
            ..CatalogueChange::default()
        }
    }

    /// Returns whether a session must be copied, as a whole or in part.
    pub(super) fn lacks(&self, session: SessionNumber) -> bool {
        !self.sessions.contains_key(&session) || self.stale.contains(&session)
    }

    /// Returns whether the copy has anything of a session.
    pub(super) fn has(&self, session: SessionNumber) -> bool {
        self.sessions.contains_key(&session) || self.blocks_of(session).next().is_some()
    }

    /// Returns the blocks that have texts of a session.
    pub(super) fn blocks_of(&self, session: SessionNumber) -> impl Iterator<Item = &BlockPlace> {
        let numbers = self.by_session.get(&session).into_iter().flatten();
        numbers.filter_map(|number| self.blocks.get(number))
    }

    /// Returns the change that removes these blocks and groups, because they are damaged or have
    /// texts that must be removed. After it, the sessions in these blocks are incomplete.
    pub(super) fn removal_of(
        &self,
        blocks: &BTreeSet<u64>,
        groups: &BTreeSet<u64>,
    ) -> CatalogueChange {
        let removed: Vec<_> = blocks.iter().filter_map(|number| self.blocks.get(number)).collect();
        let parts = removed.iter().flat_map(|block| &block.parts);
        CatalogueChange {
            incomplete: parts.map(|part| part.session).collect(),
            removed: removed.iter().map(|block| block.number).collect(),
            removed_groups: groups
                .iter()
                .filter(|number| self.groups.contains_key(number))
                .copied()
                .collect(),
            ..CatalogueChange::default()
        }
    }

    /// Appends a change to the valid part of the file, cuts off the rest of the file, and applies
    /// the change.
    pub(super) fn append(
        &mut self,
        file: &File,
        mut change: CatalogueChange,
        seal: &CopySeal,
    ) -> Result<(), io::Error> {
        change.last_number = self.last_number;
        let mut out = Vec::new();
        if self.length == 0 {
            out.extend_from_slice(MAGIC);
        }
        let at = self.length + out.len() as u64;
        put_change(&change, at, seal, &mut out).map_err(io::Error::other)?;
        file.set_len(self.length)?;
        file.write_all_at(&out, self.length)?;
        self.length += out.len() as u64;
        if self.first_end == 0 {
            self.first_end = self.length;
        }
        self.apply(change);
        Ok(())
    }

    /// Returns whether the file should be rewritten because of its many changes.
    pub(super) const fn is_long(&self) -> bool {
        self.length - self.first_end > self.first_end + CHANGE_BYTES
    }

    /// Returns the bytes of a file with this catalogue as one change, and one more if sessions are
    /// stale.
    pub(super) fn encode_whole(&self, seal: &CopySeal) -> Result<Vec<u8>> {
        let mut out = MAGIC.to_vec();
        put_change(&self.whole(), MAGIC.len() as u64, seal, &mut out)?;
        if self.stale.is_empty() {
            return Ok(out);
        }
        let stale = self.stale.iter().copied().collect();
        let change =
            CatalogueChange { last_number: self.last_number, stale, ..CatalogueChange::default() };
        let at = out.len() as u64;
        put_change(&change, at, seal, &mut out)?;
        Ok(out)
    }
}

fn put_change(change: &CatalogueChange, at: u64, seal: &CopySeal, out: &mut Vec<u8>) -> Result<()> {
    seal.put(PieceOwner::Catalogue, at, compress(&pack_derived(change))?, out);
    Ok(())
}

fn read_change<'b>(
    bytes: &'b [u8],
    at: u64,
    seal: &CopySeal,
) -> Option<(CatalogueChange, &'b [u8])> {
    let (content, rest) = seal.open(PieceOwner::Catalogue, at, bytes)?;
    let plain = zstd::decode_all(&*content).ok()?;
    Some((unpack_bytes("catalogue of texts", &plain).ok()?, rest))
}

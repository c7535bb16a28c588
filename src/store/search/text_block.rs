//! A block of the copy of texts: about 1 MiB of texts of one or several sessions, compressed, with
//! an entry for each text.

use super::copy_seal::{CopySeal, PieceOwner, skip};
use crate::error::{Error, Result};
use crate::format::{pack_derived, unpack_bytes};
use crate::model::{Kind, OperationId, SessionNumber, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The approximate length of the texts in a block, in bytes. Tests have small blocks, so that there
/// are many.
pub(super) const BLOCK_BYTES: usize = if cfg!(test) { 2 << 10 } else { 1 << 20 };
const ZSTD_LEVEL: i32 = 3;
/// The bit of checkpoints in [`PartSummary::kinds`].
const CHECKPOINT_BIT: u32 = 63;

/// Where a text comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TextSource {
    /// A version of a fact: a hash of its row's key, and the operation that recorded it.
    Fact { row: u64, operation: OperationId },
    /// A claim in a revision.
    Claim,
    /// A checkpoint's message and tags, with a hash of the checkpoint. It may have changed since.
    Checkpoint { state: u64 },
}

/// What a text is, without the text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TextEntry {
    /// The kind of entity; `None` for a checkpoint.
    pub(super) kind: Option<Kind>,
    pub(super) id: String,
    pub(super) at: Timestamp,
    /// The number of the revision or checkpoint; `None` for a fact.
    pub(super) sequence: Option<u64>,
    pub(super) source: TextSource,
    /// The length of the text, in bytes.
    pub(super) length: usize,
}

/// Returns the bit of a kind, or of checkpoints, in [`PartSummary::kinds`].
pub(super) fn kind_bit(kind: Option<Kind>) -> u64 {
    1 << kind.map_or(CHECKPOINT_BIT, |kind| u32::from(kind.code()).min(CHECKPOINT_BIT - 1))
}

/// The texts of one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SessionTexts {
    pub(super) entries: Vec<TextEntry>,
    /// The texts, one after the other.
    pub(super) text: String,
}

impl SessionTexts {
    pub(super) fn add(&mut self, mut entry: TextEntry, text: &str) {
        entry.length = text.len();
        self.entries.push(entry);
        self.text.push_str(text);
    }
}

/// What a block has of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartSummary {
    pub(super) session: SessionNumber,
    /// The number of texts.
    pub(super) texts: u64,
    /// The kinds of the texts, one bit each ([`kind_bit`]).
    pub(super) kinds: u64,
    /// The earliest and the latest time of a text.
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
}

/// The content of a block: texts by session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockContent {
    pub(super) parts: BTreeMap<SessionNumber, SessionTexts>,
}

#[derive(Serialize, Deserialize)]
struct PackedPart {
    session: SessionNumber,
    entries: Vec<TextEntry>,
}

impl BlockContent {
    /// Returns the length of all texts, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.parts.values().map(|part| part.text.len()).sum()
    }

    /// Adds the texts of another block.
    pub(super) fn absorb(&mut self, other: Self) {
        for (session, texts) in other.parts {
            let part = self.parts.entry(session).or_default();
            part.entries.extend(texts.entries);
            part.text.push_str(&texts.text);
        }
    }

    pub(super) fn summary(&self) -> Vec<PartSummary> {
        let parts = self.parts.iter().filter(|(_, part)| !part.entries.is_empty());
        let summary = parts.map(|(session, part)| {
            let times = || part.entries.iter().map(|entry| entry.at);
            PartSummary {
                session: *session,
                texts: part.entries.len() as u64,
                kinds: part.entries.iter().fold(0, |kinds, entry| kinds | kind_bit(entry.kind)),
                first: times().min().unwrap_or_default(),
                last: times().max().unwrap_or_default(),
            }
        });
        summary.collect()
    }

    /// Returns all texts in the order of the parts.
    pub(super) fn text(&self) -> String {
        self.parts.values().map(|part| part.text.as_str()).collect()
    }

    pub(super) fn encode(&self, number: u64, seal: &CopySeal) -> Result<Vec<u8>> {
        let parts = self.parts.iter().filter(|(_, part)| !part.entries.is_empty());
        let packed: Vec<_> = parts
            .map(|(session, part)| PackedPart { session: *session, entries: part.entries.clone() })
            .collect();
        let mut out = Vec::new();
        let owner = PieceOwner::Block(number);
        seal.put(owner, 0, compress(&pack_derived(&packed))?, &mut out);
        seal.put(owner, 1, compress(self.text().as_bytes())?, &mut out);
        Ok(out)
    }

    /// Decodes a whole block; `None` if it is not valid.
    pub(super) fn decode(number: u64, bytes: &[u8], seal: &CopySeal) -> Option<Self> {
        let opened = OpenedBlock::of(number, bytes, seal)?;
        let mut content = Self::default();
        for (session, entries) in opened.entries()? {
            let part = content.parts.entry(session).or_default();
            for (from, entry) in entries {
                let text = opened.text.get(from..from.checked_add(entry.length)?)?;
                part.add(entry, text);
            }
        }
        Some(content)
    }
}

/// A block whose texts were read, but not its entries.
pub(super) struct OpenedBlock<'b> {
    number: u64,
    bytes: &'b [u8],
    seal: &'b CopySeal,
    /// All texts, one after the other.
    pub(super) text: String,
}

/// The entries of a session in a block, each with the offset of its text.
type PlacedEntries = Vec<(usize, TextEntry)>;

impl<'b> OpenedBlock<'b> {
    /// Reads the texts of a block; `None` if it is not valid.
    pub(super) fn of(number: u64, bytes: &'b [u8], seal: &'b CopySeal) -> Option<Self> {
        let (content, _) = seal.open(PieceOwner::Block(number), 1, skip(bytes)?)?;
        let text = String::from_utf8(zstd::decode_all(&*content).ok()?).ok()?;
        Some(Self { number, bytes, seal, text })
    }

    /// Reads the entries, by session; `None` if the block is not valid.
    pub(super) fn entries(&self) -> Option<Vec<(SessionNumber, PlacedEntries)>> {
        let mut at = 0;
        let parts = entries_of(self.number, self.bytes, self.seal)?.into_iter();
        let placed = parts.map(|(session, entries)| {
            let entries = entries.into_iter().map(|entry| {
                let from = at;
                at += entry.length;
                (from, entry)
            });
            (session, entries.collect())
        });
        Some(placed.collect())
    }
}

/// Reads the entries of a block, without the texts; `None` if the block is not valid.
pub(super) fn entries_of(
    number: u64,
    bytes: &[u8],
    seal: &CopySeal,
) -> Option<Vec<(SessionNumber, Vec<TextEntry>)>> {
    let (content, _) = seal.open(PieceOwner::Block(number), 0, bytes)?;
    let plain = zstd::decode_all(&*content).ok()?;
    let parts: Vec<PackedPart> = unpack_bytes("texts for searching", &plain).ok()?;
    Some(parts.into_iter().map(|part| (part.session, part.entries)).collect())
}

pub(super) fn compress(plain: &[u8]) -> Result<Vec<u8>> {
    zstd::bulk::compress(plain, ZSTD_LEVEL)
        .map_err(|error| Error::Internal(format!("texts cannot be compressed: {error}")))
}

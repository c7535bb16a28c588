//! Imported sources that grow: their bookmarks and their stored bytes.

use super::event_stream::TextResolver;
use super::redaction_gate::RedactedSource;
use super::session::Session;
use crate::backend::Snapshot;
use crate::engine::blob;
use crate::engine::fact::{self, SourcedFact};
use crate::engine::object;
use crate::error::{Error, ErrorKind, Result};
use crate::format::key::{self, of};
use crate::format::{BookmarkRow, ObjectKind, RecordBytes, RedactionSummary};
use crate::model::{Fact, ObjectId, TextRef};
use std::borrow::Cow;

/// The number of source bytes that one hash in a bookmark covers.
pub const BLOCK_BYTES: usize = 64 << 10;
const HASH_BYTES: usize = 16;

/// How far a source was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceBookmark {
    /// How many bytes were imported.
    pub bytes: u64,
    /// How many lines were imported.
    pub lines: u64,
    /// The state of the parser of the source, from which it continues.
    pub carry: Vec<u8>,
    /// The keyed hash of each block of imported bytes; the last block may be incomplete.
    blocks: Vec<[u8; HASH_BYTES]>,
    /// The name of the blob with the stored bytes; empty if they were not kept.
    pub(super) blob: String,
    /// The size after redaction, and the number of secrets, if any were removed.
    cleaned: Option<RedactionSummary>,
}

/// How a source compares with its bookmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceChange {
    /// The imported bytes are unchanged; the source may have grown.
    Kept,
    /// An imported byte has changed or is missing. The first one is in the block at this offset.
    Changed {
        /// The offset of that block, in bytes.
        offset: u64,
    },
}

fn block_hash(key: &[u8; 32], block: &[u8]) -> [u8; HASH_BYTES] {
    *blake3::keyed_hash(key, block).as_bytes().first_chunk().expect("16 of 32 bytes")
}

impl SourceBookmark {
    /// Returns the offset of the incomplete block at the bookmark. The bytes of this block are
    /// needed to move the bookmark.
    #[must_use]
    pub const fn open_block(&self) -> u64 {
        self.bytes - self.bytes % BLOCK_BYTES as u64
    }

    /// Returns how many bytes are stored: the imported ones after redaction.
    #[must_use]
    pub fn kept_bytes(&self) -> u64 {
        self.cleaned.map_or(self.bytes, |cleaned| cleaned.bytes)
    }

    /// Returns how many secrets were removed.
    #[must_use]
    pub fn removed(&self) -> u64 {
        self.cleaned.map_or(0, |cleaned| cleaned.removed)
    }

    /// Compares a part of the source with what was imported. `content` has bytes of the source from
    /// `offset` on, which must be the start of a block. Bytes after the bookmark are ignored. If
    /// `content` ends inside a block before the bookmark, this block counts as changed.
    #[must_use]
    pub fn compare(&self, key: &[u8; 32], offset: u64, content: &[u8]) -> SourceChange {
        let taken = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let content = content.get(..taken).unwrap_or(content);
        let first = usize::try_from(offset / BLOCK_BYTES as u64).unwrap_or(usize::MAX);
        for (place, block) in content.chunks(BLOCK_BYTES).enumerate() {
            if self.blocks.get(first + place) != Some(&block_hash(key, block)) {
                return SourceChange::Changed { offset: offset + (place * BLOCK_BYTES) as u64 };
            }
        }
        SourceChange::Kept
    }

    /// Moves the bookmark over the bytes in `taken`. They follow the bytes in `open`, which are
    /// those from [`SourceBookmark::open_block`] to the bookmark.
    pub(super) fn advance(&mut self, key: &[u8; 32], open: &[u8], taken: &RedactedSource<'_>) {
        let kept = self.kept_bytes() + taken.bytes().len() as u64;
        let removed = self.removed() + taken.removed();
        let taken = taken.source();
        if !open.is_empty() {
            self.blocks.pop();
        }
        let whole =
            if open.is_empty() { Cow::Borrowed(taken) } else { Cow::Owned([open, taken].concat()) };
        self.blocks.extend(whole.chunks(BLOCK_BYTES).map(|block| block_hash(key, block)));
        self.bytes += taken.len() as u64;
        self.cleaned = (removed > 0).then_some(RedactionSummary { bytes: kept, removed });
    }

    pub(super) fn row(&self) -> BookmarkRow {
        BookmarkRow {
            blob: self.blob.clone(),
            bytes: self.bytes,
            lines: self.lines,
            blocks: RecordBytes(self.blocks.concat()),
            carry: RecordBytes(self.carry.clone()),
            cleaned: self.cleaned,
        }
    }

    fn of(row: BookmarkRow) -> Self {
        Self {
            bytes: row.bytes,
            lines: row.lines,
            carry: row.carry.0,
            blocks: row.blocks.0.as_chunks::<HASH_BYTES>().0.to_vec(),
            blob: row.blob,
            cleaned: row.cleaned,
        }
    }
}

impl Session {
    /// Returns how far a source was imported; `None` if it was not imported.
    pub fn bookmark(&self, source: &str) -> Result<Option<SourceBookmark>> {
        Ok(self.bookmark_row(source)?.map(SourceBookmark::of))
    }

    /// Returns the row of a bookmark, or of a mark that is kept like one.
    pub(super) fn bookmark_row(&self, source: &str) -> Result<Option<BookmarkRow>> {
        let row = self.view()?.get(key::BOOKMARKS, &of(self.number).text(source).build())?;
        row.map(|row| BookmarkRow::decode(&row).map_err(Error::corrupt("a bookmark"))).transpose()
    }

    /// Returns the names of the blobs that a source has had, the first one first.
    pub(super) fn blobs_of(&self, source: &str) -> Result<Vec<String>> {
        let view = self.view()?;
        let mut blobs = Vec::new();
        loop {
            let name = blob_name(source, blobs.len());
            let first = of(self.number).text(&name).number(0).build();
            if view.get(key::SEGMENTS, &first)?.is_none() {
                return Ok(blobs);
            }
            blobs.push(name);
        }
    }

    /// Returns the facts for which no version with the same time and origin is recorded.
    pub fn unknown_facts(&self, facts: Vec<Fact>) -> Result<Vec<Fact>> {
        let view = self.view()?;
        let mut unknown = Vec::with_capacity(facts.len());
        for fact in facts {
            let versions = fact::versions(&view, &view.refs, self.number, fact.kind, &fact.id)?;
            let same =
                |known: &SourcedFact| known.fact.at == fact.at && known.fact.origin == fact.origin;
            if !versions.iter().any(same) {
                unknown.push(fact);
            }
        }
        Ok(unknown)
    }

    /// Returns the stored bytes that contain a long text of a fact: a JSON document of its source
    /// if the reference has a place, otherwise the text itself.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the bytes are missing; also if the store cannot be read or is damaged.
    pub fn text_bytes(&self, source: Option<&str>, text: &TextRef) -> Result<Vec<u8>> {
        match (text.place, source) {
            (Some((offset, length)), Some(source)) => self.blob_bytes(source, offset, length),
            _ => self.object_bytes(&text.hash),
        }
    }

    /// Returns a whole long text of a fact. `resolve` extracts it from the document of its source.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is missing; also if the store cannot be read or is damaged.
    pub fn text(
        &self,
        source: Option<&str>,
        text: &TextRef,
        resolve: TextResolver<'_>,
    ) -> Result<String> {
        let bytes = self.text_bytes(source, text)?;
        let whole = if text.place.is_some() && source.is_some() {
            resolve(&bytes, &text.pointer)
        } else {
            String::from_utf8(bytes).ok()
        };
        whole.ok_or_else(|| Error::missing(format!("the text at '{}'", text.pointer)))
    }

    /// Returns the blob of the source that contains a text. It is found by the hash of the text,
    /// because the body of a checkpoint does not name the source. If no source contains the text,
    /// returns a blob whose bytes were dropped, if there is one. `None` if the text is a separate
    /// object.
    pub fn source_of(&self, text: &TextRef, resolve: TextResolver<'_>) -> Result<Option<String>> {
        if text.place.is_none() {
            return Ok(None);
        }
        let mut blobs = Vec::new();
        for (source, _) in self.summary()?.sources {
            blobs.extend(self.blobs_of(&source)?);
        }
        let mut dropped = None;
        for blob in blobs {
            match self.text(Some(&blob), text, resolve) {
                Ok(whole)
                    if *blake3::hash(whole.as_bytes()).as_bytes() == *text.hash.as_bytes() =>
                {
                    return Ok(Some(blob));
                }
                // This source has other bytes at this place, or none.
                Ok(_) => {}
                Err(Error::TextRemoved { blob }) => dropped = Some(blob),
                Err(error) if error.kind() == ErrorKind::Corrupt => {}
                Err(error) => return Err(error),
            }
        }
        // The text may have been in a dropped source.
        Ok(dropped)
    }

    /// Reads a part of a blob.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is missing; also if the store cannot be read or is damaged.
    pub fn blob_bytes(&self, blob: &str, offset: u64, length: u64) -> Result<Vec<u8>> {
        let view = self.view()?;
        let (start, content) =
            self.store.engine.blobs.read(&view, self.number, blob, offset, length)?;
        let begin = usize::try_from(offset - start).unwrap_or(usize::MAX);
        let end = begin.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        content
            .get(begin..end)
            .map(<[u8]>::to_vec)
            .ok_or_else(|| Error::missing(format!("the blob '{blob}' from {offset} on")))
    }

    /// Reads a large text that is a separate object.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is missing; also if the store cannot be read or is damaged.
    pub fn object_bytes(&self, id: &ObjectId) -> Result<Vec<u8>> {
        object::content_of(&self.view()?, ObjectKind::Blob, id)
    }

    /// Reads a part of a source as it is stored.
    ///
    /// # Errors
    /// [`Error::NotFound`] if its bytes were not kept; [`Error::Corrupt`] if they are missing; also
    /// if the store cannot be read or is damaged.
    pub fn source_bytes(&self, source: &str, offset: u64, length: u64) -> Result<Vec<u8>> {
        self.blob_bytes(&self.kept(source)?.blob, offset, length)
    }

    fn kept(&self, source: &str) -> Result<SourceBookmark> {
        self.bookmark(source)?
            .filter(|bookmark| !bookmark.blob.is_empty())
            .ok_or_else(|| Error::not_found("kept source", source))
    }

    /// Returns how many bytes a source occupies on disk. It is compressed, each part with the bytes
    /// before it as a prefix.
    ///
    /// # Errors
    /// [`Error::NotFound`] if its bytes were not kept; also if the store cannot be read or is
    /// damaged.
    pub fn stored_bytes(&self, source: &str) -> Result<u64> {
        blob::stored_bytes(&self.view()?, self.number, &self.kept(source)?.blob)
    }

    /// Writes the stored bytes of a source, part by part. They are the bytes of the source, except
    /// for removed secrets.
    ///
    /// # Errors
    /// [`Error::NotFound`] if its bytes were not kept; any error of `write`; also if the store
    /// cannot be read or is damaged.
    pub fn write_source<E: From<Error>>(
        &self,
        source: &str,
        write: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let bookmark = self.kept(source)?;
        const PART_BYTES: u64 = 4 << 20;
        let mut offset = 0;
        let kept = bookmark.kept_bytes();
        while offset < kept {
            let length = PART_BYTES.min(kept - offset);
            write(&self.blob_bytes(&bookmark.blob, offset, length)?)?;
            offset += length;
        }
        Ok(())
    }
}

/// Returns the blob name for a source that has had `before` blobs already.
pub(super) fn blob_name(source: &str, before: usize) -> String {
    if before == 0 { source.to_owned() } else { format!("{source}#{}", before + 1) }
}

//! Imports the next chunk of a source: its bytes and facts, and the moved bookmark, in one record.

use super::import_precondition::ImportPrecondition;
use super::imported_source::{SourceBookmark, blob_name};
use super::new_checkpoint::NewCheckpoint;
use super::redaction_gate::RedactedSource;
use super::session::Session;
use super::write_context::WriteContext;
use super::write_report::WriteReport;
use crate::engine::blob;
use crate::engine::commit::CommitDurability;
use crate::engine::refs::session as session_refs;
use crate::error::{Error, Result};
use crate::format::{Record, RecordChange};
use crate::model::{Fact, OperationId};
use std::ops::Range;
use std::sync::Arc;

/// The next chunk of a source, with the facts parsed from it.
#[derive(Debug, Default)]
pub struct SourceChunk<'a> {
    /// The bookmark before the chunk; [`SourceBookmark::default`] for the first chunk.
    pub bookmark: SourceBookmark,
    /// Bytes of the source from [`SourceBookmark::open_block`] to the bookmark.
    pub open: &'a [u8],
    /// The bytes of the chunk ([`super::Store::redact_source`]).
    pub bytes: RedactedSource<'a>,
    /// How many lines the chunk has.
    pub lines: u64,
    /// Whether the bytes are stored, so that texts can refer to them and the source can be written
    /// back.
    pub keep: bool,
    /// Whether the source changed and is read again from its beginning: known facts are skipped.
    pub rereads: bool,
    /// The state of the source's parser after the chunk.
    pub carry: Vec<u8>,
    /// The facts parsed from the chunk, without secrets.
    pub facts: Vec<Fact>,
    /// The checkpoints for the chunk; each needs a key.
    pub checkpoints: Vec<NewCheckpoint>,
}

/// The maximum length in bytes of segments that go into one record with their bookmark. Longer ones
/// are pre-written.
const MAX_TOGETHER_BYTES: usize = 512 << 10;

fn object_bytes(segment: &RecordChange) -> usize {
    if let RecordChange::Segment { object, .. } = segment { object.0.len() } else { 0 }
}

impl Session {
    /// Imports the next chunk of a source: its bytes, facts and checkpoints, all or nothing.
    /// Durable after [`super::Store::sync`]. Returns a report and the new bookmark.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the source was imported further since its bookmark was read: then
    /// nothing was imported, and the caller continues from the new bookmark. [`Error::Invalid`] if
    /// the source's name contains a secret ([`super::Store::without_secrets`]). Fails if the store
    /// cannot be written.
    pub fn import_chunk(
        &self,
        act: &WriteContext,
        operation: OperationId,
        source: &str,
        taken: SourceChunk<'_>,
    ) -> Result<(WriteReport, SourceBookmark)> {
        self.store.gate().name("name of the source", source)?;
        let (mut bookmark, mut bytes) = (taken.bookmark, taken.bytes);
        let begins = bookmark.bytes == 0;
        if taken.keep && begins {
            bookmark.blob = self.new_blob(source, taken.rereads)?;
        }
        let purges = self.store.engine.follower.refs()?.0.purges;
        let from = bookmark.bytes;
        let mut precondition =
            ImportPrecondition { source: source.to_owned(), from, parts: vec![], purges };
        if begins && taken.rereads {
            precondition.from = self.bookmark(source)?.map_or(0, |known| known.bytes);
        }
        let mut segments = Vec::new();
        if taken.keep {
            // The bytes were compressed as a first part, which is only valid at the beginning of a
            // blob.
            let compressed = if begins { bytes.take_compressed() } else { Vec::new() };
            segments = if compressed.is_empty() {
                self.segments(&bookmark, bytes.bytes())?
            } else {
                blob::changes(self.number, &bookmark.blob, compressed)
            };
        }
        let size = segments.iter().map(object_bytes).sum::<usize>();
        if size > MAX_TOGETHER_BYTES {
            self.prewrite(act, operation, &mut precondition, std::mem::take(&mut segments))?;
        }
        bookmark.advance(self.store.hash_key(), taken.open, &bytes);
        bookmark.lines += taken.lines;
        bookmark.carry = taken.carry;
        let facts = if taken.rereads { self.unknown_facts(taken.facts)? } else { taken.facts };
        let points_into = taken.keep.then(|| bookmark.blob.clone());
        let done = self
            .write(act)
            .part_of(operation)
            .imported()
            .facts(facts, points_into)
            .checkpoints(taken.checkpoints)
            .importing(precondition, segments, bookmark.row())
            .commit()?;
        Ok((done, bookmark))
    }

    /// Returns the name for a source's blob: another one each time the source is read again from
    /// its beginning.
    fn new_blob(&self, source: &str, rereads: bool) -> Result<String> {
        let before = if rereads { self.blobs_of(source)?.len() } else { 0 };
        Ok(blob_name(source, before))
    }

    /// Makes the changes that append these bytes to the bookmark's blob.
    fn segments(&self, bookmark: &SourceBookmark, content: &[u8]) -> Result<Vec<RecordChange>> {
        let (known, end) = self.end_of_source(bookmark)?;
        let before = known
            .get(end)
            .ok_or_else(|| Error::missing(format!("the end of the blob '{}'", bookmark.blob)))?;
        let (blob, kept) = (&bookmark.blob, bookmark.kept_bytes());
        Ok(blob::segments(self.number, blob, kept, before, content))
    }

    /// Reads the last bytes of a source, with which the next ones are compressed, and keeps them in
    /// memory: a second thread can do this while the next chunk is parsed.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn load_end_of_source(&self, bookmark: &SourceBookmark) -> Result<()> {
        self.end_of_source(bookmark).map(drop)
    }

    /// Returns bytes of the bookmark's blob, and the range in them of the bytes since the last
    /// restart of the compression.
    fn end_of_source(&self, bookmark: &SourceBookmark) -> Result<(Arc<Vec<u8>>, Range<usize>)> {
        let kept = bookmark.kept_bytes();
        let view = self.view()?;
        let dropped = session_refs(&view.refs, self.number)?.dropped(&bookmark.blob);
        let from = blob::restart_before(kept).max(dropped);
        let length = kept - from;
        if length == 0 {
            return Ok((Arc::default(), 0..0));
        }
        let engine = &self.store.engine;
        let (start, known) = engine.blobs.read(&view, self.number, &bookmark.blob, from, length)?;
        let begin = usize::try_from(from - start).unwrap_or(usize::MAX);
        let end = begin.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        Ok((known, begin..end))
    }

    /// Pre-writes segments that are too large for the record of their bookmark. They are ignored
    /// until that record is written; another import of the source can replace them before.
    fn prewrite(
        &self,
        act: &WriteContext,
        operation: OperationId,
        precondition: &mut ImportPrecondition,
        segments: Vec<RecordChange>,
    ) -> Result<()> {
        let mut operation_of_parts = act.operation()?;
        operation_of_parts.id = operation;
        for segment in segments {
            self.store.engine.commit(CommitDurability::Later, &mut |context| {
                precondition.check_bookmark(&context.refs, self.number)?;
                let changes = vec![segment.clone()];
                Ok((Some(Record { operation: operation_of_parts.clone(), changes }), ()))
            })?;
            precondition.parts.push(segment);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Reads what a session has of a transcript.

use crate::claude_code::TranscriptState;
use forge_store::error::{Error, Result};
use forge_store::store::{Session, SourceBookmark};
use serde::{Deserialize, Serialize};

/// The note about a transcript that was handed over, in the bookmark of its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MirrorNote {
    /// When the last line was handed over, in milliseconds since 1970.
    pub(super) written_at: i64,
    /// How many lines the transcript had then.
    pub(super) lines: u64,
    /// The offset of the first stored byte that is shown: the bytes before it were deleted.
    pub(super) begin: u64,
    pub(super) summary: Option<String>,
}

pub(super) struct KnownTranscript {
    pub(super) session: Session,
    pub(super) source: String,
    pub(super) bookmark: SourceBookmark,
    pub(super) state: TranscriptState,
}

impl KnownTranscript {
    pub(super) fn read(session: Session, source: String) -> Result<Option<Self>> {
        let Some(bookmark) = session.bookmark(&source)? else { return Ok(None) };
        let state = match bookmark.carry.as_slice() {
            [] => TranscriptState::default(),
            bytes => serde_json::from_slice(bytes)
                .map_err(|error| Error::Internal(format!("a bookmark cannot be read: {error}")))?,
        };
        Ok(Some(Self { session, source, bookmark, state }))
    }

    pub(super) fn begin(&self) -> u64 {
        self.state.mirror.as_ref().map_or(0, |note| note.begin)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.begin() >= self.bookmark.kept_bytes()
    }

    /// Whether its last lines were handed over, rather than imported.
    pub(super) fn is_noted(&self) -> bool {
        self.state.mirror.as_ref().is_some_and(|note| note.lines == self.bookmark.lines)
    }

    pub(super) fn summary(&self) -> Option<String> {
        self.state.mirror.as_ref().filter(|_| self.is_noted())?.summary.clone()
    }

    pub(super) fn tail(&self, length: u64) -> Result<Vec<u8>> {
        let kept = self.bookmark.kept_bytes();
        let length = length.min(kept.saturating_sub(self.begin()));
        if length == 0 {
            return Ok(Vec::new());
        }
        self.session.source_bytes(&self.source, kept - length, length)
    }

    /// Returns the last stored bytes: as many as the unfinished block at the bookmark has, and at
    /// least one. If fewer are stored, spaces precede them.
    ///
    /// If secrets were removed, the block in the imported file has other bytes. A later import of
    /// that file then reads it from its beginning.
    pub(super) fn open_block(&self) -> Result<Vec<u8>> {
        let (bytes, kept) = (self.bookmark.bytes, self.bookmark.kept_bytes());
        let wanted = (bytes - self.bookmark.open_block()).max(1);
        let length = wanted.min(kept);
        if length == 0 {
            return Ok(Vec::new());
        }
        let mut tail = self.session.source_bytes(&self.source, kept - length, length)?;
        let missing = usize::try_from(wanted - length).unwrap_or_default();
        tail.splice(0..0, std::iter::repeat_n(b' ', missing));
        Ok(tail)
    }
}

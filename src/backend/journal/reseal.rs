//! Replacing the seals of all records. Hashes and positions do not change.

use super::layout::{self, SyncMark};
use super::{Journal, segment};
use crate::backend::frame::{self, FrameHeader, FrameKind, HEADER_BYTES};
use crate::backend::{Error, LogPosition, SealMode, files};
use std::path::Path;
use std::time::Duration;

impl Journal {
    /// Seals every record again and returns the end of the journal. Each segment is written to a
    /// new file, which replaces the old one once it is synced. The journal must be opened without
    /// checking seals.
    ///
    /// # Errors
    /// [`Error::Damaged`] as from reading the whole journal; [`Error::Busy`], [`Error::Io`].
    pub(crate) fn reseal(&self, timeout: Duration, seals: &SealMode) -> Result<SyncMark, Error> {
        let _held = self.writer("seal")?.acquire(timeout)?;
        let oldest = segment::list(&self.folder)?.first().copied().unwrap_or(0);
        // Reads the whole journal first, so that a damaged one is not resealed.
        let (_, tip) = self.catch_up(oldest)?;
        self.remove_unlinked(&tip)?;
        for start in segment::list(&self.folder)? {
            let end = (start == tip.segment.start).then_some(tip.end);
            let path = self.folder.join(layout::segment_name(start));
            rewrite(&path, start, end, seals)?;
        }
        segment::sync_folder(&self.folder)?;
        *super::locked(&self.tip) = None;
        *super::locked(&self.place) = None;
        self.note(&tip);
        Ok(SyncMark { position: tip.end, hash: tip.previous.unwrap_or_default() })
    }
}

fn rewrite(
    path: &Path,
    start: LogPosition,
    end: Option<LogPosition>,
    seals: &SealMode,
) -> Result<(), Error> {
    let mut bytes = std::fs::read(path).map_err(Error::io("read", path))?;
    if let Some(end) = end {
        bytes.truncate((end - start) as usize);
    }
    let mut at = 0;
    while let Some(head) = bytes.get(at..).and_then(|rest| rest.first_chunk::<HEADER_BYTES>()) {
        let Ok(header) = FrameHeader::decode(head, start + at as u64) else { break };
        let frame_end = at + header.frame_bytes() as usize;
        let Some(frame) = bytes.get_mut(at..frame_end) else { break };
        frame::reseal(frame, seals);
        at = frame_end;
        if header.kind == FrameKind::End {
            break;
        }
    }
    bytes.truncate(at);
    files::replace(path, &segment::copy_of(path), &bytes)
}

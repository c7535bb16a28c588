//! Starting a new segment, and removing segments that are no longer needed.

use super::layout;
use super::scan::{self, JournalCursor, JournalWalk};
use super::segment::{self, JournalSegment};
use super::{Journal, locked};
use crate::backend::frame::{self, FrameKind};
use crate::backend::{AppendedRecord, Error, LogPosition, LogTail, RecordHash};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

impl Journal {
    pub(super) fn begin_segment(
        &self,
        from: LogPosition,
        timeout: Duration,
        first: &mut dyn FnMut(&LogTail) -> Option<Vec<u8>>,
    ) -> Result<Option<AppendedRecord>, Error> {
        let lock = self.writer("rotate")?;
        self.sync_ahead();
        let _held = lock.acquire(timeout)?;
        segment::remove_copies(&self.folder)?;
        let (tail, tip) = self.catch_up(from)?;
        let Some(payload) = first(&tail) else { return Ok(None) };
        self.check_size(&payload).map_err(Error::io("rotate", &self.folder))?;
        if tip.end == tip.segment.start {
            // The current segment is still empty, so the record becomes its first.
            let appended = self.write_record(tip, &payload)?;
            let (_, tip) = self.catch_up(appended.end)?;
            self.flush_or_write_again(&tip)?;
            return Ok(Some(appended));
        }
        self.link_next(&tip, &payload).map(Some)
    }

    /// Syncs the records that are known to this process, before the lock is taken, to shorten the
    /// time under the lock. Errors are handled by the sync under the lock.
    fn sync_ahead(&self) {
        let known = locked(&self.tip).clone().filter(|tip| tip.previous.is_some());
        if let Some(tip) = known.filter(|tip| tip.end > self.progress.known())
            && !self.progress.has_failed()
        {
            let _ = self.flush(&tip);
        }
    }

    fn flush_or_write_again(&self, tip: &JournalCursor) -> Result<(), Error> {
        if !self.progress.has_failed() {
            self.progress.advance(self.mark.position()?);
            match self.flush(tip) {
                Err(error) if !self.progress.has_failed() => return Err(error),
                Err(error) => tracing::warn!(%error, "a sync failed; writing the records again"),
                Ok(()) => return Ok(()),
            }
        }
        self.write_again()
    }

    /// Writes the next segment's first record, then the end frame of this segment that links to it.
    /// Readers ignore the new file before the link is written, and use it after that.
    fn link_next(&self, tip: &JournalCursor, payload: &[u8]) -> Result<AppendedRecord, Error> {
        let position = tip.end;
        let path = self.folder.join(layout::segment_name(position));
        segment::remove(&path)?;
        let previous = tip.previous.unwrap_or_default();
        let (frame, hash) = self.frame_of(position, position, &previous, payload);
        let (end_frame, _) =
            frame::encode(FrameKind::End, position, position, &previous, &hash, &self.seals);
        let begun = self.write_next_first(tip, &path, &frame).and_then(|(tip, next)| {
            tip.segment.write_or_cut(position, &end_frame)?;
            Ok((tip, next))
        });
        let (tip, next) = match begun {
            Ok((tip, next)) => (tip, Arc::new(next)),
            Err(error) => {
                // The file is not linked, so readers ignore it if it cannot be removed.
                for left in [&path, &self.next_path()] {
                    let _ = segment::remove(left);
                }
                *locked(&self.tip) = None;
                return Err(error);
            }
        };
        let end = position + frame.len() as u64;
        let next = JournalCursor { segment: next, end, previous: Some(hash) };
        *locked(&self.tip) = Some(next.clone());
        if self.progress.sync(&tip.segment.file).is_ok() {
            self.note(&next);
        } else {
            self.progress.fail(position);
            self.write_again()?;
        }
        Ok(AppendedRecord { position, end, hash })
    }

    /// Writes the next segment with its first record, durably under its name, after everything
    /// before it is durable.
    fn write_next_first(
        &self,
        tip: &JournalCursor,
        path: &Path,
        frame: &[u8],
    ) -> Result<(JournalCursor, JournalSegment), Error> {
        let draft = self.next_path();
        let file = match self.take_next() {
            Some(file) => file,
            None => {
                // A file there was left by a crash, or preallocated by another process, which then
                // rotates without it.
                segment::remove(&draft)?;
                segment::create_private(&draft).map_err(Error::io("create", &draft))?
            }
        };
        let next = JournalSegment::in_room(tip.end, path.to_owned(), file)?;
        next.write_or_cut(tip.end, frame)?;
        // Starts writing to disk while the two syncs that must come first run, to shorten the time
        // under the lock.
        next.write_out(tip.end, frame.len() as u64);
        self.flush_or_write_again(tip)?;
        // After a failed sync the records were written again, to another file.
        let (_, tip) = self.catch_up(tip.end)?;
        // Renamed only after everything before it is durable: a named segment beyond the end that a
        // crash left would collide with the records appended there.
        fs::rename(&draft, path).map_err(Error::io("rename", path))?;
        segment::sync_folder(&self.folder)?;
        self.progress.sync(&next.file).map_err(Error::io("sync", path))?;
        Ok((tip, next))
    }

    /// Writes the first record of a journal that starts at a position.
    pub(super) fn begin_at(&self, start: LogPosition, payload: &[u8]) -> Result<(), Error> {
        self.check_size(payload).map_err(Error::io("begin", &self.folder))?;
        let none = RecordHash::default();
        let (frame, hash) = self.frame_of(start, start, &none, payload);
        let path = self.folder.join(layout::segment_name(start));
        let segment =
            JournalSegment::create(&self.folder, start).map_err(Error::io("create", &path))?;
        segment.write_or_cut(start, &frame)?;
        self.progress.sync(&segment.file).map_err(Error::io("sync", &path))?;
        segment::sync_folder(&self.folder)?;
        let segment = Arc::new(segment);
        let end = start + frame.len() as u64;
        self.note(&JournalCursor { segment, end, previous: Some(hash) });
        Ok(())
    }

    pub(super) fn remove_segments(&self, before: LogPosition) -> Result<(), Error> {
        self.writer("remove segments of")?;
        let known = scan::WalkContext { write: false, ..self.walk_context()? };
        let kept = match JournalWalk::locate(&self.folder, known, before) {
            Ok(walk) => walk.cursor().segment.start,
            Err(Error::Gone { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        for start in segment::list(&self.folder)?.into_iter().take_while(|start| *start < kept) {
            segment::remove_large(&self.folder.join(layout::segment_name(start)))?;
            // One by one, oldest first, so that a power cut cannot leave a gap between segments.
            segment::sync_folder(&self.folder)?;
        }
        Ok(())
    }
}

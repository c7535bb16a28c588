//! Beginning a segment, and removing those that are no longer needed.

use super::layout::{self, Kind};
use super::scan::{self, Cursor, Walk};
use super::segment::{self, Segment};
use super::{Journal, held};
use crate::backend::{Appended, Error, Position, RecordHash, Tail};
use std::sync::Arc;
use std::time::Duration;

impl Journal {
    pub(super) fn begin_segment(
        &self,
        from: Position,
        timeout: Duration,
        first: &mut dyn FnMut(&Tail) -> Option<Vec<u8>>,
    ) -> Result<Option<Appended>, Error> {
        let lock = self.writer("rotate")?;
        self.sync_ahead();
        let _held = lock.acquire(timeout)?;
        segment::remove_copies(&self.folder)?;
        let (tail, tip) = self.catch_up(from)?;
        let Some(payload) = first(&tail) else { return Ok(None) };
        self.check_size(&payload).map_err(Error::io("rotate", &self.folder))?;
        if tip.end == tip.segment.start {
            // Nothing to end yet: the record begins the segment that is there.
            let appended = self.write_record(tip, &payload)?;
            let (_, tip) = self.catch_up(appended.end)?;
            self.flush_or_write_again(&tip)?;
            return Ok(Some(appended));
        }
        self.flush_or_write_again(&tip)?;
        let (_, tip) = self.catch_up(tip.end)?;
        self.link_next(&tip, &payload).map(Some)
    }

    /// Syncs what is known to be there, so that whoever waits for the lock waits less. What comes of it is seen under the
    /// lock.
    fn sync_ahead(&self) {
        let known = held(&self.tip).clone().filter(|tip| tip.previous.is_some());
        if let Some(tip) = known.filter(|tip| tip.end > self.progress.known())
            && !self.progress.has_failed()
        {
            let _ = self.flush(&tip);
        }
    }

    fn flush_or_write_again(&self, tip: &Cursor) -> Result<(), Error> {
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

    /// Writes the next segment's first record, then the end of this one that links to it: before
    /// the link is written nobody counts the new file, after that everybody does.
    fn link_next(&self, tip: &Cursor, payload: &[u8]) -> Result<Appended, Error> {
        let position = tip.end;
        let path = self.folder.join(layout::segment_name(position));
        segment::remove(&path)?;
        let previous = tip.previous.unwrap_or_default();
        let (frame, hash) = self.frame_of(position, position, &previous, payload);
        let (end_frame, _) =
            layout::encode(Kind::End, position, position, &previous, &hash, &self.seals);
        let begun = self.write_first(position, &frame).and_then(|next| {
            tip.segment.write_or_cut(position, &end_frame)?;
            Ok(next)
        });
        let next = match begun {
            Ok(next) => Arc::new(next),
            Err(error) => {
                // It does not count, so it does not matter if it stays.
                let _ = segment::remove(&path);
                *held(&self.tip) = None;
                return Err(error);
            }
        };
        let end = position + frame.len() as u64;
        let next = Cursor { segment: next, end, previous: Some(hash) };
        *held(&self.tip) = Some(next.clone());
        if self.progress.sync(&tip.segment.file).is_ok() {
            self.note(&next);
        } else {
            self.progress.fail(position);
            self.write_again()?;
        }
        Ok(Appended { position, end, hash })
    }

    /// Writes the first record of a journal that begins at a position.
    pub(super) fn begin_at(&self, start: Position, payload: &[u8]) -> Result<(), Error> {
        self.check_size(payload).map_err(Error::io("begin", &self.folder))?;
        let none = RecordHash::default();
        let (frame, hash) = self.frame_of(start, start, &none, payload);
        let segment = Arc::new(self.write_first(start, &frame)?);
        let end = start + frame.len() as u64;
        self.note(&Cursor { segment, end, previous: Some(hash) });
        Ok(())
    }

    /// A new segment with its first record, durable under its name.
    fn write_first(&self, position: Position, frame: &[u8]) -> Result<Segment, Error> {
        let path = self.folder.join(layout::segment_name(position));
        let roomy = self.take_next();
        let renamed = roomy.is_some();
        let next = match roomy {
            Some(file) => Segment::in_room(position, path.clone(), file)?,
            None => {
                // What is there was left by a crash: only who rotates makes it.
                segment::remove(&self.next_path())?;
                Segment::create(&self.folder, position).map_err(Error::io("create", &path))?
            }
        };
        next.write_or_cut(position, frame)?;
        self.progress.sync(&next.file).map_err(Error::io("sync", &next.path))?;
        if renamed {
            std::fs::rename(self.next_path(), &path).map_err(Error::io("rename", &path))?;
        }
        segment::sync_folder(&self.folder)?;
        Ok(next)
    }

    pub(super) fn remove_segments(&self, before: Position) -> Result<(), Error> {
        self.writer("remove segments of")?;
        let known = scan::Known { write: false, ..self.known_of()? };
        let kept = match Walk::locate(&self.folder, known, before) {
            Ok(walk) => walk.cursor().segment.start,
            Err(Error::Gone { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        for start in segment::list(&self.folder)?.into_iter().take_while(|start| *start < kept) {
            segment::remove(&self.folder.join(layout::segment_name(start)))?;
            // One by one, oldest first: a power cut must not leave a hole between segments.
            segment::sync_folder(&self.folder)?;
        }
        Ok(())
    }
}

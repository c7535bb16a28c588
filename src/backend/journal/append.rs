//! Appending records.

use super::layout;
use super::scan::{JournalCursor, JournalWalk, damaged};
use super::{Journal, locked, segment};
use crate::backend::frame;
use crate::backend::{AppendedRecord, Error, LogPosition, LogTail, RecordHash};
use std::io;
use std::ops::Range;
use std::time::Duration;

impl Journal {
    pub(super) fn append_record(
        &self,
        from: LogPosition,
        timeout: Duration,
        build: &mut dyn FnMut(&LogTail) -> Option<Vec<u8>>,
    ) -> Result<Option<AppendedRecord>, Error> {
        let _lock = self.writer("append to")?.acquire(timeout)?;
        let (tail, tip) = self.catch_up(from)?;
        let Some(payload) = build(&tail) else { return Ok(None) };
        self.write_record(tip, &payload).map(Some)
    }

    /// Appends records with one write, if the journal ends at `from`. Their frames are usually made
    /// before the lock is taken, so that other writers wait for the write only.
    pub(super) fn append_records(
        &self,
        from: LogPosition,
        timeout: Duration,
        payloads: &[Vec<u8>],
    ) -> Result<Option<Vec<AppendedRecord>>, Error> {
        let lock = self.writer("append to")?;
        let known = locked(&self.tip).clone().filter(|tip| tip.end == from);
        let known = known.and_then(|tip| tip.previous);
        let made = known.map(|previous| self.frames_of(from, previous, payloads)).transpose()?;
        let _lock = lock.acquire(timeout)?;
        let (tail, tip) = self.catch_up(from)?;
        if !tail.frames.is_empty() || tip.end != from {
            return Ok(None);
        }
        let previous = tip.previous.unwrap_or_default();
        let (frames, appended) = match made {
            Some(made) if known == Some(previous) => made,
            _ => self.frames_of(from, previous, payloads)?,
        };
        self.write_frames(tip, &frames, appended.last().copied())?;
        Ok(Some(appended))
    }

    /// Returns the frames of consecutive records, and their places.
    fn frames_of(
        &self,
        from: LogPosition,
        mut previous: RecordHash,
        payloads: &[Vec<u8>],
    ) -> Result<(Vec<u8>, Vec<AppendedRecord>), Error> {
        let synced = self.progress.known();
        let length = |payload: &Vec<u8>| frame::HEADER_BYTES + payload.len();
        let mut frames = Vec::with_capacity(payloads.iter().map(length).sum());
        let mut appended = Vec::with_capacity(payloads.len());
        for payload in payloads {
            self.check_size(payload).map_err(Error::io("append to", &self.folder))?;
            let position = from + frames.len() as u64;
            let (frame, hash) = self.frame_of(position, synced, &previous, payload);
            frames.extend(frame);
            appended.push(AppendedRecord { position, end: from + frames.len() as u64, hash });
            previous = hash;
        }
        Ok((frames, appended))
    }

    /// Returns the records from `from` on and the end of the journal, after cutting a torn tail.
    /// The caller must hold the append lock.
    pub(super) fn catch_up(&self, from: LogPosition) -> Result<(LogTail, JournalCursor), Error> {
        let known = locked(&self.tip).clone();
        if let Some(tip) = known.filter(|tip| tip.end == from && tip.previous.is_some())
            && tip.is_last()?
        {
            return Ok((LogTail { frames: Vec::new(), end: from }, tip));
        }
        let (tail, mut tip) = self.confirmed(|| self.read_to_end(from))?;
        if tip.previous.is_none() {
            tip.previous = Some(self.hash_before(&tip)?);
        }
        *locked(&self.tip) = Some(tip.clone());
        Ok((tail, tip))
    }

    fn read_to_end(&self, from: LogPosition) -> Result<(LogTail, JournalCursor), Error> {
        let known = locked(&self.tip).clone();
        let mut walk = self.walk(from, known)?;
        let mut tail = LogTail { frames: Vec::new(), end: from };
        while let Some(frame) = walk.next()? {
            tail.end = frame.end;
            tail.frames.push(frame);
        }
        if walk.is_torn() {
            self.cut(&walk)?;
        }
        Ok((tail, walk.cursor().clone()))
    }

    /// Cuts a torn tail at the end of the walk, after checking that a record ends there: a walk
    /// that began in the middle of a record would see a whole record as torn.
    fn cut(&self, torn: &JournalWalk) -> Result<(), Error> {
        let JournalCursor { segment, end, .. } = torn.cursor();
        let begin = JournalCursor { segment: segment.clone(), end: segment.start, previous: None };
        let mut walk = JournalWalk::resume(&self.folder, self.walk_context()?, begin);
        while walk.next()?.is_some() {}
        let found = walk.cursor();
        if found.end != *end || found.segment.start != segment.start {
            return Err(damaged(*end, "no record begins here"));
        }
        tracing::warn!(position = *end, file = %segment.path.display(), "cut a torn tail");
        segment.cut(*end)
    }

    /// Returns the hash of the last record; zeros if there is none.
    fn hash_before(&self, tip: &JournalCursor) -> Result<RecordHash, Error> {
        if tip.end == 0 {
            return Ok(RecordHash::default());
        }
        // Usually this process has just read the last record and knows where it begins. The record
        // may have been cut off since, so it is read again.
        let record = locked(&self.last_read).clone();
        let is_last = |record: &Range<LogPosition>| {
            record.end == tip.end && record.start >= tip.segment.start
        };
        if let Some(record) = record.filter(is_last)
            && let Ok(Some(hash)) = self.hash_from(tip, record.start)
        {
            return Ok(hash);
        }
        let hash = self.hash_from(tip, tip.segment.start)?;
        hash.ok_or_else(|| damaged(tip.end, "no record ends here"))
    }

    /// Returns the hash of the last record, by walking over the records from `start` on. `None` if
    /// they do not end at `tip`.
    fn hash_from(
        &self,
        tip: &JournalCursor,
        start: LogPosition,
    ) -> Result<Option<RecordHash>, Error> {
        let begin = JournalCursor { segment: tip.segment.clone(), end: start, previous: None };
        let mut walk = JournalWalk::resume(&self.folder, self.walk_context()?, begin);
        while walk.next()?.is_some() {}
        let found = walk.cursor();
        Ok(found.previous.filter(|_| found.end == tip.end))
    }

    /// Removes a segment that an interrupted rotation left at the end of the journal. After the
    /// next append, the file could not be distinguished from a segment of the journal.
    pub(super) fn remove_unlinked(&self, tip: &JournalCursor) -> Result<(), Error> {
        let path = self.folder.join(layout::segment_name(tip.end));
        // Checking is much cheaper than trying to remove, and this runs at every append.
        let absent = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
        if tip.end == tip.segment.start || path.symlink_metadata().is_err_and(absent) {
            return Ok(());
        }
        segment::remove(&path)?;
        segment::sync_folder(&self.folder)
    }

    pub(super) fn write_record(
        &self,
        tip: JournalCursor,
        payload: &[u8],
    ) -> Result<AppendedRecord, Error> {
        let position = tip.end;
        self.check_size(payload).map_err(Error::io("append to", &tip.segment.path))?;
        let previous = tip.previous.unwrap_or_default();
        let synced = self.progress.known();
        let (frame, hash) = self.frame_of(position, synced, &previous, payload);
        let end = position + frame.len() as u64;
        let appended = AppendedRecord { position, end, hash };
        self.write_frames(tip, &frame, Some(appended))?;
        Ok(appended)
    }

    /// Writes frames at the end of the journal; `last` is the place of the last one.
    fn write_frames(
        &self,
        tip: JournalCursor,
        frames: &[u8],
        last: Option<AppendedRecord>,
    ) -> Result<(), Error> {
        let Some(AppendedRecord { end, hash, .. }) = last else { return Ok(()) };
        self.remove_unlinked(&tip)?;
        self.keep_room(&tip, frames.len());
        if let Err(error) = tip.segment.write_or_cut(tip.end, frames) {
            *locked(&self.tip) = None;
            return Err(error);
        }
        *locked(&self.tip) =
            Some(JournalCursor { segment: tip.segment, end, previous: Some(hash) });
        Ok(())
    }

    /// Returns the frame of a record, with an encrypted payload if the journal is encrypted, and
    /// its hash.
    pub(super) fn frame_of(
        &self,
        position: LogPosition,
        synced: LogPosition,
        previous: &RecordHash,
        payload: &[u8],
    ) -> (Vec<u8>, RecordHash) {
        let trust = (&self.seals, self.cipher.as_ref());
        frame::encode_record(position, synced, previous, payload, trust)
    }

    /// Rejects a payload that readers would reject.
    pub(super) fn check_size(&self, payload: &[u8]) -> io::Result<()> {
        if frame::fits(payload, self.cipher.as_ref()) {
            return Ok(());
        }
        let reason = format!("a record of {} bytes is too large; split it", payload.len());
        Err(io::Error::new(io::ErrorKind::FileTooLarge, reason))
    }
}

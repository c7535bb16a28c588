//! Appending a record.

use super::layout::{self, FrameKind, MAX_PAYLOAD_BYTES};
use super::scan::{JournalCursor, JournalWalk, damaged};
use super::{Journal, held, segment};
use crate::backend::{
    AppendedRecord, CIPHER_BYTES, EncryptionContext, Error, LogPosition, LogTail, RecordHash,
};
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

    /// Returns everything from `from` on and the end of the journal, after cutting a torn tail. The
    /// caller must hold the append lock.
    pub(super) fn catch_up(&self, from: LogPosition) -> Result<(LogTail, JournalCursor), Error> {
        let known = held(&self.tip).clone();
        if let Some(tip) = known.filter(|tip| tip.end == from && tip.previous.is_some())
            && tip.is_last()?
        {
            return Ok((LogTail { frames: Vec::new(), end: from }, tip));
        }
        let (tail, mut tip) = self.confirmed(|| self.read_to_end(from))?;
        if tip.previous.is_none() {
            tip.previous = Some(self.hash_before(&tip)?);
        }
        *held(&self.tip) = Some(tip.clone());
        Ok((tail, tip))
    }

    fn read_to_end(&self, from: LogPosition) -> Result<(LogTail, JournalCursor), Error> {
        let known = held(&self.tip).clone();
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
        // Usually this process has just read that record. It may have been cut off since, so it is
        // read again.
        let record = held(&self.last_read).clone();
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

    /// Returns the hash of the last record, by walking over the records from `start` on.
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

    /// Removes a segment that an interrupted rotation left at the end of the journal. Once the
    /// journal grows past that position, the file would be indistinguishable from a linked segment.
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
        self.remove_unlinked(&tip)?;
        let previous = tip.previous.unwrap_or_default();
        let synced = self.progress.known();
        let (frame, hash) = self.frame_of(position, synced, &previous, payload);
        self.keep_room(&tip, frame.len());
        if let Err(error) = tip.segment.write_or_cut(position, &frame) {
            *held(&self.tip) = None;
            return Err(error);
        }
        let end = position + frame.len() as u64;
        *held(&self.tip) = Some(JournalCursor { segment: tip.segment, end, previous: Some(hash) });
        Ok(AppendedRecord { position, end, hash })
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
        let hidden = self
            .cipher
            .as_ref()
            .map(|cipher| cipher.seal(EncryptionContext::Record(position), payload));
        let payload = hidden.as_deref().unwrap_or(payload);
        layout::encode(FrameKind::Record, position, synced, previous, payload, &self.seals)
    }

    /// Rejects a payload that readers would reject.
    pub(super) fn check_size(&self, payload: &[u8]) -> io::Result<()> {
        let more = if self.cipher.is_some() { CIPHER_BYTES } else { 0 };
        if payload.len() + more <= MAX_PAYLOAD_BYTES {
            return Ok(());
        }
        let reason = format!("a record of {} bytes is too large; split it", payload.len());
        Err(io::Error::new(io::ErrorKind::FileTooLarge, reason))
    }
}

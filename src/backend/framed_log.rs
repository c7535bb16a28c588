//! A [`WriteAheadLog`] whose frames are rows of a [`FrameTable`].
//!
//! A frame has the same bytes as in a journal of files: it names its position and the hash of the
//! frame before it, and has the store's seal. An append compares the end of the log and inserts the
//! frames in one statement. If another writer was faster, the record is built again, to follow the
//! new ones. After three such attempts the writer takes a lock, so that no writer waits forever.

use super::database::{FrameRow, FrameRows, FrameTable, LogHead};
use super::frame::{self, FrameHeader, FrameKind, HEADER_BYTES};
use super::journal::{JournalWitness, SyncMark, breach_of, damaged, replaced, rolled_back_error};
use super::{
    AppendedRecord, CALLS, Cipher, EncryptionContext, Error, Index, LogFrame, LogPosition, LogTail,
    RecordHash, SealMode, WriteAheadLog, locked,
};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The number of times that an append builds its record without the lock.
const UNLOCKED_ATTEMPTS: usize = 3;
/// How long to wait before an append whose outcome is unknown is sent again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// The ends of the log that are known before a read: the read must not show an earlier end.
#[derive(Clone, Copy)]
struct KnownEnds {
    /// The end that this process saw last.
    last_seen: Option<(LogPosition, RecordHash)>,
    /// The end in the witness.
    witnessed: Option<SyncMark>,
}

/// The journal of a store in a database.
pub struct FramedLog {
    table: Box<dyn FrameTable>,
    seals: SealMode,
    cipher: Option<Cipher>,
    witness: Option<JournalWitness>,
    /// The end of the log as last seen, and the hash of the last frame.
    last_seen: Mutex<Option<(LogPosition, RecordHash)>>,
    /// Whether the mark of the witness was compared with the log or the index. Until then the mark
    /// is kept: reading only the end of the log must not accept a store that was replaced.
    is_witness_checked: AtomicBool,
    /// The number of appends.
    appends: AtomicU64,
}

impl std::fmt::Debug for FramedLog {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("FramedLog").field("last_seen", &self.last_seen()).finish_non_exhaustive()
    }
}

impl FramedLog {
    /// Creates the log of these frames, without seals and encryption.
    #[must_use]
    pub fn new(table: Box<dyn FrameTable>) -> Self {
        Self {
            table,
            seals: SealMode::Absent,
            cipher: None,
            witness: None,
            last_seen: Mutex::default(),
            is_witness_checked: AtomicBool::new(false),
            appends: AtomicU64::new(0),
        }
    }

    /// Sets the seals and the witness.
    pub(crate) fn with_seals(self, seals: SealMode, witness: Option<JournalWitness>) -> Self {
        Self { seals, witness, ..self }
    }

    /// Sets the cipher of the payloads.
    pub(crate) fn with_cipher(self, cipher: Option<Cipher>) -> Self {
        Self { cipher, ..self }
    }

    /// Makes the first frame of a log, with this record.
    pub(crate) fn first_frame(&self, payload: &[u8]) -> Result<FrameRow, Error> {
        let mut frames = self.frames_after(0, [0; 32], &[payload.to_vec()], true)?;
        Ok(frames.pop().expect("one payload makes one frame"))
    }

    /// Reads and checks the whole log. Returns the position of its end and the hash of its last
    /// record.
    pub(crate) fn verified_end(&self) -> Result<SyncMark, Error> {
        const READ_BYTES: u64 = 8 << 20;
        let mut from = self.start()?;
        loop {
            let known = self.known_ends()?;
            let rows = self.table.read(from, READ_BYTES)?;
            let head = rows.head;
            from = self.open_rows(from, READ_BYTES, known, rows)?.end;
            if from == head.end {
                return Ok(SyncMark { position: head.end, hash: head.hash });
            }
        }
    }

    fn last_seen(&self) -> Option<(LogPosition, RecordHash)> {
        *locked(&self.last_seen)
    }

    /// Returns the ends that a read which begins now must show.
    fn known_ends(&self) -> Result<KnownEnds, Error> {
        Ok(KnownEnds { last_seen: self.last_seen(), witnessed: self.witness_mark()? })
    }

    /// Records the end of the log, also in the witness if its mark was checked. An end that is not
    /// after the known one is ignored: another thread may have seen a later end.
    fn note_end(&self, end: LogPosition, hash: RecordHash) {
        {
            let mut last_seen = locked(&self.last_seen);
            if last_seen.is_some_and(|(known, _)| known >= end) {
                return;
            }
            *last_seen = Some((end, hash));
        }
        if let Some(witness) = &self.witness
            && self.is_witness_checked.load(Ordering::Relaxed)
        {
            witness.note(&SyncMark { position: end, hash });
        }
    }

    /// Returns the end of the log in the witness, if there is one.
    fn witness_mark(&self) -> Result<Option<SyncMark>, Error> {
        self.witness.as_ref().map_or(Ok(None), JournalWitness::read)
    }

    /// Checks rows that were read from `from` on, with a limit of `limit` bytes, and opens their
    /// frames. `known` are the ends that were known before the read.
    fn open_rows(
        &self,
        from: LogPosition,
        limit: u64,
        known: KnownEnds,
        rows: FrameRows,
    ) -> Result<LogTail, Error> {
        let FrameRows { head, frames } = rows;
        if from < head.start {
            return Err(Error::Gone { position: from, start: head.start });
        }
        let KnownEnds { last_seen, witnessed } = known;
        let witnessed = witnessed.map(|mark| (mark.position, mark.hash));
        let known = || [last_seen, witnessed].into_iter().flatten();
        if let Some((end, _)) = known().find(|(end, _)| *end > head.end) {
            return Err(rolled_back_error(head.end, end));
        }
        if from > head.end {
            return Err(rolled_back_error(head.end, from));
        }
        let mut previous = known().find(|(end, _)| *end == from).map(|(_, hash)| hash);
        let is_known_end = previous.is_some() && from > 0;
        if from == 0 {
            previous = Some([0; 32]);
        }
        // If the record after a known end does not follow it, the log was replaced by another one.
        let replaced_if_known = |error: Error| match error {
            Error::Damaged { position, .. } if is_known_end && position == from => replaced(from),
            other => other,
        };
        let mut tail = LogTail { frames: Vec::with_capacity(frames.len()), end: from };
        for row in frames {
            let frame = self.open_frame(tail.end, previous, row).map_err(replaced_if_known)?;
            let is_other = |(end, hash): (LogPosition, RecordHash)| {
                (frame.position + 1..=frame.end).contains(&end)
                    && (end, hash) != (frame.end, frame.hash)
            };
            if known().any(is_other) {
                return Err(replaced(frame.position));
            }
            previous = Some(frame.hash);
            tail.end = frame.end;
            tail.frames.push(frame);
        }
        if witnessed.is_none_or(|(end, _)| end == 0 || (from..=tail.end).contains(&end)) {
            self.note_witness_checked();
        }
        // A read ends at the end of the log, or when it has `limit` bytes.
        let is_limited = tail.end - from >= limit && tail.end < head.end;
        if tail.end == head.end {
            if previous.is_some_and(|hash| hash != head.hash) {
                let what = "the last record is not the one that was appended";
                return Err(replaced_if_known(damaged(head.end, what)));
            }
            self.note_end(head.end, head.hash);
        } else if !is_limited || tail.frames.is_empty() {
            let what = "its records do not end at the position that the log names as its end";
            return Err(replaced_if_known(damaged(tail.end, what)));
        }
        Ok(tail)
    }

    /// Checks the frame at a position, and decrypts its payload. `previous` is the hash of the
    /// frame before it, if known.
    fn open_frame(
        &self,
        position: LogPosition,
        previous: Option<RecordHash>,
        row: FrameRow,
    ) -> Result<LogFrame, Error> {
        let flawed = |flaw: frame::FrameFlaw| match breach_of(flaw) {
            Some(breach) => {
                Error::Breach { breach, what: format!("at position {position} {flaw}") }
            }
            None => damaged(position, &flaw.to_string()),
        };
        let bytes = row.bytes;
        let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(frame::FrameFlaw::Short);
        let header = header.and_then(|header| FrameHeader::decode(header, position));
        let header = header.map_err(flawed)?;
        if header.kind != FrameKind::Record || header.frame_bytes() != bytes.len() as u64 {
            return Err(flawed(frame::FrameFlaw::Kind));
        }
        if previous.is_some_and(|previous| previous != header.previous) {
            return Err(flawed(frame::FrameFlaw::Link));
        }
        let hash = frame::verify(&bytes, &self.seals).map_err(flawed)?;
        let end = position + header.frame_bytes();
        if (row.position, row.end, row.hash) != (position, end, hash) {
            let what = "the row of the record has another position, end or hash";
            return Err(damaged(position, what));
        }
        let mut payload = bytes;
        payload.drain(..HEADER_BYTES);
        if let Some(cipher) = &self.cipher {
            payload = cipher.open(EncryptionContext::Record(position), &payload)?;
        }
        Ok(LogFrame { position, end, hash, payload })
    }

    /// Makes the frames of records that follow the end of the log. `previous` is the hash of the
    /// last record of the log.
    fn frames_after(
        &self,
        mut end: LogPosition,
        mut previous: RecordHash,
        payloads: &[Vec<u8>],
        begins_segment: bool,
    ) -> Result<Vec<FrameRow>, Error> {
        let mut frames = Vec::with_capacity(payloads.len());
        for payload in payloads {
            let position = end;
            if !frame::fits(payload, self.cipher.as_ref()) {
                let bytes = payload.len();
                let reason = format!("a record of {bytes} bytes is too large; split it");
                return Err(damaged(position, &reason));
            }
            let trust = (&self.seals, self.cipher.as_ref());
            let (bytes, hash) = frame::encode_record(position, position, &previous, payload, trust);
            end = position + bytes.len() as u64;
            previous = hash;
            let begins_segment = begins_segment || position == 0;
            frames.push(FrameRow { position, end, hash, begins_segment, bytes });
        }
        Ok(frames)
    }

    /// Returns all records from `from` on, and the hash of the last record of the log.
    fn read_to_end(&self, from: LogPosition) -> Result<(LogTail, RecordHash), Error> {
        let known = self.known_ends()?;
        let rows = self.table.read(from, u64::MAX)?;
        let hash = rows.head.hash;
        Ok((self.open_rows(from, u64::MAX, known, rows)?, hash))
    }

    /// Appends frames if the log still ends at `end` with this hash; returns `false` if it does
    /// not.
    ///
    /// If the connection breaks, it is unknown whether the frames were appended. Then the same
    /// frames are sent again. If they are refused, the log is read: it may have them already.
    /// `broken` is the error of a connection that broke when the frames were sent before.
    fn append_frames(
        &self,
        end: LogPosition,
        hash: RecordHash,
        frames: &[FrameRow],
        timeout: Duration,
        mut broken: Option<Error>,
    ) -> Result<bool, Error> {
        let head = LogHead { start: 0, end, hash };
        let since = Instant::now();
        loop {
            let appended = match self.table.append(&head, frames, timeout) {
                Ok(false) if broken.is_some() => self.has_frames(end, frames, timeout),
                appended => appended,
            };
            match (appended, broken.take()) {
                (Ok(true), _) => break,
                (Ok(false), _) => return Ok(false),
                (Err(error), known) if is_retried(&error, known.is_some()) => {
                    if since.elapsed() >= timeout {
                        return Err(of_unknown_outcome(error, known));
                    }
                    broken = Some(error);
                    std::thread::park_timeout(RETRY_AFTER);
                }
                (Err(error), None) => return Err(error),
                (Err(error), known) => return Err(of_unknown_outcome(error, known)),
            }
        }
        self.note_appended(frames);
        Ok(true)
    }

    /// Returns whether the log has these frames at a position. If so, waits until they are
    /// durable: the connection on which they were appended may have broken before that.
    fn has_frames(
        &self,
        position: LogPosition,
        frames: &[FrameRow],
        timeout: Duration,
    ) -> Result<bool, Error> {
        let FrameRows { head, frames: found } = self.table.read(position, 1)?;
        if position < head.start {
            return Err(Error::Gone { position, start: head.start });
        }
        let both = found.first().zip(frames.first());
        let is_there = both.is_some_and(|(found, first)| found.hash == first.hash);
        if is_there {
            self.table.settle(timeout)?;
        }
        Ok(is_there)
    }

    /// Counts an append, and records the end of the log after it.
    fn note_appended(&self, frames: &[FrameRow]) {
        self.appends.fetch_add(1, Ordering::Relaxed);
        if let Some(last) = frames.last() {
            self.note_end(last.end, last.hash);
        }
    }

    /// Appends the record that `build` returns, under the lock. Returns `None` if it returns none.
    fn append_locked(
        &self,
        mut from: LogPosition,
        timeout: Duration,
        build: &mut dyn FnMut(&LogTail) -> Option<Vec<u8>>,
        begins_segment: bool,
    ) -> Result<Option<AppendedRecord>, Error> {
        loop {
            let mut locked = self.table.lock(timeout)?;
            let known = self.known_ends()?;
            let rows = locked.read(from, u64::MAX)?;
            let previous = rows.head.hash;
            let tail = self.open_rows(from, u64::MAX, known, rows)?;
            let Some(payload) = build(&tail) else { return Ok(None) };
            let frames = self.frames_after(tail.end, previous, &[payload], begins_segment)?;
            match locked.append(&frames) {
                Ok(()) => self.note_appended(&frames),
                Err(error @ Error::Database { unsure: true, .. }) => {
                    // The lock was lost with the connection.
                    let broken = Some(error);
                    if !self.append_frames(tail.end, previous, &frames, timeout, broken)? {
                        from = tail.end;
                        continue;
                    }
                }
                Err(other) => return Err(other),
            }
            return Ok(frames.first().map(appended_record));
        }
    }
}

/// Returns whether an append that failed is sent again: the outcome of this or an earlier attempt
/// is unknown.
const fn is_retried(error: &Error, is_unsure: bool) -> bool {
    matches!(error, Error::Database { unsure, .. } if *unsure || is_unsure)
}

/// Makes the error of an append that may have been done, from the error of the last attempt and
/// the error of the attempt before.
fn of_unknown_outcome(last: Error, before: Option<Error>) -> Error {
    match (last, before) {
        (Error::Database { action, place, source, .. }, _) => {
            Error::Database { action, place, unsure: true, source }
        }
        (last, Some(Error::Database { action, place, .. })) => {
            Error::Database { action, place, unsure: true, source: Box::new(last) }
        }
        (last, _) => last,
    }
}

const fn appended_record(row: &FrameRow) -> AppendedRecord {
    AppendedRecord { position: row.position, end: row.end, hash: row.hash }
}

impl WriteAheadLog for FramedLog {
    fn read(&self, from: LogPosition, limit: u64) -> Result<LogTail, Error> {
        tracing::trace!(target: CALLS, call = "read");
        let known = self.known_ends()?;
        self.open_rows(from, limit, known, self.table.read(from, limit)?)
    }

    fn read_after_index(
        &self,
        _: &dyn Index,
        limit: u64,
    ) -> Result<(LogPosition, Result<LogTail, Error>), Error> {
        tracing::trace!(target: CALLS, call = "read");
        let known = self.known_ends()?;
        let (position, rows) = self.table.read_after_index(limit)?;
        Ok((position, self.open_rows(position, limit, known, rows)))
    }

    fn append(
        &self,
        mut from: LogPosition,
        timeout: Duration,
        build: &mut dyn FnMut(&LogTail) -> Option<Vec<u8>>,
    ) -> Result<Option<AppendedRecord>, Error> {
        // The end that was seen last may be old. Then the append is refused, and the log is read.
        let mut known = self.last_seen().filter(|(end, _)| *end == from).map(|(_, hash)| hash);
        for _ in 0..UNLOCKED_ATTEMPTS {
            let (tail, previous) = match known.take() {
                Some(hash) => (LogTail { frames: Vec::new(), end: from }, hash),
                None => self.read_to_end(from)?,
            };
            let Some(payload) = build(&tail) else { return Ok(None) };
            let frames = self.frames_after(tail.end, previous, &[payload], false)?;
            if self.append_frames(tail.end, previous, &frames, timeout, None)? {
                return Ok(frames.first().map(appended_record));
            }
            from = tail.end;
        }
        self.append_locked(from, timeout, build, false)
    }

    fn append_all(
        &self,
        from: LogPosition,
        timeout: Duration,
        payloads: &[Vec<u8>],
    ) -> Result<Option<Vec<AppendedRecord>>, Error> {
        let known = self.last_seen().filter(|(end, _)| *end == from).map(|(_, hash)| hash);
        let previous = match known {
            Some(hash) => hash,
            None => {
                let (tail, hash) = self.read_to_end(from)?;
                if tail.end != from {
                    return Ok(None);
                }
                hash
            }
        };
        let frames = self.frames_after(from, previous, payloads, false)?;
        if !frames.is_empty() && !self.append_frames(from, previous, &frames, timeout, None)? {
            return Ok(None);
        }
        Ok(Some(frames.iter().map(appended_record).collect()))
    }

    fn is_remote(&self) -> bool {
        true
    }

    /// Does nothing: an append returns when the database has made it durable.
    fn sync(&self, _to: LogPosition) -> Result<(), Error> {
        Ok(())
    }

    fn rotate(
        &self,
        from: LogPosition,
        timeout: Duration,
        first: &mut dyn FnMut(&LogTail) -> Option<Vec<u8>>,
    ) -> Result<Option<AppendedRecord>, Error> {
        self.append_locked(from, timeout, first, true)
    }

    fn remove_before(&self, before: LogPosition) -> Result<(), Error> {
        self.table.remove_before(before)
    }

    fn syncs(&self) -> u64 {
        self.appends.load(Ordering::Relaxed)
    }

    fn note_witness_checked(&self) {
        self.is_witness_checked.store(true, Ordering::Relaxed);
    }

    fn witnessed(&self) -> Result<Option<(LogPosition, RecordHash)>, Error> {
        Ok(self.witness_mark()?.map(|mark| (mark.position, mark.hash)))
    }

    fn start(&self) -> Result<LogPosition, Error> {
        // No frame begins at this position, so the read returns no frames.
        Ok(self.table.read(LogPosition::MAX, 0)?.head.start)
    }
}

#[cfg(test)]
mod tests;

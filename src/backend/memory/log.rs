//! A log in memory.

use crate::backend::{
    AppendedRecord, Error, LogFrame, LogPosition, LogTail, RecordHash, WriteAheadLog, locked,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Bytes of a frame besides its payload, so that even an empty record advances the position.
const FRAME_BYTES: u64 = 8;

/// A [`WriteAheadLog`] in memory. Clones are handles to the same log.
#[derive(Clone, Debug, Default)]
pub struct MemoryLog {
    shared: Arc<Mutex<MemorySegments>>,
    /// Held during an append. Reads do not wait for it, even while a record is being built.
    writer: Arc<Mutex<()>>,
    #[cfg(test)]
    counts: Arc<Mutex<LogCounts>>,
}

/// The retained records, oldest first, and the start of each segment.
#[derive(Debug)]
struct MemorySegments {
    starts: Vec<LogPosition>,
    frames: Vec<LogFrame>,
    end: LogPosition,
    hash: RecordHash,
    /// Whether later records repeat the hash of the last one.
    is_unhashed: bool,
}

impl Default for MemorySegments {
    fn default() -> Self {
        Self { starts: vec![0], frames: Vec::new(), end: 0, hash: [0; 32], is_unhashed: false }
    }
}

impl MemoryLog {
    /// Creates a log that begins with the records of another one, in one segment.
    pub fn continuing(tail: LogTail, start: LogPosition) -> Self {
        let hash = tail.frames.last().map_or([0; 32], |frame| frame.hash);
        let segments = MemorySegments {
            starts: vec![start],
            frames: tail.frames,
            end: tail.end,
            hash,
            is_unhashed: false,
        };
        Self { shared: Arc::new(Mutex::new(segments)), ..Self::default() }
    }

    /// Saves the time for hashing: later records repeat the hash of the last one, and get hashes of
    /// their own when they are appended to another log.
    pub(crate) fn without_hashes(self) -> Self {
        locked(&self.shared).is_unhashed = true;
        self
    }

    /// Removes the records from a position on, and returns their payloads.
    pub(crate) fn take_payloads(&self, from: LogPosition) -> Vec<Vec<u8>> {
        let mut segments = locked(&self.shared);
        let first = segments.frames.partition_point(|frame| frame.position < from);
        let taken = segments.frames.split_off(first);
        segments.end = taken.first().map_or(segments.end, |frame| frame.position);
        segments.hash = segments.frames.last().map_or([0; 32], |frame| frame.hash);
        taken.into_iter().map(|frame| frame.payload).collect()
    }

    /// Returns what was done since the last call of this function.
    #[cfg(test)]
    pub(crate) fn take_counts(&self) -> LogCounts {
        std::mem::take(&mut *locked(&self.counts))
    }

    #[cfg(test)]
    fn count(&self, add: impl FnOnce(&mut LogCounts)) {
        add(&mut locked(&self.counts));
    }
}

impl MemorySegments {
    fn start(&self) -> LogPosition {
        self.starts.first().copied().unwrap_or(self.end)
    }

    fn read(&self, from: LogPosition, limit: u64) -> Result<LogTail, Error> {
        if from < self.start() {
            return Err(Error::Gone { position: from, start: self.start() });
        }
        let first = self.frames.partition_point(|frame| frame.position < from);
        if self.frames.get(first).map_or(self.end, |frame| frame.position) != from {
            let reason = "no record begins there".to_owned();
            return Err(Error::Damaged { position: from, reason });
        }
        let mut tail = LogTail { frames: Vec::new(), end: from };
        for frame in self.frames.iter().skip(first) {
            if tail.end != from && tail.end - from >= limit {
                break;
            }
            tail.end = frame.end;
            tail.frames.push(frame.clone());
        }
        Ok(tail)
    }

    fn append(&mut self, mut payload: Vec<u8>) -> AppendedRecord {
        // The log would keep the spare capacity, too.
        payload.shrink_to_fit();
        let position = self.end;
        let end = position + FRAME_BYTES + payload.len() as u64;
        let hash = if self.is_unhashed {
            self.hash
        } else {
            *blake3::Hasher::new().update(&self.hash).update(&payload).finalize().as_bytes()
        };
        self.frames.push(LogFrame { position, end, hash, payload });
        self.end = end;
        self.hash = hash;
        AppendedRecord { position, end, hash }
    }
}

impl WriteAheadLog for MemoryLog {
    fn read(&self, from: LogPosition, limit: u64) -> Result<LogTail, Error> {
        locked(&self.shared).read(from, limit)
    }

    fn append(
        &self,
        from: LogPosition,
        _timeout: Duration,
        build: &mut dyn FnMut(&LogTail) -> Option<Vec<u8>>,
    ) -> Result<Option<AppendedRecord>, Error> {
        let _writer = locked(&self.writer);
        let tail = locked(&self.shared).read(from, u64::MAX)?;
        #[cfg(test)]
        self.count(|counts| {
            counts.appends += 1;
            counts.records_read += tail.frames.len() as u64;
        });
        Ok(build(&tail).map(|payload| locked(&self.shared).append(payload)))
    }

    fn append_all(
        &self,
        from: LogPosition,
        _timeout: Duration,
        payloads: &[Vec<u8>],
    ) -> Result<Option<Vec<AppendedRecord>>, Error> {
        let _writer = locked(&self.writer);
        #[cfg(test)]
        self.count(|counts| counts.group_appends += 1);
        let mut segments = locked(&self.shared);
        if segments.end != from {
            return Ok(None);
        }
        Ok(Some(payloads.iter().map(|payload| segments.append(payload.clone())).collect()))
    }

    fn sync(&self, _to: LogPosition) -> Result<(), Error> {
        Ok(())
    }

    fn rotate(
        &self,
        from: LogPosition,
        _timeout: Duration,
        first: &mut dyn FnMut(&LogTail) -> Option<Vec<u8>>,
    ) -> Result<Option<AppendedRecord>, Error> {
        let _writer = locked(&self.writer);
        let tail = locked(&self.shared).read(from, u64::MAX)?;
        Ok(first(&tail).map(|payload| {
            let mut segments = locked(&self.shared);
            let appended = segments.append(payload);
            if segments.starts.last() != Some(&appended.position) {
                segments.starts.push(appended.position);
            }
            appended
        }))
    }

    fn remove_before(&self, before: LogPosition) -> Result<(), Error> {
        let mut segments = locked(&self.shared);
        // A segment ends where the next one starts; the last one has no end yet and stays.
        let gone = segments.starts.iter().skip(1).take_while(|start| **start <= before).count();
        segments.starts.drain(..gone);
        let start = segments.start();
        segments.frames.retain(|frame| frame.position >= start);
        Ok(())
    }

    fn start(&self) -> Result<LogPosition, Error> {
        Ok(locked(&self.shared).start())
    }
}

/// What was done with a log.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct LogCounts {
    /// Appends of one record.
    pub(crate) appends: u64,
    /// Appends of several records at once.
    pub(crate) group_appends: u64,
    /// Records that appends of one record have read.
    pub(crate) records_read: u64,
}

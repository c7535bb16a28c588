//! Reads a transcript in parts, ahead of the thread that writes them to the store.

use super::import_file::{cannot_read, read_at};
use crate::error::CommandError;
use forge_agents::TranscriptPiece;
use forge_agents::claude_code::{
    InputEnding, TranscriptOptions, TranscriptReader, TranscriptState, UnreadableLine, is_whole,
};
use forge_store::model::Timestamp;
use forge_store::redact::{MAX_SECRET_BYTES, PartEnding, TextForm};
use forge_store::store::{RedactedSource, Store};
use std::fs::File;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

/// How many bytes of a file are read at once. Each part is compressed with the preceding data as
/// its prefix, which is scanned again for each part, so smaller parts take more time.
const PART_BYTES: u64 = 4 << 20;
/// The maximum number of parts that wait for the thread that writes them.
const PARTS_AHEAD: usize = 1;

/// Bytes that were read, with their facts and the reader's state after them.
pub(super) struct TranscriptPart {
    pub(super) clean: RedactedSource<'static>,
    pub(super) lines: u64,
    pub(super) piece: TranscriptPiece,
    pub(super) carry: Vec<u8>,
    /// The offset in the file at which it ends.
    pub(super) end: u64,
}

/// Reads a transcript part by part.
pub(super) struct TranscriptPartReader<'a> {
    store: &'a Store,
    path: &'a Path,
    now: Timestamp,
    file: File,
    /// The length of the file at the start: what is appended in the meantime waits for the next
    /// import.
    bytes: u64,
    options: TranscriptOptions,
    reader: TranscriptReader,
    /// Whether the parts will be stored.
    kept: bool,
    /// The offset in the file at which the buffer begins.
    offset: u64,
    buffer: Vec<u8>,
    ended: bool,
}

impl<'a> TranscriptPartReader<'a> {
    /// Starts at an offset, with the reader's state from there; `kept` says whether the parts will
    /// be stored.
    pub(super) fn new(
        store: &'a Store,
        (path, file, bytes): (&'a Path, File, u64),
        (options, carry): (TranscriptOptions, TranscriptState),
        now: Timestamp,
        (offset, kept): (u64, bool),
    ) -> Self {
        let reader = TranscriptReader::resume(options, carry);
        let (buffer, ended) = (Vec::new(), false);
        Self { store, path, now, file, bytes, options, reader, kept, offset, buffer, ended }
    }

    /// Sets the session that the transcript is known to belong to.
    pub(super) fn of_session(mut self, id: &str) -> Self {
        self.reader = self.reader.of_session(id);
        self
    }

    /// Calls `process_part` with each part, and returns how many bytes at the end form an
    /// incomplete line. In a long file, the next part is read while `process_part` runs.
    pub(super) fn for_each_part(
        mut self,
        mut process_part: impl FnMut(TranscriptPart) -> Result<(), CommandError>,
    ) -> Result<u64, CommandError> {
        if self.bytes.saturating_sub(self.offset) <= PART_BYTES {
            while let Some(read) = self.part()? {
                process_part(read)?;
            }
            return Ok(self.buffer.len() as u64);
        }
        thread::scope(|scope| {
            let (ahead, parts) = mpsc::sync_channel(PARTS_AHEAD);
            let reading = scope.spawn(move || {
                while let Some(read) = self.part().transpose() {
                    let failed = read.is_err();
                    // The receiver may have stopped.
                    if ahead.send(read).is_err() || failed {
                        break;
                    }
                }
                self.buffer.len() as u64
            });
            for read in parts {
                process_part(read?)?;
            }
            Ok(reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    /// Reads the next part; `None` at the end of the file.
    fn part(&mut self) -> Result<Option<TranscriptPart>, CommandError> {
        loop {
            if let Some((length, follows, ending)) = self.next()
                && let Some(read) = self.read(length, follows, ending)?
            {
                return Ok(Some(read));
            }
            if self.ended {
                return Ok(None);
            }
            let held = self.offset + self.buffer.len() as u64;
            let part = read_at(&self.file, held, PART_BYTES)
                .map_err(|error| cannot_read(self.path, error))?;
            self.ended = held + part.len() as u64 >= self.bytes || part.is_empty();
            self.buffer.extend_from_slice(&part);
        }
    }

    /// Reads this many bytes of the buffer. Returns `None` if the redactor needs more of the file,
    /// or if the bytes are only the beginning of a line.
    fn read(
        &mut self,
        length: usize,
        follows: PartEnding,
        ending: InputEnding,
    ) -> Result<Option<TranscriptPart>, CommandError> {
        let wanted = self.buffer.get(..length).unwrap_or_default();
        let mut clean = self.store.redact_source(wanted, TextForm::Json, follows);
        if let (InputEnding::File, false, Some(lines)) =
            (ending, self.options.whole, ended_lines_length(wanted))
            && clean.removed() > 0
            && !is_whole(after_ended_lines(clean.bytes()))
        {
            // With its secrets removed, the last line is no complete JSON: it waits for more.
            return self.read(lines, PartEnding::Line, InputEnding::More);
        }
        let before = self.reader.carry().lines();
        let (reader, now) = (&mut self.reader, self.now);
        let mut read = |bytes: &[u8]| reader.read(bytes, ending, now);
        // The first part is compressed while its facts are read. Later parts are compressed while
        // the part after them is read.
        let ahead = self.kept && self.offset == 0;
        let piece = if ahead { clean.compress_while(read) } else { read(clean.bytes()) };
        let piece = piece.map_err(|bad| bad_line(self.path, &bad))?;
        if piece.taken == 0 {
            return Ok(None);
        }
        if piece.taken != clean.bytes().len() as u64 {
            return Err(CommandError::internal("a part of a transcript was not read to its end"));
        }
        let clean = clean.into_owned();
        self.buffer.drain(..clean.source().len());
        self.offset += clean.source().len() as u64;
        let carry = serde_json::to_vec(self.reader.carry()).map_err(|error| {
            CommandError::internal("the state of the reader cannot be stored").caused_by(error)
        })?;
        let lines = self.reader.carry().lines() - before;
        Ok(Some(TranscriptPart { clean, lines, piece, carry, end: self.offset }))
    }

    /// Returns whether the bytes after the first `length` ones of the buffer are a complete line
    /// without a line break.
    fn ends_whole(&self, length: usize) -> bool {
        let line = self.buffer.get(length..).unwrap_or_default();
        line.len() as u64 <= self.options.max_line && is_whole(line)
    }

    /// Returns how many bytes of the buffer to read now, and what follows them, for the redactor
    /// and for the reader. `None` if more of the file is needed.
    fn next(&self) -> Option<(usize, PartEnding, InputEnding)> {
        let (buffer, ends) = (&self.buffer, self.ended);
        if self.options.whole {
            // One document over many lines can be read only at its end.
            return (ends && !buffer.is_empty()).then_some((
                buffer.len(),
                PartEnding::End,
                InputEnding::File,
            ));
        }
        let most = self.options.max_line.saturating_add(2 * MAX_SECRET_BYTES as u64);
        match ended_lines_length(buffer) {
            // The last line is read together with the others: a part of its own would be compressed
            // with all the preceding data as its prefix.
            Some(length) if ends && self.ends_whole(length) => {
                Some((buffer.len(), PartEnding::End, InputEnding::File))
            }
            Some(length) => Some((length, PartEnding::Line, InputEnding::More)),
            None if buffer.is_empty() => None,
            None if ends => Some((buffer.len(), PartEnding::End, InputEnding::File)),
            // The line is too long: it is stored, and skipped by the reader.
            None if buffer.len() as u64 > most => {
                Some((buffer.len(), PartEnding::More, InputEnding::More))
            }
            None => None,
        }
    }
}

/// Returns the length of the complete lines; `None` if there are none.
fn ended_lines_length(bytes: &[u8]) -> Option<usize> {
    bytes.iter().rposition(|byte| *byte == b'\n').map(|place| place + 1)
}

/// Returns the bytes after the complete lines.
fn after_ended_lines(bytes: &[u8]) -> &[u8] {
    bytes.get(ended_lines_length(bytes).unwrap_or_default()..).unwrap_or_default()
}

fn bad_line(path: &Path, bad: &UnreadableLine) -> CommandError {
    CommandError::invalid(format!("'{}', line {}: {}", path.display(), bad.line, bad.reason))
        .hinted("nothing of this file was imported; without '--strict' such lines are skipped")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::open_plain;
    use std::fs;

    /// A file with four parts, and a line in the third that is not a record.
    fn with_a_bad_line() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let line = format!("{{\"type\":\"summary\",\"summary\":\"{}\"}}\n", "x".repeat(1000));
        let mut text = line.repeat(4 * PART_BYTES as usize / line.len());
        let place = text.len() * 5 / 8;
        text.insert_str(place - place % line.len(), "{\"type\"\n");
        fs::write(&path, text).unwrap();
        (folder, path)
    }

    fn each(
        path: &Path,
        process_part: impl FnMut(TranscriptPart) -> Result<(), CommandError>,
    ) -> Result<u64, CommandError> {
        let options = TranscriptOptions { strict: true, ..TranscriptOptions::default() };
        each_with(options, path, process_part)
    }

    fn each_with(
        options: TranscriptOptions,
        path: &Path,
        process_part: impl FnMut(TranscriptPart) -> Result<(), CommandError>,
    ) -> Result<u64, CommandError> {
        let store = Store::in_memory().unwrap();
        let (file, bytes) = open_plain(path).unwrap();
        let start = (options, TranscriptState::default());
        TranscriptPartReader::new(
            &store,
            (path, file, bytes),
            start,
            Timestamp::default(),
            (0, false),
        )
        .for_each_part(process_part)
    }

    #[test]
    fn parts_before_a_bad_line_are_delivered_before_its_error() {
        let (_folder, path) = with_a_bad_line();
        let mut ends = Vec::new();
        let done = each(&path, |read| {
            ends.push(read.end);
            Ok(())
        });
        assert!(done.unwrap_err().message().contains("line"), "{ends:?}");
        assert_eq!(ends.len(), 2);
    }

    #[test]
    fn reading_stops_after_a_refused_part() {
        let (_folder, path) = with_a_bad_line();
        let mut count = 0;
        let done = each(&path, |_| {
            count += 1;
            Err(CommandError::invalid("no room"))
        });
        assert_eq!((done.unwrap_err().message(), count), ("no room", 1));
    }

    /// Regression test: the longest line by default counted, also if the options have another one.
    #[test]
    fn a_line_longer_than_the_limit_in_the_options_is_read_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let bytes = PART_BYTES + PART_BYTES / 2;
        fs::write(&path, "x".repeat(bytes as usize - 1) + "\n").unwrap();
        let options = TranscriptOptions { max_line: 1000, ..TranscriptOptions::default() };
        let mut ends = Vec::new();
        let left = each_with(options, &path, |read| {
            ends.push(read.end);
            Ok(())
        });
        assert_eq!(left.unwrap(), 0);
        assert!(ends.len() > 1 && ends.last() == Some(&bytes), "{ends:?}");
    }

    /// Regression test: a last line without its line break was read as a part of its own.
    #[test]
    fn a_complete_last_line_without_a_line_break_is_read_with_the_others() {
        let line = "{\"type\":\"summary\",\"summary\":\"x\"}";
        for (last, parts, waiting) in [
            (line, vec![3], 0),
            ("", vec![2], 0),
            (" \t", vec![2], 2),
            ("{\"type\":\"sum", vec![2], 12),
            ("{\"type\":3} 4", vec![2], 12),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.jsonl");
            fs::write(&path, format!("{line}\n{line}\n{last}")).unwrap();
            let mut lines = Vec::new();
            let left = each(&path, |read| {
                lines.push(read.lines);
                Ok(())
            });
            assert_eq!((lines, left.unwrap()), (parts, waiting), "{last}");
        }
    }
}

//! Event streams: a session as lines, and lines as writes. `docs/events.md` is the specification.

mod export;
mod import;
mod inline_text;
mod line_plan;
mod rehearsal;
mod unfinished;

pub use export::TextResolver;
pub use unfinished::UnfinishedImport;

use super::Store;
use super::redaction_gate::RedactionGate;
use super::write_context::WriteContext;
use crate::engine::journal_follower::{APPLY_BYTES, IDLE_TAIL_BYTES};
use crate::error::{Error, Result};
use crate::format::{BookmarkRow, EventLine, RecordBytes};
use import::{StreamImporter, StreamPosition};
use rehearsal::StoreCopy;
use serde::Serialize;
use std::io::{self, BufRead, Read as _};
use std::panic;
use std::thread::{self, ScopedJoinHandle};

/// The longest line that is accepted, in bytes.
const MAX_LINE_BYTES: u64 = 64 << 20;
const HASH_BYTES: usize = 16;
/// How much is applied to a copy in memory before it is written.
#[derive(Clone, Copy, Debug)]
struct RehearsalLimits {
    /// How many lines. A short line takes about 5 KB in memory, and the lines before these, which
    /// are applied to the index meanwhile, take as much.
    lines: u64,
    /// How many bytes of records, at which no more lines are taken.
    bytes: u64,
    /// With more bytes, or another writer meanwhile, the lines are applied again one by one: other
    /// writers would wait too long for one write of all records.
    bytes_at_once: u64,
}

impl Default for RehearsalLimits {
    fn default() -> Self {
        Self { lines: 8192, bytes: 8 << 20, bytes_at_once: 24 << 20 }
    }
}

/// A stream to import.
#[derive(Clone, Copy, Debug)]
pub struct StreamImportRequest<'a> {
    /// The name of the stream in the bookmarks of its session.
    pub source: &'a str,
    /// The name of the new session if the stream names none.
    pub name: &'a str,
    /// The session for lines that name none.
    pub session: Option<&'a str>,
}

/// What an import of a stream did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamImportReport {
    /// The names of the sessions that lines were written to: at most
    /// [`StreamImportReport::MAX_NAMES`] of them.
    pub sessions: Vec<String>,
    /// Sessions that lines were written to.
    pub session_count: u64,
    /// Lines imported now, without empty ones.
    pub lines: u64,
    /// Bytes imported now.
    pub bytes: u64,
    /// Revisions made.
    pub revisions: u64,
    /// Checkpoints made or completed.
    pub checkpoints: u64,
    /// Facts recorded.
    pub facts: u64,
    /// Bytes of an unfinished last line.
    pub waiting_bytes: u64,
}

impl StreamImportReport {
    /// The largest number of names of sessions in a report.
    pub const MAX_NAMES: usize = 1000;
}

/// Opens the stream at its first byte.
pub type StreamOpener<'a> = &'a mut dyn FnMut() -> io::Result<Box<dyn BufRead>>;

impl Store {
    /// Imports the part of a stream that was added since its last import. Lines are first applied
    /// to a copy of the store in memory, at most 8,192 or 8 MB at a time. If one cannot be applied,
    /// none of these is written. Durable after [`Store::sync`].
    ///
    /// `open` opens the stream, a second time if another process writes to the store meanwhile;
    /// both are then read in turns. `progress` receives the number of bytes written.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the line number for a line that cannot be parsed or applied, or is
    /// older than its branch's head, and if bytes that were imported before have changed; also if
    /// the store cannot be written.
    pub fn import_events(
        &self,
        act: &WriteContext,
        stream: StreamImportRequest<'_>,
        open: StreamOpener<'_>,
        progress: &dyn Fn(u64),
    ) -> Result<StreamImportReport> {
        /// Without a lock another process may import the same stream concurrently.
        const MAX_ATTEMPTS: usize = 8;
        self.gate().name("name of the source", stream.source)?;
        let _alone = self.lock_imports()?;
        for _ in 1..MAX_ATTEMPTS {
            match self.import_once(act, stream, open, (RehearsalLimits::default(), progress)) {
                Err(Error::Conflict(why)) => tracing::info!(why, "the import begins again"),
                done => return done,
            }
        }
        self.import_once(act, stream, open, (RehearsalLimits::default(), progress))
    }

    fn import_once(
        &self,
        act: &WriteContext,
        stream: StreamImportRequest<'_>,
        open: StreamOpener<'_>,
        (limits, progress): (RehearsalLimits, &dyn Fn(u64)),
    ) -> Result<StreamImportReport> {
        let home = self.home_of(&stream)?;
        let begun = home.as_ref().map(|home| home.begun_import(stream.source));
        let begun = begun.transpose()?.flatten();
        let known = home.as_ref().map(|home| home.bookmark_row(stream.source));
        let known = known.transpose()?.flatten().unwrap_or_default();
        let mut ahead = EventLineReader::resume(self, open().map_err(unreadable)?, &known)?;
        let mut applier = StreamImporter::new(self.clone(), act, stream, &known)
            .at_home(home.clone(), begun.clone());
        // Usually nothing was added, and that needs no rehearsal.
        if !ahead.fill()? {
            if begun.is_some() {
                applier.end(&ahead.mark())?;
            }
            let home = home.map(|home| home.summary()).transpose()?;
            let sessions: Vec<_> = home.into_iter().map(|summary| summary.info.name).collect();
            return Ok(StreamImportReport {
                session_count: sessions.len() as u64,
                sessions,
                ..StreamImportReport::default()
            });
        }
        let mut second: Option<EventLineReader<'_>> = None;
        self.engine.check_writable()?;
        self.engine.drain_before_write()?;
        let applier = thread::scope(|scope| -> Result<StreamImporter<'_>> {
            let mut is_end = false;
            let mut applying = None;
            while !is_end {
                let begin = ahead.mark();
                let copy = self.copy_in_memory()?;
                let mut staged = applier.staged(&copy.store);
                let written = applier.written_lines;
                let rehearsed = rehearse(&mut ahead, &mut staged, &copy, limits);
                let applied = wait_for(applying.take());
                is_end = rehearsed.map_err(|error| match error {
                    Error::Invalid(problem) if written > known.lines => Error::Invalid(format!(
                        "{problem}; the first {written} lines are imported: correct the line and import the stream again"
                    )),
                    error => error,
                })?;
                applied?;
                if copy.written_bytes() <= limits.bytes_at_once && copy.append_to(self)? {
                    applier = applier.take_over(staged);
                    progress(ahead.bytes);
                    if let Some(begun) = self.engine.begin_apply_if_long(APPLY_BYTES)? {
                        // Without a thread, a later apply does it.
                        let apply = thread::Builder::new().spawn_scoped(scope, || begun.finish());
                        applying = apply.ok();
                    }
                    continue;
                }
                drop((staged, copy));
                let mut input = match second.take() {
                    Some(input) => input,
                    None => EventLineReader::resume(self, open().map_err(unreadable)?, &known)?,
                };
                input.skip_to(&begin)?;
                applier.mark()?;
                play(&mut input, &mut applier, (ahead.number, &|| false), progress)?;
                if is_end {
                    // An import whose stream cannot be read to its end is unfinished.
                    input.fill()?;
                    applier.finish(&input.mark())?;
                }
                second = Some(input);
            }
            wait_for(applying)?;
            Ok(applier)
        })?;
        // The last copy was made of a generation that is replaced now.
        self.engine.follower.tidy();
        self.maintain(IDLE_TAIL_BYTES).ok();
        Ok(StreamImportReport {
            session_count: applier.session_count(),
            bytes: ahead.bytes - known.bytes,
            waiting_bytes: ahead.waiting,
            ..applier.taken
        })
    }
}

/// Applies the next lines to a copy of the store. Returns whether the stream ended.
fn rehearse(
    input: &mut EventLineReader<'_>,
    staged: &mut StreamImporter<'_>,
    copy: &StoreCopy,
    limits: RehearsalLimits,
) -> Result<bool> {
    staged.mark()?;
    let is_enough = || copy.written_bytes() >= limits.bytes;
    let is_end = play(input, staged, (input.number + limits.lines, &is_enough), &|_| {})?;
    if is_end {
        staged.finish(&input.mark())?;
    } else if let Some(bookmark) = staged.next_bookmark.take() {
        staged.move_bookmark(bookmark)?;
    }
    Ok(is_end)
}

/// Waits until a tail is applied.
fn wait_for(applying: Option<ScopedJoinHandle<'_, Result<bool>>>) -> Result<()> {
    let Some(applying) = applying else { return Ok(()) };
    applying.join().unwrap_or_else(|panic| panic::resume_unwind(panic)).map(drop)
}

/// The error of a stream that does not begin with what was imported from it before.
fn another_stream(bytes: u64) -> Error {
    Error::invalid(format!(
        "the first {bytes} bytes are not those that were imported before: import it into another session, or take \
         the earlier import back with undo"
    ))
}

fn unreadable(error: io::Error) -> Error {
    Error::Connected {
        system: "stream of events".to_owned(),
        action: "read",
        source: Box::new(error),
    }
}

/// Adds the line number to an error.
fn at_line(line: u64, error: Error) -> Error {
    match error {
        Error::Invalid(_)
        | Error::NotFound { .. }
        | Error::Duplicate { .. }
        | Error::Dangling { .. }
        | Error::Ambiguous { .. } => Error::Invalid(format!("line {line}: {error}")),
        other => other,
    }
}

/// Applies lines up to this number, or until there are enough. Returns whether the stream ended
/// before that.
fn play(
    input: &mut EventLineReader<'_>,
    applier: &mut StreamImporter<'_>,
    (upto, is_enough): (u64, &dyn Fn() -> bool),
    progress: &dyn Fn(u64),
) -> Result<bool> {
    while input.number < upto && !is_enough() {
        let before = input.mark();
        if !input.fill()? {
            return Ok(true);
        }
        let Some(line) = input.line()? else { return Ok(true) };
        let after = input.mark();
        if let Some(line) = line {
            let number = after.lines;
            applier.taken.lines += 1;
            let applied = applier.step(number, line, &before, &after);
            applied.map_err(|error| applier.at_failed_line(number, error))?;
            progress(after.bytes);
        }
    }
    Ok(false)
}

/// Reads the lines of a stream and tracks the position.
struct EventLineReader<'a> {
    gate: RedactionGate<'a>,
    input: Box<dyn BufRead>,
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
    bytes: u64,
    number: u64,
    /// The hash of what was read so far.
    hash: RecordBytes,
    waiting: u64,
}

impl<'a> EventLineReader<'a> {
    /// Continues after a bookmark.
    fn resume(store: &'a Store, input: Box<dyn BufRead>, known: &BookmarkRow) -> Result<Self> {
        let hasher = blake3::Hasher::new_keyed(store.hash_key());
        let gate = store.gate();
        let buffer = Vec::new();
        let hash = short_hash(&hasher);
        let mut reader =
            Self { gate, input, hasher, buffer, bytes: 0, number: 0, hash, waiting: 0 };
        let (bytes, lines, hash) = (known.bytes, known.lines, known.blocks.clone());
        reader.skip_to(&StreamPosition { bytes, lines, hash })?;
        Ok(reader)
    }

    /// Reads up to a position between two lines, whose hash shows that the stream is the same.
    fn skip_to(&mut self, position: &StreamPosition) -> Result<()> {
        let mut left = position.bytes.saturating_sub(self.bytes);
        while left > 0 {
            let part = self.input.fill_buf().map_err(unreadable)?;
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(part.len());
            if length == 0 {
                break;
            }
            self.hasher.update(part.get(..length).unwrap_or_default());
            self.input.consume(length);
            left -= length as u64;
        }
        self.hash = short_hash(&self.hasher);
        if position.bytes > 0 && (left > 0 || self.hash != position.hash) {
            return Err(another_stream(position.bytes));
        }
        (self.bytes, self.number) = (position.bytes, position.lines);
        Ok(())
    }

    /// Reads the next line unless one is buffered. Returns whether there is one.
    fn fill(&mut self) -> Result<bool> {
        if self.buffer.is_empty() {
            let mut limited = (&mut self.input).take(MAX_LINE_BYTES + 1);
            limited.read_until(b'\n', &mut self.buffer).map_err(unreadable)?;
        }
        Ok(!self.buffer.is_empty())
    }

    /// Takes the buffered line. Returns its event, `Some(None)` for an empty line, `None` for an
    /// unfinished one.
    fn line(&mut self) -> Result<Option<Option<EventLine>>> {
        let number = self.number + 1;
        let bad = |reason: String| Error::invalid(format!("line {number} {reason}"));
        if self.buffer.len() as u64 > MAX_LINE_BYTES {
            return Err(bad(format!("is longer than {MAX_LINE_BYTES} bytes")));
        }
        let ended = self.buffer.last() == Some(&b'\n');
        // Some programs write a byte order mark, or fill the end of a file with NUL bytes.
        let around = |c: char| c.is_whitespace() || matches!(c, '\0' | '\u{feff}');
        let event = match std::str::from_utf8(&self.buffer) {
            Err(error) if !ended && error.error_len().is_none() => None,
            Err(error) => {
                return Err(bad(format!("is not UTF-8 at its byte {}", error.valid_up_to())));
            }
            Ok(text) if text.trim_matches(around).is_empty() => Some(None),
            Ok(text) => match EventLine::parse(&self.gate.json(text.trim_matches(around))) {
                Ok(event) => Some(Some(event)),
                Err(error) if !ended && error.is_cut() => None,
                Err(error) => return Err(Error::invalid(format!("line {number}: {error}"))),
            },
        };
        let Some(event) = event else {
            self.waiting = self.buffer.len() as u64;
            return Ok(None);
        };
        self.hasher.update(&self.buffer);
        self.hash = short_hash(&self.hasher);
        self.bytes += self.buffer.len() as u64;
        self.number = number;
        self.buffer.clear();
        Ok(Some(event))
    }

    fn mark(&self) -> StreamPosition {
        StreamPosition { bytes: self.bytes, lines: self.number, hash: self.hash.clone() }
    }
}

fn short_hash(hasher: &blake3::Hasher) -> RecordBytes {
    let hash = hasher.finalize();
    RecordBytes(hash.as_bytes().iter().take(HASH_BYTES).copied().collect())
}

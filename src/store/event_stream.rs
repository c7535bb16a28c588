//! The stream of events: a session as lines, and lines as writes. `docs/events.md` is the specification.

mod export;
mod import;
mod inline_text;
mod unfinished;

pub use export::TextResolver;
pub use unfinished::UnfinishedImport;

use super::redaction_gate::RedactionGate;
use super::session::Session;
use super::write_context::WriteContext;
use super::{Options, Store};
use crate::backend::Snapshot;
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{BookmarkRow, EventLine, RecordBytes};
use import::{StreamImporter, StreamPosition};
use std::io::{self, BufRead, Read as _};

/// The longest line that is read.
const MAX_LINE_BYTES: u64 = 64 << 20;
const HASH_BYTES: usize = 16;

/// A stream to be imported.
#[derive(Clone, Copy, Debug)]
pub struct StreamImportRequest<'a> {
    /// What the stream is called in the bookmarks of its session.
    pub source: &'a str,
    /// The name of the session that it gets if it names none.
    pub name: &'a str,
    /// The session that lines go to which name none.
    pub session: Option<&'a str>,
}

/// What was taken of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamImportReport {
    /// The sessions that lines went to.
    pub sessions: Vec<String>,
    /// Lines taken now, empty ones left out.
    pub lines: u64,
    /// Bytes taken now.
    pub bytes: u64,
    /// Revisions made.
    pub revisions: u64,
    /// Checkpoints made or completed.
    pub checkpoints: u64,
    /// Facts recorded.
    pub facts: u64,
    /// Bytes at the end that are no whole line yet.
    pub waiting_bytes: u64,
}

/// Begins to read the stream from its first byte.
pub type StreamOpener<'a> = &'a mut dyn FnMut() -> io::Result<Box<dyn BufRead>>;

impl Store {
    /// Imports a stream of events: what came since it was last imported. All of it or nothing: the lines are played
    /// in memory first. Durable after [`Store::sync`].
    ///
    /// `open` begins to read it, twice if there is something to take; `progress` hears how many bytes were written.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the number of the line for what is no line, cannot be, or comes before its branch's
    /// head, and if bytes that were taken before have changed; as every write.
    pub fn import_events(
        &self,
        act: &WriteContext,
        stream: StreamImportRequest<'_>,
        open: StreamOpener<'_>,
        progress: &dyn Fn(u64),
    ) -> Result<StreamImportReport> {
        /// Without a lock somebody else may take the same stream meanwhile.
        const MAX_ATTEMPTS: usize = 8;
        self.gate().name("name of the source", stream.source)?;
        let _alone = self.lock_imports()?;
        for _ in 1..MAX_ATTEMPTS {
            match self.import_once(act, stream, open, progress) {
                Err(Error::Conflict(why)) => tracing::info!(why, "the import begins again"),
                done => return done,
            }
        }
        self.import_once(act, stream, open, progress)
    }

    fn import_once(
        &self,
        act: &WriteContext,
        stream: StreamImportRequest<'_>,
        open: StreamOpener<'_>,
        progress: &dyn Fn(u64),
    ) -> Result<StreamImportReport> {
        let home = self.home_of(&stream)?;
        let begun = match &home {
            Some(home) => home.begun_import(stream.source)?,
            None => None,
        };
        let known = match &home {
            Some(home) => home.stream_bookmark(stream.source)?,
            None => None,
        }
        .unwrap_or_default();
        let mut input = EventLineReader::resume(self, open().map_err(unreadable)?, &known)?;
        let mut applier =
            StreamImporter::new(self, act, stream, &known).at_home(home.clone(), begun.clone());
        // Most of the time nothing has come since, and that needs no rehearsal.
        if !input.fill()? {
            if begun.is_some() {
                applier.end(&input.mark())?;
            }
            let sessions = home.map(|home| home.summary()).transpose()?;
            return Ok(StreamImportReport {
                sessions: sessions.into_iter().map(|summary| summary.info.name).collect(),
                ..StreamImportReport::default()
            });
        }
        let rehearsal = Store::in_memory_with(Options {
            redaction: self.engine.options.redaction.clone(),
            ..Options::default()
        })?;
        let mut rehearsed = StreamImporter::new(&rehearsal, act, stream, &known).rehearse_for(self);
        rehearsed.goes_on_as(&applier);
        play(&mut input, &mut rehearsed, &|_| {})?;
        let mut input = EventLineReader::resume(self, open().map_err(unreadable)?, &known)?;
        applier.mark()?;
        play(&mut input, &mut applier, progress)
    }
}

impl Session {
    fn stream_bookmark(&self, source: &str) -> Result<Option<BookmarkRow>> {
        let row = self.view()?.get(key::BOOKMARKS, &of(self.number).text(source).build())?;
        row.map(|row| BookmarkRow::decode(&row).map_err(Error::corrupt("a bookmark"))).transpose()
    }
}

fn unreadable(error: io::Error) -> Error {
    Error::Connected {
        system: "stream of events".to_owned(),
        action: "read",
        source: Box::new(error),
    }
}

/// Names the line that an error is about.
fn at_line(line: u64) -> impl FnOnce(Error) -> Error {
    move |error| match error {
        Error::Invalid(_)
        | Error::NotFound { .. }
        | Error::Duplicate { .. }
        | Error::Dangling { .. }
        | Error::Ambiguous { .. } => Error::Invalid(format!("line {line}: {error}")),
        other => other,
    }
}

fn play(
    input: &mut EventLineReader<'_>,
    applier: &mut StreamImporter<'_>,
    progress: &dyn Fn(u64),
) -> Result<StreamImportReport> {
    let bytes = input.bytes;
    let mut lines = 0;
    while input.fill()? {
        let before = input.mark();
        let Some(line) = input.line()? else { break };
        let after = input.mark();
        if let Some(line) = line {
            let number = after.lines;
            lines += 1;
            applier.step(number, line, &before, &after).map_err(at_line(number))?;
            progress(after.bytes);
        }
    }
    applier.finish(&input.mark())?;
    let mut taken = std::mem::take(&mut applier.taken);
    taken.bytes = input.bytes - bytes;
    taken.lines = lines;
    taken.waiting_bytes = input.waiting;
    Ok(taken)
}

/// The lines of a stream, with how far they were read.
struct EventLineReader<'a> {
    gate: RedactionGate<'a>,
    input: Box<dyn BufRead>,
    hasher: blake3::Hasher,
    buffer: Vec<u8>,
    bytes: u64,
    number: u64,
    waiting: u64,
}

impl<'a> EventLineReader<'a> {
    /// Goes on behind a bookmark.
    fn resume(store: &'a Store, mut input: Box<dyn BufRead>, known: &BookmarkRow) -> Result<Self> {
        let mut hasher = blake3::Hasher::new_keyed(store.hash_key());
        let mut left = known.bytes;
        while left > 0 {
            let part = input.fill_buf().map_err(unreadable)?;
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(part.len());
            if length == 0 {
                break;
            }
            hasher.update(part.get(..length).unwrap_or_default());
            input.consume(length);
            left -= length as u64;
        }
        if known.bytes > 0 && (left > 0 || short_hash(&hasher) != known.blocks) {
            return Err(Error::invalid(format!(
                "the first {} bytes are not those that were imported before: import it into another session, or \
                 take the earlier import back with undo",
                known.bytes
            )));
        }
        let (bytes, number) = (known.bytes, known.lines);
        let gate = store.gate();
        Ok(Self { gate, input, hasher, buffer: Vec::new(), bytes, number, waiting: 0 })
    }

    /// Reads the next line, unless one is at hand. Returns whether there is one.
    fn fill(&mut self) -> Result<bool> {
        if self.buffer.is_empty() {
            let mut limited = (&mut self.input).take(MAX_LINE_BYTES + 1);
            limited.read_until(b'\n', &mut self.buffer).map_err(unreadable)?;
        }
        Ok(!self.buffer.is_empty())
    }

    /// Takes the line at hand: its event, nothing if it is empty. `None` if it is not whole yet.
    fn line(&mut self) -> Result<Option<Option<EventLine>>> {
        let number = self.number + 1;
        let bad = |reason: String| Error::invalid(format!("line {number} {reason}"));
        if self.buffer.len() as u64 > MAX_LINE_BYTES {
            return Err(bad(format!("is longer than {MAX_LINE_BYTES} bytes")));
        }
        let ended = self.buffer.last() == Some(&b'\n');
        let event = match std::str::from_utf8(&self.buffer) {
            Err(error) if !ended && error.error_len().is_none() => None,
            Err(error) => {
                return Err(bad(format!("is not UTF-8 at its byte {}", error.valid_up_to())));
            }
            Ok(text) if text.trim().is_empty() => Some(None),
            Ok(text) => match EventLine::parse(&self.gate.json(text.trim())) {
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
        self.bytes += self.buffer.len() as u64;
        self.number = number;
        self.buffer.clear();
        Ok(Some(event))
    }

    fn mark(&self) -> StreamPosition {
        StreamPosition { bytes: self.bytes, lines: self.number, hash: short_hash(&self.hasher) }
    }
}

fn short_hash(hasher: &blake3::Hasher) -> RecordBytes {
    let hash = hasher.finalize();
    RecordBytes(hash.as_bytes().iter().take(HASH_BYTES).copied().collect())
}

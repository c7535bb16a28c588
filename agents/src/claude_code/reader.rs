//! Reads a transcript: splits its bytes into lines, and turns the lines into pieces.

use super::checkpoint_name::RecentEvents;
use super::line::ClaudeLine;
use super::line_context::{LineContext, PieceBuilder};
use super::record_split::{self, LinePart};
use super::transcript_state::{LastLineState, TranscriptState};
use crate::piece::{SkippedLine, TranscriptPiece};
use crate::{codex, gemini, long_text};
use forge_store::model::Timestamp;
use std::borrow::Cow;
use std::io::BufRead;

/// The agent that wrote a transcript. All of these agents append JSON objects, one per line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TranscriptDialect {
    /// A transcript of Claude Code.
    #[default]
    ClaudeCode,
    /// A rollout of Codex.
    Codex,
    /// A recording of Gemini CLI.
    Gemini,
}

/// Options of a [`TranscriptReader`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranscriptOptions {
    /// Whether an unreadable line is an error; otherwise it is skipped and reported.
    pub strict: bool,
    /// The maximum length of a line that is read, in bytes with its line break.
    pub max_line: u64,
    /// The agent that wrote the lines.
    pub dialect: TranscriptDialect,
    /// Whether the file is one document over any number of lines. It is read only when it is
    /// complete.
    pub whole: bool,
    /// Whether rules find statements in the agent's messages ([`crate::inference`]).
    pub infer: bool,
}

impl Default for TranscriptOptions {
    fn default() -> Self {
        Self {
            strict: false,
            max_line: 64 << 20,
            dialect: TranscriptDialect::default(),
            whole: false,
            infer: false,
        }
    }
}

/// What follows the bytes that were passed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputEnding {
    /// More of the file: an incomplete line waits for it.
    More,
    /// Nothing: the file ends here for now. A last line without a line break is read if it contains
    /// only complete JSON objects.
    File,
}

/// A line cannot be read, with [`TranscriptOptions::strict`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} (at byte {offset}) {reason}; import without strict to skip such lines")]
pub struct UnreadableLine {
    /// Its line number, from 1.
    pub line: u64,
    /// Its offset in the file, in bytes.
    pub offset: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// The maximum nesting of JSON. Deeper records are skipped; real messages are never that deep.
const MAX_DEPTH: usize = 512;

/// Reads a transcript piece by piece.
#[derive(Clone, Debug)]
pub struct TranscriptReader {
    options: TranscriptOptions,
    carry: TranscriptState,
}

impl TranscriptReader {
    /// Creates a reader at the beginning of a file.
    #[must_use]
    pub fn new(options: TranscriptOptions) -> Self {
        Self::resume(options, TranscriptState::default())
    }

    /// Creates a reader that continues where the one with this carry stopped, at
    /// [`TranscriptState::offset`].
    #[must_use]
    pub fn resume(options: TranscriptOptions, carry: TranscriptState) -> Self {
        Self { options, carry }
    }

    /// Sets the session of the transcript. Prompts of other sessions in it are copies, and are
    /// skipped.
    #[must_use]
    pub fn of_session(mut self, id: &str) -> Self {
        self.carry.claude.own_session = Some(id.to_owned());
        self
    }

    /// Returns the state that a later reader needs to continue.
    #[must_use]
    pub fn carry(&self) -> &TranscriptState {
        &self.carry
    }

    /// Returns the state that a later reader needs to continue, without a copy.
    #[must_use]
    pub fn into_carry(self) -> TranscriptState {
        self.carry
    }

    /// Reads the complete lines in `bytes`, which begin at [`TranscriptState::offset`] in the file.
    ///
    /// The next call must start after the bytes that were taken. If none were taken, the line is
    /// longer than `bytes`: pass in more bytes. One byte more than [`TranscriptOptions::max_line`]
    /// is always enough, because a longer line is skipped. With [`TranscriptOptions::whole`], pass
    /// in the whole document.
    ///
    /// `recorded_at` is the recorded time of every fact.
    ///
    /// # Errors
    /// With [`TranscriptOptions::strict`], returns the first unreadable line. The reader must not
    /// be used afterwards.
    pub fn read(
        &mut self,
        bytes: &[u8],
        ending: InputEnding,
        recorded_at: Timestamp,
    ) -> Result<TranscriptPiece, UnreadableLine> {
        let mut piece = TranscriptPiece::default();
        let start = self.carry.offset;
        let mut rest = bytes;
        if self.carry.tail != LastLineState::Whole {
            rest = self.finish_line(rest, ending, recorded_at, &mut piece)?;
        }
        while !rest.is_empty() {
            let (line, after) = if self.options.whole { (rest, &[][..]) } else { cut(rest) };
            if self.options.whole && (ending != InputEnding::File || !is_whole(line)) {
                break;
            }
            let overlong = self.is_overlong(line);
            if line.last() != Some(&b'\n') && !overlong {
                if ending != InputEnding::File || !is_whole(line) {
                    break;
                }
                self.carry.tail = LastLineState::Unended;
            } else if line.last() != Some(&b'\n') {
                self.carry.tail = LastLineState::Overlong;
            }
            self.carry.lines += 1;
            if overlong {
                self.skip_overlong(&mut piece)?;
            } else {
                self.line(line, recorded_at, &mut piece)?;
            }
            self.carry.offset += line.len() as u64;
            rest = after;
        }
        piece.taken = self.carry.offset - start;
        piece.session = self.carry.session.draft();
        Ok(piece)
    }

    /// Reads the rest of a line that was taken without its line break.
    fn finish_line<'b>(
        &mut self,
        bytes: &'b [u8],
        ending: InputEnding,
        recorded_at: Timestamp,
        piece: &mut TranscriptPiece,
    ) -> Result<&'b [u8], UnreadableLine> {
        let (line, after) = cut(bytes);
        let ended = line.last() == Some(&b'\n');
        if self.carry.tail == LastLineState::Unended && !record_split::trimmed(line).is_empty() {
            if self.is_overlong(line) {
                self.skip_overlong(piece)?;
                self.carry.tail = LastLineState::Overlong;
            } else if !ended && (ending != InputEnding::File || !is_whole(line)) {
                return Ok(&[]);
            } else {
                self.line(line, recorded_at, piece)?;
            }
        }
        self.carry.offset += line.len() as u64;
        if ended {
            self.carry.tail = LastLineState::Whole;
        }
        Ok(after)
    }

    fn is_overlong(&self, line: &[u8]) -> bool {
        line.len() as u64 > self.options.max_line
    }

    fn skip_overlong(&self, piece: &mut TranscriptPiece) -> Result<(), UnreadableLine> {
        let reason = format!("is longer than {} bytes", self.options.max_line);
        self.skip(piece, self.carry.offset, reason)
    }

    fn skip(
        &self,
        piece: &mut TranscriptPiece,
        offset: u64,
        reason: String,
    ) -> Result<(), UnreadableLine> {
        self.note(piece, offset, reason, false)
    }

    /// Notes what is wrong with a line; with `strict` it is an error, even if the line was read.
    fn note(
        &self,
        piece: &mut TranscriptPiece,
        offset: u64,
        reason: String,
        read: bool,
    ) -> Result<(), UnreadableLine> {
        let line = self.carry.lines;
        if self.options.strict {
            return Err(UnreadableLine { line, offset, reason });
        }
        piece.skipped.push(SkippedLine { line, offset, reason, read });
        Ok(())
    }

    /// Reads the records of a line, which begins at the carry's offset. Skips unreadable parts.
    fn line(
        &mut self,
        line: &[u8],
        recorded_at: Timestamp,
        piece: &mut TranscriptPiece,
    ) -> Result<(), UnreadableLine> {
        let range = record_split::trimmed(line);
        let start = self.carry.offset + range.start as u64;
        let text = line.get(range).unwrap_or_default();
        if text.is_empty() {
            if line.contains(&0) {
                let reason = format!("{}: it holds only NUL bytes", record_split::NO_OBJECT);
                self.skip(piece, self.carry.offset, reason)?;
            }
            return Ok(());
        }
        if text.starts_with(b"{") && !nests_too_deep(text) {
            let place = (start, text.len() as u64);
            // Lines are nearly always UTF-8, which this checks many bytes at a time.
            let whole = std::str::from_utf8(text)
                .map_or_else(|_| String::from_utf8_lossy(text), Cow::Borrowed);
            match self.record(&whole, place, recorded_at, piece) {
                Ok(()) => {
                    let Cow::Owned(_) = whole else { return Ok(()) };
                    return self.note(piece, start, not_utf8(text), true);
                }
                Err(UnreadRecord::Message(reason)) => return self.skip(piece, start, reason),
                Err(UnreadRecord::Json(_)) => {}
            }
        }
        for part in record_split::split(line, self.options.dialect) {
            match part {
                LinePart::Lost(at, reason) => {
                    self.skip(piece, self.carry.offset + at as u64, reason)?;
                }
                LinePart::Record(range) => {
                    let start = self.carry.offset + range.start as u64;
                    let text = line.get(range).unwrap_or_default();
                    let place = (start, text.len() as u64);
                    let whole = String::from_utf8_lossy(text);
                    let read = if nests_too_deep(text) {
                        Err(UnreadRecord::Message(too_deep()))
                    } else {
                        self.record(&whole, place, recorded_at, piece)
                    };
                    match read {
                        Err(UnreadRecord::Message(reason) | UnreadRecord::Json(reason)) => {
                            self.skip(piece, start, reason)?;
                        }
                        Ok(()) if matches!(whole, Cow::Owned(_)) => {
                            self.note(piece, start, not_utf8(text), true)?;
                        }
                        Ok(()) => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads one JSON object. `place` is the offset and length of the object in the file.
    fn record(
        &mut self,
        text: &str,
        place: long_text::SourceSpan,
        recorded_at: Timestamp,
        piece: &mut TranscriptPiece,
    ) -> Result<(), UnreadRecord> {
        let text = long_text::readable_json(text);
        let first = piece.facts.len();
        let checkpoints = piece.checkpoints.len();
        let mut work = PieceBuilder {
            carry: &mut self.carry,
            facts: &mut piece.facts,
            checkpoints: &mut piece.checkpoints,
            line: LineContext::new(place, recorded_at),
            infer: self.options.infer,
        };
        let unread = |error| UnreadRecord::Json(format!("{}: {error}", record_split::NOT_WHOLE));
        let read = match self.options.dialect {
            TranscriptDialect::ClaudeCode => {
                let line: ClaudeLine<'_> = serde_json::from_str(&text).map_err(unread)?;
                work.read_line(&line)
            }
            TranscriptDialect::Codex => {
                let line: codex::CodexLine<'_> = serde_json::from_str(&text).map_err(unread)?;
                codex::read_line(&mut work, &line)
            }
            TranscriptDialect::Gemini => {
                let line: gemini::GeminiLine<'_> = serde_json::from_str(&text).map_err(unread)?;
                gemini::read_line(&mut work, &line)
            }
        };
        read.map_err(UnreadRecord::Message)?;
        last_of_each(&mut piece.facts, first);
        if piece.checkpoints.len() > checkpoints {
            self.carry.recent = RecentEvents::default();
        } else {
            piece.facts.iter().skip(first).for_each(|fact| self.carry.recent.add(fact));
        }
        Ok(())
    }
}

/// The reason why a record was not read.
enum UnreadRecord {
    /// It is not complete JSON.
    Json(String),
    /// Its content cannot be read.
    Message(String),
}

/// Splits off the first line, with its line break.
fn cut(bytes: &[u8]) -> (&[u8], &[u8]) {
    let mut after = bytes;
    // Reading from memory cannot fail.
    let length = after.skip_until(b'\n').unwrap_or(bytes.len());
    bytes.split_at(length)
}

/// Returns whether a line is one or more complete JSON objects. A last line without a line break is
/// read only in this case.
#[must_use]
pub fn is_whole(line: &[u8]) -> bool {
    record_split::all_whole(line)
}

/// Says that a record was read though it has bytes that are not UTF-8.
fn not_utf8(text: &[u8]) -> String {
    let at = text.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
    format!("is not UTF-8 at its byte {at}: read with U+FFFD")
}

pub(super) fn too_deep() -> String {
    format!("is nested deeper than {MAX_DEPTH} levels")
}

pub(super) fn nests_too_deep(text: &[u8]) -> bool {
    // Most lines have fewer brackets than the maximum nesting, and counting brackets is quick: many
    // bytes at a time, in chunks whose count fits a byte.
    let opening = text.chunks(usize::from(u8::MAX)).map(|part| {
        let opens = |byte: &u8| u8::from(matches!(byte, b'[' | b'{'));
        usize::from(part.iter().fold(0_u8, |count, byte| count.wrapping_add(opens(byte))))
    });
    if opening.sum::<usize>() <= MAX_DEPTH {
        return false;
    }
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

/// Keeps only the last version of each fact of one line.
fn last_of_each(facts: &mut Vec<forge_store::model::Fact>, first: usize) {
    let Some(made) = facts.get(first..).filter(|made| made.len() > 1) else { return };
    let mut seen = std::collections::BTreeSet::new();
    let repeated: Vec<usize> = (first..facts.len())
        .rev()
        .zip(made.iter().rev())
        .filter(|(_, fact)| !seen.insert((fact.kind, fact.id.as_str())))
        .map(|(index, _)| index)
        .collect();
    for index in repeated {
        facts.remove(index);
    }
}

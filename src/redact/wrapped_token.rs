//! Tokens that a line end splits: a terminal, a mail program or `fold` wrapped the line.

use super::byte_text::run;
use super::token_shape::{ByteClass, ScanMemory};
use memchr::memchr2;
use std::ops::Range;

/// Maximum length of the part of a token on one line, in bytes.
const MOST_BYTES: usize = 256;
/// Maximum number of line ends inside a token.
const MOST_ENDS: usize = 3;
/// Maximum indentation of the next line, in bytes.
const MOST_SPACES: usize = 24;
/// Minimum length of the last part, in bytes, if the token may end before it. A shorter part does
/// not show whether it is random.
pub(super) const MIN_TAIL_BYTES: usize = 12;

/// The parts of a word on several lines, joined.
pub(super) struct JoinedLines {
    pub(super) bytes: Vec<u8>,
    /// For each part but the first: where it begins in `bytes`, and in the text.
    parts: Vec<(usize, usize)>,
}

impl JoinedLines {
    /// Joins the word that begins at an offset with the words at the beginning of the next lines.
    /// `None` if it is not the last word of its line, or the next line does not begin with a word.
    pub(super) fn of(text: &[u8], start: usize, runs: &mut ScanMemory) -> Option<Self> {
        // Most words do not end their line. `runs` measures a long word only once.
        let near = text.get(start..text.len().min(start + MOST_BYTES + 1))?;
        memchr2(b'\n', b'\\', near)?;
        let first = runs.end(text, start, &OF_TOKEN);
        if first > start + MOST_BYTES || line_end(text, first).is_none() {
            return None;
        }
        let mut joined = Self { bytes: Vec::new(), parts: Vec::new() };
        let mut at = start;
        loop {
            let length = run(text, at, MOST_BYTES, is_of_token);
            joined.bytes.extend_from_slice(text.get(at..at + length)?);
            if joined.parts.len() == MOST_ENDS {
                break;
            }
            let Some(end) = line_end(text, at + length) else { break };
            let next = at + length + end;
            let next = next + indentation(text, next);
            if !text.get(next).is_some_and(|byte| is_of_token(*byte)) {
                break;
            }
            joined.parts.push((joined.bytes.len(), next));
            at = next;
        }
        (!joined.parts.is_empty()).then_some(joined)
    }

    /// Maps a range of the joined bytes to the text, where they begin at `start`.
    pub(super) fn place(&self, range: &Range<usize>, start: usize) -> Range<usize> {
        let at = |place: usize, is_end: bool| {
            let limit = if is_end { place.saturating_sub(1) } else { place };
            let part = self.parts.iter().rfind(|(begun, _)| *begun <= limit);
            part.map_or(start + place, |(begun, there)| there + (place - begun))
        };
        at(range.start, false)..at(range.end, true)
    }

    /// Returns the part that contains the byte before `end`, up to `end`; `None` if it is the first
    /// part.
    pub(super) fn last_part(&self, end: usize) -> Option<&[u8]> {
        let (begun, _) = self.parts.iter().rfind(|(begun, _)| *begun < end)?;
        self.bytes.get(*begun..end)
    }
}

const OF_TOKEN: ByteClass =
    ByteClass::of(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.~+/=");

fn is_of_token(byte: u8) -> bool {
    OF_TOKEN.has(byte)
}

/// Returns the length of the line end at an offset, if there is one. It may be escaped, also for
/// JSON inside JSON.
pub(super) fn line_end(text: &[u8], at: usize) -> Option<usize> {
    let carriage = sign(text, at, b'\r', b'r').unwrap_or(0);
    sign(text, at + carriage, b'\n', b'n').map(|length| carriage + length)
}

fn indentation(text: &[u8], at: usize) -> usize {
    let mut length = 0;
    while length < MOST_SPACES {
        let space = usize::from(text.get(at + length) == Some(&b' '));
        match sign(text, at + length, b'\t', b't').unwrap_or(space) {
            0 => break,
            more => length += more,
        }
    }
    length
}

/// Returns the length of this byte or of its escape with this letter, if one of them is at an
/// offset.
fn sign(text: &[u8], at: usize, plain: u8, letter: u8) -> Option<usize> {
    const MOST_SLASHES: usize = 8;
    let slashes = run(text, at, MOST_SLASHES, |byte| byte == b'\\');
    match text.get(at + slashes) {
        Some(byte) if *byte == plain && slashes == 0 => Some(1),
        Some(byte) if *byte == letter && slashes > 0 => Some(slashes + 1),
        _ => None,
    }
}

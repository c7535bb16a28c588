//! Parts of JSON that may itself be inside a JSON string: its quotes then have backslashes before
//! them.

use super::byte_text::backslashes;
use std::ops::Range;

/// Returns the offset after the white space at `at`, escaped or not.
pub(super) fn skip_spaces(text: &[u8], mut at: usize) -> usize {
    loop {
        match text.get(at) {
            Some(b' ' | b'\n' | b'\r' | b'\t') => at += 1,
            Some(b'\\') => {
                let slashes = backslashes(text, at, usize::MAX);
                match text.get(at + slashes) {
                    Some(b'n' | b'r' | b't') => at += slashes + 1,
                    _ => return at,
                }
            }
            _ => return at,
        }
    }
}

/// Returns the offset after the quote at `at` and the backslashes before it; `None` if there is no
/// quote.
pub(super) fn skip_quote(text: &[u8], at: usize) -> Option<usize> {
    let slashes = backslashes(text, at, usize::MAX);
    (text.get(at + slashes) == Some(&b'"')).then_some(at + slashes + 1)
}

/// Parses the string at `at`. Returns the range inside its quotes, and the offset after it; `None`
/// if there is none, or if its closing quote is not before `end`.
pub(super) fn parse_string(text: &[u8], at: usize, end: usize) -> Option<(Range<usize>, usize)> {
    let from = skip_quote(text, at)?;
    let opening_bytes = from - at;
    let mut to = from;
    loop {
        let rest = text.get(to..end)?;
        let length = rest.iter().position(|byte| matches!(byte, b'\\' | b'"'))?;
        to += length;
        let slashes = backslashes(rest, length, usize::MAX);
        // A quote with more backslashes than the opening one is inside the string.
        if text.get(to + slashes) == Some(&b'"') && slashes < opening_bytes {
            return Some((from..to, to + slashes + 1));
        }
        to += slashes + 1;
    }
}

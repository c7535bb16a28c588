//! JSON that may itself be inside a JSON string: its quotes then have backslashes before them.

use std::ops::Range;

/// Skips white space, escaped or not.
pub(super) fn spaces(text: &[u8], mut at: usize) -> usize {
    loop {
        match text.get(at) {
            Some(b' ' | b'\n' | b'\r' | b'\t') => at += 1,
            Some(b'\\') => {
                let slashes = text.iter().skip(at).take_while(|byte| **byte == b'\\').count();
                match text.get(at + slashes) {
                    Some(b'n' | b'r' | b't') => at += slashes + 1,
                    _ => return at,
                }
            }
            _ => return at,
        }
    }
}

/// Skips a quote and the backslashes before it.
pub(super) fn quote(text: &[u8], at: usize) -> Option<usize> {
    let slashes = text.iter().skip(at).take_while(|byte| **byte == b'\\').count();
    (text.get(at + slashes) == Some(&b'"')).then_some(at + slashes + 1)
}

/// Parses a string: returns the range inside its quotes, and the end including them.
pub(super) fn string(text: &[u8], at: usize, end: usize) -> Option<(Range<usize>, usize)> {
    let from = quote(text, at)?;
    let depth = from - at;
    let mut to = from;
    loop {
        let rest = text.get(to..end)?;
        let length = rest.iter().position(|byte| matches!(byte, b'\\' | b'"'))?;
        to += length;
        let slashes = rest.iter().skip(length).take_while(|byte| **byte == b'\\').count();
        if text.get(to + slashes) == Some(&b'"') && slashes < depth {
            return Some((from..to, to + slashes + 1));
        }
        to += slashes + 1;
    }
}

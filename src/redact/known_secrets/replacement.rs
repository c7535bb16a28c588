//! Recognizes a text that differs from another only in what a purge writes.

use super::{CODES, FILL, MARK};

/// How the difference of two texts is looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TextDifference {
    /// Whether the texts are parts of longer ones.
    pub(crate) is_cut: bool,
    /// Whether either text may be the one that was purged, or both.
    pub(crate) both_purged: bool,
}

impl TextDifference {
    /// Returns whether a text is another one in which some bytes were replaced as a purge does: by
    /// parts of the replacement of a secret, or of the escapes in it.
    pub(crate) fn is_purge(self, before: &[u8], after: &[u8]) -> bool {
        before.len() == after.len()
            && before.iter().zip(after).enumerate().all(|(at, (old, new))| {
                old == new
                    || self.is_replacement(before, after, at)
                    || (self.both_purged && self.is_replacement(after, before, at))
            })
    }

    /// Returns whether a purge writes the byte at an offset over the one that was there.
    fn is_replacement(self, before: &[u8], after: &[u8], at: usize) -> bool {
        let is_written = match after[at] {
            FILL => is_filling(after, at),
            // In an escape.
            b'/' => at > 0 && after[at - 1] == b'\\',
            // In a number, or in the code of an escape.
            b'1' | b'7' => before[at].is_ascii_hexdigit(),
            _ => false,
        };
        is_written
            || is_in_word(MARK, after, at, self.is_cut)
            || CODES.iter().flatten().any(|code| is_in_word(code, after, at, self.is_cut))
    }
}

/// Returns whether the filler at an offset follows a mark, other filler, an escape or a character
/// that a purge keeps, or is followed by one of them: it is no letter of a word.
fn is_filling(text: &[u8], at: usize) -> bool {
    let is_beside = |byte: Option<&u8>| {
        let others = b"/%\n\r\"{}[]:,\\";
        byte.is_some_and(|byte| *byte == FILL || others.contains(byte))
    };
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    let ends_mark_or_escape = matches!(before, Some(b'd' | b'2' | b'7' | b'8'));
    ends_mark_or_escape || is_beside(before) || is_beside(text.get(at + 1))
}

/// Returns whether the byte at an offset belongs to a word. If the text was cut, the word may go on
/// before or after it.
fn is_in_word(word: &[u8], text: &[u8], at: usize, is_cut: bool) -> bool {
    (0..word.len()).any(|place| {
        let (start, skipped) = (at.saturating_sub(place), place.saturating_sub(at));
        let there = text.get(start..).unwrap_or_default();
        let length = (word.len() - skipped).min(there.len());
        let is_whole = length == word.len();
        (is_whole || is_cut) && word.get(skipped..skipped + length) == there.get(..length)
    })
}

//! Recognises a text that differs from another only by the replacements that a purge writes.

use super::{CODES, FILL, MARK};

/// How two texts are compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TextDifference {
    /// Whether the texts are parts of longer ones.
    pub(crate) is_cut: bool,
    /// Whether the text before may be purged too.
    pub(crate) both_purged: bool,
}

impl TextDifference {
    /// Returns whether `after` is `before` with some bytes replaced as a purge replaces them: by
    /// parts of the replacement of a secret, or of the escapes in it.
    pub(crate) fn is_purge(self, before: &[u8], after: &[u8]) -> bool {
        before.len() == after.len()
            && before.iter().zip(after).enumerate().all(|(at, (old, new))| {
                old == new
                    || self.is_replacement(before, after, at)
                    || (self.both_purged && self.is_replacement(after, before, at))
            })
    }

    /// Returns whether a purge may have written the byte of `after` at an offset over that of
    /// `before`.
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

/// Returns whether the filler at an offset is part of a replacement, and not the letter of a word:
/// next to it is other filler or a character that a purge keeps, or before it may be a mark or an
/// escape.
fn is_filling(text: &[u8], at: usize) -> bool {
    let is_beside = |byte: Option<&u8>| {
        let others = b"/%\n\r\"{}[]:,\\";
        byte.is_some_and(|byte| *byte == FILL || others.contains(byte))
    };
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    let ends_mark_or_escape = matches!(before, Some(b'd' | b'2' | b'7' | b'8'));
    ends_mark_or_escape || is_beside(before) || is_beside(text.get(at + 1))
}

/// Returns whether the byte at an offset belongs to this word. If the text was cut, the word may
/// begin before the text or end after it.
fn is_in_word(word: &[u8], text: &[u8], at: usize, is_cut: bool) -> bool {
    (0..word.len()).any(|place| {
        let (start, skipped) = (at.saturating_sub(place), place.saturating_sub(at));
        let there = text.get(start..).unwrap_or_default();
        let length = (word.len() - skipped).min(there.len());
        let is_whole = length == word.len();
        (is_whole || is_cut) && word.get(skipped..skipped + length) == there.get(..length)
    })
}

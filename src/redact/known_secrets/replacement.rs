//! Recognizes a text that differs from another only in what a purge writes.

use super::{CODES, FILL, MARK};

/// Returns whether a text is another one in which some bytes were replaced as a purge does: by
/// parts of the replacement of a secret, or of the escapes in it. With `is_cut`, the texts are
/// parts of longer ones.
pub(crate) fn differs_only_in_replacements(before: &[u8], after: &[u8], is_cut: bool) -> bool {
    before.len() == after.len()
        && before.iter().zip(after).enumerate().all(|(at, (old, new))| {
            old == new
                || matches!(*new, FILL | b'/' | b'1' | b'7')
                || is_in_word(MARK, after, at, is_cut)
                || CODES.iter().flatten().any(|code| is_in_word(code, after, at, is_cut))
        })
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

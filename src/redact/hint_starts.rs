//! Finds where in a text one of many words may begin, by comparing three bytes at a time.

use std::ops::Range;

/// How many low bits of a byte are compared. They are equal for the upper and the lower case of a
/// letter.
const BITS: usize = 5;
const LOW: usize = (1 << BITS) - 1;
/// The number of codes of three bytes.
pub(super) const CODES: usize = 1 << (3 * BITS);
/// The bits of the codes of two and of three bytes.
const TWO: usize = (1 << (2 * BITS)) - 1;
const THREE: usize = CODES - 1;

/// Runs a block for each word of a table, with what the table lists it under. A `const fn` can have
/// no `for` loop.
macro_rules! for_each_word {
    ($table:expr, |$kind:ident, $word:ident| $block:block) => {
        let mut row = 0;
        while row < $table.len() {
            let ($kind, words) = $table[row];
            let mut number = 0;
            while number < words.len() {
                let $word = words[number];
                $block
                number += 1;
            }
            row += 1;
        }
    };
}
pub(super) use for_each_word;

/// A table of the codes of three bytes: whether they may be the beginning of a word, in any case.
///
/// Other bytes may have the same code, so the words must still be compared there. To look up a code
/// at each offset is faster than to run an automaton for all words.
pub(super) struct HintStarts([bool; CODES]);

const fn low(byte: u8) -> usize {
    byte as usize & LOW
}

/// Returns the code of the first three bytes of a text; bytes after its end count as zero.
pub(super) const fn code_of(text: &[u8]) -> usize {
    let (one, two, three) = match text {
        [] => (0, 0, 0),
        [one] => (*one, 0, 0),
        [one, two] => (*one, *two, 0),
        [one, two, three, ..] => (*one, *two, *three),
    };
    low(one) << (2 * BITS) | low(two) << BITS | low(three)
}

/// Returns the code of the fourth byte of a text.
pub(super) const fn fourth_code(text: &[u8]) -> Option<u8> {
    match text {
        [_, _, _, fourth, ..] => Some(low(*fourth) as u8),
        _ => None,
    }
}

/// Returns the codes that a text can have where this word begins: several if the word is shorter
/// than three bytes.
pub(super) const fn codes(word: &str) -> Range<usize> {
    let first = code_of(word.as_bytes());
    first..first + (1 << (BITS * 3_usize.saturating_sub(word.len())))
}

impl HintStarts {
    /// The table of no words.
    pub(super) const NONE: Self = Self([false; CODES]);

    /// Adds a word.
    pub(super) const fn add(&mut self, word: &str) {
        let Range { start: mut code, end } = codes(word);
        while code < end {
            self.0[code] = true;
            code += 1;
        }
    }

    /// Returns the first offset in a range at which a word may begin. The word may go on after the
    /// range.
    pub(super) fn next(&self, text: &[u8], range: Range<usize>) -> Option<usize> {
        let after = text.get(range.start..text.len().min(range.end + 2))?;
        let [one, two, rest @ ..] = after else {
            return None;
        };
        let mut code = low(*one) << BITS | low(*two);
        // Four offsets at once, with one branch.
        let (fours, last) = rest.as_chunks::<4>();
        for (number, [a, b, c, d]) in fours.iter().enumerate() {
            let first = code << BITS | low(*a);
            let second = first << BITS | low(*b);
            let third = second << BITS | low(*c);
            let fourth = third << BITS | low(*d);
            code = fourth & TWO;
            let found = [first, second, third, fourth].map(|code| self.0[code & THREE]);
            if found[0] | found[1] | found[2] | found[3] {
                let within = found.iter().position(|found| *found)?;
                return Some(range.start + 4 * number + within);
            }
        }
        // A word of two bytes may end the text.
        let end = usize::from(after.len() < range.len() + 2);
        let last = last.iter().copied().chain(std::iter::repeat_n(0, end));
        for (at, byte) in last.enumerate() {
            code = (code << BITS | low(byte)) & THREE;
            if self.0[code] {
                return Some(range.start + rest.len() / 4 * 4 + at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts_of(words: &[&str]) -> HintStarts {
        let mut starts = HintStarts::NONE;
        words.iter().for_each(|word| starts.add(word));
        starts
    }

    #[test]
    fn every_word_is_found_where_it_begins_and_also_at_the_ends_of_the_text() {
        let starts = starts_of(&["&#", "token", "=\n", "://"]);
        let text = b"TOKEN a &# b=\n c:// Token &#";
        let found: Vec<usize> =
            (0..text.len()).filter(|at| starts.next(text, *at..text.len()) == Some(*at)).collect();
        assert_eq!(found, [0, 8, 12, 16, 20, 26]);
    }

    #[test]
    fn a_hint_that_begins_in_the_range_may_end_after_it() {
        let starts = starts_of(&["token", "&#"]);
        let text = b"a token &#";
        assert_eq!(starts.next(text, 0..3), Some(2));
        assert_eq!(starts.next(text, 0..2), None);
        assert_eq!(starts.next(text, 3..9), Some(8));
        assert_eq!(starts.next(text, 3..8), None);
        assert_eq!(starts.next(text, 9..10), None);
        assert_eq!(starts.next(b"", 0..0), None);
    }
}

//! A cursor in a text that is being parsed.

use super::error::GrammarFault;
use std::ops::RangeInclusive;

/// The unread part of a text. Keep a copy to return to a position.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextCursor<'a> {
    rest: &'a str,
}

impl<'a> TextCursor<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    pub(super) const fn rest(self) -> &'a str {
        self.rest
    }

    pub(super) const fn is_end(self) -> bool {
        self.rest.is_empty()
    }

    /// Rejects unread text.
    pub(super) fn expect_end(self) -> Result<(), GrammarFault> {
        if self.is_end() { Ok(()) } else { Err(GrammarFault::syntax(self.rest)) }
    }

    pub(super) fn peek(self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Returns whether this character and then a digit follow.
    pub(super) fn is_before_digit(self, character: char) -> bool {
        self.rest
            .strip_prefix(character)
            .is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
    }

    pub(super) fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// Reads this character if it is next, ignoring case. Returns whether it was.
    pub(super) fn eat(&mut self, character: char) -> bool {
        match self.peek() {
            Some(next) if next.eq_ignore_ascii_case(&character) => {
                self.rest = &self.rest[next.len_utf8()..];
                true
            }
            _ => false,
        }
    }

    /// Reads this whole word if it is next, ignoring case. Returns whether it was.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let mut after = *self;
        let found = after.letters().eq_ignore_ascii_case(word)
            && !after.peek().is_some_and(|next| next.is_alphanumeric() || next == '_');
        if found {
            *self = after;
        }
        found
    }

    /// Reads these words, separated by spaces, if they are next, ignoring case; otherwise reads
    /// nothing. Returns whether they were.
    pub(super) fn eat_words(&mut self, words: &[&str]) -> bool {
        let mut after = *self;
        let found = words.iter().all(|word| {
            after.skip_spaces();
            after.eat_word(word)
        });
        if found {
            *self = after;
        }
        found
    }

    /// Reads all ASCII letters up to another character.
    pub(super) fn letters(&mut self) -> &'a str {
        self.take_while(|character| character.is_ascii_alphabetic())
    }

    /// Reads all ASCII digits up to another character.
    pub(super) fn digits(&mut self) -> &'a str {
        self.take_while(|character| character.is_ascii_digit())
    }

    /// Reads exactly two digits as a number; reads nothing if there are fewer or more.
    pub(super) fn two_digits(&mut self) -> Option<u32> {
        self.digits_of_length(2..=2)
    }

    /// Reads one or two digits as a number; reads nothing if there are none or more.
    pub(super) fn up_to_two_digits(&mut self) -> Option<u32> {
        self.digits_of_length(1..=2)
    }

    /// Reads all digits up to another character as a number; reads nothing if their count is not in
    /// `length`.
    pub(super) fn digits_of_length(&mut self, length: RangeInclusive<usize>) -> Option<u32> {
        let mut after = *self;
        let digits = after.digits();
        if !length.contains(&digits.len()) {
            return None;
        }
        *self = after;
        digits.parse().ok()
    }

    /// Reads all characters up to one that is not wanted.
    pub(super) fn take_while(&mut self, is_wanted: impl Fn(char) -> bool) -> &'a str {
        let length = self.rest.find(|next| !is_wanted(next)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}

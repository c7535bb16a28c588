//! The words next to which a secret may be, each with the rule that it triggers.
//!
//! The table is computed when forge is compiled: a process that scans a short text, such as a hook,
//! must not spend its time on building it.

use super::command_hint::{self, CommandPlace};
use super::hint_starts::{self, HintStarts, for_each_word};
use super::program_secret::{self, ProgramPlace};
use super::token_rule::rules;
use super::{credential, named_value, unescaped_view};
use crate::const_table::split;
use std::ops::Range;

/// The rule that a hint triggers.
#[derive(Clone, Copy)]
pub(super) enum ScanHint {
    /// A token of this rule.
    Shape(usize),
    /// A name that indicates a secret value.
    Name(&'static str),
    /// The context of a credential.
    Surroundings(credential::CredentialKind),
    /// The text beside a credential of a program.
    Program(ProgramPlace),
    /// The text beside a password of a command.
    Command(CommandPlace),
    /// The beginning of an escape.
    Escape,
}

/// The words of all hints, by their beginning.
pub(super) struct HintTable {
    /// The words in the order of the rules. Words that begin alike are tried in this order.
    words: [HintWord; COUNTED.count],
    /// The words by the code of their beginning; those with one code form a list.
    entries: [CodeEntry; COUNTED.codes],
    /// For each code, the number of entries up to the first one of its list; 0 if it has none.
    first_of_code: [u16; hint_starts::CODES],
    /// Finds where a word may begin.
    starts: HintStarts,
}

type HintWord = (&'static str, ScanHint);

/// A word that may begin where a text has a certain code.
#[derive(Clone, Copy)]
struct CodeEntry {
    /// The number of the word.
    word: u16,
    /// The code of its fourth byte, if it has one. Most words with the same code differ there.
    fourth: Option<u8>,
    /// The number of entries up to the next one with this code; 0 if this is the last one.
    next: u16,
}

pub(super) static TABLE: HintTable = HintTable::new();

/// Only the counts, for the sizes of the table.
const COUNTED: WordList<0> = WordList::new();

/// The first `N` words of all hints, in the order of the rules.
struct WordList<const N: usize> {
    words: [HintWord; N],
    /// The number of all words.
    count: usize,
    /// The number of all codes that the words can have.
    codes: usize,
}

impl<const N: usize> WordList<N> {
    const fn new() -> Self {
        let mut list = Self { words: [("", ScanHint::Escape); N], count: 0, codes: 0 };
        let mut number = 0;
        while number < rules().len() {
            let mut rest = rules()[number].spaced_hints;
            while !rest.is_empty() {
                let (word, after) = split(rest, b' ');
                list.add(word, ScanHint::Shape(number));
                rest = after;
            }
            number += 1;
        }
        for_each_word!(named_value::INDICATING_WORDS, |kind, word| {
            list.add(word, ScanHint::Name(kind));
        });
        for_each_word!(credential::HINTS, |kind, word| {
            list.add(word, ScanHint::Surroundings(kind));
        });
        for_each_word!(program_secret::HINTS, |place, word| {
            list.add(word, ScanHint::Program(place));
        });
        for_each_word!(command_hint::HINTS, |place, word| {
            list.add(word, ScanHint::Command(place));
        });
        let mut number = 0;
        while number < unescaped_view::BEGINS.len() {
            list.add(unescaped_view::BEGINS[number], ScanHint::Escape);
            number += 1;
        }
        list
    }

    const fn add(&mut self, word: &'static str, hint: ScanHint) {
        if self.count < N {
            self.words[self.count] = (word, hint);
        }
        self.count += 1;
        let Range { start, end } = hint_starts::codes(word);
        self.codes += end - start;
    }
}

impl HintTable {
    const fn new() -> Self {
        let mut table = Self {
            words: WordList::new().words,
            entries: [CodeEntry { word: 0, fourth: None, next: 0 }; COUNTED.codes],
            first_of_code: [0; hint_starts::CODES],
            starts: HintStarts::NONE,
        };
        let (mut number, mut made) = (table.words.len(), 0);
        // The entry made last is the first one of its list.
        while number > 0 {
            number -= 1;
            let (word, _) = table.words[number];
            table.starts.add(word);
            let Range { start: mut code, end } = hint_starts::codes(word);
            while code < end {
                let fourth = hint_starts::fourth_code(word.as_bytes());
                let next = table.first_of_code[code];
                table.entries[made] = CodeEntry { word: short(number), fourth, next };
                made += 1;
                table.first_of_code[code] = short(made);
                code += 1;
            }
        }
        table
    }

    /// Returns the table of the codes with which a word may begin.
    pub(super) fn starts(&self) -> &HintStarts {
        &self.starts
    }

    /// Returns the words with which this text begins, in any case, with their hints.
    pub(super) fn at_beginning(&self, text: &[u8]) -> impl Iterator<Item = HintWord> {
        let entry = |place: u16| self.entries.get(usize::from(place).checked_sub(1)?);
        let first = entry(self.first_of_code[hint_starts::code_of(text)]);
        let of_code = std::iter::successors(first, move |last| entry(last.next));
        let fourth = hint_starts::fourth_code(text);
        let alike = of_code.filter(move |entry| entry.fourth.is_none() || entry.fourth == fourth);
        alike.map(|entry| self.words[usize::from(entry.word)]).filter(|(word, _)| {
            text.get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word.as_bytes()))
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "checked")]
const fn short(number: usize) -> u16 {
    assert!(number <= u16::MAX as usize);
    number as u16
}

//! Finds the texts that have all words of a query.

use super::catalogue::BlockPlace;
use super::text_block::{OpenedBlock, TextEntry, kind_bit};
use super::text_copy::TextCopy;
use super::{SearchQuery, text_block};
use crate::error::{Error, Result};
use crate::model::SessionNumber;
use crate::model::text::{trim_cut_end, trim_cut_start};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind, PatternID};
use std::ops::Range;

/// The approximate length of a snippet, in bytes.
const SNIPPET_BYTES: usize = 160;
/// The maximum number of matches in a text that are kept for its snippet.
const MOST_PLACES: usize = 64;

/// A part of a text around the first match, on one line, and the byte ranges of matches in it.
pub(super) type Snippet = (String, Vec<Range<usize>>);

/// A text that has all words of the query.
pub(super) struct MatchedText {
    pub(super) entry: TextEntry,
    pub(super) snippet: Snippet,
}

/// Finds the texts that match a query: its words, kinds and times.
pub(super) struct TextMatcher<'q> {
    pub(super) query: &'q SearchQuery,
    words: WordFinder,
}

impl<'q> TextMatcher<'q> {
    pub(super) fn new(query: &'q SearchQuery) -> Result<Self> {
        Ok(Self { query, words: WordFinder::new(&query.words)? })
    }

    /// Returns the text with a snippet if it matches the query.
    pub(super) fn matched(&self, entry: &TextEntry, text: &str) -> Option<MatchedText> {
        if !self.has_wanted_kind_and_time(entry) {
            return None;
        }
        let places = self.words.places(text)?;
        Some(MatchedText { entry: entry.clone(), snippet: snippet(text, &places) })
    }

    /// Returns whether the kind and the time of a text match the query.
    fn has_wanted_kind_and_time(&self, entry: &TextEntry) -> bool {
        self.kinds() & kind_bit(entry.kind) != 0
            && self.query.since.is_none_or(|since| entry.at >= since)
            && self.query.until.is_none_or(|until| entry.at <= until)
    }

    /// Returns the bits of the kinds that match the query.
    fn kinds(&self) -> u64 {
        if self.query.kinds.is_empty() {
            return u64::MAX;
        }
        self.query.kinds.iter().fold(0, |bits, kind| bits | kind_bit(Some(*kind)))
    }

    /// Returns whether a part of a block may have texts whose kind and time match the query.
    pub(super) fn may_take(&self, part: &text_block::PartSummary) -> bool {
        self.kinds() & part.kinds != 0
            && self.query.since.is_none_or(|since| part.last >= since)
            && self.query.until.is_none_or(|until| part.first <= until)
    }

    /// Returns the texts of a block that match the query; `None` if the block is damaged.
    pub(super) fn matched_in(
        &self,
        copy: &TextCopy,
        block: &BlockPlace,
    ) -> Option<Vec<(SessionNumber, MatchedText)>> {
        let bytes = copy.bytes_of(block)?;
        let opened = OpenedBlock::of(block.number, &bytes, &copy.seal)?;
        if !self.words.are_in(&opened.text) {
            return Some(Vec::new());
        }
        let mut found = Vec::new();
        for (session, entries) in opened.entries()? {
            for (from, entry) in entries {
                let text = opened.text.get(from..from.checked_add(entry.length)?)?;
                found.extend(self.matched(&entry, text).map(|text| (session, text)));
            }
        }
        Some(found)
    }
}

/// Finds words in any of their [`spellings`].
struct WordFinder {
    automaton: AhoCorasick,
    /// For each pattern of the automaton, the bit of its word.
    bits: Vec<u64>,
    /// The bits of all words.
    all: u64,
}

impl WordFinder {
    /// Builds the automaton that finds these words. Building a DFA can take time that is quadratic
    /// in the length of a word, so long words use an NFA.
    fn new(words: &[String]) -> Result<Self> {
        const LONG_BYTES: usize = 1000;
        let (mut patterns, mut bits) = (Vec::new(), Vec::new());
        for (number, word) in words.iter().enumerate() {
            patterns.extend(spellings(word));
            bits.resize(patterns.len(), 1 << number);
        }
        let is_long = patterns.iter().map(String::len).sum::<usize>() > LONG_BYTES;
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(is_long.then_some(AhoCorasickKind::ContiguousNFA))
            .build(&patterns)
            .map_err(|error| Error::invalid(error.to_string()))?;
        let all = bits.iter().fold(0_u64, |all, bit| all | *bit);
        Ok(Self { automaton, bits, all })
    }

    /// Returns the bit of the word that a pattern of the automaton spells.
    fn bit(&self, pattern: PatternID) -> u64 {
        self.bits.get(pattern.as_usize()).copied().unwrap_or_default()
    }

    /// Returns whether a text has all words.
    fn are_in(&self, text: &str) -> bool {
        let mut seen = 0_u64;
        self.automaton.find_overlapping_iter(text).any(|hit| {
            seen |= self.bit(hit.pattern());
            seen == self.all
        })
    }

    /// Returns the byte ranges of the first [`MOST_PLACES`] matches in a text, if it has all words.
    fn places(&self, text: &str) -> Option<Vec<Range<usize>>> {
        let mut seen = 0_u64;
        let mut places = Vec::new();
        for hit in self.automaton.find_overlapping_iter(text) {
            seen |= self.bit(hit.pattern());
            if places.len() < MOST_PLACES {
                places.push(hit.range());
            } else if seen == self.all {
                break;
            }
        }
        (seen == self.all).then_some(places)
    }
}

/// Returns the spellings in which a word is found: as it is written, in lower case, in upper case,
/// and with a capital first letter. Spellings that differ only in the case of ASCII letters are
/// one, because that case is ignored anyway.
pub(super) fn spellings(word: &str) -> Vec<String> {
    let mut found = vec![word.to_owned()];
    if !word.is_ascii() {
        let lower = word.to_lowercase();
        let mut rest = lower.chars();
        let first = rest.next().into_iter().flat_map(char::to_uppercase);
        let capital: String = first.chain(rest).collect();
        for one in [word.to_uppercase(), capital, lower] {
            if !found.iter().any(|known| known.eq_ignore_ascii_case(&one)) {
                found.push(one);
            }
        }
    }
    found
}

/// Returns the text around the first match, with each run of whitespace as one space, and the
/// ranges of the matches in it. Matches that overlap or touch are one range.
fn snippet(text: &str, places: &[Range<usize>]) -> (String, Vec<Range<usize>>) {
    let first = places.first().map_or(0, |place| place.start);
    let mut from = text.floor_char_boundary(first.saturating_sub(SNIPPET_BYTES / 3));
    let to = text.ceil_char_boundary((from + SNIPPET_BYTES).min(text.len()));
    if from > 0 {
        let rest = text.get(from..).unwrap_or_default();
        from = (text.len() - trim_cut_start(rest).len()).min(first);
    }
    let mut part = text.get(from..to).unwrap_or_default();
    if to < text.len() {
        part = trim_cut_end(part);
    }
    let mut shown = String::with_capacity(SNIPPET_BYTES + 8);
    if from > 0 {
        shown.push('…');
    }
    // For each byte of the part: its offset in the snippet.
    let mut offsets = Vec::with_capacity(to - from + 1);
    for character in part.chars() {
        offsets.extend(std::iter::repeat_n(shown.len(), character.len_utf8()));
        if !character.is_whitespace() {
            shown.push(character);
        } else if !shown.ends_with(' ') {
            shown.push(' ');
        }
    }
    offsets.push(shown.len());
    if to < text.len() {
        shown.push('…');
    }
    let place = |at: usize| at.checked_sub(from).and_then(|at| offsets.get(at)).copied();
    let found = places.iter().filter_map(|range| Some(place(range.start)?..place(range.end)?));
    let mut apart: Vec<Range<usize>> = Vec::new();
    for range in found {
        match apart.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => apart.push(range),
        }
    }
    (shown, apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_shows_the_words_in_one_line() {
        let text = format!("{}the  \n Needle {}", "x ".repeat(100), "y ".repeat(100));
        let words = WordFinder::new(&["needle".to_owned()]).unwrap();
        let places = words.places(&text).unwrap();
        let (shown, found) = snippet(&text, &places);
        assert!(shown.contains("the Needle y") && shown.starts_with('…') && shown.ends_with('…'));
        assert_eq!(&shown[found[0].clone()], "Needle");
    }

    #[test]
    fn a_snippet_has_no_joiner_at_its_ends() {
        let words = WordFinder::new(&["needle".to_owned()]).unwrap();
        for spaces in 0..8 {
            let family = "👨\u{200d}👩\u{200d}👧".repeat(30);
            let text = format!("{family}{}needle{family}", " ".repeat(spaces));
            let places = words.places(&text).unwrap();
            let (shown, found) = snippet(&text, &places);
            assert_eq!(&shown[found[0].clone()], "needle");
            assert!(!shown.starts_with("…\u{200d}") && !shown.ends_with("\u{200d}…"), "{shown}");
        }
    }

    #[test]
    fn the_spellings_of_a_word_differ_in_more_than_the_case_of_ascii_letters() {
        assert_eq!(spellings("Pool"), ["Pool"]);
        assert_eq!(spellings("日本"), ["日本"]);
        assert_eq!(spellings("überlauf"), ["überlauf", "ÜBERLAUF"]);
        assert_eq!(spellings("кеш"), ["кеш", "КЕШ", "Кеш"]);
        assert_eq!(spellings("СБОЙ"), ["СБОЙ", "Сбой", "сбой"]);
    }

    /// Building a DFA for a word of 100,000 letters would take 43 s.
    #[test]
    fn a_very_long_word_is_searched_for_without_building_a_dfa() {
        let word = |letters: usize| vec!["ab".repeat(letters / 2)];
        let finder = |letters| WordFinder::new(&word(letters)).unwrap();
        assert_eq!(finder(8).automaton.kind(), AhoCorasickKind::DFA);
        let (long, longer) = (finder(10_000), finder(100_000));
        assert_eq!(longer.automaton.kind(), AhoCorasickKind::ContiguousNFA);
        assert!(longer.automaton.memory_usage() <= 12 * long.automaton.memory_usage());
        let text = "AB".repeat(50_010);
        let places = longer.places(&text).unwrap();
        assert_eq!(places.first(), Some(&(0..100_000)));
        assert!(longer.places(&text[..99_999]).is_none());
    }
}

//! Finds the texts that have all words of a query.

use super::catalogue::BlockPlace;
use super::text_block::{OpenedBlock, TextEntry, kind_bit};
use super::text_copy::TextCopy;
use super::{SearchQuery, text_block};
use crate::error::{Error, Result};
use crate::model::SessionNumber;
use crate::model::text::{trim_cut_end, trim_cut_start};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
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
    automaton: AhoCorasick,
}

impl<'q> TextMatcher<'q> {
    pub(super) fn new(query: &'q SearchQuery) -> Result<Self> {
        Ok(Self { query, automaton: automaton_of(&query.words)? })
    }

    /// Returns the text with a snippet if it matches the query.
    pub(super) fn matched(&self, entry: &TextEntry, text: &str) -> Option<MatchedText> {
        if !self.has_wanted_kind_and_time(entry) {
            return None;
        }
        let places = matches_of_all_words(&self.automaton, self.query.words.len(), text)?;
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
        if !has_all_words(&self.automaton, self.query.words.len(), &opened.text) {
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

/// Builds the automaton that finds these words. Building a DFA can take time that is quadratic in
/// the length of a word, so long words use an NFA.
fn automaton_of(words: &[String]) -> Result<AhoCorasick> {
    const LONG_BYTES: usize = 1000;
    let is_long = words.iter().map(String::len).sum::<usize>() > LONG_BYTES;
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(is_long.then_some(AhoCorasickKind::ContiguousNFA))
        .build(words)
        .map_err(|error| Error::invalid(error.to_string()))
}

fn has_all_words(automaton: &AhoCorasick, words: usize, text: &str) -> bool {
    let mut seen = 0_u64;
    automaton.find_overlapping_iter(text).any(|hit| {
        seen |= 1 << hit.pattern().as_u32();
        seen.count_ones() as usize == words
    })
}

/// Returns the byte ranges of the first [`MOST_PLACES`] matches in a text, if it has all words.
fn matches_of_all_words(
    automaton: &AhoCorasick,
    words: usize,
    text: &str,
) -> Option<Vec<Range<usize>>> {
    let mut seen = 0_u64;
    let mut places = Vec::new();
    for hit in automaton.find_overlapping_iter(text) {
        seen |= 1 << hit.pattern().as_u32();
        if places.len() < MOST_PLACES {
            places.push(hit.range());
        } else if seen.count_ones() as usize == words {
            break;
        }
    }
    (seen.count_ones() as usize == words).then_some(places)
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
        let automaton = automaton_of(&["needle".to_owned()]).unwrap();
        let places = matches_of_all_words(&automaton, 1, &text).unwrap();
        let (shown, found) = snippet(&text, &places);
        assert!(shown.contains("the Needle y") && shown.starts_with('…') && shown.ends_with('…'));
        assert_eq!(&shown[found[0].clone()], "Needle");
    }

    #[test]
    fn a_snippet_has_no_joiner_at_its_ends() {
        let automaton = automaton_of(&["needle".to_owned()]).unwrap();
        for spaces in 0..8 {
            let family = "👨\u{200d}👩\u{200d}👧".repeat(30);
            let text = format!("{family}{}needle{family}", " ".repeat(spaces));
            let places = matches_of_all_words(&automaton, 1, &text).unwrap();
            let (shown, found) = snippet(&text, &places);
            assert_eq!(&shown[found[0].clone()], "needle");
            assert!(!shown.starts_with("…\u{200d}") && !shown.ends_with("\u{200d}…"), "{shown}");
        }
    }

    /// Building a DFA for a word of 100,000 letters would take 43 s.
    #[test]
    fn a_very_long_word_is_searched_for_without_building_a_dfa() {
        let word = |letters: usize| vec!["ab".repeat(letters / 2)];
        assert_eq!(automaton_of(&word(8)).unwrap().kind(), AhoCorasickKind::DFA);
        let long = automaton_of(&word(10_000)).unwrap();
        let longer = automaton_of(&word(100_000)).unwrap();
        assert_eq!(longer.kind(), AhoCorasickKind::ContiguousNFA);
        assert!(longer.memory_usage() <= 12 * long.memory_usage());
        let text = "AB".repeat(50_010);
        let places = matches_of_all_words(&longer, 1, &text).unwrap();
        assert_eq!(places.first(), Some(&(0..100_000)));
        assert!(matches_of_all_words(&longer, 1, &text[..99_999]).is_none());
    }
}

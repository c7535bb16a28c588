//! Full-text search in everything recorded: messages, commands and their output, claims as of each
//! revision, code, checkpoints.
//!
//! It searches a copy of the texts next to the store (`search/`, one file per session). The copy is
//! derived and private: it may be deleted at any time, and the next search makes it again. Only a
//! search updates it, so no write waits for it. `docs/search.md` explains why it is not an index of
//! words.

mod corpus;
pub(super) mod session_texts;

use super::event_stream::TextResolver;
use super::{Session, Store};
use crate::engine::refs::session as session_refs;
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::model::{Kind, SessionNumber, Timestamp};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use corpus::{CorpusEntry, CorpusSource};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The most hits on a page.
pub const MAX_HITS: usize = 200;
/// The most words in a query.
pub const MAX_WORDS: usize = 32;
/// The approximate length of a snippet around a hit, in bytes.
const SNIPPET_BYTES: usize = 160;

/// A search query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchQuery {
    words: Vec<String>,
    /// Only these kinds; if empty, all kinds and checkpoints.
    pub kinds: BTreeSet<Kind>,
    /// Only hits at or after this time.
    pub since: Option<Timestamp>,
    /// Only hits at or before this time.
    pub until: Option<Timestamp>,
    /// The most hits on a page; 0 means 20.
    pub limit: usize,
    /// The end of the previous page ([`SearchPage::cursor`]).
    pub cursor: Option<String>,
}

impl SearchQuery {
    /// Parses words; a text in double quotes is one word. Hits must contain all of them. Parts of
    /// words match too; the case of ASCII letters is ignored.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are no words, or too many.
    pub fn parse(text: &str) -> Result<Self> {
        let mut words = BTreeSet::new();
        for (place, part) in text.split('"').enumerate() {
            if place % 2 == 1 {
                words.insert(part.trim().to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        words.retain(|word| !word.is_empty());
        if words.is_empty() || words.len() > MAX_WORDS {
            return Err(Error::invalid(format!("search for 1 to {MAX_WORDS} words")));
        }
        Ok(Self { words: words.into_iter().collect(), ..Self::default() })
    }

    fn takes(&self, entry: &CorpusEntry) -> bool {
        let kind = match &entry.source {
            CorpusSource::Checkpoint => self.kinds.is_empty(),
            CorpusSource::Fact { .. } | CorpusSource::Claim => {
                self.kinds.is_empty() || entry.kind.is_some_and(|kind| self.kinds.contains(&kind))
            }
        };
        kind && self.since.is_none_or(|since| entry.at >= since)
            && self.until.is_none_or(|until| entry.at <= until)
    }
}

/// An entity or checkpoint that contains all words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchHit {
    /// The name of its session.
    pub session: String,
    /// The kind of entity; `None` for a checkpoint.
    pub kind: Option<Kind>,
    /// The id of the entity or checkpoint.
    pub id: String,
    /// The time of the first version that contains the words.
    pub at: Timestamp,
    /// The first revision with the words, or the checkpoint's number; for a fact, the last revision
    /// by then; `None` if there was none.
    pub revision: Option<u64>,
    /// How many versions contain all words.
    pub versions: u64,
    /// The text around the first match, on one line.
    pub snippet: String,
    /// The byte ranges of matches in the snippet.
    pub found: Vec<Range<usize>>,
}

/// A page of hits, the latest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPage {
    /// The hits of this page.
    pub hits: Vec<SearchHit>,
    /// The cursor for the next page; `None` on the last page.
    pub cursor: Option<String>,
    /// How many hits there are on all pages.
    pub total: u64,
    /// How many texts were searched.
    pub texts: u64,
}

/// The position of a hit in the order of hits.
type HitPosition = (Timestamp, SessionNumber, Option<Kind>, String);

struct HitCandidate {
    revision: Option<u64>,
    versions: u64,
    is_fact: bool,
    snippet: (String, Vec<Range<usize>>),
}

impl Store {
    /// Searches these sessions. Returns hits with all words of the query, the latest first.
    /// `resolve` reads long texts of imported sources.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a cursor that is not valid; also if the store cannot be read or is
    /// damaged.
    pub fn search(
        &self,
        sessions: &[Session],
        query: &SearchQuery,
        resolve: TextResolver<'_>,
    ) -> Result<SearchPage> {
        let search = searching(&query.words)?;
        let after = query.cursor.as_deref().map(place_of).transpose()?;
        let mut hits = SearchPage::default();
        let mut found: BTreeMap<HitPosition, HitCandidate> = BTreeMap::new();
        for session in sessions {
            let corpus = session_texts::current(self, session, resolve)?;
            hits.texts += corpus.entries.len() as u64;
            let mut firsts: BTreeMap<(Option<Kind>, String), (Timestamp, HitCandidate)> =
                BTreeMap::new();
            for (entry, text) in corpus.texts().filter(|(entry, _)| query.takes(entry)) {
                let Some(places) = all_words(&search, query.words.len(), text) else { continue };
                let key = (entry.kind, entry.id.clone());
                let is_fact = matches!(entry.source, CorpusSource::Fact { .. });
                let made = |versions| HitCandidate {
                    revision: entry.sequence,
                    versions,
                    is_fact,
                    snippet: snippet(text, &places),
                };
                match firsts.get_mut(&key) {
                    None => {
                        firsts.insert(key, (entry.at, made(1)));
                    }
                    Some((at, known)) => {
                        known.versions += 1;
                        if (entry.at, entry.sequence) < (*at, known.revision) {
                            (*at, *known) = (entry.at, made(known.versions));
                        }
                    }
                }
            }
            found.extend(
                firsts.into_iter().map(|((kind, id), (at, candidate))| {
                    ((at, session.number, kind, id), candidate)
                }),
            );
        }
        hits.total = found.len() as u64;
        let limit = if query.limit == 0 { 20 } else { query.limit.min(MAX_HITS) };
        let view = self.engine.follower.view()?;
        let mut rest = found
            .into_iter()
            .rev()
            .skip_while(|(place, _)| after.as_ref().is_some_and(|after| place >= after))
            .peekable();
        while let Some((place, candidate)) = rest.next_if(|_| hits.hits.len() < limit) {
            let (at, number, kind, id) = &place;
            let mut revision = candidate.revision;
            if candidate.is_fact {
                let branch = timeline::branch_at(&view, *number, *at)?;
                let there = timeline::revision_at(&view, &view.refs, *number, branch, *at)?;
                revision = there.map(|(at, _)| at.sequence);
            }
            hits.hits.push(SearchHit {
                session: session_refs(&view.refs, *number)?.info.name.clone(),
                kind: *kind,
                id: id.clone(),
                at: *at,
                revision,
                versions: candidate.versions,
                snippet: candidate.snippet.0,
                found: candidate.snippet.1,
            });
            if rest.peek().is_some() {
                hits.cursor = Some(cursor_of(&place));
            }
        }
        if hits.hits.len() < limit {
            hits.cursor = None;
        }
        Ok(hits)
    }
}

/// Builds the automaton that finds these words. The size of a DFA is quadratic in the length of a
/// word, so long words use an NFA.
fn searching(words: &[String]) -> Result<AhoCorasick> {
    const LONG_BYTES: usize = 1000;
    let is_long = words.iter().map(String::len).sum::<usize>() > LONG_BYTES;
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(is_long.then_some(AhoCorasickKind::ContiguousNFA))
        .build(words)
        .map_err(|error| Error::invalid(error.to_string()))
}

fn cursor_of((at, session, kind, id): &HitPosition) -> String {
    let kind = kind.map_or("-", Kind::name);
    format!("{}:{session}:{kind}:{id}", at.as_micros())
}

fn place_of(cursor: &str) -> Result<HitPosition> {
    let read = || {
        let mut parts = cursor.splitn(4, ':');
        let at = Timestamp::from_micros(parts.next()?.parse().ok()?);
        let session = parts.next()?.parse().ok()?;
        let kind = match parts.next()? {
            "-" => None,
            name => Some(name.parse().ok()?),
        };
        Some((at, session, kind, parts.next()?.to_owned()))
    };
    read().ok_or_else(|| {
        Error::invalid("this is no cursor of a search: hand in what a page before said")
    })
}

/// Returns where words match in a text, if all of them do.
fn all_words(search: &AhoCorasick, words: usize, text: &str) -> Option<Vec<Range<usize>>> {
    let mut seen = 0_u64;
    let mut places = Vec::new();
    for hit in search.find_overlapping_iter(text) {
        seen |= 1 << hit.pattern().as_u32();
        if places.len() < 64 {
            places.push(hit.range());
        }
    }
    (seen.count_ones() as usize == words).then_some(places)
}

/// Returns the text around the first match with whitespace collapsed, and the matches in it.
fn snippet(text: &str, places: &[Range<usize>]) -> (String, Vec<Range<usize>>) {
    let first = places.first().map_or(0, |place| place.start);
    let from = text.floor_char_boundary(first.saturating_sub(SNIPPET_BYTES / 3));
    let to = text.ceil_char_boundary((from + SNIPPET_BYTES).min(text.len()));
    let mut shown = String::with_capacity(SNIPPET_BYTES + 8);
    if from > 0 {
        shown.push('…');
    }
    // The position in the snippet for each byte of the part.
    let mut went = Vec::with_capacity(to - from + 1);
    let part = text.get(from..to).unwrap_or_default();
    for character in part.chars() {
        went.extend(std::iter::repeat_n(shown.len(), character.len_utf8()));
        if !character.is_whitespace() {
            shown.push(character);
        } else if !shown.ends_with(' ') {
            shown.push(' ');
        }
    }
    went.push(shown.len());
    if to < text.len() {
        shown.push('…');
    }
    let place = |at: usize| at.checked_sub(from).and_then(|at| went.get(at)).copied();
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
mod tests;

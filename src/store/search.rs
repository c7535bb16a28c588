//! Full-text search in everything recorded: messages, commands and their output, claims as of each
//! revision, code, checkpoints.
//!
//! It searches a copy of the texts in the folder of the store (`search/`): compressed blocks of
//! about 1 MiB, and which blocks have which grams, so that only blocks are read that may have all
//! words. The copy is derived and private: it may be deleted at any time, and the next search makes
//! it again. Only searches add to it, so no write waits for it. `docs/search.md` explains why it is
//! not an index of words.

mod catalogue;
mod copy_seal;
mod copy_update;
mod copy_writer;
mod gram_group;
mod grams;
mod hit_page;
mod session_texts;
mod text_block;
mod text_copy;
mod text_matcher;

use super::event_stream::TextResolver;
use super::{Session, Store};
use crate::error::{Error, Result};
use crate::model::{Kind, SessionNumber, Timestamp};
use copy_update::SearchScope;
use copy_writer::CopyWriter;
use hit_page::{HitPosition, page_of};
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;
use std::ops::Range;
use text_copy::{DamagedParts, TextCopy};
use text_matcher::TextMatcher;

/// The maximum number of hits on a page.
pub const MAX_HITS: usize = 200;
/// The maximum number of words in a query.
pub const MAX_WORDS: usize = 32;
/// The maximum length of a query, in bytes.
pub const MAX_QUERY_BYTES: usize = 128 << 10;

/// A search query. It has at least one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchQuery {
    words: Vec<String>,
    /// Only these kinds; if empty, all kinds and checkpoints.
    pub kinds: BTreeSet<Kind>,
    /// Only hits at or after this time.
    pub since: Option<Timestamp>,
    /// Only hits at or before this time.
    pub until: Option<Timestamp>,
    /// The maximum number of hits on a page, up to [`MAX_HITS`]; 0 means 20.
    pub limit: usize,
    /// Where the previous page ended ([`SearchPage::cursor`]).
    pub cursor: Option<String>,
}

impl SearchQuery {
    /// Parses words; a text in double quotes is one word. Hits must contain all of them. Parts of
    /// words match too, and each word also in lower case, in upper case and with a capital first
    /// letter.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are no words or more than [`MAX_WORDS`], or if the text has more
    /// than [`MAX_QUERY_BYTES`] bytes.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > MAX_QUERY_BYTES {
            return Err(Error::invalid(format!(
                "a search has at most {MAX_QUERY_BYTES} bytes, and this one has {}: search for a \
                part of it",
                text.len()
            )));
        }
        let mut words = BTreeSet::new();
        for (place, part) in text.split('"').enumerate() {
            if place % 2 == 1 {
                words.insert(part.trim().to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        words.retain(|word| !word.is_empty());
        if words.is_empty() {
            return Err(Error::invalid(format!("name 1 to {MAX_WORDS} words to search for")));
        }
        if words.len() > MAX_WORDS {
            return Err(Error::invalid(format!(
                "a search has at most {MAX_WORDS} words, and this one has {}: leave some out, or put \
                words that occur together in double quotes",
                words.len()
            )));
        }
        let words = words.into_iter().collect();
        let (since, until, cursor) = (None, None, None);
        Ok(Self { words, kinds: BTreeSet::new(), since, until, limit: 0, cursor })
    }
}

/// An entity or checkpoint that contains all words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SearchHit {
    /// The name of its session.
    pub session: String,
    /// The kind of entity; `None` for a checkpoint. Serialized as [`SearchHit::kind_word`].
    #[serde(serialize_with = "serialize_kind")]
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
    /// The byte ranges of matches in the snippet. Serialized as pairs of begin and end.
    #[serde(serialize_with = "serialize_ranges")]
    pub found: Vec<Range<usize>>,
}

impl SearchHit {
    /// Returns the name of its kind, or `checkpoint`.
    #[must_use]
    pub fn kind_word(&self) -> &'static str {
        kind_word(self.kind)
    }
}

fn kind_word(kind: Option<Kind>) -> &'static str {
    kind.map_or("checkpoint", Kind::name)
}

fn serialize_kind<S: Serializer>(kind: &Option<Kind>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind_word(*kind))
}

fn serialize_ranges<S: Serializer>(
    ranges: &[Range<usize>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(ranges.iter().map(|range| [range.start, range.end]))
}

/// A page of hits, the latest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SearchPage {
    /// The hits of this page.
    pub hits: Vec<SearchHit>,
    /// How many hits there are on all pages; `None` if not all of them were looked for.
    pub total: Option<u64>,
    /// How many texts the searched sessions have.
    pub texts: u64,
    /// The cursor for the next page; `None` on the last page.
    pub cursor: Option<String>,
}

impl Store {
    /// Searches these sessions. Returns hits with all words of the query, the latest first.
    /// `resolve` reads long texts of imported sources.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a cursor that is not valid. Fails if the store cannot be read or is
    /// damaged.
    pub fn search(
        &self,
        sessions: &[Session],
        query: &SearchQuery,
        resolve: TextResolver<'_>,
    ) -> Result<SearchPage> {
        let sessions = sessions.iter().map(|session| session.number).collect();
        self.search_in(Some(sessions), query, resolve)
    }

    /// Searches all sessions like [`Store::search`]. What it reads depends on the hits and on what
    /// is new, not on the number of sessions.
    ///
    /// # Errors
    /// See [`Store::search`].
    pub fn search_all(&self, query: &SearchQuery, resolve: TextResolver<'_>) -> Result<SearchPage> {
        self.search_in(None, query, resolve)
    }

    fn search_in(
        &self,
        sessions: Option<BTreeSet<SessionNumber>>,
        query: &SearchQuery,
        resolve: TextResolver<'_>,
    ) -> Result<SearchPage> {
        /// After this many attempts, damaged parts of the copy are skipped instead of repaired.
        const REPAIRS: usize = 4;
        let matcher = TextMatcher::new(query)?;
        let after = query.cursor.as_deref().map(place_of).transpose()?;
        let view = self.engine.follower.view()?;
        let scope = SearchScope { store: self, view: &view, sessions, resolve };
        let mut damaged = DamagedParts::default();
        for attempt in 0.. {
            // Spooled writes may get other numbers later, so their texts are not copied.
            let may_write = !self.engine.options.read_only && !view.planned && attempt < REPAIRS;
            let current = scope.current_copy(&damaged, may_write)?;
            let mut found = DamagedParts::default();
            let page = page_of(&scope, &current, &matcher, after.as_ref(), &mut found)?;
            if found.is_empty() {
                return Ok(page);
            }
            if let Some(copy) = &current.copy {
                damaged.blocks.extend(copy.missing_blocks());
            }
            damaged.blocks.append(&mut found.blocks);
            damaged.groups.append(&mut found.groups);
        }
        Err(Error::Internal("a search does not end".to_owned()))
    }
}

/// Removes the texts of sessions from the copy. The next search copies them again where the store
/// still has them.
pub(super) fn forget(store: &Store, sessions: &BTreeSet<SessionNumber>) -> Result<()> {
    let Some(copy) = TextCopy::open(store)? else { return Ok(()) };
    if !sessions.iter().any(|number| copy.catalogue.has(*number)) {
        return Ok(());
    }
    if let Some(mut writer) = CopyWriter::begin(copy, store.engine.options.lock_timeout)? {
        return sessions.iter().try_for_each(|number| writer.remove_session(*number));
    }
    // Another search is writing the copy. It copies again what it then finds damaged.
    TextCopy::open(store)?.map_or(Ok(()), |copy| copy.wipe(sessions))
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
        Error::invalid("this is not a cursor of a search: use the cursor of the previous page")
    })
}

#[cfg(test)]
mod tests;

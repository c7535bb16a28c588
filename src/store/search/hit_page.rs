//! Finds a page of hits: reads the blocks that may have all words, those with the latest texts
//! first, until the page is full.

use super::catalogue::BlockPlace;
use super::copy_update::{CurrentCopy, SearchScope};
use super::grams::buckets_of;
use super::session_texts::checkpoint_states;
use super::text_block::TextSource;
use super::text_copy::{DamagedParts, TextCopy};
use super::text_matcher::{MatchedText, Snippet, TextMatcher, spellings};
use super::{MAX_HITS, SearchHit, SearchPage, cursor_of};
use crate::engine::refs::session as session_refs;
use crate::engine::{parallel, timeline};
use crate::error::Result;
use crate::model::{Kind, SessionNumber, Timestamp};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::slice;

/// If at most this many blocks may have all words, all of them are read, so that the hits can be
/// counted.
const COUNTED_BLOCKS: usize = if cfg!(test) { 3 } else { 32 };
/// The number of blocks that are read at once.
const BLOCKS_AT_ONCE: usize = 4;

/// The position of a hit, by which hits are sorted: the time, session, kind and id.
pub(super) type HitPosition = (Timestamp, SessionNumber, Option<Kind>, String);

/// What is known of a hit before it is on a page.
struct HitCandidate {
    revision: Option<u64>,
    versions: u64,
    is_fact: bool,
    snippet: Snippet,
}

/// The blocks of a session that may have hits.
struct SessionBlocks<'c> {
    session: SessionNumber,
    blocks: Vec<&'c BlockPlace>,
    /// The earliest and the latest time of a text.
    first: Timestamp,
    last: Timestamp,
}

/// Finds a page of hits: the latest ones before the position `after`. Adds what could not be read
/// to `damaged`: then hits may be missing.
pub(super) fn page_of(
    scope: &SearchScope<'_>,
    current: &CurrentCopy,
    matcher: &TextMatcher<'_>,
    after: Option<&HitPosition>,
    damaged: &mut DamagedParts,
) -> Result<SearchPage> {
    let query = matcher.query;
    let limit = if query.limit == 0 { 20 } else { query.limit.min(MAX_HITS) };
    let copy = current.copy.as_ref();
    let mut page = SearchPage::default();
    let mut found: BTreeMap<HitPosition, HitCandidate> = BTreeMap::new();
    let mut total = 0;
    for session in &current.lacking {
        let (texts, hits) = unkept_hits(scope, copy, matcher, *session, damaged)?;
        (page.texts, total) = (page.texts + texts, total + hits.len() as u64);
        found.extend(hits);
    }
    let mut is_counted = true;
    if let Some(copy) = copy {
        let kept = |session| scope.has(session) && !current.lacking.contains(&session);
        page.texts += texts_of(copy, &kept);
        let sessions = sessions_with(copy, matcher, &kept, damaged);
        let blocks: BTreeSet<u64> =
            sessions.iter().flat_map(|one| &one.blocks).map(|block| block.number).collect();
        let reads_all = blocks.len() <= COUNTED_BLOCKS;
        let mut read =
            BlocksRead { copy, matcher, kept: &kept, texts: HashMap::new(), done: BTreeSet::new() };
        for (place, one) in sessions.iter().enumerate() {
            if !reads_all {
                let before = found.iter().rev();
                let mut wanted =
                    before.filter(|(place, _)| after.is_none_or(|after| *place < after));
                // The page is full, and it is known that another page follows.
                if wanted.nth(limit).is_some_and(|((at, ..), _)| *at > one.last) {
                    is_counted = false;
                    break;
                }
                if after.is_some_and(|(at, ..)| one.first > *at) {
                    is_counted = false;
                    continue;
                }
            }
            read.ahead(sessions.get(place..).unwrap_or_default(), damaged);
            let texts = read.texts.remove(&one.session).unwrap_or_default();
            let hits = hits_of(scope, one.session, texts)?;
            total += hits.len() as u64;
            found.extend(hits);
        }
    }
    page.total = is_counted.then_some(total);
    fill(scope, &mut page, found, limit, after)?;
    Ok(page)
}

/// The blocks that were read, and the matched texts in them of sessions that come later.
struct BlocksRead<'a> {
    copy: &'a TextCopy,
    matcher: &'a TextMatcher<'a>,
    /// Whether a session is searched in the copy.
    kept: &'a dyn Fn(SessionNumber) -> bool,
    texts: HashMap<SessionNumber, Vec<MatchedText>>,
    /// The numbers of the blocks that were read.
    done: BTreeSet<u64>,
}

impl BlocksRead<'_> {
    /// Reads the blocks of the first of these sessions. If they are few, it also reads blocks of
    /// the next sessions at the same time.
    fn ahead(&mut self, sessions: &[SessionBlocks<'_>], damaged: &mut DamagedParts) {
        let is_new = |block: &&&BlockPlace| !self.done.contains(&block.number);
        let first = sessions.first().map_or(0, |one| one.blocks.iter().filter(is_new).count());
        if first == 0 {
            return;
        }
        let next = sessions.iter().flat_map(|one| &one.blocks).filter(is_new);
        let mut blocks: Vec<&BlockPlace> = Vec::new();
        for block in next {
            if blocks.len() >= first.max(BLOCKS_AT_ONCE) {
                break;
            }
            if !blocks.iter().any(|one| one.number == block.number) {
                blocks.push(block);
            }
        }
        let (copy, matcher) = (self.copy, self.matcher);
        let matched = parallel::map(&blocks, 2, |block| matcher.matched_in(copy, block));
        for (block, texts) in blocks.into_iter().zip(matched) {
            self.done.insert(block.number);
            let Some(texts) = texts else {
                damaged.blocks.insert(block.number);
                continue;
            };
            for (session, text) in texts {
                if (self.kept)(session) {
                    self.texts.entry(session).or_default().push(text);
                }
            }
        }
    }
}

/// Returns the number of texts that the copy has of these sessions.
fn texts_of(copy: &TextCopy, kept: &dyn Fn(SessionNumber) -> bool) -> u64 {
    let parts = copy.catalogue.blocks.values().flat_map(|block| &block.parts);
    parts.filter(|part| kept(part.session)).map(|part| part.texts).sum()
}

/// Returns the sessions that may have hits, those with the latest texts first.
fn sessions_with<'c>(
    copy: &'c TextCopy,
    matcher: &TextMatcher<'_>,
    kept: &dyn Fn(SessionNumber) -> bool,
    damaged: &mut DamagedParts,
) -> Vec<SessionBlocks<'c>> {
    let candidates = candidates(copy, &matcher.query.words, damaged);
    let mut sessions: BTreeMap<SessionNumber, SessionBlocks<'c>> = BTreeMap::new();
    for block in candidates.iter().filter_map(|number| copy.catalogue.blocks.get(number)) {
        for part in &block.parts {
            if !kept(part.session) || !matcher.may_take(part) {
                continue;
            }
            let (session, first, last) = (part.session, part.first, part.last);
            let new = || SessionBlocks { session, blocks: Vec::new(), first, last };
            let one = sessions.entry(session).or_insert_with(new);
            one.blocks.push(block);
            (one.first, one.last) = (one.first.min(first), one.last.max(last));
        }
    }
    let mut sessions: Vec<_> = sessions.into_values().collect();
    sessions.sort_by_key(|one| std::cmp::Reverse((one.last, one.session)));
    sessions
}

/// Returns the numbers of the blocks that may have all words, each in one of its spellings.
fn candidates(copy: &TextCopy, words: &[String], damaged: &mut DamagedParts) -> BTreeSet<u64> {
    let (one, several): (Vec<_>, Vec<_>) =
        words.iter().map(|word| spellings(word)).partition(|spelled| spelled.len() == 1);
    let mut found = copy.candidates(&buckets_of(&one.concat()), damaged);
    for spelled in several {
        let mut any = BTreeSet::new();
        for spelling in &spelled {
            any.append(&mut copy.candidates(&buckets_of(slice::from_ref(spelling)), damaged));
        }
        found.retain(|block| any.contains(block));
    }
    found
}

type Hits = Vec<(HitPosition, HitCandidate)>;

/// Finds the hits of a session that the copy does not have completely. Returns how many texts the
/// session has, and the hits.
fn unkept_hits(
    scope: &SearchScope<'_>,
    copy: Option<&TextCopy>,
    matcher: &TextMatcher<'_>,
    session: SessionNumber,
    damaged: &mut DamagedParts,
) -> Result<(u64, Hits)> {
    let (mut texts, mut matched) = (0, Vec::new());
    for (copy, block) in copy
        .into_iter()
        .flat_map(|copy| copy.catalogue.blocks_of(session).map(move |block| (copy, block)))
    {
        let parts = block.parts.iter().filter(|part| part.session == session);
        texts += parts.map(|part| part.texts).sum::<u64>();
        match matcher.matched_in(copy, block) {
            Some(found) => {
                let own = found.into_iter().filter(|(number, _)| *number == session);
                matched.extend(own.map(|(_, text)| text));
            }
            None => drop(damaged.blocks.insert(block.number)),
        }
    }
    scope.unkept_texts(copy, session, damaged, &mut |mut entry, text| {
        entry.length = text.len();
        texts += 1;
        matched.extend(matcher.matched(&entry, text));
        Ok(())
    })?;
    Ok((texts, hits_of(scope, session, matched)?))
}

/// Returns the hits of a session: one for each entity in the matched texts, at the time of its
/// first version with the words.
fn hits_of(
    scope: &SearchScope<'_>,
    number: SessionNumber,
    texts: Vec<MatchedText>,
) -> Result<Hits> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let refs = session_refs(&scope.view.refs, number)?;
    if refs.removal.is_some() {
        return Ok(Vec::new());
    }
    // The copy also has earlier texts of checkpoints.
    let is_checkpoint =
        |text: &MatchedText| matches!(text.entry.source, TextSource::Checkpoint { .. });
    let checkpoints = if texts.iter().any(is_checkpoint) {
        checkpoint_states(&scope.store.session_at(number), scope.view)?
    } else {
        Default::default()
    };
    let mut firsts: BTreeMap<(Option<Kind>, String), (Timestamp, HitCandidate)> = BTreeMap::new();
    for MatchedText { entry, snippet } in texts {
        let is_shown = match &entry.source {
            // Undone facts are not found.
            TextSource::Fact { operation, .. } => !refs.hidden.contains(operation),
            TextSource::Claim => true,
            TextSource::Checkpoint { state } => checkpoints.contains(state),
        };
        if !is_shown {
            continue;
        }
        let is_fact = matches!(entry.source, TextSource::Fact { .. });
        let candidate = HitCandidate { revision: entry.sequence, versions: 1, is_fact, snippet };
        match firsts.entry((entry.kind, entry.id)) {
            Entry::Vacant(place) => drop(place.insert((entry.at, candidate))),
            Entry::Occupied(place) => {
                let (at, known) = place.into_mut();
                let versions = known.versions + 1;
                if (entry.at, entry.sequence) < (*at, known.revision) {
                    (*at, *known) = (entry.at, candidate);
                }
                known.versions = versions;
            }
        }
    }
    let hits = firsts.into_iter();
    Ok(hits.map(|((kind, id), (at, candidate))| ((at, number, kind, id), candidate)).collect())
}

/// Fills a page with the latest hits before the position `after`.
fn fill(
    scope: &SearchScope<'_>,
    page: &mut SearchPage,
    found: BTreeMap<HitPosition, HitCandidate>,
    limit: usize,
    after: Option<&HitPosition>,
) -> Result<()> {
    let view = scope.view;
    let mut rest = found
        .into_iter()
        .rev()
        .skip_while(|(place, _)| after.is_some_and(|after| place >= after))
        .peekable();
    while let Some((place, candidate)) = rest.next_if(|_| page.hits.len() < limit) {
        let (at, number, kind, id) = &place;
        let mut revision = candidate.revision;
        if candidate.is_fact {
            let branch = timeline::branch_at(view, *number, *at)?;
            let there = timeline::revision_at(view, &view.refs, *number, branch, *at)?;
            revision = there.map(|(at, _)| at.sequence);
        }
        page.hits.push(SearchHit {
            session: session_refs(&view.refs, *number)?.info.name.clone(),
            kind: *kind,
            id: id.clone(),
            at: *at,
            revision,
            versions: candidate.versions,
            snippet: candidate.snippet.0,
            found: candidate.snippet.1,
        });
        page.cursor = rest.peek().map(|_| cursor_of(&place));
    }
    Ok(())
}

//! Purging: replaces known secrets by text of the same length in every object, row and ref, and
//! writes the result as a new generation. No id of a revision and no digest changes.
//!
//! Everything is read at one moment under the append lock, and a new segment begins there, so that
//! nothing is left in the journal before it. `docs/architecture.md` explains why there is no
//! journal record of a purge.

mod object;
mod object_renames;
mod row;

use super::commit::Engine;
use super::maintain::head_record;
use super::read_snapshot::ReadSnapshot;
use super::rebuild::{complete, write};
use super::refs::{StoreRefs, session};
use super::row_overlay::RowOverlay;
use super::session_rows::SessionLookup;
use crate::backend::Snapshot;
use crate::error::{Error, Result};
use crate::format::key;
use crate::format::{
    OperationEffect, OperationRow, SessionRefs, pack_derived, rewrite_texts, unpack_bytes,
};
use crate::model::{Operation, OperationId, SessionNumber};
use crate::redact::TextMasker;
use serde::Serialize;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::PathBuf;

/// What to purge, and why.
pub(crate) struct PurgeTask<'a> {
    pub(crate) mask: &'a dyn TextMasker,
    /// Reads a text in a JSON document by its JSON pointer.
    pub(crate) resolve: &'a dyn Fn(&[u8], &str) -> Option<String>,
    pub(crate) operation: Operation,
    pub(crate) reason: Option<String>,
    /// Receives the number of bytes that were read since the last call.
    pub(crate) progress: &'a dyn Fn(u64),
}

/// The kind of data that contains a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PurgeKind {
    /// The name or other metadata of a session.
    Session,
    /// The name or other metadata of a branch.
    Branch,
    /// The name of a source, or its bookmark.
    Source,
    /// The changes of a revision, including large values.
    Revision,
    /// The body of a revision: its author and verb.
    #[serde(rename = "verb")]
    Body,
    /// A checkpoint.
    Checkpoint,
    /// The effects of an operation, and what is needed to undo it.
    Operation,
    /// A page of facts that were recorded together.
    Facts,
    /// A long text of a fact.
    Text,
    /// The bytes of a source.
    Bytes,
}

/// A place that contains secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PurgePlace {
    /// The session; `None`: a text without a session.
    pub session: Option<SessionNumber>,
    /// The kind of data.
    pub kind: PurgeKind,
    /// A number or name that identifies it, without secrets.
    pub name: String,
    /// Number of secrets, or of parts of one that crosses a border.
    pub count: u64,
}

/// The secrets found and, unless it was only a search, replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PurgeOutcome {
    pub(crate) places: Vec<PurgePlace>,
    /// The names of all sessions after the purge.
    pub(crate) sessions: Vec<String>,
    /// Whether other writers wrote secrets again during every pass.
    pub(crate) comes_back: bool,
    /// The folders of older generations that are still in use by readers.
    pub(crate) held: Vec<PathBuf>,
}

/// Maximum number of passes. Another pass is needed if another writer had read secrets before the
/// purge and writes them after it.
const MAX_PASSES: usize = 5;

impl Engine {
    /// Finds the secrets without changing anything.
    pub(crate) fn find_secrets(&self, task: &PurgeTask<'_>) -> Result<PurgeOutcome> {
        let view = self.follower.view()?;
        let made = rewrite(&view, &view.refs, task, SourceNaming::NewOnly, Objects::Passed)?;
        Ok(PurgeOutcome {
            places: made.places,
            sessions: names(&made.refs)?,
            ..PurgeOutcome::default()
        })
    }

    /// Replaces the secrets.
    pub(crate) fn purge(&self, task: &PurgeTask<'_>) -> Result<PurgeOutcome> {
        self.check_writable()?;
        let mut purging = PurgeOutcome { comes_back: true, ..PurgeOutcome::default() };
        let mut noted_sessions = BTreeSet::new();
        for pass in 0..MAX_PASSES {
            self.drain()?;
            let sources = if pass == 0 { SourceNaming::OldAndNew } else { SourceNaming::NewOnly };
            let made = self.purge_once(task, sources, &mut noted_sessions)?;
            for place in made.places {
                let same = |known: &&mut PurgePlace| {
                    (known.session, known.kind, &known.name)
                        == (place.session, place.kind, &place.name)
                };
                if purging.places.iter_mut().find(same).is_none() {
                    purging.places.push(place);
                }
            }
            purging.sessions = names(&made.refs)?;
            // Search for secrets that a writer had read before the purge and wrote after it.
            if self.find_secrets(task)?.places.is_empty() {
                purging.comes_back = false;
                break;
            }
        }
        self.follower.forget();
        purging.held = self.follower.index.tidy()?;
        Ok(purging)
    }

    fn purge_once(
        &self,
        task: &PurgeTask<'_>,
        sources: SourceNaming,
        noted_sessions: &mut BTreeSet<SessionNumber>,
    ) -> Result<PurgedStore> {
        let mut applier = self.follower.index.empty_writer(self.options.lock_timeout)?;
        let mut made: Result<Option<PurgedStore>> = Ok(None);
        let from = self.follower.written_refs()?.1;
        let rotated = self.follower.log.rotate(from, self.options.lock_timeout, &mut |tail| {
            let rewritten = self.follower.take_in(tail).and_then(|_| {
                let view = self.follower.view_to_rewrite()?;
                let mut rewritten = rewrite(&view, &view.refs, task, sources, Objects::Kept)?;
                rewritten.refs.purges += 1;
                let mut rows = std::mem::take(&mut rewritten.rows);
                rewritten.note_purges(task, &mut rows, view.position(), noted_sessions)?;
                let mut first = None;
                complete(&mut rows, &rewritten.refs, view.position(), &mut |_, error| {
                    first.get_or_insert(error);
                })?;
                first.map_or(Ok(()), Err)?;
                write(&mut *applier, rows)?;
                rewritten.position = view.position();
                Ok(rewritten)
            });
            let head = rewritten.as_ref().ok().map(|rewritten| rewritten.refs.head());
            made = rewritten.map(Some);
            head.map(|head| head_record(head).encode())
        })?;
        let (Some(made), Some(rotated)) = (made?, rotated) else {
            return Err(Error::Internal("nothing was purged".to_owned()));
        };
        if made.position != rotated.position {
            return Err(Error::Internal("the journal moved on under its lock".to_owned()));
        }
        applier.publish(rotated.position)?;
        self.follower.log.remove_before(rotated.position)?;
        self.follower.forget();
        Ok(made)
    }
}

fn names(refs: &StoreRefs) -> Result<Vec<String>> {
    refs.sessions.all().map(|one| Ok(one?.1.info.name.clone())).collect()
}

/// A store without the secrets, as primary rows.
#[derive(Default)]
struct PurgedStore {
    rows: RowOverlay,
    refs: StoreRefs,
    places: Vec<PurgePlace>,
    /// The sessions that changed or refer to changed texts, each with the first sequence number
    /// that is affected; 0 if that is not known.
    referring: BTreeMap<SessionNumber, u64>,
    position: u64,
}

impl PurgedStore {
    /// Adds an operation to each affected session that records the purge, once per session.
    fn note_purges(
        &self,
        task: &PurgeTask<'_>,
        rows: &mut RowOverlay,
        position: u64,
        noted_sessions: &mut BTreeSet<SessionNumber>,
    ) -> Result<()> {
        let mut counts: BTreeMap<SessionNumber, u64> = BTreeMap::new();
        for place in &self.places {
            if let Some(session) = place.session {
                *counts.entry(session).or_default() += place.count;
            }
        }
        for session in self.referring.keys() {
            counts.entry(*session).or_insert(1);
        }
        // A place without a session may belong to any session.
        let is_placed = self.places.iter().all(|place| place.session.is_some());
        for (session, places) in counts {
            let mut operation = task.operation.clone();
            if !noted_sessions.is_empty() {
                operation.id = OperationId::from_bytes(super::random::random()?);
            }
            if !noted_sessions.insert(session) {
                continue;
            }
            let known = self.refs.sessions.get(session)?;
            let sequence = known.map_or(0, |session| session.next_sequence - 1);
            let place = key::operation_place(session, position, &operation.id);
            let row = OperationRow {
                operation,
                effects: vec![OperationEffect::Purged {
                    reason: task.reason.clone(),
                    places,
                    first: self.referring.get(&session).copied().filter(|_| is_placed).unwrap_or(0),
                }],
                takes_back: None,
                taken_back_by: None,
                sequence,
                session,
                position,
                continued: Vec::new(),
            };
            rows.put(key::OPERATIONS, place, row.encode());
        }
        Ok(())
    }
}

/// The content of a source without secrets, or of its part between lost bytes.
struct PurgedSource {
    /// Offset in the source at which the content begins.
    start: u64,
    content: Vec<u8>,
    /// Ranges that were replaced.
    changed: Vec<Range<u64>>,
}

/// Rewrites all data of a store, and replaces the secrets.
struct PurgeRewriter<'a> {
    view: &'a dyn Snapshot,
    refs: &'a StoreRefs,
    task: &'a PurgeTask<'a>,
    rows: RowOverlay,
    /// Whether the rewritten objects are added to `rows`.
    keeps: bool,
    places: Vec<PurgePlace>,
    /// As in [`PurgedStore`].
    referring: BTreeMap<SessionNumber, u64>,
    /// New ids of changed objects and long texts.
    names: object_renames::ObjectRenames,
    /// Changed text hashes in keys, from old to new.
    keys: HashMap<[u8; 8], [u8; 8]>,
    /// Names of sources and blobs without secrets, by the text hash of the old name.
    clean_names: HashMap<[u8; 8], String>,
    /// Changed parts of growing blobs, by the beginning of their keys.
    sources: HashMap<Vec<u8>, Vec<PurgedSource>>,
    /// By how many bytes each changed delta has grown, by object number.
    longer: HashMap<u64, i64>,
    /// The objects of segments, which are not purged alone.
    segment_objects: BTreeSet<u64>,
    /// The new keys of renamed claims, with the old ones. Only the first pass checks that the new
    /// keys are free: a later pass renames claims that were written meanwhile under the old key.
    renamed: Option<RenamedKeys>,
    next: u64,
}

/// The old key of a renamed claim, by session and new key.
type RenamedKeys = HashMap<(SessionNumber, Vec<u8>), Vec<u8>>;

/// The names under which sources are stored. Refs are written to the journal before their
/// generation is published, so the first pass keeps the old names and adds the new ones; a later
/// pass removes the old ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SourceNaming {
    /// The old names, and the new ones too.
    OldAndNew,
    NewOnly,
}

/// Whether the rewritten objects are kept. A preview only reads objects, one at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Objects {
    Kept,
    Passed,
}

fn rewrite(
    view: &ReadSnapshot,
    refs: &StoreRefs,
    task: &PurgeTask<'_>,
    sources: SourceNaming,
    objects: Objects,
) -> Result<PurgedStore> {
    let mut rewriter = PurgeRewriter::new(view, refs, task, sources, objects)?;
    let mut new = rewriter.refs()?;
    if sources == SourceNaming::OldAndNew {
        let changed: Vec<_> = new.sessions.changed().map(|(number, _)| number).collect();
        for number in changed {
            let old = session(refs, number)?;
            new.sessions.change(number, |new| {
                for (new, old) in new.bookmarks.iter_mut().zip(&old.bookmarks) {
                    new.source.clone_from(&old.source);
                }
            })?;
        }
    }
    rewriter.register_blob_names()?;
    rewriter.register_operation_texts()?;
    rewriter.segments()?;
    rewriter.objects()?;
    rewriter.purge_packed_rows(sources)?;
    rewriter.purge_revisions()?;
    rewriter.copy_textless_rows()?;
    let mut places: Vec<PurgePlace> = Vec::new();
    let mut known: HashMap<(Option<SessionNumber>, PurgeKind, String), usize> = HashMap::new();
    for place in rewriter.places {
        match known.entry((place.session, place.kind, place.name.clone())) {
            Entry::Occupied(known) => places[*known.get()].count += place.count,
            Entry::Vacant(new) => {
                new.insert(places.len());
                places.push(place);
            }
        }
    }
    places.sort_by_key(|place| (place.session, place.kind));
    let (rows, referring) = (rewriter.rows, rewriter.referring);
    Ok(PurgedStore { rows, refs: new, places, referring, position: 0 })
}

impl<'a> PurgeRewriter<'a> {
    fn new(
        view: &'a dyn Snapshot,
        refs: &'a StoreRefs,
        task: &'a PurgeTask<'a>,
        sources: SourceNaming,
        objects: Objects,
    ) -> Result<Self> {
        Ok(Self {
            view,
            refs,
            task,
            rows: RowOverlay::default(),
            keeps: objects == Objects::Kept,
            places: Vec::new(),
            referring: BTreeMap::new(),
            names: object_renames::ObjectRenames::default(),
            keys: HashMap::new(),
            clean_names: HashMap::new(),
            sources: HashMap::new(),
            longer: HashMap::new(),
            segment_objects: BTreeSet::new(),
            renamed: (sources == SourceNaming::OldAndNew).then(HashMap::new),
            next: super::object::next_number(view)?,
        })
    }

    /// Returns MessagePack data without secrets, and the number of secrets; `None` if there are
    /// none. Records the text hashes of changed texts, because keys contain them.
    fn packed_texts(&mut self, packed: &[u8]) -> Option<(Vec<u8>, u64)> {
        let mut count = 0;
        let keys = &mut self.keys;
        let mask = self.task.mask;
        let new = rewrite_texts(packed, |text| {
            let (new, found) = mask.masked(text)?;
            count += found.len() as u64;
            if let (Ok(old), Ok(new)) = (std::str::from_utf8(text), std::str::from_utf8(&new)) {
                keys.insert(key::text_hash(old), key::text_hash(new));
            }
            Some(new)
        })?;
        Some((new, count))
    }

    /// Notes that a session changed at a sequence number; 0 if that is not known.
    fn change(&mut self, session: Option<SessionNumber>, sequence: u64) {
        if let Some(session) = session {
            let first = self.referring.entry(session).or_insert(sequence);
            *first = sequence.min(*first);
        }
    }

    /// Notes secrets at a sequence number of a session.
    fn note_at(
        &mut self,
        session: Option<SessionNumber>,
        kind: PurgeKind,
        sequence: u64,
        count: u64,
    ) {
        if count > 0 {
            self.change(session, sequence);
            self.places.push(PurgePlace { session, kind, name: format!("#{sequence}"), count });
        }
    }

    fn note(
        &mut self,
        session: Option<SessionNumber>,
        kind: PurgeKind,
        name: impl Into<String>,
        count: u64,
    ) {
        if count > 0 {
            self.change(session, 0);
            self.places.push(PurgePlace { session, kind, name: name.into(), count });
        }
    }

    /// Returns a name without secrets, for output.
    fn clean(&self, name: &str) -> String {
        self.task.mask.masked_text(name)
    }

    fn refs(&mut self) -> Result<StoreRefs> {
        let refs = self.refs;
        for one in refs.sessions.all() {
            let (number, session) = one?;
            let count = |this: &mut Self, packed: Vec<u8>| {
                this.packed_texts(&packed).map_or(0, |(_, count)| count)
            };
            let found = count(self, pack_derived(&session.info));
            let name = self.clean(&session.info.name);
            self.note(Some(number), PurgeKind::Session, name, found);
            for branch in &session.branches {
                let found = count(self, pack_derived(branch));
                let name = self.clean(&branch.name);
                self.note(Some(number), PurgeKind::Branch, name, found);
            }
            for bookmark in &session.bookmarks {
                let found = count(self, pack_derived(bookmark));
                let name = self.clean(&bookmark.source);
                self.clean_names.insert(key::text_hash(&bookmark.source), name.clone());
                self.note(Some(number), PurgeKind::Source, name, found);
            }
        }
        let mut new = refs.clone();
        for one in refs.sessions.all() {
            let (number, session) = one?;
            let Some((packed, _)) = self.packed_texts(&pack_derived(&*session)) else { continue };
            let session: SessionRefs =
                unpack_bytes("session", &packed).map_err(|_| reserved_word_error())?;
            let names: BTreeSet<_> =
                session.branches.iter().filter(|one| !one.hidden).map(|one| &one.name).collect();
            if names.len() < session.branches.iter().filter(|one| !one.hidden).count() {
                return Err(duplicate_name_error("branches"));
            }
            let sources: BTreeSet<_> = session.bookmarks.iter().map(|one| &one.source).collect();
            if sources.len() < session.bookmarks.len() {
                return Err(duplicate_name_error("sources"));
            }
            new.sessions.change(number, |known| *known = session)?;
        }
        for (number, session) in new.sessions.changed() {
            let renamed =
                refs.sessions.get(number)?.is_some_and(|old| old.info.name != session.info.name);
            let named = new.sessions.find(SessionLookup::Name(&session.info.name))?;
            let is_taken = named
                .iter()
                .any(|(other, named)| *other != number && named.info.kind == session.info.kind);
            if renamed && is_taken {
                return Err(duplicate_name_error("sessions"));
            }
        }
        Ok(new)
    }
}

/// Returns the error for a secret that is part of forge's own record structure.
fn reserved_word_error() -> Error {
    Error::invalid(
        "the secret is part of a word that forge uses in its own records: include more of the text \
        around it",
    )
}

/// Returns the error for two items that would get the same name.
fn duplicate_name_error(what: &str) -> Error {
    Error::invalid(format!(
        "two {what} differ by nothing but secrets of one length: purge one of the secrets alone first"
    ))
}

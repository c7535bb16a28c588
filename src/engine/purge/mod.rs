//! Purging: secrets that are known give way to something else of their length, in every object, row
//! and ref, and what is left is written anew as a generation of its own. No id changes, and no
//! digest.
//!
//! Everything is read at one moment under the append lock, in which a new segment begins: before it
//! nothing is left in the journal. `docs/architecture.md` says why no record tells of it.

mod object;
mod object_renames;
mod row;

use super::commit::Engine;
use super::journal_follower::ReadSnapshot;
use super::maintain::refs_record;
use super::rebuild::{complete, write};
use super::refs::session;
use super::row_overlay::RowOverlay;
use crate::backend::Snapshot;
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    OperationEffect, OperationRow, SessionRefs, StoreRefs, pack_derived, rewrite_texts,
    unpack_bytes,
};
use crate::model::{Operation, OperationId, SessionNumber};
use crate::redact::TextMasker;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::PathBuf;

/// What is taken out, and why.
pub(crate) struct PurgeTask<'a> {
    pub(crate) mask: &'a dyn TextMasker,
    /// Reads a text in a JSON document by its pointer.
    pub(crate) resolve: &'a dyn Fn(&[u8], &str) -> Option<String>,
    pub(crate) operation: Operation,
    pub(crate) reason: Option<String>,
}

/// What holds a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PurgeKind {
    /// What a session is called, and whose it is.
    Session,
    /// A branch's name, or what is said of it.
    Branch,
    /// What a source is called, or what is known of how far it was imported.
    Source,
    /// A revision's changes, with large values.
    Revision,
    /// What is said of a revision: by whom, by which verb.
    Body,
    /// A checkpoint.
    Checkpoint,
    /// What an operation did, and what it takes to undo it.
    Operation,
    /// Facts recorded together.
    Facts,
    /// A long text of a fact.
    Text,
    /// The bytes of a source.
    Bytes,
}

/// A place where secrets stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PurgePlace {
    /// The session; `None`: a text that none names.
    pub session: Option<SessionNumber>,
    /// What it is.
    pub kind: PurgeKind,
    /// Which one: a number, a name. Without secrets.
    pub name: String,
    /// How many secrets, or ends of one.
    pub count: u64,
}

/// What was found and, unless it was only looked for, replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PurgeOutcome {
    pub(crate) places: Vec<PurgePlace>,
    /// The names of sessions as they are now.
    pub(crate) sessions: Vec<String>,
    /// Whether some of it came back meanwhile, and goes on doing so.
    pub(crate) comes_back: bool,
    /// The folders of older generations that somebody reads.
    pub(crate) held: Vec<PathBuf>,
}

/// How often it is begun again, if others write secrets meanwhile that they read before.
const MAX_PASSES: usize = 5;

impl Engine {
    /// Where the secrets stand. Changes nothing.
    pub(crate) fn find_secrets(&self, task: &PurgeTask<'_>) -> Result<PurgeOutcome> {
        let view = self.follower.view()?;
        let made = rewrite(&view, &view.refs, task, SourceNaming::NewOnly, Objects::Passed)?;
        Ok(PurgeOutcome {
            places: made.places,
            sessions: names(&made.refs),
            ..PurgeOutcome::default()
        })
    }

    /// Takes the secrets out.
    pub(crate) fn purge(&self, task: &PurgeTask<'_>) -> Result<PurgeOutcome> {
        self.check_writable()?;
        let mut purging = PurgeOutcome { comes_back: true, ..PurgeOutcome::default() };
        let mut told = BTreeSet::new();
        for pass in 0..MAX_PASSES {
            self.drain()?;
            let sources = if pass == 0 { SourceNaming::OldAndNew } else { SourceNaming::NewOnly };
            let made = self.purge_once(task, sources, &mut told)?;
            for place in made.places {
                let same = |known: &&mut PurgePlace| {
                    (known.session, known.kind, &known.name)
                        == (place.session, place.kind, &place.name)
                };
                if purging.places.iter_mut().find(same).is_none() {
                    purging.places.push(place);
                }
            }
            purging.sessions = names(&made.refs);
            // What was read before it and written behind it.
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
        told: &mut BTreeSet<SessionNumber>,
    ) -> Result<PurgedStore> {
        let mut applier = self.follower.index.empty_writer(self.options.lock_timeout)?;
        let mut made: Result<Option<PurgedStore>> = Ok(None);
        let from = self.follower.written_refs()?.1;
        let rotated = self.follower.log.rotate(from, self.options.lock_timeout, &mut |tail| {
            let rewritten = self.follower.take_in(tail).and_then(|_| {
                let view = self.follower.view_to_write_anew()?;
                let mut rewritten = rewrite(&view, &view.refs, task, sources, Objects::Kept)?;
                rewritten.refs.purges += 1;
                let mut rows = std::mem::take(&mut rewritten.rows);
                rewritten.note_purges(task, &mut rows, view.position(), told)?;
                let mut first = None;
                complete(&mut rows, &rewritten.refs, view.position(), &mut |_, error| {
                    first.get_or_insert(error);
                })?;
                first.map_or(Ok(()), Err)?;
                write(&mut *applier, rows)?;
                rewritten.position = view.position();
                Ok(rewritten)
            });
            let refs = rewritten.as_ref().ok().map(|rewritten| rewritten.refs.clone());
            made = rewritten.map(Some);
            refs.map(|refs| refs_record(refs).encode())
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

fn names(refs: &StoreRefs) -> Vec<String> {
    refs.sessions.all().map(|(_, session)| session.info.name.clone()).collect()
}

/// A store without the secrets, as primary rows.
#[derive(Default)]
struct PurgedStore {
    rows: RowOverlay,
    refs: StoreRefs,
    places: Vec<PurgePlace>,
    position: u64,
}

impl PurgedStore {
    /// Notes in each session that something of it was purged, once.
    fn note_purges(
        &self,
        task: &PurgeTask<'_>,
        rows: &mut RowOverlay,
        position: u64,
        told: &mut BTreeSet<SessionNumber>,
    ) -> Result<()> {
        let mut counts: BTreeMap<SessionNumber, u64> = BTreeMap::new();
        for place in &self.places {
            if let Some(session) = place.session {
                *counts.entry(session).or_default() += place.count;
            }
        }
        for (session, places) in counts {
            let mut operation = task.operation.clone();
            if !told.is_empty() {
                operation.id = OperationId::from_bytes(super::commit::random()?);
            }
            if !told.insert(session) {
                continue;
            }
            let sequence =
                self.refs.sessions.get(session).map_or(0, |session| session.next_sequence - 1);
            let place = of(session).number(position).bytes(operation.id.as_bytes()).build();
            let row = OperationRow {
                operation,
                effects: vec![OperationEffect::Purged { reason: task.reason.clone(), places }],
                takes_back: None,
                taken_back_by: None,
                sequence,
                session,
                position,
            };
            rows.put(key::OPERATIONS, place, row.encode());
        }
        Ok(())
    }
}

/// Bytes of a source, without secrets.
struct PurgedSource {
    /// Where in the source they begin.
    start: u64,
    content: Vec<u8>,
    /// Where something was replaced.
    changed: Vec<Range<u64>>,
}

/// Rewrites everything.
struct PurgeRewriter<'a> {
    view: &'a dyn Snapshot,
    task: &'a PurgeTask<'a>,
    rows: RowOverlay,
    /// Whether objects are among the rows.
    keeps: bool,
    places: Vec<PurgePlace>,
    /// What objects and long texts are called by now.
    names: object_renames::ObjectRenames,
    /// Hashes of texts in keys that are others now.
    keys: HashMap<[u8; 8], [u8; 8]>,
    /// What texts of these hashes are called, without secrets.
    called: HashMap<[u8; 8], String>,
    /// Growing blobs that have changed, by the beginning of their key.
    sources: HashMap<Vec<u8>, PurgedSource>,
    /// How much longer deltas are, by their numbers.
    longer: HashMap<u64, i64>,
    /// Entries and segments: found by what names them.
    passed: BTreeSet<u64>,
    next: u64,
}

/// What sources are called. Refs stand in the journal before the generation is there that goes with
/// them: so in a first pass sources keep their names, and are found by their new ones too; in a
/// second one nothing is left of the old.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SourceNaming {
    /// As before, and by their new names.
    OldAndNew,
    /// By their new names.
    NewOnly,
}

/// Whether objects are written anew. A preview only looks at them, and holds one at a time.
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
    let mut rewriter = PurgeRewriter {
        view,
        task,
        rows: RowOverlay::default(),
        keeps: objects == Objects::Kept,
        places: Vec::new(),
        names: object_renames::ObjectRenames::default(),
        keys: HashMap::new(),
        called: HashMap::new(),
        sources: HashMap::new(),
        longer: HashMap::new(),
        passed: BTreeSet::new(),
        next: super::object::next_number(view)?,
    };
    let mut new = rewriter.refs(refs)?;
    if sources == SourceNaming::OldAndNew {
        for (number, new) in new.sessions.filter_mut(|new| !new.bookmarks.is_empty()) {
            let old = session(refs, number)?;
            for (new, old) in new.bookmarks.iter_mut().zip(&old.bookmarks) {
                new.source.clone_from(&old.source);
            }
        }
    }
    rewriter.bookmarks()?;
    rewriter.operations_read()?;
    rewriter.segments()?;
    rewriter.objects()?;
    rewriter.packed(refs, sources)?;
    rewriter.revisions()?;
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
    Ok(PurgedStore { rows: rewriter.rows, refs: new, places, position: 0 })
}

impl PurgeRewriter<'_> {
    /// MessagePack without secrets, and how many there were. Hashes of texts that change are noted,
    /// for keys.
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

    fn note(
        &mut self,
        session: Option<SessionNumber>,
        kind: PurgeKind,
        name: impl Into<String>,
        count: u64,
    ) {
        if count > 0 {
            self.places.push(PurgePlace { session, kind, name: name.into(), count });
        }
    }

    /// A name as it may be shown.
    fn clean(&self, name: &str) -> String {
        match self.task.mask.masked(name.as_bytes()) {
            Some((new, _)) => String::from_utf8_lossy(&new).into_owned(),
            None => name.to_owned(),
        }
    }

    fn refs(&mut self, refs: &StoreRefs) -> Result<StoreRefs> {
        for (number, session) in refs.sessions.all() {
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
                self.called.insert(key::text_hash(&bookmark.source), name.clone());
                self.note(Some(number), PurgeKind::Source, name, found);
            }
        }
        let mut new = refs.clone();
        for (number, session) in refs.sessions.all() {
            let Some((packed, _)) = self.packed_texts(&pack_derived(session)) else { continue };
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
            if let Some(place) = new.sessions.get_mut(number) {
                *place = session;
            }
        }
        Ok(new)
    }
}

/// The secret stands in what forge's own records are made of.
fn reserved_word_error() -> Error {
    Error::invalid(
        "it is part of a word that forge's own records are made of: name more of what stands around it",
    )
}

/// Two things would have one name.
fn duplicate_name_error(what: &str) -> Error {
    Error::invalid(format!(
        "two {what} differ by nothing but secrets of one length: purge one of the secrets alone first"
    ))
}

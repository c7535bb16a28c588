//! Writes to a session: claims, facts and checkpoints in one record.

mod checkpoint;
mod checkpoint_name;
mod head_claims;
mod next_id;
mod plan;
mod target;
mod typed;

pub use checkpoint::{CheckpointTriggers, SIGNIFICANT_MICROS};
pub use head_claims::HeadClaims;
pub use typed::new_fact_id;

use super::Store;
use super::branch::check_branch_name;
use super::fact_pages::fact_pages;
use super::import_precondition::ImportPrecondition;
use super::new_checkpoint::NewCheckpoint;
use super::new_session::NewSession;
use super::redaction_gate::{RedactionCounts, warning};
use super::resolve_moment::ResolvedMoment;
use super::session::Session;
use super::spool_entry;
use super::spooled_write::session_metadata;
use super::validate::{check_checkpoint, check_claim, check_fact};
use super::write_context::WriteContext;
use super::write_report::WriteReport;
use crate::engine::commit::CommitDurability;
use crate::engine::delta_parts::blob;
use crate::engine::planned_revision::PreparedDelta;
use crate::engine::random::random;
use crate::engine::refs::StoreRefs;
use crate::engine::revision_plan::{ClaimChange, ClaimPrecondition};
use crate::engine::spool::may_spool_after;
use crate::error::{Error, Result};
use crate::format::{BookmarkRow, MAX_OBJECT_BYTES, RecordChange, SpoolEntry};
use crate::model::rule::{RuleError, RuleOutcome};
use crate::model::{
    AutoTrigger, CheckpointId, Fact, Key, Kind, Operation, OperationId, SessionKind, TextRef,
    Timestamp, Value,
};
use checkpoint::{automatic, name_automatic};
use checkpoint_name::name_of_facts;
use next_id::NextIdRequest;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use target::{PrecedingRevision, SessionTarget};

type RuleFunction<'a> = Box<dyn Fn(&HeadClaims) -> Result<RuleOutcome, RuleError> + 'a>;
type NextIdRule<'a> = Box<dyn Fn(&HeadClaims, &str) -> Result<RuleOutcome, RuleError> + 'a>;
type NextIdFact<'a> = Box<dyn Fn(&str) -> Option<Fact> + 'a>;
type EditFunction<'a> = Box<dyn Fn(&[Option<Value>]) -> Result<Vec<ClaimChange>> + 'a>;

enum WriteStep<'a> {
    Change(ClaimChange),
    Rule(RuleFunction<'a>),
    /// A new claim under the next free id.
    AddNext(Value),
    RuleWithNextId(NextIdRule<'a>),
    /// Changes computed from the current values of these claims.
    Edit(Vec<Key>, EditFunction<'a>),
    /// The complete set of claims of these kinds.
    Whole(BTreeSet<Kind>, Cow<'a, [(Key, Value)]>),
}

impl WriteStep<'_> {
    fn change(self) -> Option<(Key, Option<Value>)> {
        if let Self::Change(change) = self { Some((change.key, change.value)) } else { None }
    }
}

/// A time further in the future than this is refused as a mistake.
pub(crate) const FUTURE_MICROS: i64 = 24 * 3600 * 1_000_000;

/// A write to a session: everything in one record, or nothing.
#[must_use = "nothing is written before `commit`"]
pub struct SessionWrite<'a> {
    store: &'a Store,
    target: SessionTarget,
    act: &'a WriteContext,
    operation: Option<OperationId>,
    branch: Option<String>,
    preceding: Option<PrecedingRevision>,
    time: Option<Timestamp>,
    steps: Vec<WriteStep<'a>>,
    facts: Vec<Fact>,
    source: Option<String>,
    /// The events that make automatic checkpoints; `None` means all, also if nothing changes.
    triggers: Option<&'a CheckpointTriggers>,
    checkpoint: Option<NewCheckpoint>,
    /// Whether the checkpoint replaces the one with the same event key.
    replaces: bool,
    /// Checkpoints of an import, each with its own time and a key.
    checkpoints: Vec<NewCheckpoint>,
    extra: Vec<RecordChange>,
    next_id: Option<NextIdRequest>,
    /// Facts that contain the next free id.
    next_facts: Vec<NextIdFact<'a>>,
    import_precondition: Option<ImportPrecondition>,
    by_import: bool,
    removed: RedactionCounts,
    durability: CommitDurability,
}

impl Session {
    /// Begins a write, which [`SessionWrite::commit`] completes.
    pub const fn write<'a>(&'a self, act: &'a WriteContext) -> SessionWrite<'a> {
        SessionWrite::new(&self.store, SessionTarget::Known(self.number), act)
    }
}

impl Store {
    /// Begins a write to the session of this kind and name. If there is none, the write begins the
    /// session with this metadata, in the same record. Such a write never waits in the spool.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that is not valid.
    pub fn write_to<'a>(
        &'a self,
        act: &'a WriteContext,
        mut new: NewSession,
    ) -> Result<SessionWrite<'a>> {
        self.gate().session(&mut new);
        let info = session_metadata(act, new)?;
        Ok(SessionWrite::new(self, SessionTarget::Named(Box::new(info)), act))
    }
}

impl fmt::Debug for SessionWrite<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SessionWrite")
            .field("session", &self.target)
            .field("context", self.act)
            .field("branch", &self.branch)
            .field("preceding", &self.preceding)
            .field("time", &self.time)
            .field("steps", &self.steps.len())
            .field("facts", &self.facts.len())
            .field("checkpoint", &self.checkpoint)
            .finish_non_exhaustive()
    }
}

impl<'a> SessionWrite<'a> {
    const fn new(store: &'a Store, target: SessionTarget, act: &'a WriteContext) -> Self {
        Self {
            store,
            target,
            act,
            operation: None,
            branch: None,
            preceding: None,
            time: None,
            steps: Vec::new(),
            facts: Vec::new(),
            source: None,
            triggers: None,
            checkpoint: None,
            replaces: false,
            checkpoints: Vec::new(),
            extra: Vec::new(),
            next_id: None,
            next_facts: Vec::new(),
            import_precondition: None,
            by_import: false,
            removed: RedactionCounts::new(),
            durability: CommitDurability::Now,
        }
    }

    /// Makes the write part of this operation; `undo` undoes all parts together.
    pub const fn part_of(mut self, operation: OperationId) -> Self {
        self.operation = Some(operation);
        self
    }

    /// Writes to this branch instead of the current one.
    pub fn on(mut self, branch: impl Into<String>) -> Self {
        self.branch = Some(branch.into());
        self
    }

    /// Writes after the revision of this moment. Rules and [`SessionWrite::edit`] see its claims.
    /// If the revision is the head of a branch, the write goes to that branch, and checks out the
    /// branch. If another revision follows it already, the write is refused. The cost does not
    /// depend on the size of the state.
    ///
    /// If no claim changes, no branch is checked out, and a checkpoint is made at that revision,
    /// also if other revisions follow it and the write names no claim.
    /// Such a write never waits in the spool.
    pub fn after(mut self, moment: &ResolvedMoment) -> Self {
        self.preceding = Some(PrecedingRevision { moment: moment.clone(), fork: None });
        self
    }

    /// Writes after the revision of this moment like [`SessionWrite::after`]. If another revision
    /// follows it already, a branch with this name begins there, in the record of the write itself,
    /// and is checked out. If the name is taken, the branch gets the name `name-2`, `name-3` and so
    /// on: see [`WriteReport::branch`]. If no claim changes, no branch begins.
    pub fn after_or_fork(mut self, moment: &ResolvedMoment, branch: impl Into<String>) -> Self {
        let fork = Some(branch.into());
        self.preceding = Some(PrecedingRevision { moment: moment.clone(), fork });
        self
    }

    /// Uses this time for the changes of claims instead of the time of the context.
    pub const fn at(mut self, time: Timestamp) -> Self {
        self.time = Some(time);
        self
    }

    /// Adds a change of a claim. Of several changes of one claim the last counts.
    pub fn change(mut self, change: ClaimChange) -> Self {
        self.steps.push(WriteStep::Change(change));
        self
    }

    /// Adds changes of claims.
    pub fn changes(mut self, changes: impl IntoIterator<Item = ClaimChange>) -> Self {
        self.steps.extend(changes.into_iter().map(WriteStep::Change));
        self
    }

    /// Adds the changes that a rule computes from the current claims (including earlier changes of
    /// this write), and the automatic checkpoint that the rule requests. The rule runs again after
    /// a conflict.
    pub fn rule(
        mut self,
        rule: impl Fn(&HeadClaims) -> Result<RuleOutcome, RuleError> + 'a,
    ) -> Self {
        self.steps.push(WriteStep::Rule(Box::new(rule)));
        self
    }

    /// Adds the changes that `edit` computes from the current values of these claims (including
    /// earlier changes of this write); a missing claim is `None`. Only these claims are read, so
    /// the cost does not depend on the size of the state. `edit` runs again after a conflict.
    pub fn edit(
        mut self,
        keys: Vec<Key>,
        edit: impl Fn(&[Option<Value>]) -> Result<Vec<ClaimChange>> + 'a,
    ) -> Self {
        self.steps.push(WriteStep::Edit(keys, Box::new(edit)));
        self
    }

    /// Makes these the only claims of these kinds: all other claims of the kinds are removed.
    pub fn replace_kinds(
        mut self,
        kinds: BTreeSet<Kind>,
        claims: impl Into<Cow<'a, [(Key, Value)]>>,
    ) -> Self {
        self.steps.push(WriteStep::Whole(kinds, claims.into()));
        self
    }

    /// Adds a fact.
    pub fn fact(mut self, fact: Fact) -> Self {
        self.facts.push(fact);
        self
    }

    /// Returns a text as it is stored in a fact's value: itself or, if it is long, a reference to
    /// an object that this write adds.
    pub fn text(&mut self, text: &str) -> Value {
        let mut clean = text.to_owned();
        self.store.gate().text(&mut clean, &mut self.removed);
        let Some((reference, object)) = long_text(&clean) else { return clean.into() };
        self.extra.push(object);
        reference
    }

    /// Adds facts whose texts refer to this source.
    pub fn facts(mut self, facts: impl IntoIterator<Item = Fact>, source: Option<String>) -> Self {
        self.facts.extend(facts);
        self.source = source;
        self
    }

    /// Adds a checkpoint after the changes.
    pub fn checkpoint(mut self, checkpoint: NewCheckpoint) -> Self {
        self.checkpoint = Some(checkpoint);
        self
    }

    /// Adds a checkpoint like [`SessionWrite::checkpoint`]. If its event has a checkpoint already
    /// ([`NewCheckpoint::key`]), the new one takes its place: only the id and the number stay.
    /// `undo` brings the old one back. Such a write never waits in the spool.
    pub fn replacing_checkpoint(mut self, checkpoint: NewCheckpoint) -> Self {
        self.replaces = true;
        self.checkpoint(checkpoint)
    }

    /// Makes automatic checkpoints only as these settings ask for them: those that
    /// [`SessionWrite::event`] adds later, and those that a rule requests. A rule that changes
    /// nothing then makes none, and an unchanged claim is not written.
    pub const fn triggers(mut self, triggers: &'a CheckpointTriggers) -> Self {
        self.triggers = Some(triggers);
        self
    }

    /// Adds an automatic checkpoint for this event, unless it is throttled. If the settings of
    /// [`SessionWrite::triggers`] do not ask for it, or if the event is `None`, they may ask for
    /// one because significant time has passed.
    pub fn event(mut self, event: impl Into<Option<AutoTrigger>>) -> Self {
        let event = event.into();
        let trigger = self.triggers.map_or(event, |triggers| triggers.select(event));
        if let Some(trigger) = trigger {
            self.checkpoint = Some(automatic(trigger, None));
        }
        self
    }

    /// Marks the write as an import: the session does not become the last used one, schedules are
    /// ignored, and the write is durable only after [`super::Store::sync`].
    pub const fn imported(mut self) -> Self {
        self.by_import = true;
        self.durability = CommitDurability::Later;
        self
    }

    pub(crate) fn checkpoints(mut self, checkpoints: Vec<NewCheckpoint>) -> Self {
        // The later checkpoint of an event has more information.
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for checkpoint in checkpoints {
            let known = checkpoint.key.as_ref().and_then(|key| places.get(key)).copied();
            if let Some(known) = known.and_then(|place| self.checkpoints.get_mut(place)) {
                *known = checkpoint;
            } else {
                places.extend(checkpoint.key.clone().map(|key| (key, self.checkpoints.len())));
                self.checkpoints.push(checkpoint);
            }
        }
        self
    }

    /// Adds the import of a part of a source: its bytes as `segments` of the blob, unless they were
    /// pre-written, and the new bookmark.
    pub(crate) fn importing(
        mut self,
        precondition: ImportPrecondition,
        segments: Vec<RecordChange>,
        bookmark: BookmarkRow,
    ) -> Self {
        self.extra.extend(segments);
        self.extra.push(RecordChange::Bookmark {
            session: self.target.number(),
            source: precondition.source().to_owned(),
            bookmark: Some(Box::new(bookmark)),
        });
        self.import_precondition = Some(precondition);
        self
    }

    /// Commits the write.
    ///
    /// # Errors
    /// [`Error::Invalid`] for values that are not valid, [`Error::Duplicate`], [`Error::Dangling`],
    /// [`Error::NotFound`], [`Error::Conflict`], [`Error::ReadOnly`], [`Error::Backend`]: then
    /// nothing was written.
    pub fn commit(mut self) -> Result<WriteReport> {
        let _request = self.store.request();
        self.check()?;
        let mut operation = self.act.operation()?;
        if let Some(id) = self.operation {
            operation.id = id;
        }
        if let Some(wanted) = &mut self.checkpoint {
            name_automatic(wanted, |trigger| name_of_facts(trigger, &self.facts));
        }
        let facts = self.take_fact_pages()?;
        let ids = (0..=self.checkpoints.len())
            .map(|_| random().map(CheckpointId::from_bytes))
            .collect::<Result<Vec<_>>>()?;
        let mut memo: Option<PreparedDelta> = None;
        let engine = std::sync::Arc::clone(&self.store.engine);
        let committed = engine.commit(self.durability, &mut |context| {
            self.plan(context, &operation, &facts, &ids, &mut memo)
        });
        let (mut done, moved) = match committed {
            Err(error) if may_spool_after(&error) => {
                return self.commit_to_spool(&operation, &facts, &ids, error);
            }
            committed => committed?,
        };
        if let Some((place, planned)) = moved {
            let (end, id) = (engine.follower.end(), planned.head.id);
            engine.heads.moved(end, place, planned.parent, id, &planned.entries);
            if self.is_plain() {
                done.changed = self.steps.into_iter().filter_map(WriteStep::change).collect();
            }
        }
        Ok(done)
    }

    /// Puts the write into the spool after the commit failed with `error`, if the spool takes it.
    fn commit_to_spool(
        &self,
        operation: &Operation,
        facts: &[RecordChange],
        ids: &[CheckpointId],
        error: Error,
    ) -> Result<WriteReport> {
        let follower = &self.store.engine.follower;
        // In the folder of a store that was replaced, the spool is that of the other store.
        if follower.spool.is_none() || !self.store.is_in_place() {
            return Err(error);
        }
        let (refs, _) = follower.refs().unwrap_or_else(|_| (follower.known_refs(), 0));
        loop {
            let next = self.find_next_id(self.target.number(), None, || follower.view());
            let Ok(next) = next else { return Err(error) };
            let mut removed = self.removed.clone();
            let next_id = (next.as_deref(), &mut removed);
            let Some(waiting) = self.to_spooled(&refs, operation, facts, ids, next_id)? else {
                return Err(error);
            };
            match spool_entry::save(self.store, &waiting, &error) {
                // The spool has no lock: another process put a note with this id there first.
                Err(Error::Duplicate { kind, id })
                    if kind == Kind::Note.name() && next.as_ref() == Some(&id) => {}
                done => {
                    let mut done = WriteReport { new_id: next, ..done? };
                    done.warnings.extend(warning(&removed));
                    return Ok(done);
                }
            }
        }
    }

    /// Returns whether all steps are plain changes.
    fn is_plain(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, WriteStep::Change(_)))
    }

    /// Removes secrets, and refuses values that are not valid.
    fn check(&mut self) -> Result<()> {
        let gate = self.store.gate();
        if let Some(preceding) = &self.preceding {
            if self.branch.is_some() {
                return Err(Error::invalid(
                    "name either a branch or a preceding revision, not both",
                ));
            }
            if let Some(name) = &preceding.fork {
                check_branch_name(name)?;
                gate.name("name", name)?;
            }
        }
        let removed = &mut self.removed;
        let latest = self.act.now.plus_micros(FUTURE_MICROS);
        let times = self.time.iter().chain(self.facts.iter().map(|fact| &fact.at));
        if let Some(late) = times.into_iter().find(|time| **time > latest) {
            return Err(future_time(*late));
        }
        for step in &mut self.steps {
            match step {
                WriteStep::Change(change) => {
                    gate.claim(change, removed)?;
                    check_claim(change)?;
                }
                WriteStep::Whole(kinds, claims) => {
                    // Claims that differ from the held ones are checked later; equal ones were
                    // checked when they were written.
                    for (key, _) in claims.iter() {
                        if !kinds.contains(&key.kind) {
                            return Err(Error::invalid(format!("the {key} is of another kind")));
                        }
                        gate.name("id", &key.id)?;
                    }
                    if gate.is_redacting() {
                        for (_, value) in claims.to_mut() {
                            gate.value(value, removed);
                        }
                    }
                }
                WriteStep::AddNext(value) => {
                    let Some(next) = &self.next_id else { continue };
                    // Any number will do: only the prefix decides whether the id is valid.
                    let key = Key::new(next.kind, format!("{}1", next.prefix));
                    let mut change = ClaimChange::add(key, std::mem::take(value));
                    gate.claim(&mut change, removed)?;
                    check_claim(&mut change)?;
                    *value = change.value.unwrap_or_default();
                }
                WriteStep::Rule(_) | WriteStep::RuleWithNextId(_) | WriteStep::Edit(..) => {}
            }
        }
        self.facts.iter_mut().try_for_each(|fact| check_fact(gate, fact, removed))?;
        let mut checkpoints = self.checkpoint.iter_mut().chain(&mut self.checkpoints);
        checkpoints.try_for_each(|checkpoint| check_checkpoint(gate, checkpoint, removed))
    }

    /// Returns this write as a spool entry; `None` if the spool does not take it: it needs an
    /// expected head, is an import or a part of an operation, or changes claims other than by new
    /// notes. Adds the secrets that were removed from facts of the next id to `removed`.
    fn to_spooled(
        &self,
        refs: &StoreRefs,
        operation: &Operation,
        facts: &[RecordChange],
        ids: &[CheckpointId],
        (next_id, removed): (Option<&str>, &mut RedactionCounts),
    ) -> Result<Option<SpoolEntry>> {
        let SessionTarget::Known(number) = &self.target else { return Ok(None) };
        let Some(session) = refs.sessions.get(*number)? else {
            return Ok(None);
        };
        if self.by_import || self.operation.is_some() || self.preceding.is_some() || self.replaces {
            return Ok(None);
        }
        let mut waiting = spool_entry::new_entry(operation.clone(), session.info.clone())?;
        waiting.used = session.info.kind == SessionKind::Debug;
        let branch = match &self.branch {
            Some(name) => session.branch_named(name).map(|number| (number, name.clone())),
            None => session
                .branches
                .get(session.current_branch as usize)
                .map(|branch| (session.current_branch, branch.name.clone())),
        };
        let number = branch.as_ref().map(|(number, _)| *number);
        waiting.branch = self.branch.clone().or(branch.map(|(_, name)| name));
        waiting.time = self.time.unwrap_or(self.act.now);
        for step in &self.steps {
            match (step, next_id, &self.next_id) {
                (WriteStep::Change(change), ..) => {
                    let Some(value) = change.value.as_ref().filter(|_| is_new_note(change)) else {
                        return Ok(None);
                    };
                    spool_entry::add_note(&mut waiting, &change.key.id, value, change.added_at);
                }
                (WriteStep::AddNext(value), Some(id), Some(next)) if next.kind == Kind::Note => {
                    spool_entry::add_note(&mut waiting, id, value, None);
                }
                _ => return Ok(None),
            }
        }
        spool_entry::add_pages(&mut waiting, facts);
        if let Some(id) = next_id {
            let next_pages = self.next_fact_pages(self.target.number(), id, removed)?;
            spool_entry::add_pages(&mut waiting, &next_pages);
        }
        for change in &self.extra {
            let RecordChange::Object { object } = change else { return Ok(None) };
            waiting.objects.push(object.clone());
        }
        let mut wanted = self.checkpoint.clone();
        if wanted.is_none() && !waiting.is_session_only() {
            wanted = self.scheduled(session);
        }
        let wanted = wanted.filter(|wanted| self.is_wanted(session, wanted));
        let head = number.and_then(|number| session.branch(number).ok()?.head);
        let seen = head.map(|head| head.sequence);
        for (wanted, id) in self.checkpoints.iter().cloned().chain(wanted).zip(ids) {
            spool_entry::add_checkpoint(&mut waiting, wanted, *id, seen);
        }
        Ok(Some(waiting))
    }

    /// Takes the facts out of the write, and returns them as pages.
    fn take_fact_pages(&mut self) -> Result<Vec<RecordChange>> {
        let facts = std::mem::take(&mut self.facts);
        fact_pages(self.target.number(), self.source.as_ref(), facts)
    }
}

/// Returns the error for a time that lies too far in the future.
pub(super) fn future_time(late: Timestamp) -> Error {
    Error::invalid(format!(
        "the time {late} is more than a day ahead of now: correct the clock or the source"
    ))
}

/// Returns a text that is too long for a fact's value as a reference and the object it refers to;
/// `None` for a shorter text, and for one that is too large for an object and so for a fact.
pub(crate) fn long_text(text: &str) -> Option<(Value, RecordChange)> {
    const MAX_INLINE_BYTES: usize = 4096;
    const PREVIEW_BYTES: usize = 512;
    if text.len() <= MAX_INLINE_BYTES || text.len() > MAX_OBJECT_BYTES {
        return None;
    }
    let (hash, object) = blob(text.as_bytes());
    let preview =
        text.get(..text.floor_char_boundary(PREVIEW_BYTES)).unwrap_or_default().to_owned();
    let bytes = text.len() as u64;
    let reference = TextRef { preview, bytes, hash, place: None, pointer: String::new() };
    Some((reference.into_value(), object))
}

/// Returns whether a change adds a new note, which does not depend on the current state.
fn is_new_note(change: &ClaimChange) -> bool {
    change.key.kind == Kind::Note && change.expect == ClaimPrecondition::Absent
}

pub(crate) fn rule_error(error: RuleError) -> Error {
    match error {
        RuleError::NotFound(key) => Error::not_found(key.kind.name(), key.id),
        RuleError::AlreadyExists(key) => Error::Duplicate { kind: key.kind.name(), id: key.id },
        other => Error::invalid(other.to_string()),
    }
}

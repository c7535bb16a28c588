//! Writes: claims, facts and a checkpoint in one record with one sync.

mod check;
mod head;

pub(crate) use check::{check_checkpoint, check_claim, check_fact, check_tag};
pub use head::HeadClaims;

use super::act::Act;
use super::aside;
use super::gate::{Removed, warning};
use super::session::Session;
use super::take::Taking;
use super::whole;
use crate::engine::checkpoint as checkpoints;
use crate::engine::commit::{Desk, Durability, blob, random};
use crate::engine::head::Counted;
use crate::engine::refs::session as session_refs;
use crate::engine::revise::{self, ClaimChange, Expect, Place, Planned, Sealed};
use crate::engine::spool::is_reason;
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::{
    BookmarkRow, Bytes, DeltaPart, ObjectKind, Page, Record, RecordChange, Refs, SessionRefs,
    Spooled, decode_entry, encode_key, seal,
};
use crate::model::rule::{Outcome, RuleError};
use crate::model::{
    AutoTrigger, BranchNumber, Checkpoint, CheckpointId, Fact, Key, Kind, Operation, OperationId,
    RevisionId, SessionKind, SessionNumber, TextRef, Timestamp, Trigger, Value,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A checkpoint to be made, or completed.
#[derive(Clone, Debug, PartialEq)]
pub struct NewCheckpoint {
    /// What somebody says about it.
    pub message: String,
    /// Words it is found by.
    pub tags: Vec<String>,
    /// Why it is made.
    pub trigger: Trigger,
    /// The moment it names, if that is a past one.
    pub at: Option<Timestamp>,
    /// Whatever else is known.
    pub body: Value,
    /// The event it is the checkpoint of. Where that has one already, one of a past moment (`at`) completes it: its
    /// time, message and tags replace what was there, the fields of its body are added; one of now is no change.
    pub key: Option<String>,
}

impl NewCheckpoint {
    /// A checkpoint that somebody asked for.
    pub fn manual(message: impl Into<String>) -> Self {
        Self::new(message, Trigger::Manual)
    }

    /// A checkpoint with this trigger.
    pub fn new(message: impl Into<String>, trigger: Trigger) -> Self {
        Self {
            message: message.into(),
            tags: Vec::new(),
            trigger,
            at: None,
            body: Value::Null,
            key: None,
        }
    }

    /// With these tags.
    #[must_use]
    pub fn tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.tags = tags.into_iter().map(Into::into).collect();
        self
    }

    /// Of this past moment.
    #[must_use]
    pub const fn at(mut self, time: Timestamp) -> Self {
        self.at = Some(time);
        self
    }
}

/// What a write did.
#[derive(Clone, Debug, PartialEq)]
pub struct Committed {
    /// The operation, for `undo`.
    pub operation: OperationId,
    /// The session it went to.
    pub session: String,
    /// The branch it went to.
    pub branch: String,
    /// The revision it made, if claims changed: its number and id.
    pub revision: Option<(u64, RevisionId)>,
    /// The checkpoint it made or completed, the last of several.
    pub checkpoint: Option<Checkpoint>,
    /// How many checkpoints it made or completed.
    pub checkpoints: u64,
    /// The claims that changed, with their new values.
    pub changed: Vec<(Key, Option<Value>)>,
    /// How many facts were new.
    pub facts: u64,
    /// What does not go together, and other things to be told.
    pub warnings: Vec<String>,
    /// Whether it waits in the spool, since somebody holds the append lock or the store is damaged: it is durable and
    /// seen at once; its numbers, and the id of a revision, are those it would have now.
    pub spooled: bool,
}

impl Committed {
    /// Whether nothing was written, since all of it stood so already.
    #[must_use]
    pub const fn is_unchanged(&self) -> bool {
        self.revision.is_none() && self.checkpoint.is_none() && self.facts == 0
    }
}

type Rule<'a> = Box<dyn Fn(&HeadClaims) -> Result<Outcome, RuleError> + 'a>;
type Edit<'a> = Box<dyn Fn(&[Option<Value>]) -> Result<Vec<ClaimChange>> + 'a>;

enum Step<'a> {
    Change(ClaimChange),
    Rule(Rule<'a>),
    /// What becomes of claims, by what these are now.
    Edit(Vec<Key>, Edit<'a>),
    /// These are all claims of these kinds.
    Whole(BTreeSet<Kind>, Cow<'a, [(Key, Value)]>),
}

impl Step<'_> {
    fn change(self) -> Option<(Key, Option<Value>)> {
        if let Self::Change(change) = self { Some((change.key, change.value)) } else { None }
    }
}

/// A page holds at most so many facts.
const PAGE_FACTS: usize = 1000;
/// A clock this far behind the head is worth a warning.
const CLOCK_BEHIND_MICROS: i64 = 5 * 60 * 1_000_000;
/// `SignificantTimePassed` means more than this since the last checkpoint.
pub(crate) const SIGNIFICANT_MICROS: i64 = 5 * 60 * 1_000_000;
/// A time further in the future than this is a mistake.
const FUTURE_MICROS: i64 = 24 * 3600 * 1_000_000;

/// Something to be written to a session: all of it in one record, or nothing.
#[must_use = "nothing is written before `commit`"]
pub struct Write<'a> {
    session: &'a Session,
    act: &'a Act,
    operation: Option<OperationId>,
    branch: Option<String>,
    time: Option<Timestamp>,
    steps: Vec<Step<'a>>,
    facts: Vec<Fact>,
    source: Option<String>,
    checkpoint: Option<NewCheckpoint>,
    /// Of an import: each of its own moment, with a key.
    checkpoints: Vec<NewCheckpoint>,
    extra: Vec<RecordChange>,
    taking: Option<Taking>,
    auto: bool,
    by_import: bool,
    removed: Removed,
    durability: Durability,
}

impl<'a> Write<'a> {
    pub(crate) const fn new(session: &'a Session, act: &'a Act) -> Self {
        Self {
            session,
            act,
            operation: None,
            branch: None,
            time: None,
            steps: Vec::new(),
            facts: Vec::new(),
            source: None,
            checkpoint: None,
            checkpoints: Vec::new(),
            extra: Vec::new(),
            taking: None,
            auto: false,
            by_import: false,
            removed: Removed::new(),
            durability: Durability::Now,
        }
    }

    /// As a part of this operation: `undo` takes back all parts together.
    pub const fn part_of(mut self, operation: OperationId) -> Self {
        self.operation = Some(operation);
        self
    }

    /// On this branch, not the current one.
    pub fn on(mut self, branch: impl Into<String>) -> Self {
        self.branch = Some(branch.into());
        self
    }

    /// With this clock, not the act's: for what is imported.
    pub const fn at(mut self, time: Timestamp) -> Self {
        self.time = Some(time);
        self
    }

    /// With this change of a claim. Of several changes of one claim the last counts.
    pub fn change(mut self, change: ClaimChange) -> Self {
        self.steps.push(Step::Change(change));
        self
    }

    /// With these changes of claims.
    pub fn changes(mut self, changes: impl IntoIterator<Item = ClaimChange>) -> Self {
        self.steps.extend(changes.into_iter().map(Step::Change));
        self
    }

    /// With what a rule makes of the claims as they stand (with the changes before it), and the automatic checkpoint
    /// that it calls for. The rule runs again if somebody else is faster.
    pub fn rule(mut self, rule: impl Fn(&HeadClaims) -> Result<Outcome, RuleError> + 'a) -> Self {
        self.steps.push(Step::Rule(Box::new(rule)));
        self.auto = true;
        self
    }

    /// With what `edit` makes of these claims as they stand (with the changes before it), each `None` where it is not
    /// there. Only these are looked up, so it costs the same in a state of any size. Runs again if somebody else is
    /// faster.
    pub fn edit(
        mut self,
        keys: Vec<Key>,
        edit: impl Fn(&[Option<Value>]) -> Result<Vec<ClaimChange>> + 'a,
    ) -> Self {
        self.steps.push(Step::Edit(keys, Box::new(edit)));
        self
    }

    /// With these as all the claims of these kinds: what else is held of them is taken out.
    pub fn whole(
        mut self,
        kinds: BTreeSet<Kind>,
        claims: impl Into<Cow<'a, [(Key, Value)]>>,
    ) -> Self {
        self.steps.push(Step::Whole(kinds, claims.into()));
        self
    }

    /// With this fact.
    pub fn fact(mut self, fact: Fact) -> Self {
        self.facts.push(fact);
        self
    }

    /// This text as it stands in a fact's value: itself, or, if it is long, a reference to an object that is written
    /// along.
    pub fn text(&mut self, text: &str) -> Value {
        const MAX_INLINE_TEXT_BYTES: usize = 4096;
        const PREVIEW_BYTES: usize = 512;
        let mut clean = text.to_owned();
        self.session.store.gate().text(&mut clean, &mut self.removed);
        let text = clean.as_str();
        if text.len() <= MAX_INLINE_TEXT_BYTES {
            return text.into();
        }
        let (hash, object) = blob(text.as_bytes());
        self.extra.push(object);
        let preview = text.get(..text.floor_char_boundary(PREVIEW_BYTES)).unwrap_or_default();
        let preview = preview.to_owned();
        let bytes = text.len() as u64;
        TextRef { preview, bytes, hash, place: None, pointer: String::new() }.into_value()
    }

    /// With these facts, whose texts point into this source.
    pub fn facts(mut self, facts: impl IntoIterator<Item = Fact>, source: Option<String>) -> Self {
        self.facts.extend(facts);
        self.source = source;
        self
    }

    /// And then this checkpoint.
    pub fn checkpoint(mut self, checkpoint: NewCheckpoint) -> Self {
        self.checkpoint = Some(checkpoint);
        self
    }

    /// And an automatic checkpoint for this event, unless the throttle holds it back.
    pub fn event(mut self, trigger: AutoTrigger) -> Self {
        self.checkpoint = Some(automatic(trigger, None));
        self
    }

    /// Without the automatic checkpoints that rules call for.
    pub const fn without_auto_checkpoints(mut self) -> Self {
        self.auto = false;
        self
    }

    /// As an import: the session does not become the one last used, no schedule is looked at, and it is durable only
    /// after [`super::Store::sync`].
    pub const fn imported(mut self) -> Self {
        self.by_import = true;
        self.durability = Durability::Later;
        self
    }

    pub(crate) fn checkpoints(mut self, checkpoints: Vec<NewCheckpoint>) -> Self {
        // A later one of the same event says more.
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

    /// What takes a source further: its segments, unless they were written ahead, and where it has come to.
    pub(crate) fn taking(
        mut self,
        taking: Taking,
        segments: Vec<RecordChange>,
        bookmark: BookmarkRow,
    ) -> Self {
        self.extra.extend(segments);
        self.extra.push(RecordChange::Bookmark {
            session: self.session.number,
            source: taking.source().to_owned(),
            bookmark: Some(Box::new(bookmark)),
        });
        self.taking = Some(taking);
        self
    }

    /// Writes it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for values that cannot be, [`Error::Duplicate`], [`Error::Dangling`], [`Error::NotFound`],
    /// [`Error::Conflict`], [`Error::ReadOnly`], [`Error::Backend`]: then nothing was written.
    pub fn commit(mut self) -> Result<Committed> {
        self.check()?;
        let mut operation = self.act.operation()?;
        if let Some(id) = self.operation {
            operation.id = id;
        }
        let facts = self.seal_facts();
        let ids = (0..=self.checkpoints.len())
            .map(|_| random().map(CheckpointId::from_bytes))
            .collect::<Result<Vec<_>>>()?;
        let mut memo: Option<Sealed> = None;
        let engine = std::sync::Arc::clone(&self.session.store.engine);
        let committed = engine.commit(self.durability, &mut |desk| {
            self.plan(desk, &operation, &facts, &ids, &mut memo)
        });
        let (mut done, moved) = match committed {
            Err(error) if is_reason(&error) => {
                let session = self.session;
                let (refs, _) =
                    engine.live.refs().unwrap_or_else(|_| (engine.live.known_refs(), 0));
                return match self.waiting(&refs, &operation, &facts, &ids)? {
                    Some(waiting) => aside::keep(&session.store, &waiting, error),
                    None => Err(error),
                };
            }
            committed => committed?,
        };
        if let Some((branch, planned)) = moved {
            engine.heads.moved(
                engine.live.end(),
                (self.session.number, branch),
                planned.parent,
                planned.head.id,
                &planned.entries,
            );
            if self.is_plain() {
                done.changed = self.steps.into_iter().filter_map(Step::change).collect();
            }
        }
        Ok(done)
    }

    /// Whether all claims that change were handed in as changes.
    fn is_plain(&self) -> bool {
        self.steps.iter().all(|step| matches!(step, Step::Change(_)))
    }

    /// Takes secrets out, and refuses what cannot be.
    fn check(&mut self) -> Result<()> {
        let gate = self.session.store.gate();
        let removed = &mut self.removed;
        let latest = self.act.now.plus_micros(FUTURE_MICROS);
        let times = self.time.iter().chain(self.facts.iter().map(|fact| &fact.at));
        if let Some(late) = times.into_iter().find(|time| **time > latest) {
            return Err(Error::invalid(format!(
                "the time {late} is more than a day ahead of now: mend the clock or the source"
            )));
        }
        for step in &mut self.steps {
            match step {
                Step::Change(change) => {
                    gate.claim(change, removed)?;
                    check_claim(change)?;
                }
                Step::Whole(kinds, claims) => {
                    // Those that differ from what is held are checked when that is known: the others were once.
                    for (key, _) in claims.iter() {
                        if !kinds.contains(&key.kind) {
                            return Err(Error::invalid(format!("the {key} is of another kind")));
                        }
                        gate.name("id", &key.id)?;
                    }
                    if gate.is_closed() {
                        for (_, value) in claims.to_mut() {
                            gate.value(value, removed);
                        }
                    }
                }
                Step::Rule(_) | Step::Edit(..) => {}
            }
        }
        self.facts.iter_mut().try_for_each(|fact| check_fact(gate, fact, removed))?;
        let mut checkpoints = self.checkpoint.iter_mut().chain(&mut self.checkpoints);
        checkpoints.try_for_each(|checkpoint| check_checkpoint(gate, checkpoint, removed))
    }

    /// This write as it waits in the spool; `None` if it needs an expected head, or is a part of something larger.
    fn waiting(
        &self,
        refs: &Refs,
        operation: &Operation,
        facts: &[RecordChange],
        ids: &[CheckpointId],
    ) -> Result<Option<Spooled>> {
        let Some(session) = refs.sessions.get(self.session.number as usize) else {
            return Ok(None);
        };
        if self.by_import || self.operation.is_some() {
            return Ok(None);
        }
        let mut waiting = aside::begin(operation.clone(), session.info.clone())?;
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
            let Step::Change(change) = step else { return Ok(None) };
            let Some(value) = change.value.as_ref().filter(|_| is_new_note(change)) else {
                return Ok(None);
            };
            aside::note(&mut waiting, &change.key.id, value, change.added_at);
        }
        aside::pages(&mut waiting, facts);
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
            aside::checkpoint(&mut waiting, wanted, *id, seen);
        }
        Ok(Some(waiting))
    }

    /// The facts in pages.
    fn seal_facts(&mut self) -> Vec<RecordChange> {
        let facts = std::mem::take(&mut self.facts);
        fact_pages(self.session.number, self.source.as_ref(), facts)
    }

    #[expect(
        clippy::type_complexity,
        reason = "a plan gives the record, the answer, and what to remember"
    )]
    fn plan(
        &self,
        desk: &Desk<'_>,
        operation: &Operation,
        facts: &[RecordChange],
        ids: &[CheckpointId],
        memo: &mut Option<Sealed>,
    ) -> Result<(Option<Record>, (Committed, Option<(BranchNumber, Planned)>))> {
        let number = self.session.number;
        let session = session_refs(&desk.refs, number)?;
        if let Some(taking) = &self.taking {
            taking.check(&desk.refs, self.session.number, || desk.view())?;
        }
        let branch = match &self.branch {
            None => session.current_branch,
            Some(name) => session
                .branch_named(name)
                .ok_or_else(|| Error::not_found("branch", name.clone()))?,
        };
        let time = self.time.unwrap_or(self.act.now);
        let place = Place { session: number, branch, time, operation };
        let mut done = Committed {
            operation: operation.id,
            session: session.info.name.clone(),
            branch: session.branch(branch)?.name.clone(),
            revision: None,
            checkpoint: None,
            checkpoints: 0,
            changed: Vec::new(),
            facts: 0,
            warnings: Vec::new(),
            spooled: false,
        };
        let mut wanted = self.checkpoint.clone();
        let mut removed = self.removed.clone();
        let claims = self.claims(desk, branch, memo, (&mut wanted, &mut removed), &mut done)?;
        done.warnings.extend(warning(&removed));
        let mut planned = match claims.as_slice() {
            [] => None,
            claims => revise::plan(desk, place, claims, memo)?,
        };
        let mut changes = Vec::new();
        if let Some(planned) = &mut planned {
            if let Some(head) = session.branch(branch)?.head
                && !self.by_import
                && head.effective.micros_since(time) > CLOCK_BEHIND_MICROS
            {
                done.warnings.push(format!(
                    "the clock says {time}, but the last revision was made at {}",
                    head.effective
                ));
            }
            changes.append(&mut planned.changes);
            done.revision = Some((planned.head.sequence, planned.head.id));
            let made = claims.into_iter().filter_map(|change| match change {
                Cow::Owned(change) => Some((change.key, change.value)),
                // Those that were handed in are moved there once they are committed.
                Cow::Borrowed(_) => None,
            });
            done.changed = made.collect();
        }
        for page in facts {
            if let RecordChange::Facts { count, .. } = page {
                done.facts += count;
            }
            changes.push(page.clone());
        }
        changes.extend(self.extra.iter().cloned());
        let head = planned.as_ref().map(|planned| planned.head.sequence);
        if wanted.is_none() && !changes.is_empty() && !self.by_import {
            wanted = self.scheduled(session);
        }
        let mut next = session.next_sequence + u64::from(head.is_some());
        let wanted = wanted.filter(|wanted| self.is_wanted(session, wanted));
        for (wanted, id) in self.checkpoints.iter().cloned().chain(wanted).zip(ids) {
            let made = self.make_checkpoint(desk, session, wanted, (*id, next), branch, head)?;
            if let Some(checkpoint) = made {
                next += u64::from(checkpoint.sequence == next);
                let boxed = Box::new(checkpoint.clone());
                changes.push(RecordChange::Checkpoint { session: number, checkpoint: boxed });
                done.checkpoints += 1;
                done.checkpoint = Some(checkpoint);
            }
        }
        if changes.is_empty() {
            return Ok((None, (done, None)));
        }
        let used = desk.refs.last_used == Some(number);
        if !self.by_import && !used && session.info.kind == SessionKind::Debug {
            changes.push(RecordChange::Used { session: number });
        }
        let record = Record { operation: operation.clone(), changes };
        Ok((Some(record), (done, planned.map(|planned| (branch, planned)))))
    }

    /// All changes of claims, those that rules make included.
    fn claims(
        &self,
        desk: &Desk<'_>,
        branch: BranchNumber,
        memo: &mut Option<Sealed>,
        (wanted, removed): (&mut Option<NewCheckpoint>, &mut Removed),
        done: &mut Committed,
    ) -> Result<Vec<Cow<'_, ClaimChange>>> {
        let gate = self.session.store.gate();
        let mut changes: Vec<Cow<'_, ClaimChange>> = Vec::with_capacity(self.steps.len());
        // With other steps beside them, the order in which changes were made is told by the changes themselves.
        let plain = self.is_plain();
        let mut head: Option<HeadClaims> = None;
        for step in &self.steps {
            match step {
                Step::Change(change) => {
                    if let Some(head) = &mut head {
                        head.add(change);
                    }
                    changes.push(if plain {
                        Cow::Borrowed(change)
                    } else {
                        Cow::Owned(change.clone())
                    });
                }
                Step::Whole(kinds, claims) => {
                    *memo = None;
                    if head.is_none() {
                        head = Some(HeadClaims::read(desk, self.session.number, branch, &changes)?);
                    }
                    let held = head.as_mut().expect("read above");
                    for change in whole::changes(held, kinds, claims)? {
                        held.add(&change);
                        changes.push(Cow::Owned(change));
                    }
                }
                Step::Edit(keys, edit) => {
                    *memo = None;
                    let known = self.held(desk, branch, keys, &changes)?;
                    for mut change in edit(&known)? {
                        gate.claim(&mut change, removed)?;
                        check_claim(&mut change)?;
                        if let Some(head) = &mut head {
                            head.add(&change);
                        }
                        changes.push(Cow::Owned(change));
                    }
                }
                Step::Rule(rule) => {
                    // What a rule makes depends on the head, so nothing sealed before can be used again.
                    *memo = None;
                    if head.is_none() {
                        head = Some(HeadClaims::read(desk, self.session.number, branch, &changes)?);
                    }
                    let claims = head.as_mut().expect("read above");
                    let outcome = rule(claims).map_err(rule_error)?;
                    if let Some(error) = claims.failed() {
                        return Err(error);
                    }
                    for (key, value) in outcome.changes {
                        let mut change = ClaimChange::put(key, value);
                        gate.claim(&mut change, removed)?;
                        claims.add(&change);
                        changes.push(Cow::Owned(change));
                    }
                    if let (Some(trigger), true, None) = (outcome.trigger, self.auto, &wanted) {
                        *wanted = Some(automatic(trigger, outcome.tag));
                    }
                    done.warnings.extend(outcome.contradiction);
                }
            }
        }
        Ok(changes)
    }

    /// These claims as they stand at a branch's head with these changes.
    fn held(
        &self,
        desk: &Desk<'_>,
        branch: BranchNumber,
        keys: &[Key],
        changes: &[Cow<'_, ClaimChange>],
    ) -> Result<Vec<Option<Value>>> {
        let number = self.session.number;
        let head = session_refs(&desk.refs, number)?.branch(branch)?.head;
        let encoded: Vec<Vec<u8>> = keys.iter().map(encode_key).collect();
        let entries = desk.engine.heads.entries(desk, number, branch, head.as_ref(), &encoded)?;
        let held = |(key, held): (&Key, Option<Counted>)| {
            if let Some(change) = changes.iter().rfind(|change| change.key == *key) {
                return Ok(change.value.clone());
            }
            let damaged = Error::corrupt(format!("the {key}"));
            held.map(|held| decode_entry(&held.entry)).transpose().map_or_else(
                |error| Err(damaged(error)),
                |entry| Ok(entry.map(|entry| entry.value)),
            )
        };
        keys.iter().zip(entries).map(held).collect()
    }

    fn scheduled(&self, session: &SessionRefs) -> Option<NewCheckpoint> {
        let every = session.schedule?;
        let last = session.last_checkpoint.unwrap_or(session.info.started_at);
        (self.act.now.micros_since(last) >= every)
            .then(|| NewCheckpoint::new("scheduled", Trigger::Scheduled))
    }

    /// The throttle.
    fn is_wanted(&self, session: &SessionRefs, wanted: &NewCheckpoint) -> bool {
        wanted.trigger != Trigger::Automatic(AutoTrigger::SignificantTimePassed)
            || self.by_import
            // What is imported makes these by its own times: else they would depend on when somebody wrote beside it.
            || session.bookmarks.is_empty()
                && session
                    .last_checkpoint
                    .is_none_or(|last| self.act.now.micros_since(last) > SIGNIFICANT_MICROS)
    }

    fn make_checkpoint(
        &self,
        desk: &Desk<'_>,
        session: &SessionRefs,
        wanted: NewCheckpoint,
        (id, sequence): (CheckpointId, u64),
        branch: BranchNumber,
        new_head: Option<u64>,
    ) -> Result<Option<Checkpoint>> {
        let number = self.session.number;
        let known = match &wanted.key {
            Some(event) => checkpoints::by_key(&desk.view()?, number, event)?,
            None => None,
        };
        let time = wanted.at.unwrap_or(self.act.now);
        let (branch, revision) = match wanted.at {
            Some(time) if new_head.is_none() => {
                let view = desk.view()?;
                let branch = timeline::branch_at(&view, number, time)?;
                let at = timeline::revision_at(&view, &desk.refs, number, branch, time)?;
                (branch, at.map(|(at, _)| at.sequence))
            }
            _ => {
                let head = session.branch(branch)?.head.map(|head| head.sequence);
                (branch, new_head.or(head))
            }
        };
        let past = wanted.at.is_some();
        let checkpoint = Checkpoint {
            id,
            sequence,
            time,
            branch,
            revision,
            message: wanted.message,
            tags: wanted.tags,
            trigger: wanted.trigger,
            body: wanted.body.without_nulls(),
            key: wanted.key,
        };
        Ok(match known {
            Some(known) => checkpoints::onto(&known, checkpoint, past),
            None => Some(checkpoint),
        })
    }
}

/// Facts in pages, as a record holds them.
pub(crate) fn fact_pages(
    session: SessionNumber,
    source: Option<&String>,
    mut facts: Vec<Fact>,
) -> Vec<RecordChange> {
    let mut changes = Vec::new();
    while !facts.is_empty() {
        let rest = facts.split_off(facts.len().min(PAGE_FACTS));
        let times = || facts.iter().map(|fact| fact.at);
        let (first, last) = times().min().zip(times().max()).expect("there is one");
        let count = facts.len() as u64;
        let page = Page::new(source.cloned(), facts).encode();
        let (_, sealed) = seal(ObjectKind::Page, &page);
        let page = DeltaPart::Inline(Bytes(sealed));
        changes.push(RecordChange::Facts { session, count, first, last, page });
        facts = rest;
    }
    changes
}

fn automatic(trigger: AutoTrigger, tag: Option<&str>) -> NewCheckpoint {
    let message = match trigger {
        AutoTrigger::HypothesisStatusChange => "a hypothesis changed its status",
        AutoTrigger::NewContradictionDetected => "a contradiction was found",
        AutoTrigger::VerificationComplete => "a verification finished",
        AutoTrigger::BranchSwitch => "another branch was checked out",
        AutoTrigger::GapFilled => "a gap was filled",
        AutoTrigger::CodeModified => "code was modified",
        AutoTrigger::SignificantTimePassed => "more than five minutes passed",
        AutoTrigger::ContextCompactionWarning => "context is about to be compacted",
    };
    let mut checkpoint = NewCheckpoint::new(message, Trigger::Automatic(trigger));
    checkpoint.tags = std::iter::once("auto").chain(tag).map(str::to_owned).collect();
    checkpoint.tags.sort();
    checkpoint
}

/// A plain addition: it needs to know nothing of what is there.
fn is_new_note(change: &ClaimChange) -> bool {
    change.key.kind == Kind::Note && change.expect == Expect::Absent
}

pub(crate) fn rule_error(error: RuleError) -> Error {
    match error {
        RuleError::NotFound(key) => Error::not_found(key.kind.name(), key.id),
        RuleError::AlreadyThere(key) => Error::Duplicate { kind: key.kind.name(), id: key.id },
        other => Error::invalid(other.to_string()),
    }
}

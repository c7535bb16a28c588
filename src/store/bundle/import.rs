//! Imports a bundle: appends the records that the journal does not contain yet.

use super::continuity::{check_continuity, diverged, divergence_error, has_same_number, is_known};
use super::secret_counter::SecretCounter;
use super::unfinished::BundleMark;
use super::verify::verify_bundle;
use super::{BundleReader, BundleSource, MAX_RECORD_BYTES, damaged};
use crate::engine::commit::CommitDurability;
use crate::engine::index::{find_operation, find_operation_of};
use crate::engine::journal_follower::{APPLY_BYTES, IDLE_TAIL_BYTES};
use crate::engine::object;
use crate::engine::plan_context::PlanContext;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::{
    StoreRefs, advance_by, of_kind, present_session, session as session_refs,
};
use crate::engine::session_rows::SessionLookup;
use crate::error::{Error, Result};
use crate::format::{
    BundleContents, BundleItemKind, BundleSession, OperationEffect, Record, RecordBytes,
    RecordChange, SessionRemoval, object_id,
};
use crate::model::{BranchNumber, ObjectId, Operation, OperationId, SessionKind, SessionNumber};
use crate::shell::quoted;
use crate::store::{Store, WriteContext};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// What an import of a bundle did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BundleImportReport {
    /// The names of the sessions, as they are in the bundle.
    pub sessions: Vec<String>,
    /// How many records were written.
    pub records: u64,
    /// How many records were there already.
    pub known: u64,
}

/// What the import of a pulled bundle did.
pub(in crate::store) struct PackImport {
    /// How many operations had changes that were not here yet.
    pub(in crate::store) operations: u64,
    /// How many effects each of its operations has, with those that the bundle says came before.
    pub(in crate::store) effects: HashMap<OperationId, usize>,
    /// A description of the secrets in it that this store redacts, if it has any.
    pub(in crate::store) secrets: Option<String>,
    /// The branch that was checked out last in another store.
    pub(in crate::store) checked_out_elsewhere: Option<BranchNumber>,
}

/// Where a pulled bundle goes.
#[derive(Clone, Copy, Default)]
pub(in crate::store) struct PackTarget<'a> {
    /// The new name of the session here, if it gets one.
    pub(in crate::store) name: Option<&'a str>,
    /// The incomplete session into which the bundle is imported, if there is one.
    pub(in crate::store) into: Option<SessionNumber>,
    /// Whether the branch that is checked out here stays checked out. Otherwise the branch that
    /// others checked out last is checked out.
    pub(in crate::store) keeps_checkout: bool,
    /// A session that is new here is refused if its agent session has a session here with this
    /// number or a higher one.
    pub(in crate::store) begun_before: Option<SessionNumber>,
}

/// Where the sessions of a bundle go.
#[derive(Clone, Copy)]
struct BundleTarget<'a> {
    /// The name of the file, to be reported if the import is killed; empty if there is none.
    file: &'a str,
    pack: PackTarget<'a>,
    /// Whether it was pulled: then secrets that this store redacts do not stop the import, and
    /// changes that are here already must have the same numbers as in the bundle.
    is_pulled: bool,
}

impl Store {
    /// Imports the sessions of a bundle, with their ids. The bundle is read twice: first it is
    /// verified as a whole, and nothing is written if anything is wrong. Known records are skipped,
    /// so an interrupted import can be continued. The import is durable when this returns.
    ///
    /// `name` renames the session; it is only valid for a bundle with one session.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the bundle is damaged, incomplete, or of a later version,
    /// [`Error::Secrets`] if it contains secrets that this store redacts; [`Error::Duplicate`] if
    /// another session has the name; [`Error::Conflict`] if a session has diverged here;
    /// [`Error::NotFound`] if a range needs earlier data that is missing; also if the store cannot
    /// be written.
    pub fn import_bundle(
        &self,
        act: &WriteContext,
        source: &mut dyn BundleSource,
        name: Option<&str>,
    ) -> Result<BundleImportReport> {
        self.import_bundle_file(act, source, "", name)
    }

    /// Imports a bundle like [`Store::import_bundle`] from a file of this name.
    /// [`Store::unfinished_imports`] names the file if the import is killed.
    pub fn import_bundle_file(
        &self,
        act: &WriteContext,
        source: &mut dyn BundleSource,
        file: &str,
        name: Option<&str>,
    ) -> Result<BundleImportReport> {
        let pack = PackTarget { name, ..PackTarget::default() };
        let target = BundleTarget { file, pack, is_pulled: false };
        let (report, _) = self.take_bundle(act, source, target)?;
        self.maintain(IDLE_TAIL_BYTES).ok();
        Ok(report)
    }

    /// Imports a bundle that was pulled, into an incomplete session if one is given. Secrets in it
    /// are reported, and do not stop the import: others have them too, and a session that cannot be
    /// pulled could not be purged.
    pub(in crate::store) fn import_pack(
        &self,
        act: &WriteContext,
        source: &mut dyn BundleSource,
        pack: PackTarget<'_>,
    ) -> Result<PackImport> {
        let target = BundleTarget { file: "", pack, is_pulled: true };
        Ok(self.take_bundle(act, source, target)?.1)
    }

    fn take_bundle(
        &self,
        act: &WriteContext,
        source: &mut dyn BundleSource,
        BundleTarget { file, pack: target, is_pulled }: BundleTarget<'_>,
    ) -> Result<(BundleImportReport, PackImport)> {
        let view = self.engine.follower.written_view()?;
        let redactor = self.engine.options.redaction.as_deref();
        let counter = SecretCounter::new(redactor);
        let (mut contents, secrets) = verify_bundle(source, counter, self, (&view, target.into))?;
        let secrets = secrets.summary();
        drop(view);
        if let Some(found) = &secrets
            && !is_pulled
        {
            return Err(Error::Secrets { found: found.clone() });
        }
        if let Some(name) = target.name {
            let [only] = contents.sessions.as_mut_slice() else {
                return Err(Error::invalid("only a bundle of one session can be given a name"));
            };
            name.clone_into(&mut only.info.name);
        }
        let refs = self.engine.follower.written_refs()?.0;
        let sessions = &mut contents.sessions.iter();
        let view = || self.engine.follower.written_view();
        sessions.try_for_each(|session| place(&refs, session, target.into, &view).map(drop))?;
        let begun = contents.sessions.iter().flat_map(|session| &session.begun);
        let done = begun.map(|one| (one.operation, one.effects as usize)).collect();
        let mark = match target.into {
            None => Some(BundleMark::write(self, &contents, file)?),
            // An incomplete session is never continued by another import.
            Some(_) => None,
        };
        let mut import = BundleImporter {
            store: self,
            into: target.into,
            operation: act.operation()?,
            done,
            objects: Vec::new(),
            passed: HashSet::new(),
            taken: BundleImportReport::default(),
            written: HashSet::new(),
            next_branches: contents.sessions.iter().map(first_branch).collect(),
            keeps_checkout: target.keeps_checkout,
            begun_before: target.begun_before,
            same_numbers: is_pulled,
            checked_out_elsewhere: None,
            contents,
        };
        let done = import.all(source).and_then(|()| self.engine.sync());
        // Another import cannot continue a session that has diverged here.
        let is_ended = match &done {
            // A pull ends with its last pack.
            Ok(()) => !is_pulled,
            Err(Error::Conflict(_)) => true,
            Err(_) => import.taken.records == 0,
        };
        if let Some(mark) = mark.filter(|_| is_ended) {
            mark.remove()?;
        }
        done?;
        // A session that was here already keeps its name.
        let refs = self.engine.follower.written_refs()?.0;
        let names = import.contents.sessions.iter().map(|session| {
            Ok(match present_session(&refs, session.info.id)? {
                Some(number) => session_refs(&refs, number)?.info.name.clone(),
                None => session.info.name.clone(),
            })
        });
        import.taken.sessions = names.collect::<Result<_>>()?;
        let operations = import.written.len() as u64;
        let checked_out_elsewhere = import.checked_out_elsewhere;
        let effects = import.done;
        Ok((import.taken, PackImport { operations, effects, secrets, checked_out_elsewhere }))
    }
}

/// Returns the number that a session of a bundle has here or will get, and whether it exists.
fn place(
    refs: &StoreRefs,
    session: &BundleSession,
    into: Option<SessionNumber>,
    view: &dyn Fn() -> Result<ReadSnapshot>,
) -> Result<(SessionNumber, bool)> {
    let known = refs.sessions.find(SessionLookup::Id(session.info.id))?;
    let mut own = known.into_iter().filter(|(number, known)| match into {
        Some(into) => *number == into,
        None => ![Some(SessionRemoval::Swept), Some(SessionRemoval::Incomplete)]
            .contains(&known.removal),
    });
    if let Some((number, here)) = own.next() {
        if let (Some(SessionRemoval::Pruned(operation)), None) = (here.removal, into) {
            let name = &here.info.name;
            let by = find_operation(&view()?, &operation)?.map_or(number, |row| row.session);
            return Err(Error::Conflict(if by == number {
                format!(
                    "the session '{name}' was dropped here: 'forge session restore {}' brings it \
                     back",
                    here.info.id
                )
            } else {
                let (operation, session) = (operation.short(), session_refs(refs, by)?);
                let session = quoted(&session.info.name);
                format!(
                    "the session '{name}' was pruned here: 'forge undo {operation} --session \
                     {session}' brings it back"
                )
            }));
        }
        if here.next_sequence <= session.from {
            return Err(missing_part(session));
        }
        return Ok((number, true));
    }
    if session.needs_earlier() {
        return Err(missing_part(session));
    }
    if of_kind(refs, session.info.kind, &session.info.name)?.is_some() {
        return Err(Error::Duplicate { kind: "session", id: session.info.name.clone() });
    }
    Ok((refs.sessions.len() as SessionNumber, false))
}

/// Returns the error for a bundle that continues what is not here.
fn missing_part(session: &BundleSession) -> Error {
    let part = format!("{} up to #{}", session.info.name, session.from);
    Error::not_found("session here with the part that the bundle continues:", part)
}

/// Returns the number of the first branch that a bundle can add to a session, if the bundle says
/// it.
fn first_branch(session: &BundleSession) -> Option<u64> {
    match session.continues {
        Some(branches) => Some(branches),
        // The branch `main` comes with the session.
        None => (session.from == 0).then_some(1),
    }
}

struct BundleImporter<'a> {
    store: &'a Store,
    into: Option<SessionNumber>,
    operation: Operation,
    contents: BundleContents,
    /// How many effects of each operation were passed so far.
    done: HashMap<OperationId, usize>,
    /// Objects to be written before the next record.
    objects: Vec<RecordBytes>,
    /// All objects so far, whether they were written or existed already.
    passed: HashSet<ObjectId>,
    taken: BundleImportReport,
    /// The operations that had changes that were not here yet.
    written: HashSet<OperationId>,
    /// The number that the next branch of each session has where the bundle was made, if known.
    next_branches: Vec<Option<u64>>,
    /// Whether the branch that is checked out here stays.
    keeps_checkout: bool,
    /// As in [`PackTarget`].
    begun_before: Option<SessionNumber>,
    /// Whether changes that are here already must have the same numbers as in the bundle.
    same_numbers: bool,
    /// The branch that was checked out last in another store.
    checked_out_elsewhere: Option<BranchNumber>,
}

impl BundleImporter<'_> {
    fn all(&mut self, source: &mut dyn BundleSource) -> Result<()> {
        let mut items = BundleReader::begin(source)?;
        loop {
            let item = items.next()?;
            match item.kind {
                BundleItemKind::Contents => {}
                BundleItemKind::Object => self.object(item.content)?,
                BundleItemKind::Record => {
                    self.write_objects()?;
                    let record =
                        Record::decode(&item.content).map_err(|error| damaged(item.at, error))?;
                    self.record(&record)?;
                }
                BundleItemKind::End => break,
            }
            if self.store.engine.follower.tail_cost() >= APPLY_BYTES {
                self.store.maintain(APPLY_BYTES)?;
            }
        }
        self.write_objects()?;
        for named in 0..self.contents.sessions.len() {
            let operation = self.operation.clone();
            self.write(named, &Record { operation, changes: Vec::new() })?;
        }
        Ok(())
    }

    /// Checks that no session of the same agent session was begun here meanwhile. `session` is new
    /// here.
    fn check_agent(&self, refs: &StoreRefs, session: &BundleSession) -> Result<()> {
        let (Some(before), Some(agent)) = (self.begun_before, &session.info.agent_session) else {
            return Ok(());
        };
        let own = refs.sessions.find(SessionLookup::Agent(agent))?;
        if own.iter().any(|(number, _)| *number >= before) {
            return Err(Error::Conflict(format!("the agent's session {agent} was begun here")));
        }
        Ok(())
    }

    fn object(&mut self, encoded: Vec<u8>) -> Result<()> {
        let id = object_id(&encoded).map_err(Error::corrupt("an object"))?;
        self.passed.insert(id);
        let view = self.store.engine.follower.written_view()?;
        // An object that no record names yet may be swept before a record of this bundle names it.
        // Writing it again keeps it.
        if let Some(number) = object::find_number(&view, &id)?
            && object::prewritten_row(&view, number)?.is_none()
        {
            return Ok(());
        }
        self.objects.push(RecordBytes(encoded));
        if self.objects.iter().map(|object| object.0.len()).sum::<usize>() >= MAX_RECORD_BYTES {
            self.write_objects()?;
        }
        Ok(())
    }

    fn write_objects(&mut self) -> Result<()> {
        if self.objects.is_empty() {
            return Ok(());
        }
        let objects = std::mem::take(&mut self.objects).into_iter();
        let changes = objects.map(|object| RecordChange::Object { object }).collect();
        let record = Record { operation: self.operation.clone(), changes };
        self.store.engine.commit(CommitDurability::Later, &mut |_| Ok((Some(record.clone()), ())))
    }

    fn record(&mut self, record: &Record) -> Result<()> {
        let changes = &record.changes;
        let named =
            changes.first().and_then(RecordChange::session).map_or(0, |number| number as usize);
        let id = record.operation.id;
        let effects = changes.iter().filter(|change| has_effect(change)).count();
        let branches = changes.iter().filter(|change| is_branch(change)).count() as u64;
        let (written, checked_out) = self.write(named, record)?;
        self.checked_out_elsewhere = checked_out.or(self.checked_out_elsewhere);
        *self.done.entry(id).or_default() += effects;
        if let Some(Some(next)) = self.next_branches.get_mut(named) {
            *next += branches;
        }
        match written {
            true => {
                self.taken.records += 1;
                self.written.insert(id);
            }
            false => self.taken.known += 1,
        }
        Ok(())
    }

    /// Writes the changes of a record that are not here yet, after the session itself if it is new.
    /// Returns whether there were any, and the last branch that they check out only elsewhere.
    fn write(&self, named: usize, record: &Record) -> Result<(bool, Option<BranchNumber>)> {
        let session = self.contents.sessions.get(named);
        let session = session.ok_or_else(|| {
            Error::invalid("a record belongs to a session that the bundle does not contain")
        })?;
        let passed = self.done.get(&record.operation.id).copied().unwrap_or(0);
        let first_branch = self.next_branches.get(named).copied().flatten();
        self.store.engine.commit(CommitDurability::Later, &mut |context| {
            let mut refs = (*context.refs).clone();
            let (number, is_there) = place(&refs, session, self.into, &|| context.view())?;
            let mut changes = Vec::new();
            if !is_there {
                self.check_agent(&refs, session)?;
                changes.push(RecordChange::Session { info: Box::new(session.info.clone()) });
                // The session becomes the last used one only if there is none.
                if session.info.kind == SessionKind::Debug && refs.last_used.is_none() {
                    changes.push(RecordChange::Used { session: number });
                }
                changes.iter().try_for_each(|change| advance_by(&mut refs, change))?;
            }
            let known = match is_there {
                true => find_operation_of(&context.view()?, number, &record.operation.id)?,
                false => None,
            };
            let mut at = passed;
            let mut next_branch = first_branch;
            let mut checked_out = None;
            for change in &record.changes {
                let mut change = change.clone();
                let branch = next_branch;
                next_branch = next_branch.map(|next| next + u64::from(is_branch(&change)));
                if let Some(own) = change.session_mut() {
                    *own = number;
                }
                let there = is_there && is_known(context, known.as_ref(), &change, at)?;
                let effect = known.as_ref().and_then(|row| row.effects.get(at));
                at += usize::from(has_effect(&change));
                if there {
                    if self.same_numbers
                        && !has_same_number(context, number, (&change, branch), effect)?
                    {
                        return Err(diverged(session, session_refs(&refs, number)?));
                    }
                    continue;
                }
                check_continuity(context, &refs, number, session, (&change, branch))?;
                if let RecordChange::Switched { branch, elsewhere, .. } = &mut change {
                    let id = &record.operation.id;
                    *elsewhere =
                        self.keeps_checkout && !was_checked_out_here(context, session, id)?;
                    checked_out = elsewhere.then_some(*branch).or(checked_out);
                }
                advance_by(&mut refs, &change)?;
                changes.push(change);
            }
            let written = !changes.is_empty();
            let record = Record { operation: record.operation.clone(), changes };
            // A record that cannot be applied here must not enter the journal.
            if written {
                let checked = context.view()?.check(record.clone());
                let missing = checked.map_err(|error| divergence_error(session, &error))?;
                // If a clock is wrong, an object may be swept right after it was written.
                if let Some(deleted) = missing.iter().find(|one| self.passed.contains(*one)) {
                    return Err(Error::Conflict(format!(
                        "the object {deleted} was deleted during the import: import the bundle again"
                    )));
                }
            }
            Ok((written.then_some(record), (written, checked_out)))
        })
    }
}

/// Returns whether the operation checked out a branch in the present session with the same id. The
/// import may be into another session that will replace it.
fn was_checked_out_here(
    context: &PlanContext<'_>,
    session: &BundleSession,
    operation: &OperationId,
) -> Result<bool> {
    let Some(here) = present_session(&context.refs, session.info.id)? else { return Ok(false) };
    let row = find_operation_of(&context.view()?, here, operation)?;
    Ok(row.is_some_and(|row| row.effects.iter().any(OperationEffect::is_own_switch)))
}

pub(super) const fn is_branch(change: &RecordChange) -> bool {
    matches!(change, RecordChange::Branch { .. })
}

pub(super) const fn has_effect(change: &RecordChange) -> bool {
    !matches!(
        change,
        RecordChange::Segment { .. }
            | RecordChange::TextMissing { .. }
            | RecordChange::TakesBack { .. }
            | RecordChange::Pruned { .. }
            | RecordChange::Swept { .. }
    )
}

//! Importing an event stream: applies lines as writes.

use super::line_plan::{
    branch_changes, check_not_before_head, make_checkpoint, resolve_selector, retagged_checkpoint,
};
use super::unfinished::{BegunImport, check_untouched, written_mark};
use super::{StreamImportReport, StreamImportRequest, at_line};
use crate::engine::commit::CommitDurability;
use crate::engine::journal_follower::APPLY_BYTES;
use crate::engine::plan_context::PlanContext;
use crate::engine::planned_revision::{CommitTarget, PlannedRevision};
use crate::engine::random::random;
use crate::engine::refs::{MAIN, session as session_refs};
use crate::engine::revision_plan::{self, ClaimChange, ClaimPrecondition};
use crate::error::{Error, Result};
use crate::format::{
    BookmarkRow, BranchChange, CheckpointEvent, EventLine, PutEvent, Record, RecordBytes,
    RecordChange, SessionEvent, SessionRefs, StreamEvent,
};
use crate::model::{
    BranchNumber, BranchStatus, CheckpointId, Fact, FactOrigin, Key, SessionNumber, TextRef,
    Timestamp, Value, claim,
};
use crate::store::Store;
use crate::store::begin::Clash;
use crate::store::fact_pages::{PAGE_FACTS, fact_pages};
use crate::store::new_session::NewSession;
use crate::store::redaction_gate::RedactionCounts;
use crate::store::session::Session;
use crate::store::validate::check_tag;
use crate::store::write::{FUTURE_MICROS, future_time, long_text};
use crate::store::write_context::WriteContext;
use std::collections::HashMap;
use std::mem;

/// How many records are written between two moves of the bookmark to the end of what was written.
/// The journal's tail is then applied if it is long. A staged importer does both after its last
/// record.
const RECORDS_BETWEEN_CHECKS: u64 = 256;
/// By how much each record makes the next tail longer that is applied, up to
/// [`MAX_APPLY_BYTES`]. An apply writes the row of the operation again, which grows with the import
/// of one session.
const APPLY_BYTES_PER_RECORD: u64 = 4096;
const MAX_APPLY_BYTES: u64 = 16 << 20;

#[derive(Clone, Debug, Default)]
pub(super) struct StreamPosition {
    pub(super) bytes: u64,
    pub(super) lines: u64,
    pub(super) hash: RecordBytes,
}

/// Applies lines to a store.
pub(super) struct StreamImporter<'a> {
    pub(super) store: Store,
    pub(super) act: &'a WriteContext,
    pub(super) stream: StreamImportRequest<'a>,
    header: Option<(SessionEvent, Timestamp)>,
    /// The session for lines that name none, once it is known.
    pub(super) own: Option<String>,
    /// Sessions by name; at least the sessions that the last lines name.
    sessions: HashMap<String, SessionNumber>,
    /// Whether a line was written to a session, by the number of the session. A hash set of a
    /// million numbers would take ten times the memory.
    has_lines: Vec<bool>,
    /// The session with the bookmark: the first one that a line was written to.
    pub(super) home: Option<Session>,
    /// Whether this applies the lines to a copy of the store, for which nothing is maintained.
    is_staged: bool,
    /// The mark of the unfinished import, once it was written.
    pub(super) begun: Option<BegunImport>,
    /// Whether this continues an import that was killed.
    pub(super) continues: bool,
    /// Up to where that import had written the stream, once it was read.
    pub(super) written: Option<StreamPosition>,
    pending: Option<PendingPuts>,
    records: u64,
    /// How many lines of the stream are written.
    pub(super) written_lines: u64,
    /// The line that could not be applied, if it is not the one that was read last.
    failed_line: Option<u64>,
    /// How many bytes of the stream the bookmark covers.
    pub(super) noted: u64,
    /// The bookmark that a staged importer writes after its last record. Its records are written
    /// together, and each move of the bookmark adds to the row of the operation.
    pub(super) next_bookmark: Option<BookmarkRow>,
    pub(super) taken: StreamImportReport,
}

/// `put` lines that are not written yet: one revision and its facts, which are written together.
#[derive(Clone)]
struct PendingPuts {
    session: Session,
    branch: String,
    at: Timestamp,
    changes: Vec<(u64, ClaimChange)>,
    facts: Vec<Fact>,
    objects: Vec<RecordChange>,
}

type PlannedChanges = (Vec<RecordChange>, Option<(BranchNumber, PlannedRevision)>);

impl<'a> StreamImporter<'a> {
    pub(super) fn new(
        store: Store,
        act: &'a WriteContext,
        stream: StreamImportRequest<'a>,
        known: &BookmarkRow,
    ) -> Self {
        let own = String::from_utf8_lossy(&known.carry.0).into_owned();
        Self {
            store,
            act,
            stream,
            header: None,
            own: Some(own).filter(|own| !own.is_empty()),
            sessions: HashMap::new(),
            has_lines: Vec::new(),
            home: None,
            is_staged: false,
            begun: None,
            continues: false,
            written: None,
            pending: None,
            records: 0,
            written_lines: known.lines,
            failed_line: None,
            noted: known.bytes,
            next_bookmark: None,
            taken: StreamImportReport::default(),
        }
    }

    /// Continues in the session with the bookmark, if there is one, and continues an unfinished
    /// import there.
    pub(super) fn at_home(mut self, home: Option<Session>, begun: Option<BegunImport>) -> Self {
        if let Some(begun) = &begun {
            self.own = self.own.take().or_else(|| begun.own.clone());
        }
        self.continues = begun.is_some();
        (self.home, self.begun) = (home, begun);
        self
    }

    /// Returns an importer that applies the next lines to a copy of the store.
    pub(super) fn staged(&self, copy: &Store) -> Self {
        Self {
            header: self.header.clone(),
            own: self.own.clone(),
            begun: self.begun.clone(),
            is_staged: true,
            continues: self.continues,
            written: self.written.clone(),
            noted: self.noted,
            records: self.records,
            written_lines: self.written_lines,
            taken: StreamImportReport {
                sessions: self.taken.sessions.first().cloned().into_iter().collect(),
                ..StreamImportReport::default()
            },
            ..Self::new(copy.clone(), self.act, self.stream, &BookmarkRow::default())
        }
        .with_sessions_of(self)
    }

    /// Takes over the sessions of another importer, which has another copy of the same store.
    fn with_sessions_of(mut self, other: &Self) -> Self {
        let session = |session: &Session| self.store.session_at(session.number);
        let home = other.home.as_ref().map(session);
        let pending = other.pending.clone();
        let pending = pending.map(|puts| PendingPuts { session: session(&puts.session), ..puts });
        (self.home, self.pending) = (home, pending);
        self
    }

    /// Takes over the state of an importer of a copy whose records are now in this store too.
    pub(super) fn take_over(self, mut staged: Self) -> Self {
        let (mut taken, mut has_lines) = (self.taken, self.has_lines);
        let sessions = mem::take(&mut staged.sessions);
        for name in mem::take(&mut staged.taken.sessions) {
            if sessions.get(&name).is_some_and(|number| add_session(&mut has_lines, *number))
                && taken.sessions.len() < StreamImportReport::MAX_NAMES
            {
                taken.sessions.push(name);
            }
        }
        taken.lines += staged.taken.lines;
        taken.revisions += staged.taken.revisions;
        taken.checkpoints += staged.taken.checkpoints;
        taken.facts += staged.taken.facts;
        let next = Self {
            header: staged.header.take(),
            own: staged.own.take(),
            sessions,
            has_lines,
            begun: staged.begun.take(),
            continues: staged.continues,
            written: staged.written.take(),
            noted: staged.noted,
            records: staged.records,
            written_lines: staged.written_lines,
            taken,
            ..Self::new(self.store, self.act, self.stream, &BookmarkRow::default())
        };
        next.with_sessions_of(&staged)
    }

    /// Applies one line; `before` and `after` are the positions of its start and end.
    pub(super) fn step(
        &mut self,
        number: u64,
        line: EventLine,
        before: &StreamPosition,
        after: &StreamPosition,
    ) -> Result<()> {
        if line.at > self.act.now.plus_micros(FUTURE_MICROS) {
            return Err(future_time(line.at));
        }
        if let StreamEvent::Session(event) = line.event {
            self.flush(before)?;
            return self.header(event, line.at);
        }
        let session = self.session(line.session.as_deref(), line.at)?;
        if self.continues && self.was_written(before, after)? {
            return Ok(());
        }
        let branch = line.branch.as_deref().unwrap_or(MAIN).to_owned();
        let at = line.at;
        let (gate, mut removed) = (self.store.gate(), RedactionCounts::new());
        match line.event {
            StreamEvent::Put(mut put) if !put.kind.is_claim() => {
                gate.value(&mut put.value, &mut removed);
                self.begin(&session, &branch, at, false, before)?;
                self.fact(put, at, number)
            }
            StreamEvent::Put(mut put) => {
                // A secret that only a field's name reveals is not found in the text of the line.
                gate.value(&mut put.value, &mut removed);
                gate.name("id", &put.id)?;
                let value = claim::check(put.kind, &put.value).map_err(invalid)?;
                claim::check_id(&put.id).map_err(invalid)?;
                let change = ClaimChange {
                    added_at: put.created_at,
                    ..ClaimChange::put(Key::new(put.kind, put.id), value)
                };
                self.claim(&session, &branch, at, (number, change), before)
            }
            StreamEvent::Remove(remove) => {
                if !remove.kind.is_claim() {
                    return Err(Error::invalid(format!(
                        "a {} is a fact: what happened is not removed",
                        remove.kind
                    )));
                }
                let change = ClaimChange {
                    expect: ClaimPrecondition::Present,
                    ..ClaimChange::remove(Key::new(remove.kind, remove.id))
                };
                self.claim(&session, &branch, at, (number, change), before)
            }
            StreamEvent::Checkpoint(event) => {
                self.begin(&session, &branch, at, true, before)?;
                self.checkpoint(&event, after)
            }
            StreamEvent::Revision => self.flush(before),
            StreamEvent::Session(_) => Ok(()),
            other => {
                self.flush(before)?;
                self.other(&session, &branch, at, &other, after)
            }
        }
    }

    /// Adds to an error the number of the line that could not be applied; `last` is the number of
    /// the line that was read last.
    pub(super) fn at_failed_line(&self, last: u64, error: Error) -> Error {
        at_line(self.failed_line.unwrap_or(last), error)
    }

    /// Writes what is pending, and begins the session if the stream had no events.
    pub(super) fn finish(&mut self, mark: &StreamPosition) -> Result<()> {
        let flushed = self.flush(mark);
        flushed.map_err(|error| self.at_failed_line(mark.lines, error))?;
        if self.own.is_none()
            && let Some((_, at)) = self.header
        {
            let session = self.session(None, at)?;
            self.note(&session, mark)?;
        }
        // Lines that wrote nothing are covered by the bookmark too.
        self.end(mark)
    }

    /// Writes only the bookmark.
    fn note(&mut self, session: &Session, mark: &StreamPosition) -> Result<()> {
        self.write(session, mark, &mut |_, _, _| Ok((Vec::new(), None)))
    }

    // -- sessions

    /// Returns how many sessions lines were written to.
    pub(super) fn session_count(&self) -> u64 {
        self.has_lines.iter().filter(|has_lines| **has_lines).count() as u64
    }

    fn header(&mut self, event: SessionEvent, at: Timestamp) -> Result<()> {
        claim::check_id(&event.name).map_err(invalid)?;
        // A killed import may have begun the session of this line, and nothing else.
        let begins = self.noted == 0 && self.taken.sessions.is_empty();
        let has_session = begins && self.begun.as_ref().is_some_and(|begun| begun.own.is_some());
        if (self.own.is_none() || has_session) && self.header.is_none() {
            self.header = Some((event, at));
            return Ok(());
        }
        if self.stream.session.is_none() {
            let session = self.session_by_name(&event.name.clone(), Some((event, at)), at)?;
            self.own = Some(session.summary()?.info.name);
        }
        Ok(())
    }

    fn session(&mut self, name: Option<&str>, at: Timestamp) -> Result<Session> {
        if let Some(name) = name {
            claim::check_id(name).map_err(invalid)?;
            let is_own = self.stream.session.is_none()
                && self.header.as_ref().is_some_and(|(event, _)| event.name == name);
            // Only a session that is begun here needs the header.
            let is_new = is_own && !self.sessions.contains_key(name);
            let header = if is_new { self.header.clone() } else { None };
            let session = self.session_by_name(name, header, at)?;
            if is_own && self.own.is_none() {
                self.own = Some(name.to_owned());
            }
            return Ok(session);
        }
        if let Some(own) = self.own.clone() {
            return self.session_by_name(&own, None, at);
        }
        let header = self.header.clone();
        let session = if let Some(chosen) = self.stream.session {
            self.session_by_name(chosen, header, at)?
        } else {
            let name = header.as_ref().map_or(self.stream.name, |(event, _)| &event.name);
            let new = self.new_session(name, header.clone(), at)?;
            self.begin_session(new, Clash::NextName)?
        };
        let name = session.summary()?.info.name;
        self.own = Some(name.clone());
        self.register_session(name, session)
    }

    /// Returns the session with this name; begins it if it does not exist.
    fn session_by_name(
        &mut self,
        name: &str,
        header: Option<(SessionEvent, Timestamp)>,
        at: Timestamp,
    ) -> Result<Session> {
        if let Some(number) = self.sessions.get(name) {
            return Ok(self.store.session_at(*number));
        }
        // A session that waits in the spool has no number yet.
        self.store.engine.drain_before_write()?;
        let session = match self.store.session_named(name)? {
            Some(session) => session,
            None => {
                let new = self.new_session(name, header, at)?;
                self.begin_session(new, Clash::Refuse)?
            }
        };
        self.register_session(name.to_owned(), session)
    }

    fn register_session(&mut self, name: String, session: Session) -> Result<Session> {
        if self.home.is_none() {
            self.home = Some(session.clone());
            self.mark()?;
        }
        self.sessions.insert(name.clone(), session.number);
        // The importer that takes over a staged one needs the names of all its sessions.
        let has_room = self.is_staged || self.taken.sessions.len() < StreamImportReport::MAX_NAMES;
        if add_session(&mut self.has_lines, session.number) && has_room {
            self.taken.sessions.push(name);
        }
        Ok(session)
    }

    fn new_session(
        &self,
        name: &str,
        header: Option<(SessionEvent, Timestamp)>,
        at: Timestamp,
    ) -> Result<NewSession> {
        let Some((event, begun)) = header else {
            let new = NewSession::imported(name);
            return Ok(NewSession { started_at: Some(at), ..new });
        };
        // Only one session may have an agent's id, since hooks find a session by it.
        let taken = match &event.agent_session {
            Some(id) => self.store.agent_session(id)?.is_some(),
            None => false,
        };
        Ok(NewSession {
            kind: event.kind,
            agent: event.agent,
            agent_session: event.agent_session.filter(|_| !taken),
            started_at: Some(event.started_at.unwrap_or(begun)),
            ..NewSession::imported(name)
        })
    }

    // -- revisions and facts

    /// Writes what is pending unless a line of this session, branch and time can be added to it.
    fn begin(
        &mut self,
        session: &Session,
        branch: &str,
        at: Timestamp,
        claims: bool,
        before: &StreamPosition,
    ) -> Result<()> {
        let goes_on = self.pending.as_ref().is_none_or(|pending| {
            let same = pending.at == at && pending.branch == branch;
            pending.session.number == session.number
                && (same || pending.changes.is_empty())
                && pending.facts.len() < PAGE_FACTS
        });
        if !goes_on {
            self.flush(before)?;
        }
        let pending = self.pending.get_or_insert_with(|| PendingPuts {
            session: session.clone(),
            branch: branch.to_owned(),
            at,
            changes: Vec::new(),
            facts: Vec::new(),
            objects: Vec::new(),
        });
        if claims || pending.changes.is_empty() {
            branch.clone_into(&mut pending.branch);
            pending.at = at;
        }
        Ok(())
    }

    fn claim(
        &mut self,
        session: &Session,
        branch: &str,
        at: Timestamp,
        change: (u64, ClaimChange),
        before: &StreamPosition,
    ) -> Result<()> {
        self.begin(session, branch, at, true, before)?;
        self.pending.as_mut().expect("just begun").changes.push(change);
        Ok(())
    }

    fn fact(&mut self, put: PutEvent, at: Timestamp, number: u64) -> Result<()> {
        claim::check_id(&put.id).map_err(invalid)?;
        if put.created_at.is_some() {
            return Err(Error::invalid("a fact has no 'created_at': its time is the line's 'at'"));
        }
        let value = claim::check(put.kind, &put.value).map_err(invalid)?;
        if has_reference(&value) {
            return Err(invalid("the value is a reference to a text: write the text itself"));
        }
        let pending = self.pending.as_mut().expect("begun by the caller");
        let value = match value {
            Value::Map(fields) => {
                let shortened = fields.into_iter().map(|(name, value)| match value {
                    Value::Text(text) => match long_text(&text) {
                        Some((reference, object)) => {
                            pending.objects.push(object);
                            (name, reference)
                        }
                        None => (name, Value::Text(text)),
                    },
                    value => (name, value),
                });
                Value::Map(shortened.collect())
            }
            value => value,
        };
        pending.facts.push(Fact {
            kind: put.kind,
            id: put.id,
            at,
            origin: FactOrigin::Imported,
            place: number,
            recorded_at: self.act.now,
            value,
        });
        Ok(())
    }

    fn flush(&mut self, mark: &StreamPosition) -> Result<()> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        self.write_pending(pending, None, mark)
    }

    fn checkpoint(&mut self, event: &CheckpointEvent, after: &StreamPosition) -> Result<()> {
        event.tags.iter().try_for_each(|tag| check_tag(tag))?;
        let pending = self.pending.take().expect("begun by the caller");
        self.write_pending(pending, Some(event), after)
    }

    fn write_pending(
        &mut self,
        pending: PendingPuts,
        event: Option<&CheckpointEvent>,
        mark: &StreamPosition,
    ) -> Result<()> {
        let PendingPuts { session, branch, at, changes, facts, objects } = pending;
        let number = session.number;
        let count = facts.len() as u64;
        let pages = fact_pages(number, None, facts)?;
        let (lines, changes): (Vec<u64>, Vec<ClaimChange>) = changes.into_iter().unzip();
        let mut memo = None;
        let id = event.map(|_| random()).transpose()?.map(CheckpointId::from_bytes);
        let (mut revisions, mut checkpoints) = (0, 0);
        let written = self.write(&session, mark, &mut |context, refs, operation| {
            let on = refs.branch_by_name(&branch)?;
            let place = CommitTarget { session: number, branch: on, time: at, operation };
            let mut planned = match changes.as_slice() {
                [] => None,
                changes => {
                    check_not_before_head(refs, on, at)?;
                    revision_plan::plan(context, place, changes, &mut memo)?
                }
            };
            let mut all = objects.clone();
            all.extend(pages.iter().cloned());
            all.extend(planned.iter_mut().flat_map(|planned| mem::take(&mut planned.changes)));
            revisions = u64::from(planned.is_some());
            if let (Some(event), Some(id)) = (event, id) {
                let head = planned.as_ref().map(|planned| planned.head.sequence);
                let made = make_checkpoint(context, refs, (number, on), (id, at), event, head)?;
                checkpoints = u64::from(made.is_some());
                all.extend(made.map(|made| RecordChange::checkpoint(number, made)));
            }
            Ok((all, planned.map(|planned| (on, planned))))
        });
        if let Err(error) = written {
            let named = match &error {
                Error::Dangling { from, .. } => {
                    let named = changes.iter().rposition(|change| change.key.to_string() == *from);
                    named.and_then(|place| lines.get(place)).or(Some(&mark.lines))
                }
                _ => lines.last(),
            };
            self.failed_line = named.copied();
            return Err(error);
        }
        self.taken.facts += count;
        self.taken.revisions += revisions;
        self.taken.checkpoints += checkpoints;
        Ok(())
    }

    // -- branches, restores, tags

    fn other(
        &mut self,
        session: &Session,
        branch: &str,
        at: Timestamp,
        event: &StreamEvent,
        after: &StreamPosition,
    ) -> Result<()> {
        let number = session.number;
        let mut revisions = 0;
        self.write(session, after, &mut |context, refs, operation| {
            let change = match event {
                StreamEvent::Branch(event) => {
                    return Ok((branch_changes(context, refs, number, at, event)?, None));
                }
                StreamEvent::Switch(to) => {
                    let to = refs.branch_by_name(&to.branch)?;
                    RecordChange::switched(number, to, at)
                }
                StreamEvent::Merge(from) => {
                    let branch = refs.branch_by_name(&from.branch)?;
                    let metadata = refs.branch(branch)?.latest_change().metadata.clone();
                    let change = BranchChange { time: at, status: BranchStatus::Merged, metadata };
                    RecordChange::branch_changed(number, branch, change)
                }
                StreamEvent::Tag(event) => {
                    RecordChange::checkpoint(number, retagged_checkpoint(context, number, event)?)
                }
                StreamEvent::Restore(target) => {
                    let on = refs.branch_by_name(branch)?;
                    check_not_before_head(refs, on, at)?;
                    let place = CommitTarget { session: number, branch: on, time: at, operation };
                    let to = resolve_selector(context, number, branch, target)?;
                    let planned = session.plan_reset(context, place, to)?;
                    let head = refs.branch(on)?.head;
                    let now = head.map_or_else(Default::default, |head| (head.digest, head.count));
                    if now == (planned.head.digest, planned.head.count) {
                        return Ok((Vec::new(), None));
                    }
                    revisions = 1;
                    return Ok((planned.changes, None));
                }
                _ => return Ok((Vec::new(), None)),
            };
            Ok((vec![change], None))
        })?;
        self.taken.revisions += revisions;
        Ok(())
    }

    /// Returns the bookmark at a position: it has the session for the next lines that name none.
    pub(super) fn bookmark(&self, mark: &StreamPosition) -> BookmarkRow {
        BookmarkRow {
            blob: String::new(),
            bytes: mark.bytes,
            lines: mark.lines,
            blocks: mark.hash.clone(),
            carry: RecordBytes(self.own.clone().unwrap_or_default().into_bytes()),
            cleaned: None,
        }
    }

    /// Returns the change that moves the bookmark of the stream, in the session that has it.
    pub(super) fn bookmark_change(&self, home: SessionNumber, row: BookmarkRow) -> RecordChange {
        let source = self.stream.source.to_owned();
        RecordChange::Bookmark { session: home, source, bookmark: Some(Box::new(row)) }
    }

    /// Writes a record that says up to where the stream is written in its session. Writes in the
    /// spool are moved to the journal at each check.
    fn write(
        &mut self,
        session: &Session,
        mark: &StreamPosition,
        plan: &mut dyn FnMut(
            &PlanContext<'_>,
            &SessionRefs,
            &crate::model::Operation,
        ) -> Result<PlannedChanges>,
    ) -> Result<()> {
        let number = session.number;
        let home = self.home.as_ref().map_or(number, |home| home.number);
        let operation = self.operation_in(number)?;
        let bookmark = (home == number && mark.bytes > 0)
            .then(|| self.bookmark_change(home, self.bookmark(mark)));
        let (source, noted) = (self.stream.source, self.noted);
        let engine = &self.store.engine;
        let moved = engine.commit_written(CommitDurability::Later, &mut |context| {
            check_untouched(&context.refs, home, source, noted)?;
            let refs = session_refs(&context.refs, number)?;
            let (mut changes, planned) = plan(context, refs, &operation)?;
            if let Some(bookmark) = &bookmark {
                changes.push(bookmark.clone());
            } else if home != number && !changes.is_empty() {
                changes.push(written_mark(home, source, mark));
            }
            // The record stays in memory until it is applied to the index.
            changes.shrink_to_fit();
            let record = Record { operation: operation.clone(), changes };
            Ok(((!record.changes.is_empty()).then_some(record), planned))
        })?;
        if let Some((branch, planned)) = moved {
            let position = engine.follower.end();
            let (from, to) = (planned.parent, planned.head.id);
            engine.heads.moved(position, (number, branch), from, to, &planned.entries);
        }
        if home == number {
            self.noted = mark.bytes;
        }
        self.written_lines = mark.lines;
        self.records += 1;
        if self.records.is_multiple_of(RECORDS_BETWEEN_CHECKS) {
            if self.is_staged {
                self.next_bookmark = Some(self.bookmark(mark));
                return Ok(());
            }
            self.move_bookmark(self.bookmark(mark))?;
            let limit = (self.records * APPLY_BYTES_PER_RECORD).min(MAX_APPLY_BYTES);
            self.store.maintain(limit.max(APPLY_BYTES))?;
        }
        Ok(())
    }
}

/// Notes that a line was written to a session. Returns whether it was the first line there.
fn add_session(has_lines: &mut Vec<bool>, session: SessionNumber) -> bool {
    let place = session as usize;
    if place >= has_lines.len() {
        has_lines.resize(place + 1, false);
    }
    has_lines.get_mut(place).is_some_and(|has_lines| !mem::replace(has_lines, true))
}

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::invalid(error.to_string())
}

/// Returns whether a value contains a reference to a text.
fn has_reference(value: &Value) -> bool {
    match value {
        Value::Map(fields) => {
            fields.contains_key(TextRef::FIELD) || fields.values().any(has_reference)
        }
        Value::List(items) => items.iter().any(has_reference),
        _ => false,
    }
}

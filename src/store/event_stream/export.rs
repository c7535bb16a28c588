//! Exports a session as an event stream.

mod unnumbered_event;

use crate::backend::{ScanDirection, Snapshot};
use crate::engine::lineage::{self, RevisionRef};
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::{MAIN, session as session_refs};
use crate::engine::{checkpoint, compare, timeline};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    BranchChange, BranchEvent, CheckpointEvent, EventLine, PutEvent, RemoveEvent, ResetSource,
    RevisionHeader, RevisionSelector, SequenceRow, SessionEvent, SessionRefs, StreamEvent,
};
use crate::model::{BranchNumber, BranchStatus, Checkpoint, SessionNumber, Timestamp};
use crate::store::bundle::with_errors_of;
use crate::store::session::Session;
use std::collections::{BTreeMap, BTreeSet};
use unnumbered_event::UnnumberedEvent;

/// Extracts a text from a JSON document by the pointer of a reference.
pub type TextResolver<'a> = &'a dyn Fn(&[u8], &str) -> Option<String>;

type EventLineSink<'a> = &'a mut dyn FnMut(EventLine) -> Result<()>;

/// Checks that no revision of a session was lost before a repair: a stream without it would be
/// another history.
fn refuse_lost(view: &ReadSnapshot, number: SessionNumber, name: &str) -> Result<()> {
    const NAMED: usize = 8;
    let lost = lineage::lost_revisions(view, number)?;
    if lost.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = lost.iter().take(NAMED).map(|number| format!("#{number}")).collect();
    let more = if lost.len() > NAMED { ", ..." } else { "" };
    Err(Error::invalid(format!(
        "'{name}' cannot be written as a stream: a repair could not save {}{more} of its revisions, \
        and a stream without them would be another history ('forge log' shows what is left, \
        'forge state' what is known now)",
        named.join(", ")
    )))
}

impl Session {
    /// Writes this session as an event stream, line by line. If the stream is imported into an
    /// empty store and exported again, it has the same bytes.
    ///
    /// # Errors
    /// Any error of `write`; [`Error::Invalid`], before anything is written, if revisions were lost
    /// before a repair; [`Error::Corrupt`] if a text of a fact is missing; also if the store cannot
    /// be read or is damaged.
    pub fn export_events<E: From<Error>>(
        &self,
        resolve: TextResolver<'_>,
        write: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        with_errors_of(write, |write| self.stream(resolve, &mut |line| write(&line.to_line())))
    }

    fn stream(&self, resolve: TextResolver<'_>, sink: EventLineSink<'_>) -> Result<()> {
        let view = self.view()?;
        let refs = session_refs(&view.refs, self.number)?.clone();
        let info = &refs.info;
        refuse_lost(&view, self.number, &info.name)?;
        sink(EventLine {
            at: info.started_at,
            session: None,
            branch: None,
            event: StreamEvent::Session(SessionEvent {
                name: info.name.clone(),
                kind: info.kind,
                agent: info.agent.clone(),
                agent_session: info.agent_session.clone(),
                started_at: None,
            }),
        })?;
        let mut writer = EventStreamWriter {
            session: self,
            view: &view,
            names: names(&refs),
            changes: refs
                .branches
                .iter()
                .map(|branch| effective_changes(&branch.changes))
                .collect(),
            refs: &refs,
            resolve,
            made: BTreeSet::from([0]),
            emitted: BTreeMap::new(),
            open: None,
            unnumbered: Vec::new(),
            sink,
        };
        writer.unnumbered = writer.collect()?;
        writer.all()
    }
}

/// Returns the names of the branches in the stream. An undone branch whose name is used again gets
/// another name.
fn names(refs: &SessionRefs) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (place, branch) in refs.branches.iter().enumerate() {
        let mut name = branch.name.clone();
        let taken =
            |name: &str, names: &[String]| {
                names.iter().any(|other| other == name)
                    || refs.branches.iter().enumerate().any(|(other, branch)| {
                        other != place && !branch.hidden && branch.name == name
                    })
            };
        let mut count = 1;
        while branch.hidden && taken(&name, &names) {
            count += 1;
            name = format!("{}.{count}", branch.name);
        }
        names.push(name);
    }
    names
}

/// Writes the lines of the stream of a session.
pub(super) struct EventStreamWriter<'a> {
    pub(super) session: &'a Session,
    view: &'a ReadSnapshot,
    pub(super) refs: &'a SessionRefs,
    names: Vec<String>,
    /// The effective changes of each branch.
    changes: Vec<Vec<BranchChange>>,
    pub(super) resolve: TextResolver<'a>,
    /// The branches that lines may name, because they were written.
    made: BTreeSet<BranchNumber>,
    /// The revisions written so far, by branch: number and effective time.
    emitted: BTreeMap<BranchNumber, Vec<(u64, Timestamp)>>,
    /// The time and branch of the revision to which a further `put` line would belong, if there is
    /// one.
    open: Option<(Timestamp, BranchNumber)>,
    /// The events without a number that are not written yet, in order.
    unnumbered: Vec<(Timestamp, UnnumberedEvent)>,
    sink: EventLineSink<'a>,
}

impl EventStreamWriter<'_> {
    fn all(&mut self) -> Result<()> {
        let number = self.session.number;
        let mut from = 0;
        loop {
            const ROWS: usize = 1000;
            let first = of(number).number(from).build();
            let end = of(number).end();
            let rows =
                self.view.scan(key::SEQUENCES, &first, &end, ScanDirection::Ascending, ROWS)?;
            let last = rows.len() < ROWS;
            for (place, row) in rows {
                let sequence = key::last_number(&place).unwrap_or(0);
                from = sequence + 1;
                match SequenceRow::decode(&row).map_err(Error::corrupt("a sequence number"))? {
                    SequenceRow::Revision(branch) => {
                        let at = RevisionRef { branch, sequence };
                        let (head, header) = timeline::head_at(self.view, number, at)?;
                        self.prepare(sequence, head.effective, branch)?;
                        self.revision(at, &header, head.effective)?;
                    }
                    SequenceRow::Folded(..) => {}
                    SequenceRow::Checkpoint(_) => {
                        let found = checkpoint::by_sequence(self.view, number, sequence)?;
                        if let Some(found) = found {
                            self.prepare(sequence, found.time, found.branch)?;
                            self.checkpoint(&found, sequence)?;
                        }
                    }
                }
            }
            if last {
                break;
            }
        }
        self.release(u64::MAX, Timestamp::from_micros(i64::MAX))
    }

    /// Returns the branches that the stream needs: those with revisions or checkpoints, and the
    /// bases of these and of all visible branches.
    fn used(&self) -> Result<BTreeSet<BranchNumber>> {
        let number = self.session.number;
        let mut used: BTreeSet<BranchNumber> = BTreeSet::new();
        for one in checkpoint::list(self.view, number, &checkpoint::CheckpointFilter::default())? {
            used.insert(one.branch);
        }
        for (place, branch) in (0..).zip(&self.refs.branches) {
            let base = branch.base.map_or(0, |(_, sequence)| sequence);
            if branch.head.is_some_and(|head| head.sequence > base) {
                used.insert(place);
            }
        }
        let numbered: Vec<_> = (0..).zip(&self.refs.branches).collect();
        for (place, branch) in numbered.into_iter().rev() {
            if (!branch.hidden || used.contains(&place))
                && let Some((base, _)) = branch.base
            {
                used.insert(base);
            }
        }
        Ok(used)
    }

    fn name(&self, branch: BranchNumber) -> &str {
        self.names.get(branch as usize).map_or(MAIN, String::as_str)
    }

    fn line(&mut self, at: Timestamp, branch: BranchNumber, event: StreamEvent) -> Result<()> {
        let branch = (branch > 0).then(|| self.name(branch).to_owned());
        (self.sink)(EventLine { at, session: None, branch, event })
    }

    fn base(&self, branch: BranchNumber) -> Option<(BranchNumber, u64)> {
        self.refs.branches.get(branch as usize)?.base
    }

    /// Writes the line that creates a branch. Event `next` follows.
    fn make(&mut self, branch: BranchNumber, next: u64) -> Result<()> {
        let Some(own) = self.refs.branches.get(branch as usize) else { return Ok(()) };
        let Some(first) = own.changes.first() else { return Ok(()) };
        let (from, sequence) = own.base.unwrap_or_default();
        let mut event = branch_event(self.name(branch), None, first);
        event.from = Some(self.name(from).to_owned());
        event.base = if self.head(from) == sequence {
            None
        } else {
            Some(self.target(from, from, sequence, next)?)
        };
        self.made.insert(branch);
        self.open = None;
        self.line(first.time, 0, StreamEvent::Branch(event))
    }

    // -- events with a number

    /// Writes what precedes the event with this number.
    fn prepare(&mut self, sequence: u64, time: Timestamp, branch: BranchNumber) -> Result<()> {
        self.release(sequence, time)?;
        self.needed(branch, sequence)
    }

    /// Writes a branch and its bases if they are not written yet. A clock that went back may give a
    /// revision or checkpoint an earlier time than its branch.
    fn needed(&mut self, branch: BranchNumber, next: u64) -> Result<()> {
        let mut missing = Vec::new();
        let mut one = Some(branch);
        while let Some(branch) = one.filter(|branch| !self.made.contains(branch)) {
            missing.push(branch);
            one = self.base(branch).map(|(base, _)| base);
        }
        if missing.is_empty() {
            return Ok(());
        }
        self.unnumbered.retain(
            |(_, event)| !matches!(event, UnnumberedEvent::Make(one) if missing.contains(one)),
        );
        missing.into_iter().rev().try_for_each(|branch| self.make(branch, next))
    }

    fn revision(
        &mut self,
        at: RevisionRef,
        header: &RevisionHeader,
        time: Timestamp,
    ) -> Result<()> {
        let number = self.session.number;
        let refs = &self.view.refs;
        let parent = timeline::parent_of(self.view, refs, number, at)?;
        let changes = compare::compare(self.view, refs, number, parent, Some(at))?;
        if changes.is_empty() {
            return Ok(());
        }
        if let Some(reset) = &header.reset {
            let target = match reset {
                ResetSource::Empty => {
                    RevisionSelector { nothing: true, ..RevisionSelector::default() }
                }
                ResetSource::To(to) => {
                    let on = self.place_of(to.sequence)?.branch;
                    self.target(at.branch, on, to.sequence, at.sequence)?
                }
            };
            self.line(time, at.branch, StreamEvent::Restore(target))?;
            self.open = None;
        } else {
            if self.open == Some((time, at.branch)) {
                self.line(time, at.branch, StreamEvent::Revision)?;
            }
            for change in changes {
                let (kind, id) = (change.key.kind, change.key.id);
                let event = match change.new {
                    None => StreamEvent::Remove(RemoveEvent { kind, id }),
                    Some(new) => {
                        let usual = change.old.map_or(time, |old| old.added_at);
                        let created_at = (new.added_at != usual).then_some(new.added_at);
                        StreamEvent::Put(PutEvent { kind, id, value: new.value, created_at })
                    }
                };
                self.line(time, at.branch, event)?;
            }
            self.open = Some((time, at.branch));
        }
        self.emitted.entry(at.branch).or_default().push((at.sequence, time));
        Ok(())
    }

    fn place_of(&self, sequence: u64) -> Result<RevisionRef> {
        match lineage::sequence_row(self.view, self.session.number, sequence)? {
            Some(SequenceRow::Revision(branch)) => Ok(RevisionRef { branch, sequence }),
            _ => Err(Error::missing(format!("revision #{sequence}"))),
        }
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint, next: u64) -> Result<()> {
        let branch = checkpoint.branch;
        let revision = checkpoint.revision.unwrap_or(0);
        let of = if self.same(self.head(branch), revision)? {
            None
        } else {
            let on = if revision == 0 { branch } else { self.place_of(revision)?.branch };
            Some(self.target(branch, on, revision, next)?)
        };
        let event = CheckpointEvent {
            message: checkpoint.message.clone(),
            tags: checkpoint.tags.clone(),
            trigger: checkpoint.trigger,
            body: self.expand_body(checkpoint.body.clone())?,
            key: checkpoint.key.clone(),
            of,
        };
        self.open = None;
        self.line(checkpoint.time, branch, StreamEvent::Checkpoint(event))
    }

    // -- how revisions are named

    /// Returns the number of the last revision that was written of a branch or of its bases; 0 if
    /// there is none.
    fn head(&self, branch: BranchNumber) -> u64 {
        if let Some((sequence, _)) = self.emitted.get(&branch).and_then(|all| all.last()) {
            return *sequence;
        }
        self.base(branch).map_or(0, |(base, sequence)| {
            self.written_ancestor(base, sequence).map_or(0, |it| it.1)
        })
    }

    /// Returns the branch and number of the revision that was written in place of this one: itself,
    /// or the last one before it that changed something.
    fn written_ancestor(&self, branch: BranchNumber, sequence: u64) -> Option<(BranchNumber, u64)> {
        let (mut branch, mut sequence) = (branch, sequence);
        // A loop instead of recursion: the chain of base branches may be arbitrarily long.
        loop {
            let own = self.emitted.get(&branch).into_iter().flatten();
            if let Some((found, _)) = own.rev().find(|(other, _)| *other <= sequence) {
                return Some((branch, *found));
            }
            let (base, from) = self.base(branch)?;
            (branch, sequence) = (base, from.min(sequence));
        }
    }

    /// Returns whether the written revision `head` has the state of a revision.
    fn same(&self, head: u64, revision: u64) -> Result<bool> {
        if head == revision || revision == 0 {
            return Ok(head == revision);
        }
        let at = self.place_of(revision)?;
        Ok(self.written_ancestor(at.branch, revision).map_or(0, |it| it.1) == head)
    }

    /// Returns how a line of the branch `of` names the revision `sequence` of the branch `on`.
    /// Event `next` follows.
    fn target(
        &self,
        of: BranchNumber,
        on: BranchNumber,
        sequence: u64,
        next: u64,
    ) -> Result<RevisionSelector> {
        let ancestor = if sequence == 0 { None } else { self.written_ancestor(on, sequence) };
        let Some((on, sequence)) = ancestor else {
            return Ok(RevisionSelector { nothing: true, ..RevisionSelector::default() });
        };
        let own = self.emitted.get(&on).map_or(&[][..], Vec::as_slice);
        let time = own.iter().find(|(other, _)| *other == sequence).map(|(_, time)| *time);
        let after = own
            .iter()
            .filter(|(other, at)| *other > sequence && *other < next && Some(*at) == time);
        Ok(RevisionSelector {
            at: time,
            branch: (on != of).then(|| self.name(on).to_owned()),
            back: after.count() as u64,
            tag: None,
            nothing: false,
        })
    }
}

/// Returns the creation of a branch and its effective changes. If a clock went back, a change that
/// was recorded later for an earlier time replaces all changes from that time on. A change to the
/// same values is left out.
fn effective_changes(changes: &[BranchChange]) -> Vec<BranchChange> {
    let mut counting: Vec<&BranchChange> = Vec::new();
    for change in changes {
        while counting.len() > 1 && counting.last().is_some_and(|last| last.time >= change.time) {
            counting.pop();
        }
        let same = |last: &&BranchChange| {
            (last.status, &last.metadata) == (change.status, &change.metadata)
        };
        if !counting.last().is_some_and(same) {
            counting.push(change);
        }
    }
    counting.into_iter().cloned().collect()
}

/// Returns an event with the fields of a branch that differ from `old`.
fn branch_event(name: &str, old: Option<&BranchChange>, new: &BranchChange) -> BranchEvent {
    let none =
        BranchChange { time: new.time, status: BranchStatus::Active, metadata: Default::default() };
    let old = old.unwrap_or(&none);
    let (before, now) = (&old.metadata, &new.metadata);
    BranchEvent {
        name: name.to_owned(),
        from: None,
        base: None,
        status: (old.status != new.status).then_some(new.status),
        hypothesis: (before.hypothesis != now.hypothesis).then(|| now.hypothesis.clone()),
        approach: (before.approach != now.approach).then(|| now.approach.clone()),
        success_criteria: (before.success_criteria != now.success_criteria)
            .then(|| now.success_criteria.clone()),
        results: (before.results != now.results).then(|| now.results.clone()),
        extra: (before.extra != now.extra).then(|| now.extra.clone()),
        taken_back: None,
    }
}

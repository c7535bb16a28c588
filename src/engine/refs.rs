//! Advances refs by records, and looks up sessions and branches in them.

use super::lineage;
use super::row_overlay::RowOverlay;
pub(crate) use super::session_rows::{JOINED, UNFINISHED, WRITTEN};
use super::session_rows::{SessionLookup, put_session, stored_session};
use super::session_table::{OpenGeneration, SessionTable};
use crate::backend::Snapshot;
use crate::error::{Error, Result};
use crate::format::{
    BookmarkRef, BranchChange, BranchHead, BranchRefs, DroppedText, HeadRow, Record, RecordChange,
    RevisionHeader, SessionRefs, SessionRemoval, StoreHead, encode_session, key,
};
use crate::model::{
    BranchMetadata, BranchNumber, BranchStatus, Checkpoint, OperationId, SessionId, SessionKind,
    SessionMetadata, SessionNumber, Timestamp,
};
use std::sync::Arc;

/// Name of every session's first branch.
pub(crate) const MAIN: &str = "main";

/// The refs: the present state of all sessions, and which one is current.
#[derive(Clone, Debug, Default)]
pub(crate) struct StoreRefs {
    pub(crate) sessions: SessionTable,
    /// The session that was chosen to be current.
    pub(crate) pinned: Option<SessionNumber>,
    /// The session in which a person or a hook last worked.
    pub(crate) last_used: Option<SessionNumber>,
    /// The number of purges of secrets: when it changes, caches of older content must be discarded.
    pub(crate) purges: u64,
}

impl StoreRefs {
    /// Returns the refs at the beginning of a segment.
    pub(crate) fn begin(head: &StoreHead) -> Self {
        Self {
            sessions: SessionTable::begin(head),
            pinned: head.pinned,
            last_used: head.last_used,
            purges: head.purges,
        }
    }

    /// Returns the refs at the position of a generation.
    pub(crate) fn of_generation(head: &StoreHead, generation: Arc<dyn Snapshot>) -> Self {
        let mut refs = Self::begin(head);
        refs.sessions.set_source(Arc::new(OpenGeneration(generation)));
        refs
    }

    /// Returns the head of the store, with which a segment begins.
    pub(crate) fn head(&self) -> StoreHead {
        StoreHead { recent: self.sessions.recent(), ..self.head_without_sessions() }
    }

    /// Returns the head of the store without the sessions used last.
    pub(crate) fn head_without_sessions(&self) -> StoreHead {
        StoreHead {
            pinned: self.pinned,
            last_used: self.last_used,
            purges: self.purges,
            ..self.sessions.totals()
        }
    }
}

/// Returns the session of an agent's own session id: the session that it was joined to, otherwise
/// the session that it began.
pub(crate) fn agent_session(refs: &StoreRefs, agent: &str) -> Result<Option<SessionNumber>> {
    let joined = format!("{JOINED}{agent}");
    for lookup in [SessionLookup::Source(&joined), SessionLookup::Agent(agent)] {
        if let Some((number, _)) = refs.sessions.find(lookup)?.first() {
            return Ok(Some(*number));
        }
    }
    Ok(None)
}

/// Iterates over the sessions that were not dropped.
pub(crate) fn visible_sessions(
    refs: &StoreRefs,
) -> impl Iterator<Item = Result<(SessionNumber, Arc<SessionRefs>)>> {
    let visible = |one: &Result<(_, Arc<SessionRefs>)>| {
        one.as_ref().map_or(true, |(_, session)| session.removal.is_none())
    };
    refs.sessions.all().filter(visible)
}

/// Returns the visible session of this kind with exactly this name.
pub(crate) fn of_kind(
    refs: &StoreRefs,
    kind: SessionKind,
    name: &str,
) -> Result<Option<SessionNumber>> {
    let found = refs.sessions.find(SessionLookup::Name(name))?;
    let mut of_kind = found.into_iter().filter(|(_, session)| session.info.kind == kind);
    Ok(of_kind.next().map(|(number, _)| number))
}

/// Returns the session with this id that was not removed.
pub(crate) fn present_session(refs: &StoreRefs, id: SessionId) -> Result<Option<SessionNumber>> {
    let found = refs.sessions.find(SessionLookup::Id(id))?;
    let mut present = found.into_iter().filter(|(_, session)| session.removal.is_none());
    Ok(present.next().map(|(number, _)| number))
}

/// Returns the first of the names `name-2`, `name-3`, ... that no session of this kind has.
pub(crate) fn free_name(refs: &StoreRefs, kind: SessionKind, name: &str) -> Result<String> {
    for count in 2_u64.. {
        let numbered = format!("{name}-{count}");
        if of_kind(refs, kind, &numbered)?.is_none() {
            return Ok(numbered);
        }
    }
    Err(Error::Internal(format!("every name like '{name}' is taken")))
}

/// The message for a session that was permanently removed.
pub(crate) const REMOVED: &str =
    "the session was removed, or replaced when it was pulled: open it again";

/// Checks that a record can be applied to these refs, and does not change a dropped session.
pub(crate) fn check_record(refs: &StoreRefs, record: &Record) -> Result<()> {
    check_sessions_visible(refs, record)?;
    // A record that cannot be applied makes the store unreadable. Several revisions are numbered by
    // their plan, so they are tried on a copy.
    let is_revision = |change: &&RecordChange| matches!(change, RecordChange::Revision { .. });
    if record.changes.iter().filter(is_revision).count() > 1 {
        advance(&mut refs.clone(), record)?;
    }
    Ok(())
}

fn check_sessions_visible(refs: &StoreRefs, record: &Record) -> Result<()> {
    // A sweep also applies to dropped sessions.
    let swept = |change: &&RecordChange| matches!(change, RecordChange::Swept { .. });
    let checked_changes = record.changes.iter().filter(|change| !swept(change));
    let is_shown = |number: SessionNumber| {
        let shows = |change: &RecordChange| matches!(change, RecordChange::SessionShown { of, .. } if *of == number);
        record.changes.iter().any(shows)
    };
    for number in checked_changes.filter_map(RecordChange::session) {
        let removal = refs.sessions.get(number)?.and_then(|session| session.removal);
        let is_removed = removal.is_some_and(|removal| removal != SessionRemoval::Incomplete);
        if removal == Some(SessionRemoval::Swept) {
            return Err(Error::Conflict(REMOVED.to_owned()));
        }
        if is_removed && !is_shown(number) {
            return Err(Error::Conflict(
                "the session was removed: 'forge session restore NAME' brings it back if it was \
                dropped, and an undo of the pruning if it was pruned; or begin another session"
                    .to_owned(),
            ));
        }
    }
    Ok(())
}

pub(crate) fn begin(info: &SessionMetadata) -> SessionRefs {
    let main = BranchRefs {
        name: MAIN.to_owned(),
        base: None,
        head: None,
        changes: vec![BranchChange {
            time: info.started_at,
            status: BranchStatus::Active,
            metadata: BranchMetadata::default(),
        }],
        hidden: false,
    };
    SessionRefs {
        info: info.clone(),
        next_sequence: 1,
        branches: vec![main],
        current_branch: 0,
        first_event: None,
        last_event: None,
        checkpoints: 0,
        last_checkpoint: None,
        pages: 0,
        facts: 0,
        hidden: Vec::new(),
        bookmarks: Vec::new(),
        schedule: None,
        dropped: Vec::new(),
        removal: None,
    }
}

pub(crate) fn session(refs: &StoreRefs, number: SessionNumber) -> Result<&SessionRefs> {
    refs.sessions.get(number)?.ok_or_else(|| unknown_session(number))
}

fn unknown_session(number: SessionNumber) -> Error {
    Error::Internal(format!("a record names session {number}, which is not there"))
}

impl SessionRefs {
    fn advance(&mut self, change: &RecordChange) -> Result<()> {
        match change {
            RecordChange::Branch { name, base, head, change, .. } => {
                self.branches.push(BranchRefs {
                    name: name.clone(),
                    base: Some((*base, head.map_or(0, |head| head.sequence))),
                    head: *head,
                    changes: vec![BranchChange::clone(change)],
                    hidden: false,
                });
            }
            RecordChange::BranchChanged { branch, change, .. } => {
                self.branch_mut(*branch)?.changes.push(BranchChange::clone(change));
            }
            RecordChange::BranchHidden { branch, hidden, .. } => {
                // Another store may undo the creation of the branch that is checked out here.
                let left_for = self.left_for(*branch)?.filter(|_| *hidden);
                self.current_branch = left_for.unwrap_or(self.current_branch);
                self.branch_mut(*branch)?.hidden = *hidden;
            }
            RecordChange::Switched { branch, elsewhere: false, .. } => {
                self.current_branch = self.visible_branch(*branch)?;
            }
            RecordChange::SessionDropped { pruning, .. } => {
                self.removal = Some(SessionRemoval::Pruned(*pruning));
            }
            RecordChange::SessionShown { .. } => self.removal = None,
            RecordChange::SessionAbandoned { .. } => self.remove(),
            RecordChange::TextDropped { blob, bytes, pruning, .. } => {
                self.drop_text(blob, *bytes, Some(*pruning));
            }
            RecordChange::TextShown { blob, bytes, .. }
            | RecordChange::TextMissing { blob, bytes, .. } => self.drop_text(blob, *bytes, None),
            RecordChange::Swept { operation, .. } => self.sweep(*operation),
            RecordChange::Revision { header, .. } => self.add_revision(&header.0)?,
            RecordChange::Checkpoint { checkpoint, .. } => {
                if self.is_new(checkpoint) {
                    self.next_sequence += 1;
                    self.checkpoints += 1;
                }
                self.happened(checkpoint.time, checkpoint.time);
                self.last_checkpoint = self.last_checkpoint.max(Some(checkpoint.time));
            }
            RecordChange::CheckpointShown { checkpoint, .. } => {
                self.checkpoints += 1;
                // A checkpoint that replaces an earlier one may have a new time.
                self.happened(checkpoint.time, checkpoint.time);
                self.last_checkpoint = self.last_checkpoint.max(Some(checkpoint.time));
            }
            RecordChange::CheckpointHidden { last, .. } => {
                self.checkpoints = self.checkpoints.saturating_sub(1);
                self.last_checkpoint = *last;
            }
            RecordChange::Facts { count, first, last, .. } => {
                self.pages += 1;
                self.facts += count;
                self.happened(*first, *last);
            }
            RecordChange::Bookmark { source, bookmark, .. } => {
                self.bookmarks.retain(|known| known.source != *source);
                let source = source.clone();
                if let Some(bookmark) = bookmark {
                    self.bookmarks.push(BookmarkRef { source, bytes: bookmark.bytes });
                }
            }
            RecordChange::TakesBack { operation, facts_hidden, .. } => {
                self.hidden.retain(|known| known != operation);
                if *facts_hidden {
                    self.hidden.push(*operation);
                }
            }
            RecordChange::Schedule { every_micros, .. } => self.schedule = *every_micros,
            RecordChange::Head(_)
            | RecordChange::Session { .. }
            | RecordChange::SessionBegun { .. }
            | RecordChange::SessionReplaced { .. }
            | RecordChange::Switched { elsewhere: true, .. }
            | RecordChange::Pinned { .. }
            | RecordChange::Used { .. }
            | RecordChange::Object { .. }
            | RecordChange::Segment { .. }
            | RecordChange::SweptAhead { .. }
            | RecordChange::Pruned { .. }
            | RecordChange::Folded { .. }
            | RecordChange::Unfolded { .. } => {}
        }
        Ok(())
    }

    fn add_revision(&mut self, encoded: &[u8]) -> Result<()> {
        let id = RevisionHeader::id_of(encoded);
        let header = lineage::header(encoded)?;
        if header.sequence != self.next_sequence {
            let last = self.next_sequence.saturating_sub(1);
            return Err(Error::Internal(format!("revision #{} follows #{last}", header.sequence)));
        }
        self.next_sequence += 1;
        self.happened(header.time, header.time);
        let branch = self.branch_mut(header.branch)?;
        let effective = effective(branch.head.as_ref(), header.time);
        branch.head = Some(BranchHead::of(&header, id, effective));
        Ok(())
    }

    /// Removes permanently what a pruning operation hid.
    fn sweep(&mut self, operation: OperationId) {
        if self.removal == Some(SessionRemoval::Pruned(operation)) {
            self.remove();
        }
        for text in &mut self.dropped {
            text.pruning.take_if(|pruning| *pruning == operation);
        }
    }

    /// Removes everything but the metadata, which loses the session's name and the agent's own id.
    fn remove(&mut self) {
        let nameless =
            SessionMetadata { name: String::new(), agent_session: None, ..self.info.clone() };
        *self = Self { removal: Some(SessionRemoval::Swept), ..begin(&nameless) };
    }

    fn branch_mut(&mut self, number: BranchNumber) -> Result<&mut BranchRefs> {
        self.branches.get_mut(number as usize).ok_or_else(|| {
            Error::Internal(format!("a record names branch {number}, which is not there"))
        })
    }

    pub(crate) fn branch(&self, number: BranchNumber) -> Result<&BranchRefs> {
        self.branches.get(number as usize).ok_or_else(|| {
            Error::Internal(format!("a record names branch {number}, which is not there"))
        })
    }

    /// Returns the number of the branch with this name, unless its creation was undone.
    pub(crate) fn branch_named(&self, name: &str) -> Option<BranchNumber> {
        let place =
            self.branches.iter().position(|branch| branch.name == name && !branch.hidden)?;
        u32::try_from(place).ok()
    }

    /// Does the same as [`SessionRefs::branch_named`]; it is an error if there is no such branch.
    pub(crate) fn branch_by_name(&self, name: &str) -> Result<BranchNumber> {
        self.branch_named(name).ok_or_else(|| Error::not_found("branch", name))
    }

    /// Returns a branch, or its next visible base if its creation was undone.
    pub(crate) fn visible_branch(&self, branch: BranchNumber) -> Result<BranchNumber> {
        let mut visible = branch;
        while let BranchRefs { hidden: true, base: Some((base, _)), .. } = self.branch(visible)? {
            visible = *base;
        }
        Ok(visible)
    }

    /// Returns the branch that is checked out in place of this one if the creation of this one is
    /// undone; `None` if this one is not checked out.
    pub(crate) fn left_for(&self, branch: BranchNumber) -> Result<Option<BranchNumber>> {
        match self.branch(branch)?.base {
            Some((base, _)) if self.current_branch == branch => self.visible_branch(base).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns whether a checkpoint is new: it has the next sequence number.
    pub(crate) fn is_new(&self, checkpoint: &Checkpoint) -> bool {
        checkpoint.sequence == self.next_sequence
    }

    /// Returns the time of the latest event, or of the beginning if there is none.
    pub(crate) fn last_time(&self) -> Timestamp {
        self.last_event.unwrap_or(self.info.started_at)
    }

    /// Returns how many bytes at the beginning of a growing blob were dropped.
    pub(crate) fn dropped(&self, blob: &str) -> u64 {
        self.dropped.iter().find(|text| text.blob == blob).map_or(0, |text| text.bytes)
    }

    fn drop_text(&mut self, blob: &str, bytes: u64, pruning: Option<OperationId>) {
        self.dropped.retain(|known| known.blob != blob);
        if bytes > 0 {
            self.dropped.push(DroppedText { blob: blob.to_owned(), bytes, pruning });
        }
    }

    fn happened(&mut self, first: Timestamp, last: Timestamp) {
        self.first_event = Some(self.first_event.map_or(first, |known| known.min(first)));
        self.last_event = Some(self.last_event.map_or(last, |known| known.max(last)));
    }
}

impl BranchRefs {
    /// Returns the latest change of the branch: its present status.
    pub(crate) fn latest_change(&self) -> &BranchChange {
        self.changes.last().expect("a branch is made with its first change")
    }
}

/// Returns the effective time of a revision made at `time` on a branch with this head.
pub(crate) fn effective(head: Option<&BranchHead>, time: Timestamp) -> Timestamp {
    head.map_or(time, |head| head.effective.max(time))
}

/// Advances `refs` by one record.
pub(crate) fn advance(refs: &mut StoreRefs, record: &Record) -> Result<()> {
    record.changes.iter().try_for_each(|change| advance_by(refs, change))
}

/// Advances `refs` by one change of a record.
pub(crate) fn advance_by(refs: &mut StoreRefs, change: &RecordChange) -> Result<()> {
    match change {
        RecordChange::Head(head) => continue_at(refs, head),
        RecordChange::Session { info } => {
            refs.sessions.push(begin(info));
            Ok(())
        }
        RecordChange::SessionBegun { info } => {
            let removal = Some(SessionRemoval::Incomplete);
            refs.sessions.push(SessionRefs { removal, ..begin(info) });
            Ok(())
        }
        RecordChange::SessionReplaced { session, of } => replace_session(refs, *session, *of),
        RecordChange::Pinned { session } => {
            refs.pinned = *session;
            Ok(())
        }
        RecordChange::Used { session } => {
            refs.last_used = Some(*session);
            Ok(())
        }
        RecordChange::Object { .. }
        | RecordChange::Segment { .. }
        | RecordChange::SweptAhead { .. }
        | RecordChange::Pruned { .. }
        | RecordChange::Folded { .. }
        | RecordChange::Unfolded { .. } => Ok(()),
        RecordChange::SessionDropped { of, .. } => {
            // A dropped session is not the current one any more.
            refs.pinned.take_if(|pinned| pinned == of);
            refs.last_used.take_if(|used| used == of);
            advance_session(refs, *of, change)
        }
        RecordChange::SessionShown { of, .. }
        | RecordChange::TextDropped { of, .. }
        | RecordChange::TextShown { of, .. } => advance_session(refs, *of, change),
        RecordChange::Swept { sessions, .. } => {
            sessions.iter().try_for_each(|number| advance_session(refs, *number, change))
        }
        change => change.session().map_or(Ok(()), |number| advance_session(refs, number, change)),
    }
}

/// Lets a session that was begun beside another one replace it, also as the current session.
fn replace_session(refs: &mut StoreRefs, new: SessionNumber, old: SessionNumber) -> Result<()> {
    for current in [&mut refs.pinned, &mut refs.last_used].into_iter().flatten() {
        if *current == old {
            *current = new;
        }
    }
    let removed = refs.sessions.change(old, SessionRefs::remove)?;
    let shown = refs.sessions.change(new, |session| session.removal = None)?;
    removed.ok_or_else(|| unknown_session(old))?;
    shown.ok_or_else(|| unknown_session(new))
}

/// Advances the refs by the head at the beginning of a segment. Refs with sessions must have as
/// many as the head.
fn continue_at(refs: &mut StoreRefs, head: &StoreHead) -> Result<()> {
    if refs.sessions.len() == 0 {
        *refs = StoreRefs::begin(head);
    }
    let (counted, found) = (head.sessions, refs.sessions.len());
    if found as u64 != counted {
        return Err(Error::Corrupt {
            what: "the beginning of a segment".to_owned(),
            source: format!("it counts {counted} sessions, and there are {found}").into(),
        });
    }
    (refs.pinned, refs.last_used, refs.purges) = (head.pinned, head.last_used, head.purges);
    Ok(())
}

fn advance_session(
    refs: &mut StoreRefs,
    number: SessionNumber,
    change: &RecordChange,
) -> Result<()> {
    let done = refs.sessions.change(number, |session| session.advance(change))?;
    done.ok_or_else(|| unknown_session(number))?
}

/// Puts the rows of the sessions that changed since a generation, and the store's head.
pub(crate) fn put_changed_sessions(
    base: &dyn Snapshot,
    rows: &mut RowOverlay,
    refs: &StoreRefs,
) -> Result<()> {
    let row = base.get(key::COUNTERS, key::HEAD)?;
    let head = row.map(|row| HeadRow::decode(&row)).transpose();
    let head = head.map_err(Error::corrupt("the head of the store"))?;
    // Sessions that began after the generation are not looked up: in an import, most did.
    let count = head.map_or(u64::MAX, |row| row.head.sessions);
    for (number, session) in refs.sessions.changed() {
        let is_stored = u64::from(number) < count;
        let old = if is_stored { stored_session(base, number)? } else { None };
        put_session(rows, number, old.as_ref(), session)?;
    }
    put_head(rows, refs);
    Ok(())
}

/// Puts all sessions and the store's head, without the rows that are derived from them.
pub(crate) fn put_all_sessions(rows: &mut RowOverlay, refs: &StoreRefs) -> Result<()> {
    for one in refs.sessions.all() {
        let (number, session) = one?;
        rows.put(key::SESSIONS, key::of(number).build(), encode_session(&session));
    }
    put_head(rows, refs);
    Ok(())
}

fn put_head(rows: &mut RowOverlay, refs: &StoreRefs) {
    let head = refs.head_without_sessions();
    rows.put(key::COUNTERS, key::HEAD.to_vec(), HeadRow { head }.encode());
}

/// Returns the branch that a revision of a branch was made on: the branch itself, or a base that it
/// was forked from after that revision.
pub(crate) fn head_branch(
    refs: &StoreRefs,
    number: SessionNumber,
    mut branch: BranchNumber,
    sequence: u64,
) -> Result<BranchNumber> {
    let session = session(refs, number)?;
    while let Some((base, from)) = session.branch(branch)?.base {
        if sequence > from || base == branch {
            break;
        }
        branch = base;
    }
    Ok(branch)
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test may panic")]
pub(super) mod tests {
    use super::*;
    use crate::format::RecordBytes;
    use crate::model::{ObjectId, Operation, OperationAuthor, SessionId, StateDigest};

    /// Returns the refs of a store with one session that began at this time.
    pub(in crate::engine) fn of_one_session(started_at: Timestamp) -> StoreRefs {
        let mut refs = StoreRefs::default();
        let info = SessionMetadata {
            id: SessionId::from_bytes([1; 16]),
            name: "s".to_owned(),
            kind: SessionKind::Debug,
            agent: None,
            agent_session: None,
            started_at,
        };
        advance_by(&mut refs, &RecordChange::Session { info: Box::new(info) }).unwrap();
        refs
    }

    fn sound() -> SessionRefs {
        let refs = of_one_session(Timestamp::default());
        let mut session = session(&refs, 0).unwrap().clone();
        for name in ["one", "two"] {
            let mut branch = session.branches[0].clone();
            branch.name = name.to_owned();
            branch.base = Some((0, 0));
            session.branches.push(branch);
        }
        session
    }

    fn record(changes: Vec<RecordChange>) -> Record {
        let operation = Operation {
            id: OperationId::from_bytes([0; 16]),
            verb: "rotate".to_owned(),
            author: OperationAuthor::Hook,
            time: Timestamp::default(),
        };
        Record { operation, changes }
    }

    /// Regression: the undo of an import gave the revisions of two branches one number, and nothing
    /// could read the store after it.
    #[test]
    fn a_record_whose_revisions_have_one_number_is_refused() {
        let refs = of_one_session(Timestamp::default());
        let revision = |sequence| {
            let header = RevisionHeader {
                session: SessionId::from_bytes([1; 16]),
                branch: 0,
                sequence,
                parents: Vec::new(),
                reset: None,
                time: Timestamp::default(),
                body: ObjectId::from_bytes([5; 32]),
                delta: ObjectId::from_bytes([6; 32]),
                digest: StateDigest::from_bytes(&[7; 32]),
                count: 0,
            };
            let header = RecordBytes(header.encode());
            let body = RecordBytes(Vec::new());
            RecordChange::Revision { session: 0, header, body, delta: Vec::new() }
        };
        let check =
            |sequences: [u64; 2]| check_record(&refs, &record(sequences.map(revision).to_vec()));
        assert!(check([1, 2]).is_ok());
        assert!(check([1, 1]).is_err_and(|error| error.to_string().contains("#1 follows #1")));
    }

    /// Regression: two branches that were each other's base caused an endless loop, and a count at
    /// its maximum overflowed.
    #[test]
    fn refs_with_cyclic_branches_or_impossible_counts_are_refused() {
        let lies: [fn(&mut SessionRefs); 8] = [
            |session| {
                session.branches[1].base = Some((2, 1));
                session.branches[2].base = Some((1, 1));
            },
            |session| session.branches[1].base = Some((1, 0)),
            |session| session.next_sequence = u64::MAX,
            |session| session.next_sequence = 0,
            |session| session.facts = u64::MAX,
            |session| session.pages = u64::MAX,
            |session| session.current_branch = 3,
            |session| session.branches[2].changes.clear(),
        ];
        let decoded = |session: &SessionRefs, pinned| {
            let sessions = [session.clone()].into_iter().collect();
            let head = StoreRefs { sessions, pinned, ..StoreRefs::default() }.head();
            let row = HeadRow { head: head.clone() }.encode();
            let record = record(vec![RecordChange::Head(Box::new(head))]).encode();
            (Record::decode(&record).is_ok(), HeadRow::decode(&row).is_ok())
        };
        assert_eq!(decoded(&sound(), Some(0)), (true, true));
        for (number, lie) in lies.iter().enumerate() {
            let mut session = sound();
            lie(&mut session);
            assert_eq!(decoded(&session, None), (false, false), "{number}");
        }
        assert_eq!(decoded(&sound(), Some(1)), (false, false));
    }
}

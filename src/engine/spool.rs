//! Reads the writes in the spool, and plans the records that they will become.
//!
//! Only writes that need no expected head may be spooled: facts, checkpoints, new notes, and the
//! session that they belong to.

use super::index::find_operation;
use super::planned_revision::{self, CommitTarget};
use super::read_snapshot::ReadSnapshot;
use super::refs::{
    StoreRefs, advance_by, agent_session, free_name, of_kind, present_session, session,
};
use super::{checkpoint, lookup, timeline};
use crate::backend::{self, Spool};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    DeltaPart, EntryBytes, Record, RecordChange, SpoolEntry, SpooledCheckpoint, encode_key,
};
use crate::model::{
    BranchNumber, Checkpoint, Key, Kind, OperationId, SessionKind, SessionMetadata, SessionNumber,
};

/// What to do if a name or an id is taken, or if a named branch does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameClashPolicy {
    /// Fail: the write has not been acknowledged yet.
    Refuse,
    /// Choose another name or id, or the current branch: the write was acknowledged and must be
    /// kept.
    Rename,
}

/// Returns whether a write that failed with this error may be spooled.
pub(crate) fn may_spool_after(error: &Error) -> bool {
    use ErrorKind::{Corrupt, Forged, Locked, Unkeyed};
    matches!(error.kind(), Locked | Corrupt | Forged | Unkeyed)
}

/// The writes in a spool.
#[derive(Default)]
pub(crate) struct PendingWrites {
    /// Readable writes, earliest first.
    pub(crate) whole: Vec<SpoolEntry>,
    /// Writes that cannot be read and are not skipped: their names and errors.
    pub(crate) broken: Vec<(String, Error)>,
}

/// Returns the writes in the spool. A write that was not made with the store's key is skipped,
/// unless it is known to be acknowledged.
pub(crate) fn pending_entries(spool: &dyn Spool) -> Result<PendingWrites> {
    let mut found = PendingWrites::default();
    for name in spool.names()? {
        match read(spool, &name)? {
            Some(Ok(waiting)) => found.whole.push(waiting),
            Some(Err(error)) if is_left_out(spool, &name, &error) => {
                let problem =
                    "a write in the spool is skipped: it was not made with the store's key";
                tracing::warn!(name, %error, "{problem}");
            }
            Some(Err(error)) => found.broken.push((name, error)),
            None => {}
        }
    }
    in_order(&mut found.whole);
    Ok(found)
}

/// Returns whether an unreadable write is skipped until the store is adopted: it was not made with
/// the store's key, and it is not known to be acknowledged.
pub(crate) fn is_left_out(spool: &dyn Spool, name: &str, error: &Error) -> bool {
    error.kind() == ErrorKind::Forged && !spool.is_acknowledged(name)
}

/// Returns whether the write with this name is in the journal already. Then its files are obsolete.
pub(crate) fn is_written(view: &ReadSnapshot, name: &str) -> Result<bool> {
    match name.parse::<OperationId>() {
        Ok(id) => Ok(find_operation(view, &id)?.is_some()),
        Err(_) => Ok(false),
    }
}

/// Sorts writes by the times of their operations.
pub(super) fn in_order(found: &mut [SpoolEntry]) {
    found.sort_by_key(|waiting| (waiting.operation.time, waiting.operation.id));
}

/// Returns whether these bytes are the complete write with this name.
pub(crate) fn is_whole(name: &str, bytes: &[u8]) -> bool {
    decode(name, bytes).is_ok()
}

fn decode(name: &str, bytes: &[u8]) -> Result<SpoolEntry> {
    let what = format!("the write '{name}' in the spool");
    let waiting = SpoolEntry::decode(bytes).map_err(Error::corrupt(what.clone()))?;
    if waiting.operation.id.to_string() == name {
        return Ok(waiting);
    }
    Err(Error::Corrupt { what, source: "its file holds another write".into() })
}

/// Reads the write with this name; `None` if it is not in the spool any more. The inner error says
/// why the write cannot be read.
pub(crate) fn read(spool: &dyn Spool, name: &str) -> Result<Option<Result<SpoolEntry>>> {
    match spool.read(name, &|bytes| is_whole(name, bytes)) {
        Ok(Some(bytes)) => Ok(Some(decode(name, &bytes))),
        Ok(None) => Ok(None),
        Err(error @ backend::Error::Breach { .. }) => Ok(Some(Err(error.into()))),
        Err(error) => Err(error.into()),
    }
}

/// Plans the record of a spooled write after this snapshot; `None` if it is in the journal already,
/// or changes nothing.
pub(crate) fn plan(
    view: &ReadSnapshot,
    waiting: &SpoolEntry,
    clash: NameClashPolicy,
) -> Result<Option<Record>> {
    if find_operation(view, &waiting.operation.id)?.is_some() {
        return Ok(None);
    }
    let refs = StoreRefs::clone(&view.refs);
    let mut planning = SpoolRecordBuilder { view, refs, changes: Vec::new(), clash, waiting };
    planning.all()?;
    let record = Record { operation: waiting.operation.clone(), changes: planning.changes };
    Ok((!record.changes.is_empty()).then_some(record))
}

/// Plans the record of one spooled write.
struct SpoolRecordBuilder<'a> {
    view: &'a ReadSnapshot,
    refs: StoreRefs,
    changes: Vec<RecordChange>,
    clash: NameClashPolicy,
    waiting: &'a SpoolEntry,
}

impl SpoolRecordBuilder<'_> {
    fn push(&mut self, change: RecordChange) -> Result<()> {
        advance_by(&mut self.refs, &change)?;
        self.changes.push(change);
        Ok(())
    }

    fn all(&mut self) -> Result<()> {
        let waiting = self.waiting;
        let number = self.session()?;
        let (branch, as_named) = self.branch(number)?;
        for object in &waiting.objects {
            self.push(RecordChange::Object { object: object.clone() })?;
        }
        for page in &waiting.pages {
            self.push(RecordChange::Facts {
                session: number,
                count: page.count,
                first: page.first,
                last: page.last,
                page: DeltaPart::Inline(page.page.clone()),
            })?;
        }
        let noted = self.notes(number, branch)?;
        for one in &waiting.checkpoints {
            let seen = one.checkpoint.revision.filter(|_| as_named).max(noted);
            if let Some(checkpoint) = self.checkpoint(number, branch, seen, one)? {
                self.push(RecordChange::checkpoint(number, checkpoint))?;
            }
        }
        let takes_over = waiting.used || self.refs.last_used.is_none();
        if takes_over
            && !self.changes.is_empty()
            && waiting.session.kind == SessionKind::Debug
            && self.refs.last_used != Some(number)
        {
            self.push(RecordChange::Used { session: number })?;
        }
        Ok(())
    }

    /// Returns the session's number, and begins the session if it does not exist.
    fn session(&mut self) -> Result<SessionNumber> {
        let wanted = &self.waiting.session;
        if let Some(number) = find(&self.refs, wanted)? {
            return Ok(number);
        }
        let number = self.refs.sessions.len() as SessionNumber;
        let mut info = wanted.clone();
        if of_kind(&self.refs, wanted.kind, &info.name)?.is_some() {
            if self.clash == NameClashPolicy::Refuse {
                return Err(Error::Duplicate { kind: "session", id: info.name });
            }
            info.name = free_name(&self.refs, wanted.kind, &info.name)?;
        }
        self.push(RecordChange::Session { info: Box::new(info) })?;
        Ok(number)
    }

    /// Returns the number of the branch, and whether it is the requested one.
    fn branch(&self, number: SessionNumber) -> Result<(BranchNumber, bool)> {
        let session = session(&self.refs, number)?;
        let Some(name) = &self.waiting.branch else { return Ok((session.current_branch, true)) };
        match (session.branch_named(name), self.clash) {
            (Some(branch), _) => Ok((branch, true)),
            (None, NameClashPolicy::Rename) => Ok((session.current_branch, false)),
            (None, NameClashPolicy::Refuse) => Err(Error::not_found("branch", name.clone())),
        }
    }

    /// Adds the notes in one revision. Returns the number of the revision; `None` without notes.
    fn notes(&mut self, number: SessionNumber, branch: BranchNumber) -> Result<Option<u64>> {
        let waiting = self.waiting;
        if waiting.notes.is_empty() {
            return Ok(None);
        }
        let mut additions: Vec<(Vec<u8>, EntryBytes)> = Vec::new();
        for note in &waiting.notes {
            let key = self.free_key(number, branch, &note.id)?;
            additions.push((key, note.entry.0.as_slice().into()));
        }
        let operation = &waiting.operation;
        let place = CommitTarget { session: number, branch, time: waiting.time, operation };
        let planned = planned_revision::plan_additions(&self.refs, place, additions, waiting.salt)?;
        for change in planned.changes {
            self.push(change)?;
        }
        Ok(Some(planned.head.sequence))
    }

    /// Returns the key of a note with this id, or with a suffix if the id is taken.
    fn free_key(&self, number: SessionNumber, branch: BranchNumber, id: &str) -> Result<Vec<u8>> {
        let operation = self.waiting.operation.id.to_string();
        let short = operation.get(..8).unwrap_or_default();
        let head = timeline::head_of(&self.refs, number, branch)?;
        for id in [id.to_owned(), format!("{id}-{short}"), format!("{id}-{operation}")] {
            let key = encode_key(&Key::new(Kind::Note, id.clone()));
            let taken = match head {
                Some(at) => lookup::entry(self.view, &self.refs, number, at, &key)?.is_some(),
                None => false,
            };
            match (taken, self.clash) {
                (false, _) => return Ok(key),
                (true, NameClashPolicy::Rename) => {}
                (true, NameClashPolicy::Refuse) => {
                    return Err(Error::Duplicate { kind: Kind::Note.name(), id });
                }
            }
        }
        Err(Error::Conflict(format!("every id for the note '{id}' is taken")))
    }

    /// Places a checkpoint on its branch and revision. `None` if the checkpoint of its event exists
    /// and does not change.
    fn checkpoint(
        &self,
        number: SessionNumber,
        branch: BranchNumber,
        seen: Option<u64>,
        waiting: &SpooledCheckpoint,
    ) -> Result<Option<Checkpoint>> {
        let mut wanted = waiting.checkpoint.clone();
        let (branch, seen) = if waiting.past {
            (timeline::branch_at(self.view, number, wanted.time)?, None)
        } else {
            (branch, seen)
        };
        let at = timeline::revision_at(self.view, &self.refs, number, branch, wanted.time)?;
        wanted.branch = branch;
        wanted.revision = at.map(|(at, _)| at.sequence).max(seen);
        wanted.sequence = session(&self.refs, number)?.next_sequence;
        let known = match &wanted.key {
            Some(event) => checkpoint::by_key(self.view, number, event)?,
            None => None,
        };
        Ok(match known {
            Some(known) => checkpoint::merge_reported(&known, wanted, waiting.past),
            None => Some(wanted),
        })
    }
}

/// Finds the session with the id of `wanted`; if there is none, the session with the agent's own id
/// of `wanted`.
fn find(refs: &StoreRefs, wanted: &SessionMetadata) -> Result<Option<SessionNumber>> {
    match (present_session(refs, wanted.id)?, &wanted.agent_session) {
        (Some(number), _) => Ok(Some(number)),
        (None, Some(agent)) => agent_session(refs, agent),
        (None, None) => Ok(None),
    }
}

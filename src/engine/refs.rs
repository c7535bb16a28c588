//! Moves refs on by a record.

use crate::error::{Error, Result};
use crate::format::{
    BookmarkRef, BranchChange, BranchRefs, Head, Header, Record, RecordChange, Refs, SessionRefs,
};
use crate::model::{
    BranchMetadata, BranchNumber, BranchStatus, SessionInfo, SessionNumber, Timestamp,
};

/// The name of every session's first branch.
pub(crate) const MAIN: &str = "main";

/// What the source of an agent session that joined an effort is called, before the agent's own id.
pub(crate) const JOINED: &str = "joined:";

/// The session of an agent's own id: the effort it has joined, else the one it began.
pub(crate) fn agent_session(refs: &Refs, agent: &str) -> Option<SessionNumber> {
    let joined = |session: &SessionRefs| {
        let mut sources = session.bookmarks.iter().map(|bookmark| &bookmark.source);
        sources.any(|source| source.strip_prefix(JOINED) == Some(agent))
    };
    let begun = |session: &SessionRefs| session.info.agent_session.as_deref() == Some(agent);
    let place = refs.sessions.iter().position(joined);
    let place = place.or_else(|| refs.sessions.iter().position(begun))?;
    SessionNumber::try_from(place).ok()
}

fn begin(info: &SessionInfo) -> SessionRefs {
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
    }
}

/// The session of this number.
pub(crate) fn session(refs: &Refs, number: SessionNumber) -> Result<&SessionRefs> {
    refs.sessions.get(number as usize).ok_or_else(|| {
        Error::Internal(format!("a record names session {number}, which is not there"))
    })
}

fn session_mut(refs: &mut Refs, number: SessionNumber) -> Result<&mut SessionRefs> {
    refs.sessions.get_mut(number as usize).ok_or_else(|| {
        Error::Internal(format!("a record names session {number}, which is not there"))
    })
}

fn branch_mut(session: &mut SessionRefs, number: BranchNumber) -> Result<&mut BranchRefs> {
    session.branches.get_mut(number as usize).ok_or_else(|| {
        Error::Internal(format!("a record names branch {number}, which is not there"))
    })
}

impl SessionRefs {
    /// The branch of this number.
    pub(crate) fn branch(&self, number: BranchNumber) -> Result<&BranchRefs> {
        self.branches.get(number as usize).ok_or_else(|| {
            Error::Internal(format!("a record names branch {number}, which is not there"))
        })
    }

    /// The number of the branch of this name, unless it was taken back.
    pub(crate) fn branch_named(&self, name: &str) -> Option<BranchNumber> {
        let place =
            self.branches.iter().position(|branch| branch.name == name && !branch.hidden)?;
        u32::try_from(place).ok()
    }

    fn happened(&mut self, first: Timestamp, last: Timestamp) {
        self.first_event = Some(self.first_event.map_or(first, |known| known.min(first)));
        self.last_event = Some(self.last_event.map_or(last, |known| known.max(last)));
    }
}

impl BranchRefs {
    /// What the branch is now.
    pub(crate) fn now(&self) -> &BranchChange {
        self.changes.last().expect("a branch is made with its first change")
    }
}

/// The effective time of a revision made at `time` on a branch with this head.
pub(crate) fn effective(head: Option<&Head>, time: Timestamp) -> Timestamp {
    head.map_or(time, |head| head.effective.max(time))
}

/// Moves `refs` on by one record.
pub(crate) fn advance(refs: &mut Refs, record: &Record) -> Result<()> {
    record.changes.iter().try_for_each(|change| advance_by(refs, change))
}

/// Moves `refs` on by one change of a record.
pub(crate) fn advance_by(refs: &mut Refs, change: &RecordChange) -> Result<()> {
    match change {
        RecordChange::Refs(all) => *refs = (**all).clone(),
        RecordChange::Session { info } => refs.sessions.push(begin(info)),
        RecordChange::Pinned { session } => refs.pinned = *session,
        RecordChange::Used { session } => refs.last_used = Some(*session),
        RecordChange::Branch { session, name, base, head, change } => {
            session_mut(refs, *session)?.branches.push(BranchRefs {
                name: name.clone(),
                base: Some((*base, head.map_or(0, |head| head.sequence))),
                head: *head,
                changes: vec![change.clone()],
                hidden: false,
            });
        }
        RecordChange::BranchChanged { session, branch, change } => {
            branch_mut(session_mut(refs, *session)?, *branch)?.changes.push(change.clone());
        }
        RecordChange::BranchHidden { session, branch, hidden } => {
            branch_mut(session_mut(refs, *session)?, *branch)?.hidden = *hidden;
        }
        RecordChange::Switched { session, branch, .. } => {
            session_mut(refs, *session)?.current_branch = *branch;
        }
        RecordChange::Object { .. }
        | RecordChange::Segment { .. }
        | RecordChange::Pruned { .. }
        | RecordChange::Folded { .. }
        | RecordChange::Unfolded { .. }
        | RecordChange::Swept { .. } => {}
        RecordChange::Revision { session, header, .. } => {
            let id = Header::id_of(&header.0);
            let header =
                Header::decode(&header.0).map_err(Error::corrupt("a revision's header"))?;
            let session = session_mut(refs, *session)?;
            if header.sequence != session.next_sequence {
                return Err(Error::Internal(format!(
                    "revision #{} follows #{}",
                    header.sequence,
                    session.next_sequence.saturating_sub(1)
                )));
            }
            session.next_sequence += 1;
            session.happened(header.time, header.time);
            let branch = branch_mut(session, header.branch)?;
            branch.head = Some(Head {
                sequence: header.sequence,
                id,
                effective: effective(branch.head.as_ref(), header.time),
                digest: header.digest,
                count: header.count,
            });
        }
        RecordChange::Checkpoint { session, checkpoint } => {
            let session = session_mut(refs, *session)?;
            if checkpoint.sequence == session.next_sequence {
                session.next_sequence += 1;
                session.checkpoints += 1;
            }
            session.happened(checkpoint.time, checkpoint.time);
            let latest =
                session.last_checkpoint.map_or(checkpoint.time, |t| t.max(checkpoint.time));
            session.last_checkpoint = Some(latest);
        }
        RecordChange::CheckpointShown { session, checkpoint } => {
            let session = session_mut(refs, *session)?;
            session.checkpoints += 1;
            session.last_checkpoint = session.last_checkpoint.max(Some(checkpoint.time));
        }
        RecordChange::CheckpointHidden { session, last, .. } => {
            let session = session_mut(refs, *session)?;
            session.checkpoints = session.checkpoints.saturating_sub(1);
            session.last_checkpoint = *last;
        }
        RecordChange::Facts { session, count, first, last, .. } => {
            let session = session_mut(refs, *session)?;
            session.pages += 1;
            session.facts += count;
            session.happened(*first, *last);
        }
        RecordChange::Bookmark { session, source, bookmark } => {
            let session = session_mut(refs, *session)?;
            session.bookmarks.retain(|known| known.source != *source);
            if let Some(bookmark) = bookmark {
                session
                    .bookmarks
                    .push(BookmarkRef { source: source.clone(), bytes: bookmark.bytes });
            }
        }
        RecordChange::TakesBack { session, operation, facts_hidden } => {
            let session = session_mut(refs, *session)?;
            session.hidden.retain(|known| known != operation);
            if *facts_hidden {
                session.hidden.push(*operation);
            }
        }
        RecordChange::Schedule { session, every_micros } => {
            session_mut(refs, *session)?.schedule = *every_micros;
        }
    }
    Ok(())
}

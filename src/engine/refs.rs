//! Advances refs by records, and looks up sessions and branches in them.

use crate::error::{Error, Result};
use crate::format::{
    BookmarkRef, BranchChange, BranchHead, BranchRefs, DroppedText, Record, RecordChange,
    RevisionHeader, SessionRefs, SessionRemoval, StoreRefs,
};
use crate::model::{
    BranchMetadata, BranchNumber, BranchStatus, Checkpoint, OperationId, SessionKind,
    SessionMetadata, SessionNumber, Timestamp,
};

/// Name of every session's first branch.
pub(crate) const MAIN: &str = "main";

/// Prefix of the source that marks an agent session as joined to an effort. The agent's own id
/// follows.
pub(crate) const JOINED: &str = "joined:";

/// Prefix of the mark of a stream whose import has begun but not ended. The stream's name follows.
pub(crate) const UNFINISHED: &str = "unfinished:";

/// Returns the session of an agent's own id: the effort that it joined, otherwise the session that
/// it began.
pub(crate) fn agent_session(refs: &StoreRefs, agent: &str) -> Option<SessionNumber> {
    let joined = |session: &SessionRefs| {
        let mut sources = session.bookmarks.iter().map(|bookmark| &bookmark.source);
        sources.any(|source| source.strip_prefix(JOINED) == Some(agent))
    };
    let begun = |session: &SessionRefs| session.info.agent_session.as_deref() == Some(agent);
    let place = |wanted: &dyn Fn(&SessionRefs) -> bool| {
        sessions_mentioning(refs, agent.as_bytes())
            .find(|(_, session)| wanted(session))
            .map(|(number, _)| number)
    };
    place(&joined).or_else(|| place(&begun))
}

/// Returns the sessions that were not dropped.
pub(crate) fn visible_sessions(
    refs: &StoreRefs,
) -> impl Iterator<Item = (SessionNumber, &SessionRefs)> {
    refs.sessions.all().filter(|(_, session)| session.gone.is_none())
}

/// Returns the visible sessions that may contain this text or id: all that do, and perhaps others.
pub(crate) fn sessions_mentioning<'refs>(
    refs: &'refs StoreRefs,
    text: &[u8],
) -> impl Iterator<Item = (SessionNumber, &'refs SessionRefs)> + use<'refs> {
    refs.sessions.mentioning(text).filter(|(_, session)| session.gone.is_none())
}

/// Returns the visible sessions with exactly this name, at most one of each kind.
pub(crate) fn sessions_named<'refs>(
    refs: &'refs StoreRefs,
    name: &str,
) -> impl Iterator<Item = (SessionNumber, &'refs SessionRefs)> + use<'refs> {
    let name = name.to_owned();
    sessions_mentioning(refs, name.as_bytes()).filter(move |(_, session)| session.info.name == name)
}

/// Returns the visible session of this kind with exactly this name.
pub(crate) fn of_kind(refs: &StoreRefs, kind: SessionKind, name: &str) -> Option<SessionNumber> {
    let mut found = sessions_named(refs, name).filter(|(_, session)| session.info.kind == kind);
    found.next().map(|(number, _)| number)
}

/// Checks that a record does not change a dropped session.
pub(crate) fn check_sessions_visible(refs: &StoreRefs, record: &Record) -> Result<()> {
    // A sweep also applies to dropped sessions.
    let swept = |change: &&RecordChange| matches!(change, RecordChange::Swept { .. });
    let told = record.changes.iter().filter(|change| !swept(change));
    for number in told.filter_map(RecordChange::session) {
        if refs.sessions.get(number).is_some_and(|session| session.gone.is_some()) {
            return Err(Error::Conflict(
                "the session was pruned: 'forge log --operations' names the pruning, and 'forge \
                undo' reverts it"
                    .to_owned(),
            ));
        }
    }
    Ok(())
}

fn begin(info: &SessionMetadata) -> SessionRefs {
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
        gone: None,
    }
}

/// Returns the session with this number.
pub(crate) fn session(refs: &StoreRefs, number: SessionNumber) -> Result<&SessionRefs> {
    refs.sessions.get(number).ok_or_else(|| {
        Error::Internal(format!("a record names session {number}, which is not there"))
    })
}

fn session_mut(refs: &mut StoreRefs, number: SessionNumber) -> Result<&mut SessionRefs> {
    refs.sessions.get_mut(number).ok_or_else(|| {
        Error::Internal(format!("a record names session {number}, which is not there"))
    })
}

fn branch_mut(session: &mut SessionRefs, number: BranchNumber) -> Result<&mut BranchRefs> {
    session.branches.get_mut(number as usize).ok_or_else(|| {
        Error::Internal(format!("a record names branch {number}, which is not there"))
    })
}

impl SessionRefs {
    /// Returns the branch with this number.
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

    /// Whether a checkpoint is new: it has the next sequence number.
    pub(crate) fn is_new(&self, checkpoint: &Checkpoint) -> bool {
        checkpoint.sequence == self.next_sequence
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
        | RecordChange::SweptAhead { .. }
        | RecordChange::Pruned { .. }
        | RecordChange::Folded { .. }
        | RecordChange::Unfolded { .. } => {}
        RecordChange::SessionDropped { of, pruning, .. } => {
            session_mut(refs, *of)?.gone = Some(SessionRemoval::Pruned(*pruning));
        }
        RecordChange::SessionShown { of, .. } => session_mut(refs, *of)?.gone = None,
        RecordChange::TextDropped { of, blob, bytes, pruning, .. } => {
            session_mut(refs, *of)?.drop_text(blob, *bytes, Some(*pruning));
        }
        RecordChange::TextShown { of, blob, bytes, .. } => {
            session_mut(refs, *of)?.drop_text(blob, *bytes, None);
        }
        RecordChange::TextMissing { session, blob, bytes } => {
            session_mut(refs, *session)?.drop_text(blob, *bytes, None);
        }
        RecordChange::Swept { operation, .. } => {
            let gone = Some(SessionRemoval::Pruned(*operation));
            for (_, session) in refs.sessions.filter_mut(|session| session.gone == gone) {
                let nameless = SessionMetadata {
                    name: String::new(),
                    agent_session: None,
                    ..session.info.clone()
                };
                *session = SessionRefs { gone: Some(SessionRemoval::Swept), ..begin(&nameless) };
            }
            let own = |text: &DroppedText| text.pruning.as_ref() == Some(operation);
            let texts = refs.sessions.filter_mut(|session| session.dropped.iter().any(own));
            for text in texts.flat_map(|(_, session)| &mut session.dropped) {
                text.pruning.take_if(|pruning| pruning == operation);
            }
        }
        RecordChange::Revision { session, header, .. } => {
            let id = RevisionHeader::id_of(&header.0);
            let header =
                RevisionHeader::decode(&header.0).map_err(Error::corrupt("a revision's header"))?;
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
            branch.head = Some(BranchHead {
                sequence: header.sequence,
                id,
                effective: effective(branch.head.as_ref(), header.time),
                digest: header.digest,
                count: header.count,
            });
        }
        RecordChange::Checkpoint { session, checkpoint } => {
            let session = session_mut(refs, *session)?;
            if session.is_new(checkpoint) {
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

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test may panic")]
pub(super) mod tests {
    use super::*;
    use crate::format::RefsRow;
    use crate::model::{Operation, OperationAuthor, SessionId};

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
        advance_by(&mut refs, &RecordChange::Session { info }).unwrap();
        refs
    }

    fn sound() -> StoreRefs {
        let mut refs = of_one_session(Timestamp::default());
        for name in ["one", "two"] {
            let session = refs.sessions.get_mut(0).unwrap();
            let mut branch = session.branches[0].clone();
            branch.name = name.to_owned();
            branch.base = Some((0, 0));
            session.branches.push(branch);
        }
        refs
    }

    fn record(change: RecordChange) -> Vec<u8> {
        let operation = Operation {
            id: OperationId::from_bytes([0; 16]),
            verb: "rotate".to_owned(),
            author: OperationAuthor::Hook,
            time: Timestamp::default(),
        };
        Record { operation, changes: vec![change] }.encode()
    }

    /// Regression: two branches that were each other's base caused an endless loop, and a count at
    /// its maximum overflowed.
    #[test]
    fn refs_that_lead_round_or_count_beyond_all_bounds_are_refused() {
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
        let right = sound();
        let decoded = |refs: &StoreRefs| {
            let row = RefsRow { refs: refs.clone() }.encode();
            let record = record(RecordChange::Refs(Box::new(refs.clone())));
            (Record::decode(&record).is_ok(), RefsRow::decode(&row).is_ok())
        };
        assert_eq!(decoded(&right), (true, true));
        for (number, lie) in lies.iter().enumerate() {
            let mut refs = right.clone();
            lie(refs.sessions.get_mut(0).unwrap());
            assert_eq!(decoded(&refs), (false, false), "{number}");
        }
        assert_eq!(decoded(&StoreRefs { pinned: Some(1), ..right }), (false, false));
    }
}

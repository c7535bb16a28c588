//! Resolves moment expressions in a session.

use super::session::Session;
use crate::engine::checkpoint::{self, CheckpointFilter};
use crate::engine::index::fold;
use crate::engine::lineage::{self, RevisionRef};
use crate::engine::lookup;
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::session as session_refs;
use crate::engine::timeline;
use crate::error::{Error, Result};
use crate::format::{DeltaSide, RevisionHeader, SequenceRow, decode_entry, encode_key};
use crate::model::time_grammar::{
    AmbiguousName, IdPrefix, MomentBase, MomentExpression, ResolvedTime, TimeError, parse_moment,
};
use crate::model::{
    BranchNumber, Checkpoint, CheckpointId, Key, SessionKind, Timestamp, Value, unhex,
};

/// If a time is before the first event of its session, at most this many debugging sessions are
/// searched for it, the latest first.
const SESSIONS_SEARCHED: usize = 1000;

/// A moment in a session: a branch, a revision, and the time up to which facts are included.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedMoment {
    pub(crate) branch: BranchNumber,
    /// The revision, with the branch it is on; `None` before the first.
    pub(crate) at: Option<RevisionRef>,
    /// The time up to which facts are included; `None` for all.
    pub(crate) time: Option<Timestamp>,
    /// The named checkpoint, if a checkpoint was named.
    pub(crate) checkpoint: Option<Box<Checkpoint>>,
}

impl ResolvedMoment {
    /// Returns the number of the revision; `None` before the first.
    #[must_use]
    pub fn revision(&self) -> Option<u64> {
        self.at.map(|at| at.sequence)
    }

    /// Returns the time up to which facts are included; `None` for all.
    #[must_use]
    pub const fn time(&self) -> Option<Timestamp> {
        self.time
    }

    /// Returns the time up to which facts are included; the largest time for all.
    pub(crate) fn until(&self) -> Timestamp {
        self.time.unwrap_or(Timestamp::from_micros(i64::MAX))
    }

    /// Returns the named checkpoint, if a checkpoint was named.
    #[must_use]
    pub fn named_checkpoint(&self) -> Option<&Checkpoint> {
        self.checkpoint.as_deref()
    }
}

impl Session {
    /// Returns the head of the current branch, with all facts.
    pub fn head(&self) -> Result<ResolvedMoment> {
        let (refs, _) = self.store.engine.follower.refs()?;
        let branch = session_refs(&refs, self.number)?.current_branch;
        let at = timeline::head_of(&refs, self.number, branch)?;
        Ok(ResolvedMoment { branch, at, time: None, checkpoint: None })
    }

    /// Resolves a moment expression.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the session does not have what the moment names;
    /// [`Error::Ambiguous`] if several ids begin with a prefix; [`Error::NothingAt`] for a time
    /// before the first event; [`Error::EmptySession`] if nothing is recorded;
    /// [`Error::Folded`] for a revision that pruning folded; [`Error::Invalid`] for a word that is
    /// neither a name nor a time.
    pub fn resolve(&self, moment: &MomentExpression) -> Result<ResolvedMoment> {
        let view = self.view()?;
        let resolved = self.base(&view, &moment.base)?;
        if moment.back == 0 {
            return Ok(resolved);
        }
        let none = || Error::not_found("earlier revision", format!("~{}", moment.back));
        let from = resolved.at.ok_or_else(none)?;
        let at = timeline::nth_ancestor(&view, &view.refs, self.number, from, moment.back)?
            .ok_or_else(none)?;
        self.of_revision(&view, at, resolved.branch)
    }

    /// Returns the moment that a text names: `2 hours ago`, `yesterday 14:00`, `#42`, `HEAD~1`,
    /// a checkpoint's tag, a branch. All forms are in `docs/time.md`. Times without a zone are in
    /// UTC; for another zone, use [`parse_moment`] and [`Session::resolve`].
    ///
    /// # Errors
    /// [`Error::Invalid`] if the text is not a moment; else as [`Session::resolve`].
    pub fn at(&self, moment: &str, now: Timestamp) -> Result<ResolvedMoment> {
        let moment = parse_moment(moment, now, &chrono::Utc);
        self.resolve(&moment.map_err(|error| Error::invalid(error.to_string()))?)
    }

    /// Returns the moment of a time, on the branch checked out then.
    pub fn at_time(&self, time: Timestamp) -> Result<ResolvedMoment> {
        self.of_time(&self.view()?, time, None)
    }

    /// Returns the moment of a sequence number.
    pub fn at_sequence(&self, sequence: u64) -> Result<ResolvedMoment> {
        self.of_sequence(&self.view()?, sequence)
    }

    pub(crate) fn at_checkpoint_id(&self, id: &CheckpointId) -> Result<ResolvedMoment> {
        let view = self.view()?;
        let checkpoint = checkpoint::by_id(&view, self.number, id)?;
        let none = || Error::not_found("checkpoint", id.to_string());
        self.checkpoint_moment(&view, checkpoint.ok_or_else(none)?)
    }

    /// Returns the moment of the newest checkpoint with this tag.
    pub(crate) fn of_tag(&self, view: &ReadSnapshot, tag: &str) -> Result<ResolvedMoment> {
        let newest = self.newest_tagged(view, tag)?;
        self.checkpoint_moment(view, newest.ok_or_else(|| Error::not_found("tag", tag))?)
    }

    /// Returns the moment of a checkpoint.
    pub fn at_checkpoint(&self, checkpoint: &Checkpoint) -> Result<ResolvedMoment> {
        self.checkpoint_moment(&self.view()?, checkpoint.clone())
    }

    fn base(&self, view: &ReadSnapshot, base: &MomentBase) -> Result<ResolvedMoment> {
        match base {
            MomentBase::Head => {
                self.of_branch(view, session_refs(&view.refs, self.number)?.current_branch)
            }
            MomentBase::Sequence(sequence) => self.of_sequence(view, *sequence),
            MomentBase::Time(time) => self.of_resolved(view, time, None),
            MomentBase::BranchAt { branch, time } => {
                let session = session_refs(&view.refs, self.number)?;
                let branch = match branch {
                    None => session.current_branch,
                    Some(name) => session.branch_by_name(name)?,
                };
                self.of_resolved(view, time, Some(branch))
            }
            MomentBase::Name(named) => self.of_name(view, named),
            MomentBase::Tag(tag) => self.of_tag(view, tag),
            MomentBase::Branch(name) => {
                let session = session_refs(&view.refs, self.number)?;
                self.of_branch(view, session.branch_by_name(name)?)
            }
            MomentBase::Id(prefix) => self.of_id(view, prefix)?.ok_or_else(|| {
                Error::not_found("checkpoint or revision whose id begins with", prefix.as_str())
            }),
            MomentBase::Start => {
                let first = session_refs(&view.refs, self.number)?.first_event;
                let first = first.ok_or_else(|| self.empty(view))?;
                self.of_time(view, first, None)
            }
            MomentBase::LastCompaction => self.checkpoint_moment(view, self.last_compaction(view)?),
            MomentBase::BeforeLastCompaction => {
                let last = self.last_compaction(view)?;
                self.of_time(view, last.time.plus_micros(-1), None)
            }
            MomentBase::ClaimBecame { kind, id, status } => {
                self.status_change_moment(view, Key::new(*kind, id), status)
            }
            MomentBase::Commit(sha) => self.checkpoint_moment(view, self.commit_of(view, sha)?),
            MomentBase::BeforeCommit(sha) => {
                let commit = self.commit_of(view, sha)?;
                self.of_time(view, commit.time.plus_micros(-1), None)
            }
        }
    }

    fn empty(&self, view: &ReadSnapshot) -> Error {
        let name = session_refs(&view.refs, self.number).map(|session| session.info.name.clone());
        Error::EmptySession { session: name.unwrap_or_default() }
    }

    fn of_branch(&self, view: &ReadSnapshot, branch: BranchNumber) -> Result<ResolvedMoment> {
        let at = timeline::head_of(&view.refs, self.number, branch)?;
        Ok(ResolvedMoment { branch, at, time: None, checkpoint: None })
    }

    /// Returns the moment of a parsed time. "Now" includes everything written so far, also what has
    /// a later time because a clock was ahead.
    fn of_resolved(
        &self,
        view: &ReadSnapshot,
        time: &ResolvedTime,
        branch: Option<BranchNumber>,
    ) -> Result<ResolvedMoment> {
        if !time.is_now {
            return self.of_time(view, time.time, branch);
        }
        let session = session_refs(&view.refs, self.number)?;
        let last = session.last_event.ok_or_else(|| self.empty(view))?;
        let head = self.of_branch(view, branch.unwrap_or(session.current_branch))?;
        Ok(ResolvedMoment { time: Some(time.time.max(last)), ..head })
    }

    /// Returns the parsed time; for "now", the time of the last recorded event if that is later.
    pub fn time_by(&self, time: &ResolvedTime) -> Result<Timestamp> {
        let (refs, _) = self.store.engine.follower.refs()?;
        let last = session_refs(&refs, self.number)?.last_event;
        Ok(last.filter(|_| time.is_now).map_or(time.time, |last| last.max(time.time)))
    }

    pub(super) fn of_time(
        &self,
        view: &ReadSnapshot,
        time: Timestamp,
        branch: Option<BranchNumber>,
    ) -> Result<ResolvedMoment> {
        let session = session_refs(&view.refs, self.number)?;
        let first = session.first_event.ok_or_else(|| self.empty(view))?;
        if time < first {
            let latest = view.refs.sessions.latest(SessionKind::Debug, SESSIONS_SEARCHED)?;
            let other = latest.into_iter().map(|(_, other)| other).find(|other| {
                other.first_event.is_some_and(|first| first <= time)
                    && other.last_event.is_some_and(|last| time <= last)
            });
            return Err(Error::NothingAt {
                time,
                session: session.info.name.clone(),
                earliest: first,
                other: other.map(|other| other.info.name.clone()),
            });
        }
        let branch = match branch {
            Some(branch) => branch,
            None => timeline::branch_at(view, self.number, time)?,
        };
        let at = timeline::revision_at(view, &view.refs, self.number, branch, time)?;
        Ok(ResolvedMoment { branch, at: at.map(|(at, _)| at), time: Some(time), checkpoint: None })
    }

    fn of_revision(
        &self,
        view: &ReadSnapshot,
        at: RevisionRef,
        branch: BranchNumber,
    ) -> Result<ResolvedMoment> {
        let (head, _) = timeline::head_at(view, self.number, at)?;
        Ok(ResolvedMoment { branch, at: Some(at), time: Some(head.effective), checkpoint: None })
    }

    pub(super) fn of_sequence(&self, view: &ReadSnapshot, sequence: u64) -> Result<ResolvedMoment> {
        let none = || Error::not_found("revision or checkpoint", format!("#{sequence}"));
        match lineage::sequence_row(view, self.number, sequence)?.ok_or_else(none)? {
            SequenceRow::Revision(branch) => {
                self.of_revision(view, RevisionRef { branch, sequence }, branch)
            }
            SequenceRow::Checkpoint(_) => {
                let checkpoint = checkpoint::by_sequence(view, self.number, sequence)?;
                self.checkpoint_moment(view, checkpoint.ok_or_else(none)?)
            }
            SequenceRow::Folded(_, into) => {
                let into = lineage::final_fold_target(view, self.number, into)?;
                Err(Error::Folded { sequence, into })
            }
        }
    }

    pub(crate) fn checkpoint_moment(
        &self,
        view: &ReadSnapshot,
        checkpoint: Checkpoint,
    ) -> Result<ResolvedMoment> {
        let at = match checkpoint.revision {
            None => None,
            Some(sequence) => match lineage::sequence_row(view, self.number, sequence)? {
                Some(SequenceRow::Revision(branch)) => Some(RevisionRef { branch, sequence }),
                Some(SequenceRow::Folded(_, into)) => {
                    let into = lineage::final_fold_target(view, self.number, into)?;
                    return Err(Error::Folded { sequence, into });
                }
                _ => return Err(Error::missing(format!("revision #{sequence}"))),
            },
        };
        Ok(ResolvedMoment {
            branch: checkpoint.branch,
            at,
            time: Some(checkpoint.time),
            checkpoint: Some(Box::new(checkpoint)),
        })
    }

    fn newest_tagged(&self, view: &ReadSnapshot, tag: &str) -> Result<Option<Checkpoint>> {
        let filter = CheckpointFilter { tag: Some(tag.to_owned()), ..Default::default() };
        Ok(checkpoint::list(view, self.number, &filter)?.into_iter().next())
    }

    /// Replaces a name that is no tag, branch or id prefix of this session by the time that it can
    /// also mean. Returns any other moment unchanged.
    ///
    /// # Errors
    /// [`Error::Ambiguous`] if several ids begin with the name; [`Error::Folded`] if it names what
    /// pruning folded. Fails if the store cannot be read or is damaged.
    pub fn resolve_ambiguous(&self, moment: MomentExpression) -> Result<MomentExpression> {
        let MomentBase::Name(named @ AmbiguousName { time: Some(time), .. }) = &moment.base else {
            return Ok(moment);
        };
        match self.called(&self.view()?, named)? {
            Some(_) => Ok(moment),
            None => Ok(MomentExpression { base: MomentBase::Time(*time), ..moment }),
        }
    }

    /// Resolves a word as a tag, a branch, an id prefix, a time or a number, in this order.
    fn of_name(&self, view: &ReadSnapshot, named: &AmbiguousName) -> Result<ResolvedMoment> {
        if let Some(resolved) = self.called(view, named)? {
            return Ok(resolved);
        }
        if let Some(time) = &named.time {
            return self.of_resolved(view, time, None);
        }
        match &named.time_error {
            Some(error) if matches!(error, TimeError::Number { text } if text.contains('.')) => {
                Err(Error::invalid(error.to_string()))
            }
            // A bare number is that of a revision or checkpoint: to a shell, '#' begins a comment.
            Some(TimeError::Number { text }) => match text.parse() {
                Ok(sequence) => self.of_sequence(view, sequence),
                Err(_) => Err(Error::invalid(format!(
                    "'{text}' is too long for the number of a revision or checkpoint"
                ))),
            },
            // A long word of hexadecimal digits can only be an id.
            Some(_) if named.is_long_id() => {
                Err(Error::not_found("checkpoint or revision whose id begins with", &named.name))
            }
            Some(error) => Err(Error::invalid(error.to_string())),
            None => Err(Error::not_found("tag, branch or id", named.name.clone())),
        }
    }

    /// Resolves a word as a tag, a branch or an id prefix, in this order.
    fn called(&self, view: &ReadSnapshot, named: &AmbiguousName) -> Result<Option<ResolvedMoment>> {
        if let Some(checkpoint) = self.newest_tagged(view, &named.name)? {
            return self.checkpoint_moment(view, checkpoint).map(Some);
        }
        if let Some(branch) = session_refs(&view.refs, self.number)?.branch_named(&named.name) {
            return self.of_branch(view, branch).map(Some);
        }
        match &named.id {
            Some(prefix) => self.of_id(view, prefix),
            None => Ok(None),
        }
    }

    fn of_id(&self, view: &ReadSnapshot, prefix: &IdPrefix) -> Result<Option<ResolvedMoment>> {
        let (from, to) = prefix_range(prefix.as_str());
        let mut found = timeline::ids_between(view, &from, &to, usize::MAX)?;
        found.retain(|named| named.session == self.number);
        let mut moments = Vec::new();
        for named in found {
            let Some(row) = lineage::sequence_row(view, self.number, named.sequence)? else {
                continue;
            };
            // The table contains only half of a revision's id.
            let (whole, what) = match row {
                SequenceRow::Revision(branch) => {
                    let at = RevisionRef { branch, sequence: named.sequence };
                    let id = timeline::revision_id(view, self.number, at)?;
                    (id.to_string(), "revision")
                }
                SequenceRow::Checkpoint(id) => (id.to_string(), "checkpoint"),
                SequenceRow::Folded(branch, into) => {
                    let row = fold::find(view, self.number, branch, (named.sequence, into))?;
                    (RevisionHeader::id_of(&row.header).to_string(), "revision")
                }
            };
            if whole.starts_with(prefix.as_str()) {
                moments.push((named.sequence, whole, what));
            }
        }
        match moments.as_slice() {
            [] => Ok(None),
            [(sequence, _, _)] => self.of_sequence(view, *sequence).map(Some),
            several => Err(Error::Ambiguous {
                prefix: prefix.as_str().to_owned(),
                matches: several
                    .iter()
                    .map(|(sequence, id, what)| {
                        let short: String = id.chars().take(12).collect();
                        format!("{short} ({what} #{sequence})")
                    })
                    .collect(),
            }),
        }
    }

    fn last_compaction(&self, view: &ReadSnapshot) -> Result<Checkpoint> {
        checkpoint::list(view, self.number, &CheckpointFilter::default())?
            .into_iter()
            .find(Checkpoint::is_compaction)
            .ok_or_else(|| Error::not_found("compaction", "last"))
    }

    fn commit_of(&self, view: &ReadSnapshot, sha: &IdPrefix) -> Result<Checkpoint> {
        let filter = CheckpointFilter { tag: Some("commit".to_owned()), ..Default::default() };
        let mut found = checkpoint::list(view, self.number, &filter)?.into_iter().filter(|one| {
            one.body.field("commit").and_then(Value::as_text).is_some_and(|commit| {
                // A transcript often contains only a prefix of a commit's id.
                commit.starts_with(sha.as_str()) || sha.as_str().starts_with(commit)
            })
        });
        found.next().ok_or_else(|| Error::not_found("commit", sha.as_str()))
    }

    fn status_change_moment(
        &self,
        view: &ReadSnapshot,
        mut key: Key,
        status: &str,
    ) -> Result<ResolvedMoment> {
        let branch = session_refs(&view.refs, self.number)?.current_branch;
        let named = key.id.clone();
        let head = timeline::head_of(&view.refs, self.number, branch)?;
        let history = |key: &Key| match head {
            None => Ok(Vec::new()),
            Some(at) => lookup::history(view, &view.refs, self.number, at, &encode_key(key)),
        };
        let mut touched = history(&key)?;
        if touched.is_empty() {
            // The ids that forge gives are in capitals.
            key.id.make_ascii_uppercase();
            touched = history(&key)?;
        }
        if touched.is_empty() {
            return Err(Error::not_found(key.kind.name(), named));
        }
        for change in touched {
            let had = |side: &DeltaSide| -> Result<bool> {
                let Some(bytes) = lookup::delta_side_bytes(view, side)? else { return Ok(false) };
                let entry =
                    decode_entry(&bytes).map_err(Error::corrupt(format_args!("the {key}")))?;
                Ok(entry.value.field("status").and_then(Value::as_text) == Some(status))
            };
            if had(&change.new)? && !had(&change.old)? {
                return self.of_revision(view, change.at, change.at.branch);
            }
        }
        Err(Error::not_found(
            "moment at which",
            format!("{named} became {}", status.replace('_', " ")),
        ))
    }
}

/// Returns the range of ids with this prefix, as bytes: the first one, and the exclusive end.
fn prefix_range(digits: &str) -> (Vec<u8>, Vec<u8>) {
    let bytes = |padded: String| unhex::<16>(&padded).unwrap_or_default().to_vec();
    let mut to = bytes(format!("{digits:f<32.32}"));
    to.push(0);
    (bytes(format!("{digits:0<32.32}")), to)
}

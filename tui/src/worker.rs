//! A worker answers requests from a store, in a thread of its own or, in tests, directly.

mod change;
mod claim;
mod confidence;
mod detail;
mod difference;
mod landmark_search;
mod mark_line;
mod row;
mod state;
mod story;
mod unpushed;
mod why;

use crate::answer::{
    ActivityStrip, SessionOverview, SessionRow, TextSheet, WorkerAnswer, WorkerFailure, WorkerReply,
};
use crate::app::DisplayZone;
use crate::effect::{MomentTarget, PageAnchor, PaneSlot, SheetOf, WorkerRequest, WriteRequest};
use crate::query::{TimelineFilter, TimelineLevel};
use forge_store::error::{Error, ErrorKind, Result};
use forge_store::model::text::count_text;
use forge_store::model::{AutoTrigger, OperationId, SessionKind};
use forge_store::store::remote::KnownRemote;
use forge_store::store::{
    CheckpointTriggers, HistoryPosition, PageDirection, PageKinds, ResolvedMoment, Session, Store,
};
use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::mpsc::{Receiver, Sender};
use unpushed::UnpushedText;

/// A request for rows ends after this many scanned items of the history, even with too few rows.
const MAX_SCANNED_ITEMS: usize = 2000;
/// Maximum number of sessions in the list of sessions.
pub(crate) const MAX_SESSIONS: usize = 1000;

/// Answers requests about the open session of a store.
pub struct StoreWorker {
    store: Store,
    session: Option<Session>,
    zone: DisplayZone,
    /// The events that make a checkpoint.
    triggers: CheckpointTriggers,
    remotes: Vec<KnownRemote>,
    /// The operation that the person was last asked about: whether to undo or redo it.
    planned: Option<OperationId>,
}

impl StoreWorker {
    #[must_use]
    pub const fn new(store: Store, zone: DisplayZone) -> Self {
        let triggers = CheckpointTriggers { on: None, significant: false };
        Self { store, session: None, zone, triggers, remotes: Vec::new(), planned: None }
    }

    /// Makes automatic checkpoints of these events only.
    #[must_use]
    pub fn with_triggers(self, triggers: Vec<AutoTrigger>) -> Self {
        Self { triggers: CheckpointTriggers { on: Some(triggers), significant: false }, ..self }
    }

    /// Sets the remotes for which the list of sessions says what is not pushed.
    #[must_use]
    pub fn with_remotes(self, remotes: Vec<KnownRemote>) -> Self {
        Self { remotes, ..self }
    }

    /// Answers requests until all senders are dropped. Of several waiting requests for one slot,
    /// only the latest is answered; in the slot `Session`, all are.
    pub fn serve<E>(
        mut self,
        requests: &Receiver<(u64, WorkerRequest)>,
        replies: &Sender<E>,
        wrap: impl Fn(WorkerReply) -> E,
    ) {
        let mut waiting: VecDeque<(u64, WorkerRequest)> = VecDeque::new();
        loop {
            if waiting.is_empty() {
                let Ok(request) = requests.recv() else { return };
                queue_request(&mut waiting, request);
            }
            while let Ok(request) = requests.try_recv() {
                queue_request(&mut waiting, request);
            }
            let Some((request_number, request)) = waiting.pop_front() else { continue };
            let reply = self.answer(request_number, request);
            if replies.send(wrap(reply)).is_err() {
                return;
            }
        }
    }

    pub fn answer(&mut self, request_number: u64, request: WorkerRequest) -> WorkerReply {
        let slot = request.slot();
        // What is written to a removed store is lost, and the errors of a replaced one mislead:
        // records of another store look altered.
        let is_checked = slot == PaneSlot::Watch || matches!(request, WorkerRequest::Change { .. });
        let answer = match is_checked.then(|| self.displaced()).flatten() {
            Some(failure) => Err(failure),
            None => self
                .run(request)
                .map_err(|error| self.displaced().unwrap_or_else(|| failure(&error))),
        };
        WorkerReply { request_number, slot, answer }
    }

    /// Returns the failure to report if the store is no longer in its folder.
    fn displaced(&self) -> Option<WorkerFailure> {
        let path = self.store.path().filter(|_| !self.store.is_in_place())?;
        Some(WorkerFailure {
            message: format!("the store at {} was deleted, moved or replaced", path.display()),
            advice: "this shows the old one; quit, and open the browser again".to_owned(),
            damaged: false,
        })
    }

    fn run(&mut self, request: WorkerRequest) -> Result<WorkerAnswer> {
        match request {
            WorkerRequest::Open(name) => self.open(name.as_deref()),
            WorkerRequest::Page { level, filter, from, limit } => {
                self.page(level, &filter, from, limit)
            }
            WorkerRequest::State { target, since, mark, tab } => {
                let session = self.session()?;
                let (since, to) = (
                    since.map(|since| resolved_moment(session, since)),
                    resolved_moment(session, target)?,
                );
                // The moment selected before may no longer exist; then no item is marked as
                // changed.
                let since = since.and_then(Result::ok);
                let mut view = state::view(session, target, &to, since.as_ref(), tab)?;
                if let Some(mark) = mark.and_then(|mark| resolved_moment(session, mark).ok()) {
                    view.since_mark = mark_line::since_mark(session, &mark, &to)?;
                }
                Ok(WorkerAnswer::State(Box::new(view)))
            }
            WorkerRequest::Sheet { of, .. } => Ok(WorkerAnswer::Sheet(Box::new(self.sheet(of)?))),
            WorkerRequest::RestorePlan(target) => {
                let (session, head) = (self.session()?, MomentTarget::Head);
                let (sheet, changes) = difference::sheet(session, head, target, true, self.zone)?;
                let sheet = changes.then(|| Box::new(sheet));
                Ok(WorkerAnswer::RestorePlan { target, sheet })
            }
            WorkerRequest::UndoPlan { redo } => {
                let session = self.session()?;
                let next = session.next_to_undo(redo)?;
                let planned = next.as_ref().map(|next| next.id);
                let plan = |next| Box::new(change::plan(session, &next, redo, self.zone));
                let sheet = next.map(plan);
                self.planned = planned;
                Ok(WorkerAnswer::UndoPlan { redo, sheet })
            }
            WorkerRequest::Story { session, revisions } => {
                let view = story::view(&self.store.session(&session)?, revisions)?;
                Ok(WorkerAnswer::Story(Box::new(view)))
            }
            WorkerRequest::Brief { session, target } => {
                let session = self.store.session(&session)?;
                let brief = Box::new(story::brief(&session, &resolved_moment(&session, target)?)?);
                Ok(WorkerAnswer::Brief { target, brief })
            }
            WorkerRequest::Strip(period_count) => {
                let session = self.session()?;
                let summary = session.summary()?;
                let (first, last) = (summary.first_event, summary.last_event);
                let Some((from, to)) = first.zip(last) else {
                    return Ok(WorkerAnswer::Strip(Box::default()));
                };
                let activity = session.activity(from, to, period_count)?;
                Ok(WorkerAnswer::Strip(Box::new(ActivityStrip { from, to, activity })))
            }
            WorkerRequest::Find { wanted, from, direction } => {
                landmark_search::next_landmark(self.session()?, wanted, from, direction)
            }
            WorkerRequest::Jump { text, now } => {
                landmark_search::jump(self.session()?, &text, now, self.zone)
            }
            WorkerRequest::Sessions => self.sessions(),
            WorkerRequest::Watch => Ok(WorkerAnswer::Watched(self.store.position()?)),
            WorkerRequest::Change { change, now } => {
                let planned = self.planned.take();
                let session = self.session()?;
                if let (Some(planned), WriteRequest::Undo | WriteRequest::Redo) = (planned, &change)
                    && let Some(next) = session.next_to_undo(change == WriteRequest::Redo)?
                    && next.id != planned
                {
                    let problem = format!("the last operation is '{}' by now", next.verb);
                    return Err(Error::Conflict(problem));
                }
                change::run(session, &change, now, &self.triggers, self.zone)
            }
            WorkerRequest::Export { path, text } => export(&path, &text),
        }
    }

    fn sheet(&self, of: SheetOf) -> Result<TextSheet> {
        let session = self.session()?;
        match of {
            SheetOf::Row(row) => detail::row(session, &row, self.zone),
            SheetOf::Entity { target, key } => {
                detail::entity(session, &resolved_moment(session, target)?, target, &key, self.zone)
            }
            SheetOf::Difference { from, to } => {
                Ok(difference::sheet(session, from, to, false, self.zone)?.0)
            }
            SheetOf::Why { target, key } => {
                why::why(session, &resolved_moment(session, target)?, target, &key)
            }
            SheetOf::EvidenceSources { target, hypothesis } => {
                let moment = resolved_moment(session, target)?;
                why::sources(session, &moment, target, &hypothesis, self.zone)
            }
        }
    }

    fn session(&self) -> Result<&Session> {
        self.session.as_ref().ok_or_else(|| Error::not_found("session", "current"))
    }

    fn open(&mut self, name: Option<&str>) -> Result<WorkerAnswer> {
        let position = self.store.position()?;
        self.session = match name {
            Some(name) => Some(self.store.session(name)?),
            None => self.store.current_session()?,
        };
        let Some(session) = &self.session else { return Ok(WorkerAnswer::NoSession) };
        let summary = session.summary()?;
        Ok(WorkerAnswer::Opened(Box::new(SessionOverview {
            id: summary.info.id.to_string(),
            name: summary.info.name,
            branch: summary.branch,
            count: summary.last_sequence,
            checkpoints: summary.checkpoints,
            claims: summary.claims,
            facts: summary.facts,
            first: summary.first_event,
            last: summary.last_event,
            lines: session.branch_lines()?,
            position,
        })))
    }

    fn page(
        &self,
        level: TimelineLevel,
        filter: &TimelineFilter,
        from: PageAnchor,
        limit: usize,
    ) -> Result<WorkerAnswer> {
        let session = self.session()?;
        let older = |place| rows(session, level, filter, place, PageDirection::Older, limit);
        let newer = |place| -> Result<_> {
            let direction = PageDirection::Newer;
            let (mut found, next) = rows(session, level, filter, place, direction, limit)?;
            found.reverse();
            Ok((found, next))
        };
        let (rows, older, newer) = match from {
            PageAnchor::Newest => older(None).map(|(rows, next)| (rows, next, None))?,
            PageAnchor::Before(place) => {
                older(Some(place)).map(|(rows, next)| (rows, next, None))?
            }
            PageAnchor::After(place) => {
                newer(Some(place)).map(|(rows, next)| (rows, None, next))?
            }
            PageAnchor::Oldest => newer(None).map(|(rows, next)| (rows, None, next))?,
            PageAnchor::Around(place) => {
                let (mut rows, next_newer) = newer(Some(place))?;
                // The older rows include the one at this position.
                let (below, next_older) = older(Some(just_after(place)))?;
                rows.extend(below);
                (rows, next_older, next_newer)
            }
        };
        Ok(WorkerAnswer::Page { from, rows, older, newer })
    }

    fn sessions(&self) -> Result<WorkerAnswer> {
        let shown = self.session.as_ref().map(Session::summary).transpose()?;
        // If this fails, the list is shown without it.
        let work = UnpushedText::load(&self.store, &self.remotes, self.zone);
        let mut work = work.unwrap_or_default();
        let mut rows: Vec<SessionRow> = Vec::new();
        for summary in self.store.latest_sessions(&SessionKind::ALL, MAX_SESSIONS)? {
            let last = summary
                .last_event
                .map_or_else(|| "nothing yet".to_owned(), |time| self.zone.show(time));
            rows.push(SessionRow {
                current: shown.as_ref().is_some_and(|shown| shown.info.id == summary.info.id),
                unpushed: work.sessions.remove(&summary.info.id).unwrap_or_default(),
                name: summary.info.name,
                id: summary.info.id.to_string(),
                about: format!(
                    "{last}, {}, {}, {}",
                    count_text(summary.checkpoints, "checkpoint"),
                    count_text(summary.claims, "claim"),
                    count_text(summary.facts, "fact")
                ),
            });
        }
        Ok(WorkerAnswer::Sessions { rows, unpushed: work.remotes })
    }
}

/// Queues a request in the order of the slots, and drops an earlier request for the same slot.
/// Requests of the slot `Session`, such as writes, are never dropped.
fn queue_request(waiting: &mut VecDeque<(u64, WorkerRequest)>, request: (u64, WorkerRequest)) {
    let slot = request.1.slot();
    if slot != PaneSlot::Session {
        waiting.retain(|(_, other)| other.slot() != slot);
    }
    let place = waiting.iter().position(|(_, other)| other.slot() > slot);
    waiting.insert(place.unwrap_or(waiting.len()), request);
}

fn rows(
    session: &Session,
    level: TimelineLevel,
    filter: &TimelineFilter,
    from: Option<HistoryPosition>,
    direction: PageDirection,
    limit: usize,
) -> Result<(Vec<crate::answer::TimelineRow>, Option<HistoryPosition>)> {
    let kinds = PageKinds {
        revisions: level >= TimelineLevel::Revisions,
        checkpoints: true,
        facts: level >= TimelineLevel::Everything,
    };
    let (mut found, mut next, mut scanned) = (Vec::new(), from, 0);
    loop {
        let wanted = if filter.is_empty() { limit } else { limit.max(250) };
        let page =
            session.history_page(kinds, filter.branch.as_deref(), next, direction, wanted)?;
        scanned += wanted;
        for item in &page.items {
            if row::matches_filter(item, filter) && !row::has_no_text(item) {
                found.push(row::row(item));
            }
        }
        next = page.next;
        let past = match direction {
            PageDirection::Older => {
                filter.since.is_some_and(|since| next.is_some_and(|next| next.time < since))
            }
            PageDirection::Newer => {
                filter.until.is_some_and(|until| next.is_some_and(|next| next.time > until))
            }
        };
        if past {
            next = None;
        }
        if found.len() >= limit || next.is_none() || scanned >= MAX_SCANNED_ITEMS {
            return Ok((found, next));
        }
    }
}

/// Returns the position directly after `place`: the rows before it include the row at `place`.
fn just_after(place: HistoryPosition) -> HistoryPosition {
    use forge_store::store::HistoryRank;
    let rank = match place.rank {
        HistoryRank::Sequence(u64::MAX) => {
            return HistoryPosition {
                time: place.time.plus_micros(1),
                rank: HistoryRank::Fact { kind: 0, place: 0, hash: [0; 8] },
            };
        }
        HistoryRank::Sequence(sequence) => HistoryRank::Sequence(sequence + 1),
        HistoryRank::Fact { kind, place, hash } => {
            let number = u64::from_be_bytes(hash).wrapping_add(1);
            HistoryRank::Fact { kind, place, hash: number.to_be_bytes() }
        }
    };
    HistoryPosition { rank, ..place }
}

fn resolved_moment(session: &Session, target: MomentTarget) -> Result<ResolvedMoment> {
    match target {
        MomentTarget::Head => session.head(),
        MomentTarget::Sequence(sequence) => session.at_sequence(sequence),
        MomentTarget::Time(time) => session.at_time(time),
    }
}

fn export(path: &str, text: &str) -> Result<WorkerAnswer> {
    let write = || {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all(text.as_bytes())
    };
    write().map_err(|error| Error::invalid(format!("cannot write '{path}': {error}")))?;
    Ok(WorkerAnswer::Done { message: format!("written to {path}"), command: String::new() })
}

/// An error with all its causes, and what the user can do if the error does not say it.
pub(crate) fn failure(error: &Error) -> WorkerFailure {
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        message.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    let advice = match error.kind() {
        ErrorKind::NotFound => "choose another one; r reads the lists again, s lists the sessions",
        // The message says what can be written instead.
        ErrorKind::Invalid => "",
        ErrorKind::Conflict => "look at what changed, then try again",
        ErrorKind::Locked => "another process is writing: press r to try again",
        ErrorKind::Unavailable => "check the disk and its permissions, then press r",
        ErrorKind::Corrupt => {
            "other moments can be intact: select another one; 'forge maintain' rebuilds the index"
        }
        ErrorKind::Forged => "do not trust it: 'forge verify' says what was changed",
        ErrorKind::Unkeyed => "'forge adopt' accepts the store as it is",
        ErrorKind::Unsupported => "this store needs another version of forge",
        ErrorKind::Internal => "this is a bug in forge; what was acknowledged before is safe",
    };
    let damaged = error.kind() == ErrorKind::Corrupt;
    WorkerFailure { message, advice: advice.to_owned(), damaged }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_request_of_a_slot_replaces_the_earlier_ones_but_no_write_is_dropped() {
        let mut waiting = VecDeque::new();
        queue_request(&mut waiting, (1, WorkerRequest::Watch));
        queue_request(&mut waiting, (2, WorkerRequest::Strip(80)));
        queue_request(&mut waiting, (3, WorkerRequest::Strip(90)));
        for request_number in [4, 5] {
            queue_request(&mut waiting, (request_number, WorkerRequest::Open(None)));
        }
        let order: Vec<u64> = waiting.iter().map(|(request_number, _)| *request_number).collect();
        assert_eq!(order, [4, 5, 3, 1]);
    }
}

//! Who owns the store: runs requests and answers them, in a thread of its own or, in tests, at once.

mod change;
mod detail;
mod difference;
mod find;
mod row;
mod state;
mod text;

use crate::answer::{Answer, ChartData, Failure, Overview, Reply, SessionRow, Strip};
use crate::app::Zone;
use crate::effect::{PageFrom, Request, Slot, Target};
use crate::query::{Filter, Level};
use forge_store::error::{Error, ErrorKind, Result};
use forge_store::store::{PageKinds, Place, Point, Session, Store, Way};
use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::mpsc::{Receiver, Sender};

/// Of a history with a filter, so many things are looked at before the next request gets its turn.
const LOOKED_AT: usize = 2000;

/// Owns the store.
pub struct Worker {
    store: Store,
    session: Option<Session>,
    zone: Zone,
}

impl Worker {
    /// A worker on this store.
    #[must_use]
    pub const fn new(store: Store, zone: Zone) -> Self {
        Self { store, session: None, zone }
    }

    /// Answers requests until nobody asks any more. Of several requests for one pane only the latest is answered.
    pub fn serve<E>(
        mut self,
        requests: &Receiver<(u64, Request)>,
        replies: &Sender<E>,
        wrap: impl Fn(Reply) -> E,
    ) {
        let mut waiting: VecDeque<(u64, Request)> = VecDeque::new();
        loop {
            if waiting.is_empty() {
                match requests.recv() {
                    Ok(request) => put(&mut waiting, request),
                    Err(_) => return,
                }
            }
            while let Ok(request) = requests.try_recv() {
                put(&mut waiting, request);
            }
            let Some((generation, request)) = waiting.pop_front() else { continue };
            let reply = self.answer(generation, request);
            if replies.send(wrap(reply)).is_err() {
                return;
            }
        }
    }

    /// Answers one request.
    pub fn answer(&mut self, generation: u64, request: Request) -> Reply {
        let slot = request.slot();
        let answer = self.run(request).map_err(|error| failure(&error));
        Reply { generation, slot, answer }
    }

    fn run(&mut self, request: Request) -> Result<Answer> {
        match request {
            Request::Open(name) => self.open(name.as_deref()),
            Request::Page { level, filter, from, limit } => self.page(level, &filter, from, limit),
            Request::State { target, since, tab } => {
                let session = self.session()?;
                let (since, to) =
                    (since.map(|since| point(session, since)), point(session, target)?);
                // The moment stood at before may be gone; then nothing is marked.
                let view =
                    state::view(session, target, &to, since.and_then(Result::ok).as_ref(), tab)?;
                Ok(Answer::State(Box::new(view)))
            }
            Request::Detail { target, key } => {
                let session = self.session()?;
                let sheet =
                    detail::entity(session, &point(session, target)?, target, &key, self.zone)?;
                Ok(Answer::Sheet(Box::new(sheet)))
            }
            Request::Moment(row) => {
                Ok(Answer::Sheet(Box::new(detail::moment(self.session()?, &row, self.zone)?)))
            }
            Request::Compare { from, to, preview } => {
                let session = self.session()?;
                let (sheet, changes) = difference::sheet(session, from, to, preview)?;
                Ok(if preview {
                    Answer::Preview { target: to, sheet: Box::new(sheet), changes }
                } else {
                    Answer::Sheet(Box::new(sheet))
                })
            }
            Request::Charts { target } => self.charts(target),
            Request::Strip(stretches) => {
                let session = self.session()?;
                let summary = session.summary()?;
                let (first, last) = (summary.first_event, summary.last_event);
                let Some((from, to)) = first.zip(last) else {
                    return Ok(Answer::Strip(Box::default()));
                };
                let activity = session.activity(from, to, stretches)?;
                Ok(Answer::Strip(Box::new(Strip { from, to, activity })))
            }
            Request::Find { wanted, from, way } => find::next(self.session()?, wanted, from, way),
            Request::Jump { text, now } => find::jump(self.session()?, &text, now, self.zone),
            Request::Sessions => self.sessions(),
            Request::Watch => Ok(Answer::Watched(self.store.position()?)),
            Request::Change { change, now } => change::run(self.session()?, &change, now),
            Request::Export { path, text } => export(&path, &text),
        }
    }

    fn session(&self) -> Result<&Session> {
        self.session.as_ref().ok_or_else(|| Error::not_found("session", "current"))
    }

    fn open(&mut self, name: Option<&str>) -> Result<Answer> {
        let position = self.store.position()?;
        self.session = match name {
            Some(name) => Some(self.store.session(name)?),
            None => self.store.current_session()?,
        };
        let Some(session) = &self.session else { return Ok(Answer::NoSession) };
        let summary = session.summary()?;
        Ok(Answer::Opened(Box::new(Overview {
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

    fn page(&self, level: Level, filter: &Filter, from: PageFrom, limit: usize) -> Result<Answer> {
        let session = self.session()?;
        let older = |place| rows(session, level, filter, place, Way::Older, limit);
        let newer = |place| rows(session, level, filter, place, Way::Newer, limit);
        let (rows, older, newer) = match from {
            PageFrom::Newest => {
                let (rows, next) = older(None)?;
                (rows, next, None)
            }
            PageFrom::Before(place) => {
                let (rows, next) = older(Some(place))?;
                (rows, next, None)
            }
            PageFrom::After(place) => {
                let (mut rows, next) = newer(Some(place))?;
                rows.reverse();
                (rows, None, next)
            }
            PageFrom::Oldest => {
                let (mut rows, next) = newer(None)?;
                rows.reverse();
                (rows, None, next)
            }
            PageFrom::Around(place) => {
                let (mut rows, next_newer) = newer(Some(place))?;
                rows.reverse();
                // What stands exactly there comes with what is older.
                let (below, next_older) = older(Some(just_after(place)))?;
                rows.extend(below);
                (rows, next_older, next_newer)
            }
        };
        Ok(Answer::Page { from, rows, older, newer })
    }

    fn charts(&self, target: Target) -> Result<Answer> {
        let session = self.session()?;
        let summary = session.summary()?;
        let from = summary.first_event.unwrap_or_default();
        let point = point(session, target)?;
        let to = point.time().or(summary.last_event).unwrap_or(from);
        let confidence = state::confidence(session, &point, to)?;
        let activity = session.activity(from, to, 200)?;
        Ok(Answer::Charts(Box::new(ChartData { from, to, confidence, activity })))
    }

    fn sessions(&self) -> Result<Answer> {
        let shown = self.session.as_ref().map(Session::summary).transpose()?;
        let mut rows: Vec<SessionRow> = Vec::new();
        for summary in self.store.sessions()? {
            let last = summary
                .last_event
                .map_or_else(|| "nothing yet".to_owned(), |time| self.zone.show(time));
            rows.push(SessionRow {
                current: shown.as_ref().is_some_and(|shown| shown.info.id == summary.info.id),
                name: summary.info.name,
                id: summary.info.id.to_string(),
                about: format!(
                    "{last}, {} checkpoints, {} claims, {} facts",
                    summary.checkpoints, summary.claims, summary.facts
                ),
            });
        }
        rows.reverse();
        Ok(Answer::Sessions(rows))
    }
}

/// Takes a request in, instead of an earlier one for the same pane. Writes are never left out.
fn put(waiting: &mut VecDeque<(u64, Request)>, request: (u64, Request)) {
    let slot = request.1.slot();
    if slot != Slot::Session {
        waiting.retain(|(_, other)| other.slot() != slot);
    }
    let place = waiting.iter().position(|(_, other)| other.slot() > slot);
    waiting.insert(place.unwrap_or(waiting.len()), request);
}

fn rows(
    session: &Session,
    level: Level,
    filter: &Filter,
    from: Option<Place>,
    way: Way,
    limit: usize,
) -> Result<(Vec<crate::answer::Row>, Option<Place>)> {
    let kinds = PageKinds {
        revisions: level >= Level::Revisions,
        checkpoints: true,
        facts: level >= Level::Everything,
    };
    let (mut found, mut next, mut looked) = (Vec::new(), from, 0);
    loop {
        let wanted = if filter.is_empty() { limit } else { limit.max(250) };
        let page = session.page(kinds, filter.branch.as_deref(), next, way, wanted)?;
        looked += wanted;
        for item in &page.items {
            if row::passes(item, filter) {
                found.push(row::row(item));
            }
        }
        next = page.next;
        let past = match way {
            Way::Older => {
                filter.since.is_some_and(|since| next.is_some_and(|next| next.time < since))
            }
            Way::Newer => {
                filter.until.is_some_and(|until| next.is_some_and(|next| next.time > until))
            }
        };
        if past {
            next = None;
        }
        if found.len() >= limit || next.is_none() || looked >= LOOKED_AT {
            return Ok((found, next));
        }
    }
}

/// The place just after this one, so that what stands before it includes this one.
fn just_after(place: Place) -> Place {
    use forge_store::store::Rank;
    let rank = match place.rank {
        Rank::Sequence(u64::MAX) => {
            return Place {
                time: place.time.plus_micros(1),
                rank: Rank::Fact { kind: 0, place: 0, hash: [0; 8] },
            };
        }
        Rank::Sequence(sequence) => Rank::Sequence(sequence + 1),
        Rank::Fact { kind, place, hash } => {
            let number = u64::from_be_bytes(hash).wrapping_add(1);
            Rank::Fact { kind, place, hash: number.to_be_bytes() }
        }
    };
    Place { rank, ..place }
}

/// The point that a target names.
fn point(session: &Session, target: Target) -> Result<Point> {
    match target {
        Target::Head => session.head(),
        Target::Sequence(sequence) => session.sequence(sequence),
        Target::Time(time) => session.at(time),
    }
}

fn export(path: &str, text: &str) -> Result<Answer> {
    let write = || {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).open(path)?;
        file.write_all(text.as_bytes())
    };
    match write() {
        Ok(()) => Ok(Answer::Done { said: format!("written to {path}"), command: String::new() }),
        Err(error) => Err(Error::invalid(format!("cannot write '{path}': {error}"))),
    }
}

/// An error with all its causes, and what to do.
pub(crate) fn failure(error: &Error) -> Failure {
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        message.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    let advice = match error.kind() {
        ErrorKind::NotFound => "name another one; s lists the sessions, ? the keys",
        ErrorKind::Invalid => "say it differently",
        ErrorKind::Conflict => "look at what changed, then try again",
        ErrorKind::Locked => "somebody else is writing: press r to try again",
        ErrorKind::Unavailable => "see to the disk and its permissions, then press r",
        ErrorKind::Corrupt => {
            "other moments may be whole: stand on another one; 'forge maintain' makes the index anew"
        }
        ErrorKind::Forged => "believe nothing of it: 'forge verify' says what was changed",
        ErrorKind::Unkeyed => "'forge adopt' takes the store over",
        ErrorKind::Unsupported => "this store needs another version of forge",
        ErrorKind::Internal => "this is a bug in forge; what was acknowledged before is safe",
    };
    let damaged = error.kind() == ErrorKind::Corrupt;
    Failure { message, advice: advice.to_owned(), damaged }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_requests_for_one_pane_the_latest_waits_and_writes_all_do() {
        let mut waiting = VecDeque::new();
        put(&mut waiting, (1, Request::Watch));
        put(&mut waiting, (2, Request::Strip(80)));
        put(&mut waiting, (3, Request::Strip(90)));
        for generation in [4, 5] {
            put(&mut waiting, (generation, Request::Open(None)));
        }
        let order: Vec<u64> = waiting.iter().map(|(generation, _)| *generation).collect();
        assert_eq!(order, [4, 5, 3, 1]);
    }
}

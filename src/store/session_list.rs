//! Lists of sessions.

use super::session::{Session, SessionListEntry, SessionSummary};
use super::{Store, current_number};
use crate::engine::refs::{StoreRefs, visible_sessions};
use crate::engine::session_rows::SessionLookup;
use crate::error::Result;
use crate::format::SessionRefs;
use crate::model::{SessionKind, SessionNumber};

impl Store {
    /// Returns all sessions, the oldest first.
    pub fn sessions(&self) -> Result<Vec<SessionSummary>> {
        let (refs, _) = self.engine.follower.refs()?;
        visible_sessions(&refs)
            .map(|one| {
                let (number, session) = one?;
                self.summary(&refs, number, &session)
            })
            .collect()
    }

    /// Returns at most `limit` sessions of these kinds, those with the latest events first. The
    /// cost depends on `limit`, not on the number of sessions.
    pub fn latest_sessions(
        &self,
        kinds: &[SessionKind],
        limit: usize,
    ) -> Result<Vec<SessionSummary>> {
        let (refs, _) = self.engine.follower.refs()?;
        let mut latest = Vec::new();
        for kind in kinds {
            for (number, session) in refs.sessions.latest(*kind, limit)? {
                latest.push(self.summary(&refs, number, session)?);
            }
        }
        latest.sort_by_cached_key(|session| {
            let last = session.last_event.unwrap_or(session.info.started_at);
            (std::cmp::Reverse(last), session.info.name.clone())
        });
        latest.truncate(limit);
        Ok(latest)
    }

    /// Returns the sessions with a source of this name ([`SessionSummary::sources`]), the oldest
    /// first. The cost depends on the number of these sessions, not of all sessions.
    pub fn sessions_of_source(&self, source: &str) -> Result<Vec<Session>> {
        let (refs, _) = self.engine.follower.refs()?;
        let found = refs.sessions.find(SessionLookup::Source(source))?;
        Ok(found.into_iter().map(|(number, _)| self.session_at(number)).collect())
    }

    /// Returns the number of sessions of a kind.
    pub fn session_count(&self, kind: SessionKind) -> Result<u64> {
        Ok(self.engine.follower.refs()?.0.sessions.visible(kind))
    }

    /// Returns the summary of the session with this number.
    pub(super) fn summary(
        &self,
        refs: &StoreRefs,
        number: SessionNumber,
        session: &SessionRefs,
    ) -> Result<SessionSummary> {
        let current = current_number(refs) == Some(number);
        let mut summary = SessionSummary::of(number, session, current);
        summary.facts -= self.facts_taken_back(session)?.min(summary.facts);
        Ok(summary)
    }

    /// Returns all sessions of a kind, each with its name, start and last event, the oldest first.
    pub fn sessions_by_kind(&self, kind: SessionKind) -> Result<Vec<SessionListEntry>> {
        let (refs, _) = self.engine.follower.refs()?;
        let mut found = refs.sessions.latest(kind, usize::MAX)?;
        found.sort_unstable_by_key(|(number, _)| *number);
        let found = found.into_iter().map(|(number, session)| SessionListEntry {
            session: self.session_at(number),
            name: session.info.name.clone(),
            started_at: session.info.started_at,
            last_event: session.last_event,
        });
        Ok(found.collect())
    }
}

//! Agent sessions that joined a debugging session that was begun without them.
//!
//! A joined agent session is stored as an empty bookmark, so that it can be found in the refs
//! alone.

use super::session::Session;
use super::write_context::WriteContext;
use super::{Store, find_session};
use crate::engine::commit::CommitDurability;
use crate::engine::refs::{JOINED, agent_session, session as session_refs};
use crate::engine::session_rows::SessionLookup;
use crate::error::{Error, Result};
use crate::format::{Record, RecordChange};
use crate::model::SessionKind;

impl Session {
    /// Makes an agent's session part of this debugging session: from then on, hooks, imports and
    /// commands that use the agent's own id write to it. Earlier records stay in the session in
    /// which they are. Returns whether this changed anything.
    ///
    /// # Errors
    /// [`Error::Invalid`] if this is not a debugging session or the id is not valid; also if the
    /// store cannot be written.
    pub fn join(&self, act: &WriteContext, agent: &str) -> Result<bool> {
        crate::model::claim::check_id(agent).map_err(|error| Error::invalid(error.to_string()))?;
        let operation = act.operation()?;
        let source = format!("{JOINED}{agent}");
        self.store.engine.commit(CommitDurability::Now, &mut |context| {
            let here = session_refs(&context.refs, self.number)?;
            if here.info.kind != SessionKind::Debug {
                return Err(Error::invalid(format!(
                    "'{}' is not a debugging session: only those can be joined",
                    here.info.name
                )));
            }
            if agent_session(&context.refs, agent)? == Some(self.number) {
                return Ok((None, false));
            }
            let mut changes = Vec::new();
            // An agent session is part of only one debugging session at a time.
            for (session, _) in context.refs.sessions.find(SessionLookup::Source(&source))? {
                if session != self.number {
                    let (source, bookmark) = (source.clone(), None);
                    changes.push(RecordChange::Bookmark { session, source, bookmark });
                }
            }
            if here.info.agent_session.as_deref() != Some(agent) {
                changes.push(RecordChange::Bookmark {
                    session: self.number,
                    source: source.clone(),
                    bookmark: Some(Box::default()),
                });
            }
            changes.push(RecordChange::Used { session: self.number });
            Ok((Some(Record { operation: operation.clone(), changes }), true))
        })
    }
}

impl Store {
    /// Returns the session of an agent session, given by the agent's own id, if there is one: the
    /// session that it joined last, or the one that it began.
    pub fn agent_session(&self, agent: &str) -> Result<Option<Session>> {
        let (refs, _) = self.engine.follower.refs()?;
        Ok(agent_session(&refs, agent)?.map(|number| self.session_at(number)))
    }

    /// Returns the session with this name, this id or this agent's own id. An id may be shortened
    /// to its first 4 characters or more.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Ambiguous`].
    pub fn session(&self, name: &str) -> Result<Session> {
        let (refs, _) = self.engine.follower.refs()?;
        find_session(&refs, name).map(|number| self.session_at(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;
    use crate::store::NewSession;

    fn act() -> WriteContext {
        WriteContext::asked("test", Timestamp::default())
    }

    fn begin(store: &Store, name: &str, agent: Option<&str>) -> Session {
        let agent_session = agent.map(str::to_owned);
        let new = NewSession { agent_session, ..NewSession::named(name) };
        store.create_session(&act(), new).unwrap()
    }

    fn name_of(store: &Store, agent: &str) -> Option<String> {
        let session = store.agent_session(agent).unwrap()?;
        Some(session.summary().unwrap().info.name)
    }

    #[test]
    fn an_agent_session_writes_to_the_session_that_it_joined_last() {
        let store = Store::in_memory().unwrap();
        let (a, b) = (begin(&store, "a", None), begin(&store, "b", None));
        let own = begin(&store, "own", Some("s1"));
        assert_eq!(name_of(&store, "s1").as_deref(), Some("own"));
        assert!(a.join(&act(), "s1").unwrap());
        assert!(!a.join(&act(), "s1").unwrap());
        assert_eq!(name_of(&store, "s1").as_deref(), Some("a"));
        assert_eq!(store.session("s1").unwrap().summary().unwrap().info.name, "a");
        b.join(&act(), "s1").unwrap();
        assert_eq!(name_of(&store, "s1").as_deref(), Some("b"));
        // It joins its own session again.
        own.join(&act(), "s1").unwrap();
        assert_eq!(name_of(&store, "s1").as_deref(), Some("own"));
        assert_eq!(a.summary().unwrap().sources, []);
    }

    #[test]
    fn an_agent_session_that_recorded_nothing_yet_can_join() {
        let store = Store::in_memory().unwrap();
        let a = begin(&store, "a", None);
        assert!(a.join(&act(), "new").unwrap());
        assert_eq!(name_of(&store, "new").as_deref(), Some("a"));
        assert_eq!(a.summary().unwrap().joined, ["new"]);
        assert_eq!(a.summary().unwrap().sources, []);
        assert!(a.join(&act(), "").is_err());
    }
}

//! Begins sessions. Existing sessions are looked up under the writer's lock, so concurrent requests
//! for one session begin only one.

use super::Store;
use super::new_session::NewSession;
use super::session::Session;
use super::spooled_write::session_metadata;
use super::write_context::WriteContext;
use crate::engine::commit::CommitDurability;
use crate::engine::plan_context::PlanContext;
use crate::engine::refs::{self, StoreRefs};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Record, RecordChange};
use crate::model::{Operation, SessionKind, SessionMetadata, SessionNumber};

/// What to do if a new session exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clash {
    /// Refuse a name that is taken.
    Refuse,
    /// Use the next free name if the name is taken.
    NextName,
    /// Use the existing session of the same agent session. If there is none, use the next free
    /// name.
    OfAgent,
}

impl Store {
    /// Begins a session. A debugging session becomes the last used one if
    /// [`NewSession::takes_over`] is set or there is no last used one.
    ///
    /// # Errors
    /// [`Error::Duplicate`] if a session of the same kind has this name; also if the store cannot
    /// be written.
    pub fn create_session(&self, act: &WriteContext, new: NewSession) -> Result<Session> {
        self.begin_session(act, new, Clash::Refuse, CommitDurability::Now)
    }

    /// Begins a session, with the next free name if its name is taken: `name`, `name-2`, `name-3`.
    pub fn create_named(&self, act: &WriteContext, new: NewSession) -> Result<Session> {
        self.begin_session(act, new, Clash::NextName, CommitDurability::Now)
    }

    /// Returns the session of an agent session ([`NewSession::agent_session`]): the session that it
    /// joined last, or the one that it began. If there is none, begins one with the next free name.
    /// Concurrent requests for one agent session all get the same session.
    pub fn session_for_agent(&self, act: &WriteContext, new: NewSession) -> Result<Session> {
        self.begin_session(act, new, Clash::OfAgent, CommitDurability::Now)
    }

    /// Begins a session, or returns an existing one if `clash` allows it.
    pub(super) fn begin_session(
        &self,
        act: &WriteContext,
        mut new: NewSession,
        clash: Clash,
        durability: CommitDurability,
    ) -> Result<Session> {
        self.gate().session(&mut new);
        let operation = act.operation()?;
        let takes_over = new.takes_over;
        let info = session_metadata(act, new)?;
        let number = self.engine.commit(durability, &mut |context| {
            begun(context, &operation, &info, (clash, takes_over))
        });
        match number {
            Err(error)
                if error.kind() == ErrorKind::Locked && self.engine.follower.spool.is_some() =>
            {
                let refs = self.engine.follower.refs()?.0;
                match settled(&refs, &info, clash)? {
                    Ok(number) => Ok(self.session_at(number)),
                    Err(info) => self.begin_spooled_session(&operation, &info, takes_over),
                }
            }
            number => Ok(self.session_at(number?)),
        }
    }
}

/// Returns the number of the existing session, or the metadata of the new one with its final name.
fn settled(
    refs: &StoreRefs,
    info: &SessionMetadata,
    clash: Clash,
) -> Result<Result<SessionNumber, SessionMetadata>> {
    if let (Clash::OfAgent, Some(agent)) = (clash, &info.agent_session)
        && let Some(number) = refs::agent_session(refs, agent)?
    {
        return Ok(Ok(number));
    }
    let mut info = info.clone();
    if refs::of_kind(refs, info.kind, &info.name)?.is_some() {
        if clash == Clash::Refuse {
            return Err(Error::Duplicate { kind: "session", id: info.name });
        }
        info.name = refs::free_name(refs, info.kind, &info.name)?;
    }
    Ok(Err(info))
}

/// Returns the record that begins a session, and the number of the session; no record if the
/// session exists already.
pub(super) fn begun(
    context: &PlanContext<'_>,
    operation: &Operation,
    info: &SessionMetadata,
    (clash, takes_over): (Clash, bool),
) -> Result<(Option<Record>, SessionNumber)> {
    let info = match settled(&context.refs, info, clash)? {
        Ok(number) => return Ok((None, number)),
        Err(info) => info,
    };
    let number = context.refs.sessions.len() as SessionNumber;
    let takes_over = takes_over || context.refs.last_used.is_none();
    let is_debug = info.kind == SessionKind::Debug;
    let mut changes = vec![RecordChange::Session { info: Box::new(info) }];
    if is_debug && takes_over {
        changes.push(RecordChange::Used { session: number });
    }
    Ok((Some(Record { operation: operation.clone(), changes }), number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;
    use crate::model::Timestamp;
    use crate::store::Options;
    use std::collections::BTreeSet;
    use std::sync::Barrier;
    use std::thread;

    const MANY: usize = 8;

    fn act() -> WriteContext {
        WriteContext::hook("test", Timestamp::default())
    }

    fn of_agent(name: &str, agent: &str) -> NewSession {
        NewSession { agent_session: Some(agent.to_owned()), ..NewSession::imported(name) }
    }

    /// Opens the same folder several times, as separate processes would.
    fn stores(folder: &tempfile::TempDir) -> Vec<Store> {
        let path = folder.path().join(".forge");
        Store::create(&path, Options::default()).unwrap();
        (0..MANY).map(|_| Store::open(&path, Options::default()).unwrap()).collect()
    }

    /// Begins a session from every store at once, after each has found that there is none.
    fn at_once(
        stores: &[Store],
        agent: &str,
        begin: impl Fn(&Store, usize) -> Result<Session> + Sync,
    ) -> Vec<String> {
        let gate = Barrier::new(stores.len());
        thread::scope(|scope| {
            let begun: Vec<_> = stores
                .iter()
                .enumerate()
                .map(|(place, store)| {
                    let (gate, begin) = (&gate, &begin);
                    scope.spawn(move || {
                        let known = store.agent_session(agent).unwrap();
                        assert!(known.is_none(), "nobody has begun it before the gate");
                        gate.wait();
                        begin(store, place).unwrap().summary().unwrap().info.name
                    })
                })
                .collect();
            begun.into_iter().map(|one| one.join().unwrap()).collect()
        })
    }

    /// Regression: concurrent hooks and imports must not look up the agent's session before they
    /// have the lock. Otherwise eight of them begin eight sessions.
    #[test]
    fn an_agent_session_that_many_begin_at_once_is_one_session() {
        let folder = tempfile::tempdir().unwrap();
        let stores = stores(&folder);
        for round in 0..4 {
            let agent = format!("agent-{round}");
            // Each uses another name, as a prompt, a tool call and a transcript title do.
            let names = at_once(&stores, &agent, |store, place| {
                store.session_for_agent(&act(), of_agent(&format!("n{place}"), &agent))
            });
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 1, "{names:?}");
            let all = stores[0].sessions().unwrap();
            let of_it = |one: &&crate::store::SessionSummary| {
                one.info.agent_session.as_deref() == Some(agent.as_str())
            };
            assert_eq!(all.iter().filter(of_it).count(), 1);
        }
    }

    #[test]
    fn sessions_created_at_once_with_one_name_get_different_names() {
        let folder = tempfile::tempdir().unwrap();
        let stores = stores(&folder);
        let names = at_once(&stores, "none", |store, _| {
            store.create_named(&act(), NewSession::imported("s"))
        });
        let wanted = ["s".to_owned()].into_iter().chain((2..=MANY).map(|one| format!("s-{one}")));
        assert_eq!(names.into_iter().collect::<BTreeSet<_>>(), wanted.collect());
    }

    #[test]
    fn an_agent_session_that_joined_a_session_begins_no_other() {
        let store = Store::in_memory().unwrap();
        let effort = store.create_session(&act(), NewSession::named("effort")).unwrap();
        effort.join(&act(), "a").unwrap();
        let found = store.session_for_agent(&act(), of_agent("s", "a")).unwrap();
        assert_eq!(found.number, effort.number);
        assert_eq!(store.sessions().unwrap().len(), 1);
    }
}

//! Writes to the spool, which work even if the journal can be neither read nor written.

use super::fact_pages::fact_pages;
use super::new_checkpoint::NewCheckpoint;
use super::new_session::NewSession;
use super::redaction_gate::{RedactionCounts, warning};
use super::spool_entry::{add_checkpoint, add_note, add_pages, new_entry, save};
use super::validate::{check_checkpoint, check_claim, check_fact};
use super::write_context::WriteContext;
use super::write_report::WriteReport;
use super::{Session, Store};
use crate::engine::random::random;
use crate::engine::refs::agent_session;
use crate::engine::revision_plan::ClaimChange;
use crate::engine::session_rows::SessionLookup;
use crate::engine::spool;
use crate::engine::verify::chain;
use crate::error::{Error, Result};
use crate::model::{
    CheckpointId, Fact, Key, Kind, Operation, SessionId, SessionMetadata, Value, claim,
};

/// A write to a session that is saved in the spool, so the store may be neither readable nor
/// writable. The next writer appends it to the journal.
///
/// For hooks, which must not lose events. If the store can be read and written, use
/// [`Session::write`], which uses the spool only if the journal cannot be written.
#[derive(Debug)]
#[must_use = "nothing is kept before `save`"]
pub struct SpooledWrite<'a> {
    store: &'a Store,
    act: &'a WriteContext,
    session: SessionMetadata,
    takes_over: bool,
    facts: Vec<Fact>,
    notes: Vec<(String, Value)>,
    checkpoints: Vec<NewCheckpoint>,
}

/// The state of the spool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpoolStatus {
    /// How many writes wait to be appended to the journal.
    pub writes: u64,
    /// Acknowledged writes that cannot be read, by operation, each with the problem. The store
    /// cannot be read before it is repaired or adopted.
    pub damaged: Vec<(String, String)>,
    /// Writes without a seal of the store's key, by operation: they wait until the store is
    /// adopted.
    pub unsealed: Vec<String>,
    /// The names of writes that an earlier repair could not read. Their bytes are kept.
    pub set_aside: Vec<String>,
}

impl Store {
    /// Begins a write for a session: the one of this agent's own id if it exists, else a new one.
    pub fn spooled_write<'a>(
        &'a self,
        act: &'a WriteContext,
        mut new: NewSession,
    ) -> Result<SpooledWrite<'a>> {
        self.gate().session(&mut new);
        let takes_over = new.takes_over;
        let session = session_metadata(act, new)?;
        let (facts, notes, checkpoints) = (Vec::new(), Vec::new(), Vec::new());
        Ok(SpooledWrite { store: self, act, session, takes_over, facts, notes, checkpoints })
    }

    /// Returns what is in the spool.
    ///
    /// # Errors
    /// If the spool cannot be read.
    pub fn spool_status(&self) -> Result<SpoolStatus> {
        let Some(spool) = &self.engine.follower.spool else { return Ok(SpoolStatus::default()) };
        let mut waiting = SpoolStatus { set_aside: spool.set_aside()?, ..SpoolStatus::default() };
        for name in spool.names()? {
            match spool::read(&**spool, &name)? {
                Some(Ok(_)) => waiting.writes += 1,
                Some(Err(error)) if spool::is_left_out(&**spool, &name, &error) => {
                    waiting.unsealed.push(name);
                }
                Some(Err(error)) => {
                    // If the journal cannot be read, assume that the write was not appended.
                    let written = self.engine.follower.written_view();
                    let came_in = written.and_then(|view| spool::is_written(&view, &name));
                    if !came_in.unwrap_or(false) {
                        waiting.damaged.push((name, chain(&error)));
                    }
                }
                None => {}
            }
        }
        Ok(waiting)
    }

    /// Appends the writes in the spool to the journal.
    ///
    /// # Errors
    /// [`Error::Backend`] if another process holds the append lock; other errors if the store
    /// cannot be written. What cannot be appended stays in the spool.
    pub fn drain(&self) -> Result<()> {
        self.engine.check_writable()?;
        self.engine.drain()
    }

    pub(super) fn begin_spooled_session(
        &self,
        operation: &Operation,
        info: &SessionMetadata,
        used: bool,
    ) -> Result<Session> {
        let mut waiting = new_entry(operation.clone(), info.clone())?;
        waiting.used = used;
        self.engine.spool(&waiting)?;
        let (refs, _) = self.engine.follower.refs()?;
        if let Some((number, _)) = refs.sessions.find(SessionLookup::Id(info.id))?.first() {
            self.engine.follower.promise(*number, info.id);
            return Ok(self.session_at(*number));
        }
        // Another process began a session for the same agent session: the write goes to that one.
        if let Some(agent) = &info.agent_session
            && let Some(number) = agent_session(&refs, agent)?
        {
            return Ok(self.session_at(number));
        }
        Err(Error::Conflict(format!("the session '{}' was begun by another process", info.name)))
    }
}

pub(super) fn session_metadata(act: &WriteContext, new: NewSession) -> Result<SessionMetadata> {
    claim::check_id(&new.name).map_err(|error| Error::invalid(error.to_string()))?;
    Ok(SessionMetadata {
        id: SessionId::from_bytes(random()?),
        name: new.name,
        kind: new.kind,
        agent: new.agent,
        agent_session: new.agent_session,
        started_at: new.started_at.unwrap_or(act.now),
    })
}

impl SpooledWrite<'_> {
    /// Adds a fact.
    pub fn fact(mut self, fact: Fact) -> Self {
        self.facts.push(fact);
        self
    }

    /// Adds a note. If another note has this id when the write is appended, the new note gets
    /// another id.
    pub fn note(mut self, id: impl Into<String>, value: Value) -> Self {
        self.notes.push((id.into(), value));
        self
    }

    /// Adds a checkpoint.
    pub fn checkpoint(mut self, checkpoint: NewCheckpoint) -> Self {
        self.checkpoints.push(checkpoint);
        self
    }

    /// Saves the write to the spool. When this returns, it survives kill -9 and power loss.
    ///
    /// # Errors
    /// [`Error::Invalid`] for values that are not valid, [`Error::ReadOnly`], [`Error::Backend`].
    pub fn save(mut self) -> Result<WriteReport> {
        let mut waiting = new_entry(self.act.operation()?, self.session)?;
        waiting.used = self.takes_over;
        let (gate, mut removed) = (self.store.gate(), RedactionCounts::new());
        for fact in &mut self.facts {
            check_fact(gate, fact, &mut removed)?;
        }
        // The session number is not stored in a page.
        add_pages(&mut waiting, &fact_pages(0, None, self.facts)?);
        for (id, value) in self.notes {
            let mut change = ClaimChange::add(Key::new(Kind::Note, id), value);
            gate.claim(&mut change, &mut removed)?;
            check_claim(&mut change)?;
            add_note(&mut waiting, &change.key.id, &change.value.unwrap_or_default(), None);
        }
        for mut wanted in self.checkpoints {
            check_checkpoint(gate, &mut wanted, &mut removed)?;
            add_checkpoint(&mut waiting, wanted, CheckpointId::from_bytes(random()?), None);
        }
        if self.store.engine.follower.spool.is_none() {
            return Err(Error::Conflict("a store in memory has no spool".to_owned()));
        }
        let reason = Error::Conflict("the write was made for the spool".to_owned());
        let mut done = save(self.store, &waiting, &reason)?;
        done.warnings.extend(warning(&removed));
        Ok(done)
    }
}

//! Programs of several agents that checkpoint at different rates.
//!
//! A program's checkpoint is one revision that records the position of each agent: a vector of
//! their checkpoints. The checkpoint is out of date as soon as an agent continues. Resuming starts
//! each agent from its own latest checkpoint and reports the difference.

mod consistent_cut;
mod resume;

pub use consistent_cut::{AgentMessage, CheckpointCut, MessageFate, consistent};
pub use resume::{
    AgentResumePoint, CutAgent, MissingAgent, ResumedAgent, ResumedProgram, TornMessage,
};

use forge_store::error::{Error, Result};
use forge_store::model::time_grammar::{MomentBase, MomentExpression};
use forge_store::model::{
    Checkpoint, CheckpointId, Fact, FactOrigin, Key, Kind, SessionKind, Timestamp, Value,
};
use forge_store::store::{ClaimChange, ResolvedMoment, Session, Store, WriteContext, WriteReport};
use serde::Serialize;
use std::collections::BTreeMap;

/// The id of the only claim of the kind `program` in a program's session.
const ID: &str = "program";

/// The position of an agent when its program was checkpointed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckpointReference {
    /// The name given for the position, or a name by which the agent's session finds it again.
    pub checkpoint: String,
    /// Its sequence number in the agent's session; `None` if the agent has no session.
    pub sequence: Option<u64>,
    /// The checkpoint id, if it is a checkpoint.
    pub id: Option<CheckpointId>,
}

/// A program's checkpoint: a vector of agent positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramCheckpoint {
    /// Its sequence number in the program's session.
    pub number: u64,
    /// The message given for it.
    pub message: Option<String>,
    /// The time of the checkpoint.
    pub at: Timestamp,
    /// The position of each agent.
    pub agents: BTreeMap<String, CheckpointReference>,
}

/// A program in a store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Program {
    store: Store,
    session: Session,
    name: String,
}

impl Program {
    /// Opens the program of this name.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub fn open(store: &Store, name: &str) -> Result<Self> {
        let session = crate::open(store, SessionKind::Program, name)?;
        Ok(Self { store: store.clone(), session, name: name.to_owned() })
    }

    /// Opens the program of this name, or creates it.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name is not valid; or any error of a write.
    pub fn open_or_create(store: &Store, act: &WriteContext, name: &str) -> Result<Self> {
        let session = crate::open_or_create(store, act, SessionKind::Program, name)?;
        Ok(Self { store: store.clone(), session, name: name.to_owned() })
    }

    /// Returns the name of the program.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the session that stores the program.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the session with the name of an agent, if there is one.
    pub fn agent(&self, name: &str) -> Result<Option<Session>> {
        self.store.session_by_kind(SessionKind::Debug, name)
    }

    /// Records the positions of these agents in one revision. Agents that are not named keep their
    /// position. If nothing changes, nothing is written.
    ///
    /// # Errors
    /// [`Error::Invalid`] if no agent is given or a name is not valid; or any error of a write.
    pub fn checkpoint(
        &self,
        act: &WriteContext,
        agents: &BTreeMap<String, CheckpointReference>,
        message: Option<&str>,
    ) -> Result<WriteReport> {
        if agents.is_empty() {
            return Err(Error::invalid(
                "a program's checkpoint needs an agent: name one with its checkpoint",
            ));
        }
        for name in agents.keys() {
            forge_store::model::claim::check_id(name)
                .map_err(|error| Error::invalid(error.to_string()))?;
        }
        let edit = |known: &[Option<Value>]| {
            let known = known.first().and_then(Option::as_ref);
            let all = known.and_then(|value| value.field("agents")?.as_map());
            let mut all = all.cloned().unwrap_or_default();
            all.extend(agents.iter().map(|(name, reference)| (name.clone(), reference.value())));
            let value = Value::from([
                ("agents", Value::Map(all)),
                ("message", message.map(str::to_owned).into()),
            ]);
            Ok(vec![ClaimChange::put(Key::new(Kind::Program, ID), value)])
        };
        self.session.write(act).edit(vec![Key::new(Kind::Program, ID)], edit).commit()
    }

    /// Returns the checkpoint of the program at a moment of its session.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none yet; or any error of a read.
    pub fn at(&self, moment: &ResolvedMoment) -> Result<ProgramCheckpoint> {
        let none = || Error::not_found("checkpoint of the program", self.name.clone());
        let revision = self.session.revision_of(moment)?.ok_or_else(none)?;
        let entry = self.session.claim(moment, &Key::new(Kind::Program, ID))?.ok_or_else(none)?;
        let message = entry.value.field("message").and_then(Value::as_text).map(str::to_owned);
        let agents = entry.value.field("agents").and_then(Value::as_map).into_iter().flatten();
        let agents =
            agents.map(|(name, value)| (name.clone(), CheckpointReference::read(value))).collect();
        Ok(ProgramCheckpoint { number: revision.sequence, message, at: revision.time, agents })
    }

    /// Checks that a message is not from an agent to itself. The program need not exist.
    ///
    /// # Errors
    /// [`Error::Invalid`] if both are the same agent.
    pub fn check_ends(from: &str, to: &str) -> Result<()> {
        if from == to {
            return Err(Error::invalid(format!("the agent '{from}' needs no message to itself")));
        }
        Ok(())
    }

    /// Records that an agent sends a message to another, now or after a sequence number of the
    /// sender's session.
    ///
    /// # Errors
    /// [`Error::Duplicate`] if a message with this id was sent; [`Error::Invalid`] if both are the
    /// same agent, or the sender has not come to `after` yet; or any error of a write.
    pub fn send(
        &self,
        act: &WriteContext,
        id: &str,
        from: &str,
        to: &str,
        after: Option<u64>,
    ) -> Result<WriteReport> {
        Self::check_ends(from, to)?;
        if self.message(id)?.is_some() {
            return Err(Error::Duplicate { kind: "message", id: id.to_owned() });
        }
        let sent = self.position(from, after)?;
        let value = Value::from([("from", from.into()), ("to", to.into()), ("sent", sent.into())]);
        self.record(act, id, 0, value)
    }

    /// Records that the message was received, now or after a sequence number of the receiver's
    /// session.
    ///
    /// # Errors
    /// [`Error::NotFound`] if no message with this id was sent; [`Error::Duplicate`] if it was
    /// received already; [`Error::Invalid`] if the receiver has not come to `after` yet; or any
    /// error of a write.
    pub fn receive(&self, act: &WriteContext, id: &str, after: Option<u64>) -> Result<WriteReport> {
        let sent = self.message(id)?.ok_or_else(|| Error::not_found("message", id))?;
        if sent.received.is_some() {
            return Err(Error::Duplicate { kind: "receipt of the message", id: id.to_owned() });
        }
        let received = self.position(&sent.to, after)?;
        let value = Value::from([
            ("from", sent.from.into()),
            ("to", sent.to.into()),
            ("sent", sent.sent.into()),
            ("received", received.into()),
        ]);
        self.record(act, id, 1, value)
    }

    fn record(
        &self,
        act: &WriteContext,
        id: &str,
        place: u64,
        value: Value,
    ) -> Result<WriteReport> {
        let fact = Fact {
            kind: Kind::Message,
            id: id.to_owned(),
            at: act.now,
            origin: FactOrigin::Recorded,
            place,
            recorded_at: act.now,
            value,
        };
        self.session.write(act).fact(fact).commit()
    }

    /// Returns `after` if it is given, else the sequence number of the agent's last revision or
    /// checkpoint; 0 without a session.
    fn position(&self, agent: &str, after: Option<u64>) -> Result<u64> {
        let Some(session) = self.agent(agent)? else { return Ok(after.unwrap_or(0)) };
        let last = session.summary()?.last_sequence;
        match after {
            Some(after) if after > last => Err(Error::invalid(format!(
                "the last number of the agent '{agent}' is #{last}, and #{after} is not there yet: \
                use at most #{last}"
            ))),
            after => Ok(after.unwrap_or(last)),
        }
    }

    /// Returns the messages between the agents.
    pub fn messages(&self) -> Result<Vec<AgentMessage>> {
        let state = self.session.state(&self.session.head()?)?;
        let facts = state.facts_of(Kind::Message)?;
        Ok(facts.iter().filter_map(|known| AgentMessage::read(&known.fact)).collect())
    }

    /// Returns the message with this id without reading the others.
    pub fn message(&self, id: &str) -> Result<Option<AgentMessage>> {
        let versions = self.session.fact_versions(Kind::Message, id)?;
        Ok(versions.last().and_then(|known| AgentMessage::read(&known.fact)))
    }
}

impl AgentMessage {
    fn read(fact: &Fact) -> Option<Self> {
        let text = |field| fact.value.field(field).and_then(Value::as_text).map(str::to_owned);
        let number = |field| {
            let number = fact.value.field(field).and_then(Value::as_i64);
            number.and_then(|number| u64::try_from(number).ok())
        };
        Some(Self {
            from: text("from")?,
            to: text("to")?,
            sent: number("sent")?,
            received: number("received"),
            id: fact.id.clone(),
        })
    }
}

/// Returns the moment of the last checkpoint of the head's revision on the head's branch; the head
/// itself if no such checkpoint is still there.
fn last_checkpoint_of_head(session: &Session, head: ResolvedMoment) -> Result<ResolvedMoment> {
    let last = session.summary()?.last_sequence;
    // The number of a checkpoint that was undone or pruned names nothing. A later number can also
    // be on another branch, or be that of a checkpoint of an earlier moment.
    let branch = session.branch_of(&head)?;
    let later = head.revision().unwrap_or(0) + 1..=last;
    for number in later.rev() {
        let found = match session.at_sequence(number) {
            Err(Error::NotFound { .. } | Error::Folded { .. }) => continue,
            found => found?,
        };
        if found.revision() == head.revision() && session.branch_of(&found)? == branch {
            return Ok(found);
        }
    }
    Ok(head)
}

impl CheckpointReference {
    /// Creates a reference for an agent without a session: only the name is kept.
    pub fn from_name(checkpoint: impl Into<String>) -> Self {
        Self { checkpoint: checkpoint.into(), sequence: None, id: None }
    }

    /// Creates a reference to a moment in the agent's session.
    #[must_use]
    pub fn from_moment(moment: &ResolvedMoment) -> Self {
        match moment.named_checkpoint() {
            Some(checkpoint) => Self::from_checkpoint(checkpoint),
            None => {
                let sequence = moment.revision().unwrap_or(0);
                Self { checkpoint: format!("#{sequence}"), sequence: Some(sequence), id: None }
            }
        }
    }

    /// Creates a reference to a moment of the agent's session. `resolved` is what `expression`
    /// means there. For `HEAD` it is the last checkpoint or revision, because the head of a branch
    /// does not name a checkpoint after it.
    ///
    /// # Errors
    /// Any error of a read.
    pub fn from_expression(
        session: &Session,
        expression: &MomentExpression,
        resolved: ResolvedMoment,
    ) -> Result<Self> {
        let is_head = matches!(expression, MomentExpression { base: MomentBase::Head, back: 0 });
        let moment = match is_head && resolved.named_checkpoint().is_none() {
            true => last_checkpoint_of_head(session, resolved)?,
            false => resolved,
        };
        Ok(Self::from_moment(&moment))
    }

    /// Creates a reference to a checkpoint.
    #[must_use]
    pub fn from_checkpoint(checkpoint: &Checkpoint) -> Self {
        // The tag given by the user; tags that forge adds do not identify the checkpoint.
        let own = |tag: &&String| {
            checkpoint.trigger == forge_store::model::CheckpointTrigger::Manual && *tag != "auto"
        };
        let tag = checkpoint.tags.iter().find(own).cloned();
        Self {
            checkpoint: tag.unwrap_or_else(|| format!("#{}", checkpoint.sequence)),
            sequence: Some(checkpoint.sequence),
            id: Some(checkpoint.id),
        }
    }

    fn value(&self) -> Value {
        Value::from([
            ("checkpoint", self.checkpoint.clone().into()),
            ("sequence", self.sequence.map_or(Value::Null, Value::from)),
            ("id", self.id.map(|id| id.to_string()).into()),
        ])
    }

    fn read(value: &Value) -> Self {
        let text = |field| value.field(field).and_then(Value::as_text);
        let sequence = value.field("sequence").and_then(Value::as_i64);
        Self {
            checkpoint: text("checkpoint").unwrap_or_default().to_owned(),
            sequence: sequence.and_then(|number| u64::try_from(number).ok()),
            id: text("id").and_then(|id| id.parse().ok()),
        }
    }
}

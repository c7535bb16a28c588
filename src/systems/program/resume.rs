//! Where each agent of a program goes on.

use super::cut::{Cut, Fate, Sent, consistent};
use super::{Program, ProgramCheckpoint, Reference};
use crate::error::Result;
use crate::model::{Checkpoint, Timestamp};
use crate::store::{CheckpointFilter, Point};
use std::collections::BTreeMap;

/// Where an agent goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentAt {
    /// The checkpoint.
    pub reference: Reference,
    /// What it says, and its time; `None` for what is no checkpoint.
    pub checkpoint: Option<(String, Timestamp)>,
}

/// An agent of a program that is resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumed {
    /// Its name, which is that of its session.
    pub agent: String,
    /// Where it goes on.
    pub at: AgentAt,
    /// What the program's checkpoint says.
    pub had: Reference,
}

impl Resumed {
    /// That it goes on from a later checkpoint than the program's, as a person is told.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        (self.at.reference.sequence != self.had.sequence).then(|| {
            format!(
                "using latest checkpoint {} for agent {} (program checkpoint had {})",
                self.at.reference.checkpoint, self.agent, self.had.checkpoint
            )
        })
    }
}

/// An agent that cannot be resumed from here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub agent: String,
    /// The checkpoint that the program's names.
    pub had: Reference,
    /// Why.
    pub reason: &'static str,
}

/// A message that a cut tears apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    /// The message.
    pub message: Sent,
    /// How.
    pub fate: Fate,
}

/// An agent in a consistent cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its name.
    pub agent: String,
    /// Its checkpoint; `None` for its beginning.
    pub reference: Option<Reference>,
}

/// How a program goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    /// The program's checkpoint.
    pub checkpoint: ProgramCheckpoint,
    /// Its agents, each with the checkpoint to go on from.
    pub agents: Vec<Resumed>,
    /// Those that have none.
    pub missing: Vec<Missing>,
    /// The messages that going on from there would lose or deliver twice.
    pub torn: Vec<Torn>,
    /// The latest consistent cut, if messages between the agents are recorded and it is another.
    pub consistent: Option<Vec<Agent>>,
    /// The messages to be delivered again after going on from that.
    pub redeliver: Vec<Sent>,
}

impl Program {
    /// Where each agent goes on: at its latest checkpoint, never at one older than the program's; or at exactly the
    /// program's.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::error::Error::NotFound) if the program has no checkpoint there; as every read.
    pub fn resume(&self, point: &Point, exact: bool) -> Result<Resume> {
        let checkpoint = self.at(point)?;
        let messages = self.sent()?;
        let (mut agents, mut missing) = (Vec::new(), Vec::new());
        let mut known: BTreeMap<String, Vec<Checkpoint>> = BTreeMap::new();
        for (agent, had) in &checkpoint.agents {
            let (agent, had) = (agent.clone(), had.clone());
            let Some(session) = self.agent(&agent)? else {
                missing.push(Missing { agent, had, reason: "it has no session" });
                continue;
            };
            let mut made = session.checkpoints(&CheckpointFilter::default())?;
            made.sort_by_key(|checkpoint| checkpoint.sequence);
            let own = had.id.and_then(|id| made.iter().find(|one| one.id == id));
            let latest =
                made.last().filter(|last| had.sequence.is_none_or(|had| last.sequence > had));
            let at = match (own, latest) {
                (_, Some(latest)) if !exact => AgentAt::of(latest),
                (Some(own), _) => AgentAt::of(own),
                (None, _) if had.id.is_none() && had.sequence.is_some() => {
                    AgentAt { reference: had.clone(), checkpoint: None }
                }
                _ => {
                    let reason = if had.id.is_some() {
                        "its checkpoint is no longer there"
                    } else {
                        "it had no session when the program was checkpointed"
                    };
                    missing.push(Missing { agent, had, reason });
                    continue;
                }
            };
            known.insert(agent.clone(), made);
            agents.push(Resumed { agent, at, had });
        }
        let number = |one: &Resumed| Some((one.agent.clone(), one.at.reference.sequence?));
        let cut: Cut = agents.iter().filter_map(number).collect();
        let torn = torn(&messages, &cut);
        let (consistent, redeliver) = self.consistent_cut(&known, &agents, &messages, &cut);
        Ok(Resume { checkpoint, agents, missing, torn, consistent, redeliver })
    }

    /// The latest consistent cut within this one, and the messages in flight there.
    fn consistent_cut(
        &self,
        known: &BTreeMap<String, Vec<Checkpoint>>,
        agents: &[Resumed],
        messages: &[Sent],
        cut: &Cut,
    ) -> (Option<Vec<Agent>>, Vec<Sent>) {
        if messages.is_empty() {
            return (None, Vec::new());
        }
        let upto = |agent: &Resumed| {
            let until = agent.at.reference.sequence.unwrap_or(0);
            let made = known.get(&agent.agent).into_iter().flatten();
            let mut numbers: Vec<u64> =
                made.map(|one| one.sequence).filter(|number| *number < until).collect();
            numbers.push(until);
            (agent.agent.clone(), numbers)
        };
        let found = consistent(&agents.iter().map(upto).collect(), messages);
        let in_flight = messages.iter().filter(|message| message.fate(&found) == Fate::Lost);
        let in_flight = in_flight.cloned().collect();
        if found == *cut {
            return (None, in_flight);
        }
        let agent = |agent: &Resumed| {
            let number = found.get(&agent.agent).copied();
            let made = known.get(&agent.agent).into_iter().flatten();
            let reference = made
                .map(Reference::of_checkpoint)
                .chain([agent.at.reference.clone()])
                .find(|reference| reference.sequence == number && number != Some(0));
            Agent { agent: agent.agent.clone(), reference }
        };
        (Some(agents.iter().map(agent).collect()), in_flight)
    }
}

impl AgentAt {
    fn of(checkpoint: &Checkpoint) -> Self {
        Self {
            reference: Reference::of_checkpoint(checkpoint),
            checkpoint: Some((checkpoint.message.clone(), checkpoint.time)),
        }
    }
}

fn torn(messages: &[Sent], cut: &Cut) -> Vec<Torn> {
    let torn = messages.iter().map(|message| (message, message.fate(cut)));
    torn.filter(|(_, fate)| *fate != Fate::Whole)
        .map(|(message, fate)| Torn { message: message.clone(), fate })
        .collect()
}

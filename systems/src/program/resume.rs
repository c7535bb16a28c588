//! Where each agent of a program resumes.

use super::consistent_cut::{AgentMessage, CheckpointCut, MessageFate, consistent};
use super::{CheckpointReference, Program, ProgramCheckpoint};
use forge_store::error::Result;
use forge_store::model::{Checkpoint, Timestamp};
use forge_store::store::{CheckpointFilter, ResolvedMoment};
use std::collections::BTreeMap;

/// A position where an agent resumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentResumePoint {
    /// The checkpoint, or the moment in the session.
    pub reference: CheckpointReference,
    /// The message and time of the checkpoint; `None` if the moment is not a checkpoint.
    pub checkpoint: Option<(String, Timestamp)>,
}

/// An agent of a resumed program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumedAgent {
    /// Its name, which is also the name of its session.
    pub agent: String,
    /// Where it resumes.
    pub at: AgentResumePoint,
    /// Where it was at the program's checkpoint.
    pub had: CheckpointReference,
}

impl ResumedAgent {
    /// Returns a notice if the agent resumes from a later checkpoint than the program's.
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

/// An agent that cannot be resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingAgent {
    /// The name of the agent.
    pub agent: String,
    /// Where it was at the program's checkpoint.
    pub had: CheckpointReference,
    /// The reason.
    pub reason: &'static str,
}

/// A message that would be lost or delivered twice if the agents resume from a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornMessage {
    /// The message.
    pub message: AgentMessage,
    /// Whether it is lost or delivered twice.
    pub fate: MessageFate,
}

/// An agent in a consistent cut: every message that was received in such a cut was also sent in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutAgent {
    /// The name of the agent.
    pub agent: String,
    /// Its checkpoint; `None` for its beginning.
    pub reference: Option<CheckpointReference>,
}

/// How a program resumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumedProgram {
    /// The program's checkpoint.
    pub checkpoint: ProgramCheckpoint,
    /// Its agents, each with the checkpoint to resume from.
    pub agents: Vec<ResumedAgent>,
    /// The agents without a checkpoint to resume from.
    pub missing: Vec<MissingAgent>,
    /// The messages that would be lost or delivered twice if `agents` resume there.
    pub torn: Vec<TornMessage>,
    /// The latest consistent cut, if messages between the agents are recorded and the cut differs
    /// from the checkpoints in `agents`.
    pub consistent: Option<Vec<CutAgent>>,
    /// The messages to deliver again if the agents resume from the latest consistent cut.
    pub redeliver: Vec<AgentMessage>,
}

impl Program {
    /// Returns where each agent resumes: at its latest checkpoint, if that is newer than the one of
    /// the program's checkpoint; otherwise, or with `exact`, where it was at the program's
    /// checkpoint.
    ///
    /// # Errors
    /// [`Error::NotFound`](forge_store::error::Error::NotFound) if the program has no checkpoint
    /// at this moment; or any error of a read.
    pub fn resume(&self, moment: &ResolvedMoment, exact: bool) -> Result<ResumedProgram> {
        let checkpoint = self.at(moment)?;
        let messages = self.messages()?;
        let (mut agents, mut missing) = (Vec::new(), Vec::new());
        let mut known: BTreeMap<String, Vec<Checkpoint>> = BTreeMap::new();
        for (agent, had) in &checkpoint.agents {
            let (agent, had) = (agent.clone(), had.clone());
            let Some(session) = self.agent(&agent)? else {
                missing.push(MissingAgent { agent, had, reason: "it has no session" });
                continue;
            };
            let mut made = session.checkpoints(&CheckpointFilter::default())?;
            made.sort_by_key(|checkpoint| checkpoint.sequence);
            let own = had.id.and_then(|id| made.iter().find(|one| one.id == id));
            let latest =
                made.last().filter(|last| had.sequence.is_none_or(|had| last.sequence > had));
            let at = match (own, latest) {
                (_, Some(latest)) if !exact => AgentResumePoint::from_checkpoint(latest),
                (Some(own), _) => AgentResumePoint::from_checkpoint(own),
                (None, _) if had.id.is_none() && had.sequence.is_some() => {
                    AgentResumePoint { reference: had.clone(), checkpoint: None }
                }
                _ => {
                    let reason = if had.id.is_some() {
                        "its checkpoint is no longer there"
                    } else {
                        "it had no session when the program was checkpointed"
                    };
                    missing.push(MissingAgent { agent, had, reason });
                    continue;
                }
            };
            known.insert(agent.clone(), made);
            agents.push(ResumedAgent { agent, at, had });
        }
        let number = |one: &ResumedAgent| Some((one.agent.clone(), one.at.reference.sequence?));
        let cut: CheckpointCut = agents.iter().filter_map(number).collect();
        let torn = torn(&messages, &cut);
        let (consistent, redeliver) = self.consistent_cut(&known, &agents, &messages, &cut);
        Ok(ResumedProgram { checkpoint, agents, missing, torn, consistent, redeliver })
    }

    /// Returns the latest consistent cut that is nowhere later than `cut`, if it differs from it,
    /// and the messages in flight at the consistent cut.
    fn consistent_cut(
        &self,
        known: &BTreeMap<String, Vec<Checkpoint>>,
        agents: &[ResumedAgent],
        messages: &[AgentMessage],
        cut: &CheckpointCut,
    ) -> (Option<Vec<CutAgent>>, Vec<AgentMessage>) {
        if messages.is_empty() {
            return (None, Vec::new());
        }
        let upto = |agent: &ResumedAgent| {
            let until = agent.at.reference.sequence.unwrap_or(0);
            let made = known.get(&agent.agent).into_iter().flatten();
            let mut numbers: Vec<u64> =
                made.map(|one| one.sequence).filter(|number| *number < until).collect();
            numbers.push(until);
            (agent.agent.clone(), numbers)
        };
        let found = consistent(&agents.iter().map(upto).collect(), messages);
        let in_flight = messages.iter().filter(|message| message.fate(&found) == MessageFate::Lost);
        let in_flight = in_flight.cloned().collect();
        if found == *cut {
            return (None, in_flight);
        }
        let agent = |agent: &ResumedAgent| {
            let number = found.get(&agent.agent).copied();
            let made = known.get(&agent.agent).into_iter().flatten();
            let reference = made
                .map(CheckpointReference::from_checkpoint)
                .chain([agent.at.reference.clone()])
                .find(|reference| reference.sequence == number && number != Some(0));
            CutAgent { agent: agent.agent.clone(), reference }
        };
        (Some(agents.iter().map(agent).collect()), in_flight)
    }
}

impl AgentResumePoint {
    fn from_checkpoint(checkpoint: &Checkpoint) -> Self {
        Self {
            reference: CheckpointReference::from_checkpoint(checkpoint),
            checkpoint: Some((checkpoint.message.clone(), checkpoint.time)),
        }
    }
}

fn torn(messages: &[AgentMessage], cut: &CheckpointCut) -> Vec<TornMessage> {
    let torn = messages.iter().map(|message| (message, message.fate(cut)));
    torn.filter(|(_, fate)| *fate != MessageFate::Whole)
        .map(|(message, fate)| TornMessage { message: message.clone(), fate })
        .collect()
}

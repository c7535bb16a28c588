//! Reports of programs with several agents.

use crate::output::{Report, Screen, TextTable, Tone, cells};
use forge_store::model::Timestamp;
use forge_systems::program::{
    AgentMessage, CheckpointReference, MessageFate, ProgramCheckpoint, ResumedProgram,
};
use serde::Serialize;

/// The position of an agent.
#[derive(Debug, Serialize)]
pub struct AgentJson {
    pub agent: String,
    #[serde(flatten)]
    pub reference: CheckpointReference,
}

/// A checkpoint of a program.
#[derive(Debug, Serialize)]
pub struct ProgramShowReport {
    #[serde(skip)]
    saved: Option<bool>,
    pub program: String,
    pub checkpoint: u64,
    pub message: Option<String>,
    /// When it was made.
    pub at: Timestamp,
    /// The positions of the agents.
    pub agents: Vec<AgentJson>,
}

impl ProgramShowReport {
    pub fn new(program: &str, shown: ProgramCheckpoint) -> Self {
        let agents =
            shown.agents.into_iter().map(|(agent, reference)| AgentJson { agent, reference });
        Self {
            saved: None,
            program: program.to_owned(),
            checkpoint: shown.number,
            message: shown.message,
            at: shown.at,
            agents: agents.collect(),
        }
    }

    /// Notes whether the checkpoint is new or existed already.
    pub fn saved(mut self, new: bool) -> Self {
        self.saved = Some(new);
        self
    }
}

impl Report for ProgramShowReport {
    fn human(&self, screen: &mut Screen) {
        let what = match self.saved {
            Some(true) => "Saved checkpoint",
            Some(false) => "Nothing new since checkpoint",
            None => "Checkpoint",
        };
        screen.put(Tone::Plain, &format!("{what} #{} of the program ", self.checkpoint));
        screen.put(Tone::Id, &self.program);
        let message = self.message.as_ref().map(|message| format!(": {message}"));
        screen.plain(&message.unwrap_or_default());
        let mut table = TextTable::new(&["Agent", "Checkpoint", "Number"]).right(2);
        for agent in &self.agents {
            let number = agent
                .reference
                .sequence
                .map_or_else(|| "-".to_owned(), |number| format!("#{number}"));
            table.row(cells![Id: &agent.agent, &agent.reference.checkpoint, number]);
        }
        screen.table(&table);
    }
}

/// An agent that can be resumed.
#[derive(Debug, Serialize)]
pub struct ResumedAgentJson {
    /// The position from which it is resumed.
    #[serde(flatten)]
    pub at: AgentJson,
    pub message: Option<String>,
    pub time: Option<Timestamp>,
    /// The checkpoint of the agent that the program's checkpoint names.
    pub program_checkpoint: String,
    /// A notice if it is resumed from a later checkpoint.
    pub notice: Option<String>,
}

/// An agent that cannot be resumed here.
#[derive(Debug, Serialize)]
pub struct MissingAgentJson {
    pub agent: String,
    /// The checkpoint of the agent that the program's checkpoint names.
    pub checkpoint: String,
    pub reason: &'static str,
}

#[derive(Debug, Serialize)]
pub struct CutAgentJson {
    pub agent: String,
    /// Its checkpoint; null for its beginning.
    pub checkpoint: Option<String>,
    /// The checkpoint's number.
    pub sequence: Option<u64>,
}

/// How to resume a program.
#[derive(Debug, Serialize)]
pub struct ProgramResumeReport {
    pub program: String,
    pub checkpoint: u64,
    /// Whether `--exact` was given: then later checkpoints of the agents are not used.
    pub exact: bool,
    /// The agents, each with the checkpoint from which it is resumed.
    pub agents: Vec<ResumedAgentJson>,
    /// The agents that cannot be resumed here.
    pub missing: Vec<MissingAgentJson>,
    /// The messages that resuming from there would lose.
    pub lost: Vec<AgentMessage>,
    /// The messages that resuming from there would deliver twice.
    pub twice: Vec<AgentMessage>,
    /// The latest consistent cut, if it differs and messages are recorded.
    pub consistent: Option<Vec<CutAgentJson>>,
    /// The messages to deliver again after resuming from the consistent cut.
    pub redeliver: Vec<AgentMessage>,
}

impl ProgramResumeReport {
    pub fn new(program: &str, exact: bool, resume: ResumedProgram) -> Self {
        let agents = resume.agents.into_iter().map(|one| {
            let notice = one.notice();
            let (message, time) = one.at.checkpoint.unzip();
            let program_checkpoint = one.had.checkpoint;
            let at = AgentJson { agent: one.agent, reference: one.at.reference };
            ResumedAgentJson { at, message, time, program_checkpoint, notice }
        });
        let missing = resume.missing.into_iter().map(|one| MissingAgentJson {
            agent: one.agent,
            checkpoint: one.had.checkpoint,
            reason: one.reason,
        });
        let (mut lost, mut twice) = (Vec::new(), Vec::new());
        for torn in resume.torn {
            let to = if torn.fate == MessageFate::Twice { &mut twice } else { &mut lost };
            to.push(torn.message);
        }
        let cut = |agents: Vec<forge_systems::program::CutAgent>| {
            let agents = agents.into_iter().map(|one| CutAgentJson {
                agent: one.agent,
                sequence: one.reference.as_ref().and_then(|reference| reference.sequence),
                checkpoint: one.reference.map(|reference| reference.checkpoint),
            });
            agents.collect()
        };
        Self {
            program: program.to_owned(),
            checkpoint: resume.checkpoint.number,
            exact,
            agents: agents.collect(),
            missing: missing.collect(),
            lost,
            twice,
            consistent: resume.consistent.map(cut),
            redeliver: resume.redeliver,
        }
    }
}

impl Report for ProgramResumeReport {
    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, "Resuming the program ");
        screen.put(Tone::Id, &self.program);
        screen.plain(&format!(" from its checkpoint #{}", self.checkpoint));
        for notice in self.agents.iter().filter_map(|one| one.notice.as_ref()) {
            screen.plain(notice);
        }
        let mut table = TextTable::new(&["Agent", "Checkpoint", "Number", "Says"]).right(2);
        for one in &self.agents {
            table.row(cells![
                Id: &one.at.agent, &one.at.reference.checkpoint,
                one.at.reference.sequence.map(|number| format!("#{number}")).unwrap_or_default(),
                one.message.as_deref().unwrap_or_default(),
            ]);
        }
        screen.table(&table);
        for one in &self.missing {
            screen.put(Tone::Warning, "missing: ");
            let MissingAgentJson { agent, checkpoint, reason } = one;
            screen.plain(&format!("{agent} (program checkpoint had {checkpoint}): {reason}"));
        }
        for (messages, what) in
            [(&self.lost, "would be lost"), (&self.twice, "would be delivered twice")]
        {
            for message in messages {
                screen.put(Tone::Warning, "message ");
                screen.put(Tone::Id, &message.id);
                screen.plain(&format!(" from {} to {} {what}", message.from, message.to));
            }
        }
        if let Some(cut) = &self.consistent {
            screen.heading("Latest consistent cut");
            for one in cut {
                screen.put(Tone::Id, &one.agent);
                let at = one.checkpoint.as_deref().unwrap_or("its beginning");
                screen.plain(&format!(" at {at}"));
            }
        }
        if !self.redeliver.is_empty() {
            let ids: Vec<&str> = self.redeliver.iter().map(|one| one.id.as_str()).collect();
            screen.plain(&format!("after that, deliver again: {}", ids.join(", ")));
        }
    }
}

/// A message that was recorded.
#[derive(Debug, Serialize)]
pub struct ProgramMessageReport {
    pub program: String,
    #[serde(flatten)]
    pub message: AgentMessage,
    /// The number in the sender's session after which it was sent.
    pub sent: u64,
    /// The number in the receiver's session after which it was received.
    pub received: Option<u64>,
}

impl ProgramMessageReport {
    pub fn new(program: &str, sent: AgentMessage) -> Self {
        let (at, received) = (sent.sent, sent.received);
        Self { program: program.to_owned(), message: sent, sent: at, received }
    }
}

impl Report for ProgramMessageReport {
    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, "Recorded message ");
        screen.put(Tone::Id, &self.message.id);
        let received = self.received.map(|number| format!(", received after #{number}"));
        let received = received.unwrap_or_default();
        let (from, to) = (&self.message.from, &self.message.to);
        screen.plain(&format!(" from {from} to {to}: sent after #{}{received}", self.sent));
    }
}

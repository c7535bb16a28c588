//! `forge program`.

use crate::args::value::{self, MomentArg, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::program::{ProgramMessageReport, ProgramResumeReport, ProgramShowReport};
use crate::verb::{OpenedStore, Verb, VerbResult, commands};
use crate::workspace::{self, StoreAccess};
use forge_store::error::Error;
use forge_store::store::Store;
use forge_systems::program::{CheckpointReference, Program};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Checkpoint programs of several agents, and resume each agent where it is.
#[derive(Debug, clap::Subcommand)]
pub enum ProgramCommand {
    /// Record where the agents are, in one revision
    Checkpoint(ProgramCheckpointArgs),
    /// Show where the agents were
    Show(ProgramShowArgs),
    /// Show where each agent resumes: at its latest checkpoint
    Resume(ProgramResumeArgs),
    /// Record that an agent sends another a message, or receives it
    Message(ProgramMessageArgs),
}

#[derive(Clone, Debug)]
pub struct AgentCheckpointArg {
    agent: NameArg,
    checkpoint: MomentArg,
}

impl FromStr for AgentCheckpointArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (agent, checkpoint) =
            text.split_once('=').ok_or("write NAME=CHECKPOINT, such as planner=#7")?;
        Ok(Self { agent: agent.parse()?, checkpoint: checkpoint.parse()? })
    }
}

#[derive(Debug, clap::Args)]
pub struct ProgramCheckpointArgs {
    /// Program
    #[arg(long, value_name = "PROGRAM")]
    pub program: NameArg,

    /// An agent (a session) and its checkpoint; can be repeated
    #[arg(long = "agent", value_name = "NAME=CHECKPOINT", required = true)]
    pub agents: Vec<AgentCheckpointArg>,

    /// Message
    #[arg(short, long, value_name = "TEXT", value_parser = value::non_empty_text)]
    pub message: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct ProgramShowArgs {
    /// Program
    #[arg(long, value_name = "PROGRAM")]
    pub program: NameArg,

    /// Checkpoint of the program; the last one by default
    #[arg(long, value_name = "MOMENT")]
    pub at: Option<MomentArg>,
}

#[derive(Debug, clap::Args)]
pub struct ProgramResumeArgs {
    #[command(flatten)]
    pub of: ProgramShowArgs,

    /// Use exactly the checkpoints of the program's checkpoint
    #[arg(long)]
    pub exact: bool,
}

#[derive(Debug, clap::Args)]
pub struct ProgramMessageArgs {
    /// Message
    #[arg(value_name = "ID")]
    pub id: NameArg,

    /// Program
    #[arg(long, value_name = "PROGRAM")]
    pub program: NameArg,

    /// Agent that sends it
    #[arg(long, value_name = "AGENT", requires = "to", required_unless_present = "received")]
    pub from: Option<NameArg>,

    /// Agent that it is sent to
    #[arg(long, value_name = "AGENT", requires = "from")]
    pub to: Option<NameArg>,

    /// Record that it was received
    #[arg(long, conflicts_with_all = ["from", "to"])]
    pub received: bool,

    /// Number in the agent's session after which it comes; the last one by default
    #[arg(long, value_name = "NUMBER")]
    pub after: Option<u64>,
}

commands!(ProgramCommand: Checkpoint, Show, Resume, Message);

/// Opens a program that exists.
fn open_program(store: &Store, name: &str) -> Result<Program, CommandError> {
    Program::open(store, name).map_err(|error| match error {
        Error::NotFound { .. } => CommandError::from(error)
            .hinted("'forge session list --kind program' lists the programs"),
        other => other.into(),
    })
}

impl Verb for ProgramCheckpointArgs {
    const NAME: &'static str = "program checkpoint";
    type Opened = OpenedStore;
    type Report = ProgramShowReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let mut agents = BTreeMap::new();
        for AgentCheckpointArg { agent, checkpoint } in &self.agents {
            let session =
                store.session_by_kind(forge_store::model::SessionKind::Debug, agent.as_str())?;
            let reference = match session {
                None => CheckpointReference::from_name(checkpoint.as_str()),
                Some(session) => {
                    let resolved = workspace::resolved_moment(context, &session, checkpoint)?;
                    let expression = context.moment(checkpoint)?;
                    CheckpointReference::from_expression(&session, &expression, resolved)?
                }
            };
            if agents.insert(agent.as_str().to_owned(), reference).is_some() {
                return Err(CommandError::invalid(format!("the agent '{agent}' is named twice")));
            }
        }
        let program = Program::open_or_create(store, &opened.write_context, self.program.as_str())?;
        let done = program.checkpoint(&opened.write_context, &agents, self.message.as_deref())?;
        let shown = program.at(&program.session().head()?)?;
        for (agent, _) in agents.iter().filter(|(_, reference)| reference.sequence.is_none()) {
            context.out.warn(&format!(
                "the agent '{agent}' has no session: 'forge program resume' cannot resume it"
            ));
        }
        let report =
            ProgramShowReport::new(self.program.as_str(), shown).saved(!done.is_unchanged());
        Ok(report)
    }
}

impl Verb for ProgramShowArgs {
    const NAME: &'static str = "program show";
    type Opened = OpenedStore;
    type Report = ProgramShowReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let program = open_program(&opened.store, self.program.as_str())?;
        let moment = workspace::moment_or_head(context, program.session(), self.at.as_ref())?;
        Ok(ProgramShowReport::new(self.program.as_str(), program.at(&moment)?))
    }
}

impl Verb for ProgramResumeArgs {
    const NAME: &'static str = "program resume";
    type Opened = OpenedStore;
    type Report = ProgramResumeReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let program = open_program(&opened.store, self.of.program.as_str())?;
        let resume = program.resume(
            &workspace::moment_or_head(context, program.session(), self.of.at.as_ref())?,
            self.exact,
        )?;
        Ok(ProgramResumeReport::new(self.of.program.as_str(), self.exact, resume))
    }
}

impl Verb for ProgramMessageArgs {
    const NAME: &'static str = "program message";
    type Opened = OpenedStore;
    type Report = ProgramMessageReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let (name, id) = (self.program.as_str(), self.id.as_str());
        // Other entities refer to a message by its id, so a secret in the id cannot be redacted.
        workspace::refuse_secret(context, "id of the message", id)?;
        let program = match (&self.from, &self.to) {
            (Some(from), Some(to)) => {
                let (from, to) = (from.as_str(), to.as_str());
                // The check comes before anything is created.
                Program::check_ends(from, to)?;
                let program = Program::open_or_create(store, &opened.write_context, name)?;
                program.send(&opened.write_context, id, from, to, self.after)?;
                program
            }
            // A message must be sent before it is received, so this creates no program.
            _ => {
                let program = open_program(store, name)?;
                program.receive(&opened.write_context, id, self.after).map_err(
                    |error| match error {
                        Error::NotFound { .. } => CommandError::from(error)
                            .hinted("record first that it is sent, with '--from' and '--to'"),
                        other => other.into(),
                    },
                )?;
                program
            }
        };
        let sent = program
            .message(id)?
            .ok_or_else(|| CommandError::internal("a message was not recorded"))?;
        Ok(ProgramMessageReport::new(name, sent))
    }
}

//! `forge program`.

use crate::args::value::{self, Moment, Name};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::program::{MessageNoted, ProgramShown, Resumption};
use crate::workplace::{self, Access};
use forge_store::model::time_grammar::MomentBase;
use forge_store::store::{ResolvedMoment, Store};
use forge_systems::program::{CheckpointReference, Program};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Checkpoint programs of several agents, and go on with each agent where it is.
#[derive(Debug, clap::Subcommand)]
pub enum ProgramCommand {
    /// Record where the agents are, in one revision
    Checkpoint(CheckpointArgs),
    /// Show where the agents were
    Show(ShowArgs),
    /// Say where each agent goes on: at its latest checkpoint
    Resume(ResumeArgs),
    /// Record that an agent sends another a message, or receives it
    Message(MessageArgs),
}

/// An agent and its checkpoint.
#[derive(Clone, Debug)]
pub struct AgentAt {
    agent: Name,
    checkpoint: Moment,
}

impl FromStr for AgentAt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (agent, checkpoint) =
            text.split_once('=').ok_or("write NAME=CHECKPOINT, such as planner=#7")?;
        Ok(Self { agent: agent.parse()?, checkpoint: checkpoint.parse()? })
    }
}

/// Arguments of `forge program checkpoint`.
#[derive(Debug, clap::Args)]
pub struct CheckpointArgs {
    /// Name the program
    #[arg(long, value_name = "PROGRAM")]
    pub program: Name,

    /// Name an agent, which is a session, and its checkpoint; any number of times
    #[arg(long = "agent", value_name = "NAME=CHECKPOINT", required = true)]
    pub agents: Vec<AgentAt>,

    /// Say something about it
    #[arg(short, long, value_name = "TEXT", value_parser = value::said)]
    pub message: Option<String>,
}

/// Arguments of `forge program show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Name the program
    #[arg(long, value_name = "PROGRAM")]
    pub program: Name,

    /// Show this checkpoint of the program instead of its last one
    #[arg(long, value_name = "MOMENT")]
    pub at: Option<Moment>,
}

/// Arguments of `forge program resume`.
#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    /// Which checkpoint of which program.
    #[command(flatten)]
    pub of: ShowArgs,

    /// Take each agent exactly where the program's checkpoint says
    #[arg(long)]
    pub exact: bool,
}

/// Arguments of `forge program message`.
#[derive(Debug, clap::Args)]
pub struct MessageArgs {
    /// Name the message
    #[arg(value_name = "ID")]
    pub id: Name,

    /// Name the program
    #[arg(long, value_name = "PROGRAM")]
    pub program: Name,

    /// Name the agent that sends it
    #[arg(long, value_name = "AGENT", requires = "to", required_unless_present = "received")]
    pub from: Option<Name>,

    /// Name the agent that it is sent to
    #[arg(long, value_name = "AGENT", requires = "from")]
    pub to: Option<Name>,

    /// Say that it has been received
    #[arg(long, conflicts_with_all = ["from", "to"])]
    pub received: bool,

    /// Say behind which number of the agent's session, if not behind its last
    #[arg(long, value_name = "NUMBER")]
    pub behind: Option<u64>,
}

/// Does it.
pub fn run(command: &ProgramCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        ProgramCommand::Checkpoint(args) => checkpoint(args, context),
        ProgramCommand::Show(args) => show(args, context),
        ProgramCommand::Resume(args) => resume(args, context),
        ProgramCommand::Message(args) => message(args, context),
    }
}

fn open(context: &Context, name: &Name) -> Result<(Store, Program), CommandError> {
    let store = workplace::open(context, Access::Read)?;
    let program = Program::open(&store, name.as_str())?;
    Ok((store, program))
}

fn point(
    context: &Context,
    program: &Program,
    at: Option<&Moment>,
) -> Result<ResolvedMoment, CommandError> {
    workplace::point_or_head(context, program.session(), at)
}

fn checkpoint(args: &CheckpointArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Write)?;
    let act = workplace::act(context, "program checkpoint");
    let mut agents = BTreeMap::new();
    for AgentAt { agent, checkpoint } in &args.agents {
        let session =
            store.session_by_kind(forge_store::model::SessionKind::Debug, agent.as_str())?;
        let reference = match session {
            None => CheckpointReference::from_name(checkpoint.as_str()),
            Some(session) => {
                let point = workplace::point(context, &session, checkpoint)?;
                // All that is recorded ends with the last number, be that a checkpoint's or a revision's.
                match context.moment(checkpoint)?.base {
                    MomentBase::Head if point.named_checkpoint().is_none() => {
                        let last = session.summary()?.last_sequence;
                        CheckpointReference::from_point(&session.at_sequence(last)?)
                    }
                    _ => CheckpointReference::from_point(&point),
                }
            }
        };
        if agents.insert(agent.as_str().to_owned(), reference).is_some() {
            return Err(CommandError::invalid(format!("the agent '{agent}' is named twice")));
        }
    }
    let program = Program::open_or_create(&store, &act, args.program.as_str())?;
    let done = program.checkpoint(&act, &agents, args.message.as_deref())?;
    let shown = program.at(&program.session().head()?)?;
    let report = ProgramShown::new(args.program.as_str(), shown).saved(!done.is_unchanged());
    context.out.emit(&report)?;
    workplace::finish(&store);
    Ok(())
}

fn show(args: &ShowArgs, context: &mut Context) -> Result<(), CommandError> {
    let (_, program) = open(context, &args.program)?;
    let shown = program.at(&point(context, &program, args.at.as_ref())?)?;
    context.out.emit(&ProgramShown::new(args.program.as_str(), shown))
}

fn resume(args: &ResumeArgs, context: &mut Context) -> Result<(), CommandError> {
    let (_, program) = open(context, &args.of.program)?;
    let resume = program.resume(&point(context, &program, args.of.at.as_ref())?, args.exact)?;
    context.out.emit(&Resumption::new(args.of.program.as_str(), args.exact, resume))
}

fn message(args: &MessageArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Write)?;
    let act = workplace::act(context, "program message");
    let (name, id) = (args.program.as_str(), args.id.as_str());
    // Others refer to a message by its id, so the id cannot be changed.
    workplace::refuse_secret(context, "id of the message", id)?;
    let program = match (&args.from, &args.to) {
        (Some(from), Some(to)) => {
            let (from, to) = (from.as_str(), to.as_str());
            // Before anything is made.
            Program::check_ends(from, to)?;
            let program = Program::open_or_create(&store, &act, name)?;
            program.send(&act, id, from, to, args.behind)?;
            program
        }
        // What was not sent cannot be received: this makes no program.
        _ => {
            let program = Program::open(&store, name)?;
            program.receive(&act, id, args.behind)?;
            program
        }
    };
    let sent =
        program.message(id)?.ok_or_else(|| CommandError::internal("a message was not recorded"))?;
    context.out.emit(&MessageNoted::new(name, sent))?;
    workplace::finish(&store);
    Ok(())
}

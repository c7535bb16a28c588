//! The commands: one file each, with its arguments and what it does.

pub mod belief;
pub mod blame;
pub mod branch;
pub mod brief;
pub mod bundle;
pub mod checkpoint;
pub mod checkpoint_query;
pub mod code;
pub mod command;
pub mod compaction;
pub mod completions;
pub mod config;
pub mod dependency;
pub mod dependency_graph;
pub mod doctor;
pub mod entity;
pub mod evidence;
pub mod export;
pub mod fact;
pub mod gap;
pub mod hook;
pub mod hooks;
pub mod hypothesis;
pub mod import;
pub mod inference;
pub mod init;
pub mod key;
pub mod log;
pub mod maintain;
pub mod man;
pub mod mcp;
pub mod measurement;
pub mod note;
pub mod program;
pub mod progress;
pub mod prune;
pub mod purge;
pub mod recover;
pub mod redact;
pub mod run;
pub mod search;
pub mod session;
pub mod status;
pub mod thread;
pub mod tui;
pub mod undo;
pub mod verification;
pub mod verify;

use crate::args::lazy::LazyArgs;
use crate::args::select::FactCommand;
use crate::context::Context;
use crate::error::CommandError;

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub enum ForgeCommand {
    /// Make a store for this project
    Init(LazyArgs<init::InitArgs>),
    /// Show the store, the current session and branch, and what was recorded last
    Status,
    /// Say in one page what is known, refuted and open
    Brief(LazyArgs<brief::BriefArgs>),
    /// Begin, choose and list debugging sessions
    #[command(subcommand)]
    Session(LazyArgs<session::SessionCommand>),
    /// State, test and settle hypotheses
    #[command(subcommand)]
    Hypothesis(LazyArgs<hypothesis::HypothesisCommand>),
    /// Record what speaks for or against a hypothesis
    #[command(subcommand)]
    Evidence(LazyArgs<evidence::EvidenceCommand>),
    /// Record what is held to be true and what it rests on
    #[command(subcommand)]
    Belief(LazyArgs<belief::BeliefCommand>),
    /// List and show what beliefs rest on
    #[command(subcommand)]
    Dependency(LazyArgs<dependency::DependencyCommand>),
    /// Record what is not known and should be
    #[command(subcommand)]
    Gap(LazyArgs<gap::GapCommand>),
    /// Record results of tests, builds and checks
    #[command(subcommand)]
    Verification(LazyArgs<verification::VerificationCommand>),
    /// Write remarks down
    #[command(subcommand)]
    Note(LazyArgs<note::NoteCommand>),
    /// Record named values
    #[command(subcommand)]
    Measurement(LazyArgs<measurement::MeasurementCommand>),
    /// Run commands and record how they end
    #[command(subcommand)]
    Command(LazyArgs<command::CommandCommand>),
    /// Record the state of the source code
    #[command(subcommand)]
    Code(LazyArgs<code::CodeCommand>),
    /// List and show tasks of an agent's own list
    #[command(subcommand)]
    Task(LazyArgs<FactCommand>),
    /// List and show messages of the conversation
    #[command(subcommand)]
    Message(LazyArgs<FactCommand>),
    /// List and show what a person asked for
    #[command(subcommand)]
    Prompt(LazyArgs<FactCommand>),
    /// List and show sub-agents
    #[command(subcommand)]
    Agent(LazyArgs<FactCommand>),
    /// List and show what an agent read, searched and fetched
    #[command(subcommand)]
    Tool(LazyArgs<FactCommand>),
    /// List and show what the session received beside messages: diagnostics, links, limits
    #[command(subcommand)]
    Notice(LazyArgs<FactCommand>),
    /// List and show what rules read in messages, agree with it or put it aside
    #[command(subcommand)]
    Inference(LazyArgs<inference::InferenceCommand>),
    /// Try another line of thought without losing this one
    #[command(subcommand)]
    Branch(LazyArgs<branch::BranchCommand>),
    /// Say which change made each field of an entity what it is
    Blame(LazyArgs<blame::BlameArgs>),
    /// Say what an entity rests on and what rests on it
    Why(LazyArgs<blame::WhyArgs>),
    /// Find words in all that was ever said
    Search(LazyArgs<search::SearchArgs>),
    /// Show the changes, newest first
    Log(LazyArgs<log::LogArgs>),
    /// Take back the last operation, or a named one
    Undo(LazyArgs<undo::UndoArgs>),
    /// Take back the last undo
    Redo,
    /// After a crash: where to go on, with code, environment, commands and what is left to do
    Recover(LazyArgs<recover::RecoverArgs>),
    /// Name moments, list and compare them, and go back to them
    #[command(subcommand)]
    Checkpoint(LazyArgs<checkpoint::CheckpointCommand>),
    /// Browse the timeline and stand at any moment of it
    Tui(LazyArgs<tui::TuiArgs>),
    /// Take in what others have recorded
    Import(LazyArgs<import::ImportArgs>),
    /// Write out what is recorded
    #[command(subcommand)]
    Export(LazyArgs<export::ExportCommand>),
    /// Print a text without the secrets that would not be stored
    Redact(LazyArgs<redact::RedactArgs>),
    /// Take a secret out of all that is stored, for good (exit code 8: not yet)
    Purge(LazyArgs<purge::PurgeArgs>),
    /// Take what a coding agent tells its hook on stdin; always ends well
    Hook(LazyArgs<hook::HookArgs>),
    /// Make forge part of a coding agent, and take it out again
    #[command(subcommand)]
    Hooks(LazyArgs<hooks::HooksCommand>),
    /// Say whether forge works here, and what to do where it does not
    Doctor,
    /// Record workflow runs of items through steps, and go on with them
    #[command(subcommand)]
    Run(LazyArgs<run::RunCommand>),
    /// Save how far long pipelines have come, and go on with them
    #[command(subcommand)]
    Progress(LazyArgs<progress::ProgressCommand>),
    /// Checkpoint programs of several agents, and go on with each agent where it is
    #[command(subcommand)]
    Program(LazyArgs<program::ProgramCommand>),
    /// Keep message threads of LLM agents such that their provider takes them
    #[command(subcommand)]
    Thread(LazyArgs<thread::ThreadCommand>),
    /// See when an agent's context was compacted and what its summary left out
    #[command(subcommand)]
    Compaction(LazyArgs<compaction::CompactionCommand>),
    /// Read and change settings
    #[command(subcommand)]
    Config(LazyArgs<config::ConfigCommand>),
    /// Serve coding agents over the Model Context Protocol
    Mcp(LazyArgs<mcp::McpArgs>),
    /// Bring the store's index up to date and compact it
    Maintain,
    /// Check that the store is whole (exit code 0 whole, 1 repairable, 2 loss, 6 forged)
    Verify(LazyArgs<verify::VerifyArgs>),
    /// Make everything derived in the store's index again
    Rebuild,
    /// Save what can be saved of a damaged store into a new folder
    Repair(LazyArgs<verify::RepairArgs>),
    /// Copy the whole store, while others use it
    Backup(LazyArgs<bundle::BackupArgs>),
    /// Show the key that the store is sealed with, and carry it to another machine
    #[command(subcommand)]
    Key(LazyArgs<key::KeyCommand>),
    /// Take the store over as it is, with a key of your own
    Adopt,
    /// Print a completion script for a shell
    Completions(LazyArgs<completions::CompletionsArgs>),
    /// Write the manual pages
    Man(LazyArgs<man::ManArgs>),
}

impl ForgeCommand {
    /// Whether it says itself which settings of the project are allowed.
    #[must_use]
    pub fn is_about_trust(&self) -> bool {
        matches!(self, Self::Config(command) if matches!(**command, config::ConfigCommand::Trust(_)))
    }

    /// Does it.
    pub fn run(&self, context: &mut Context) -> Result<(), CommandError> {
        use forge_store::model::Kind;
        match self {
            Self::Init(args) => init::run(args, context),
            Self::Status => status::run(context),
            Self::Brief(args) => brief::run(args, context),
            Self::Session(command) => session::run(command, context),
            Self::Hypothesis(command) => hypothesis::run(command, context),
            Self::Evidence(command) => evidence::run(command, context),
            Self::Belief(command) => belief::run(command, context),
            Self::Dependency(command) => dependency::run(command, context),
            Self::Gap(command) => gap::run(command, context),
            Self::Verification(command) => verification::run(command, context),
            Self::Note(command) => note::run(command, context),
            Self::Measurement(command) => measurement::run(command, context),
            Self::Command(command) => command::run(command, context),
            Self::Code(command) => code::run(command, context),
            Self::Task(command) => fact::run(Kind::Task, command, context),
            Self::Message(command) => fact::run(Kind::Message, command, context),
            Self::Prompt(command) => fact::run(Kind::Prompt, command, context),
            Self::Agent(command) => fact::run(Kind::Agent, command, context),
            Self::Tool(command) => fact::run(Kind::Tool, command, context),
            Self::Notice(command) => fact::run(Kind::Notice, command, context),
            Self::Inference(command) => inference::run(command, context),
            Self::Branch(command) => branch::run(command, context),
            Self::Blame(args) => blame::run(args, context),
            Self::Why(args) => blame::why(args, context),
            Self::Search(args) => search::run(args, context),
            Self::Log(args) => log::run(args, context),
            Self::Undo(args) => undo::run(args, context),
            Self::Redo => undo::redo(context),
            Self::Recover(args) => recover::run(args, context),
            Self::Tui(args) => tui::run(args, context),
            Self::Checkpoint(command) => checkpoint::run(command, context),
            Self::Import(command) => import::run(command, context),
            Self::Export(command) => export::run(command, context),
            Self::Redact(args) => redact::run(args, context),
            Self::Purge(args) => purge::run(args, context),
            Self::Compaction(command) => compaction::run(command, context),
            Self::Hook(args) => hook::run(args, context),
            Self::Hooks(command) => hooks::run(command, context),
            Self::Doctor => doctor::run(context),
            Self::Run(command) => run::run(command, context),
            Self::Progress(command) => progress::run(command, context),
            Self::Program(command) => program::run(command, context),
            Self::Thread(command) => thread::run(command, context),
            Self::Config(command) => config::run(command, context),
            Self::Mcp(args) => mcp::run(args, context),
            Self::Maintain => maintain::run(context),
            Self::Verify(args) => verify::verify(args, context),
            Self::Rebuild => verify::rebuild(context),
            Self::Repair(args) => verify::repair(args, context),
            Self::Backup(args) => bundle::backup(args, context),
            Self::Key(command) => key::run(command, context),
            Self::Adopt => key::adopt(context),
            Self::Completions(args) => completions::run(args, context),
            Self::Man(args) => man::run(args, context),
        }
    }
}

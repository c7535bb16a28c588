//! The commands. Each file contains the arguments and the functions of a command, or of a few.

pub mod belief;
pub mod blame;
pub mod branch;
pub mod brief;
pub mod bundle;
pub mod check;
pub mod checkpoint;
pub mod checkpoint_query;
pub mod claim;
pub mod clone;
pub mod code;
pub mod command;
pub mod compaction;
pub mod complete;
pub mod completions;
pub mod config;
pub mod dependency;
pub mod doctor;
pub mod entity;
pub mod evidence;
pub mod export;
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
pub mod pull;
pub mod purge;
pub mod push;
pub mod recover;
pub mod redact;
pub mod remote;
pub mod report;
pub mod run;
pub mod search;
pub mod serve;
pub mod session;
pub mod show;
pub mod status;
pub mod status_line;
pub mod story;
pub mod sync;
pub mod thread;
pub mod tui;
pub mod undo;
pub mod verification;
pub mod verify;
pub mod watch;
pub mod why;

use crate::args::lazy::LazyArgs;
use crate::verb::commands;
use forge_store::model::claim::{Agent, Message, Notice, Prompt, Task, ToolUse};

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub enum ForgeCommand {
    /// Make a store for this project
    Init(LazyArgs<init::InitArgs>),
    /// Show the store, the current session and branch, and what was recorded last
    Status(LazyArgs<status::StatusArgs>),
    /// Show on one page what is known, rejected and open
    Brief(LazyArgs<brief::BriefArgs>),
    /// Begin, choose and list debugging sessions
    #[command(subcommand)]
    Session(LazyArgs<session::SessionCommand>),
    /// Add, test and settle hypotheses
    #[command(subcommand, visible_alias = "h")]
    Hypothesis(LazyArgs<hypothesis::HypothesisCommand>),
    /// Record evidence for or against a hypothesis
    #[command(subcommand, visible_alias = "e")]
    Evidence(LazyArgs<evidence::EvidenceCommand>),
    /// Record what is believed to be true, and what it rests on
    #[command(subcommand, visible_alias = "b")]
    Belief(LazyArgs<belief::BeliefCommand>),
    /// List and show what beliefs rest on
    #[command(subcommand)]
    Dependency(LazyArgs<dependency::DependencyCommand>),
    /// Record open questions
    #[command(subcommand, visible_alias = "g")]
    Gap(LazyArgs<gap::GapCommand>),
    /// Record results of tests, builds and checks
    #[command(subcommand)]
    Verification(LazyArgs<verification::VerificationCommand>),
    /// Record notes: 'forge note TEXT' adds one
    #[command(visible_alias = "n")]
    Note(LazyArgs<note::NoteArgs>),
    /// Record measured values
    #[command(subcommand)]
    Measurement(LazyArgs<measurement::MeasurementCommand>),
    /// Run commands and record how they end
    #[command(subcommand)]
    Command(LazyArgs<command::CommandCommand>),
    /// Run a command and record whether a check passed
    Check(LazyArgs<check::CheckArgs>),
    /// Record the state of the source code
    #[command(subcommand)]
    Code(LazyArgs<code::CodeCommand>),
    /// List and show tasks of an agent's own list
    #[command(subcommand)]
    Task(LazyArgs<entity::FactCommand<Task>>),
    /// List and show messages of the conversation
    #[command(subcommand)]
    Message(LazyArgs<entity::FactCommand<Message>>),
    /// List and show prompts
    #[command(subcommand)]
    Prompt(LazyArgs<entity::FactCommand<Prompt>>),
    /// List and show sub-agents
    #[command(subcommand)]
    Agent(LazyArgs<entity::FactCommand<Agent>>),
    /// List and show tool calls: what an agent read, searched and fetched
    #[command(subcommand)]
    Tool(LazyArgs<entity::FactCommand<ToolUse>>),
    /// List and show notices: diagnostics, links, limits
    #[command(subcommand)]
    Notice(LazyArgs<entity::FactCommand<Notice>>),
    /// List what rules found in messages, promote it or dismiss it
    #[command(subcommand)]
    Inference(LazyArgs<inference::InferenceCommand>),
    /// Follow another line of thought without losing this one
    #[command(subcommand)]
    Branch(LazyArgs<branch::BranchCommand>),
    /// Show which change set each field of an entity
    Blame(LazyArgs<blame::BlameArgs>),
    /// Show what an entity rests on and what rests on it
    Why(LazyArgs<blame::WhyArgs>),
    /// Show whatever has a name: a claim, a fact, a checkpoint, a moment
    Show(LazyArgs<show::ShowArgs>),
    /// Show what was known at a moment
    At(LazyArgs<checkpoint::CheckpointAtArgs<true>>),
    /// Compare two moments
    Diff(LazyArgs<checkpoint::CheckpointDiffArgs<true>>),
    /// Restore the claims of a moment, as a new revision
    Restore(LazyArgs<checkpoint::CheckpointRestoreArgs<true>>),
    /// Find words in everything that was ever recorded
    Search(LazyArgs<search::SearchArgs>),
    /// Tell what happened: prompts, claims, checks that turned, edits, commits
    Story(LazyArgs<story::StoryArgs>),
    /// Write the session as a page to look at: one HTML file, or Markdown
    Report(LazyArgs<report::ReportArgs>),
    /// Serve the pages of all sessions on this machine, live
    Serve(LazyArgs<serve::ServeArgs>),
    /// Tell what happened last; with an option or an entity, show its changes, newest first
    #[command(alias = "history")]
    Log(LazyArgs<log::LogArgs>),
    /// Undo the last operation, or a named one
    Undo(LazyArgs<undo::UndoArgs>),
    /// Redo what the last undo reverted
    Redo(LazyArgs<undo::RedoArgs>),
    /// Show where to continue after a crash: code, environment, commands and remaining work
    Recover(LazyArgs<recover::RecoverArgs>),
    /// Make checkpoints, compare moments, and go back to them
    #[command(subcommand)]
    Checkpoint(LazyArgs<checkpoint::CheckpointCommand>),
    /// Draw branches, revisions and checkpoints in the order of time
    Timeline(LazyArgs<checkpoint::CheckpointTimelineArgs<true>>),
    /// Browse the timeline and look at any moment of it
    Tui(LazyArgs<tui::TuiArgs>),
    /// Print what happens, line by line, as it happens
    Watch(LazyArgs<watch::WatchArgs>),
    /// Print the session in one line, for Claude Code's status line
    Statusline(LazyArgs<status_line::StatuslineArgs>),
    /// Print the session in a few words for a shell's prompt; nothing outside a project
    PromptSegment(LazyArgs<status_line::PromptSegmentArgs>),
    /// Import transcripts, events and bundles
    Import(LazyArgs<import::ImportArgs>),
    /// Export what is recorded
    #[command(subcommand)]
    Export(LazyArgs<export::ExportCommand>),
    /// Make, join and check places through which stores share sessions
    #[command(subcommand)]
    Remote(LazyArgs<remote::RemoteCommand>),
    /// Push sessions to a remote
    Push(LazyArgs<push::PushArgs>),
    /// Pull what others have pushed of sessions
    Pull(LazyArgs<pull::PullArgs>),
    /// Pull and push sessions until neither side has anything new
    Sync(LazyArgs<sync::SyncArgs>),
    /// Make a store for this project with sessions of a remote
    Clone(LazyArgs<clone::CloneArgs>),
    /// Print a text without the secrets that would not be stored
    Redact(LazyArgs<redact::RedactArgs>),
    /// Remove a secret permanently from everything that is stored (exit code 8: not yet)
    Purge(LazyArgs<purge::PurgeArgs>),
    /// Save what a coding agent sends to its hook on stdin; always exits with 0
    Hook(LazyArgs<hook::HookArgs>),
    /// Install forge in a coding agent, and uninstall it
    #[command(subcommand)]
    Hooks(LazyArgs<hooks::HooksCommand>),
    /// Check whether forge works here, and show how to correct problems
    Doctor(LazyArgs<doctor::DoctorArgs>),
    /// Record workflow runs of items through steps, and resume them
    #[command(subcommand)]
    Run(LazyArgs<run::RunCommand>),
    /// Save the progress of long pipelines, and resume them
    #[command(subcommand)]
    Progress(LazyArgs<progress::ProgressCommand>),
    /// Checkpoint programs of several agents, and resume each agent where it is
    #[command(subcommand)]
    Program(LazyArgs<program::ProgramCommand>),
    /// Keep message threads of LLM agents valid for their provider
    #[command(subcommand)]
    Thread(LazyArgs<thread::ThreadCommand>),
    /// Show when an agent's context was compacted, and what its summary left out
    #[command(subcommand)]
    Compaction(LazyArgs<compaction::CompactionCommand>),
    /// Read and change settings
    #[command(subcommand)]
    Config(LazyArgs<config::ConfigCommand>),
    /// Serve coding agents over the Model Context Protocol
    Mcp(LazyArgs<mcp::McpArgs>),
    /// Bring the store's index up to date and compact it
    Maintain(LazyArgs<maintain::MaintainArgs>),
    /// Check the store (exit code 0 clean, 1 repairable, 2 loss, 6 forged)
    Verify(LazyArgs<verify::VerifyArgs>),
    /// Rebuild the derived data of the store's index
    Rebuild(LazyArgs<verify::RebuildArgs>),
    /// Save what is readable of a damaged store into a new directory
    Repair(LazyArgs<verify::RepairArgs>),
    /// Copy the whole store while it is in use
    Backup(LazyArgs<bundle::BackupArgs>),
    /// Show the key of the store's seals, and move it to another machine
    #[command(subcommand)]
    Key(LazyArgs<key::KeyCommand>),
    /// Accept the store as it is, with a new key
    Adopt(LazyArgs<key::AdoptArgs>),
    /// Print a completion script for a shell
    Completions(LazyArgs<completions::CompletionsArgs>),
    /// Print what can complete a command line, for the completion scripts
    #[command(hide = true)]
    Complete(LazyArgs<complete::CompleteArgs>),
    /// Write the manual pages
    Man(LazyArgs<man::ManArgs>),
}

impl ForgeCommand {
    /// Whether the command prints no warnings, because other programs call it very often.
    pub fn is_silent(&self) -> bool {
        matches!(self, Self::Statusline(_) | Self::PromptSegment(_) | Self::Complete(_))
    }

    /// Whether the command itself reports which settings of the project are allowed.
    pub fn is_about_trust(&self) -> bool {
        matches!(self, Self::Config(command) if matches!(**command, config::ConfigCommand::Trust(_)))
    }
}

commands!(
    ForgeCommand: Init, Status, Brief, Session, Hypothesis, Evidence, Belief, Dependency, Gap, Verification, Note, Measurement, Command, Check, Code, Task, Message, Prompt, Agent, Tool, Notice, Inference, Branch, Blame, Why, Show, At, Diff, Restore, Search, Story, Report, Serve, Log, Undo, Redo, Recover, Checkpoint, Timeline, Tui, Watch, Statusline, PromptSegment, Import, Export, Remote, Push, Pull, Sync, Clone, Redact, Purge, Hook, Hooks, Doctor, Run, Progress, Program, Thread, Compaction, Config, Mcp, Maintain, Verify, Rebuild, Repair, Backup, Key, Adopt, Completions, Complete, Man
);

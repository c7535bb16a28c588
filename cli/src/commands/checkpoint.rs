//! `forge checkpoint`.

use crate::args::value::{self, Moment, Name};
use crate::context::Context;
use crate::error::CommandError;
use forge_store::model::Kind;
use std::time::Duration;

/// Name moments, list and compare them, and go back to them.
#[derive(Debug, clap::Subcommand)]
pub enum CheckpointCommand {
    /// Name this moment
    Create(CreateArgs),
    /// List checkpoints, newest first
    List(ListArgs),
    /// Show a checkpoint and the state it names
    Show(ShowArgs),
    /// Show what was known at a moment
    At(AtArgs),
    /// Compare two moments
    Diff(DiffArgs),
    /// Make the claims what they were at a moment, as a new revision
    Restore(RestoreArgs),
    /// Add and remove tags of a checkpoint
    Tag(TagArgs),
    /// Draw branches, revisions and checkpoints in the order of time
    Timeline(TimelineArgs),
    /// Make checkpoints at regular times, at the next write after each
    Schedule(ScheduleArgs),
}

/// Arguments of `forge checkpoint create`.
#[derive(Debug, clap::Args)]
pub struct CreateArgs {
    /// Say what moment it is
    #[arg(value_name = "MESSAGE")]
    pub message: String,

    /// Tag it with these words
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub tags: Vec<Name>,

    /// Name this past moment instead
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,
}

/// Arguments of `forge checkpoint list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// List those with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<Name>,

    /// List those of all sessions
    #[arg(long)]
    pub all: bool,

    /// List those at this moment or later
    #[arg(long, value_name = "T")]
    pub since: Option<Moment>,

    /// List those at this moment or earlier
    #[arg(long, value_name = "T")]
    pub until: Option<Moment>,

    /// List at most this many
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// What of a state to show and how.
#[derive(Debug, clap::Args)]
pub struct StateArgs {
    /// Show this kind only; may be given more than once
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<Kind>,

    /// Show everything, and texts whole, however long
    #[arg(long)]
    pub full: bool,

    /// Leave out what was recorded only later
    #[arg(long)]
    pub as_recorded: bool,
}

/// Arguments of `forge checkpoint show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Name it by a unique prefix of its id, '#N' or a tag
    #[arg(value_name = "X")]
    pub which: Moment,

    /// What of its state to show.
    #[command(flatten)]
    pub state: StateArgs,
}

/// Arguments of `forge checkpoint at`.
#[derive(Debug, clap::Args)]
pub struct AtArgs {
    /// Name the moment, such as '2 hours ago', '2025-01-20 14:30', '#42', 'HEAD~3' or a tag
    #[arg(value_name = "T")]
    pub moment: Moment,

    /// What of the state to show.
    #[command(flatten)]
    pub state: StateArgs,
}

/// Arguments of `forge checkpoint diff`.
#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    /// Name the moment to compare from
    #[arg(value_name = "A")]
    pub from: Moment,

    /// Name the moment to compare to
    #[arg(value_name = "B", default_value = "HEAD")]
    pub to: Moment,

    /// Exit with 1 if there are differences
    #[arg(long)]
    pub exit_code: bool,

    /// Compare this kind only; may be given more than once
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<Kind>,
}

/// Arguments of `forge checkpoint restore`.
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// Name the moment
    #[arg(value_name = "X")]
    pub which: Moment,

    /// Say what would change, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `forge checkpoint tag`.
#[derive(Debug, clap::Args)]
pub struct TagArgs {
    /// Name it by a unique prefix of its id, '#N' or a tag
    #[arg(value_name = "X")]
    pub which: Moment,

    /// Add these tags
    #[arg(long, value_name = "TAG,...", value_delimiter = ',', required_unless_present = "remove")]
    pub add: Vec<Name>,

    /// Remove these tags
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub remove: Vec<Name>,
}

/// Arguments of `forge checkpoint timeline`.
#[derive(Debug, clap::Args)]
pub struct TimelineArgs {
    /// Draw every revision, not only those with a checkpoint or a fork
    #[arg(long)]
    pub all: bool,

    /// Draw from this moment on
    #[arg(long, value_name = "T")]
    pub since: Option<Moment>,

    /// Draw up to this moment
    #[arg(long, value_name = "T")]
    pub until: Option<Moment>,

    /// Draw at most this many rows, the latest ones
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// Arguments of `forge checkpoint schedule`; without any it says what is scheduled.
#[derive(Debug, clap::Args)]
pub struct ScheduleArgs {
    /// Make one this often, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = value::duration, conflicts_with = "off")]
    pub every: Option<Duration>,

    /// Make no more
    #[arg(long)]
    pub off: bool,
}

/// Does it.
pub fn run(command: &CheckpointCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        CheckpointCommand::Create(args) => create(args, context),
        CheckpointCommand::List(args) => list(args, context),
        CheckpointCommand::Show(args) => show(args, context),
        CheckpointCommand::At(args) => at(args, context),
        CheckpointCommand::Diff(args) => diff(args, context),
        CheckpointCommand::Restore(args) => restore(args, context),
        CheckpointCommand::Tag(args) => tag(args, context),
        CheckpointCommand::Timeline(args) => timeline(args, context),
        CheckpointCommand::Schedule(args) => schedule(args, context),
    }
}

fn create(_args: &CreateArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn list(_args: &ListArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn show(_args: &ShowArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn at(_args: &AtArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn diff(_args: &DiffArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn restore(_args: &RestoreArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn tag(_args: &TagArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn timeline(_args: &TimelineArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn schedule(_args: &ScheduleArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

//! `forge checkpoint`.

use super::prune::PruneArgs;
use crate::args::value::{self, Moment, Name};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::checkpoint_made::{Schedule, Tagged};
use crate::report::written::{Made, Written};
use crate::workplace::{self, Access, Need};
use crate::writing::Writing;
use forge_store::model::Kind;
use forge_store::store::NewCheckpoint;
use std::time::Duration;

/// Make checkpoints, compare moments, and go back to them.
#[derive(Debug, clap::Subcommand)]
pub enum CheckpointCommand {
    /// Make a checkpoint of this moment
    Create(CreateArgs),
    /// List checkpoints, newest first
    List(ListArgs),
    /// Show a checkpoint and the state it names
    Show(ShowArgs),
    /// Show what was known at a moment
    At(AtArgs),
    /// Compare two moments
    Diff(DiffArgs),
    /// Restore the claims of a moment, as a new revision
    Restore(RestoreArgs),
    /// Add and remove tags of a checkpoint
    Tag(TagArgs),
    /// Draw branches, revisions and checkpoints in the order of time
    Timeline(TimelineArgs),
    /// Make checkpoints at regular times, at the next write after each
    Schedule(ScheduleArgs),
    /// Remove checkpoints that no rule keeps, and fold revisions that nothing names
    Prune(PruneArgs),
}

/// Arguments of `forge checkpoint create`.
#[derive(Debug, clap::Args)]
pub struct CreateArgs {
    /// What moment it is
    #[arg(value_name = "MESSAGE", value_parser = value::said)]
    pub message: String,

    /// Tags
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub tags: Vec<Name>,

    /// Past moment to name instead of now
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,
}

/// Arguments of `forge checkpoint list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Only those with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<Name>,

    /// List those of all sessions
    #[arg(long)]
    pub all: bool,

    /// Earliest moment, such as -2h or 'yesterday 14:30'
    #[arg(long, value_name = "T")]
    pub since: Option<Moment>,

    /// Latest moment
    #[arg(long, value_name = "T")]
    pub until: Option<Moment>,

    /// Largest number to list
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// What of a state to show and how.
#[derive(Debug, clap::Args)]
pub struct StateArgs {
    /// Kind to show; can be repeated
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<Kind>,

    /// Show everything, with whole texts
    #[arg(long)]
    pub full: bool,

    /// Omit what was recorded only later
    #[arg(long)]
    pub as_recorded: bool,
}

/// Arguments of `forge checkpoint show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Unique prefix of its id, '#N' or a tag
    #[arg(value_name = "X")]
    pub which: Moment,

    /// What of its state to show.
    #[command(flatten)]
    pub state: StateArgs,
}

/// Arguments of `forge checkpoint at`.
#[derive(Debug, clap::Args)]
pub struct AtArgs {
    /// Moment, such as -2h, '2 hours ago', '2025-01-20 14:30', '#42', 'HEAD~3' or a tag
    #[arg(value_name = "T")]
    pub moment: Moment,

    /// What of the state to show.
    #[command(flatten)]
    pub state: StateArgs,
}

/// Arguments of `forge checkpoint diff`.
#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    /// Moment to compare from
    #[arg(value_name = "A")]
    pub from: Moment,

    /// Moment to compare to
    #[arg(value_name = "B", default_value = "HEAD")]
    pub to: Moment,

    /// Exit with 1 if there are differences
    #[arg(long)]
    pub exit_code: bool,

    /// Kind to compare; can be repeated
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<Kind>,
}

/// Arguments of `forge checkpoint restore`.
#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// Moment
    #[arg(value_name = "X")]
    pub which: Moment,

    /// Show what would change, without changing anything
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `forge checkpoint tag`.
#[derive(Debug, clap::Args)]
pub struct TagArgs {
    /// Unique prefix of its id, '#N' or a tag
    #[arg(value_name = "X")]
    pub which: Moment,

    /// Tags to add
    #[arg(long, value_name = "TAG,...", value_delimiter = ',', required_unless_present = "remove")]
    pub add: Vec<Name>,

    /// Tags to remove
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub remove: Vec<Name>,
}

/// Arguments of `forge checkpoint timeline`.
#[derive(Debug, clap::Args)]
pub struct TimelineArgs {
    /// Draw every revision, not only those with a checkpoint or a fork
    #[arg(long)]
    pub all: bool,

    /// Earliest moment, such as -2h or 'yesterday 14:30'
    #[arg(long, value_name = "T")]
    pub since: Option<Moment>,

    /// Latest moment
    #[arg(long, value_name = "T")]
    pub until: Option<Moment>,

    /// Largest number of rows; the latest ones are drawn
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,

    /// Print it even on a terminal, instead of opening 'forge tui'
    #[arg(long)]
    pub no_tui: bool,
}

impl TimelineArgs {
    /// Whether no option was given that the browser would not show.
    fn is_plain(&self) -> bool {
        let narrowed = self.since.is_some() || self.until.is_some() || self.limit.is_some();
        !self.all && !self.no_tui && !narrowed
    }
}

/// Arguments of `forge checkpoint schedule`; without any it shows the schedule.
#[derive(Debug, clap::Args)]
pub struct ScheduleArgs {
    /// Interval, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = value::duration, conflicts_with = "off")]
    pub every: Option<Duration>,

    /// Switch it off
    #[arg(long)]
    pub off: bool,
}

/// Runs `forge checkpoint`.
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
        CheckpointCommand::Prune(args) => super::prune::run(args, context),
    }
}

fn create(args: &CreateArgs, context: &mut Context) -> Result<(), CommandError> {
    if let Some(tag) = args.tags.iter().find(|tag| tag.as_str().contains(char::is_whitespace)) {
        return Err(CommandError::invalid(format!("'{tag}' is not a tag: a tag is one word"))
            .hinted("commas part tags: '--tags one,two'"));
    }
    let need = if args.at.is_some() { Need::Existing } else { Need::OrNew };
    let writing = Writing::begin(context, "checkpoint create", need)?;
    let mut new = NewCheckpoint::manual(&args.message).tags(args.tags.iter().map(Name::as_str));
    if let Some(at) = args.at.as_ref() {
        let point = workplace::point(context, &writing.session, at)?;
        new.at = point.time();
    }
    let done = writing.write().checkpoint(new).commit()?;
    let id = done.checkpoint.as_ref().map(|checkpoint| checkpoint.id.to_string());
    let report = Written::new("forge.checkpoint.create/1", "Made a checkpoint", done);
    context.out.emit(&report.named(id.unwrap_or_default()))?;
    writing.finish();
    Ok(())
}

fn list(args: &ListArgs, context: &mut Context) -> Result<(), CommandError> {
    super::look::list(args, context)
}

fn show(args: &ShowArgs, context: &mut Context) -> Result<(), CommandError> {
    super::look::show(args, context)
}

fn at(args: &AtArgs, context: &mut Context) -> Result<(), CommandError> {
    super::look::at(args, context)
}

fn diff(args: &DiffArgs, context: &mut Context) -> Result<(), CommandError> {
    super::look::diff(args, context)
}

fn restore(args: &RestoreArgs, context: &mut Context) -> Result<(), CommandError> {
    super::look::restore(args, context)
}

fn tag(args: &TagArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = Writing::begin(context, "checkpoint tag", Need::Existing)?;
    let point = workplace::point(context, &writing.session, &args.which)?;
    let Some(checkpoint) = point.named_checkpoint() else {
        let which = args.which.as_str();
        return Err(CommandError::invalid(format!("'{which}' names a moment, not a checkpoint"))
            .hinted("'forge checkpoint list' names them"));
    };
    let words = |names: &[Name]| -> Vec<String> {
        names.iter().map(|name| name.as_str().to_owned()).collect()
    };
    let (add, remove) = (words(&args.add), words(&args.remove));
    let checkpoint = writing.session.tag(&writing.act, &checkpoint.id, &add, &remove)?;
    let summary = writing.session.summary()?;
    let checkpoint = Made::from(&checkpoint);
    context.out.emit(&Tagged { session: summary.info.name, branch: summary.branch, checkpoint })?;
    writing.finish();
    Ok(())
}

fn timeline(args: &TimelineArgs, context: &mut Context) -> Result<(), CommandError> {
    if args.is_plain() && super::tui::on_terminal(context) {
        return super::tui::run(&super::tui::TuiArgs::default(), context);
    }
    super::look::timeline(args, context)
}

fn schedule(args: &ScheduleArgs, context: &mut Context) -> Result<(), CommandError> {
    let changes = args.every.is_some() || args.off;
    let store = workplace::open(context, if changes { Access::Write } else { Access::Read })?;
    let need = if args.every.is_some() { Need::OrNew } else { Need::Existing };
    let session = workplace::session(context, &store, need)?;
    if changes {
        let act = workplace::act(context, "checkpoint schedule");
        let every = args.every.map(|every| i64::try_from(every.as_micros()).unwrap_or(i64::MAX));
        session.schedule(&act, every)?;
    }
    let summary = session.summary()?;
    let every_seconds = summary.schedule_micros.map(|micros| micros / 1_000_000);
    let last_checkpoint = summary.last_checkpoint;
    let (session, branch) = (summary.info.name, summary.branch);
    context.out.emit(&Schedule { session, branch, every_seconds, last_checkpoint })?;
    workplace::finish(&store);
    Ok(())
}

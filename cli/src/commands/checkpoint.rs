//! `forge checkpoint`.

use super::prune::CheckpointPruneArgs;
use crate::args::list_format::ListFormat;
use crate::args::value::{self, MomentArg, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::checkpoint_change::{CheckpointScheduleReport, CheckpointTagReport};
use crate::report::entity_write::{EntityWriteReport, MadeCheckpoint};
use crate::session_writer::SessionWriter;
use crate::verb::{OpenedStore, Verb, VerbResult, commands};
use crate::workspace::{self, SessionNeed, StoreAccess};
use forge_store::model::Kind;
use forge_store::store::NewCheckpoint;
use std::time::Duration;

/// The moment to which `diff` compares by default.
pub(super) const DEFAULT_END: &str = "HEAD";

/// Make checkpoints, compare moments, and go back to them.
#[derive(Debug, clap::Subcommand)]
pub enum CheckpointCommand {
    /// Make a checkpoint of this moment
    Create(CheckpointCreateArgs),
    /// List checkpoints, newest first
    List(CheckpointListArgs),
    /// Show a checkpoint and the state it names
    Show(CheckpointShowArgs),
    /// Show what was known at a moment
    At(CheckpointAtArgs<false>),
    /// Compare two moments
    Diff(CheckpointDiffArgs<false>),
    /// Restore the claims of a moment, as a new revision
    Restore(CheckpointRestoreArgs<false>),
    /// Add and remove tags of a checkpoint
    Tag(CheckpointTagArgs),
    /// Draw branches, revisions and checkpoints in the order of time
    Timeline(CheckpointTimelineArgs<false>),
    /// Make checkpoints at regular times, at the next write after each
    Schedule(CheckpointScheduleArgs),
    /// Remove checkpoints that no rule keeps, and fold revisions that nothing names
    Prune(CheckpointPruneArgs),
}

#[derive(Debug, clap::Args)]
pub struct CheckpointCreateArgs {
    /// Description of the moment
    #[arg(
        value_name = "MESSAGE",
        value_parser = value::non_empty_text,
        required_unless_present = "text"
    )]
    pub message: Option<String>,

    /// The same as MESSAGE
    #[arg(
        short = 'm',
        long = "message",
        value_name = "TEXT",
        value_parser = value::non_empty_text,
        conflicts_with = "message"
    )]
    pub text: Option<String>,

    /// Tags
    #[arg(short, long, value_name = "TAG,...", value_delimiter = ',')]
    pub tags: Vec<NameArg>,

    /// Past moment to name instead of now
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,
}

#[derive(Debug, clap::Args)]
pub struct CheckpointListArgs {
    /// Only those with this tag
    #[arg(short, long, value_name = "TAG", value_parser = value::one_tag)]
    pub tag: Option<String>,

    /// List the checkpoints of all sessions
    #[arg(long)]
    pub all: bool,

    /// Also list checkpoints whose message says only that time has passed
    #[arg(long)]
    pub unnamed: bool,

    /// Earliest moment, such as -2h or 'yesterday 14:30'
    #[arg(long, value_name = "T")]
    pub since: Option<MomentArg>,

    /// Latest moment
    #[arg(long, value_name = "T")]
    pub until: Option<MomentArg>,

    /// Maximum number to list
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,

    /// Line for each, with fields as in JSON: '{sequence} {message}'
    #[arg(long, value_name = "TEMPLATE")]
    pub format: Option<ListFormat>,
}

/// Which part of a state to show, and how.
#[derive(Debug, clap::Args)]
pub struct StateViewArgs {
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

#[derive(Debug, clap::Args)]
pub struct CheckpointShowArgs {
    /// Unique prefix of its id, '#N' or a tag
    #[arg(value_name = "X")]
    pub which: MomentArg,

    #[command(flatten)]
    pub state: StateViewArgs,
}

#[derive(Debug, clap::Args)]
pub struct CheckpointAtArgs<const TOP: bool> {
    /// Moment, such as -2h, '2 hours ago', '2025-01-20 14:30', '#42', 'HEAD~3' or a tag
    #[arg(value_name = "T")]
    pub moment: MomentArg,

    #[command(flatten)]
    pub state: StateViewArgs,
}

#[derive(Debug, clap::Args)]
pub struct CheckpointDiffArgs<const TOP: bool> {
    /// Moment to compare from, or both moments as 'A..B'; the last checkpoint that was made by hand
    /// by default
    #[arg(value_name = "A")]
    pub from: Option<MomentArg>,

    /// Moment to compare to
    #[arg(value_name = "B", default_value = DEFAULT_END)]
    pub to: MomentArg,

    /// Exit with 1 if there are differences
    #[arg(long)]
    pub exit_code: bool,

    /// Kind to compare; can be repeated
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<Kind>,
}

#[derive(Debug, clap::Args)]
pub struct CheckpointRestoreArgs<const TOP: bool> {
    /// Moment
    #[arg(value_name = "X")]
    pub which: MomentArg,

    /// Show what would change, without changing anything
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub struct CheckpointTagArgs {
    /// Unique prefix of its id, '#N' or a tag
    #[arg(value_name = "X")]
    pub which: MomentArg,

    /// Tags to add
    #[arg(long, value_name = "TAG,...", value_delimiter = ',', required_unless_present = "remove")]
    pub add: Vec<NameArg>,

    /// Tags to remove
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub remove: Vec<NameArg>,
}

#[derive(Debug, clap::Args)]
pub struct CheckpointTimelineArgs<const TOP: bool> {
    /// Draw every revision, not only those with a checkpoint or a fork
    #[arg(long)]
    pub all: bool,

    /// Earliest moment, such as -2h or 'yesterday 14:30'
    #[arg(long, value_name = "T")]
    pub since: Option<MomentArg>,

    /// Latest moment
    #[arg(long, value_name = "T")]
    pub until: Option<MomentArg>,

    /// Maximum number of rows; the latest ones are drawn
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,

    /// Print it even on a terminal, instead of opening 'forge tui'
    #[arg(long)]
    pub no_tui: bool,
}

impl<const TOP: bool> CheckpointTimelineArgs<TOP> {
    /// Whether no option was given: then the browser opens instead, on a terminal.
    pub(super) fn is_plain(&self) -> bool {
        let narrowed = self.since.is_some() || self.until.is_some() || self.limit.is_some();
        !self.all && !self.no_tui && !narrowed
    }
}

/// Arguments of `forge checkpoint schedule`. Without arguments, the command shows the schedule.
#[derive(Debug, clap::Args)]
pub struct CheckpointScheduleArgs {
    /// Interval, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = value::parse_duration, conflicts_with = "off")]
    pub every: Option<Duration>,

    /// Switch it off
    #[arg(long)]
    pub off: bool,
}

commands!(CheckpointCommand: Create, List, Show, At, Diff, Restore, Tag, Timeline, Schedule, Prune);

impl Verb for CheckpointCreateArgs {
    const NAME: &'static str = "checkpoint create";
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn session_need(&self) -> SessionNeed {
        if self.at.is_some() { SessionNeed::Existing } else { SessionNeed::OrNew }
    }

    fn check(&self, _: &Context) -> Result<(), CommandError> {
        if let Some(tag) = self.tags.iter().find(|tag| tag.as_str().contains(char::is_whitespace)) {
            return Err(CommandError::invalid(format!("'{tag}' is not a tag: a tag is one word"))
                .hinted("separate tags by commas: '--tags one,two'"));
        }
        Ok(())
    }

    fn run(&self, writing: &SessionWriter, context: &mut Context) -> VerbResult<Self> {
        let message = self.message.as_deref().or(self.text.as_deref()).unwrap_or_default();
        let mut new = NewCheckpoint::manual(message).tags(self.tags.iter().map(NameArg::as_str));
        let mut write = writing.write();
        if let Some(at) = self.at.as_ref() {
            let resolved = workspace::resolved_moment(context, &writing.session, at)?;
            new.at = resolved.time();
            write = write.after(&resolved);
        }
        let done = write.checkpoint(new).commit()?;
        let id = done.checkpoint.as_ref().map(|checkpoint| checkpoint.id.to_string());
        let report = EntityWriteReport::new("Made a checkpoint", done);
        Ok(report.about_checkpoint(id.unwrap_or_default()))
    }
}

impl Verb for CheckpointTagArgs {
    const NAME: &'static str = "checkpoint tag";
    type Opened = SessionWriter;
    type Report = CheckpointTagReport;

    fn run(&self, writing: &SessionWriter, context: &mut Context) -> VerbResult<Self> {
        let resolved = workspace::resolved_moment(context, &writing.session, &self.which)?;
        let Some(named) = resolved.named_checkpoint() else {
            let which = self.which.as_str();
            return Err(CommandError::invalid(format!(
                "'{which}' names a moment, not a checkpoint"
            ))
            .hinted(format!("'{} checkpoint list' names them", context.forge())));
        };
        let words = |names: &[NameArg]| -> Vec<String> {
            names.iter().map(|name| name.as_str().to_owned()).collect()
        };
        let (add, remove) = (words(&self.add), words(&self.remove));
        let checkpoint = writing.session.tag(&writing.write_context, &named.id, &add, &remove)?;
        let summary = writing.session.summary()?;
        Ok(CheckpointTagReport {
            session: summary.info.name,
            branch: summary.branch,
            changed: checkpoint.tags != named.tags,
            checkpoint: MadeCheckpoint::from(&checkpoint),
        })
    }
}

impl Verb for CheckpointScheduleArgs {
    const NAME: &'static str = "checkpoint schedule";
    type Opened = OpenedStore;
    type Report = CheckpointScheduleReport;

    fn access(&self) -> StoreAccess {
        if self.every.is_some() || self.off { StoreAccess::Write } else { StoreAccess::Read }
    }

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let need = if self.every.is_some() { SessionNeed::OrNew } else { SessionNeed::Existing };
        let session = workspace::choose_session(context, &opened.store, need)?;
        if self.every.is_some() || self.off {
            session.schedule(&opened.write_context, self.every.map(value::to_micros))?;
        }
        let summary = session.summary()?;
        Ok(CheckpointScheduleReport {
            session: summary.info.name,
            branch: summary.branch,
            every_seconds: summary.schedule_micros.map(|micros| micros / 1_000_000),
            last_checkpoint: summary.last_checkpoint,
        })
    }
}

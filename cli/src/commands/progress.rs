//! `forge progress`.

mod look;
mod save;

use crate::args::value::{self, Name};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::execution::Cleaned;
use crate::workplace::{self, Access};
use forge_store::error::Error;
use forge_store::store::Store;
use forge_systems::progress::{self, PipelineExecution, ProgressDocument};
use std::time::Duration;

/// Save how far long pipelines have come, and go on with them.
#[derive(Debug, clap::Subcommand)]
pub enum ProgressCommand {
    /// Save how far an execution has come, or report single items between saves
    Save(save::SaveArgs),
    /// Say whether an item was reported done: exit code 0, else 1
    Done(look::DoneArgs),
    /// Show how far an execution has come
    Show(look::ShowArgs),
    /// Say where to go on: exit code 1 if that is refused
    Resume(look::ResumeArgs),
    /// Check what was saved, or a file: exit code 1 if going on would be refused
    Validate(look::ValidateArgs),
    /// List the items that failed, and when each is to be tried again
    Failed(look::FailedArgs),
    /// List executions, the one last written to first
    List(look::ListArgs),
    /// List the stages of a kind of pipeline
    Stages(look::StagesArgs),
    /// Take out executions that are finished, without errors, and old
    Clean(CleanArgs),
}

/// Which execution.
#[derive(Debug, clap::Args)]
pub struct Of {
    /// Name the review
    #[arg(long, value_name = "REVIEW")]
    pub review: Name,

    /// Name the execution instead of the one saved last
    #[arg(long, value_name = "EXECUTION")]
    pub execution: Option<Name>,

    /// Name the stage
    #[arg(long, value_name = "STAGE")]
    pub stage: Option<Name>,
}

/// Arguments of `forge progress clean`.
#[derive(Debug, clap::Args)]
pub struct CleanArgs {
    /// Look at the executions of this review alone
    #[arg(long, value_name = "REVIEW")]
    pub review: Option<Name>,

    /// Keep what was saved not longer ago than this
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = value::duration)]
    pub older_than: Duration,

    /// Say what would be taken out and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Does it.
pub fn run(command: &ProgressCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        ProgressCommand::Save(args) => save::run(args, context),
        ProgressCommand::Done(args) => look::done(args, context),
        ProgressCommand::Show(args) => look::show(args, context),
        ProgressCommand::Resume(args) => look::resume(args, context),
        ProgressCommand::Validate(args) => look::validate(args, context),
        ProgressCommand::Failed(args) => look::failed(args, context),
        ProgressCommand::List(args) => look::list(args, context),
        ProgressCommand::Stages(args) => look::stages(args, context),
        ProgressCommand::Clean(args) => clean(args, context),
    }
}

/// The execution that was named, or the one of the review saved last, with what was saved.
fn found(store: &Store, of: &Of) -> Result<(PipelineExecution, ProgressDocument), CommandError> {
    let stage = of.stage.as_ref().map(Name::as_str);
    let execution = of.execution.as_ref().map(Name::as_str);
    let found =
        PipelineExecution::find(store, of.review.as_str(), execution, stage).map_err(hinted)?;
    found.ok_or_else(|| {
        let what = stage.map_or_else(String::new, |stage| format!("' at the stage '{stage}"));
        hinted(Error::not_found("progress", format!("{}{what}", of.review.as_str())))
    })
}

fn named(
    store: &Store,
    review: &Name,
    execution: &Name,
) -> Result<PipelineExecution, CommandError> {
    PipelineExecution::open(store, review.as_str(), execution.as_str()).map_err(hinted)
}

fn hinted(error: Error) -> CommandError {
    CommandError::from(error).hinted("'forge progress list' names what is saved")
}

fn clean(args: &CleanArgs, context: &mut Context) -> Result<(), CommandError> {
    let access = if args.dry_run { Access::Read } else { Access::Write };
    let store = workplace::open(context, access)?;
    let act = workplace::act(context, "progress clean");
    let keep = value::micros(args.older_than);
    let review = args.review.as_ref().map(Name::as_str);
    let act = (!args.dry_run).then_some(&act);
    let found = progress::clean(&store, act, review, context.now, keep)?;
    context.out.emit(&Cleaned::of(found, args.dry_run))?;
    if !args.dry_run {
        workplace::finish(&store);
    }
    Ok(())
}

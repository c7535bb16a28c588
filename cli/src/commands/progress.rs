//! `forge progress`.

mod query;
mod save;

use crate::args::value::{self, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::execution::ProgressCleanReport;
use crate::verb::{OpenedStore, Verb, VerbResult, commands};
use crate::workspace::StoreAccess;
use forge_store::error::Error;
use forge_store::store::Store;
use forge_systems::progress::{self, PipelineExecution, ProgressDocument};
use std::time::Duration;

/// Save the progress of long pipelines, and resume them.
#[derive(Debug, clap::Subcommand)]
pub enum ProgressCommand {
    /// Save the progress of an execution, or report single items
    Save(save::ProgressSaveArgs),
    /// Check whether an item was reported done (exit code 0, else 1)
    Done(query::ProgressDoneArgs),
    /// Show the progress of an execution
    Show(query::ProgressShowArgs),
    /// Show where to resume (exit code 1 if that is refused)
    Resume(query::ProgressResumeArgs),
    /// Check what was saved, or a file (exit code 1 if a resume would be refused)
    Validate(query::ProgressValidateArgs),
    /// List failed items, and when to retry each
    Failed(query::ProgressFailedArgs),
    /// List executions, the last written one first
    List(query::ProgressListArgs),
    /// List the stages of a kind of pipeline
    Stages(query::ProgressStagesArgs),
    /// Remove executions that are finished, without errors, and old
    Clean(ProgressCleanArgs),
}

/// Which execution.
#[derive(Debug, clap::Args)]
pub struct ExecutionArgs {
    /// Review
    #[arg(long, value_name = "REVIEW")]
    pub review: NameArg,

    /// Execution; the last saved one by default
    #[arg(long, value_name = "EXECUTION")]
    pub execution: Option<NameArg>,

    /// Stage
    #[arg(long, value_name = "STAGE")]
    pub stage: Option<NameArg>,
}

#[derive(Debug, clap::Args)]
pub struct ProgressCleanArgs {
    /// Only the executions of this review
    #[arg(long, value_name = "REVIEW")]
    pub review: Option<NameArg>,

    /// Least age of what is removed
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = value::parse_duration)]
    pub older_than: Duration,

    /// Show what would be removed, without changing anything
    #[arg(long)]
    pub dry_run: bool,
}

commands!(ProgressCommand: Save, Done, Show, Resume, Validate, Failed, List, Stages, Clean);

/// Finds the execution that the arguments name, or else the last saved one of the review, with its
/// document.
fn find_execution(
    store: &Store,
    of: &ExecutionArgs,
) -> Result<(PipelineExecution, ProgressDocument), CommandError> {
    let stage = of.stage.as_ref().map(NameArg::as_str);
    let execution = of.execution.as_ref().map(NameArg::as_str);
    let found = PipelineExecution::find(store, of.review.as_str(), execution, stage)
        .map_err(with_list_hint)?;
    found.ok_or_else(|| {
        let what = stage.map_or_else(String::new, |stage| format!("' at the stage '{stage}"));
        let review = format!("{}{what}", of.review.as_str());
        with_list_hint(Error::not_found("saved document of the review", review))
    })
}

fn named_execution(
    store: &Store,
    review: &NameArg,
    execution: &NameArg,
) -> Result<PipelineExecution, CommandError> {
    PipelineExecution::open(store, review.as_str(), execution.as_str()).map_err(with_list_hint)
}

fn with_list_hint(error: Error) -> CommandError {
    CommandError::from(error).hinted("'forge progress list' names what is saved")
}

impl Verb for ProgressCleanArgs {
    const NAME: &'static str = "progress clean";
    type Opened = OpenedStore;
    type Report = ProgressCleanReport;

    fn access(&self) -> StoreAccess {
        if self.dry_run { StoreAccess::Read } else { StoreAccess::Write }
    }

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let keep = value::to_micros(self.older_than);
        let review = self.review.as_ref().map(NameArg::as_str);
        let write_context = (!self.dry_run).then_some(&opened.write_context);
        let found = progress::clean(store, write_context, review, context.now, keep)?;
        Ok(ProgressCleanReport::new(found, self.dry_run))
    }
}

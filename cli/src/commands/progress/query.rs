//! Queries about progress.

use super::{ExecutionArgs, find_execution, named_execution};
use crate::args::value::NameArg;
use crate::context::Context;
use crate::error::{CommandError, EXIT_NO};
use crate::report::execution::{
    ExecutionJson, FailedItemJson, ProgressFailedReport, ProgressListReport, ProgressStagesReport,
};
use crate::report::progress::{
    ProgressDoneReport, ProgressHistoryReport, ProgressResumeReport, ProgressShowReport,
    ProgressValidateReport, SavedDocument,
};
use crate::text_arg;
use crate::workspace::{self, StoreAccess};
use forge_store::model::Value;
use forge_systems::progress::{
    self, PRESETS, PipelineExecution, ProgressDocument, ResumeDecision, RetryBackoff,
};
use std::path::PathBuf;

/// Arguments of `forge progress done`.
#[derive(Debug, clap::Args)]
pub struct ProgressDoneArgs {
    /// Item
    #[arg(value_name = "ID")]
    pub id: NameArg,

    /// Review
    #[arg(long, value_name = "REVIEW")]
    pub review: NameArg,

    /// Only this execution
    #[arg(long, value_name = "EXECUTION")]
    pub execution: Option<NameArg>,

    /// Stage
    #[arg(long, value_name = "STAGE")]
    pub stage: NameArg,
}

/// Arguments of `forge progress show`.
#[derive(Debug, clap::Args)]
pub struct ProgressShowArgs {
    /// Which execution.
    #[command(flatten)]
    pub of: ExecutionArgs,

    /// Show every saved document, newest first
    #[arg(long)]
    pub history: bool,
}

/// Arguments of `forge progress resume`.
#[derive(Debug, clap::Args)]
pub struct ProgressResumeArgs {
    /// Review
    #[arg(long, value_name = "REVIEW")]
    pub review: NameArg,

    /// Stage
    #[arg(long, value_name = "STAGE")]
    pub stage: NameArg,

    /// Execution to resume; the last saved one by default
    #[arg(long, value_name = "EXECUTION")]
    pub execution: Option<NameArg>,

    /// Resume although something forbids it
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `forge progress validate`.
#[derive(Debug, clap::Args)]
pub struct ProgressValidateArgs {
    /// Document to check instead of what was saved
    #[arg(value_name = "FILE", conflicts_with_all = ["review", "execution"])]
    pub file: Option<PathBuf>,

    /// Review
    #[arg(long, value_name = "REVIEW", required_unless_present = "file")]
    pub review: Option<NameArg>,

    /// Execution; the last saved one by default
    #[arg(long, value_name = "EXECUTION", requires = "review")]
    pub execution: Option<NameArg>,

    /// Stage
    #[arg(long, value_name = "STAGE")]
    pub stage: Option<NameArg>,
}

/// Arguments of `forge progress failed`.
#[derive(Debug, clap::Args)]
pub struct ProgressFailedArgs {
    /// Which execution.
    #[command(flatten)]
    pub of: ExecutionArgs,
}

/// Arguments of `forge progress list`.
#[derive(Debug, clap::Args)]
pub struct ProgressListArgs {
    /// Only the executions of this review
    #[arg(long, value_name = "REVIEW")]
    pub review: Option<NameArg>,
}

/// Arguments of `forge progress stages`.
#[derive(Debug, clap::Args)]
pub struct ProgressStagesArgs {
    /// Kind of pipeline
    #[arg(long, value_name = "PRESET", default_value = "slr")]
    pub preset: String,
}

pub(super) fn done(args: &ProgressDoneArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workspace::open_store(context, StoreAccess::Read)?;
    let (stage, id) = (args.stage.as_str(), args.id.as_str());
    let executions = match &args.execution {
        Some(name) => vec![named_execution(&store, &args.review, name)?],
        None => PipelineExecution::list(&store, Some(args.review.as_str()))?,
    };
    let mut report = ProgressDoneReport {
        review: args.review.as_str().to_owned(),
        stage: stage.to_owned(),
        id: id.to_owned(),
        done: false,
        execution: None,
        done_at: None,
    };
    for execution in executions {
        if execution.is_done(stage, id)? {
            report.done = true;
            report.done_at = Some(execution.done_at(stage, id)?);
            report.execution = Some(execution.execution().to_owned());
            break;
        }
    }
    if !report.done {
        context.exit_code = EXIT_NO;
    }
    context.out.emit(&report)
}

pub(super) fn show(args: &ProgressShowArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workspace::open_store(context, StoreAccess::Read)?;
    if !args.history {
        let (execution, document) = find_execution(&store, &args.of)?;
        return context.out.emit(&ProgressShowReport::new(&execution, &document));
    }
    let execution = match &args.of.execution {
        // An execution that was cleaned up has a history too.
        Some(name) => named_execution(&store, &args.of.review, name)?,
        None => find_execution(&store, &args.of)?.0,
    };
    let saved = execution.history()?.into_iter().map(|one| SavedDocument {
        sequence: one.sequence,
        time: one.time,
        document: one.document.map(ProgressDocument::into_value),
    });
    let saved = saved.collect();
    let (review, execution) = (execution.review().to_owned(), execution.execution().to_owned());
    context.out.emit(&ProgressHistoryReport { review, execution, saved })
}

pub(super) fn resume(args: &ProgressResumeArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workspace::open_store(context, StoreAccess::Read)?;
    let answer = progress::resume(
        &store,
        args.review.as_str(),
        args.stage.as_str(),
        args.execution.as_ref().map(NameArg::as_str),
        context.now,
        args.force,
    )?;
    if matches!(answer, ResumeDecision::Refused { .. }) {
        context.exit_code = EXIT_NO;
    }
    context.out.emit(&ProgressResumeReport::from_decision(answer))
}

pub(super) fn validate(
    args: &ProgressValidateArgs,
    context: &mut Context,
) -> Result<(), CommandError> {
    let (name, found) = match (&args.file, &args.review) {
        (Some(path), _) => {
            let text = text_arg::read_file(&context.cwd.join(path))?;
            let value: Result<Value, _> = serde_json::from_str(&text);
            let stage = args.stage.as_ref().map(NameArg::as_str);
            let document = match value {
                Ok(value) => {
                    ProgressDocument::read(value, stage).map_err(|shape| shape.to_string())
                }
                Err(error) => Err(format!("it is not a JSON document: {error}")),
            };
            let now = context.now;
            (path.display().to_string(), document.map(|one| progress::validate(&one, now)))
        }
        (None, review) => {
            let store = workspace::open_store(context, StoreAccess::Read)?;
            let review = review.clone().ok_or_else(|| CommandError::invalid("name a review"))?;
            let (execution, stage) = (args.execution.clone(), args.stage.clone());
            let (one, document) =
                find_execution(&store, &ExecutionArgs { review, execution, stage })?;
            (one.execution().to_owned(), Ok(progress::validate(&document, context.now)))
        }
    };
    let report = ProgressValidateReport::new(name, found);
    if !report.valid {
        context.exit_code = EXIT_NO;
    }
    context.out.emit(&report)
}

pub(super) fn failed(args: &ProgressFailedArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workspace::open_store(context, StoreAccess::Read)?;
    let (execution, document) = find_execution(&store, &args.of)?;
    let stage =
        args.of.stage.as_ref().map(NameArg::as_str).or(document.stage()).unwrap_or_default();
    let backoff = RetryBackoff::default();
    let items = execution.failed(stage)?.into_iter();
    context.out.emit(&ProgressFailedReport {
        review: execution.review().to_owned(),
        execution: execution.execution().to_owned(),
        stage: stage.to_owned(),
        items: items.map(|item| FailedItemJson::new(item, &backoff, context.now)).collect(),
    })
}

pub(super) fn list(args: &ProgressListArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workspace::open_store(context, StoreAccess::Read)?;
    let mut executions = Vec::new();
    for one in PipelineExecution::list(&store, args.review.as_ref().map(NameArg::as_str))? {
        if let Some(document) = one.document()? {
            executions.push(ExecutionJson::new(&one, &document));
        }
    }
    context.out.emit(&ProgressListReport { executions })
}

pub(super) fn stages(args: &ProgressStagesArgs, context: &mut Context) -> Result<(), CommandError> {
    let preset = PRESETS.iter().find(|preset| preset.name == args.preset).ok_or_else(|| {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        CommandError::not_found(format!("there is no preset '{}'", args.preset))
            .hinted(format!("there are {}", names.join(", ")))
    })?;
    context.out.emit(&ProgressStagesReport::new(preset))
}

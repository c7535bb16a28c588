//! Questions about progress.

use super::{Of, found, named};
use crate::args::value::Name;
use crate::context::Context;
use crate::error::{CommandError, EXIT_NO};
use crate::given;
use crate::report::execution::{ExecutionJson, Executions, Failed, FailedJson, Stages};
use crate::report::progress::{Done, History, Resume, SavedAt, Show, Validated};
use crate::workplace::{self, Access};
use forge_store::model::Value;
use forge_systems::progress::{
    self, PRESETS, PipelineExecution, ProgressDocument, ResumeDecision, RetryBackoff,
};
use std::path::PathBuf;

/// Arguments of `forge progress done`.
#[derive(Debug, clap::Args)]
pub struct DoneArgs {
    /// Name the item
    #[arg(value_name = "ID")]
    pub id: Name,

    /// Name the review
    #[arg(long, value_name = "REVIEW")]
    pub review: Name,

    /// Ask this execution alone
    #[arg(long, value_name = "EXECUTION")]
    pub execution: Option<Name>,

    /// Name the stage
    #[arg(long, value_name = "STAGE")]
    pub stage: Name,
}

/// Arguments of `forge progress show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Which execution.
    #[command(flatten)]
    pub of: Of,

    /// Show every document that was saved, the newest first
    #[arg(long)]
    pub history: bool,
}

/// Arguments of `forge progress resume`.
#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    /// Name the review
    #[arg(long, value_name = "REVIEW")]
    pub review: Name,

    /// Name the stage
    #[arg(long, value_name = "STAGE")]
    pub stage: Name,

    /// Go on from this execution instead of the one saved last
    #[arg(long, value_name = "EXECUTION")]
    pub execution: Option<Name>,

    /// Go on although something forbids it
    #[arg(long)]
    pub force: bool,
}

/// Arguments of `forge progress validate`.
#[derive(Debug, clap::Args)]
pub struct ValidateArgs {
    /// Check this document instead of what was saved
    #[arg(value_name = "FILE", conflicts_with_all = ["review", "execution"])]
    pub file: Option<PathBuf>,

    /// Name the review
    #[arg(long, value_name = "REVIEW", required_unless_present = "file")]
    pub review: Option<Name>,

    /// Name the execution instead of the one saved last
    #[arg(long, value_name = "EXECUTION", requires = "review")]
    pub execution: Option<Name>,

    /// Name the stage
    #[arg(long, value_name = "STAGE")]
    pub stage: Option<Name>,
}

/// Arguments of `forge progress failed`.
#[derive(Debug, clap::Args)]
pub struct FailedArgs {
    /// Which execution.
    #[command(flatten)]
    pub of: Of,
}

/// Arguments of `forge progress list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// List the executions of this review alone
    #[arg(long, value_name = "REVIEW")]
    pub review: Option<Name>,
}

/// Arguments of `forge progress stages`.
#[derive(Debug, clap::Args)]
pub struct StagesArgs {
    /// Name the kind of pipeline
    #[arg(long, value_name = "PRESET", default_value = "slr")]
    pub preset: String,
}

pub(super) fn done(args: &DoneArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Read)?;
    let (stage, id) = (args.stage.as_str(), args.id.as_str());
    let executions = match &args.execution {
        Some(name) => vec![named(&store, &args.review, name)?],
        None => PipelineExecution::list(&store, Some(args.review.as_str()))?,
    };
    let mut report = Done {
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

pub(super) fn show(args: &ShowArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Read)?;
    if !args.history {
        let (execution, document) = found(&store, &args.of)?;
        return context.out.emit(&Show::new(&execution, &document));
    }
    let execution = match &args.of.execution {
        // What was cleaned up has a history too.
        Some(name) => named(&store, &args.of.review, name)?,
        None => found(&store, &args.of)?.0,
    };
    let saved = execution.history()?.into_iter().map(|one| SavedAt {
        sequence: one.sequence,
        time: one.time,
        document: one.document.map(ProgressDocument::into_value),
    });
    let saved = saved.collect();
    let (review, execution) = (execution.review().to_owned(), execution.execution().to_owned());
    context.out.emit(&History { review, execution, saved })
}

pub(super) fn resume(args: &ResumeArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Read)?;
    let answer = progress::resume(
        &store,
        args.review.as_str(),
        args.stage.as_str(),
        args.execution.as_ref().map(Name::as_str),
        context.now,
        args.force,
    )?;
    if matches!(answer, ResumeDecision::Refused { .. }) {
        context.exit_code = EXIT_NO;
    }
    context.out.emit(&Resume::of(answer))
}

pub(super) fn validate(args: &ValidateArgs, context: &mut Context) -> Result<(), CommandError> {
    let (name, found) = match (&args.file, &args.review) {
        (Some(path), _) => {
            let text = given::file(&context.cwd.join(path))?;
            let value: Result<Value, _> = serde_json::from_str(&text);
            let stage = args.stage.as_ref().map(Name::as_str);
            let document = match value {
                Ok(value) => {
                    ProgressDocument::read(value, stage).map_err(|shape| shape.to_string())
                }
                Err(error) => Err(format!("it is no JSON document: {error}")),
            };
            let now = context.now;
            (path.display().to_string(), document.map(|one| progress::validate(&one, now)))
        }
        (None, review) => {
            let store = workplace::open(context, Access::Read)?;
            let review = review.clone().ok_or_else(|| CommandError::invalid("name a review"))?;
            let (execution, stage) = (args.execution.clone(), args.stage.clone());
            let (one, document) = found(&store, &Of { review, execution, stage })?;
            (one.execution().to_owned(), Ok(progress::validate(&document, context.now)))
        }
    };
    let report = Validated::of(name, found);
    if !report.valid {
        context.exit_code = EXIT_NO;
    }
    context.out.emit(&report)
}

pub(super) fn failed(args: &FailedArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Read)?;
    let (execution, document) = found(&store, &args.of)?;
    let stage = args.of.stage.as_ref().map(Name::as_str).or(document.stage()).unwrap_or_default();
    let backoff = RetryBackoff::default();
    let items = execution.failed(stage)?.into_iter();
    context.out.emit(&Failed {
        review: execution.review().to_owned(),
        execution: execution.execution().to_owned(),
        stage: stage.to_owned(),
        items: items.map(|item| FailedJson::of(item, &backoff, context.now)).collect(),
    })
}

pub(super) fn list(args: &ListArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Read)?;
    let mut executions = Vec::new();
    for one in PipelineExecution::list(&store, args.review.as_ref().map(Name::as_str))? {
        if let Some(document) = one.document()? {
            executions.push(ExecutionJson::new(&one, &document));
        }
    }
    context.out.emit(&Executions { executions })
}

pub(super) fn stages(args: &StagesArgs, context: &mut Context) -> Result<(), CommandError> {
    let preset = PRESETS.iter().find(|preset| preset.name == args.preset).ok_or_else(|| {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        CommandError::not_found(format!("there is no preset '{}'", args.preset))
            .hinted(format!("there are {}", names.join(", ")))
    })?;
    context.out.emit(&Stages::of(preset))
}

//! The subcommands of `forge progress` that only read.

use super::{ExecutionArgs, find_execution, named_execution};
use crate::args::value::NameArg;
use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::report::execution::{
    ExecutionJson, FailedItemJson, ProgressFailedReport, ProgressListReport, ProgressStagesReport,
};
use crate::report::progress::{
    ProgressDoneReport, ProgressHistoryReport, ProgressResumeReport, ProgressShowReport,
    ProgressValidateReport, SavedDocument,
};
use crate::text_arg;
use crate::verb::{EitherReport, OpenedStore, Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_store::model::{Timestamp, Value};
use forge_store::store::Store;
use forge_systems::progress::{
    self, PRESETS, PipelineExecution, ProgressDocument, ProgressFormatError, RetryBackoff,
};
use std::path::PathBuf;

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

#[derive(Debug, clap::Args)]
pub struct ProgressShowArgs {
    #[command(flatten)]
    pub of: ExecutionArgs,

    /// Show every saved document, newest first
    #[arg(long)]
    pub history: bool,
}

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

#[derive(Debug, clap::Args)]
pub struct ProgressFailedArgs {
    #[command(flatten)]
    pub of: ExecutionArgs,
}

#[derive(Debug, clap::Args)]
pub struct ProgressListArgs {
    /// Only the executions of this review
    #[arg(long, value_name = "REVIEW")]
    pub review: Option<NameArg>,
}

#[derive(Debug, clap::Args)]
pub struct ProgressStagesArgs {
    /// Kind of pipeline
    #[arg(long, value_name = "PRESET", default_value = "slr")]
    pub preset: String,
}

impl Verb for ProgressDoneArgs {
    const NAME: &'static str = "progress done";
    type Opened = OpenedStore;
    type Report = ProgressDoneReport;

    fn run(&self, opened: &OpenedStore, _: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let (stage, id) = (self.stage.as_str(), self.id.as_str());
        let executions = match &self.execution {
            Some(name) => vec![named_execution(store, &self.review, name)?],
            None => PipelineExecution::list(store, Some(self.review.as_str()))?,
        };
        let mut report = ProgressDoneReport {
            review: self.review.as_str().to_owned(),
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
        Ok(report)
    }
}

impl Verb for ProgressShowArgs {
    const NAME: &'static str = "progress show";
    type Opened = OpenedStore;
    type Report = EitherReport<ProgressShowReport, ProgressHistoryReport>;

    fn run(&self, opened: &OpenedStore, _: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        if !self.history {
            let (execution, document) = find_execution(store, &self.of)?;
            return Ok(EitherReport::First(ProgressShowReport::new(&execution, &document)));
        }
        let execution = match &self.of.execution {
            // An execution that `clean` removed still has a history.
            Some(name) => named_execution(store, &self.of.review, name)?,
            None => find_execution(store, &self.of)?.0,
        };
        let saved = execution.history()?.into_iter().map(|one| SavedDocument {
            sequence: one.sequence,
            time: one.time,
            document: one.document.map(ProgressDocument::into_value),
        });
        let saved = saved.collect();
        let (review, execution) = (execution.review().to_owned(), execution.execution().to_owned());
        Ok(EitherReport::Second(ProgressHistoryReport { review, execution, saved }))
    }
}

impl Verb for ProgressResumeArgs {
    const NAME: &'static str = "progress resume";
    type Opened = OpenedStore;
    type Report = ProgressResumeReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let answer = progress::resume(
            store,
            self.review.as_str(),
            self.stage.as_str(),
            self.execution.as_ref().map(NameArg::as_str),
            context.now,
            self.force,
        )?;
        Ok(ProgressResumeReport::from_decision(answer))
    }
}

impl Verb for ProgressValidateArgs {
    const NAME: &'static str = "progress validate";
    type Opened = ();
    type Report = ProgressValidateReport;

    fn run(&self, _: &(), context: &mut Context) -> VerbResult<Self> {
        let (name, found) = match (&self.file, &self.review) {
            (Some(path), _) => {
                let text = text_arg::read_file(&context.cwd.join(path))?;
                let value: Result<Value, _> = serde_json::from_str(&text);
                let stage = self.stage.as_ref().map(NameArg::as_str);
                let now = context.now;
                let document = match value {
                    Ok(value) => ProgressDocument::read(value, stage)
                        .and_then(|document| with_time(document, now))
                        .map_err(|shape| shape.to_string()),
                    Err(error) => Err(format!("it is not a JSON document: {error}")),
                };
                (path.display().to_string(), document.map(|one| progress::validate(&one, now)))
            }
            (None, review) => {
                let store = &workspace::open_store(context, StoreAccess::Read)?;
                let review =
                    review.clone().ok_or_else(|| CommandError::invalid("name a review"))?;
                let (execution, stage) = (self.execution.clone(), self.stage.clone());
                let (one, document) =
                    find_execution(store, &ExecutionArgs { review, execution, stage })?;
                (one.execution().to_owned(), Ok(progress::validate(&document, context.now)))
            }
        };
        Ok(ProgressValidateReport::new(name, found))
    }
}

/// Returns the document with the time that a save now would give it, unless it has one.
fn with_time(
    document: ProgressDocument,
    now: Timestamp,
) -> Result<ProgressDocument, ProgressFormatError> {
    if document.updated_at().is_some() {
        return Ok(document);
    }
    let mut fields = document.fields().clone();
    fields.insert("updated_at".to_owned(), now.to_string().into());
    ProgressDocument::read(Value::Map(fields), None)
}

impl Verb for ProgressFailedArgs {
    const NAME: &'static str = "progress failed";
    type Opened = OpenedStore;
    type Report = ProgressFailedReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let (execution, stage) = match find_execution(store, &self.of) {
            Ok((execution, document)) => {
                let named = self.of.stage.as_ref().map(NameArg::as_str);
                let stage = named.or(document.stage()).unwrap_or_default().to_owned();
                (execution, stage)
            }
            Err(error) if error.kind() == CommandErrorKind::NotFound => {
                find_reported(store, &self.of)?.ok_or(error)?
            }
            Err(error) => return Err(error),
        };
        let backoff = RetryBackoff::default();
        let items = execution.failed(&stage)?.into_iter();
        Ok(ProgressFailedReport {
            review: execution.review().to_owned(),
            execution: execution.execution().to_owned(),
            stage,
            items: items.map(|item| FailedItemJson::new(item, &backoff, context.now)).collect(),
        })
    }
}

/// Finds the execution that the arguments name, or else the last written one of the review, among
/// those with items that were reported one by one. Returns it with the stage of these items.
fn find_reported(
    store: &Store,
    of: &ExecutionArgs,
) -> Result<Option<(PipelineExecution, String)>, CommandError> {
    let executions = match &of.execution {
        Some(name) => vec![named_execution(store, &of.review, name)?],
        None => PipelineExecution::list(store, Some(of.review.as_str()))?,
    };
    for execution in executions {
        let mut stages = execution.item_stages()?;
        if let Some(stage) = &of.stage {
            stages.retain(|one| one == stage.as_str());
        }
        if stages.len() > 1 {
            let name = execution.execution();
            let problem =
                format!("items of the execution '{name}' were reported at several stages");
            return Err(CommandError::invalid(problem).hinted("name one with '--stage'"));
        }
        if let Some(stage) = stages.pop_first() {
            return Ok(Some((execution, stage)));
        }
    }
    Ok(None)
}

impl Verb for ProgressListArgs {
    const NAME: &'static str = "progress list";
    type Opened = OpenedStore;
    type Report = ProgressListReport;

    fn run(&self, opened: &OpenedStore, _: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let mut executions = Vec::new();
        for one in PipelineExecution::list(store, self.review.as_ref().map(NameArg::as_str))? {
            if let Some(document) = one.document()? {
                executions.push(ExecutionJson::new(&one, &document));
                continue;
            }
            let stages = one.item_stages()?;
            if !stages.is_empty() {
                executions.push(ExecutionJson::without_document(&one, stages));
            }
        }
        Ok(ProgressListReport { executions })
    }
}

impl Verb for ProgressStagesArgs {
    const NAME: &'static str = "progress stages";
    type Opened = ();
    type Report = ProgressStagesReport;

    fn run(&self, _: &(), _: &mut Context) -> VerbResult<Self> {
        let preset = PRESETS.iter().find(|preset| preset.name == self.preset).ok_or_else(|| {
            let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            CommandError::not_found(format!("there is no preset '{}'", self.preset))
                .hinted(format!("there are {}", names.join(", ")))
        })?;
        Ok(ProgressStagesReport::new(preset))
    }
}

//! `forge run`.

mod query;
mod template;

use crate::args::value::{self, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity_write::EntityWriteReport;
use crate::text_arg::TextArg;
use crate::verb::{OpenedStore, Verb, VerbResult, commands};
use crate::workspace::StoreAccess;
use forge_store::model::{Kind, SessionKind, Value};
use forge_store::store::Store;
use forge_systems::run::{NextStep, RunStatus, StepRecord, WorkflowRun, output_id};
use forge_systems::write_or_begin;

/// Record workflow runs of items through steps, and resume them.
#[derive(Debug, clap::Subcommand)]
pub enum RunCommand {
    /// Begin a run, or continue one that has ended
    Start(RunStartArgs),
    /// Record a finished step of an item with its output
    Record(RunRecordArgs),
    /// End a run
    Finish(RunFinishArgs),
    /// Record that a run failed
    Fail(RunFailArgs),
    /// Print the output of a step
    Output(query::RunOutputArgs),
    /// Print the outputs of several or all steps of an item
    Outputs(query::RunOutputsArgs),
    /// Check whether a step of an item is finished (exit code 0, else 1)
    Exists(query::RunStepArgs),
    /// Show the steps that an item took
    Path(query::RunItemArgs),
    /// Show the whole state of an item, or a run as a whole
    Show(query::RunShowArgs),
    /// Show every state of an item, or every output of a step, newest first
    History(query::RunHistoryArgs),
    /// List the items that are at a step
    AtStep(query::RunAtStepArgs),
    /// List runs that began long ago and have not ended
    Incomplete(query::RunIncompleteArgs),
    /// List runs, the last written one first
    List(query::RunListArgs),
    /// Clear outputs of an item so that their steps are done again; the history keeps them
    Forget(RunForgetArgs),
    /// Print the latest state of every item, with all outputs
    Resume(query::RunResumeArgs),
    /// Fill the placeholders of a template from what is recorded about an item, or refuse
    Render(template::RunRenderArgs),
    /// Find outputs and files with placeholders, talk about them or leaked instructions
    Audit(template::RunAuditArgs),
}

#[derive(Debug, clap::Args)]
pub struct RunStartArgs {
    /// Run
    #[arg(long, value_name = "RUN")]
    pub run: NameArg,

    /// Input of the run; a JSON list or JSON Lines of objects with an 'item' name its items
    #[arg(long, value_name = "TEXT|@FILE|-", allow_hyphen_values = true)]
    pub input: Option<TextArg>,
}

#[derive(Debug, clap::Args)]
pub struct RunRecordArgs {
    /// Run; created if it does not exist
    #[arg(long, value_name = "RUN")]
    pub run: NameArg,

    /// Item; created if it does not exist
    #[arg(long, value_name = "ITEM")]
    pub item: NameArg,

    /// Finished step
    #[arg(long, value_name = "STEP")]
    pub step: NameArg,

    /// Output: a text, '@FILE', or '-' for standard input
    #[arg(long, value_name = "TEXT|@FILE|-", allow_hyphen_values = true)]
    pub output: TextArg,

    /// Step that comes next
    #[arg(long, value_name = "STEP")]
    pub next: Option<NameArg>,

    /// Record that the item has reached its end
    #[arg(long, conflicts_with = "next")]
    pub terminal: bool,

    /// Position of the step in the workflow
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub order: Option<i64>,

    /// Name of the step
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Data that the item carries: JSON or a text
    #[arg(long, value_name = "TEXT|@FILE|-", allow_hyphen_values = true)]
    pub data: Option<TextArg>,
}

#[derive(Debug, clap::Args)]
pub struct RunFinishArgs {
    /// Run
    #[arg(long, value_name = "RUN")]
    pub run: NameArg,
}

#[derive(Debug, clap::Args)]
pub struct RunFailArgs {
    /// Run
    #[arg(long, value_name = "RUN")]
    pub run: NameArg,

    /// What went wrong
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        value_parser = value::non_empty_text
    )]
    pub error: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct RunForgetArgs {
    #[command(flatten)]
    pub item: query::RunItemArgs,

    /// Step; can be repeated
    #[arg(long, value_name = "STEP", required = true)]
    pub step: Vec<NameArg>,
}

commands!(RunCommand: Start, Record, Finish, Fail, Output, Outputs, Exists, Path, Show, History, AtStep, Incomplete, List, Forget, Resume, Render, Audit);

/// What to do if a run is not found.
const NAMES_RUNS: &str = "'forge run list' names the runs";

/// Finds the run with the given name, or else the run that last recorded the item.
fn find_run(
    store: &Store,
    run: Option<&NameArg>,
    item: &NameArg,
) -> Result<WorkflowRun, CommandError> {
    match run {
        Some(name) => named_run(store, name),
        None => WorkflowRun::of_item(store, item.as_str())
            .map_err(|error| CommandError::from(error).hinted(NAMES_RUNS)),
    }
}

fn named_run(store: &Store, name: &NameArg) -> Result<WorkflowRun, CommandError> {
    WorkflowRun::open(store, name.as_str())
        .map_err(|error| CommandError::from(error).hinted(NAMES_RUNS))
}

/// Parses a text as one JSON document, or else as one document per line. Other texts stay texts.
///
/// # Errors
/// Invalid if the text is not JSON on a line after one that names an item.
fn json_or_text(text: &str) -> Result<Value, CommandError> {
    let names_item = |value: &Value| value.field("item").is_some();
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        // The only line of JSON Lines is one document.
        return Ok(if names_item(&value) { Value::List(vec![value]) } else { value });
    }
    let mut values = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str::<Value>(line) {
            Ok(value) => values.push(value),
            Err(error) if values.iter().any(names_item) => {
                let what = format!("line {number} of the input is not JSON");
                return Err(CommandError::invalid(what)
                    .caused_by(error)
                    .hinted("correct it: a line before it names an item, so each must be JSON"));
            }
            Err(_) => return Ok(text.into()),
        }
    }
    Ok(if values.is_empty() { text.into() } else { Value::List(values) })
}

impl Verb for RunStartArgs {
    const NAME: &'static str = "run start";
    type Opened = OpenedStore;
    type Report = EntityWriteReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let input = self.input.as_ref().map(|input| input.read(context)).transpose()?;
        let input = input.as_deref().map(json_or_text).transpose()?;
        let OpenedStore { store, write_context, .. } = opened;
        let name = self.run.as_str();
        let done = write_or_begin(store, SessionKind::Run, name, |store| {
            WorkflowRun::open_or_create(store, write_context, name)?
                .start(write_context, input.as_ref())
        })?;
        Ok(EntityWriteReport::new("Started", done).about_claim(Kind::Run, name))
    }
}

impl Verb for RunRecordArgs {
    const NAME: &'static str = "run record";
    type Opened = OpenedStore;
    type Report = EntityWriteReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let record = StepRecord {
            item: self.item.as_str().to_owned(),
            step: self.step.as_str().to_owned(),
            output: self.output.read(context)?,
            next: match (&self.next, self.terminal) {
                (Some(next), _) => NextStep::Step(next.as_str().to_owned()),
                (None, true) => NextStep::Terminal,
                (None, false) => NextStep::Unknown,
            },
            order: self.order,
            name: self.name.clone(),
            data: self.data.as_ref().map(|data| data.read(context)).transpose()?.map(|text| {
                let value = serde_json::from_str(&text);
                value.unwrap_or(Value::Text(text))
            }),
            row: None,
        };
        let id = output_id(&record.item, &record.step)?;
        let OpenedStore { store, write_context, .. } = opened;
        let name = self.run.as_str();
        let done = write_or_begin(store, SessionKind::Run, name, |store| {
            WorkflowRun::open_or_create(store, write_context, name)?.record(write_context, &record)
        })?;
        Ok(EntityWriteReport::new("Recorded", done).about_claim(Kind::Output, id))
    }
}

impl Verb for RunFinishArgs {
    const NAME: &'static str = "run finish";
    type Opened = OpenedStore;
    type Report = EntityWriteReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, _: &mut Context) -> VerbResult<Self> {
        let run = named_run(&opened.store, &self.run)?;
        let done = run.end(&opened.write_context, RunStatus::Finished, None)?;
        Ok(EntityWriteReport::new("Finished", done).about_claim(Kind::Run, run.key()))
    }
}

impl Verb for RunFailArgs {
    const NAME: &'static str = "run fail";
    type Opened = OpenedStore;
    type Report = EntityWriteReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, _: &mut Context) -> VerbResult<Self> {
        let run = named_run(&opened.store, &self.run)?;
        let done = run.end(&opened.write_context, RunStatus::Failed, self.error.as_deref())?;
        Ok(EntityWriteReport::new("Recorded the failure of", done)
            .about_claim(Kind::Run, run.key()))
    }
}

impl Verb for RunForgetArgs {
    const NAME: &'static str = "run forget";
    type Opened = OpenedStore;
    type Report = EntityWriteReport;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, _: &mut Context) -> VerbResult<Self> {
        let OpenedStore { store, write_context, .. } = opened;
        let query::RunItemArgs { run, item } = &self.item;
        let (run, item) = (find_run(store, run.as_ref(), item)?, item.as_str());
        let steps: Vec<String> = self.step.iter().map(|step| step.as_str().to_owned()).collect();
        let done = run.forget(write_context, item, &steps)?;
        Ok(EntityWriteReport::new("Cleared outputs of", done).about_claim(Kind::Item, item))
    }
}

//! `forge run`.

mod look;
mod text;

use crate::args::value::{self, Name};
use crate::context::Context;
use crate::error::CommandError;
use crate::given::Given;
use crate::report::written::Written;
use crate::workplace::{self, Access};
use forge_store::model::{Kind, Value};
use forge_store::store::{Store, WriteContext, WriteReport};
use forge_systems::run::{NextStep, RunStatus, StepRecord, WorkflowRun, output_id};

/// Record workflow runs of items through steps, and go on with them.
#[derive(Debug, clap::Subcommand)]
pub enum RunCommand {
    /// Begin a run, or go on with one that was ended
    Start(StartArgs),
    /// Record a finished step of an item with its output
    Record(RecordArgs),
    /// End a run
    Finish(EndArgs),
    /// Give a run up
    Fail(FailArgs),
    /// Print the output of a step
    Output(look::OutputArgs),
    /// Print the outputs of several or all steps of an item
    Outputs(look::OutputsArgs),
    /// Say whether a step of an item is finished: exit code 0, else 1
    Exists(look::StepArgs),
    /// Show the way an item took through the steps
    Path(look::ItemArgs),
    /// Show the whole state of an item, or a run as a whole
    Show(look::ShowArgs),
    /// Show every state of an item, or every output of a step, the newest first
    History(look::HistoryArgs),
    /// List the items that are at a step
    AtStep(look::AtStepArgs),
    /// List runs that began long ago and have not ended
    Incomplete(look::IncompleteArgs),
    /// List runs, the one last written to first
    List,
    /// Clear outputs of an item so that their steps are done again; the history keeps them
    Forget(ForgetArgs),
    /// Print the latest state of every item with all outputs, to go on from
    Resume(look::ResumeArgs),
    /// Fill the placeholders of a template from what is recorded of an item, or refuse
    Render(text::RenderArgs),
    /// Find outputs and files with placeholders, talk about them or leaked instructions
    Audit(text::AuditArgs),
}

/// Arguments of `forge run start`.
#[derive(Debug, clap::Args)]
pub struct StartArgs {
    /// Name the run
    #[arg(long, value_name = "RUN")]
    pub run: Name,

    /// Keep this with the run; a JSON list or JSON Lines of objects with an 'item' names its items
    #[arg(long, value_name = "TEXT|@FILE|-")]
    pub input: Option<Given>,
}

/// Arguments of `forge run record`.
#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// Name the run; it is made where there is none
    #[arg(long, value_name = "RUN")]
    pub run: Name,

    /// Name the item; it is made where there is none
    #[arg(long, value_name = "ITEM")]
    pub item: Name,

    /// Name the step that is finished
    #[arg(long, value_name = "STEP")]
    pub step: Name,

    /// Say what it made: a text, '@FILE', or '-' for standard input
    #[arg(long, value_name = "TEXT|@FILE|-", allow_hyphen_values = true)]
    pub output: Given,

    /// Name the step that comes next
    #[arg(long, value_name = "STEP")]
    pub next: Option<Name>,

    /// Say that the item has come to its end
    #[arg(long, conflicts_with = "next")]
    pub terminal: bool,

    /// Say the place of the step in the workflow
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub order: Option<i64>,

    /// Say what people call the step
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Say what the item carries along: JSON or a text
    #[arg(long, value_name = "TEXT|@FILE|-")]
    pub data: Option<Given>,
}

/// Arguments of `forge run finish`.
#[derive(Debug, clap::Args)]
pub struct EndArgs {
    /// Name the run
    #[arg(long, value_name = "RUN")]
    pub run: Name,
}

/// Arguments of `forge run fail`.
#[derive(Debug, clap::Args)]
pub struct FailArgs {
    /// Name the run
    #[arg(long, value_name = "RUN")]
    pub run: Name,

    /// Say what went wrong
    #[arg(long, value_name = "TEXT", value_parser = value::said)]
    pub error: Option<String>,
}

/// Arguments of `forge run forget`.
#[derive(Debug, clap::Args)]
pub struct ForgetArgs {
    /// Name the run instead of the one that last recorded the item
    #[arg(long, value_name = "RUN")]
    pub run: Option<Name>,

    /// Name the item
    #[arg(long, value_name = "ITEM")]
    pub item: Name,

    /// Name a step, as often as there are
    #[arg(long, value_name = "STEP", required = true)]
    pub step: Vec<Name>,
}

/// Does it.
pub fn run(command: &RunCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        RunCommand::Start(args) => start(args, context),
        RunCommand::Record(args) => record(args, context),
        RunCommand::Finish(args) => end(&args.run, RunStatus::Finished, None, context),
        RunCommand::Fail(args) => end(&args.run, RunStatus::Failed, args.error.as_deref(), context),
        RunCommand::Output(args) => look::output(args, context),
        RunCommand::Outputs(args) => look::outputs(args, context),
        RunCommand::Exists(args) => look::exists(args, context),
        RunCommand::Path(args) => look::path(args, context),
        RunCommand::Show(args) => look::show(args, context),
        RunCommand::History(args) => look::history(args, context),
        RunCommand::AtStep(args) => look::at_step(args, context),
        RunCommand::Incomplete(args) => look::incomplete(args, context),
        RunCommand::List => look::list(context),
        RunCommand::Forget(args) => forget(args, context),
        RunCommand::Resume(args) => look::resume(args, context),
        RunCommand::Render(args) => text::render(args, context),
        RunCommand::Audit(args) => text::audit(args, context),
    }
}

/// The run that was named, or the one that last recorded the item.
fn found(store: &Store, run: Option<&Name>, item: &Name) -> Result<WorkflowRun, CommandError> {
    match run {
        Some(name) => named(store, name),
        None => Ok(WorkflowRun::of_item(store, item.as_str())?),
    }
}

fn named(store: &Store, name: &Name) -> Result<WorkflowRun, CommandError> {
    WorkflowRun::open(store, name.as_str())
        .map_err(|error| CommandError::from(error).hinted("'forge run list' names the runs"))
}

/// What was given, as JSON: a document, else lines of them, else a text.
fn json_or_text(text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let values: Result<Vec<Value>, _> = lines.map(serde_json::from_str).collect();
    match values {
        Ok(values) if !values.is_empty() => Value::List(values),
        _ => text.into(),
    }
}

fn tell(
    context: &mut Context,
    schema: &'static str,
    done: &str,
    (kind, id): (Kind, String),
    committed: WriteReport,
) -> Result<(), CommandError> {
    context.out.emit(&Written::new(schema, done, committed).of(kind, id))
}

fn begin(context: &Context, verb: &str) -> Result<(Store, WriteContext), CommandError> {
    Ok((workplace::open(context, Access::Write)?, workplace::act(context, verb)))
}

fn start(args: &StartArgs, context: &mut Context) -> Result<(), CommandError> {
    let input = args.input.as_ref().map(|input| input.read(context)).transpose()?;
    let input = input.as_deref().map(json_or_text);
    // Before anything is made.
    input.as_ref().map(WorkflowRun::check_input).transpose()?;
    let (store, act) = begin(context, "run start")?;
    let run = WorkflowRun::open_or_create(&store, &act, args.run.as_str())?;
    let done = run.start(&act, input.as_ref())?;
    let subject = (Kind::Run, run.key().to_owned());
    tell(context, "forge.run.start/1", "Started", subject, done)?;
    workplace::finish(&store);
    Ok(())
}

fn record(args: &RecordArgs, context: &mut Context) -> Result<(), CommandError> {
    let record = StepRecord {
        item: args.item.as_str().to_owned(),
        step: args.step.as_str().to_owned(),
        output: args.output.read(context)?,
        next: match (&args.next, args.terminal) {
            (Some(next), _) => NextStep::Step(next.as_str().to_owned()),
            (None, true) => NextStep::Terminal,
            (None, false) => NextStep::Unknown,
        },
        order: args.order,
        name: args.name.clone(),
        data: args.data.as_ref().map(|data| data.read(context)).transpose()?.map(|text| {
            let value = serde_json::from_str(&text);
            value.unwrap_or(Value::Text(text))
        }),
    };
    // Before anything is made.
    let id = output_id(&record.item, &record.step)?;
    let (store, act) = begin(context, "run record")?;
    let run = WorkflowRun::open_or_create(&store, &act, args.run.as_str())?;
    let done = run.record(&act, &record)?;
    tell(context, "forge.run.record/1", "Recorded", (Kind::Output, id), done)?;
    workplace::finish(&store);
    Ok(())
}

fn end(
    name: &Name,
    status: RunStatus,
    error: Option<&str>,
    context: &mut Context,
) -> Result<(), CommandError> {
    let (verb, schema, done) = match status {
        RunStatus::Failed => ("run fail", "forge.run.fail/1", "Gave up"),
        _ => ("run finish", "forge.run.finish/1", "Finished"),
    };
    let (store, act) = begin(context, verb)?;
    let run = named(&store, name)?;
    let committed = run.end(&act, status, error)?;
    tell(context, schema, done, (Kind::Run, run.key().to_owned()), committed)?;
    workplace::finish(&store);
    Ok(())
}

fn forget(args: &ForgetArgs, context: &mut Context) -> Result<(), CommandError> {
    let (store, act) = begin(context, "run forget")?;
    let run = found(&store, args.run.as_ref(), &args.item)?;
    let steps: Vec<String> = args.step.iter().map(|step| step.as_str().to_owned()).collect();
    let done = run.forget(&act, args.item.as_str(), &steps)?;
    let subject = (Kind::Item, args.item.as_str().to_owned());
    tell(context, "forge.run.forget/1", "Cleared outputs of", subject, done)?;
    workplace::finish(&store);
    Ok(())
}

//! `forge run`.

mod query;
mod template;

use crate::args::value::{self, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity_write::EntityWriteReport;
use crate::text_arg::TextArg;
use crate::workspace::{self, StoreAccess};
use forge_store::model::{Kind, Value};
use forge_store::store::{Store, WriteContext, WriteReport};
use forge_systems::run::{NextStep, RunStatus, StepRecord, WorkflowRun, output_id};

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
    List,
    /// Clear outputs of an item so that their steps are done again; the history keeps them
    Forget(RunForgetArgs),
    /// Print the latest state of every item, with all outputs
    Resume(query::RunResumeArgs),
    /// Fill the placeholders of a template from what is recorded about an item, or refuse
    Render(template::RunRenderArgs),
    /// Find outputs and files with placeholders, talk about them or leaked instructions
    Audit(template::RunAuditArgs),
}

/// Arguments of `forge run start`.
#[derive(Debug, clap::Args)]
pub struct RunStartArgs {
    /// Run
    #[arg(long, value_name = "RUN")]
    pub run: NameArg,

    /// Input of the run; a JSON list or JSON Lines of objects with an 'item' name its items
    #[arg(long, value_name = "TEXT|@FILE|-")]
    pub input: Option<TextArg>,
}

/// Arguments of `forge run record`.
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
    #[arg(long, value_name = "TEXT|@FILE|-")]
    pub data: Option<TextArg>,
}

/// Arguments of `forge run finish`.
#[derive(Debug, clap::Args)]
pub struct RunFinishArgs {
    /// Run
    #[arg(long, value_name = "RUN")]
    pub run: NameArg,
}

/// Arguments of `forge run fail`.
#[derive(Debug, clap::Args)]
pub struct RunFailArgs {
    /// Run
    #[arg(long, value_name = "RUN")]
    pub run: NameArg,

    /// What went wrong
    #[arg(long, value_name = "TEXT", value_parser = value::non_empty_text)]
    pub error: Option<String>,
}

/// Arguments of `forge run forget`.
#[derive(Debug, clap::Args)]
pub struct RunForgetArgs {
    /// Run; by default the one that last recorded the item
    #[arg(long, value_name = "RUN")]
    pub run: Option<NameArg>,

    /// Item
    #[arg(long, value_name = "ITEM")]
    pub item: NameArg,

    /// Step; can be repeated
    #[arg(long, value_name = "STEP", required = true)]
    pub step: Vec<NameArg>,
}

/// Runs `forge run`.
pub fn run(command: &RunCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        RunCommand::Start(args) => start(args, context),
        RunCommand::Record(args) => record(args, context),
        RunCommand::Finish(args) => end_run(&args.run, RunStatus::Finished, None, context),
        RunCommand::Fail(args) => {
            end_run(&args.run, RunStatus::Failed, args.error.as_deref(), context)
        }
        RunCommand::Output(args) => query::output(args, context),
        RunCommand::Outputs(args) => query::outputs(args, context),
        RunCommand::Exists(args) => query::exists(args, context),
        RunCommand::Path(args) => query::path(args, context),
        RunCommand::Show(args) => query::show(args, context),
        RunCommand::History(args) => query::history(args, context),
        RunCommand::AtStep(args) => query::at_step(args, context),
        RunCommand::Incomplete(args) => query::incomplete(args, context),
        RunCommand::List => query::list(context),
        RunCommand::Forget(args) => forget(args, context),
        RunCommand::Resume(args) => query::resume(args, context),
        RunCommand::Render(args) => template::render(args, context),
        RunCommand::Audit(args) => template::audit(args, context),
    }
}

/// The run that was given, or else the one that recorded the item last.
fn find_run(
    store: &Store,
    run: Option<&NameArg>,
    item: &NameArg,
) -> Result<WorkflowRun, CommandError> {
    match run {
        Some(name) => named_run(store, name),
        None => Ok(WorkflowRun::of_item(store, item.as_str())?),
    }
}

fn named_run(store: &Store, name: &NameArg) -> Result<WorkflowRun, CommandError> {
    WorkflowRun::open(store, name.as_str())
        .map_err(|error| CommandError::from(error).hinted("'forge run list' names the runs"))
}

/// Parses the input as JSON: one document, or else one per line, or else a text.
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

fn emit_write(
    context: &mut Context,
    schema: &'static str,
    done: &str,
    (kind, id): (Kind, String),
    committed: WriteReport,
) -> Result<(), CommandError> {
    context.out.emit(&EntityWriteReport::new(schema, done, committed).about_claim(kind, id))
}

fn begin_write(context: &Context, verb: &str) -> Result<(Store, WriteContext), CommandError> {
    Ok((
        workspace::open_store(context, StoreAccess::Write)?,
        workspace::write_context(context, verb),
    ))
}

fn start(args: &RunStartArgs, context: &mut Context) -> Result<(), CommandError> {
    let input = args.input.as_ref().map(|input| input.read(context)).transpose()?;
    let input = input.as_deref().map(json_or_text);
    // Checked before anything is created.
    input.as_ref().map(WorkflowRun::check_input).transpose()?;
    let (store, act) = begin_write(context, "run start")?;
    let run = WorkflowRun::open_or_create(&store, &act, args.run.as_str())?;
    let done = run.start(&act, input.as_ref())?;
    let subject = (Kind::Run, run.key().to_owned());
    emit_write(context, "forge.run.start/1", "Started", subject, done)?;
    workspace::catch_up_index(&store);
    Ok(())
}

fn record(args: &RunRecordArgs, context: &mut Context) -> Result<(), CommandError> {
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
    // Checked before anything is created.
    let id = output_id(&record.item, &record.step)?;
    let (store, act) = begin_write(context, "run record")?;
    let run = WorkflowRun::open_or_create(&store, &act, args.run.as_str())?;
    let done = run.record(&act, &record)?;
    emit_write(context, "forge.run.record/1", "Recorded", (Kind::Output, id), done)?;
    workspace::catch_up_index(&store);
    Ok(())
}

fn end_run(
    name: &NameArg,
    status: RunStatus,
    error: Option<&str>,
    context: &mut Context,
) -> Result<(), CommandError> {
    let (verb, schema, done) = match status {
        RunStatus::Failed => ("run fail", "forge.run.fail/1", "Gave up"),
        _ => ("run finish", "forge.run.finish/1", "Finished"),
    };
    let (store, act) = begin_write(context, verb)?;
    let run = named_run(&store, name)?;
    let committed = run.end(&act, status, error)?;
    emit_write(context, schema, done, (Kind::Run, run.key().to_owned()), committed)?;
    workspace::catch_up_index(&store);
    Ok(())
}

fn forget(args: &RunForgetArgs, context: &mut Context) -> Result<(), CommandError> {
    let (store, act) = begin_write(context, "run forget")?;
    let run = find_run(&store, args.run.as_ref(), &args.item)?;
    let steps: Vec<String> = args.step.iter().map(|step| step.as_str().to_owned()).collect();
    let done = run.forget(&act, args.item.as_str(), &steps)?;
    let subject = (Kind::Item, args.item.as_str().to_owned());
    emit_write(context, "forge.run.forget/1", "Cleared outputs of", subject, done)?;
    workspace::catch_up_index(&store);
    Ok(())
}

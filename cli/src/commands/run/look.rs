//! Questions about runs.

use super::{found, named};
use crate::args::value::{self, Moment, Name};
use crate::context::Context;
use crate::error::{CommandError, EXIT_NO};
use crate::report::run::{
    AtStep, Exists, History, ItemJson, OneOutput, OutputJson, Outputs, Path, Resumed, RunJson,
    Runs, Show, ShowRun, Step,
};
use crate::workplace::{self, Access};
use forge_store::store::ResolvedMoment;
use forge_systems::run::WorkflowRun;
use std::collections::BTreeMap;
use std::time::Duration;

/// An item of a run.
#[derive(Debug, clap::Args)]
pub struct ItemArgs {
    /// Name the run instead of the one that last recorded the item
    #[arg(long, value_name = "RUN")]
    pub run: Option<Name>,

    /// Name the item
    #[arg(long, value_name = "ITEM")]
    pub item: Name,
}

/// A step of an item.
#[derive(Debug, clap::Args)]
pub struct StepArgs {
    /// Which item.
    #[command(flatten)]
    pub item: ItemArgs,

    /// Name the step
    #[arg(long, value_name = "STEP")]
    pub step: Name,
}

/// Arguments of `forge run output`.
#[derive(Debug, clap::Args)]
pub struct OutputArgs {
    /// Which step of which item.
    #[command(flatten)]
    pub step: StepArgs,

    /// Print nothing where there is none, instead of an error
    #[arg(long)]
    pub allow_missing: bool,

    /// Print it as it stood at this moment
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,
}

/// Arguments of `forge run outputs`.
#[derive(Debug, clap::Args)]
pub struct OutputsArgs {
    /// Which item.
    #[command(flatten)]
    pub item: ItemArgs,

    /// Name a step, as often as there are; all that are finished, if none is named
    #[arg(long, value_name = "STEP")]
    pub step: Vec<Name>,
}

/// Arguments of `forge run show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Name the run instead of the one that last recorded the item
    #[arg(long, value_name = "RUN", required_unless_present = "item")]
    pub run: Option<Name>,

    /// Name the item; without one the run as a whole is shown
    #[arg(long, value_name = "ITEM")]
    pub item: Option<Name>,

    /// Show it as it stood at this moment
    #[arg(long, value_name = "T", requires = "item")]
    pub at: Option<Moment>,
}

/// Arguments of `forge run history`.
#[derive(Debug, clap::Args)]
pub struct HistoryArgs {
    /// Which item.
    #[command(flatten)]
    pub item: ItemArgs,

    /// Show the outputs of this step, those that were replaced or cleared too
    #[arg(long, value_name = "STEP")]
    pub step: Option<Name>,
}

/// Arguments of `forge run at-step`.
#[derive(Debug, clap::Args)]
pub struct AtStepArgs {
    /// Name the run
    #[arg(long, value_name = "RUN")]
    pub run: Name,

    /// Name the step that is next, or was last where no next one is known
    #[arg(long, value_name = "STEP", required_unless_present = "order")]
    pub step: Option<Name>,

    /// Say the place in the workflow of the step recorded last
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with = "step")]
    pub order: Option<i64>,
}

/// Arguments of `forge run incomplete`.
#[derive(Debug, clap::Args)]
pub struct IncompleteArgs {
    /// List those that began longer ago than this
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = value::duration)]
    pub older_than: Duration,
}

/// Arguments of `forge run resume`.
#[derive(Debug, clap::Args)]
pub struct ResumeArgs {
    /// Name the run
    #[arg(long, value_name = "RUN")]
    pub run: Name,

    /// Leave out items that have come to their end
    #[arg(long)]
    pub active: bool,

    /// Go on from this moment instead of the latest
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,
}

/// The point of a run that was named, or now.
fn point(
    context: &Context,
    run: &WorkflowRun,
    at: Option<&Moment>,
) -> Result<ResolvedMoment, CommandError> {
    workplace::point_or_head(context, run.session(), at)
}

/// The run with this item.
fn of_item(context: &Context, args: &ItemArgs) -> Result<WorkflowRun, CommandError> {
    found(&workplace::open(context, Access::Read)?, args.run.as_ref(), &args.item)
}

pub(super) fn output(args: &OutputArgs, context: &mut Context) -> Result<(), CommandError> {
    let StepArgs { item, step } = &args.step;
    let one = || -> Result<_, CommandError> {
        let run = of_item(context, item)?;
        let point = point(context, &run, args.at.as_ref())?;
        let output = run.output_at(&point, item.item.as_str(), step.as_str())?;
        Ok((run.key().to_owned(), output))
    };
    let (run, output) = match one() {
        Ok((run, output)) => (Some(run), Some(output)),
        Err(error) if args.allow_missing && error.kind() == crate::error::ErrorKind::NotFound => {
            (None, None)
        }
        Err(error) => {
            return Err(error.hinted(format!(
                "'forge run path --item {}' shows the steps that are finished; '--allow-missing' takes none",
                item.item.as_str()
            )));
        }
    };
    if context.out.is_json() {
        let output = output.map(OutputJson::from);
        let (item, step) = (item.item.as_str().to_owned(), step.as_str().to_owned());
        return context.out.emit(&OneOutput { run, item, step, output });
    }
    context.out.text(output.as_ref().map_or("", |output| &output.content))
}

pub(super) fn outputs(args: &OutputsArgs, context: &mut Context) -> Result<(), CommandError> {
    let run = of_item(context, &args.item)?;
    let item = args.item.item.as_str();
    let steps: Vec<&str> = args.step.iter().map(Name::as_str).collect();
    let (found, missing) = if steps.is_empty() {
        (run.load(item)?.outputs, Vec::new())
    } else {
        let all = run.outputs(item, &steps)?;
        let gone = steps.iter().zip(&all).filter(|(_, output)| output.is_none());
        let gone = gone.map(|(step, _)| (*step).to_owned()).collect();
        (all.into_iter().flatten().collect(), gone)
    };
    let outputs: BTreeMap<String, String> =
        found.into_iter().map(|output| (output.step, output.content)).collect();
    let (run, item) = (run.key().to_owned(), item.to_owned());
    context.out.emit(&Outputs { run, item, outputs, missing })
}

pub(super) fn exists(args: &StepArgs, context: &mut Context) -> Result<(), CommandError> {
    let (item, step) = (args.item.item.as_str(), args.step.as_str());
    let store = workplace::open(context, Access::Read)?;
    let run = match &args.item.run {
        Some(name) => Some(named(&store, name)?),
        None => WorkflowRun::find_item(&store, item)?,
    };
    let exists = run.as_ref().map(|run| run.exists(item, step)).transpose()?.unwrap_or(false);
    let run = run.map(|run| run.key().to_owned());
    if !exists {
        context.exit_code = EXIT_NO;
    }
    let (item, step) = (item.to_owned(), step.to_owned());
    context.out.emit(&Exists { run, item, step, exists })
}

pub(super) fn path(args: &ItemArgs, context: &mut Context) -> Result<(), CommandError> {
    let run = of_item(context, args)?;
    let item = run.item(args.item.as_str())?;
    context.out.emit(&Path {
        run: run.key().to_owned(),
        item: item.item.clone(),
        at: item.current_step().map(str::to_owned),
        path: item.path,
    })
}

pub(super) fn show(args: &ShowArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Read)?;
    let Some(item) = &args.item else {
        let Some(name) = &args.run else { return Ok(()) };
        let run = named(&store, name)?;
        let items = run.items_at(&run.session().head()?)?;
        let mut steps: BTreeMap<String, usize> = BTreeMap::new();
        for item in items.iter().filter(|item| item.is_active()) {
            *steps.entry(item.current_step().unwrap_or("").to_owned()).or_default() += 1;
        }
        let summary = run.summary()?;
        let steps = steps.into_iter().map(|(step, items)| Step { step, items }).collect();
        return context.out.emit(&ShowRun {
            input: summary.state.input.clone(),
            run: summary.into(),
            steps,
        });
    };
    let run = found(&store, args.run.as_ref(), item)?;
    let point = point(context, &run, args.at.as_ref())?;
    let loaded = run.load_at(&point, item.as_str())?;
    let outputs = loaded.outputs.into_iter().map(OutputJson::from).collect();
    let item = ItemJson::from(loaded.item);
    context.out.emit(&Show { run: run.key().to_owned(), item, outputs })
}

pub(super) fn history(args: &HistoryArgs, context: &mut Context) -> Result<(), CommandError> {
    let run = of_item(context, &args.item)?;
    let item = args.item.item.as_str();
    let mut report = History {
        run: run.key().to_owned(),
        item: item.to_owned(),
        step: args.step.as_ref().map(|step| step.as_str().to_owned()),
        states: None,
        outputs: None,
    };
    match &args.step {
        None => report.states = Some(run.history(item)?.into_iter().map(Into::into).collect()),
        Some(step) => {
            let outputs = run.output_history(item, step.as_str())?;
            report.outputs = Some(outputs.into_iter().map(Into::into).collect());
        }
    }
    context.out.emit(&report)
}

pub(super) fn at_step(args: &AtStepArgs, context: &mut Context) -> Result<(), CommandError> {
    let run = named(&workplace::open(context, Access::Read)?, &args.run)?;
    let items = match &args.step {
        Some(step) => run.at_step(step.as_str())?,
        None => run.at_order(args.order.expect("clap asks for one of the two"))?,
    };
    context.out.emit(&AtStep {
        run: run.key().to_owned(),
        step: args.step.as_ref().map(|step| step.as_str().to_owned()),
        order: args.order,
        items: items.into_iter().map(ItemJson::from).collect(),
    })
}

pub(super) fn incomplete(args: &IncompleteArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Read)?;
    let runs = WorkflowRun::incomplete(&store, context.now, value::micros(args.older_than))?;
    let runs = runs.into_iter().map(RunJson::from).collect();
    context.out.emit(&Runs { schema: "forge.run.incomplete/1", runs })
}

pub(super) fn list(context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Read)?;
    let runs = WorkflowRun::list(&store)?.into_iter().map(RunJson::from).collect();
    context.out.emit(&Runs { schema: "forge.run.list/1", runs })
}

pub(super) fn resume(args: &ResumeArgs, context: &mut Context) -> Result<(), CommandError> {
    let run = named(&workplace::open(context, Access::Read)?, &args.run)?;
    let resume = run.resume_at(&point(context, &run, args.at.as_ref())?)?;
    let report = Resumed::of(run.key(), resume, args.active);
    context.out.emit(&report)
}

//! The subcommands of `forge run` that only read.

use super::{find_run, named_run};
use crate::args::value::{self, MomentArg, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::run::{
    ItemJson, RunAtStepReport, RunExistsReport, RunHistoryReport, RunItemReport, RunJson,
    RunListReport, RunOutputReport, RunOutputsReport, RunPathReport, RunResumeReport,
    RunShowReport, StepItemCount,
};
use crate::verb::{EitherReport, OpenedStore, Verb, VerbResult};
use crate::workspace;
use forge_systems::run::WorkflowRun;
use std::collections::BTreeMap;
use std::time::Duration;

/// An item of a run.
#[derive(Debug, clap::Args)]
pub struct RunItemArgs {
    /// Run; by default the one that last recorded the item
    #[arg(long, value_name = "RUN")]
    pub run: Option<NameArg>,

    /// Item
    #[arg(long, value_name = "ITEM")]
    pub item: NameArg,
}

/// A step of an item.
#[derive(Debug, clap::Args)]
pub struct RunStepArgs {
    #[command(flatten)]
    pub item: RunItemArgs,

    /// Step
    #[arg(long, value_name = "STEP")]
    pub step: NameArg,
}

#[derive(Debug, clap::Args)]
pub struct RunOutputArgs {
    #[command(flatten)]
    pub step: RunStepArgs,

    /// Print nothing instead of an error if there is none
    #[arg(long)]
    pub allow_missing: bool,

    /// Moment at which to print it
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,
}

#[derive(Debug, clap::Args)]
pub struct RunOutputsArgs {
    #[command(flatten)]
    pub item: RunItemArgs,

    /// Step; can be repeated; all finished ones by default
    #[arg(long, value_name = "STEP")]
    pub step: Vec<NameArg>,
}

#[derive(Debug, clap::Args)]
pub struct RunShowArgs {
    /// Run; by default the one that last recorded the item
    #[arg(long, value_name = "RUN", required_unless_present = "item")]
    pub run: Option<NameArg>,

    /// Item; the run as a whole by default
    #[arg(long, value_name = "ITEM")]
    pub item: Option<NameArg>,

    /// Moment at which to show it
    #[arg(long, value_name = "T", requires = "item")]
    pub at: Option<MomentArg>,
}

#[derive(Debug, clap::Args)]
pub struct RunHistoryArgs {
    #[command(flatten)]
    pub item: RunItemArgs,

    /// Step whose outputs to show, including replaced and cleared ones
    #[arg(long, value_name = "STEP")]
    pub step: Option<NameArg>,
}

#[derive(Debug, clap::Args)]
pub struct RunAtStepArgs {
    /// Run
    #[arg(long, value_name = "RUN")]
    pub run: NameArg,

    /// Step that is next, or the last one if no next one is known
    #[arg(long, value_name = "STEP", required_unless_present = "order")]
    pub step: Option<NameArg>,

    /// Position in the workflow of the last recorded step
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with = "step")]
    pub order: Option<i64>,
}

#[derive(Debug, clap::Args)]
pub struct RunIncompleteArgs {
    /// Least age of the runs
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = value::parse_duration)]
    pub older_than: Duration,
}

#[derive(Debug, clap::Args)]
pub struct RunResumeArgs {
    /// Run
    #[arg(long, value_name = "RUN")]
    pub run: NameArg,

    /// Omit finished items
    #[arg(long)]
    pub active: bool,

    /// Moment to resume from; the latest by default
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,
}

/// Finds the run that the arguments name, or else the run that last recorded the item.
fn run_with_item(opened: &OpenedStore, args: &RunItemArgs) -> Result<WorkflowRun, CommandError> {
    find_run(&opened.store, args.run.as_ref(), &args.item)
}

impl Verb for RunOutputArgs {
    const NAME: &'static str = "run output";
    type Opened = OpenedStore;
    type Report = RunOutputReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let RunStepArgs { item, step } = &self.step;
        let one = || -> Result<_, CommandError> {
            let run = run_with_item(opened, item)?;
            let moment = workspace::moment_or_head(context, run.session(), self.at.as_ref())?;
            let output = run.output_at(&moment, item.item.as_str(), step.as_str())?;
            Ok((run.key().to_owned(), output))
        };
        let (run, output) = match one() {
            Ok((run, output)) => (Some(run), Some(output)),
            Err(error)
                if self.allow_missing
                    && error.kind() == crate::error::CommandErrorKind::NotFound =>
            {
                (None, None)
            }
            Err(error) => {
                return Err(error.hinted(format!(
                    "'forge run path --item {}' shows the steps that are finished; '--allow-missing' \
                    accepts a missing one",
                    item.item.as_str()
                )));
            }
        };
        let (item, step) = (item.item.as_str().to_owned(), step.as_str().to_owned());
        Ok(RunOutputReport { run, item, step, output })
    }
}

impl Verb for RunOutputsArgs {
    const NAME: &'static str = "run outputs";
    type Opened = OpenedStore;
    type Report = RunOutputsReport;

    fn run(&self, opened: &OpenedStore, _context: &mut Context) -> VerbResult<Self> {
        let run = run_with_item(opened, &self.item)?;
        let item = self.item.item.as_str();
        let steps: Vec<&str> = self.step.iter().map(NameArg::as_str).collect();
        let (found, missing) = if steps.is_empty() {
            (run.load(item)?.outputs, Vec::new())
        } else {
            let all = run.outputs(item, &steps)?;
            let missing = steps.iter().zip(&all).filter(|(_, output)| output.is_none());
            let missing = missing.map(|(step, _)| (*step).to_owned()).collect();
            (all.into_iter().flatten().collect(), missing)
        };
        let outputs: BTreeMap<String, String> =
            found.into_iter().map(|output| (output.step, output.content)).collect();
        let (run, item) = (run.key().to_owned(), item.to_owned());
        Ok(RunOutputsReport { run, item, outputs, missing })
    }
}

impl Verb for RunStepArgs {
    const NAME: &'static str = "run exists";
    type Opened = OpenedStore;
    type Report = RunExistsReport;

    fn run(&self, opened: &OpenedStore, _: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let (item, step) = (self.item.item.as_str(), self.step.as_str());
        let run = match &self.item.run {
            Some(name) => Some(named_run(store, name)?),
            None => WorkflowRun::find_item(store, item)?,
        };
        let exists = run.as_ref().map(|run| run.exists(item, step)).transpose()?.unwrap_or(false);
        let run = run.map(|run| run.key().to_owned());
        let (item, step) = (item.to_owned(), step.to_owned());
        Ok(RunExistsReport { run, item, step, exists })
    }
}

impl Verb for RunItemArgs {
    const NAME: &'static str = "run path";
    type Opened = OpenedStore;
    type Report = RunPathReport;

    fn run(&self, opened: &OpenedStore, _context: &mut Context) -> VerbResult<Self> {
        let run = run_with_item(opened, self)?;
        let item = run.item(self.item.as_str())?;
        Ok(RunPathReport {
            run: run.key().to_owned(),
            item: item.item.clone(),
            at: item.current_step().map(str::to_owned),
            path: item.path,
        })
    }
}

impl Verb for RunShowArgs {
    const NAME: &'static str = "run show";
    type Opened = OpenedStore;
    type Report = EitherReport<RunItemReport, RunShowReport>;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let Some(item) = &self.item else {
            let name = self.run.as_ref().expect("clap requires one of the two");
            let run = named_run(store, name)?;
            let items = run.items_at(&run.session().head()?)?;
            let mut steps: BTreeMap<String, usize> = BTreeMap::new();
            for item in items.iter().filter(|item| item.is_active()) {
                *steps.entry(item.current_step().unwrap_or("").to_owned()).or_default() += 1;
            }
            let summary = run.summary()?;
            let steps =
                steps.into_iter().map(|(step, items)| StepItemCount { step, items }).collect();
            let input = summary.state.input.clone();
            return Ok(EitherReport::Second(RunShowReport { input, run: summary.into(), steps }));
        };
        let run = find_run(store, self.run.as_ref(), item)?;
        let moment = workspace::moment_or_head(context, run.session(), self.at.as_ref())?;
        let loaded = run.load_at(&moment, item.as_str())?;
        let (item, outputs) = (ItemJson::from(loaded.item), loaded.outputs);
        Ok(EitherReport::First(RunItemReport { run: run.key().to_owned(), item, outputs }))
    }
}

impl Verb for RunHistoryArgs {
    const NAME: &'static str = "run history";
    type Opened = OpenedStore;
    type Report = RunHistoryReport;

    fn run(&self, opened: &OpenedStore, _context: &mut Context) -> VerbResult<Self> {
        let run = run_with_item(opened, &self.item)?;
        let item = self.item.item.as_str();
        let mut report = RunHistoryReport {
            run: run.key().to_owned(),
            item: item.to_owned(),
            step: self.step.as_ref().map(|step| step.as_str().to_owned()),
            states: None,
            outputs: None,
        };
        match &self.step {
            None => {
                let states = run.history(item)?.into_iter();
                report.states = Some(states.map(|one| one.map(Into::into)).collect());
            }
            Some(step) => {
                let outputs = run.output_history(item, step.as_str())?;
                report.outputs = Some(outputs);
            }
        }
        Ok(report)
    }
}

impl Verb for RunAtStepArgs {
    const NAME: &'static str = "run at-step";
    type Opened = OpenedStore;
    type Report = RunAtStepReport;

    fn run(&self, opened: &OpenedStore, _context: &mut Context) -> VerbResult<Self> {
        let run = named_run(&opened.store, &self.run)?;
        let items = match &self.step {
            Some(step) => run.at_step(step.as_str())?,
            None => run.at_order(self.order.expect("clap requires one of the two"))?,
        };
        Ok(RunAtStepReport {
            run: run.key().to_owned(),
            step: self.step.as_ref().map(|step| step.as_str().to_owned()),
            order: self.order,
            items: items.into_iter().map(ItemJson::from).collect(),
        })
    }
}

impl Verb for RunIncompleteArgs {
    const NAME: &'static str = "run incomplete";
    type Opened = OpenedStore;
    type Report = RunListReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let runs = WorkflowRun::incomplete(store, context.now, value::to_micros(self.older_than))?;
        let runs = runs.into_iter().map(RunJson::from).collect();
        Ok(RunListReport { runs })
    }
}

#[derive(Debug, clap::Args)]
pub struct RunListArgs {}

impl Verb for RunListArgs {
    const NAME: &'static str = "run list";
    type Opened = OpenedStore;
    type Report = RunListReport;

    fn run(&self, opened: &OpenedStore, _: &mut Context) -> VerbResult<Self> {
        let runs = WorkflowRun::list(&opened.store)?.into_iter().map(RunJson::from).collect();
        Ok(RunListReport { runs })
    }
}

impl Verb for RunResumeArgs {
    const NAME: &'static str = "run resume";
    type Opened = OpenedStore;
    type Report = RunResumeReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let run = named_run(&opened.store, &self.run)?;
        let resume =
            run.resume_at(&workspace::moment_or_head(context, run.session(), self.at.as_ref())?)?;
        Ok(RunResumeReport::new(run.key(), resume, self.active))
    }
}

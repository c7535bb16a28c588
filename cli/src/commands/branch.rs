//! `forge branch`.

pub mod merge;

use crate::args::value::{Moment, Name};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::branch::{Branch, Branches, Line, Switched};
use crate::report::written::Made;
use crate::workplace::{self, Access, Need};
use crate::writing::Writing;
use forge_store::model::{AutoTrigger, BranchMetadata, BranchStatus, Kind};
use forge_store::store::{BranchSummary, CheckpointFilter};

/// Try another line of thought without losing this one.
#[derive(Debug, clap::Subcommand)]
pub enum BranchCommand {
    /// Begin a branch here or at another moment
    Create(CreateArgs),
    /// Go on with another branch
    Switch(SwitchArgs),
    /// List branches
    List(ListArgs),
    /// Show one branch
    Show(ShowArgs),
    /// Take what one branch changed over into another
    Merge(merge::MergeArgs),
    /// Give a branch up; what it holds stays readable
    Abandon(AbandonArgs),
}

/// Arguments of `forge branch create`.
#[derive(Debug, clap::Args)]
pub struct CreateArgs {
    /// Give it this name
    #[arg(value_name = "NAME")]
    pub name: Name,

    /// Begin it at this moment instead of the head of the current branch
    #[arg(long, value_name = "X")]
    pub from: Option<Moment>,

    /// Name the hypothesis it tests
    #[arg(long, value_name = "ID")]
    pub hypothesis: Option<String>,

    /// Say how it goes about it
    #[arg(long, value_name = "TEXT")]
    pub approach: Option<String>,

    /// Say what would count as success; may be given more than once
    #[arg(long, value_name = "TEXT")]
    pub success: Vec<String>,
}

/// Arguments of `forge branch switch`.
#[derive(Debug, clap::Args)]
pub struct SwitchArgs {
    /// Name the branch
    #[arg(value_name = "NAME")]
    pub name: Name,
}

/// Arguments of `forge branch list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// List merged, abandoned and archived ones too
    #[arg(long)]
    pub all: bool,
}

/// Arguments of `forge branch show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Name the branch; the current one if left out
    #[arg(value_name = "NAME")]
    pub name: Option<Name>,
}

/// Arguments of `forge branch abandon`.
#[derive(Debug, clap::Args)]
pub struct AbandonArgs {
    /// Name the branch
    #[arg(value_name = "NAME")]
    pub name: Name,

    /// Say what came of it
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Runs `forge branch`.
pub fn run(command: &BranchCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        BranchCommand::Create(args) => create(args, context),
        BranchCommand::Switch(args) => switch(args, context),
        BranchCommand::List(args) => list(args, context),
        BranchCommand::Show(args) => show(args, context),
        BranchCommand::Merge(args) => merge::run(args, context),
        BranchCommand::Abandon(args) => abandon(args, context),
    }
}

fn create(args: &CreateArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = Writing::begin(context, "branch create", Need::Existing)?;
    let from = args.from.as_ref().map(|from| workplace::point(context, &writing.session, from));
    let from = from.transpose()?;
    let hypothesis = args.hypothesis.as_ref();
    let hypothesis = hypothesis.map(|id| writing.claim_id(Kind::Hypothesis, id)).transpose()?;
    let metadata = BranchMetadata {
        hypothesis,
        approach: args.approach.clone(),
        success_criteria: args.success.clone(),
        ..BranchMetadata::default()
    };
    let name = args.name.as_str();
    writing.session.create_branch(&writing.act, name, from.as_ref(), metadata)?;
    context
        .out
        .emit(&Branch::of(&writing.session, name)?.after("forge.branch.create/1", "Created"))?;
    writing.finish();
    Ok(())
}

fn switch(args: &SwitchArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = Writing::begin(context, "branch switch", Need::Existing)?;
    let quietly = !writing.makes_checkpoint(AutoTrigger::BranchSwitch);
    let name = args.name.as_str();
    let before = writing.session.summary()?.checkpoints;
    let left = writing
        .session
        .switch_branch(&writing.act, name, quietly)
        .map_err(|error| crate::report::branch::with_names(error, &writing.session))?;
    let made = writing.session.summary()?.checkpoints > before;
    let newest = CheckpointFilter { limit: Some(1), ..CheckpointFilter::default() };
    let checkpoint = match made {
        true => writing.session.written_checkpoints(&newest)?.first().map(Made::from),
        false => None,
    };
    let branch = Branch::of(&writing.session, name)?;
    context.out.emit(&Switched { branch, left, checkpoint })?;
    writing.finish();
    Ok(())
}

fn list(args: &ListArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Read)?;
    let session = workplace::session(context, &store, Need::Existing)?;
    let branches = session.branches(&session.head()?)?;
    let shown = |branch: &BranchSummary| args.all || branch.current || is_open(branch.status);
    let left_out = branches.iter().filter(|branch| !shown(branch)).count();
    let branches = branches.into_iter().filter(shown).map(Line::from).collect();
    let session = session.summary()?.info.name;
    context.out.emit(&Branches { session, branches, left_out })
}

fn show(args: &ShowArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workplace::open(context, Access::Read)?;
    let session = workplace::session(context, &store, Need::Existing)?;
    let name = match &args.name {
        Some(name) => name.as_str().to_owned(),
        None => session.summary()?.branch,
    };
    context.out.emit(&Branch::of(&session, &name)?)
}

fn abandon(args: &AbandonArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = Writing::begin(context, "branch abandon", Need::Existing)?;
    let name = args.name.as_str();
    writing
        .session
        .update_branch(&writing.act, name, |status, metadata| {
            *status = BranchStatus::Abandoned;
            metadata.results.extend(args.reason.clone());
        })
        .map_err(|error| crate::report::branch::with_names(error, &writing.session))?;
    let branch = Branch::of(&writing.session, name)?;
    context.out.emit(&branch.after("forge.branch.abandon/1", "Abandoned"))?;
    writing.finish();
    Ok(())
}

/// Whether a branch is still in use.
fn is_open(status: BranchStatus) -> bool {
    status == BranchStatus::Active
}

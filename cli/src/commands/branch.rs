//! `forge branch`.

pub mod merge;

use crate::args::value::{MomentArg, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::branch::{BranchLine, BranchListReport, BranchReport, BranchSwitchReport};
use crate::report::entity_write::MadeCheckpoint;
use crate::session_writer::SessionWriter;
use crate::workspace::{self, SessionNeed, StoreAccess};
use forge_store::model::{AutoTrigger, BranchMetadata, BranchStatus, Kind};
use forge_store::store::{BranchSummary, CheckpointFilter};

/// Follow another line of thought without losing this one.
#[derive(Debug, clap::Subcommand)]
pub enum BranchCommand {
    /// Begin a branch here or at another moment
    Create(BranchCreateArgs),
    /// Switch to another branch
    Switch(BranchSwitchArgs),
    /// List branches
    List(BranchListArgs),
    /// Show one branch
    Show(BranchShowArgs),
    /// Merge the changes of a branch into another
    Merge(merge::BranchMergeArgs),
    /// Abandon a branch; its content stays readable
    Abandon(BranchAbandonArgs),
}

/// Arguments of `forge branch create`.
#[derive(Debug, clap::Args)]
pub struct BranchCreateArgs {
    /// Name
    #[arg(value_name = "NAME")]
    pub name: NameArg,

    /// Moment at which it begins; the head of the current branch by default
    #[arg(long, value_name = "X")]
    pub from: Option<MomentArg>,

    /// Hypothesis that it tests
    #[arg(long, value_name = "ID")]
    pub hypothesis: Option<String>,

    /// Approach that the branch tries
    #[arg(long, value_name = "TEXT")]
    pub approach: Option<String>,

    /// What counts as success; can be repeated
    #[arg(long, value_name = "TEXT")]
    pub success: Vec<String>,
}

/// Arguments of `forge branch switch`.
#[derive(Debug, clap::Args)]
pub struct BranchSwitchArgs {
    /// Branch
    #[arg(value_name = "NAME")]
    pub name: NameArg,
}

/// Arguments of `forge branch list`.
#[derive(Debug, clap::Args)]
pub struct BranchListArgs {
    /// Also list merged, abandoned and archived branches
    #[arg(long)]
    pub all: bool,
}

/// Arguments of `forge branch show`.
#[derive(Debug, clap::Args)]
pub struct BranchShowArgs {
    /// Branch; the current one by default
    #[arg(value_name = "NAME")]
    pub name: Option<NameArg>,
}

/// Arguments of `forge branch abandon`.
#[derive(Debug, clap::Args)]
pub struct BranchAbandonArgs {
    /// Branch
    #[arg(value_name = "NAME")]
    pub name: NameArg,

    /// Result, or reason
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

fn create(args: &BranchCreateArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = SessionWriter::begin(context, "branch create", SessionNeed::Existing)?;
    let from = args.from.as_ref().map(|from| workspace::point(context, &writing.session, from));
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
    context.out.emit(
        &BranchReport::load(&writing.session, name)?.after("forge.branch.create/1", "Created"),
    )?;
    writing.finish();
    Ok(())
}

fn switch(args: &BranchSwitchArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = SessionWriter::begin(context, "branch switch", SessionNeed::Existing)?;
    let quietly = !writing.makes_checkpoint(AutoTrigger::BranchSwitch);
    let name = args.name.as_str();
    let before = writing.session.summary()?.checkpoints;
    let left = writing
        .session
        .switch_branch(&writing.act, name, quietly)
        .map_err(|error| crate::report::branch::with_branch_names(error, &writing.session))?;
    let made = writing.session.summary()?.checkpoints > before;
    let newest = CheckpointFilter { limit: Some(1), ..CheckpointFilter::default() };
    let checkpoint = match made {
        true => writing.session.checkpoints(&newest)?.first().map(MadeCheckpoint::from),
        false => None,
    };
    let branch = BranchReport::load(&writing.session, name)?;
    context.out.emit(&BranchSwitchReport { branch, left, checkpoint })?;
    writing.finish();
    Ok(())
}

fn list(args: &BranchListArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workspace::open_store(context, StoreAccess::Read)?;
    let session = workspace::choose_session(context, &store, SessionNeed::Existing)?;
    let branches = session.branches(&session.head()?)?;
    let shown = |branch: &BranchSummary| args.all || branch.current || is_open(branch.status);
    let left_out = branches.iter().filter(|branch| !shown(branch)).count();
    let branches = branches.into_iter().filter(shown).map(BranchLine::from).collect();
    let session = session.summary()?.info.name;
    context.out.emit(&BranchListReport { session, branches, left_out })
}

fn show(args: &BranchShowArgs, context: &mut Context) -> Result<(), CommandError> {
    let store = workspace::open_store(context, StoreAccess::Read)?;
    let session = workspace::choose_session(context, &store, SessionNeed::Existing)?;
    let name = match &args.name {
        Some(name) => name.as_str().to_owned(),
        None => session.summary()?.branch,
    };
    context.out.emit(&BranchReport::load(&session, &name)?)
}

fn abandon(args: &BranchAbandonArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = SessionWriter::begin(context, "branch abandon", SessionNeed::Existing)?;
    let name = args.name.as_str();
    writing
        .session
        .update_branch(&writing.act, name, |status, metadata| {
            *status = BranchStatus::Abandoned;
            metadata.results.extend(args.reason.clone());
        })
        .map_err(|error| crate::report::branch::with_branch_names(error, &writing.session))?;
    let branch = BranchReport::load(&writing.session, name)?;
    context.out.emit(&branch.after("forge.branch.abandon/1", "Abandoned"))?;
    writing.finish();
    Ok(())
}

/// Whether a branch is still in use.
fn is_open(status: BranchStatus) -> bool {
    status == BranchStatus::Active
}

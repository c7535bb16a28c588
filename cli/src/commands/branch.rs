//! `forge branch`.

pub mod merge;

use crate::args::list_format::ListFormat;
use crate::args::value::{MomentArg, NameArg};
use crate::context::Context;
use crate::report::branch::{BranchLine, BranchListReport, BranchReport, BranchSwitchReport};
use crate::report::entity_write::MadeCheckpoint;
use crate::report::formatted_list::FormattedList;
use crate::session_writer::SessionWriter;
use crate::verb::{OpenedStore, Verb, VerbResult, commands};
use crate::workspace::{self, SessionNeed};
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

#[derive(Debug, clap::Args)]
pub struct BranchSwitchArgs {
    /// Branch
    #[arg(value_name = "NAME")]
    pub name: NameArg,
}

#[derive(Debug, clap::Args)]
pub struct BranchListArgs {
    /// Also list merged, abandoned and archived branches
    #[arg(long)]
    pub all: bool,

    /// Line for each, with fields as in JSON: '{name} {status}'
    #[arg(long, value_name = "TEMPLATE")]
    pub format: Option<ListFormat>,
}

#[derive(Debug, clap::Args)]
pub struct BranchShowArgs {
    /// Branch; the current one by default
    #[arg(value_name = "NAME")]
    pub name: Option<NameArg>,
}

#[derive(Debug, clap::Args)]
pub struct BranchAbandonArgs {
    /// Branch
    #[arg(value_name = "NAME")]
    pub name: NameArg,

    /// Result, or reason
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

commands!(BranchCommand: Create, Switch, List, Show, Merge, Abandon);

impl Verb for BranchCreateArgs {
    const NAME: &'static str = "branch create";
    type Opened = SessionWriter;
    type Report = BranchReport;

    fn run(&self, writing: &SessionWriter, context: &mut Context) -> VerbResult<Self> {
        let from = self
            .from
            .as_ref()
            .map(|from| workspace::resolved_moment(context, &writing.session, from));
        let from = from.transpose()?;
        let hypothesis = self.hypothesis.as_ref();
        let hypothesis = hypothesis.map(|id| writing.claim_id(Kind::Hypothesis, id)).transpose()?;
        let metadata = BranchMetadata {
            hypothesis,
            approach: self.approach.clone(),
            success_criteria: self.success.clone(),
            ..BranchMetadata::default()
        };
        let name = self.name.as_str();
        writing.session.create_branch(&writing.write_context, name, from.as_ref(), metadata)?;
        Ok(BranchReport::load(&writing.session, name)?.after("Created"))
    }
}

impl Verb for BranchSwitchArgs {
    const NAME: &'static str = "branch switch";
    type Opened = SessionWriter;
    type Report = BranchSwitchReport;

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let quietly = !writing.makes_checkpoint(AutoTrigger::BranchSwitch);
        let name = self.name.as_str();
        let before = writing.session.summary()?.checkpoints;
        let left = writing
            .session
            .switch_branch(&writing.write_context, name, quietly)
            .map_err(|error| crate::report::branch::with_branch_names(error, &writing.session))?;
        let made = writing.session.summary()?.checkpoints > before;
        let newest = CheckpointFilter { limit: Some(1), ..CheckpointFilter::default() };
        let checkpoint = match made {
            true => writing.session.written_checkpoints(&newest)?.first().map(MadeCheckpoint::from),
            false => None,
        };
        let branch = BranchReport::load(&writing.session, name)?;
        Ok(BranchSwitchReport { branch, left, checkpoint })
    }
}

impl Verb for BranchListArgs {
    const NAME: &'static str = "branch list";
    type Opened = OpenedStore;
    type Report = FormattedList<BranchListReport>;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let session = workspace::choose_session(context, store, SessionNeed::Existing)?;
        let branches = session.branches(&session.head()?)?;
        let shown = |branch: &BranchSummary| self.all || branch.current || is_open(branch.status);
        let left_out = branches.iter().filter(|branch| !shown(branch)).count();
        let branches = branches.into_iter().filter(shown).map(BranchLine::from).collect();
        let session = session.summary()?.info.name;
        let list = BranchListReport { session, branches, left_out };
        FormattedList::new(list, self.format.as_ref(), |list| &list.branches)
    }
}

impl Verb for BranchShowArgs {
    const NAME: &'static str = "branch show";
    type Opened = OpenedStore;
    type Report = BranchReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let session = workspace::choose_session(context, store, SessionNeed::Existing)?;
        let name = match &self.name {
            Some(name) => name.as_str().to_owned(),
            None => session.summary()?.branch,
        };
        BranchReport::load(&session, &name)
    }
}

impl Verb for BranchAbandonArgs {
    const NAME: &'static str = "branch abandon";
    type Opened = SessionWriter;
    type Report = BranchReport;

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let name = self.name.as_str();
        let changed = writing
            .session
            .update_branch(&writing.write_context, name, |status, metadata| {
                *status = BranchStatus::Abandoned;
                metadata.results.extend(self.reason.clone());
            })
            .map_err(|error| crate::report::branch::with_branch_names(error, &writing.session))?;
        let branch = BranchReport::load(&writing.session, name)?;
        Ok(branch.after(if changed { "Abandoned" } else { "Nothing to change:" }))
    }
}

/// Whether a list without `--all` shows a branch that is not the current one.
fn is_open(status: BranchStatus) -> bool {
    status == BranchStatus::Active
}

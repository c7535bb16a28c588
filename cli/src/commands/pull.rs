//! `forge pull`.

use crate::context::Context;
use crate::error::CommandError;
use crate::remote::Remotes;
use crate::remote::transfer::{SharedSession, Transfer, once};
use crate::report::purges::PurgesReport;
use crate::report::transfer::{PullReportLines, PulledSession, warn_of_secrets};
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace::StoreAccess;

#[derive(Debug, clap::Args)]
pub struct PullArgs {
    /// Name or id of a session here or on the remote, or the beginning of its handle there; those
    /// that were pushed or pulled before by default
    #[arg(value_name = "SESSION")]
    pub sessions: Vec<String>,

    /// Pull all sessions on the remote
    #[arg(long, conflicts_with = "sessions")]
    pub all: bool,

    /// Name of the remote; origin by default
    #[arg(long, value_name = "NAME")]
    pub from: Option<String>,

    /// Show what would be pulled, without writing anything
    #[arg(long)]
    pub dry_run: bool,

    /// Accept the history that the remote has, even if an older or another one than was seen
    #[arg(long)]
    pub accept_history: bool,
}

impl Verb for PullArgs {
    const NAME: &'static str = "pull";
    type Opened = OpenedStore;
    type Report = PullReportLines;

    fn access(&self) -> StoreAccess {
        if self.dry_run { StoreAccess::Read } else { StoreAccess::Write }
    }

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let known = Remotes::of(context, &opened.store)?.find(self.from.as_deref())?.clone();
        let transfer = Transfer::open(opened, known)?.accepting_history(self.accept_history);
        let sessions = self.chosen(&transfer)?;
        let pull = |session: &SharedSession| match self.dry_run {
            true => transfer.preview_pull(session),
            false => transfer.pull(session),
        };
        let (sessions, mut failure) = transfer.each(context, &sessions, pull);
        let mut purges = PurgesReport::default();
        if !self.dry_run {
            (purges, failure) = transfer.settle_purges(context, failure);
        }
        let of = |one: &PulledSession| warn_of_secrets(&one.session, &one.secrets, &context.out);
        sessions.iter().for_each(of);
        let remote = transfer.known.name.clone();
        Ok(PullReportLines { remote, dry_run: self.dry_run, sessions, purges, failure })
    }
}

impl PullArgs {
    fn chosen(&self, transfer: &Transfer<'_>) -> Result<Vec<SharedSession>, CommandError> {
        if self.all {
            return transfer.there();
        }
        if self.sessions.is_empty() {
            return transfer.shared();
        }
        let found = self.sessions.iter().map(|name| transfer.find(name));
        Ok(once(found.collect::<Result<_, _>>()?))
    }
}

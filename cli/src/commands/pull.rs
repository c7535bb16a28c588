//! `forge pull`.

use crate::args::moment::MomentArg;
use crate::context::Context;
use crate::error::CommandError;
use crate::remote::transfer::{SharedSession, Transfer, once, time_of};
use crate::remote::{Remotes, remote_argument};
use crate::report::purges::PurgesReport;
use crate::report::transfer::{PullScope, PulledSession, TransferReport, warn_of_pulled_secrets};
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace::StoreAccess;
use forge_store::error::Error;
use forge_store::store::remote::Remote;

#[derive(Debug, clap::Args)]
pub struct PullArgs {
    /// Name or id of a session here or on the remote, or the beginning of its handle there; those
    /// that were pushed or pulled before by default
    #[arg(value_name = "SESSION")]
    pub sessions: Vec<String>,

    /// Pull all sessions on the remote
    #[arg(long, conflicts_with = "sessions")]
    pub all: bool,

    /// Earliest time, such as -7d, of the last write or push of the sessions to pull
    #[arg(long, value_name = "T", conflicts_with = "sessions")]
    pub since: Option<MomentArg>,

    /// Refuse a session that would have to be joined with what is not pushed here
    #[arg(long, conflicts_with = "dry_run")]
    pub ff_only: bool,

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
    type Report = TransferReport<PulledSession>;

    fn access(&self) -> StoreAccess {
        if self.dry_run { StoreAccess::Read } else { StoreAccess::Write }
    }

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let known = Remotes::of(context, &opened.store)?.find(self.from.as_deref())?.clone();
        let transfer = Transfer::open(opened, known)?
            .when(self.accept_history, Remote::accepting_history)
            .when(self.ff_only, Remote::refusing_joins);
        let sessions = self.chosen(context, &transfer)?;
        if sessions.is_empty() && self.accept_history && !self.all && self.since.is_none() {
            let name = &transfer.known.name;
            let (from, there) = (remote_argument(" --from ", name), remote_argument("=", name));
            return Err(CommandError::invalid(
                "no session here was pushed or pulled before: there is no history to accept",
            )
            .hinted(format!(
                "'forge pull SESSION{from} --accept-history' accepts that of one session, '--all' \
                 that of all; 'forge session list --remote{there}' names them"
            )));
        }
        let pull = |session: &SharedSession| match self.dry_run {
            true => transfer.preview_pull(session),
            false => transfer.pull(session),
        };
        let (sessions, mut failure) = transfer.each(context, &sessions, pull);
        let mut purges = PurgesReport::default();
        if !self.dry_run {
            (purges, failure) = transfer.finish_purges(context, failure);
        }
        warn_of_pulled_secrets(&sessions, &context.out);
        let (remote, dry_run) = (transfer.known.name.clone(), Some(self.dry_run));
        let scope = Some(match (&self.since, self.all) {
            (Some(_), _) => PullScope::Since,
            (None, true) => PullScope::All,
            (None, false) => PullScope::Shared,
        });
        Ok(TransferReport { remote, dry_run, scope, sessions, purges, failure })
    }
}

impl PullArgs {
    fn chosen(
        &self,
        context: &Context,
        transfer: &Transfer<'_>,
    ) -> Result<Vec<SharedSession>, CommandError> {
        if self.all || self.since.is_some() {
            let since = self.since.as_ref().map(|since| time_of(context, since)).transpose()?;
            return transfer.on_remote(context, since);
        }
        if self.sessions.is_empty() {
            let mut sessions = transfer.shared()?;
            // The variable can name an agent's own session, which may not have begun.
            if let Some(name) = context.session_of_option() {
                match transfer.store.session(name) {
                    Err(Error::NotFound { .. }) => sessions.push(transfer.find(name)?),
                    Err(error) => return Err(error.into()),
                    // What was not pushed cannot be pulled, but the others can.
                    Ok(_) => {}
                }
            }
            return Ok(once(sessions));
        }
        let found = self.sessions.iter().map(|name| transfer.find(name));
        Ok(once(found.collect::<Result<_, _>>()?))
    }
}

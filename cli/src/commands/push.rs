//! `forge push`.

use crate::context::Context;
use crate::error::CommandError;
use crate::remote::Remotes;
use crate::remote::transfer::{Transfer, pushed_sessions};
use crate::report::purges::PurgesReport;
use crate::report::transfer::{PushedSession, TransferReport};
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace::StoreAccess;
use forge_store::store::remote::Remote;

#[derive(Debug, clap::Args)]
pub struct PushArgs {
    /// Name or id of a session; the current one by default
    #[arg(value_name = "SESSION")]
    pub sessions: Vec<String>,

    /// Push all sessions of the kinds in the setting push.kinds: debugging sessions by default
    #[arg(long, conflicts_with = "sessions")]
    pub all: bool,

    /// Name of the remote; origin by default
    #[arg(long, value_name = "NAME")]
    pub to: Option<String>,

    /// Show what would be pushed, without asking the remote
    #[arg(long)]
    pub dry_run: bool,

    /// Push what looks like a secret instead of refusing it
    #[arg(long)]
    pub allow_secrets: bool,

    /// Accept the history that the remote has, even if an older or another one than was seen, and
    /// push what is missing there
    #[arg(long)]
    pub accept_history: bool,
}

impl Verb for PushArgs {
    const NAME: &'static str = "push";
    type Opened = OpenedStore;
    type Report = TransferReport<PushedSession>;

    fn access(&self) -> StoreAccess {
        if self.dry_run { StoreAccess::Read } else { StoreAccess::Write }
    }

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let known = Remotes::of(context, store)?.find(self.to.as_deref())?.clone();
        let sessions = pushed_sessions(context, store, &known, &self.sessions, self.all)?;
        let (remote, dry_run, scope) = (known.name.clone(), Some(self.dry_run), None);
        if self.dry_run {
            let previews = sessions.iter().map(|session| {
                let preview = store.preview_push(&known.access, session)?;
                Ok(PushedSession::preview(session.summary()?.info.name, preview))
            });
            let sessions = previews.collect::<Result<_, CommandError>>()?;
            let purges = PurgesReport::default();
            let failure = None;
            return Ok(TransferReport { remote, dry_run, scope, sessions, purges, failure });
        }
        let transfer = Transfer::open(opened, known)?
            .when(self.allow_secrets, Remote::allowing_secrets)
            .when(self.accept_history, Remote::accepting_history);
        let (sessions, failure) =
            transfer.each(context, &sessions, |session| transfer.push(session));
        let (purges, failure) = transfer.finish_purges(context, failure);
        Ok(TransferReport { remote, dry_run, scope, sessions, purges, failure })
    }
}

//! `forge status`.

use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::hook::remote_exchange;
use crate::remote;
use crate::report::entity_write::MadeCheckpoint;
use crate::report::store::{StatusReport, UnfinishedStream};
use crate::report::{branch, session};
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace::{self, SessionNeed};
use forge_store::error::Error;
use forge_store::model::SessionKind;
use forge_store::store::{CheckpointFilter, Store};

#[derive(Debug, clap::Args)]
pub struct StatusArgs {}

impl Verb for StatusArgs {
    const NAME: &'static str = "status";
    type Opened = OpenedStore;
    type Report = StatusReport;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let store = &opened.store;
        let session = match workspace::choose_session(context, store, SessionNeed::Existing) {
            // A store without a session has a status too.
            Err(error)
                if error.kind() == CommandErrorKind::NotFound && context.session().is_none() =>
            {
                None
            }
            session => Some(session?),
        };
        let unpushed = remote::unpushed_lines(context, store);
        let failed = match &unpushed {
            Ok(_) => remote_exchange::failed_exchanges(context, store),
            // The warning about `unpushed` says that the remotes cannot be read.
            Err(_) => Ok(Vec::new()),
        };
        let mut status = StatusReport {
            path: store.path().map(|path| path.display().to_string()).unwrap_or_default(),
            sessions: session_count(store)?,
            tail_bytes: store.tail_bytes()?,
            unfinished: unfinished_imports(store)?,
            lost_in_repair: store.repair_losses()?.map(|losses| losses.count),
            unpushed: or_warning(context, unpushed),
            failed_exchanges: or_warning(context, failed),
            session: None,
            branch: None,
            head: None,
            last_checkpoint: None,
            summary: None,
        };
        if let Some(session) = session {
            let line = session::SessionLine::from(session.summary()?);
            let head = branch::BranchReport::load(&session, &line.branch)?;
            let newest = CheckpointFilter { limit: Some(1), ..CheckpointFilter::default() };
            status.last_checkpoint =
                session.written_checkpoints(&newest)?.first().map(MadeCheckpoint::from);
            status.session = Some(line.name.clone());
            status.branch = Some(line.branch.clone());
            status.head = head.line.revision;
            status.summary = Some(line);
        }
        Ok(status)
    }
}

/// Returns the lines; if they could not be read, warns and returns none.
pub(super) fn or_warning<T>(context: &Context, lines: Result<Vec<T>, CommandError>) -> Vec<T> {
    lines.unwrap_or_else(|error| {
        context.out.warn(error.message());
        Vec::new()
    })
}

/// Returns the number of sessions of all kinds.
pub fn session_count(store: &Store) -> Result<usize, Error> {
    let counts = SessionKind::ALL.into_iter().map(|kind| store.session_count(kind));
    Ok(counts.sum::<Result<u64, _>>()? as usize)
}

/// Returns the imports that have begun and not ended.
pub fn unfinished_imports(store: &Store) -> Result<Vec<UnfinishedStream>, Error> {
    Ok(store.unfinished_imports()?.into_iter().map(UnfinishedStream::from).collect())
}

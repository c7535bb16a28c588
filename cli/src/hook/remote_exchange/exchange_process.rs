//! The process of an exchange: `forge hook remote pull` and `forge hook remote sync`.

use super::stamp::ExchangeStamp;
use super::{
    LAST_SYNC, PULL, SYNC, WORD, append_exchange, error_text, logged_verb, pending_sentences,
};
use crate::commands::sync::exchange_session;
use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::hook::log::{self, HookLogEntry, HookOutcome};
use crate::remote::transfer::{SharedSession, Transfer};
use crate::remote::{Remotes, open_remote};
use crate::report::transfer::{SyncedSession, unmerged_splits};
use crate::workspace::{self, StoreAccess};
use forge_store::store::{Store, WriteContext};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// The maximum duration of an exchange. The next exchange does what is left.
const MAX_TIME: Duration = Duration::from_secs(30 * 60);
/// The maximum number of sessions on the remote that are read to find one that is not here yet, the
/// one pushed last first. Each costs a request.
const MAX_REFS: usize = 32;

/// Pulls or syncs the session of an agent that the environment names, and writes the outcome to the
/// log. Never fails.
pub fn run(verb: &str, context: &Context) {
    let began = Instant::now();
    let waits = verb == LAST_SYNC;
    let verb = logged_verb(verb);
    let store = context.store_directory().and_then(|path| {
        Ok(Store::open(&path, workspace::store_options(context, StoreAccess::Write))?)
    });
    // A hook has just opened this store. If it cannot be opened any more, the next hook reports it.
    let Ok(store) = store else { return };
    let mut line = HookLogEntry::new(context.now, WORD, verb);
    line.session = context.session().map(str::to_owned);
    let finished = end_if_late(context, &store, line.clone());
    let done = crate::panic::catch_panics(|| exchange(&mut line, waits, context, &store));
    line.micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    match done {
        Ok(Some(true)) => line.outcome = HookOutcome::Saved,
        Ok(Some(false)) => {}
        // Another process makes this exchange.
        Ok(None) => return,
        Err(error) => line.set_error(&error_text(&error)),
    }
    append_exchange(context, &store, line);
    workspace::catch_up_index(&store);
    drop(finished);
}

/// Ends this process, with a line in the log, if the returned value still exists after
/// [`MAX_TIME`].
fn end_if_late(context: &Context, store: &Store, mut line: HookLogEntry) -> mpsc::Sender<()> {
    let (finished, is_finished) = mpsc::channel();
    line.set_error("it took longer than 30 minutes and was ended ('forge sync' has no limit)");
    let notes = store.notes();
    if let Some(redactor) = workspace::redactor(context) {
        line.redact(&redactor);
    }
    thread::spawn(move || {
        if is_finished.recv_timeout(MAX_TIME) == Err(mpsc::RecvTimeoutError::Timeout) {
            // A failure cannot be reported anywhere.
            let _ = notes.map(|notes| log::append(&log::store_log(&notes), &line));
            crate::exit_process(crate::error::EXIT_OK);
        }
    });
    finished
}

/// Exchanges the session, and syncs it again while syncs were requested meanwhile. Returns whether
/// anything was pulled or pushed; `None` if another process is exchanging it and this one does not
/// wait. `line` gets the verb of the last exchange, and what to do if that left something.
fn exchange(
    line: &mut HookLogEntry,
    waits: bool,
    context: &Context,
    store: &Store,
) -> Result<Option<bool>, CommandError> {
    let session = context.session().ok_or_else(|| {
        CommandError::invalid("FORGE_SESSION does not name the session to exchange")
    })?;
    let stamp = ExchangeStamp::of(store, session)
        .ok_or_else(|| CommandError::internal("the store has no folder for notes"))?;
    let act = WriteContext::hook(format!("hook {WORD} {}", line.event), context.now);
    let (mut is_changed, mut next) = (false, line.event.clone());
    stamp.settle(waits, || {
        let this = std::mem::replace(&mut next, SYNC.to_owned());
        line.event.clone_from(&this);
        line.error = None;
        let done = exchange_once((&this, session), context, store, &act)?;
        if let Some(unfinished) = &done.unfinished {
            line.set_reason(unfinished);
        }
        is_changed |= done.is_changed;
        Ok(is_changed)
    })
}

/// What one exchange did.
#[derive(Debug, Default)]
struct DoneExchange {
    /// Whether anything was pulled or pushed.
    is_changed: bool,
    /// What to do if more may remain to exchange.
    unfinished: Option<String>,
    /// Which revisions made here are on branches of their own now, as sentences.
    unmerged: Vec<String>,
}

impl From<SyncedSession> for DoneExchange {
    fn from(done: SyncedSession) -> Self {
        let unmerged = unmerged_splits(&done.session, &done.joined);
        let is_changed = done.pulled + done.pushed > 0;
        Self { is_changed, unfinished: done.unfinished, unmerged }
    }
}

/// Exchanges the session once.
fn exchange_once(
    (verb, session): (&str, &str),
    context: &Context,
    store: &Store,
    act: &WriteContext,
) -> Result<DoneExchange, CommandError> {
    let here = store.agent_session(session)?;
    if verb == SYNC && here.is_none() {
        return Ok(DoneExchange::default());
    }
    let known = Remotes::of(context, store)?.find(None)?.clone();
    if let Some(here) = &here
        && known.access.handle(&here.summary()?.info.id).is_err()
    {
        // The grant opens another session: this one is not shared.
        return Ok(DoneExchange::default());
    }
    let remote = open_remote(&known)?;
    let transfer = Transfer::new(store, act, known, remote);
    let shared = match here {
        Some(here) => Some(transfer.own(here)?),
        None => latest_of(&transfer, session)?,
    };
    let Some(shared) = shared else { return Ok(DoneExchange::default()) };
    let (mut done, purges, failure) = match verb {
        // The agent waits for a pull, so it leaves the purges that are not done yet.
        PULL => match pull(&transfer, &shared) {
            Ok(done) => (done, transfer.purges_so_far(), None),
            Err(error) => (DoneExchange::default(), transfer.purges_so_far(), Some(error)),
        },
        SYNC => {
            let mut synced = SyncedSession::default();
            let ended = exchange_session(&transfer, &shared, &mut synced);
            let (purges, failure) = transfer.finish_purges(context, ended.err());
            (DoneExchange::from(synced), purges, failure)
        }
        _ => return Err(CommandError::invalid(format!("'{verb}' is neither {PULL} nor {SYNC}"))),
    };
    let kept = pending_sentences::keep(store, session, &purges.done_elsewhere())
        .and_then(|()| pending_sentences::keep_once(store, session, &purges.not_done()))
        .and_then(|()| pending_sentences::keep(store, session, &done.unmerged));
    // The error of the exchange itself comes first.
    failure.map_or(Ok(()), Err)?;
    kept?;
    done.is_changed |= !purges.is_empty();
    Ok(done)
}

/// Finds the session of an agent among the sessions that were pushed last.
fn latest_of(
    transfer: &Transfer<'_>,
    session: &str,
) -> Result<Option<SharedSession>, CommandError> {
    let found = transfer
        .remote
        .latest_session(MAX_REFS, |one| one.info.agent_session.as_deref() == Some(session))?;
    found.map(|there| transfer.located(there)).transpose()
}

/// Pulls a session. It is no error if the session was never pushed.
fn pull(transfer: &Transfer<'_>, session: &SharedSession) -> Result<DoneExchange, CommandError> {
    match transfer.pull(session) {
        Ok(done) => Ok(DoneExchange {
            is_changed: done.operations > 0,
            unfinished: None,
            unmerged: unmerged_splits(&done.session, &done.joined),
        }),
        Err(error) if error.kind() == CommandErrorKind::NotFound => Ok(DoneExchange::default()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: if a sync of the hooks left something to exchange, the log did not say so.
    #[test]
    fn an_unfinished_sync_of_a_hook_is_reported() {
        let mut synced = SyncedSession { pushed: 8, ..SyncedSession::default() };
        synced.set_unfinished("origin");
        let done = DoneExchange::from(synced);
        assert!(done.is_changed);
        assert!(done.unfinished.unwrap().contains("run 'forge sync' again"));
    }
}

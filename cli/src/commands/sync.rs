//! `forge sync`.

use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::remote::Remotes;
use crate::remote::transfer::{SharedSession, Transfer, once, pushed_sessions};
use crate::report::transfer::{SyncedSession, TransferReport, unmerged_splits, warn_of_secrets};
use crate::verb::{OpenedStore, Verb, VerbResult};
use crate::workspace::{self, StoreAccess};
use forge_store::store::remote::Remote;

/// How often a sync pulls and pushes a session, at most, while others push the session too.
const MAX_ROUNDS: u32 = 8;

#[derive(Debug, clap::Args)]
pub struct SyncArgs {
    /// Name or id of a session; the current one, and those that were pushed or pulled before, by
    /// default
    #[arg(value_name = "SESSION")]
    pub sessions: Vec<String>,

    /// Sync all sessions on the remote and all that 'push --all' pushes
    #[arg(long, conflicts_with = "sessions")]
    pub all: bool,

    /// Name of the remote; origin by default
    #[arg(long, value_name = "NAME")]
    pub with: Option<String>,

    /// Push what looks like a secret instead of refusing it
    #[arg(long)]
    pub allow_secrets: bool,
}

impl Verb for SyncArgs {
    const NAME: &'static str = "sync";
    type Opened = OpenedStore;
    type Report = TransferReport<SyncedSession>;
    const ACCESS: StoreAccess = StoreAccess::Write;

    fn run(&self, opened: &OpenedStore, context: &mut Context) -> VerbResult<Self> {
        let known = Remotes::of(context, &opened.store)?.find(self.with.as_deref())?.clone();
        let transfer =
            Transfer::open(opened, known)?.when(self.allow_secrets, Remote::allowing_secrets);
        let sessions = self.chosen(context, &transfer)?;
        let (sessions, failure) =
            transfer.each(context, &sessions, |session| sync_session(&transfer, session));
        let (purges, failure) = transfer.finish_purges(context, failure);
        let of = |one: &SyncedSession| warn_of_secrets(&one.session, &one.secrets, &context.out);
        sessions.iter().for_each(of);
        let (remote, dry_run, scope) = (transfer.known.name, None, None);
        Ok(TransferReport { remote, dry_run, scope, sessions, purges, failure })
    }
}

impl SyncArgs {
    fn chosen(
        &self,
        context: &Context,
        transfer: &Transfer<'_>,
    ) -> Result<Vec<SharedSession>, CommandError> {
        let store = transfer.store;
        let own = |names: &[String], all| -> Result<Vec<SharedSession>, CommandError> {
            let sessions = pushed_sessions(context, store, &transfer.known, names, all)?;
            sessions.into_iter().map(|session| transfer.own(session)).collect()
        };
        let mut sessions = Vec::new();
        if self.all {
            sessions.extend(transfer.on_remote(context, None)?);
            sessions.extend(own(&[], true)?);
        } else if self.sessions.is_empty() {
            sessions.extend(transfer.shared()?);
            let is_named = context.session_of_option().is_some();
            match own(&[], false) {
                // A store without a session has nothing to push, and an agent's own session may not
                // have begun.
                Err(error) if error.kind() == CommandErrorKind::NotFound && !is_named => {}
                current => sessions.extend(current?),
            }
        } else {
            for name in &self.sessions {
                let found = match transfer.find(name) {
                    // The session was not pushed yet.
                    Err(error) if error.kind() == CommandErrorKind::NotFound => {
                        transfer.own(workspace::named_session(store, name).map_err(|_| error)?)
                    }
                    found => found,
                };
                sessions.push(found?);
            }
        }
        Ok(once(sessions))
    }
}

/// Syncs a session. An error names the branches that were made before it.
fn sync_session(
    transfer: &Transfer<'_>,
    session: &SharedSession,
) -> Result<SyncedSession, CommandError> {
    let mut done = SyncedSession::default();
    match exchange_session(transfer, session, &mut done) {
        Ok(()) => Ok(done),
        Err(error) => {
            let splits = unmerged_splits(&done.session, &done.joined);
            Err(splits.into_iter().fold(error, CommandError::hinted))
        }
    }
}

/// Pulls and pushes a session until neither has anything new, at most `MAX_ROUNDS` times. `done`
/// gets what was done, also before an error.
pub fn exchange_session(
    transfer: &Transfer<'_>,
    session: &SharedSession,
    done: &mut SyncedSession,
) -> Result<(), CommandError> {
    done.new = session.here.is_none();
    let mut is_there =
        session.here.is_none() || transfer.remote.session(&session.handle)?.is_some();
    let is_equal = until_equal(|| {
        let mut pulled = 0;
        if is_there {
            let one = transfer.pull(session)?;
            (done.session, done.version, pulled) = (one.session, one.version, one.operations);
            done.joined.extend(one.joined);
            done.secrets.extend(one.secrets);
        }
        let here = match &session.here {
            Some(here) if !is_there => here.clone(),
            // The pull may have replaced the session by a joined one.
            _ => transfer.store.session(&done.session)?,
        };
        let was_there = std::mem::replace(&mut is_there, true);
        let pushed = transfer.push(&here)?;
        done.pulled += pulled + pushed.pulled;
        done.pushed += pushed.operations;
        done.is_new_there |= !was_there && pushed.bytes > 0;
        done.version = pushed.version.unwrap_or(done.version);
        done.session = pushed.session;
        done.rewritten = pushed.rewritten.or(done.rewritten);
        done.joined.extend(pushed.joined);
        Ok(pulled + pushed.pulled + pushed.operations)
    })?;
    if !is_equal {
        done.set_unfinished(&transfer.known.name);
    }
    Ok(())
}

/// Exchanges until an exchange brings no operations, at most `MAX_ROUNDS` times. Returns whether
/// the last one brought none.
fn until_equal(
    mut exchange: impl FnMut() -> Result<u64, CommandError>,
) -> Result<bool, CommandError> {
    for _ in 0..MAX_ROUNDS {
        if exchange()? == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_ends_when_nothing_is_new_or_after_the_last_round() {
        for (new, rounds, is_equal) in [(0, 1, true), (3, 4, true), (7, 8, true), (8, 8, false)] {
            let mut count = 0;
            let ended = until_equal(|| {
                count += 1;
                Ok(u64::from(count <= new))
            });
            assert_eq!((ended.unwrap(), count), (is_equal, rounds), "{new}");
        }
    }
}

//! Finds the sessions that a push or a pull is about, and pushes or pulls each.

use super::{about, open_remote, remote_argument};
use crate::args::moment::MomentArg;
use crate::config::key;
use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::report::purges::PurgesReport;
use crate::report::transfer::{PulledSession, PushedSession};
use crate::verb::OpenedStore;
use crate::workspace::{self, SessionNeed};
use forge_store::admin::lower_priority;
use forge_store::error::Error;
use forge_store::model::time_grammar::{MomentBase, MomentExpression};
use forge_store::model::{SessionHandle, SessionKind, Timestamp};
use forge_store::shell::quoted;
use forge_store::store::remote::{
    FinishedPurges, KnownRemote, Remote, RemoteAccess, RemoteGrant, RemoteSession,
};
use forge_store::store::{Session, Store, WriteContext};
use std::collections::BTreeSet;

/// The minimum length of a handle's prefix that names a session.
const MIN_HANDLE_PREFIX: usize = 4;
/// The number of digits of its handle that are added to a session's name if another session has it.
const NAME_SUFFIX: usize = 4;

/// A session that is pushed or pulled.
pub struct SharedSession {
    pub handle: SessionHandle,
    /// The session in this store, if it is here.
    pub here: Option<Session>,
    /// The session on the remote, if it was looked up.
    there: Option<RemoteSession>,
}

impl SharedSession {
    /// Returns its name here, or else its name on the remote, or else its handle.
    pub fn name(&self) -> Result<String, CommandError> {
        Ok(match (&self.here, &self.there) {
            (Some(here), _) => here.summary()?.info.name,
            (None, Some(there)) => there.info.name.clone(),
            (None, None) => self.handle.to_string(),
        })
    }
}

/// A store with one of its remotes, open for pushes and pulls.
pub struct Transfer<'a> {
    pub store: &'a Store,
    act: &'a WriteContext,
    pub known: KnownRemote,
    pub remote: Remote,
}

impl<'a> Transfer<'a> {
    pub fn open(opened: &'a OpenedStore, known: KnownRemote) -> Result<Self, CommandError> {
        let remote = open_remote(&known)?;
        Ok(Self::new(&opened.store, &opened.write_context, known, remote))
    }

    /// Creates a transfer with a remote that is open already.
    pub const fn new(
        store: &'a Store,
        act: &'a WriteContext,
        known: KnownRemote,
        remote: Remote,
    ) -> Self {
        Self { store, act, known, remote }
    }

    /// Changes the remote with one of its own methods, such as [`Remote::allowing_secrets`], if
    /// this is wanted.
    #[must_use]
    pub fn when(self, wanted: bool, change: fn(Remote) -> Remote) -> Self {
        let remote = if wanted { change(self.remote) } else { self.remote };
        Self { remote, ..self }
    }

    /// Returns a session of this store with its handle.
    ///
    /// # Errors
    /// Any error of the store; also if the grant opens another session.
    pub fn own(&self, session: Session) -> Result<SharedSession, CommandError> {
        let info = session.summary()?.info;
        let handle = self.known.access.handle(&info.id).map_err(|error| {
            CommandError::from(error)
                .with_context(format!("the session '{}' is not shared with this grant", info.name))
        })?;
        Ok(SharedSession { handle, here: Some(session), there: None })
    }

    /// Returns the sessions that were pushed or pulled before; if there are none and a grant opens
    /// the remote, the session on the remote.
    pub fn shared(&self) -> Result<Vec<SharedSession>, CommandError> {
        let shared = self.store.shared_sessions(&self.known.access)?;
        if shared.is_empty() && self.known.access.key().is_none() {
            let there = remote_sessions(&self.remote, None)?.into_iter();
            return there.map(|session| self.located(session)).collect();
        }
        shared.into_iter().map(|session| self.own(session)).collect()
    }

    /// Returns the sessions on the remote; with a time, only what was written to or pushed then or
    /// later. Leaves out sessions that were dropped or pruned here, and says so.
    pub fn on_remote(
        &self,
        context: &Context,
        since: Option<Timestamp>,
    ) -> Result<Vec<SharedSession>, CommandError> {
        let mut sessions = Vec::new();
        for there in remote_sessions(&self.remote, since)? {
            if self.store.is_session_hidden(there.info.id)? {
                context.out.print_status(&format!(
                    "Left out the session '{}': it was dropped or pruned here.",
                    there.info.name
                ));
            } else {
                sessions.push(self.located(there)?);
            }
        }
        Ok(sessions)
    }

    /// Finds a session on the remote: the one that has this name or id here, or else the one that
    /// has this name, agent's id or beginning of a handle there.
    ///
    /// # Errors
    /// Not found; invalid if several sessions match.
    pub fn find(&self, name: &str) -> Result<SharedSession, CommandError> {
        let own = match self.store.session(name) {
            Err(Error::NotFound { .. }) => None,
            session => Some(self.own(session?)?),
        };
        if let Some(own) = own
            && self.remote.session(&own.handle)?.is_some()
        {
            return Ok(own);
        }
        self.located(find_on_remote(&self.known, &self.remote, name)?)
    }

    /// Returns a session on the remote with the one in this store, if it is here.
    pub fn located(&self, there: RemoteSession) -> Result<SharedSession, CommandError> {
        let here = match self.store.session(&there.info.id.to_string()) {
            Err(Error::NotFound { .. }) => None,
            session => Some(session?),
        };
        Ok(SharedSession { handle: there.handle, here, there: Some(there) })
    }

    /// Pushes a session of this store. Lowers the priority of this thread permanently, so that a
    /// writer on a busy machine need not wait for the push.
    pub fn push(&self, session: &Session) -> Result<PushedSession, CommandError> {
        lower_priority();
        let done = self.store.push(self.act, &self.remote, session);
        match done {
            Ok(done) => Ok(done.into()),
            Err(error) => Err(self.hinted(error, &session.summary()?.info.name)),
        }
    }

    /// Pulls a session. A session that is new here gets its name on the remote; if another
    /// session here has that name, followed by a dot and the beginning of its handle.
    pub fn pull(&self, session: &SharedSession) -> Result<PulledSession, CommandError> {
        let is_new = session.here.is_none();
        let name = session.there.as_ref().filter(|_| is_new).map(|there| &*there.info.name);
        let pull = |name| self.store.pull(self.act, &self.remote, &session.handle, name);
        let done = match (pull(name), name) {
            (Err(Error::Duplicate { kind: "session", .. }), Some(name)) => {
                let handle: String = session.handle.to_string().chars().take(NAME_SUFFIX).collect();
                pull(Some(&format!("{name}.{handle}")))
            }
            (done, _) => done,
        };
        match done {
            Ok(done) => Ok(PulledSession::new(done, is_new)),
            Err(error) => Err(self.hinted(error, &session.name()?)),
        }
    }

    /// Returns what a pull would bring, without changing the store.
    pub fn preview_pull(&self, session: &SharedSession) -> Result<PulledSession, CommandError> {
        let name = session.name()?;
        let preview = self.store.preview_pull(&self.remote, &session.handle);
        let preview = preview.map_err(|error| self.hinted(error, &name))?;
        Ok(PulledSession::preview(name, &preview, session.here.is_none()))
    }

    /// Adds to an error what to do next. `session` is the name of the session that it is about.
    pub fn hinted(&self, error: Error, session: &str) -> CommandError {
        let (to, from) = (
            remote_argument(" --to ", &self.known.name),
            remote_argument(" --from ", &self.known.name),
        );
        let session = quoted(session);
        match error {
            Error::RemoteKeyChanged => about(&self.known, error.into()),
            Error::Conflict(_) => CommandError::from(error)
                .hinted("nothing is lost: what is here stays here, and what is there stays there"),
            Error::SharedElsewhere { ref remote, .. } => {
                let removes = format!("'forge remote remove {remote}'");
                CommandError::from(error).hinted(format!(
                    "exchange a session through one remote: {removes} forgets that one here and \
                     leaves it as it is, and the next pull or push joins"
                ))
            }
            Error::OtherOrder { .. } => CommandError::from(error).hinted(format!(
                "exchange a session through one remote: it stays here and on both; 'forge remote \
                 remove {}' forgets this one here",
                self.known.name
            )),
            Error::RemoteHistory { .. } => CommandError::from(error).hinted(format!(
                "if that was done on purpose, 'forge push {session}{to} --accept-history' accepts \
                 it and pushes what is missing there, and 'forge pull {session}{from} \
                 --accept-history' only accepts it"
            )),
            Error::LostNotices { .. } => CommandError::from(error).hinted(format!(
                "the remote may have been set back: the next push or pull of a machine that has \
                 seen them writes them again; 'forge pull {session}{from} --accept-history' goes on \
                 without them, and may bring back what was purged"
            )),
            error => error.into(),
        }
    }

    /// Calls `transfer` for each session. An error of one session does not stop the others: the
    /// first error is returned at the end, the others are warnings. Only an unavailable remote
    /// stops all.
    pub fn each<S, T>(
        &self,
        context: &Context,
        sessions: &[S],
        transfer: impl Fn(&S) -> Result<T, CommandError>,
    ) -> (Vec<T>, Option<CommandError>) {
        let (mut done, mut failure) = (Vec::new(), None);
        for session in sessions {
            match transfer(session) {
                Ok(one) => done.push(one),
                Err(error) => {
                    let stops = error.kind() == CommandErrorKind::Unavailable;
                    match &failure {
                        None => failure = Some(error),
                        Some(_) => context.out.warn(error.message()),
                    }
                    if stops {
                        break;
                    }
                }
            }
        }
        let failure = failure.map(|error| {
            // The disk of the store can be full, too.
            let is_of_remote = matches!(error.store_error(), Some(Error::Depot(_)));
            match error.kind() {
                CommandErrorKind::Unavailable if is_of_remote => about(&self.known, error),
                _ => error,
            }
        });
        (done, failure)
    }

    /// Returns what pushes and pulls did because of purges since the last call.
    pub fn purges_so_far(&self) -> PurgesReport {
        let activity = self.remote.take_purge_activity();
        PurgesReport::from(FinishedPurges { activity, ..FinishedPurges::default() })
    }

    /// Warns of sessions that were skipped because they do not open with the rotated key. Returns
    /// `failure`, or else the first error of a session that was skipped because it is damaged.
    pub fn skipped(
        &self,
        context: &Context,
        mut failure: Option<CommandError>,
    ) -> Option<CommandError> {
        for error in self.remote.take_unopened() {
            let text = error.to_string();
            if failure.as_ref().is_some_and(|known| known.message() == text) {
                continue;
            }
            if failure.is_some() || matches!(error, Error::UnopenedSession { .. }) {
                context.out.warn(&text);
            } else {
                failure = Some(error.into());
            }
        }
        failure
    }

    /// Finishes the purges after pushes or pulls whose first error was `failure`, unless the remote
    /// is unavailable. Warns of what cannot be undone and of what is left to do. Returns a report,
    /// and the first error.
    pub fn finish_purges(
        &self,
        context: &Context,
        failure: Option<CommandError>,
    ) -> (PurgesReport, Option<CommandError>) {
        let failure = self.skipped(context, failure);
        let stops = |error: &CommandError| error.kind() == CommandErrorKind::Unavailable;
        let (report, failure) = match failure {
            Some(error) if stops(&error) => (self.purges_so_far(), Some(error)),
            failure => {
                let (finished, done) = self.store.finish_purges(self.act, &self.remote);
                let failure = match (done, failure) {
                    (Ok(()), failure) => failure,
                    (Err(error), None) => Some(error.into()),
                    (Err(error), Some(first)) => {
                        context.out.warn(CommandError::from(error).message());
                        Some(first)
                    }
                };
                (PurgesReport::from(finished), failure)
            }
        };
        report.warn(&self.known.name, &context.out);
        (report, failure)
    }
}

/// Returns the sessions on a remote; with a time, only what was written to or pushed then or later.
/// The session that was written last comes first, so that it becomes the current one of an empty
/// store.
pub fn remote_sessions(
    remote: &Remote,
    since: Option<Timestamp>,
) -> Result<Vec<RemoteSession>, CommandError> {
    let mut there = remote.sessions()?;
    there.retain(|session| session.summary.last_event.max(session.last_push) >= since);
    there.sort_by_key(|session| std::cmp::Reverse(session.summary.last_event));
    Ok(there)
}

/// Returns the time that a moment names.
///
/// # Errors
/// Invalid if the moment is not a time (but a tag, for example).
pub fn time_of(context: &Context, moment: &MomentArg) -> Result<Timestamp, CommandError> {
    let expression = context.moment(moment)?;
    let MomentExpression { base: MomentBase::Time(time), back: 0 } = expression else {
        return Err(CommandError::invalid(format!("'{}' is not a time", moment.as_str()))
            .hinted("write one such as -7d, 'yesterday 14:30' or 2026-02-01"));
    };
    if let Some(note) = &time.note {
        context.out.warn(&note.to_string());
    }
    Ok(time.time)
}

/// Finds a session on a remote by its name, by its agent's own id of it, or by the beginning of its
/// handle.
///
/// # Errors
/// Not found; invalid if several sessions match.
pub fn find_on_remote(
    known: &KnownRemote,
    remote: &Remote,
    name: &str,
) -> Result<RemoteSession, CommandError> {
    let mut found = remote.sessions()?;
    found.retain(|one| {
        one.info.name == name
            || one.info.agent_session.as_deref() == Some(name)
            || (name.len() >= MIN_HANDLE_PREFIX && one.handle.to_string().starts_with(name))
    });
    let list = format!("'forge session list --remote{}'", remote_argument("=", &known.name));
    let skipped = remote.take_unopened().into_iter().next();
    match found.len() {
        0 if known.access.key().is_none() => Err(CommandError::from(Error::NotGranted)
            .with_context(format!("cannot look for the session '{name}' on {}", known.name))
            .hinted(format!("{list} names the one that it opens"))),
        0 => {
            let text = format!("there is no session '{name}' on {}", known.name);
            let error =
                CommandError::not_found(text).hinted(format!("{list} names those that are there"));
            Err(skipped.into_iter().fold(error, |error, skipped| {
                error.hinted(format!("it may be one that does not open: {skipped}"))
            }))
        }
        1 => Ok(found.remove(0)),
        count => {
            let handles: Vec<String> = found.iter().map(|one| one.handle.to_string()).collect();
            let message = format!(
                "{count} sessions on {} are named '{name}': {}",
                known.name,
                handles.join(", ")
            );
            Err(CommandError::invalid(message)
                .hinted("name the beginning of one of these handles instead"))
        }
    }
}

/// Returns the sessions of this store that a push is about: those with these names, or all of
/// the kinds that the settings name, or else the one that the grant opens, or the current one.
pub fn pushed_sessions(
    context: &Context,
    store: &Store,
    known: &KnownRemote,
    names: &[String],
    all: bool,
) -> Result<Vec<Session>, CommandError> {
    if all {
        let named = context.config.words(key::PUSH_KINDS);
        let is_named = |kind: &SessionKind| named.iter().any(|name| name == kind.name());
        let kinds: Vec<SessionKind> = SessionKind::ALL.into_iter().filter(is_named).collect();
        let all = store.latest_sessions(&kinds, usize::MAX)?;
        return all.iter().map(|one| Ok(store.session(&one.info.id.to_string())?)).collect();
    }
    if names.is_empty() {
        return Ok(vec![match &known.access {
            RemoteAccess::Grant(grant) if context.session().is_none() => {
                granted_session(store, grant)?
            }
            _ => workspace::choose_session(context, store, SessionNeed::Existing)?,
        }]);
    }
    workspace::named_sessions(store, names)
}

/// Returns the session that a grant opens.
fn granted_session(store: &Store, grant: &RemoteGrant) -> Result<Session, CommandError> {
    match store.session(&grant.session.to_string()) {
        Err(Error::NotFound { .. }) => {
            Err(CommandError::not_found("the session that the grant opens is not here yet")
                .hinted("'forge pull' brings it"))
        }
        found => Ok(found?),
    }
}

/// Returns the sessions without repetitions, in the order of their first occurrences.
#[must_use]
pub fn once(sessions: Vec<SharedSession>) -> Vec<SharedSession> {
    let mut known = BTreeSet::new();
    sessions.into_iter().filter(|session| known.insert(session.handle)).collect()
}

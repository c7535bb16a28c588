//! Exchanges an agent's session with the remote: pulls it when it starts, and syncs it after hooks
//! have saved in it.
//!
//! Each exchange is a separate process, `forge hook remote pull` or `forge hook remote sync`. It
//! finds the store and the session in its environment, prints nothing, and writes its outcome to
//! the [`log`]. A hook waits for a pull, and for the last sync with the setting `sync.wait`, but
//! only for a limited time. The exchange goes on after the hook and the agent have ended.

mod exchange_process;
mod pending_sentences;
mod stamp;

pub use exchange_process::run;
pub use pending_sentences::take as take_pending_sentences;

use super::append_to_log;
use super::log::{self, HookLogEntry, HookOutcome};
use crate::config::key;
use crate::context::Context;
use crate::error::CommandError;
use crate::remote::{self, Remotes};
use crate::report::remote::FailedExchange;
use crate::workspace;
use forge_agents::hook::{HookEvent, HookEventKind, SessionStartKind};
use forge_store::store::Store;
use stamp::ExchangeStamp;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The word that replaces an agent's name on the command line and in the log of these processes.
pub const WORD: &str = "remote";
const PULL: &str = "pull";
const SYNC: &str = "sync";
/// The sync that the hook of the session's end waits for. It first waits until another exchange of
/// the session has ended.
const LAST_SYNC: &str = "last-sync";
/// How long the start of a session waits for the pull.
const PULL_PATIENCE: Duration = Duration::from_secs(2);
/// How long the end of a session waits for the sync, with the setting `sync.wait`.
const SYNC_PATIENCE: Duration = Duration::from_secs(10);
/// The minimum time, in microseconds, from the last requested sync of a session to one that a tool
/// call starts.
const TOOL_MICROS: i64 = 60_000_000;

/// When a session is synced after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyncUrgency {
    /// Now, unless a sync was requested less than `TOOL_MICROS` ago.
    IfOld,
    Now,
    /// Now, and the hook waits for it if `sync.wait` is set.
    Last,
}

/// A sync that is to be started after the hook has answered.
pub struct PendingSync {
    store: Store,
    session: String,
    urgency: SyncUrgency,
}

/// A sync that the hook waits for before it ends.
pub struct AwaitedSync {
    store: Store,
    session: String,
    process: Child,
}

/// Pulls the session of an agent that starts, if the remote has it. Returns whether a pull was
/// started and ended in time.
pub fn pull(context: &Context, store: &Store, event: &HookEvent) -> bool {
    let HookEventKind::SessionStart { start } = event.kind else { return false };
    // After a compaction, the session only continues: it was pulled when it started.
    if start == SessionStartKind::Compact || !is_set_up(context, store) {
        return false;
    }
    let Some(session) = event.session.as_deref() else { return false };
    let Some(process) = start_exchange(context, store, session, PULL) else { return false };
    wait_for(context, store, (session, PULL), process, PULL_PATIENCE)
}

impl PendingSync {
    /// Returns the sync that is due after an event; `None` if no sync is due.
    #[must_use]
    pub fn after(context: &Context, store: &Store, event: &HookEvent) -> Option<Self> {
        let urgency = match event.kind {
            HookEventKind::ToolUsed(_) => SyncUrgency::IfOld,
            HookEventKind::PreCompact { .. } | HookEventKind::Stop => SyncUrgency::Now,
            HookEventKind::SessionEnd { .. } => SyncUrgency::Last,
            _ => return None,
        };
        if !is_set_up(context, store) {
            return None;
        }
        Some(Self { store: store.clone(), session: event.session.clone()?, urgency })
    }

    /// Starts the sync, unless it follows a tool call and another one was requested recently.
    /// Returns the sync if the hook should wait for it.
    #[must_use]
    pub fn start(self, context: &Context) -> Option<AwaitedSync> {
        let Self { store, session, urgency } = self;
        let stamp = ExchangeStamp::of(&store, &session)?;
        let is_new = stamp.age_micros(context.now).is_some_and(|age| age < TOOL_MICROS);
        if urgency == SyncUrgency::IfOld && is_new {
            return None;
        }
        if let Err(error) = stamp.touch(context.now) {
            note_failure(context, &store, (&session, SYNC), &error_text(&error));
            return None;
        }
        let is_awaited = urgency == SyncUrgency::Last && context.config.is_on(key::SYNC_WAIT);
        let verb = if is_awaited { LAST_SYNC } else { SYNC };
        let process = start_exchange(context, &store, &session, verb)?;
        is_awaited.then_some(AwaitedSync { store, session, process })
    }
}

impl AwaitedSync {
    /// Waits until the sync has ended, but not longer than `SYNC_PATIENCE`.
    pub fn wait(self, context: &Context) {
        let Self { store, session, process } = self;
        wait_for(context, &store, (&session, SYNC), process, SYNC_PATIENCE);
    }
}

/// Returns whether hooks exchange sessions of this store. Makes no request to the remote.
fn is_set_up(context: &Context, store: &Store) -> bool {
    context.config.is_on(key::SYNC_HOOKS) && remote::has_default(context, store)
}

/// Starts the process of an exchange. If that fails, logs the error and returns `None`.
fn start_exchange(context: &Context, store: &Store, session: &str, verb: &str) -> Option<Child> {
    let started = std::env::current_exe().and_then(|program| {
        let mut command = Command::new(program);
        command.args(["hook", WORD, verb]).env("FORGE_SESSION", session);
        command.env("FORGE_STORE", store.path().unwrap_or(&context.cwd));
        // The agent waits until the pipes of its hook are closed, and may end all processes in the
        // hook's group.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.process_group(0).spawn()
    });
    let failed = |error| {
        let error = CommandError::io("cannot start the exchange with the remote", error);
        note_failure(context, store, (session, logged_verb(verb)), &error_text(&error));
    };
    started.map_err(failed).ok()
}

/// Waits until a process has ended, for at most `patience`. Returns whether it has ended. If not,
/// it goes on in the background, and the log says so.
fn wait_for(
    context: &Context,
    store: &Store,
    exchange: (&str, &str),
    mut process: Child,
    patience: Duration,
) -> bool {
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        let _ = process.wait();
        // The receiver is dropped after the time limit.
        let _ = sender.send(());
    });
    let in_time = ended.recv_timeout(patience).is_ok();
    if !in_time {
        let seconds = patience.as_secs();
        let text = format!("it took longer than {seconds} s and goes on in the background");
        note_failure(context, store, exchange, &text);
    }
    in_time
}

/// Returns the word that the log has for a verb: a last sync is logged as a sync.
fn logged_verb(verb: &str) -> &str {
    if verb == LAST_SYNC { SYNC } else { verb }
}

/// Writes to the log that an exchange failed or took too long.
fn note_failure(context: &Context, store: &Store, (session, verb): (&str, &str), error: &str) {
    let mut line = HookLogEntry::new(context.now, WORD, verb);
    line.session = Some(session.to_owned());
    line.set_error(error);
    append_exchange(context, store, line);
}

fn append_exchange(context: &Context, store: &Store, mut line: HookLogEntry) {
    if let Some(redactor) = workspace::redactor(context) {
        line.redact(&redactor);
    }
    append_to_log(&context.environment, store.path(), &line);
}

/// Returns the text of an error, with its causes and its first hint.
fn error_text(error: &CommandError) -> String {
    let mut text = error.message_with_causes();
    error.hints().first().into_iter().for_each(|hint| text += &format!(" ({hint})"));
    text
}

/// Returns the last exchange of each agent's session, if it failed. A failed sync is left out if
/// the session has nothing to push any more.
///
/// # Errors
/// If the remotes of the store, the log, or a session cannot be read.
pub fn failed_exchanges(
    context: &Context,
    store: &Store,
) -> Result<Vec<FailedExchange>, CommandError> {
    if !remote::has_default(context, store) {
        return Ok(Vec::new());
    }
    let Some(notes) = store.notes() else { return Ok(Vec::new()) };
    let lines = log::read(&log::store_log(&notes))
        .map_err(|error| CommandError::io("cannot read the log of the hooks", error))?;
    let access = Remotes::of(context, store)?.find(None)?.access.clone();
    let mut failed: Vec<FailedExchange> = Vec::new();
    for line in lines.into_iter().filter(|line| line.agent == WORD) {
        let session = line.session.unwrap_or_default();
        failed.retain(|known| known.session != session);
        if line.outcome == HookOutcome::Failed {
            let error = line.error.unwrap_or_default();
            failed.push(FailedExchange { session, verb: line.event, time: line.time, error });
        }
    }
    let mut left = Vec::new();
    for one in failed {
        let is_left = match store.agent_session(&one.session)? {
            Some(session) if one.verb == SYNC => store.unpushed(&access, &session)?.operations > 0,
            _ => true,
        };
        left.extend(is_left.then_some(one));
    }
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::GlobalArgs;
    use crate::context::Environment;
    use forge_store::store::Options;

    /// Regression: a last sync that could not be started was in the log as `last-sync`. `forge
    /// doctor` then said "could not last-sync", also after the session was pushed.
    #[test]
    fn a_last_sync_that_cannot_start_is_logged_as_a_sync() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(&folder.path().join(".forge"), Options::default()).unwrap();
        let environment = Environment::from([("FORGE_KEYRING", "/nowhere")]);
        let context = Context::capturing(GlobalArgs::default(), environment).unwrap();
        // A variable cannot hold the byte 0.
        for (verb, expected) in [(LAST_SYNC, SYNC), (SYNC, SYNC), (PULL, PULL)] {
            assert!(start_exchange(&context, &store, "a\0b", verb).is_none());
            let logged = log::read(&log::store_log(&store.notes().unwrap())).unwrap();
            let line = logged.last().unwrap();
            assert_eq!((&*line.event, line.outcome), (expected, HookOutcome::Failed));
        }
    }
}

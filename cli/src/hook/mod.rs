//! Handles the call of a hook by an agent: `forge hook AGENT EVENT`.
//!
//! Nothing here may stop, slow down or break the agent: every call ends with exit code 0, an answer
//! in the agent's own form, and a line in the [`log`]. `docs/hooks.md` says what is saved, and
//! when.

pub mod agent_process;
pub mod handover;
pub mod handover_brief;
pub mod input;
pub mod log;
pub mod recorder;
pub mod remote_exchange;
pub mod transcript_tail;

use crate::commands::prune;
use crate::config::IgnoredSetting;
use crate::context::{self, Context, Environment};
use crate::discovery;
use crate::error::{CommandError, CommandErrorKind};
use crate::workspace;
use forge_agents::hook::{HookAgent, HookEvent, HookEventKind, answer, plain, reply_budget};
use forge_store::error::{BackendError, Error};
use forge_store::redact::{PartEnding, Redactor, TextForm};
use forge_store::store::Store;
use handover::HandoverText;
use log::{HookLogEntry, HookOutcome};
use recorder::{HookRecorder, follows_compaction, is_about_compaction};
use remote_exchange::PendingSync;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The seconds that a hook waits for a connection to the database of a store, unless the address
/// or the user sets another time. The time is short because the agent waits for the hook.
const CONNECT_SECONDS: &str = "2";

/// A call that is being handled.
struct HookCall<'c> {
    context: &'c Context,
    began: Instant,
    line: HookLogEntry,
}

/// The answer to a call, and what remains to be done after it.
#[derive(Default)]
struct HookResult {
    /// The store that was used.
    store: Option<PathBuf>,
    answer: String,
    /// The text for the agent in the answer.
    handover: Option<HandoverText>,
    /// The store whose index is brought up to date after the answer.
    store_to_index: Option<Store>,
    /// Whether the agent's turn ended with this event.
    turn_ended: bool,
    /// Whether the agent's session ended with this event.
    ended: bool,
    /// The sync to start after the answer.
    sync: Option<PendingSync>,
}

/// An event that was read, with its store.
struct ReceivedEvent {
    event: HookEvent,
    store: Result<PathBuf, CommandError>,
}

/// Why an event cannot be handled.
struct RejectedEvent {
    reason: String,
    store: Option<PathBuf>,
}

/// Handles one call. Never fails: errors go to the log.
pub fn run(agent: &str, event: &str, context: &mut Context) {
    if agent == remote_exchange::WORD {
        return remote_exchange::run(event, context);
    }
    let began = Instant::now();
    context.environment.set_default("PGCONNECT_TIMEOUT", CONNECT_SECONDS);
    let line = HookLogEntry::new(context.now, agent, event);
    let agent = HookAgent::from_word(agent)
        .ok_or_else(|| format!("'{agent}' is not an agent that forge knows"));
    let received = agent.map(|agent| (agent, read(agent, event, context)));
    let mut call = HookCall { context, began, line };
    let done = match received {
        Err(reason) => {
            call.line.set_error(&reason);
            HookResult::default()
        }
        Ok((agent, Err(RejectedEvent { reason, store }))) => {
            call.line.set_error(&reason);
            let empty = HookEvent::read(agent, event, b"{}").ok();
            let answer = empty.map(|event| answer(&event, None)).unwrap_or_default();
            HookResult { store, answer, ..HookResult::default() }
        }
        Ok((_, Ok(received))) => call.handle(&received.event, received.store),
    };
    let mut stdout = std::io::stdout();
    let written = stdout.write_all(done.answer.as_bytes()).and_then(|()| stdout.flush());
    if let (Ok(()), Some(_)) = (&written, &done.handover)
        && call.line.outcome != HookOutcome::Failed
    {
        call.line.outcome = HookOutcome::Handed;
    }
    call.end(done.store.as_deref());
    let awaited = done.sync.and_then(|sync| sync.start(context));
    if let Some(store) = &done.store_to_index {
        if done.turn_ended {
            workspace::index_turn(store);
        } else {
            workspace::catch_up_index(store);
        }
        if done.ended
            && let Err(error) = prune::prune_automatically(context, store)
        {
            tracing::info!(error = error.message(), "it was not pruned");
        }
    }
    // Noted only after the work above, because an agent ignores the answer of a hook that is
    // stopped before its end.
    if let (Ok(()), Some(handover)) = (written, done.handover)
        && let Err(error) = handover.note_delivered()
    {
        tracing::info!(error = error.message(), "that it was handed over could not be noted");
    }
    if let Some(sync) = awaited {
        sync.wait(context);
    }
}

fn read(
    agent: HookAgent,
    name: &str,
    context: &mut Context,
) -> Result<ReceivedEvent, RejectedEvent> {
    let here = |context: &Context| store_directory(context, agent, None).ok();
    let rejected = |reason: String, store| RejectedEvent { reason, store };
    let input = input::read()
        .map_err(|error| rejected(format!("cannot read standard input: {error}"), here(context)))?;
    let text = plain(&input).map_err(|error| rejected(error.to_string(), here(context)))?;
    let event = HookEvent::read_plain(agent, name, &text)
        .map_err(|error| rejected(error.to_string(), here(context)))?;
    let input = text.as_bytes();
    // The settings of the store that is written to apply, wherever the agent called from. They also
    // say what is a secret.
    let store = store_directory(context, agent, Some(&event));
    if let Ok(store) = &store {
        context
            .use_settings_of(store)
            .map_err(|error| rejected(error.message_with_causes(), Some(store.clone())))?;
    }
    // Secrets are redacted before texts are cut, because half a secret may not be recognised.
    let redactor = workspace::redactor(context);
    let clean =
        redactor.as_ref().map(|it| it.clean_part(input, TextForm::Json, PartEnding::End).bytes);
    let event = match clean.filter(|clean| **clean != *input) {
        Some(clean) => HookEvent::read(agent, name, &clean)
            .map_err(|error| rejected(error.to_string(), store.as_ref().ok().cloned()))?,
        None => event,
    };
    Ok(ReceivedEvent { event, store })
}

impl HookCall<'_> {
    fn handle(&mut self, event: &HookEvent, store: Result<PathBuf, CommandError>) -> HookResult {
        self.line.session.clone_from(&event.session);
        self.line.event.clone_from(&event.name);
        let nothing = || answer(event, None);
        let store = match store {
            Ok(store) => store,
            Err(error) => {
                self.line.outcome = HookOutcome::Ignored;
                self.line.set_reason(error.message());
                self.line.directory = event.cwd.clone().or(Some(self.context.cwd.clone()));
                return HookResult { answer: nothing(), ..HookResult::default() };
            }
        };
        let mut done =
            HookResult { store: Some(store.clone()), answer: nothing(), ..HookResult::default() };
        let why_not = match (&event.kind, &event.session) {
            (HookEventKind::Other, _) => Some("forge has no use for this event"),
            (_, None) => Some("the agent does not say which session this is"),
            _ => None,
        };
        if let Some(why_not) = why_not {
            self.line.outcome = HookOutcome::Ignored;
            self.line.set_reason(why_not);
            return done;
        }
        // A panic here must not reach the agent.
        let mut work = || crate::panic::catch_panics(|| self.work(event, &store, &mut done));
        let worked = match work() {
            // A sync may have replaced the session meanwhile, when it joined what others wrote.
            Err(error) if error.kind() == CommandErrorKind::Conflict => work(),
            worked => worked,
        };
        if let Err(error) = worked {
            let is_saved = self.line.outcome == HookOutcome::Saved;
            self.line.set_error(&error.message_with_causes());
            // What cannot be written is kept in the spool until the store is repaired, or its
            // database can be reached.
            let is_spooled = match error.kind() {
                CommandErrorKind::Corrupt
                | CommandErrorKind::Forged
                | CommandErrorKind::Unkeyed => true,
                _ => is_database_away(&error) && !is_saved,
            };
            if is_spooled {
                match recorder::spool_event(self.context, event, &store) {
                    Ok(true) => self.line.outcome = HookOutcome::Saved,
                    Ok(false) => {}
                    Err(error) => self.line.set_error(&error.message_with_causes()),
                }
            }
        }
        done
    }

    fn work(
        &mut self,
        event: &HookEvent,
        path: &Path,
        done: &mut HookResult,
    ) -> Result<(), CommandError> {
        let mut recorder = HookRecorder::open(self.context, event, path)?;
        if let HookEventKind::ToolUsed(_) = event.kind {
            recorder.save_tool_call()?;
            recorder.sync(&mut self.line)?;
            done.sync = PendingSync::after(self.context, &recorder.store, event);
            hand_over(&mut recorder, event, done)?;
            self.answer_with_notices(&recorder, event, done, None);
            return Ok(());
        }
        self.export_session(event, path);
        if remote_exchange::pull(self.context, &recorder.store, event) {
            recorder.find_session()?;
        }
        let looks_at_code = matches!(
            event.kind,
            HookEventKind::PreCompact { .. }
                | HookEventKind::Stop
                | HookEventKind::SubAgentStart
                | HookEventKind::SubAgentStop
                | HookEventKind::Task
                | HookEventKind::SessionEnd { .. }
        );
        if looks_at_code {
            recorder.start_code_capture();
        }
        // An unreadable transcript must not prevent saving the rest.
        let looked = if is_about_compaction(event) { recorder.read_tail() } else { Ok(()) };
        let imported = looked.and_then(|()| recorder.import_transcripts());
        // A lock that another process holds must not prevent the handover: what cannot wait for the
        // lock is written to the spool.
        let is_locked = |outcome: &Result<(), CommandError>| {
            outcome.as_ref().is_err_and(|error| error.kind() == CommandErrorKind::Locked)
        };
        if is_locked(&imported) {
            recorder.stop_waiting()?;
        }
        let saved = self.save(&mut recorder, event);
        if is_locked(&saved) {
            recorder.stop_waiting()?;
        } else if saved.is_err() {
            return saved;
        }
        recorder.sync(&mut self.line)?;
        done.sync = PendingSync::after(self.context, &recorder.store, event);
        done.store_to_index = Some(recorder.store.clone());
        done.ended = matches!(event.kind, HookEventKind::SessionEnd { .. });
        done.turn_ended = done.ended || matches!(event.kind, HookEventKind::Stop);
        hand_over(&mut recorder, event, done)?;
        if done.handover.is_none() {
            let greeting = handover::greeting(&recorder, event)?;
            self.answer_with_notices(&recorder, event, done, greeting);
        }
        imported.and(saved)
    }

    /// Puts into an answer without a handover what exchanges with a remote did, and a greeting.
    fn answer_with_notices(
        &mut self,
        recorder: &HookRecorder<'_>,
        event: &HookEvent,
        done: &mut HookResult,
        greeting: Option<String>,
    ) {
        if done.handover.is_some() || reply_budget(event).is_none() {
            return;
        }
        let session = event.session.as_deref();
        let exchanged = session
            .and_then(|session| remote_exchange::take_pending_sentences(&recorder.store, session));
        let text: String = exchanged.into_iter().chain(greeting).collect();
        if !text.is_empty() {
            done.answer = answer(event, Some(&text));
            self.line.outcome = HookOutcome::Handed;
        }
    }

    /// Saves what the event reports and the import of the transcript does not save.
    fn save(
        &mut self,
        recorder: &mut HookRecorder<'_>,
        event: &HookEvent,
    ) -> Result<(), CommandError> {
        let line = &mut self.line;
        match &event.kind {
            HookEventKind::PreCompact { automatic, tokens } => {
                recorder.record_announcement(*automatic, *tokens, line)
            }
            HookEventKind::PostCompact { automatic, summary } => {
                recorder.record_compaction(*automatic, summary.as_deref(), line)
            }
            HookEventKind::SessionStart { .. } if follows_compaction(event) => {
                recorder.record_compaction(None, None, line)
            }
            HookEventKind::Prompt { .. } => recorder.save_prompt(),
            HookEventKind::Stop
            | HookEventKind::SubAgentStart
            | HookEventKind::SubAgentStop
            | HookEventKind::Task
            | HookEventKind::SessionEnd { .. } => recorder.save_code(line),
            _ => Ok(()),
        }
    }

    /// Makes the session known to the commands that the agent runs: by a note about the agent's
    /// process, and in the file of variables for the agent's shell, if there is one.
    fn export_session(&mut self, event: &HookEvent, store: &Path) {
        let Some(session) = &event.session else { return };
        let keyring = self.context.environment.keyring();
        if let Some(notes) = Store::notes_of(store, keyring.as_deref()) {
            agent_process::note_session(&notes, event.agent, session);
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let file = self.context.environment.path("CLAUDE_ENV_FILE");
        let (Some(file), true) = (file, session.chars().all(plain)) else { return };
        let line = format!("export FORGE_SESSION='{session}'\n");
        if std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with(&line)) {
            return;
        }
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(&file);
        if let Err(error) = opened.and_then(|mut file| file.write_all(line.as_bytes())) {
            self.line.set_reason(&format!("cannot write to CLAUDE_ENV_FILE: {error}"));
        }
    }

    /// Completes the line of the log, redacts it and writes it.
    fn end(mut self, store: Option<&Path>) {
        self.line.micros = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let ignored = self.context.config.ignored();
        if store.is_some() && self.line.error.is_none() && !ignored.is_empty() {
            self.line.set_reason(&IgnoredSetting::describe(ignored));
        }
        if let Some(redactor) = workspace::redactor(self.context) {
            self.line.redact(&redactor);
        }
        append_to_log(&self.context.environment, store, &self.line);
    }
}

/// Puts the text for the agent into the answer, if there is one.
fn hand_over(
    recorder: &mut HookRecorder<'_>,
    event: &HookEvent,
    done: &mut HookResult,
) -> Result<(), CommandError> {
    if let Some(handover) = handover::next_handover(recorder, event)? {
        done.answer = answer(event, Some(&handover.text));
        done.handover = Some(handover);
    }
    Ok(())
}

/// Writes a line to the log of the store; if there is no such log, to the user's log.
fn append_to_log(environment: &Environment, store: Option<&Path>, line: &HookLogEntry) {
    let keyring = environment.keyring();
    let notes = store.and_then(|store| Store::notes_of(store, keyring.as_deref()));
    let log = notes.as_deref().map(log::store_log).or_else(|| log::user_log(environment));
    // A failure cannot be reported anywhere.
    let _ = log.map(|log| log::append(&log, line));
}

/// Logs a call that failed before its event was known.
pub fn note_failure(environment: &Environment, words: &[String], error: &CommandError) {
    let word = |place: usize| words.get(place).map(String::as_str).unwrap_or_default();
    let mut line = HookLogEntry::new(context::clock(), word(0), word(1));
    line.set_error(error.message());
    // The settings are not known at this point.
    line.redact(&Redactor::new());
    let store =
        std::env::current_dir().ok().and_then(|cwd| discovery::find_store(&cwd, environment).ok());
    append_to_log(environment, store.as_deref(), &line);
}

/// Returns whether a database was not reached, so that nothing was written to it.
fn is_database_away(error: &CommandError) -> bool {
    let source = std::error::Error::source(error);
    let error = source.and_then(|source| source.downcast_ref::<Error>());
    matches!(error, Some(Error::Backend(BackendError::Database { unsure: false, .. })))
}

/// The environment variables in which agents give their hooks the directory of the project.
const PROJECT_VARIABLES: [(HookAgent, &str); 3] = [
    (HookAgent::Claude, "CLAUDE_PROJECT_DIR"),
    (HookAgent::Gemini, "GEMINI_PROJECT_DIR"),
    (HookAgent::Cursor, "CURSOR_PROJECT_DIR"),
];

/// Returns the directory of the project from the variable of this agent.
fn project_directory(environment: &Environment, agent: HookAgent) -> Option<PathBuf> {
    let (_, name) = PROJECT_VARIABLES.iter().find(|(known, _)| *known == agent)?;
    environment.directory(name)
}

/// Changes to a directory that exists if the current one was removed: an agent may still run after
/// its worktree was removed. Tries the directories in `PROJECT_VARIABLES`, the directories above
/// the removed one, and the root.
pub fn leave_removed_directory(environment: &Environment) {
    if std::env::current_dir().is_ok() {
        return;
    }
    let here = environment.directory("PWD");
    let projects = PROJECT_VARIABLES.iter().filter_map(|(_, name)| environment.directory(name));
    let above = here.iter().flat_map(|path| path.ancestors()).map(Path::to_owned);
    let mut places = projects.chain(above).chain([PathBuf::from("/")]);
    // If even the root cannot be entered, the call fails with the reason, and is logged.
    let _ = places.find(|place| std::env::set_current_dir(place).is_ok());
}

/// Finds the store of the project that an agent works in: the store that is set explicitly, or else
/// the first store found from these directories: the agent's variable for the project, the agent's
/// working directory, the directories open in the agent's editor, and this process's directory.
fn store_directory(
    context: &Context,
    agent: HookAgent,
    event: Option<&HookEvent>,
) -> Result<PathBuf, CommandError> {
    if context.global.store.is_some() {
        return context.store_directory();
    }
    let project = project_directory(&context.environment, agent);
    let reported = event.into_iter().flat_map(|event| event.cwd.iter().chain(&event.roots));
    let reported = reported.filter(|path| path.is_absolute()).cloned();
    let mut first = None;
    for directory in project.into_iter().chain(reported).chain([context.cwd.clone()]) {
        match discovery::find_store(&directory, &context.environment) {
            Ok(store) => return Ok(store),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or_else(|| CommandError::not_found("no store here")))
}

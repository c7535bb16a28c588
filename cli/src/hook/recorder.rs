//! Saves what a hook reports: new lines of the transcript, prompts, tool calls, the state of the
//! code, and compactions.

mod code_capture;
mod compaction_event;

use super::log::{HookLogEntry, HookOutcome};
use super::transcript_tail::{self, TranscriptTail};
use crate::compaction;
use crate::config::key;
use crate::context::{Context, Environment};
use crate::error::CommandError;
use crate::git::CapturedCheckout;
use crate::transcript::{TranscriptImportOptions, TranscriptImporter};
use crate::workspace::{self, StoreAccess};
use forge_agents::claude_code::{TranscriptDialect, transcript_elsewhere};
use forge_agents::hook::{
    HookAgent, HookEvent, HookEventKind, SessionStartKind, prompt_fact, tool_facts,
};
use forge_agents::session_name;
use forge_store::model::{AutoTrigger, Checkpoint, Fact, Kind, SessionKind, Value};
use forge_store::store::{NewSession, Session, SessionWrite, Store, WriteContext, WriteReport};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// The maximum time that a hook waits for another writer.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// The minimum age of the latest checkpoint at which a hook makes another one, in microseconds.
/// Checkpoints of compactions are always made.
const THROTTLE_MICROS: i64 = 60_000_000;
/// The number of newest prompts among which a prompt is searched for that the hook of another
/// installation has already saved.
const PROMPTS: usize = 16;
/// The number of newest `code` facts that are searched for the last captured state.
const EDITS: usize = 64;

/// The work of a hook on a store.
pub struct HookRecorder<'c> {
    pub store: Store,
    /// The session of the agent, if it exists.
    pub session: Option<Session>,
    /// The author, verb and time of writes.
    pub act: WriteContext,
    /// The last message of the transcript, if it was read.
    pub tail: Option<TranscriptTail>,
    context: &'c Context,
    event: &'c HookEvent,
    /// The path of the transcript, once it was looked for.
    transcript: OnceCell<Option<PathBuf>>,
    /// The folder of the store.
    path: PathBuf,
    /// Whether anything was written.
    saved: bool,
    /// Whether this hook has stopped waiting for the lock of another process.
    locked: bool,
    /// Receives the state of the code and the time that git took.
    code: Option<Receiver<(Result<CapturedCheckout, CommandError>, Duration)>>,
}

impl<'c> HookRecorder<'c> {
    /// Opens the store for an event.
    pub fn open(
        context: &'c Context,
        event: &'c HookEvent,
        path: &Path,
    ) -> Result<Self, CommandError> {
        let store = open(context, path, context.lock_timeout().min(LOCK_PATIENCE))?;
        let act =
            WriteContext::hook(format!("hook {} {}", event.agent.word(), event.name), context.now);
        let mut recorder = Self {
            store,
            session: None,
            act,
            tail: None,
            context,
            event,
            transcript: OnceCell::new(),
            path: path.to_owned(),
            saved: false,
            locked: false,
            code: None,
        };
        recorder.find_session()?;
        Ok(recorder)
    }

    /// Stops waiting for the lock of another process. From then on, writes go to the spool where
    /// possible.
    pub fn stop_waiting(&mut self) -> Result<(), CommandError> {
        if self.locked {
            return Ok(());
        }
        self.locked = true;
        self.store = open(self.context, &self.path, Duration::ZERO)?;
        self.find_session()
    }

    /// Searches the store again for the session of the agent, because another process may have
    /// created or replaced the session.
    pub fn find_session(&mut self) -> Result<(), CommandError> {
        let found = self.event.session.as_ref().map(|id| self.store.agent_session(id));
        self.session = found.transpose()?.flatten();
        Ok(())
    }

    /// Notes that something was saved. If the write was spooled, another process holds the lock, so
    /// this hook stops waiting for it.
    fn check_spooled(&mut self, done: &WriteReport) -> Result<(), CommandError> {
        self.saved = true;
        if done.spooled { self.stop_waiting() } else { Ok(()) }
    }

    /// Changes a compaction's checkpoint, as [`compaction::amend_checkpoint`] does.
    pub fn amend(
        &mut self,
        session: &Session,
        known: &Checkpoint,
        amend: impl Fn(&mut Checkpoint),
    ) -> Result<(Checkpoint, bool), CommandError> {
        if !self.locked {
            match session.amend_checkpoint(&self.act, &known.id, &amend) {
                Err(error) if error.kind() == forge_store::error::ErrorKind::Locked => {
                    self.stop_waiting()?;
                }
                done => return Ok(done?),
            }
        }
        compaction::amend_checkpoint(
            self.session.as_ref().unwrap_or(session),
            &self.act,
            known,
            amend,
        )
    }

    /// Whether the settings allow the automatic checkpoints of hooks, and those that `key` names.
    fn makes_checkpoints(&self, key: &str) -> bool {
        let config = &self.context.config;
        config.is_on("auto_checkpoint.enabled") && config.is_on(key)
    }

    /// Whether the latest checkpoint is old enough for an automatic one.
    fn is_due(&self, session: &Session) -> Result<bool, CommandError> {
        let last = session.last_checkpoint_at()?;
        Ok(last.is_none_or(|last| self.act.now.micros_since(last) >= THROTTLE_MICROS))
    }

    /// Returns the session of the agent; creates it if necessary.
    fn begin_session(&mut self) -> Result<Option<Session>, CommandError> {
        let Some(id) = &self.event.session else { return Ok(None) };
        if self.session.is_none() {
            // The import of a transcript may have created it.
            self.session = self.store.agent_session(id)?;
        }
        if let Some(session) = &self.session {
            return Ok(Some(session.clone()));
        }
        let new = NewSession {
            name: name_of_new_session(self.event, id),
            kind: SessionKind::Debug,
            agent: Some(self.event.agent.session_word().to_owned()),
            agent_session: Some(id.clone()),
            started_at: None,
            takes_over: true,
        };
        let session = self.store.session_for_agent(&self.act, new)?;
        self.saved = true;
        Ok(Some(self.session.insert(session).clone()))
    }

    /// Creates the session if there is none, and saves the prompt if no transcript will contain it.
    pub fn save_prompt(&mut self) -> Result<(), CommandError> {
        let Some(session) = self.begin_session()? else { return Ok(()) };
        let Some(fact) = prompt_fact(self.event, self.act.now) else { return Ok(()) };
        let head = session.head()?;
        let known = session.recent_facts(&head, Kind::Prompt, PROMPTS)?;
        if known.iter().any(|known| known.fact.id == fact.id) {
            return Ok(());
        }
        let done = session.write(&self.act).fact(fact).commit()?;
        self.check_spooled(&done)
    }

    /// Saves a tool call with one append to the journal, without opening the index or running git.
    ///
    /// If the agent's calls have no ids and there is a transcript, the transcript is imported
    /// instead. Otherwise nothing would show later that the hook and the transcript report the same
    /// call.
    pub fn save_tool_call(&mut self) -> Result<(), CommandError> {
        let facts = tool_facts(self.event, self.act.now);
        let trigger = self.trigger_of(&facts);
        if self.is_unnamed_call() && self.transcripts().next().is_some() {
            self.import_transcripts()?;
            let Some(session) = self.session.clone().filter(|_| self.saved) else { return Ok(()) };
            if let Some(trigger) = trigger
                && self.is_due(&session)?
            {
                session.write(&self.act).event(trigger).commit()?;
            }
            return Ok(());
        }
        if facts.is_empty() {
            return Ok(());
        }
        let Some(session) = self.begin_session()? else { return Ok(()) };
        let mut write = session.write(&self.act).facts(facts, None);
        if let Some(trigger) = trigger
            && self.is_due(&session)?
        {
            write = write.event(trigger);
        }
        let done = write.commit()?;
        self.check_spooled(&done)
    }

    fn is_unnamed_call(&self) -> bool {
        matches!(&self.event.kind, HookEventKind::ToolUsed(used) if used.call.is_none())
    }

    /// Returns the trigger of the checkpoint that the facts of a tool call cause, if there is one.
    fn trigger_of(&self, facts: &[Fact]) -> Option<AutoTrigger> {
        let of = |kind| facts.iter().any(|fact| fact.kind == kind);
        [
            (
                Kind::Verification,
                AutoTrigger::VerificationComplete,
                "auto_checkpoint.verification_complete",
            ),
            (Kind::Code, AutoTrigger::CodeModified, "auto_checkpoint.code_modified"),
        ]
        .into_iter()
        .find(|(kind, _, key)| of(*kind) && self.makes_checkpoints(key))
        .map(|(_, trigger, _)| trigger)
    }

    /// Returns the transcript that the event names. It is looked for only here, because the hook of
    /// a tool call seldom needs it.
    fn transcript(&self) -> Option<&PathBuf> {
        let find = || {
            let reported = self.event.transcript.clone()?;
            let session = self.event.session.as_deref();
            Some(find_transcript(&self.context.environment, session, reported))
        };
        self.transcript.get_or_init(find).as_ref()
    }

    /// Returns the transcripts of the event that exist and whose format forge reads.
    fn transcripts(&self) -> impl Iterator<Item = (TranscriptDialect, &PathBuf)> {
        let HookEvent { agent, sub_transcript, .. } = self.event;
        // The thread of a sub-agent of Codex has its own rollout, and so its own session.
        let sub_transcript = sub_transcript.as_ref().filter(|_| *agent == HookAgent::Claude);
        agent.dialect().into_iter().flat_map(move |dialect| {
            let files = self.transcript().into_iter().chain(sub_transcript);
            files.filter(|path| path.is_file()).map(move |path| (dialect, path))
        })
    }

    /// Reads the last message of the transcript.
    pub fn read_tail(&mut self) -> Result<(), CommandError> {
        let (Some(id), Some(path)) = (&self.event.session, self.transcript()) else {
            return Ok(());
        };
        if path.is_file() {
            self.tail = transcript_tail::read_tail(
                path,
                self.event.agent.dialect(),
                self.store.hash_key(),
                id,
            )?;
        }
        Ok(())
    }

    /// Imports the new lines of the transcripts.
    pub fn import_transcripts(&mut self) -> Result<(), CommandError> {
        let Some(id) = &self.event.session else { return Ok(()) };
        // The transcript does not say yet what the session is about, and a session keeps its name.
        if self.session.is_none() && begins_conversation(self.event) {
            return Ok(());
        }
        let infer = self.context.config.is_on(key::INFERENCE_ENABLED);
        let options =
            TranscriptImportOptions { live: true, infer, ..TranscriptImportOptions::default() };
        let mut saved = false;
        for (dialect, path) in self.transcripts() {
            let importer = TranscriptImporter::new(&self.store, &self.act, options, &|_| {});
            let importer = importer.with_dialect(dialect);
            let mut importer = importer.with_title(name_from_prompt(self.event));
            saved |= importer.import_file(path)?.bytes > 0;
        }
        self.saved |= saved;
        if self.session.is_none() {
            self.session = self.store.agent_session(id)?;
        }
        Ok(())
    }

    /// Makes everything that was written durable, and notes the outcome in the line of the log.
    pub fn sync(&self, line: &mut HookLogEntry) -> Result<(), CommandError> {
        if self.saved {
            self.store.sync()?;
            if line.outcome == HookOutcome::Unchanged {
                line.outcome = HookOutcome::Saved;
            }
        }
        Ok(())
    }
}

/// Returns the transcript at a path that an agent reports. A `~` at its beginning is the user's
/// home directory. If there is no such file, it may be in the folder of another project.
fn find_transcript(environment: &Environment, session: Option<&str>, path: PathBuf) -> PathBuf {
    let in_home = path.strip_prefix("~").ok().map(Path::to_owned);
    let in_home = in_home.and_then(|rest| Some(environment.directory("HOME")?.join(rest)));
    let path = in_home.unwrap_or(path);
    if path.exists() {
        return path;
    }
    session.and_then(|session| transcript_elsewhere(&path, session)).unwrap_or(path)
}

fn open(context: &Context, path: &Path, lock_timeout: Duration) -> Result<Store, CommandError> {
    let options = workspace::store_options(context, StoreAccess::Write).lock_timeout(lock_timeout);
    Ok(Store::open(path, options)?)
}

/// Writes a hook's data to the spool of a store that is damaged or cannot be reached. Returns
/// whether the event had data for the spool.
pub fn spool_event(
    context: &Context,
    event: &HookEvent,
    path: &Path,
) -> Result<bool, CommandError> {
    let Some(id) = &event.session else { return Ok(false) };
    let mut facts = tool_facts(event, context.now);
    facts.extend(prompt_fact(event, context.now));
    let announced = matches!(event.kind, HookEventKind::PreCompact { .. });
    if facts.is_empty() && !announced {
        return Ok(false);
    }
    let options = workspace::store_options(context, StoreAccess::Write);
    let options = options.lock_timeout(LOCK_PATIENCE);
    let store = match Store::open(path, options.clone()) {
        // The key of the store may be forged too, so the data is spooled without a seal.
        Err(error) if error.kind() == forge_store::error::ErrorKind::Forged => {
            Store::open_unverified(path, options)?
        }
        opened => opened?,
    };
    let act =
        WriteContext::hook(format!("hook {} {}", event.agent.word(), event.name), context.now);
    let new = NewSession {
        agent: Some(event.agent.session_word().to_owned()),
        agent_session: Some(id.clone()),
        ..NewSession::named(name_of_new_session(event, id))
    };
    let mut aside = store.spooled_write(&act, new)?;
    for fact in facts {
        aside = aside.fact(fact);
    }
    if announced {
        let body = Value::from([("announced_at", context.now.to_string().into())]);
        let message = "context is about to be compacted".to_owned();
        let key = format!("announced:time:{}", context.now.as_micros());
        aside = aside.checkpoint(compaction::first_checkpoint(key, message, body));
    }
    aside.save()?;
    Ok(true)
}

/// Whether an event is about a compaction. The end of the transcript identifies the compaction.
#[must_use]
pub fn is_about_compaction(event: &HookEvent) -> bool {
    matches!(event.kind, HookEventKind::PreCompact { .. } | HookEventKind::PostCompact { .. })
        || follows_compaction(event)
}

/// Whether an event is the start of a session after a compaction.
#[must_use]
pub fn follows_compaction(event: &HookEvent) -> bool {
    event.kind == HookEventKind::SessionStart { start: SessionStartKind::Compact }
}

/// Whether an event is the start of a new conversation: its session gets its name from the first
/// prompt.
#[must_use]
pub const fn begins_conversation(event: &HookEvent) -> bool {
    matches!(
        event.kind,
        HookEventKind::SessionStart {
            start: SessionStartKind::Startup | SessionStartKind::Clear | SessionStartKind::Fork
        }
    )
}

/// Returns the name of a session that begins with the prompt of an event: the first line of the
/// prompt that is not blank. `None` without a prompt, or if the line is not a valid name.
fn name_from_prompt(event: &HookEvent) -> Option<String> {
    let HookEventKind::Prompt { text: Some(text) } = &event.kind else { return None };
    session_name(text.lines().find(|line| !line.trim().is_empty())?)
}

/// Returns the name of a session that begins with an event: from its prompt. Without a prompt it is
/// the beginning of the agent's id of the session, or the agent's word if that is not a valid name.
fn name_of_new_session(event: &HookEvent, id: &str) -> String {
    let short: String = id.chars().take(8).collect();
    name_from_prompt(event)
        .or_else(|| session_name(&short))
        .unwrap_or_else(|| event.agent.word().to_owned())
}

/// Adds the patches of a fact to the write as texts, so that an unchanged long patch is not stored
/// again. Returns the fact with references to them.
fn with_stored_patches(write: &mut SessionWrite<'_>, mut fact: Fact) -> Fact {
    if let Value::Map(fields) = &mut fact.value
        && let Some(Value::List(patches)) = fields.get_mut("patches")
    {
        for patch in patches {
            let text = patch.as_text().map(str::to_owned);
            if let Some(text) = text {
                *patch = write.text(&text);
            }
        }
    }
    fact
}

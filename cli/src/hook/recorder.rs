//! Saves what a hook reports: what is new in the transcript, tool calls, the state of the code,
//! compactions.

use super::log::{HookLogEntry, HookOutcome};
use super::transcript_tail::{self, TranscriptTail};
use crate::compaction::{self, CompactionPhase, ContextCompaction, RECENT};
use crate::config::key;
use crate::context::Context;
use crate::error::CommandError;
use crate::git::process::GitTimeLimit;
use crate::git::{self, CapturedCheckout};
use crate::transcript::{TranscriptImportOptions, TranscriptImporter};
use crate::workspace::{self, StoreAccess};
use forge_agents::claude_code::TranscriptDialect;
use forge_agents::hook::{
    HookAgent, HookEvent, HookEventKind, SessionStartKind, prompt_fact, tool_facts,
};
use forge_store::model::{
    AutoTrigger, Checkpoint, Fact, FactOrigin, Kind, SessionKind, Value, claim,
};
use forge_store::store::{NewSession, Session, SessionWrite, Store, WriteContext, WriteReport};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// How long a hook waits for another writer.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
/// How long a hook waits for git.
const GIT_PATIENCE: Duration = Duration::from_secs(4);
/// How long it may take to end git and to remove its files.
const GIT_ENDING: Duration = Duration::from_secs(1);
/// The minimum time between two automatic checkpoints of hooks, without compactions.
const THROTTLE_MICROS: i64 = 60_000_000;
/// How many of the newest prompts are searched for one that another installation already reported.
const PROMPTS: usize = 16;
/// How many of the newest edits are searched for the last captured state.
const EDITS: usize = 64;
/// Two announcements within this time are one, if no transcript distinguishes them.
const SAME_MICROS: i64 = 10_000_000;
/// The maximum size of a hook's summary, in bytes.
const SUMMARY_BYTES: usize = 128 << 10;
/// The maximum length of a session's name that is made from a prompt.
const NAME_CHARACTERS: usize = 60;

/// The state of a checkout.
struct CodeState {
    /// The id of its fact.
    id: String,
    /// That fact, if the state differs from the last captured one.
    new: Option<Fact>,
    /// Whether another branch is checked out than in the last captured state.
    switched: bool,
}

/// The work of a hook on a store.
pub struct HookRecorder<'c> {
    pub store: Store,
    /// The session of the agent, if it exists.
    pub session: Option<Session>,
    /// The author, verb and time of writes.
    pub act: WriteContext,
    /// The end of the transcript.
    pub tail: Option<TranscriptTail>,
    context: &'c Context,
    event: &'c HookEvent,
    path: PathBuf,
    /// Whether anything was written.
    saved: bool,
    /// Whether another process holds the lock for too long.
    locked: bool,
    code: Option<Receiver<(Result<CapturedCheckout, CommandError>, Duration)>>,
}

impl<'c> HookRecorder<'c> {
    /// Opens the store for an event.
    ///
    /// # Errors
    ///
    /// As opening does.
    pub fn open(
        context: &'c Context,
        event: &'c HookEvent,
        path: &Path,
    ) -> Result<Self, CommandError> {
        let store = open(context, path, context.lock_timeout().min(LOCK_PATIENCE))?;
        let act =
            WriteContext::hook(format!("hook {} {}", event.agent.word(), event.name), context.now);
        let session = match &event.session {
            Some(id) => store.agent_session(id)?,
            None => None,
        };
        Ok(Self {
            store,
            session,
            act,
            tail: None,
            context,
            event,
            path: path.to_owned(),
            saved: false,
            locked: false,
            code: None,
        })
    }

    /// Stops waiting for the lock after it was not released in time: from now on, writes go to the
    /// spool where possible.
    ///
    /// # Errors
    ///
    /// As opening does.
    pub fn stop_waiting(&mut self) -> Result<(), CommandError> {
        if self.locked {
            return Ok(());
        }
        self.locked = true;
        self.store = open(self.context, &self.path, Duration::ZERO)?;
        self.session = match &self.event.session {
            Some(id) => self.store.agent_session(id)?,
            None => None,
        };
        Ok(())
    }

    /// Notes the result of a write: if it was spooled, the lock was not released in time.
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

    /// Whether events make checkpoints here.
    fn makes_checkpoints(&self, key: &str) -> bool {
        let config = &self.context.config;
        config.is_on("auto_checkpoint.enabled") && config.is_on(key)
    }

    /// Whether an automatic checkpoint is due, because none was made just before.
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
        let short: String = id.chars().take(8).collect();
        let asked = match &self.event.happening {
            HookEventKind::Prompt { text: Some(text) } => session_name(text),
            _ => None,
        };
        let new = NewSession {
            name: asked.unwrap_or(short),
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

    /// Creates the session if there is none, and saves the prompt if no transcript will bring it.
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
    /// instead: otherwise nothing would show later that both report the same call.
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
        matches!(&self.event.happening, HookEventKind::ToolUsed(used) if used.call.is_none())
    }

    /// The reason for a checkpoint in the facts of a tool call, if there is one.
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

    /// Starts git on the checkout, in parallel with the rest.
    pub fn start_code_capture(&mut self) {
        let Some(directory) = self.event.cwd.clone().or_else(|| Some(self.context.cwd.clone()))
        else {
            return;
        };
        let Ok(store) = self.context.store_directory() else { return };
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let began = Instant::now();
            let captured = git::capture_checkout(
                &directory,
                &store,
                GitTimeLimit::Until(began + GIT_PATIENCE),
            );
            // The receiver may have stopped waiting.
            let _ = sender.send((captured, began.elapsed()));
        });
        self.code = Some(receiver);
    }

    /// The transcripts that exist and can be read.
    fn transcripts(&self) -> impl Iterator<Item = (TranscriptDialect, &PathBuf)> {
        let HookEvent { agent, transcript, sub_transcript, .. } = self.event;
        // A thread of Codex has a rollout of its own, and so a session.
        let sub_transcript = sub_transcript.as_ref().filter(|_| *agent == HookAgent::Claude);
        let files = transcript.iter().chain(sub_transcript).filter(|path| path.is_file());
        agent
            .dialect()
            .into_iter()
            .flat_map(move |dialect| files.clone().map(move |path| (dialect, path)))
    }

    /// Reads the end of the transcript.
    ///
    /// # Errors
    ///
    /// As reading the file.
    pub fn read_tail(&mut self) -> Result<(), CommandError> {
        let (Some(id), Some(path)) = (&self.event.session, &self.event.transcript) else {
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

    /// Imports what is new in the transcript.
    ///
    /// # Errors
    ///
    /// As reading the file and every write.
    pub fn import_transcripts(&mut self) -> Result<(), CommandError> {
        let Some(id) = &self.event.session else { return Ok(()) };
        let infer = self.context.config.is_on(key::INFERENCE_ENABLED);
        let how =
            TranscriptImportOptions { live: true, infer, ..TranscriptImportOptions::default() };
        let mut saved = false;
        for (dialect, path) in self.transcripts() {
            let importer = TranscriptImporter::new(&self.store, &self.act, how, &|_| {});
            saved |= importer.with_dialect(dialect).import_file(path)?.bytes > 0;
        }
        self.saved |= saved;
        if self.session.is_none() {
            self.session = self.store.agent_session(id)?;
        }
        Ok(())
    }

    /// Returns the state of the code.
    fn captured_code(
        &mut self,
        session: &Session,
        line: &mut HookLogEntry,
    ) -> Result<Option<CodeState>, CommandError> {
        let Some(receiver) = self.code.take() else { return Ok(None) };
        let captured = match receiver.recv_timeout(GIT_PATIENCE + GIT_ENDING) {
            Ok((captured, took)) => {
                line.git_micros = u64::try_from(took.as_micros()).ok();
                captured
            }
            Err(_) => {
                line.set_reason("git took too long: the state of the code was not saved");
                return Ok(None);
            }
        };
        let captured = match captured {
            Ok(captured) => captured,
            // Not every project is a git repository.
            Err(error) => {
                line.set_reason(error.message());
                return Ok(None);
            }
        };
        if !captured.unfiltered.is_empty() {
            line.set_reason(git::UNFILTERED);
        }
        let value = captured.value(None);
        let bytes = serde_json::to_vec(&value).map_err(|error| {
            CommandError::internal("the state of the code cannot be named").caused_by(error)
        })?;
        let hash = blake3::keyed_hash(self.store.hash_key(), &bytes).to_hex();
        let id = format!("code-{}", hash.get(..16).unwrap_or_default());
        let head = session.head()?;
        let last = session.recent_facts(&head, Kind::Code, EDITS)?;
        let last = last.into_iter().find(|known| known.fact.value.field("path").is_none());
        if last.as_ref().is_some_and(|known| known.fact.id == id) {
            return Ok(Some(CodeState { id, new: None, switched: false }));
        }
        let branch =
            |value: &Value| value.field("branch").and_then(Value::as_text).map(str::to_owned);
        let switched = last.is_some_and(|known| branch(&known.fact.value) != branch(&value));
        let now = self.act.now;
        let fact = Fact {
            kind: Kind::Code,
            id: id.clone(),
            at: now,
            origin: FactOrigin::Hook,
            place: 0,
            recorded_at: now,
            value,
        };
        Ok(Some(CodeState { id, new: Some(fact), switched }))
    }

    /// Saves the state of the code, with a checkpoint if the state changed and a checkpoint is due.
    pub fn save_code(&mut self, line: &mut HookLogEntry) -> Result<(), CommandError> {
        let Some(session) = self.begin_session()? else { return Ok(()) };
        let Some(CodeState { new: Some(fact), switched, .. }) =
            self.captured_code(&session, line)?
        else {
            return Ok(());
        };
        let clean =
            fact.value.field("patches").and_then(Value::as_list).is_none_or(<[_]>::is_empty);
        let mut write = session.write(&self.act);
        let fact = with_objects(&mut write, fact);
        write = write.fact(fact);
        let trigger = if switched && self.makes_checkpoints("auto_checkpoint.branch_switch") {
            Some(AutoTrigger::BranchSwitch)
        } else {
            let modified = !clean && self.makes_checkpoints("auto_checkpoint.code_modified");
            modified.then_some(AutoTrigger::CodeModified)
        };
        if let Some(trigger) = trigger
            && self.is_due(&session)?
        {
            write = write.event(trigger);
        }
        let done = write.commit()?;
        line.checkpoint = done.checkpoint.as_ref().map(|checkpoint| checkpoint.id.to_string());
        self.check_spooled(&done)
    }

    /// Records that the context is about to be compacted: one checkpoint, however many events
    /// announce it.
    pub fn record_announcement(
        &mut self,
        automatic: Option<bool>,
        tokens: Option<i64>,
        line: &mut HookLogEntry,
    ) -> Result<(), CommandError> {
        let Some(session) = self.begin_session()? else { return Ok(()) };
        let code = self.captured_code(&session, line)?;
        let known = compaction::newest_compactions(&session, Some(RECENT))?;
        if let Some(same) = known.iter().find(|one| self.is_announced(one)) {
            line.checkpoint = Some(same.checkpoint.id.to_string());
            return Ok(());
        }
        let (code, fact) = code.map_or((None, None), |code| (Some(code.id), code.new));
        let body = Value::from([
            ("trigger", trigger_word(automatic).into()),
            ("pre_tokens", tokens.into()),
            ("tail", self.tail.as_ref().map(|tail| tail.name.clone()).into()),
            ("turn", self.event.turn.clone().into()),
            ("announced_at", self.act.now.to_string().into()),
            ("code", code.into()),
        ]);
        let message = format!(
            "context is about to be compacted ({})",
            trigger_word(automatic).unwrap_or("unknown cause")
        );
        let checkpoint = compaction::first_checkpoint(self.event_key("announced"), message, body);
        let mut write = session.write(&self.act).checkpoint(checkpoint);
        if let Some(fact) = fact {
            let fact = with_objects(&mut write, fact);
            write = write.fact(fact);
        }
        let done = write.commit()?;
        line.checkpoint = done.checkpoint.as_ref().map(|checkpoint| checkpoint.id.to_string());
        self.check_spooled(&done)
    }

    /// The key of an event of this compaction: the same end of the same transcript is the same
    /// moment.
    fn event_key(&self, what: &str) -> String {
        let moment = match (&self.tail, &self.event.turn) {
            (Some(tail), _) => tail.name.clone(),
            (None, Some(turn)) => format!("turn:{turn}"),
            (None, None) => format!("time:{}", self.act.now.as_micros()),
        };
        format!("{what}:{moment}")
    }

    /// Whether a compaction is the one that a `PreCompact` event now announces.
    fn is_announced(&self, one: &ContextCompaction) -> bool {
        let at = one.checkpoint.time;
        let turn = one.checkpoint.body.field("turn").and_then(Value::as_text);
        let same_turn = self.event.turn.is_some() && turn == self.event.turn.as_deref();
        let Some(tail) = &self.tail else {
            let close = self.act.now.micros_since(at).abs() < SAME_MICROS;
            // After a finished compaction, an announcement is about another one, however soon it
            // comes.
            let open = one.phase() == CompactionPhase::Announced;
            return same_turn || (self.event.turn.is_none() && close && open);
        };
        if one.tail() == Some(tail.name.as_str()) {
            return true;
        }
        let nothing_since = match tail.at {
            Some(said) => tail.is_compaction || said <= at,
            None => same_turn,
        };
        match one.phase() {
            // The event came too late: that compaction is over, and no message followed.
            CompactionPhase::Recorded => nothing_since || self.act.now < at,
            // Messages before the compaction are written to disk late.
            CompactionPhase::Announced | CompactionPhase::Done => nothing_since,
            CompactionPhase::NotFollowed => false,
        }
    }

    /// Records that the context was compacted, with the agent's own summary if it gave one. Returns
    /// the compaction.
    pub fn record_compaction(
        &mut self,
        automatic: Option<bool>,
        summary: Option<&str>,
        line: &mut HookLogEntry,
    ) -> Result<Option<ContextCompaction>, CommandError> {
        let Some(session) = self.begin_session()? else { return Ok(None) };
        let known = compaction::newest_compactions(&session, Some(RECENT))?;
        let found = self.find_done(&session, &known, summary)?;
        let now = self.act.now.to_string();
        let text = summary.map(cut_for_checkpoint);
        let Some(found) = found else {
            let body = Value::from([
                ("trigger", trigger_word(automatic).into()),
                ("tail", self.tail.as_ref().map(|tail| tail.name.clone()).into()),
                ("done_at", now.into()),
                ("hook_summary", text.into()),
            ]);
            let message = format!(
                "context compacted ({})",
                trigger_word(automatic).unwrap_or("unknown cause")
            );
            let checkpoint = compaction::first_checkpoint(self.event_key("done"), message, body);
            let done = session.write(&self.act).checkpoint(checkpoint).commit()?;
            if done.checkpoint.is_some() {
                self.check_spooled(&done)?;
            }
            line.checkpoint = done.checkpoint.as_ref().map(|one| one.id.to_string());
            let made = match done.checkpoint {
                Some(made) => Some(made),
                None => session.checkpoint_of(&self.event_key("done"))?,
            };
            return Ok(made.and_then(ContextCompaction::from_checkpoint));
        };
        line.checkpoint = Some(found.id.to_string());
        let new_text = text.filter(|_| found.body.field("hook_summary").is_none());
        if found.body.field("done_at").is_some() && new_text.is_none() {
            return Ok(ContextCompaction::from_checkpoint(found));
        }
        let (amended, changed) = self.amend(&session, &found, |one| {
            let Value::Map(body) = &mut one.body else { return };
            if !body.contains_key("boundary") && !body.contains_key("done_at") {
                one.message =
                    one.message.replace("context is about to be compacted", "context compacted");
            }
            body.entry("done_at".to_owned()).or_insert_with(|| now.clone().into());
            if let Some(text) = &new_text {
                body.entry("hook_summary".to_owned()).or_insert_with(|| text.clone().into());
            }
        })?;
        self.saved |= changed;
        Ok(ContextCompaction::from_checkpoint(amended))
    }

    /// Finds the compaction that has just been done, among the known ones.
    fn find_done(
        &self,
        session: &Session,
        known: &[ContextCompaction],
        summary: Option<&str>,
    ) -> Result<Option<Checkpoint>, CommandError> {
        // A summary that is already known identifies the compaction, however late it comes.
        if let Some(summary) = summary {
            for one in known.iter().filter(|one| one.has_summary()) {
                let known = one.summary(session)?.unwrap_or_default();
                if known.contains(summary.trim()) || summary.contains(known.trim()) {
                    return Ok(Some(one.checkpoint.clone()));
                }
            }
        }
        let Some(newest) = known.first() else { return Ok(None) };
        let at = newest.checkpoint.time;
        let nothing_since = match &self.tail {
            Some(tail) => {
                tail.is_compaction
                    || newest.tail() == Some(tail.name.as_str())
                    || tail.at.is_some_and(|said| said <= at)
            }
            None => true,
        };
        let has_other = summary.is_some()
            && newest.has_summary()
            && newest.checkpoint.body.field("hook_summary").is_some();
        let is_it = match newest.phase() {
            CompactionPhase::Announced => true,
            CompactionPhase::NotFollowed => false,
            CompactionPhase::Done => nothing_since && !has_other,
            CompactionPhase::Recorded => {
                (nothing_since || newest.done_at().is_none()) && !has_other
            }
        };
        Ok(is_it.then(|| newest.checkpoint.clone()))
    }

    /// Syncs everything that was written, and notes the outcome.
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

fn open(context: &Context, path: &Path, lock_timeout: Duration) -> Result<Store, CommandError> {
    let options = workspace::store_options(context, StoreAccess::Write).lock_timeout(lock_timeout);
    Ok(Store::open(path, options)?)
}

/// Keeps a hook's data in the spool of a damaged store. Returns whether there was any.
///
/// # Errors
///
/// If even that cannot be written.
pub fn spool_event(
    context: &Context,
    event: &HookEvent,
    path: &Path,
) -> Result<bool, CommandError> {
    let Some(id) = &event.session else { return Ok(false) };
    let mut facts = tool_facts(event, context.now);
    facts.extend(prompt_fact(event, context.now));
    let announced = matches!(event.happening, HookEventKind::PreCompact { .. });
    if facts.is_empty() && !announced {
        return Ok(false);
    }
    let options = workspace::store_options(context, StoreAccess::Write);
    let options = options.lock_timeout(LOCK_PATIENCE);
    let store = match Store::open(path, options.clone()) {
        // Even its key may be forged: the data is spooled without a seal.
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
        ..NewSession::named(id.chars().take(8).collect::<String>())
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

/// Whether an event is about a compaction, so that the end of the transcript identifies it.
#[must_use]
pub fn is_about_compaction(event: &HookEvent) -> bool {
    matches!(event.happening, HookEventKind::PreCompact { .. } | HookEventKind::PostCompact { .. })
        || follows_compaction(event)
}

/// Whether a session start follows a compaction.
#[must_use]
pub fn follows_compaction(event: &HookEvent) -> bool {
    event.happening == HookEventKind::SessionStart { start: SessionStartKind::Compact }
}

fn trigger_word(automatic: Option<bool>) -> Option<&'static str> {
    automatic.map(|automatic| if automatic { "auto" } else { "manual" })
}

/// The first line of a prompt, as a session's name.
fn session_name(prompt: &str) -> Option<String> {
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty())?;
    let plain = line.chars().map(|c| if c.is_control() { ' ' } else { c }).take(NAME_CHARACTERS);
    let name = plain.collect::<String>().trim_end_matches([' ', ':', ',']).to_owned();
    claim::check_id(&name).is_ok().then_some(name)
}

/// Returns the fact with its patches as texts of the write: an unchanged long one is not stored
/// again.
fn with_objects(write: &mut SessionWrite<'_>, mut fact: Fact) -> Fact {
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

/// The part of a text that a checkpoint carries.
fn cut_for_checkpoint(text: &str) -> String {
    text.get(..text.floor_char_boundary(SUMMARY_BYTES)).unwrap_or_default().to_owned()
}

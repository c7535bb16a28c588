//! Saves the state of the checkout.

use super::{EDITS, HookRecorder, with_stored_patches};
use crate::error::CommandError;
use crate::git;
use crate::git::process::GitTimeLimit;
use crate::hook::log::HookLogEntry;
use forge_store::model::{AutoTrigger, Fact, FactOrigin, Kind, Value};
use forge_store::store::Session;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a hook waits for git.
const GIT_PATIENCE: Duration = Duration::from_secs(4);
/// How long it may take to end git and to remove its files.
const GIT_ENDING: Duration = Duration::from_secs(1);

pub(super) struct CodeState {
    /// The id of its fact.
    pub(super) id: String,
    /// That fact, if the state differs from the last captured one.
    pub(super) new: Option<Fact>,
    /// Whether another branch is checked out than in the last captured state.
    switched: bool,
}

impl HookRecorder<'_> {
    /// Starts git on the checkout, in parallel with the rest of the hook.
    pub fn start_code_capture(&mut self) {
        let directory = self.event.cwd.clone().unwrap_or_else(|| self.context.cwd.clone());
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

    /// Waits for git and returns the state of the code; `None` if git was not started, or if it
    /// failed or took too long: then `line` gets the reason.
    pub(super) fn captured_code(
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
        let fact = with_stored_patches(&mut write, fact);
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
}

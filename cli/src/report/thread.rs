//! Message threads.

use crate::output::{Cell, Report, Screen, Table, Tone};
use forge_systems::thread::{
    AppendReport, CallState, MessageFormat, PendingCall, SanitizeAction, SanitizedHistory,
    StoredMessage, ThreadFault, ThreadLease, ThreadStatus, preview,
};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The texts of messages, with or without those that are held back.
#[must_use]
pub fn messages_of(messages: Vec<StoredMessage>, held: bool) -> Vec<String> {
    let shown = messages.into_iter().filter(|message| held || !message.held);
    shown.map(|message| message.text).collect()
}

/// Messages as the JSON that they are.
fn raw<S: Serializer>(messages: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(messages.iter().map(|text| RawValue::from_string(text.clone()).ok()))
}

/// A call without a result.
#[derive(Debug, Serialize)]
pub struct PendingJson {
    /// Its id.
    pub tool_call_id: String,
    /// The tool it calls.
    pub name: String,
    /// The message that makes it.
    pub message: String,
    /// Whether running it twice does what running it once does.
    pub idempotent: bool,
    /// How far it has come.
    pub state: CallState,
    /// Whether it can be run again without asking.
    pub safe_to_rerun: bool,
    /// What came of it.
    pub result: Option<String>,
}

impl From<PendingCall> for PendingJson {
    fn from(call: PendingCall) -> Self {
        let safe_to_rerun = call.is_safe();
        let PendingCall { id, name, message, idempotent, state, result, .. } = call;
        Self { tool_call_id: id, name, message, idempotent, state, safe_to_rerun, result }
    }
}

const fn state_word(state: CallState) -> &'static str {
    match state {
        CallState::NotStarted => "not started",
        CallState::Started => "started, outcome unknown",
        CallState::Finished => "finished",
        CallState::Failed => "failed",
    }
}

fn tell_pending(screen: &mut Screen, pending: &[PendingJson]) {
    for call in pending {
        screen.put(Tone::Warning, "  pending ");
        screen.put(Tone::Id, &call.tool_call_id);
        let safe = if call.safe_to_rerun { ", safe to run again" } else { "" };
        screen.line(Tone::Plain, &format!(" {}: {}{safe}", call.name, state_word(call.state)));
    }
}

fn tell_faults(screen: &mut Screen, faults: &[ThreadFault]) {
    for fault in faults {
        screen.line(Tone::Plain, &format!("  {fault}"));
    }
}

/// What was appended.
#[derive(Debug, Serialize)]
pub struct AppendedJson {
    /// The thread.
    pub thread: String,
    /// The form of its messages.
    pub form: MessageFormat,
    /// The revision.
    pub revision: Option<u64>,
    /// The ids of the new messages.
    pub ids: Vec<String>,
    /// How many messages there are.
    pub messages: u64,
    /// How many of them are held back.
    pub held: u64,
    /// The calls without a result.
    pub pending: Vec<PendingJson>,
    /// What is wrong with the new messages where they stand.
    pub faults: Vec<ThreadFault>,
    /// Whether the thread holds something that no provider would take.
    pub marked: bool,
}

impl AppendedJson {
    /// This.
    #[must_use]
    pub fn new(thread: &str, done: AppendReport) -> Self {
        Self {
            thread: thread.to_owned(),
            form: done.form,
            revision: done.committed.revision.map(|(number, _)| number),
            ids: done.ids,
            messages: done.messages,
            held: done.held,
            pending: done.pending.into_iter().map(PendingJson::from).collect(),
            faults: done.faults,
            marked: done.marked,
        }
    }
}

impl Report for AppendedJson {
    const SCHEMA: &'static str = "forge.thread.append/1";

    fn human(&self, screen: &mut Screen) {
        screen.put(
            Tone::Plain,
            &format!("Appended {} to the thread ", messages(self.ids.len() as u64)),
        );
        screen.put(Tone::Id, &self.thread);
        let held = if self.held > 0 { format!(", {} held back", self.held) } else { String::new() };
        let all = messages(self.messages);
        screen.line(Tone::Plain, &format!(" ({}, {all}{held})", self.form.word()));
        tell_faults(screen, &self.faults);
        tell_pending(screen, &self.pending);
        if self.marked {
            screen.line(
                Tone::Warning,
                &format!(
                    "  no provider would take it: forge thread sanitize --thread {}",
                    self.thread
                ),
            );
        }
    }
}

fn messages(count: u64) -> String {
    super::counted(count, "message")
}

/// The messages of a thread.
#[derive(Debug, Serialize)]
pub struct Shown {
    /// The thread.
    pub thread: String,
    /// Their form.
    pub form: MessageFormat,
    /// The messages.
    #[serde(serialize_with = "raw")]
    pub messages: Vec<String>,
    /// How many are held back.
    pub held: u64,
    /// The calls without a result.
    pub pending: Vec<PendingJson>,
    /// Who writes it at present.
    pub writer: Option<ThreadLease>,
    /// Whether it holds something that no provider would take.
    pub marked: bool,
}

impl Shown {
    /// These.
    #[must_use]
    pub fn new(thread: &str, status: ThreadStatus, messages: Vec<String>) -> Self {
        Self {
            thread: thread.to_owned(),
            form: status.form,
            messages,
            held: status.held,
            pending: status.pending.into_iter().map(PendingJson::from).collect(),
            writer: status.writer,
            marked: status.marked,
        }
    }
}

impl Report for Shown {
    const SCHEMA: &'static str = "forge.thread.show/1";

    fn human(&self, screen: &mut Screen) {
        let mut table = Table::new(&["#", "MESSAGE"]).right(0);
        for (place, message) in self.messages.iter().enumerate() {
            table.row(vec![Cell::plain(place.to_string()), Cell::plain(preview(message))]);
        }
        screen.table(&table);
        tell_pending(screen, &self.pending);
        if self.held > 0 {
            screen.line(
                Tone::Dim,
                &format!("  {} held back until the results are there", messages(self.held)),
            );
        }
        if self.marked {
            screen.line(Tone::Warning, "  no provider would take it as it stands");
        }
    }
}

/// What was found in a history.
#[derive(Debug, Serialize)]
pub struct Checked {
    /// The thread; null for a file.
    pub thread: Option<String>,
    /// The form of the messages.
    pub form: MessageFormat,
    /// How many messages there are.
    pub messages: usize,
    /// What is wrong.
    pub faults: Vec<ThreadFault>,
}

impl Checked {
    /// This.
    #[must_use]
    pub fn new(thread: Option<&str>, messages: usize, found: SanitizedHistory) -> Self {
        let thread = thread.map(str::to_owned);
        Self { thread, form: found.form, messages, faults: found.faults }
    }
}

impl Report for Checked {
    const SCHEMA: &'static str = "forge.thread.check/1";

    fn human(&self, screen: &mut Screen) {
        let found = match self.faults.len() {
            0 => "nothing is wrong".to_owned(),
            1 => "1 fault".to_owned(),
            count => format!("{count} faults"),
        };
        let count = messages(self.messages as u64);
        screen.line(Tone::Plain, &format!("{count} of the form {}: {found}", self.form.word()));
        tell_faults(screen, &self.faults);
    }
}

/// A history that was made valid.
#[derive(Debug, Serialize)]
pub struct SanitizedJson {
    /// The thread; null for a file.
    pub thread: Option<String>,
    /// The form of the messages.
    pub form: MessageFormat,
    /// The revision, if anything was changed in a store.
    pub revision: Option<u64>,
    /// The messages.
    #[serde(serialize_with = "raw")]
    pub messages: Vec<String>,
    /// What was done, in order.
    pub actions: Vec<SanitizeAction>,
    /// What was wrong.
    pub faults: Vec<ThreadFault>,
    /// Whether nothing could be saved.
    pub reset: bool,
}

impl SanitizedJson {
    /// This.
    #[must_use]
    pub fn new(thread: Option<&str>, revision: Option<u64>, done: SanitizedHistory) -> Self {
        Self {
            thread: thread.map(str::to_owned),
            form: done.form,
            revision,
            messages: done.messages,
            actions: done.actions,
            faults: done.faults,
            reset: done.reset,
        }
    }

    /// What was wrong and what was done about it, a line each, as `check` tells it.
    #[must_use]
    pub fn told(&self) -> String {
        self.faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }
}

impl Report for SanitizedJson {
    const SCHEMA: &'static str = "forge.thread.sanitize/1";

    fn human(&self, screen: &mut Screen) {
        if let Some(thread) = &self.thread {
            let done = match (self.actions.is_empty(), self.reset) {
                (true, _) => "Nothing to do in the thread ",
                (false, false) => "Sanitized the thread ",
                (false, true) => "Nothing could be saved of the thread ",
            };
            screen.put(Tone::Plain, done);
            screen.put(Tone::Id, thread);
            let count = messages(self.messages.len() as u64);
            screen.line(Tone::Plain, &format!(" ({}, {count})", self.form.word()));
        }
        screen.paragraph(Tone::Plain, 2, &self.told());
    }
}

/// The calls without a result.
#[derive(Debug, Serialize)]
pub struct PendingShown {
    /// The thread.
    pub thread: String,
    /// The calls.
    pub pending: Vec<PendingJson>,
}

impl PendingShown {
    /// These.
    #[must_use]
    pub fn new(thread: &str, pending: Vec<PendingCall>) -> Self {
        let pending = pending.into_iter().map(PendingJson::from).collect();
        Self { thread: thread.to_owned(), pending }
    }
}

impl Report for PendingShown {
    const SCHEMA: &'static str = "forge.thread.pending/1";

    fn human(&self, screen: &mut Screen) {
        if self.pending.is_empty() {
            screen.line(Tone::Plain, "every call has a result");
        }
        tell_pending(screen, &self.pending);
    }
}

/// A call that is run again.
#[derive(Debug, Serialize)]
pub struct Rerun {
    /// The thread.
    pub thread: String,
    /// The call.
    pub tool_call_id: String,
    /// The tool it calls.
    pub name: String,
    /// What it is called with.
    pub arguments: String,
    /// Whether running it twice does what running it once does.
    pub idempotent: bool,
    /// How far it has come.
    pub state: CallState,
    /// What came of it.
    pub result: Option<String>,
    /// What was done, or is to be.
    pub done: &'static str,
}

impl Rerun {
    /// This call, not run yet.
    #[must_use]
    pub fn new(thread: &str, call: &PendingCall, arguments: String) -> Self {
        Self {
            thread: thread.to_owned(),
            tool_call_id: call.id.clone(),
            name: call.name.clone(),
            arguments,
            idempotent: call.idempotent,
            state: call.state,
            result: call.result.clone(),
            done: "it was not run",
        }
    }

    /// The call, as it is shown before it is run.
    pub fn told(&self, screen: &mut Screen) {
        screen.put(Tone::Id, &self.tool_call_id);
        screen.line(Tone::Plain, &format!(" {} {}", self.name, self.arguments));
    }
}

impl Report for Rerun {
    const SCHEMA: &'static str = "forge.thread.rerun/1";

    fn human(&self, screen: &mut Screen) {
        self.told(screen);
        screen.line(Tone::Plain, &format!("  {}: {}", state_word(self.state), self.done));
        if let Some(result) = &self.result {
            screen.paragraph(Tone::Plain, 2, result);
        }
    }
}

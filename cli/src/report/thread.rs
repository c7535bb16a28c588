//! Reports of message threads.

use crate::error::{EXIT_NO, EXIT_OK};
use crate::output::{Report, ReportForm, Screen, TextTable, Tone, cells};
use forge_systems::thread::{
    AppendReport, CallState, MessageForm, PendingCall, SanitizeAction, SanitizedHistory,
    StoredMessage, ThreadFault, ThreadLease, ThreadStatus, preview,
};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// Returns the texts of messages, with or without those that are held back.
pub fn messages_of(messages: Vec<StoredMessage>, held: bool) -> Vec<String> {
    let shown = messages.into_iter().filter(|message| held || !message.held);
    shown.map(|message| message.text).collect()
}

/// Serialises the texts of messages, which are JSON, without quoting them.
fn raw<S: Serializer>(messages: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(messages.iter().map(|text| RawValue::from_string(text.clone()).ok()))
}

/// A call without a result.
#[derive(Debug, Serialize)]
pub struct PendingCallJson {
    pub tool_call_id: String,
    /// The tool it calls.
    pub name: String,
    /// The id of the message that contains it.
    pub message: String,
    /// Whether running it twice has the same effect as running it once.
    pub idempotent: bool,
    pub state: CallState,
    /// Whether it can be run again without asking.
    pub safe_to_rerun: bool,
    pub result: Option<String>,
}

impl From<PendingCall> for PendingCallJson {
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

fn print_pending(screen: &mut Screen, pending: &[PendingCallJson]) {
    for call in pending {
        screen.put(Tone::Warning, "  pending ");
        screen.put(Tone::Id, &call.tool_call_id);
        let safe = if call.safe_to_rerun { ", safe to run again" } else { "" };
        screen.plain(&format!(" {}: {}{safe}", call.name, state_word(call.state)));
    }
}

fn print_faults(screen: &mut Screen, faults: &[ThreadFault]) {
    for fault in faults {
        screen.plain(&format!("  {fault}"));
    }
}

/// The result of an append.
#[derive(Debug, Serialize)]
pub struct ThreadAppendReport {
    pub thread: String,
    pub form: MessageForm,
    pub revision: Option<u64>,
    /// The ids of the new messages.
    pub ids: Vec<String>,
    /// How many messages the new ones replaced.
    pub replaced: u64,
    /// How many messages there are, including held ones.
    pub messages: u64,
    /// How many of them are held back.
    pub held: u64,
    /// The calls without a result.
    pub pending: Vec<PendingCallJson>,
    /// The other faults of the new messages.
    pub faults: Vec<ThreadFault>,
    /// Whether the thread has something that no provider would accept.
    pub marked: bool,
}

impl ThreadAppendReport {
    pub fn new(thread: &str, done: AppendReport) -> Self {
        Self {
            thread: thread.to_owned(),
            form: done.form,
            revision: done.committed.revision.map(|(number, _)| number),
            ids: done.ids,
            replaced: done.replaced,
            messages: done.messages,
            held: done.held,
            pending: done.pending.into_iter().map(PendingCallJson::from).collect(),
            faults: done.faults,
            marked: done.marked,
        }
    }
}

impl Report for ThreadAppendReport {
    fn human(&self, screen: &mut Screen) {
        screen.put(
            Tone::Plain,
            &format!("Appended {} to the thread ", messages(self.ids.len() as u64)),
        );
        screen.put(Tone::Id, &self.thread);
        if self.replaced > 0 {
            screen.put(Tone::Plain, &format!(" in place of {}", self.replaced));
        }
        let held = if self.held > 0 { format!(", {} held back", self.held) } else { String::new() };
        let all = messages(self.messages);
        screen.plain(&format!(" ({}, {all}{held})", self.form.word()));
        print_faults(screen, &self.faults);
        print_pending(screen, &self.pending);
        if self.marked {
            screen.warning(&format!(
                "  no provider would accept it: forge thread sanitize --thread {}",
                self.thread
            ));
        }
    }
}

fn messages(count: u64) -> String {
    crate::text::count_text(count, "message")
}

/// The messages of a thread.
#[derive(Debug, Serialize)]
pub struct ThreadShowReport {
    pub thread: String,
    pub form: MessageForm,
    #[serde(serialize_with = "raw")]
    pub messages: Vec<String>,
    /// How many are held back.
    pub held: u64,
    /// The calls without a result.
    pub pending: Vec<PendingCallJson>,
    /// The lease of the last writer, which may have ended; null if there is none.
    pub writer: Option<ThreadLease>,
    /// Whether it has something that no provider would accept.
    pub marked: bool,
}

impl ThreadShowReport {
    pub fn new(thread: &str, status: ThreadStatus, messages: Vec<String>) -> Self {
        Self {
            thread: thread.to_owned(),
            form: status.form,
            messages,
            held: status.held,
            pending: status.pending.into_iter().map(PendingCallJson::from).collect(),
            writer: status.writer,
            marked: status.marked,
        }
    }
}

impl Report for ThreadShowReport {
    fn human(&self, screen: &mut Screen) {
        let mut table = TextTable::new(&["#", "Message"]).right(0);
        for (place, message) in self.messages.iter().enumerate() {
            table.row(cells![place, preview(message)]);
        }
        screen.table(&table);
        print_pending(screen, &self.pending);
        if self.held > 0 {
            screen.dim(&format!("  {} held back until the results are there", messages(self.held)));
        }
        if self.marked {
            screen.warning("  no provider would accept it as it is");
        }
    }
}

/// The result of checking a history.
#[derive(Debug, Serialize)]
pub struct ThreadCheckReport {
    /// The thread; null for a file.
    pub thread: Option<String>,
    pub form: MessageForm,
    /// How many messages there are.
    pub messages: usize,
    pub faults: Vec<ThreadFault>,
}

impl ThreadCheckReport {
    pub fn new(thread: Option<&str>, messages: usize, found: SanitizedHistory) -> Self {
        let thread = thread.map(str::to_owned);
        Self { thread, form: found.form, messages, faults: found.faults }
    }
}

impl Report for ThreadCheckReport {
    fn human(&self, screen: &mut Screen) {
        let found = match self.faults.len() {
            0 => "nothing is wrong".to_owned(),
            1 => "1 fault".to_owned(),
            count => format!("{count} faults"),
        };
        let count = messages(self.messages as u64);
        screen.plain(&format!("{count} of the form {}: {found}", self.form.word()));
        print_faults(screen, &self.faults);
    }
}

/// The result of sanitising a history.
#[derive(Debug, Serialize)]
pub struct ThreadSanitizeReport {
    /// The thread; null for a file.
    pub thread: Option<String>,
    pub form: MessageForm,
    /// The revision, if a stored thread was changed.
    pub revision: Option<u64>,
    #[serde(serialize_with = "raw")]
    pub messages: Vec<String>,
    /// The actions, in order.
    pub actions: Vec<SanitizeAction>,
    pub faults: Vec<ThreadFault>,
    /// Whether nothing could be kept.
    pub reset: bool,
    /// The sanitised file.
    #[serde(skip)]
    document: Option<String>,
}

impl ThreadSanitizeReport {
    pub fn new(thread: Option<&str>, revision: Option<u64>, done: SanitizedHistory) -> Self {
        Self {
            thread: thread.map(str::to_owned),
            form: done.form,
            revision,
            messages: done.messages,
            actions: done.actions,
            faults: done.faults,
            reset: done.reset,
            document: None,
        }
    }

    /// Adds the sanitised file, which is printed instead of a text.
    pub fn with_document(mut self, document: String) -> Self {
        self.document = Some(document);
        self
    }

    /// Describes the faults, one per line.
    pub fn lines(&self) -> String {
        self.faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }
}

impl Report for ThreadSanitizeReport {
    fn form(&self) -> ReportForm<'_> {
        let document = self.document.as_ref();
        document.map_or(ReportForm::Screen, |text| ReportForm::JsonOrBytes(text.as_bytes()))
    }

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
            screen.plain(&format!(" ({}, {count})", self.form.word()));
        }
        screen.paragraph(Tone::Plain, 2, &self.lines());
    }
}

/// The calls without a result.
#[derive(Debug, Serialize)]
pub struct ThreadPendingReport {
    pub thread: String,
    pub pending: Vec<PendingCallJson>,
}

impl ThreadPendingReport {
    pub fn new(thread: &str, pending: Vec<PendingCall>) -> Self {
        let pending = pending.into_iter().map(PendingCallJson::from).collect();
        Self { thread: thread.to_owned(), pending }
    }
}

impl Report for ThreadPendingReport {
    fn human(&self, screen: &mut Screen) {
        if self.pending.is_empty() {
            screen.plain("every call has a result");
        }
        print_pending(screen, &self.pending);
    }
}

/// A call that is to be run again.
#[derive(Debug, Serialize)]
pub struct ThreadRerunReport {
    pub thread: String,
    pub tool_call_id: String,
    /// The tool it calls.
    pub name: String,
    pub arguments: String,
    /// Whether running it twice has the same effect as running it once.
    pub idempotent: bool,
    pub state: CallState,
    pub result: Option<String>,
    /// What was done, or must be done.
    pub done: &'static str,
    /// Whether running it was not confirmed.
    #[serde(skip)]
    pub is_refused: bool,
}

impl ThreadRerunReport {
    /// Creates the report of a call that was not run again yet.
    pub fn new(thread: &str, call: &PendingCall, arguments: String) -> Self {
        Self {
            is_refused: false,
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

    /// Writes the id, the tool and the arguments of the call.
    pub fn print_call(&self, screen: &mut Screen) {
        screen.put(Tone::Id, &self.tool_call_id);
        screen.plain(&format!(" {} {}", self.name, self.arguments));
    }
}

impl Report for ThreadRerunReport {
    fn exit_code(&self) -> u8 {
        if self.is_refused { EXIT_NO } else { EXIT_OK }
    }

    fn human(&self, screen: &mut Screen) {
        self.print_call(screen);
        screen.plain(&format!("  {}: {}", state_word(self.state), self.done));
        if let Some(result) = &self.result {
            screen.paragraph(Tone::Plain, 2, result);
        }
    }
}

//! Appends messages, after a guard has checked them.

use super::document::HistoryDocument;
use super::fault::{FaultKind, Remedy, ThreadFault};
use super::header::{CallState, PendingCall, ThreadHeader, ThreadLease};
use super::message_form::{
    CheckedMessage, FormEvidence, MessageContext, MessageForm, MessageProblem, MessageRole,
    ServerToolHalf, ToolCallKind, ToolCallPart, ToolResultPart, check_message, evidence,
    refers_to_item, server_tool_halves, split,
};
use super::raw_json::{RawObject, compact};
use super::removal::header_of;
use super::sanitize::KNOWN_FORMS;
use super::stored_thread::{MessageRecord, PLACE_GAP, Thread, message_key};
use forge_store::error::{Error, Result};
use forge_store::model::{Key, Value};
use forge_store::store::{ClaimChange, WriteContext, WriteReport};
use std::borrow::Cow;

/// What to do with messages that the provider would not accept as they are, and with calls without
/// a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AppendGuard {
    /// Save them, and mark the thread until it is sanitised.
    #[default]
    Mark,
    /// Reject them: nothing is saved.
    Refuse,
    /// Hold back messages from the first call without a result on, until every call has a result.
    /// Reject any other fault.
    Hold,
}

/// Options of an append.
#[derive(Clone, Debug, Default)]
pub struct AppendOptions {
    /// What to do with invalid messages.
    pub guard: AppendGuard,
    /// The name of the writer.
    pub writer: Option<String>,
    /// End of the lease of `writer`, until which no other writer can write. Ignored without
    /// `writer`.
    pub until: Option<forge_store::model::Timestamp>,
    /// The tools whose calls may safely be run twice.
    pub idempotent: Vec<String>,
    /// The form of the thread, if the writer knows it. Then a text that is not a message of this
    /// form is a fault for the guard. If this is `None`, such a text is an error.
    pub form: Option<MessageForm>,
    /// Whether the messages replace all that the thread has, such as by a summary of them. The
    /// history of the thread keeps those. The cost then depends on the length of the thread.
    pub replace: bool,
}

/// The result of an append.
#[derive(Clone, Debug)]
pub struct AppendReport {
    /// What the write did.
    pub committed: WriteReport,
    /// The form of the thread.
    pub form: MessageForm,
    /// The ids of the new messages.
    pub ids: Vec<String>,
    /// The number of messages that the new ones replaced.
    pub replaced: u64,
    /// The number of messages now, including held ones.
    pub messages: u64,
    /// The number of held messages.
    pub held: u64,
    /// The calls without a result.
    pub pending: Vec<PendingCall>,
    /// The faults of the new messages, apart from calls without a result.
    pub faults: Vec<ThreadFault>,
    /// Whether the thread contains a fault, other than calls whose results may still come.
    pub marked: bool,
}

/// Maximum number of attempts of a write that conflicts with others.
pub(super) const MAX_WRITE_ATTEMPTS: usize = 1000;

/// Repeats a write while it conflicts with others. Returns the conflict if the last attempt has
/// one.
pub(super) fn retry_on_conflict<T>(mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 1..MAX_WRITE_ATTEMPTS {
        match attempt() {
            Err(Error::Conflict(_)) => {}
            done => return done,
        }
    }
    attempt()
}

/// Returns [`Error::Conflict`] if the header changed since it was read.
pub(super) fn ensure_header_unchanged(
    name: &str,
    known: &[Option<Value>],
    read: Option<&Value>,
) -> Result<()> {
    if known.first().and_then(Option::as_ref) == read {
        return Ok(());
    }
    Err(Error::Conflict(format!("another process has just written to the thread '{name}'")))
}

impl Thread {
    /// Appends messages in one revision: all or none. The cost does not depend on the length of the
    /// thread.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a text is not a message (unless the options give the form), if the
    /// messages are of another form than the thread, or if the guard rejects them;
    /// [`Error::Held`] while another writer holds the thread; or any error of a write.
    pub fn append<T: AsRef<str>>(
        &self,
        act: &WriteContext,
        messages: &[T],
        how: &AppendOptions,
    ) -> Result<AppendReport> {
        let texts: Vec<Cow<'_, str>> = messages.iter().map(|text| compact(text.as_ref())).collect();
        let try_append = || self.try_append(act, &texts, how);
        if texts.is_empty() {
            return try_append();
        }
        retry_on_conflict(|| self.session.store().write_from_known(try_append))
    }

    fn try_append(
        &self,
        act: &WriteContext,
        texts: &[Cow<'_, str>],
        how: &AppendOptions,
    ) -> Result<AppendReport> {
        let moment = self.session.head()?;
        let (read, mut header) = self.header(&moment)?;
        header.admit(&self.name, how.writer.as_deref(), act.now)?;
        let replaced = if how.replace {
            header = header_of(header, &[])?;
            self.messages(&moment)?
        } else {
            Vec::new()
        };
        let was_held = std::mem::take(&mut header.held);
        let batch = AppendBatch::follow(&mut header, texts, how)?;
        let held_from = apply_guard(&mut header, &batch, how.guard, &was_held)?;
        header.writer = match (&how.writer, how.until) {
            (Some(name), Some(until)) => Some(ThreadLease { name: name.clone(), until }),
            (Some(_), None) => None,
            (None, _) => header.writer.filter(|writer| writer.until > act.now),
        };
        let freed: &[String] = if header.held.is_empty() { &was_held } else { &[] };
        let keys =
            std::iter::once(ThreadHeader::key()).chain(freed.iter().map(|id| message_key(id)));
        let keys: Vec<Key> = keys.collect();
        let new = header.value()?;
        let edit = |known: &[Option<Value>]| {
            ensure_header_unchanged(&self.name, known, read.as_ref())?;
            let mut changes = vec![ClaimChange::put(ThreadHeader::key(), new.clone())];
            changes.extend(replaced.iter().map(|one| ClaimChange::remove(message_key(&one.id))));
            for (id, known) in freed.iter().zip(known.iter().skip(1)) {
                if let Some(Value::Map(fields)) = known {
                    let mut fields = fields.clone();
                    fields.remove("held");
                    changes.push(ClaimChange::put(message_key(id), Value::Map(fields)));
                }
            }
            for (place, (id, checked)) in batch.ids.iter().zip(&batch.checked).enumerate() {
                let value = MessageRecord {
                    role: checked.role.word(),
                    text: &texts[place],
                    message_id: checked.id.clone(),
                    place: batch.first
                        + PLACE_GAP * i64::try_from(place).unwrap_or(i64::MAX / PLACE_GAP),
                    held: held_from.is_some_and(|from| place >= from),
                    reason: None,
                };
                changes.push(ClaimChange::add(message_key(id), value.value()));
            }
            Ok(changes)
        };
        let committed = self.session.write(act).edit(keys, edit).commit()?;
        Ok(AppendReport {
            marked: header.is_marked(),
            committed,
            form: header.form,
            ids: batch.ids,
            replaced: replaced.len() as u64,
            messages: header.messages,
            held: header.held.len() as u64,
            pending: header.pending,
            faults: batch.faults,
        })
    }
}

/// Applies the guard to new messages. Returns the index of the first new message to hold back.
fn apply_guard(
    header: &mut ThreadHeader,
    batch: &AppendBatch<'_>,
    guard: AppendGuard,
    was_held: &[String],
) -> Result<Option<usize>> {
    let refused = |what: String| {
        Err(Error::invalid(format!(
            "{what}: append the results first, or save it with the guard 'mark' and sanitise it"
        )))
    };
    if guard != AppendGuard::Mark
        && let Some(fault) = batch.faults.first()
    {
        let call = fault.tool_call_id.as_deref().map(|id| format!(" '{id}'")).unwrap_or_default();
        return refused(format!("message {} would be {}{call}", fault.index, fault.fault.about()));
    }
    match (guard, header.pending.first()) {
        (AppendGuard::Refuse, None) if header.reasoning => {
            refused("the last item is reasoning, without the item it belongs to".to_owned())
        }
        (AppendGuard::Refuse, Some(call)) => {
            refused(format!("the call '{}' has no result", call.id))
        }
        (AppendGuard::Hold, Some(_)) => {
            // If earlier messages are held, all new ones are too. Otherwise everything from the
            // first call without a result on is held.
            let first = header
                .pending
                .iter()
                .filter_map(|call| batch.ids.iter().position(|id| *id == call.message));
            let from = if was_held.is_empty() { first.min().unwrap_or(0) } else { 0 };
            header.held = was_held.to_vec();
            header.held.extend(batch.ids.iter().skip(from).cloned());
            Ok(Some(from))
        }
        (AppendGuard::Hold | AppendGuard::Refuse, None) => Ok(None),
        (AppendGuard::Mark, _) => {
            header.marked |= !batch.faults.is_empty();
            Ok(None)
        }
    }
}

/// The new messages at the end of a thread.
pub(super) struct AppendBatch<'t> {
    pub(super) ids: Vec<String>,
    checked: Vec<CheckedMessage<'t>>,
    first: i64,
    pub(super) faults: Vec<ThreadFault>,
}

impl<'t> AppendBatch<'t> {
    /// Checks these messages, which follow the thread with this header, and updates the header.
    pub(super) fn follow(
        header: &mut ThreadHeader,
        texts: &'t [Cow<'t, str>],
        how: &AppendOptions,
    ) -> Result<Self> {
        let objects: Vec<_> = texts.iter().map(|text| RawObject::parse(text)).collect();
        match how.form {
            Some(form) => set_form(header, form)?,
            None => settle_form(header, &objects)?,
        }
        let mut batch = Self {
            ids: Vec::with_capacity(texts.len()),
            checked: Vec::with_capacity(texts.len()),
            first: header.last + PLACE_GAP,
            faults: Vec::new(),
        };
        let last = texts.len().saturating_sub(1);
        for (place, (text, object)) in texts.iter().zip(objects).enumerate() {
            let around = MessageContext { last: place == last, provider_calls: None };
            let checked = check_message(text, object, header.form, around);
            let is_none = |problem: &MessageProblem| problem.fault == FaultKind::NotAMessage;
            let is_kept = how.form.is_some() || !checked.problems.iter().any(is_none);
            if checked.is_unusable && !is_kept {
                return Err(Error::invalid(format!(
                    "message {place} of the input is not a message of the form {}: correct it or \
                    omit it",
                    header.form.word()
                )));
            }
            header.made += 1;
            batch.ids.push(format!("m{}", header.made));
            batch.check_next(header, &checked, how);
            header.messages += 1;
            header.last += PLACE_GAP;
            batch.checked.push(checked);
        }
        Ok(batch)
    }

    /// Adds the fault of a message that has this index in the thread.
    fn push_fault(&mut self, index: u64, checked: &CheckedMessage<'_>, problem: MessageProblem) {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let MessageProblem { fault, call, remedy, .. } = problem;
        let message_id = checked.id.clone();
        self.faults.push(ThreadFault { fault, index, message_id, tool_call_id: call, remedy });
    }

    /// Checks the next message against the open calls, and updates them in the header.
    fn check_next(
        &mut self,
        header: &mut ThreadHeader,
        checked: &CheckedMessage<'_>,
        how: &AppendOptions,
    ) {
        let index = header.messages;
        for problem in checked.problems.clone() {
            self.push_fault(index, checked, problem);
        }
        if checked.is_unusable {
            return;
        }
        let follows = matches!(checked.role, MessageRole::Assistant | MessageRole::Reasoning);
        if std::mem::replace(&mut header.reasoning, checked.role == MessageRole::Reasoning)
            && !follows
        {
            let problem =
                MessageProblem::new(FaultKind::ReasoningWithoutItem, None, Remedy::Removed);
            self.push_fault(index, checked, problem);
        }
        if std::mem::replace(&mut header.unwritten, checked.unwritten) {
            let problem = MessageProblem::new(FaultKind::EmptyMessage, None, Remedy::Removed);
            self.push_fault(index.saturating_sub(1), checked, problem);
        }
        header.refers |= refers_to_item(header.form, &checked.text);
        let anywhere = header.form == MessageForm::OpenaiResponses;
        let in_one = matches!(
            header.form,
            MessageForm::Anthropic | MessageForm::Bedrock | MessageForm::Gemini
        );
        // A result belongs in a message of the user or the tool; from a model message it is moved.
        let results_of = if in_one { MessageRole::User } else { MessageRole::Tool };
        let is_in_place = checked.role == results_of
            && (!in_one || split(&checked.text, header.form, &checked.answers).results_first);
        let ordered = paired_by_order(&header.pending, checked);
        let mut answers_others = false;
        for answer in checked.answers.iter().filter(|answer| answer.kind != ToolCallKind::Approval)
        {
            let shown_name = answer.display_name();
            let problem = |fault, remedy| MessageProblem::new(fault, shown_name.as_deref(), remedy);
            let by_order = || {
                let (_, id) = ordered.iter().find(|(at, _)| *at == answer.at)?;
                header.pending.iter().position(|call| call.open && call.id == *id)
            };
            match find_pending_call(&header.pending, answer).or_else(by_order) {
                Some(place) => {
                    let call = header.pending.remove(place);
                    answers_others |= !call.open;
                    let is_next = call.open && is_in_place;
                    if call.sort != answer.kind {
                        let problem = problem(FaultKind::MismatchedResult, Remedy::Changed);
                        self.push_fault(index, checked, problem);
                    }
                    if !is_next && !anywhere {
                        let problem = problem(FaultKind::MisplacedResult, Remedy::Moved);
                        self.push_fault(index, checked, problem);
                    }
                }
                None if header.refers && !answer.id.is_empty() => {}
                None => {
                    answers_others = true;
                    let problem = problem(FaultKind::ResultWithoutCall, Remedy::KeptAsText);
                    self.push_fault(index, checked, problem);
                }
            }
        }
        self.pair_server_tools(header, checked, answers_others);
        // A message without results closes all open calls. So does any message in a form in which
        // one message must contain all results. In items of the Responses API, calls stay open.
        if (checked.answers.is_empty() || in_one) && !anywhere {
            for call in header.pending.iter_mut().filter(|call| call.open) {
                call.open = false;
                let fault = FaultKind::OrphanedCall;
                let problem = MessageProblem::new(fault, Some(&call.id), Remedy::Answered);
                self.push_fault(index, checked, problem);
            }
        }
        let message = self.ids.last().cloned().unwrap_or_default();
        for call in checked.calls.iter().filter(|call| call.kind != ToolCallKind::Approval) {
            self.check_id(header, checked, call);
            header.pending.push(PendingCall {
                id: call.display_name().to_owned(),
                name: call.name.clone(),
                message: message.clone(),
                idempotent: how.idempotent.contains(&call.name),
                state: CallState::NotStarted,
                result: None,
                open: true,
                sort: call.kind,
            });
        }
    }

    /// Pairs the uses of server tools with their results. A use without a result becomes a fault
    /// with the next message of the user or the model, unless that message contains only results of
    /// the model's last calls. `answers_others`: whether it has a result of another call or of no
    /// call.
    fn pair_server_tools(
        &mut self,
        header: &mut ThreadHeader,
        checked: &CheckedMessage<'_>,
        answers_others: bool,
    ) {
        let mut waiting = std::mem::take(&mut header.server_uses);
        let mut uses: Vec<String> = Vec::new();
        let report = |batch: &mut Self, fault, id: &str| {
            let problem = MessageProblem::new(fault, Some(id), Remedy::Removed);
            batch.push_fault(header.messages, checked, problem);
        };
        for half in server_tool_halves(header.form, &checked.text) {
            match half {
                ServerToolHalf::Use(id) => {
                    if uses.contains(&id) {
                        report(self, FaultKind::ServerUseWithoutResult, &id);
                    } else {
                        uses.push(id);
                    }
                }
                ServerToolHalf::Result(id) => {
                    let known = |ids: &mut Vec<String>| {
                        let place = ids.iter().position(|known| *known == id)?;
                        Some(ids.remove(place))
                    };
                    if known(&mut uses).or_else(|| known(&mut waiting)).is_none() {
                        report(self, FaultKind::ServerResultWithoutUse, &id);
                    }
                }
            }
        }
        let is_turn = checked.role == MessageRole::User;
        let only_results = is_turn
            && !answers_others
            && !checked.answers.is_empty()
            && split(&checked.text, header.form, &checked.answers).others.is_empty();
        if only_results || !matches!(checked.role, MessageRole::User | MessageRole::Assistant) {
            waiting.append(&mut uses);
            header.server_uses = waiting;
            return;
        }
        for id in &waiting {
            report(self, FaultKind::ServerUseWithoutResult, id);
        }
        header.server_uses = uses;
    }

    /// Reports an id that is missing, that the provider refuses, or that an open call already has.
    fn check_id(
        &mut self,
        header: &ThreadHeader,
        checked: &CheckedMessage<'_>,
        call: &ToolCallPart,
    ) {
        let rule = header.form.id_rule();
        let is_same = |known: &&PendingCall| known.id == call.id && known.sort == call.kind;
        let fault = match () {
            () if call.id.is_empty() && rule.required => FaultKind::MissingId,
            () if !rule.accepts(&call.id) => FaultKind::RefusedId,
            () if header.pending.iter().any(|known| known.open && is_same(&known)) => {
                FaultKind::DoubledCall
            }
            () => return,
        };
        let problem = MessageProblem::new(fault, Some(call.display_name()), Remedy::Renamed);
        self.push_fault(header.messages, checked, problem);
    }
}

/// Pairs the results without an id, and without a name that assigns them to a call, with the open
/// calls that are left, in order, if there are equally many of both. Returns the position of each
/// result and the id of its call. As in [`super::call_pairs`], a call and a result of different
/// kinds are not a pair.
fn paired_by_order(pending: &[PendingCall], checked: &CheckedMessage<'_>) -> Vec<(usize, String)> {
    let mut left: Vec<PendingCall> = pending.to_vec();
    let mut lone: Vec<&ToolResultPart> = Vec::new();
    for answer in checked.answers.iter().filter(|answer| answer.kind != ToolCallKind::Approval) {
        match find_pending_call(&left, answer) {
            Some(place) => drop(left.remove(place)),
            None if answer.id.is_empty() => lone.push(answer),
            None => {}
        }
    }
    left.retain(|call| call.open);
    if lone.len() != left.len() {
        return Vec::new();
    }
    let pairs = lone.into_iter().zip(left).filter(|(answer, call)| call.sort == answer.kind);
    pairs.map(|(answer, call)| (answer.at, call.id)).collect()
}

/// Returns the position of the pending call that a result answers. A candidate has the kind of the
/// result and its id, or its tool name if either has no id. Of the last message with a candidate,
/// the first candidate counts. Without a candidate, the last call of another kind counts that has
/// the id and can take the result.
fn find_pending_call(pending: &[PendingCall], answer: &ToolResultPart) -> Option<usize> {
    let is_answered = |call: &PendingCall| {
        let id = if answer.id.is_empty() { answer.name.as_ref() } else { Some(&answer.id) };
        // A call without an id is identified by its name.
        let by_name = call.id == call.name && answer.name.as_ref() == Some(&call.name);
        call.sort == answer.kind
            && (Some(&call.id) == id || by_name || answer.id.is_empty() && id == Some(&call.name))
    };
    let is_of_another_kind = |call: &PendingCall| {
        !answer.id.is_empty() && call.id == answer.id && call.sort.takes_result(answer)
    };
    let Some(last) = pending.iter().rfind(|call| is_answered(call)) else {
        return pending.iter().rposition(is_of_another_kind);
    };
    pending.iter().position(|call| is_answered(call) && call.message == last.message)
}

/// Sets the form of the thread, which the writer names.
fn set_form(header: &mut ThreadHeader, form: MessageForm) -> Result<()> {
    if header.certain && header.form != form {
        return Err(Error::invalid(format!(
            "the thread is of the form {}: keep messages of the form {} in a thread of its own",
            header.form.word(),
            form.word()
        )));
    }
    (header.form, header.certain) = (form, true);
    Ok(())
}

/// Determines the form of the thread from its header and these messages.
fn settle_form(header: &mut ThreadHeader, objects: &[Option<RawObject<'_>>]) -> Result<()> {
    for (place, object) in objects.iter().enumerate() {
        match object.as_ref().map_or(FormEvidence::None, evidence) {
            FormEvidence::Foreign(seems) => {
                return Err(Error::invalid(format!(
                    "message {place} of the input seems to be {seems}: give messages of a known form \
                    ({KNOWN_FORMS})"
                )));
            }
            FormEvidence::Strong(form) if header.certain && form != header.form => {
                return Err(Error::invalid(format!(
                    "message {place} of the input is of the form {}, and the thread of the form {}: keep it in a thread \
                     of its own",
                    form.word(),
                    header.form.word()
                )));
            }
            FormEvidence::Strong(form) => (header.form, header.certain) = (form, true),
            FormEvidence::Weak(form) if !header.certain && header.form == MessageForm::Plain => {
                header.form = form;
            }
            FormEvidence::Weak(_) | FormEvidence::Any | FormEvidence::None => {}
        }
    }
    Ok(())
}

impl HistoryDocument {
    /// Returns the history if every line is JSON; other lines must not be saved.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the number of the first line that is not JSON
    /// ([`Self::broken_line`]).
    pub fn reject_broken_lines(self) -> Result<Self> {
        match self.broken_line() {
            Some(line) => Err(Error::invalid(format!(
                "line {line} is not JSON: 'sanitize' removes such lines from a file"
            ))),
            None => Ok(self),
        }
    }
}

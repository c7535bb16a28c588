//! Sanitises a stored thread, and records the progress of its calls.

use super::append::{ensure_header_unchanged, retry_on_conflict};
use super::call_pairs::{CallResultPairs, PairAssignment};
use super::fault::{FaultKind, Remedy};
use super::header::{CallState, PendingCall, ThreadHeader, ThreadReset};
use super::message_form::{
    CallResult, CheckedMessage, MessageContext, MessageForm, ToolCallKind, check_message,
};
use super::raw_json::RawObject;
use super::sanitize::{OrphanPolicy, SanitizeOptions, SanitizedHistory, sanitize_history};
use super::stored_thread::{MessageRecord, PLACE_GAP, StoredMessage, Thread, message_key};
use forge_store::error::{Error, Result};
use forge_store::model::{Timestamp, Value};
use forge_store::store::{ClaimChange, WriteContext, WriteReport};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The result of sanitising a thread.
#[derive(Clone, Debug)]
pub struct SanitizedThread {
    /// The history as it is now, and the actions that were applied to it.
    pub sanitized: SanitizedHistory,
    /// What the write did. It has no revision if nothing changed.
    pub committed: WriteReport,
}

impl Thread {
    /// Repairs the thread in one revision so that its provider accepts it; the previous messages
    /// stay in the history. A call whose result is recorded gets this result.
    ///
    /// # Errors
    /// [`Error::Invalid`] if [`sanitize_history`] fails; [`Error::Held`] while another writer holds
    /// the thread; or any error of a write.
    pub fn sanitize(
        &self,
        act: &WriteContext,
        options: &SanitizeOptions,
        writer: Option<&str>,
    ) -> Result<SanitizedThread> {
        retry_on_conflict(|| self.try_sanitize(act, options, writer))
    }

    fn try_sanitize(
        &self,
        act: &WriteContext,
        options: &SanitizeOptions,
        writer: Option<&str>,
    ) -> Result<SanitizedThread> {
        let moment = self.session.head()?;
        let (read, mut header) = self.header(&moment)?;
        header.admit(&self.name, writer, act.now)?;
        let kept = self.messages(&moment)?;
        let sanitised = sanitize_stored(&kept, &header.pending, options)?;
        let mut changes = changes(&mut header, &kept, &sanitised);
        if sanitised.reset {
            header.reset = Some(ThreadReset { at: act.now, messages: kept.len() as u64 });
        }
        settle(&mut header, &kept, &sanitised, options.orphans);
        let new = header.value()?;
        if Some(&new) != read.as_ref() {
            changes.push(ClaimChange::put(ThreadHeader::key(), new));
        }
        let edit = |known: &[Option<Value>]| {
            ensure_header_unchanged(&self.name, known, read.as_ref())?;
            Ok(changes.clone())
        };
        let committed = self.session.write(act).edit(vec![ThreadHeader::key()], edit).commit()?;
        Ok(SanitizedThread { sanitized: sanitised, committed })
    }

    /// Returns the history as sanitising would leave it, without writing.
    pub fn sanitized(
        &self,
        moment: &forge_store::store::ResolvedMoment,
        options: &SanitizeOptions,
    ) -> Result<SanitizedHistory> {
        let header = self.header(moment)?.1;
        sanitize_stored(&self.messages(moment)?, &header.pending, options)
    }

    /// Returns a call of the thread that has no result, and its arguments.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no call with this id and without a result; or any error of a
    /// read.
    pub fn pending_call(&self, id: &str) -> Result<(PendingCall, String)> {
        let moment = self.session.head()?;
        let header = self.header(&moment)?.1;
        let call = pending(&header, id)?.clone();
        let value = self.session.claim(&moment, &message_key(&call.message))?;
        let text =
            value.as_ref().and_then(|entry| entry.value.field("message")).and_then(Value::as_text);
        let text = text.unwrap_or_default();
        let checked =
            check_message(text, RawObject::parse(text), header.form, MessageContext::default());
        let arguments = checked.calls.into_iter().find(|known| known.display_name() == id);
        Ok((call, arguments.map(|call| call.arguments).unwrap_or_default()))
    }

    /// Records that a call is about to run. After a crash this shows that the call may have had an
    /// effect.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no call with this id and without a result;
    /// [`Error::Invalid`] if the call is recorded as finished (a failed call can run again); or any
    /// error of a write.
    pub fn start_call(&self, act: &WriteContext, id: &str) -> Result<WriteReport> {
        self.mark_call(act, id, CallState::Started, None)
    }

    /// Records the result of a call before it is part of the history. It replaces a recorded one.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no call with this id and without a result; or any error of a
    /// write.
    pub fn finish_call(
        &self,
        act: &WriteContext,
        id: &str,
        result: &CallResult,
    ) -> Result<WriteReport> {
        let state = if result.is_error { CallState::Failed } else { CallState::Finished };
        self.mark_call(act, id, state, Some(&result.content))
    }

    fn mark_call(
        &self,
        act: &WriteContext,
        id: &str,
        state: CallState,
        result: Option<&str>,
    ) -> Result<WriteReport> {
        self.edit_header(act, |header| {
            let call = pending(header, id)?;
            // Starting a call removes its recorded result, so only a failed call may run again.
            if state == CallState::Started && call.state == CallState::Finished {
                return Err(Error::invalid(format!(
                    "the result of the call '{id}' is recorded already: insert it with 'forge \
                    thread rerun'"
                )));
            }
            if let Some(call) = header.pending.iter_mut().rfind(|call| call.id == id) {
                (call.state, call.result) = (state, result.map(str::to_owned));
            }
            Ok(())
        })
    }

    /// Changes the header of the thread. Does not check the lease.
    fn edit_header(
        &self,
        act: &WriteContext,
        change: impl Fn(&mut ThreadHeader) -> Result<()>,
    ) -> Result<WriteReport> {
        let edit = |known: &[Option<Value>]| {
            let mut header = ThreadHeader::read(known.first().and_then(Option::as_ref))?;
            change(&mut header)?;
            Ok(vec![ClaimChange::put(ThreadHeader::key(), header.value()?)])
        };
        self.session.write(act).edit(vec![ThreadHeader::key()], edit).commit()
    }

    /// Sanitises the thread so that the recorded result of a call becomes part of the history.
    /// Other recorded results are inserted too, and other calls without a result are kept.
    ///
    /// # Errors
    /// As [`Thread::sanitize`]; [`Error::NotFound`] if there is no call with this id and without a
    /// result; [`Error::Invalid`] if no result is recorded.
    pub fn put_result(
        &self,
        act: &WriteContext,
        id: &str,
        writer: Option<&str>,
    ) -> Result<SanitizedThread> {
        let header = self.header(&self.session.head()?)?.1;
        if pending(&header, id)?.outcome().is_none() {
            return Err(Error::invalid(format!(
                "no result of the call '{id}' is recorded: run it first"
            )));
        }
        let options =
            SanitizeOptions { orphans: OrphanPolicy::Leave, ..SanitizeOptions::default() };
        self.sanitize(act, &options, writer)
    }

    /// Releases the thread if this writer holds it.
    pub fn release(&self, act: &WriteContext, writer: &str) -> Result<WriteReport> {
        self.edit_header(act, |header| {
            header.writer = header.writer.take().filter(|held| held.name != writer);
            Ok(())
        })
    }

    /// Acquires or extends this writer's lease on the thread, so that no other writer can write
    /// until it ends.
    ///
    /// # Errors
    /// [`Error::Held`] while another writer holds it; or any error of a write.
    pub fn hold(&self, act: &WriteContext, writer: &str, until: Timestamp) -> Result<WriteReport> {
        self.edit_header(act, |header| {
            header.admit(&self.name, Some(writer), act.now)?;
            header.writer = Some(super::header::ThreadLease { name: writer.to_owned(), until });
            Ok(())
        })
    }
}

fn pending<'h>(header: &'h ThreadHeader, id: &str) -> Result<&'h PendingCall> {
    let found = header.pending.iter().rfind(|call| call.id == id);
    found.ok_or_else(|| Error::not_found("pending call", id))
}

/// Sanitises messages with the recorded results of pending calls. Those in `options` take
/// precedence.
fn sanitize_stored(
    kept: &[StoredMessage],
    pending: &[PendingCall],
    options: &SanitizeOptions,
) -> Result<SanitizedHistory> {
    let known = pending.iter().filter_map(|call| Some((call.id.clone(), call.outcome()?)));
    let mut results: BTreeMap<String, CallResult> = known.collect();
    results.extend(options.results.clone());
    let SanitizeOptions { orphans, continues, marks, .. } = *options;
    let options = SanitizeOptions { orphans, results, continues, marks };
    let texts: Vec<&str> = kept.iter().map(|message| message.text.as_str()).collect();
    sanitize_history(&texts, &options).map_err(|refused| Error::invalid(refused.to_string()))
}

/// Returns the changes of messages that produce this outcome, and updates the header. Messages that
/// are not moved keep their place, if there is room between them for the others.
fn changes(
    header: &mut ThreadHeader,
    kept: &[StoredMessage],
    sanitised: &SanitizedHistory,
) -> Vec<ClaimChange> {
    let places = places(kept, &sanitised.sources);
    let mut changes = Vec::new();
    let mut stays = vec![false; kept.len()];
    // Why the messages are put in, by their texts; of several reasons, the first one counts.
    let mut reasons: HashMap<&str, FaultKind> = HashMap::new();
    for action in &sanitised.actions {
        if let Some(text) = &action.message {
            reasons.entry(text).or_insert(action.reason);
        }
    }
    for ((text, source), place) in sanitised.messages.iter().zip(&sanitised.sources).zip(&places) {
        let old = source.and_then(|source| kept.get(source));
        if let Some(stays) = source.and_then(|source| stays.get_mut(source)) {
            *stays = true;
        }
        let same = |old: &StoredMessage| old.text == *text && old.place == *place && !old.held;
        if old.is_some_and(same) {
            continue;
        }
        let checked =
            check_message(text, RawObject::parse(text), sanitised.form, MessageContext::default());
        let reason = reasons.get(text.as_str()).map(|reason| reason.word());
        let reason = reason.or_else(|| old.and_then(|old| old.reason.as_deref()));
        let value = MessageRecord {
            role: checked.role.word(),
            text,
            message_id: checked.id,
            place: *place,
            held: false,
            reason,
        };
        let id = old.map_or_else(
            || {
                header.made += 1;
                format!("m{}", header.made)
            },
            |old| old.id.clone(),
        );
        changes.push(ClaimChange::put(message_key(&id), value.value()));
    }
    let gone = kept.iter().zip(stays).filter(|(_, stays)| !stays);
    changes.extend(gone.map(|(old, _)| ClaimChange::remove(message_key(&old.id))));
    header.messages = sanitised.messages.len() as u64;
    header.last = places.last().copied().unwrap_or(0);
    header.form = sanitised.form;
    changes
}

/// Returns the places of the messages of the outcome. Messages that are not moved keep their place,
/// and the others get places between them. Without enough room, all get new places.
fn places(kept: &[StoredMessage], sources: &[Option<usize>]) -> Vec<i64> {
    // A message only moves towards the beginning. So it was moved if a later message of the outcome
    // comes before it in the old history.
    let mut least = usize::MAX;
    let mut fixed: Vec<Option<i64>> = vec![None; sources.len()];
    for (at, source) in sources.iter().enumerate().rev() {
        if let Some(source) = source.filter(|source| *source < least) {
            least = source;
            fixed[at] = kept.get(source).map(|message| message.place);
        }
    }
    let mut places = Vec::with_capacity(sources.len());
    let mut before = 0;
    let mut at = 0;
    while at < fixed.len() {
        if let Some(place) = fixed[at] {
            places.push(place);
            before = place;
            at += 1;
            continue;
        }
        let count = fixed[at..].iter().take_while(|place| place.is_none()).count();
        let room = i64::try_from(count).unwrap_or(i64::MAX - 1) + 1;
        let step = match fixed.get(at + count).copied().flatten() {
            Some(after) => (after - before) / room,
            None => PLACE_GAP,
        };
        if step == 0 {
            // There is not enough room: all messages get new places.
            return (1..).map(|number| number * PLACE_GAP).take(sources.len()).collect();
        }
        places.extend((1..room).map(|number| before + step * number));
        before += step * (room - 1);
        at += count;
    }
    places
}

/// Updates the pending calls and the marks in the header for the new history.
fn settle(
    header: &mut ThreadHeader,
    kept: &[StoredMessage],
    sanitised: &SanitizedHistory,
    orphans: OrphanPolicy,
) {
    header.held.clear();
    header.marked = false;
    header.reasoning = false;
    header.unwritten = sanitised.messages.last().is_some_and(|text| {
        let around = MessageContext { last: true, provider_calls: None };
        check_message(text, RawObject::parse(text), sanitised.form, around).unwritten
    });
    if header.pending.is_empty() {
        return;
    }
    let mut checked = Vec::with_capacity(sanitised.messages.len());
    for text in &sanitised.messages {
        let object = RawObject::parse(text);
        checked.push(check_message(text, object, sanitised.form, MessageContext::default()));
    }
    let pairs = CallResultPairs::new(sanitised.form, &checked);
    // The places of the calls in each message, and the last message with each call.
    let mut places: HashMap<(usize, String, ToolCallKind), Vec<usize>> = HashMap::new();
    let mut last_with: HashMap<(&str, ToolCallKind), usize> = HashMap::new();
    for (at, one) in checked.iter().enumerate() {
        for (place, part) in one.calls.iter().enumerate() {
            let name = part.display_name();
            places.entry((at, name.to_owned(), part.kind)).or_default().push(place);
            last_with.insert((name, part.kind), at);
        }
    }
    let sources = kept.iter().enumerate().map(|(source, message)| (message.id.as_str(), source));
    let sources: HashMap<&str, usize> = sources.collect();
    let mut own_places: HashMap<usize, usize> = HashMap::new();
    for (at, source) in sanitised.sources.iter().enumerate() {
        if let Some(source) = source {
            own_places.entry(*source).or_insert(at);
        }
    }
    // A fault has the id from before it was changed.
    let put_in = sanitised.faults.iter().filter(|fault| fault.remedy == Remedy::Answered);
    let put_in = put_in.filter_map(|fault| Some((fault.index, fault.tool_call_id.as_deref()?)));
    let put_in: HashSet<(usize, &str)> = put_in.collect();
    let mut new_ids: HashMap<(usize, String), Vec<&str>> = HashMap::new();
    for (source, old, new) in &sanitised.renamed {
        new_ids.entry((*source, old.clone())).or_default().push(new);
    }
    let first_open = first_answerable(sanitised.form, &checked);
    let mut stays = vec![false; header.pending.len()];
    // Of several calls with one id, the later ones are renamed or removed: so the last pending call
    // is matched first. A message that was merged into another one, or removed, comes after all
    // messages that are left; its calls are found by their ids.
    for is_left in [true, false] {
        for (index, call) in header.pending.iter_mut().enumerate().rev() {
            let source = sources.get(call.message.as_str()).copied();
            let own = source.and_then(|source| own_places.get(&source)).copied();
            if own.is_some() != is_left {
                continue;
            }
            let is_put_in =
                source.is_some_and(|source| put_in.contains(&(source, call.id.as_str())));
            let new = source.and_then(|source| new_ids.get_mut(&(source, call.id.clone()))?.pop());
            if let Some(new) = new {
                new.clone_into(&mut call.id);
            }
            let at = own.or_else(|| last_with.get(&(call.id.as_str(), call.sort)).copied());
            call.open = at.is_some_and(|at| at >= first_open);
            let part = at.and_then(|at| {
                let place = places.get_mut(&(at, call.id.clone(), call.sort))?.pop()?;
                Some((at, place))
            });
            // If only some calls may be without a result, any other one has its result now.
            stays[index] = part.is_some_and(|(at, place)| {
                let may_stay =
                    orphans == OrphanPolicy::Leave || call.open && checked[at].calls[place].waits;
                let is_answered = matches!(pairs.call(at, place), PairAssignment::To(..));
                may_stay && !is_put_in && !is_answered
            });
        }
    }
    let mut stays = stays.into_iter();
    header.pending.retain(|_| stays.next().unwrap_or(true));
    header.marked = header.pending.iter().any(|call| !call.open);
}

/// Returns the index of the first message from which on the result of a call can be appended: in
/// most forms only results may be between the two, and in some one message must contain all
/// results.
fn first_answerable(form: MessageForm, checked: &[CheckedMessage<'_>]) -> usize {
    match form {
        MessageForm::OpenaiResponses => 0,
        MessageForm::Anthropic | MessageForm::Bedrock | MessageForm::Gemini => {
            checked.len().saturating_sub(1)
        }
        _ => checked.iter().rposition(|one| one.answers.is_empty()).unwrap_or(0),
    }
}

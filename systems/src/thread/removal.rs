//! Removes messages from the end of a thread, or all of them.

use super::append::{AppendBatch, AppendOptions, ensure_header_unchanged, retry_on_conflict};
use super::header::ThreadHeader;
use super::stored_thread::{StoredMessage, Thread, message_key};
use forge_store::error::Result;
use forge_store::model::Value;
use forge_store::store::{ClaimChange, WriteContext};
use std::borrow::Cow;

impl Thread {
    /// Removes the last message and returns it; `None` if there is none. The history of the thread
    /// keeps it. The cost depends on the length of the thread.
    ///
    /// # Errors
    /// [`forge_store::Error::Held`] while a writer holds the thread; or any error of a write.
    pub fn pop(&self, act: &WriteContext) -> Result<Option<StoredMessage>> {
        retry_on_conflict(|| Ok(self.remove_from(act, |kept| kept.saturating_sub(1))?.pop()))
    }

    /// Removes all messages; returns how many there were. The history of the thread keeps them.
    ///
    /// # Errors
    /// As [`Self::pop`].
    pub fn clear(&self, act: &WriteContext) -> Result<usize> {
        retry_on_conflict(|| Ok(self.remove_from(act, |_| 0)?.len()))
    }

    /// Removes the messages from an index on. `from` returns the index for the number of messages.
    fn remove_from(
        &self,
        act: &WriteContext,
        from: impl Fn(usize) -> usize,
    ) -> Result<Vec<StoredMessage>> {
        let moment = self.session.head()?;
        let (read, header) = self.header(&moment)?;
        header.admit(&self.name, None, act.now)?;
        let mut kept = self.messages(&moment)?;
        let gone = kept.split_off(from(kept.len()));
        if gone.is_empty() {
            return Ok(gone);
        }
        let new = header_of(header, &kept)?.value()?;
        let edit = |known: &[Option<Value>]| {
            ensure_header_unchanged(&self.name, known, read.as_ref())?;
            let mut changes = vec![ClaimChange::put(ThreadHeader::key(), new.clone())];
            changes.extend(gone.iter().map(|one| ClaimChange::remove(message_key(&one.id))));
            Ok(changes)
        };
        self.session.write(act).edit(vec![ThreadHeader::key()], edit).commit()?;
        Ok(gone)
    }
}

/// Returns the header of a thread that has only these messages left.
pub(super) fn header_of(old: ThreadHeader, kept: &[StoredMessage]) -> Result<ThreadHeader> {
    let mut header = ThreadHeader { form: old.form, certain: old.certain, ..Default::default() };
    let texts: Vec<Cow<'_, str>> = kept.iter().map(|one| Cow::Borrowed(&*one.text)).collect();
    let form = Some(old.form);
    let batch =
        AppendBatch::follow(&mut header, &texts, &AppendOptions { form, ..Default::default() })?;
    for call in &mut header.pending {
        let at = batch.ids.iter().position(|id| *id == call.message);
        if let Some(message) = at.and_then(|at| kept.get(at)) {
            call.message.clone_from(&message.id);
        }
        let known = old.pending.iter().find(|known| known.id == call.id);
        if let Some(known) = known.filter(|known| known.message == call.message) {
            call.idempotent = known.idempotent;
            call.state = known.state;
            call.result.clone_from(&known.result);
        }
    }
    Ok(ThreadHeader {
        certain: old.certain && !kept.is_empty(),
        made: old.made,
        last: kept.last().map_or(0, |message| message.place),
        held: kept.iter().filter(|one| one.held).map(|one| one.id.clone()).collect(),
        writer: old.writer,
        marked: !batch.faults.is_empty(),
        reset: old.reset,
        ..header
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::MessageForm;
    use forge_store::model::Timestamp;
    use forge_store::store::{ResolvedMoment, Store};

    fn act() -> WriteContext {
        WriteContext::asked("test", Timestamp::default())
    }

    fn filled(texts: &[&str]) -> Thread {
        let store = Store::in_memory().unwrap();
        let thread = Thread::open_or_create(&store, &act(), "t").unwrap();
        let form = Some(MessageForm::OpenaiResponses);
        let options = AppendOptions { form, ..AppendOptions::default() };
        thread.append(&act(), texts, &options).unwrap();
        thread
    }

    const CALL: &str = r#"{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}"#;
    const RESULT: &str = r#"{"type":"function_call_output","call_id":"c1","output":"1"}"#;

    #[test]
    fn a_call_whose_result_is_removed_is_open_again() {
        let thread = filled(&[CALL, RESULT]);
        assert_eq!(thread.pop(&act()).unwrap().unwrap().text, RESULT);
        let status = thread.status(&thread.session().head().unwrap()).unwrap();
        assert_eq!((status.messages, &*status.pending[0].id), (1, "c1"));
        assert_eq!(status.pending[0].message, "m1");
        // The same result can be appended again.
        let done = thread.append(&act(), &[RESULT], &AppendOptions::default()).unwrap();
        assert_eq!((done.pending.len(), done.marked, &*done.ids[0]), (0, false, "m3"));
        assert_eq!(thread.pop(&act()).unwrap().unwrap().text, RESULT);
        assert_eq!(thread.pop(&act()).unwrap().unwrap().text, CALL);
        assert_eq!(thread.pop(&act()).unwrap(), None);
    }

    #[test]
    fn a_cleared_thread_is_empty_and_accepts_another_form() {
        let thread = filled(&[CALL, RESULT]);
        assert_eq!(thread.clear(&act()).unwrap(), 2);
        assert_eq!(thread.clear(&act()).unwrap(), 0);
        assert!(thread.messages(&thread.session().head().unwrap()).unwrap().is_empty());
        let message = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}"#;
        thread.append(&act(), &[message], &AppendOptions::default()).unwrap();
    }

    #[test]
    fn messages_can_be_replaced_by_a_summary_in_one_revision() {
        let thread = filled(&["{\"role\":\"user\",\"content\":\"go\"}", CALL]);
        let before = thread.session().head().unwrap();
        let summary = r#"{"role":"user","content":"so far: nothing"}"#;
        let how = AppendOptions { replace: true, ..AppendOptions::default() };
        let done = thread.append(&act(), &[summary], &how).unwrap();
        assert_eq!((done.replaced, done.messages, done.marked), (2, 1, false));
        assert_eq!((done.pending.len(), &*done.ids[0]), (0, "m3"));
        let text = |moment: &ResolvedMoment| {
            let known = thread.messages(moment).unwrap();
            known.into_iter().map(|message| message.text).collect::<Vec<_>>()
        };
        assert_eq!(text(&thread.session().head().unwrap()), [summary]);
        assert_eq!(text(&before)[1], CALL);
        // All or nothing: a text that is no message replaces nothing.
        assert!(thread.append(&act(), &["{}"], &how).is_err());
        assert_eq!(text(&thread.session().head().unwrap()), [summary]);
    }

    #[test]
    fn an_invalid_message_in_a_known_form_is_kept_and_marks_the_thread() {
        let odd = r#"{"type":"of_tomorrow","x":1}"#;
        let thread = filled(&[odd]);
        let moment = thread.session().head().unwrap();
        assert_eq!(thread.messages(&moment).unwrap()[0].text, odd);
        assert!(thread.status(&moment).unwrap().marked);
        assert!(thread.append(&act(), &[odd], &AppendOptions::default()).is_err());
        assert!(thread.pop(&act()).unwrap().is_some());
        assert!(!thread.status(&thread.session().head().unwrap()).unwrap().marked);
    }
}

//! Opens and reads a stored thread.

use super::header::{PendingCall, ThreadHeader, ThreadLease, ThreadReset};
use super::message_form::MessageForm;
use forge_store::error::{Error, Result};
use forge_store::model::{Key, Kind, SessionKind, Value};
use forge_store::store::{ResolvedMoment, Session, Store, WriteContext};

/// Distance between the places of two messages that are appended. Others can be inserted between
/// them.
pub(super) const PLACE_GAP: i64 = 1 << 16;

/// A message thread in a store. Cheap to clone.
///
/// ```
/// use forge_store::model::Timestamp;
/// use forge_store::store::{Store, WriteContext};
/// use forge_systems::thread::{AppendOptions, SanitizeOptions, Thread};
///
/// let store = Store::in_memory()?;
/// let now = Timestamp::parse_rfc3339("2026-01-01T10:00:00Z").unwrap();
/// let act = WriteContext::asked("thread append", now);
/// let thread = Thread::open_or_create(&store, &act, "support-7")?;
/// let history = [
///     r#"{"role":"user","content":"weather?"}"#,
///     r#"{"role":"assistant","content":[
///         {"type":"tool_use","id":"t1","name":"weather","input":{}}]}"#,
/// ];
/// let done = thread.append(&act, &history, &AppendOptions::default())?;
/// assert_eq!(done.pending[0].id, "t1");
/// // The process ends here. The next one sanitises the thread before it continues.
/// let repaired = thread.sanitize(&act, &SanitizeOptions::default(), None)?;
/// assert_eq!(repaired.sanitized.messages.len(), 3);
/// # Ok::<(), forge_store::error::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Thread {
    pub(super) session: Session,
    pub(super) name: String,
}

/// A stored message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// Its id in the thread: `m7`.
    pub id: String,
    /// The JSON text of the message.
    pub text: String,
    /// Whether it is held back until every call has a result.
    pub held: bool,
    /// Why sanitising inserted or changed it; `None` if it is as it was appended.
    pub reason: Option<String>,
    /// Its place in the order of the messages.
    pub(super) place: i64,
}

/// The state of a thread besides its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadStatus {
    /// The form of its messages.
    pub form: MessageForm,
    /// The number of messages, including held ones.
    pub messages: u64,
    /// The number of held messages.
    pub held: u64,
    /// The calls without a result.
    pub pending: Vec<PendingCall>,
    /// The writer's lease, if there is one; it may have ended.
    pub writer: Option<ThreadLease>,
    /// Whether it contains a fault, other than calls whose results may still come.
    pub marked: bool,
    /// When sanitising last could keep none of its messages; `None` if it always could.
    pub reset: Option<ThreadReset>,
}

impl Thread {
    /// Opens the thread of this name.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it does not exist; or any error of a read.
    pub fn open(store: &Store, name: &str) -> Result<Self> {
        let session = crate::open(store, SessionKind::Thread, name)?;
        Ok(Self { session, name: name.to_owned() })
    }

    /// Opens the thread of this name, or creates it.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name is not valid; or any error of a write.
    pub fn open_or_create(store: &Store, act: &WriteContext, name: &str) -> Result<Self> {
        let session = crate::open_or_create(store, act, SessionKind::Thread, name)?;
        Ok(Self { session, name: name.to_owned() })
    }

    /// Returns the name of the thread.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the session that stores the thread.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Returns its state at a moment, without reading its messages.
    pub fn status(&self, moment: &ResolvedMoment) -> Result<ThreadStatus> {
        let header = self.header(moment)?.1;
        Ok(ThreadStatus {
            marked: header.is_marked(),
            form: header.form,
            messages: header.messages,
            held: header.held.len() as u64,
            pending: header.pending,
            writer: header.writer,
            reset: header.reset,
        })
    }

    /// Returns its messages at a moment, in order, including held ones.
    pub fn messages(&self, moment: &ResolvedMoment) -> Result<Vec<StoredMessage>> {
        let state = self.session.state(moment)?;
        let mut messages = state
            .claims()
            .entries_of_kind(Kind::ThreadMessage)
            .map(|entry| entry.and_then(|(key, entry)| message_from_value(key, entry.value)))
            .collect::<Result<Vec<_>>>()?;
        messages.sort_by_key(|message| message.place);
        Ok(messages)
    }

    /// Returns the header at a moment: the stored value, if there is one, and the decoded header.
    pub(super) fn header(&self, moment: &ResolvedMoment) -> Result<(Option<Value>, ThreadHeader)> {
        let value = self.session.claim(moment, &ThreadHeader::key())?.map(|entry| entry.value);
        let header = ThreadHeader::read(value.as_ref())?;
        Ok((value, header))
    }
}

pub(super) fn message_key(id: &str) -> Key {
    Key::new(Kind::ThreadMessage, id)
}

fn message_from_value(key: Key, value: Value) -> Result<StoredMessage> {
    let held = value.field("held").and_then(Value::as_bool).unwrap_or(false);
    let reason = value.field("reason").and_then(Value::as_text).map(str::to_owned);
    let place = value.field("place").and_then(Value::as_i64);
    let Value::Map(mut fields) = value else { return Err(damaged(&key)) };
    match (place, fields.remove("message")) {
        (Some(place), Some(Value::Text(text))) => {
            Ok(StoredMessage { id: key.id, text, held, reason, place })
        }
        _ => Err(damaged(&key)),
    }
}

fn damaged(key: &Key) -> Error {
    Error::Corrupt { what: format!("the {key}"), source: "it has no message or no place".into() }
}

/// The fields of a message to be stored.
pub(super) struct MessageRecord<'m> {
    pub(super) role: &'static str,
    pub(super) text: &'m str,
    pub(super) message_id: Option<String>,
    pub(super) place: i64,
    pub(super) held: bool,
    pub(super) reason: Option<&'m str>,
}

impl MessageRecord<'_> {
    /// Encodes the message.
    pub(super) fn value(self) -> Value {
        Value::from([
            ("role", self.role.into()),
            ("message", self.text.into()),
            ("message_id", self.message_id.into()),
            ("place", self.place.into()),
            ("held", if self.held { true.into() } else { Value::Null }),
            ("reason", self.reason.map(str::to_owned).into()),
        ])
    }
}

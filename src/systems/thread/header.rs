//! What a thread remembers beside its messages, so that an append need not read them.

use super::message_format::{CallResult, MessageFormat, ToolCallKind};
use crate::error::{Error, Result};
use crate::model::{Key, Kind, Timestamp, Value};
use serde::{Deserialize, Serialize};

/// The id of the one claim of this kind in a thread's session.
const ID: &str = "thread";

/// How far a call has come, as far as was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// Nobody has begun it.
    #[default]
    NotStarted,
    /// Somebody has begun it; whether it did anything is not known.
    Started,
    /// It has a result, which is not yet in the history.
    Finished,
    /// It ended with an error, which is not yet in the history.
    Failed,
}

/// A call that has no result in the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingCall {
    /// Its id.
    pub id: String,
    /// The tool it calls.
    pub name: String,
    /// The message that makes it.
    pub message: String,
    /// Whether running it twice does what running it once does.
    pub idempotent: bool,
    /// How far it has come.
    pub state: CallState,
    /// What came of it, if it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Whether the next message may still be its result.
    pub(super) open: bool,
    #[serde(default, skip_serializing_if = "is_function")]
    pub(super) sort: ToolCallKind,
}

fn is_function(sort: &ToolCallKind) -> bool {
    *sort == ToolCallKind::Function
}

impl PendingCall {
    /// Whether it can be run without asking: it is marked as idempotent, and nobody has begun it.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        self.idempotent && self.state == CallState::NotStarted
    }

    /// What is known to have come of it.
    #[must_use]
    pub fn outcome(&self) -> Option<CallResult> {
        let is_error = match self.state {
            CallState::Finished => false,
            CallState::Failed => true,
            CallState::NotStarted | CallState::Started => return None,
        };
        Some(CallResult { content: self.result.clone().unwrap_or_default(), is_error })
    }
}

/// Who writes a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadLease {
    /// Its name.
    pub name: String,
    /// From then on others may write again, whatever has become of it.
    pub until: Timestamp,
}

/// That nothing of a thread could be saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadReset {
    /// When.
    pub at: Timestamp,
    /// How many messages that were.
    pub messages: u64,
}

/// What a thread remembers beside its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ThreadHeader {
    pub(super) form: MessageFormat,
    /// Whether that form is certain.
    #[serde(default)]
    pub(super) certain: bool,
    /// How many messages there are, and how many were ever made.
    pub(super) messages: u64,
    pub(super) made: u64,
    /// The place of the last message.
    pub(super) last: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) pending: Vec<PendingCall>,
    /// The messages that are held back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) held: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) writer: Option<ThreadLease>,
    #[serde(default)]
    pub(super) marked: bool,
    /// Whether the last message is reasoning, which what it belongs to must follow.
    #[serde(default)]
    pub(super) reasoning: bool,
    /// Whether the last message is an answer without text, which only the last message may be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) unwritten: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reset: Option<ThreadReset>,
}

impl ThreadHeader {
    pub(super) fn key() -> Key {
        Key::new(Kind::Thread, ID)
    }

    pub(super) fn read(value: Option<&Value>) -> Result<Self> {
        let Some(value) = value else { return Ok(Self::default()) };
        let json = serde_json::to_value(value).map_err(damaged)?;
        serde_json::from_value(json).map_err(damaged)
    }

    pub(super) fn value(&self) -> Result<Value> {
        let json = serde_json::to_value(self).map_err(damaged)?;
        serde_json::from_value(json).map_err(damaged)
    }

    /// Whether it holds something that no provider would take, apart from calls whose results may still come.
    pub(super) const fn is_marked(&self) -> bool {
        self.marked || self.reasoning
    }

    /// Refuses whoever does not hold the thread while somebody does.
    pub(super) fn admit(&self, thread: &str, writer: Option<&str>, now: Timestamp) -> Result<()> {
        match &self.writer {
            Some(held) if held.until > now && Some(held.name.as_str()) != writer => {
                Err(Error::Held {
                    what: format!("the thread '{thread}'"),
                    by: held.name.clone(),
                    until: held.until,
                })
            }
            _ => Ok(()),
        }
    }
}

fn damaged(error: serde_json::Error) -> Error {
    Error::Corrupt { what: "the header of the thread".to_owned(), source: error.into() }
}

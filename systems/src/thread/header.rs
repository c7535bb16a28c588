//! The header of a thread: all that an append must know of it, so that it need not read the
//! messages.

use super::message_form::{CallResult, MessageForm, ToolCallKind};
use forge_store::error::{Error, Result};
use forge_store::model::{Key, Kind, Timestamp, Value};
use serde::{Deserialize, Serialize};

/// The id of the claim with the header, the only one of its kind in a thread's session.
const ID: &str = "thread";

/// The recorded progress of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// Not started.
    #[default]
    NotStarted,
    /// Started; whether it had an effect is not known.
    Started,
    /// It has a result that is not yet in the history.
    Finished,
    /// It ended with an error that is not yet in the history.
    Failed,
}

/// A call without a result in the history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingCall {
    /// The id of the call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The id of the message with the call.
    pub message: String,
    /// Whether running it twice has the same effect as running it once.
    pub idempotent: bool,
    /// The recorded progress of the call.
    pub state: CallState,
    /// The result, if the call has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Whether its result may still be appended in the right place.
    pub(super) open: bool,
    #[serde(default, skip_serializing_if = "is_function")]
    pub(super) sort: ToolCallKind,
}

fn is_function(sort: &ToolCallKind) -> bool {
    *sort == ToolCallKind::Function
}

impl PendingCall {
    /// Returns whether it can be run without asking: it is idempotent and was not started.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        self.idempotent && self.state == CallState::NotStarted
    }

    /// Returns its recorded result, if any.
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

/// The lease of a thread's writer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadLease {
    /// The name of the writer.
    pub name: String,
    /// When the lease ends, after which others may write.
    pub until: Timestamp,
}

/// Records that sanitising could keep none of the messages of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadReset {
    /// When the thread was sanitised.
    pub at: Timestamp,
    /// How many messages it had until then.
    pub messages: u64,
}

/// What is stored about a thread besides its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ThreadHeader {
    pub(super) form: MessageForm,
    /// Whether the form is certain, and not only guessed from weak evidence.
    #[serde(default)]
    pub(super) certain: bool,
    /// The number of messages.
    pub(super) messages: u64,
    /// The number of messages ever created. New messages get their ids from it.
    pub(super) made: u64,
    /// The place of the last message in the order.
    pub(super) last: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) pending: Vec<PendingCall>,
    /// The ids of the held messages, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) held: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) writer: Option<ThreadLease>,
    /// Whether the messages have a fault, other than open calls or reasoning at the end.
    #[serde(default)]
    pub(super) marked: bool,
    /// Whether the last message is reasoning, which must be followed by the item it belongs to.
    #[serde(default)]
    pub(super) reasoning: bool,
    /// Whether the last message is an answer without text, which is valid only at the end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) unwritten: bool,
    /// Whether a message refers to an item that the provider stored, which may be a call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) refers: bool,
    /// The ids of the uses of server tools in the last answer that have no result yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) server_uses: Vec<String>,
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

    /// Returns whether the thread contains a fault, apart from calls whose results may still come.
    pub(super) const fn is_marked(&self) -> bool {
        self.marked || self.reasoning
    }

    /// Checks that no other writer holds the thread. Fails with [`Error::Held`].
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

//! Where a line stands, and what is made there.

use super::carry::Carry;
use super::line::{Content, Message};
use crate::piece::CheckpointDraft;
use crate::text::{self, Place};
use forge_store::model::{Fact, Kind, Map, Origin, Timestamp, Value};
use serde_json::value::RawValue;

/// Who wrote a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Assistant,
    System,
}

impl Speaker {
    pub(super) fn of(kind: &str) -> Option<Self> {
        match kind {
            "user" => Some(Self::User),
            "assistant" => Some(Self::Assistant),
            "system" => Some(Self::System),
            _ => None,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
}

/// A line that says something, of the session or of a sub-agent.
#[derive(Debug)]
pub(super) struct Spoken<'a> {
    pub(super) speaker: Speaker,
    pub(super) uuid: &'a str,
    pub(super) message: Message<'a>,
    pub(super) content: Content<'a>,
    pub(super) result: Option<&'a RawValue>,
}

/// Where and when a line was written.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) place: Place,
    pub(super) at: Timestamp,
    pub(super) recorded_at: Timestamp,
    /// The sub-agent whose line it is.
    pub(super) agent: Option<String>,
    /// Where the line stands in the JSON document: `""`, or below a progress line's data.
    pub(super) base: &'static str,
    pub(super) cwd: Option<&'a str>,
    pub(super) git_branch: Option<&'a str>,
}

impl Scene<'_> {
    pub(super) fn fact(&self, kind: Kind, id: &str, value: Map) -> Fact {
        Fact {
            kind,
            id: id.to_owned(),
            at: self.at,
            origin: Origin::Imported,
            place: self.place.0,
            recorded_at: self.recorded_at,
            value: Value::Map(value),
        }
    }

    /// A text of this line; `pointer` leads to it from the line's own object.
    pub(super) fn text(&self, text: &str, pointer: impl AsRef<str>) -> Value {
        text::value(text, self.place, || format!("{}{}", self.base, pointer.as_ref()))
    }
}

/// The fields of a fact; those that are null are left out.
pub(super) fn fields<const N: usize>(fields: [(&str, Value); N]) -> Map {
    let present = fields.into_iter().filter(|(_, value)| *value != Value::Null);
    present.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A flag as it stands in a fact: there when it is true.
pub(super) fn flag(value: bool) -> Value {
    if value { true.into() } else { Value::Null }
}

/// Reads lines: what they say goes into the facts, what later lines need into the carry.
#[derive(Debug)]
pub(super) struct Work<'w> {
    pub(super) carry: &'w mut Carry,
    pub(super) facts: &'w mut Vec<Fact>,
    pub(super) checkpoints: &'w mut Vec<CheckpointDraft>,
    pub(super) infer: bool,
}

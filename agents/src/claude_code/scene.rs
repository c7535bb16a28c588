//! Where a line stands, and what is made there.

use super::carry::Carry;
use super::line::{Content, Denial, Message};
use crate::piece::CheckpointDraft;
use crate::text::{self, Place};
use forge_store::model::{Fact, Kind, Map, Origin, Timestamp, Value};
use serde_json::value::RawValue;
use std::ops::Range;

/// Who wrote a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    User,
    Assistant,
    System,
}

impl Speaker {
    pub(crate) fn of(kind: &str) -> Option<Self> {
        match kind {
            "user" => Some(Self::User),
            "assistant" => Some(Self::Assistant),
            "system" => Some(Self::System),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }
}

/// A line that says something, of the session or of a sub-agent.
#[derive(Debug)]
pub(crate) struct Spoken<'a> {
    pub(crate) speaker: Speaker,
    pub(crate) uuid: &'a str,
    pub(crate) message: Message<'a>,
    pub(crate) content: Content<'a>,
    pub(crate) result: Option<&'a RawValue>,
    pub(crate) denial: Denial<'a>,
}

/// Where and when a line was written.
#[derive(Clone, Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) place: Place,
    pub(crate) at: Timestamp,
    pub(crate) recorded_at: Timestamp,
    /// The sub-agent whose line it is.
    pub(crate) agent: Option<String>,
    /// Where the line stands in the JSON document: `""`, or below a progress line's data.
    pub(crate) base: &'static str,
    pub(crate) cwd: Option<&'a str>,
    pub(crate) git_branch: Option<&'a str>,
}

impl Scene<'_> {
    pub(crate) fn fact(&self, kind: Kind, id: &str, value: Map) -> Fact {
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
    pub(crate) fn text(&self, text: &str, pointer: impl AsRef<str>) -> Value {
        text::value(text, self.place, || format!("{}{}", self.base, pointer.as_ref()))
    }

    /// A part of a text of this line.
    pub(crate) fn part(&self, text: &str, part: Range<usize>, pointer: &str) -> Value {
        text::part(text, part, self.place, || format!("{}{pointer}", self.base))
    }
}

/// The fields of a fact; those that are null are left out.
pub(crate) fn fields<const N: usize>(fields: [(&str, Value); N]) -> Map {
    let present = fields.into_iter().filter(|(_, value)| *value != Value::Null);
    present.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A flag as it stands in a fact: there when it is true.
pub(crate) fn flag(value: bool) -> Value {
    if value { true.into() } else { Value::Null }
}

/// Reads lines: what they say goes into the facts, what later lines need into the carry.
#[derive(Debug)]
pub(crate) struct Work<'w> {
    pub(crate) carry: &'w mut Carry,
    pub(crate) facts: &'w mut Vec<Fact>,
    pub(crate) checkpoints: &'w mut Vec<CheckpointDraft>,
    pub(crate) infer: bool,
}

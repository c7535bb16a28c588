//! The position of a line in the transcript, and the piece that it is read into.

use super::line::{CallDenial, ClaudeMessage, MessageContent};
use super::transcript_state::TranscriptState;
use crate::long_text::{self, SourceSpan};
use crate::piece::{CheckpointDraft, fact_id};
use forge_store::model::{Fact, FactOrigin, FieldMap, Kind, Timestamp, Value};
use serde_json::value::RawValue;
use std::ops::Range;

/// Who wrote a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineSpeaker {
    User,
    Assistant,
    System,
}

impl LineSpeaker {
    pub(crate) fn from_kind(kind: &str) -> Option<Self> {
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

/// A line with a message, of the session or of a sub-agent.
#[derive(Debug)]
pub(crate) struct SpokenLine<'a> {
    pub(crate) speaker: LineSpeaker,
    pub(crate) uuid: &'a str,
    pub(crate) message: ClaudeMessage<'a>,
    pub(crate) content: MessageContent<'a>,
    pub(crate) result: Option<&'a RawValue>,
    pub(crate) denial: CallDenial<'a>,
}

/// Where and when a line was written.
#[derive(Clone, Debug)]
pub(crate) struct LineContext {
    pub(crate) place: SourceSpan,
    pub(crate) at: Timestamp,
    pub(crate) recorded_at: Timestamp,
    /// The sub-agent that the line belongs to.
    pub(crate) agent: Option<String>,
    /// The pointer to the line's own object: `""`, or below the data of a progress line.
    pub(crate) base: &'static str,
    pub(crate) cwd: Option<String>,
    pub(crate) git_branch: Option<String>,
}

impl LineContext {
    /// Returns the context of a line whose own time, agent and directory are not known yet.
    pub(crate) fn new(place: SourceSpan, recorded_at: Timestamp) -> Self {
        Self {
            place,
            at: recorded_at,
            recorded_at,
            agent: None,
            base: "",
            cwd: None,
            git_branch: None,
        }
    }

    pub(crate) fn fact(&self, kind: Kind, id: &str, mut value: FieldMap) -> Fact {
        // Some proxies subtract more cached tokens than there are, and clocks are set back. A store
        // accepts no such count.
        value.retain(|name, count| {
            let is_count = name.ends_with("tokens") || name == "duration_ms";
            !(is_count && matches!(count, Value::Int(..=-1)))
        });
        Fact {
            kind,
            id: fact_id(id),
            at: self.at,
            origin: FactOrigin::Imported,
            place: self.place.0,
            recorded_at: self.recorded_at,
            value: Value::Map(value),
        }
    }

    /// Returns a text of this line as the value of a fact. `pointer` leads to the text from the
    /// line's own object.
    pub(crate) fn text(&self, text: &str, pointer: impl AsRef<str>) -> Value {
        long_text::value(text, self.place, || format!("{}{}", self.base, pointer.as_ref()))
    }

    /// Returns a part of a text of this line as the value of a fact, as [`Self::text`] does.
    pub(crate) fn part(&self, text: &str, part: Range<usize>, pointer: &str) -> Value {
        long_text::part(text, part, self.place, || format!("{}{pointer}", self.base))
    }
}

/// Returns the fields of a fact, without those that are null.
pub(crate) fn fields<const N: usize>(fields: [(&str, Value); N]) -> FieldMap {
    let present = fields.into_iter().filter(|(_, value)| *value != Value::Null);
    present.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns a flag as the value of a fact: null unless it is true.
pub(crate) fn flag(value: bool) -> Value {
    if value { true.into() } else { Value::Null }
}

/// Builds a piece from lines. `carry` keeps the state that later lines need.
#[derive(Debug)]
pub(crate) struct PieceBuilder<'w> {
    pub(crate) carry: &'w mut TranscriptState,
    pub(crate) facts: &'w mut Vec<Fact>,
    pub(crate) checkpoints: &'w mut Vec<CheckpointDraft>,
    /// The line that is being read.
    pub(crate) line: LineContext,
    /// Whether rules find statements in the agent's messages.
    pub(crate) infer: bool,
}

impl PieceBuilder<'_> {
    /// Adds a fact of the line.
    pub(crate) fn fact(&mut self, kind: Kind, id: &str, value: FieldMap) {
        self.facts.push(self.line.fact(kind, id, value));
    }

    /// Returns a text of the line as [`LineContext::text`] does.
    pub(crate) fn text(&self, text: &str, pointer: impl AsRef<str>) -> Value {
        self.line.text(text, pointer)
    }

    /// Returns a part of a text of the line as [`LineContext::part`] does.
    pub(crate) fn part(&self, text: &str, part: Range<usize>, pointer: &str) -> Value {
        self.line.part(text, part, pointer)
    }
}

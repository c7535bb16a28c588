//! What can be wrong with a history of messages.

use serde::{Serialize, Serializer};
use std::fmt;

macro_rules! faults {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $about:literal;)*) => {
        /// What is wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FaultKind { $($(#[$doc])* $variant,)* }

        impl FaultKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The word for it.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// It, as a person is told.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }
        }
    };
}

faults! {
    /// A call whose result is nowhere.
    OrphanedCall = "orphaned_call", "a call without a result";
    /// A second call of an id.
    DoubledCall = "doubled_call", "a second call of the same id";
    /// A call without id, name or arguments.
    MalformedCall = "malformed_call", "a call without id, name or proper arguments";
    /// `tool_calls` is an empty list, or null.
    EmptyToolCalls = "empty_tool_calls", "a list of calls with nothing in it";
    /// A result whose call is nowhere.
    ResultWithoutCall = "result_without_call", "a result without a call";
    /// A second result of a call.
    DoubledResult = "doubled_result", "a second result of the same call";
    /// A result that is not where its call needs it.
    MisplacedResult = "misplaced_result", "a result that is not next to its call";
    /// A result that does not say of what, or holds something that is no content.
    MalformedResult = "malformed_result", "a result without call id or proper content";
    /// A content block that is none.
    MalformedBlock = "malformed_block", "something in the content that is no content block";
    /// Half of a surrogate pair, where a text was cut: no character.
    CutCharacter = "cut_character", "half of a character, where a text was cut";
    /// A message or text block that says nothing.
    EmptyMessage = "empty_message", "a message or text block that says nothing";
    /// Thinking after which nothing is said or called.
    TrailingThinking = "trailing_thinking", "thinking at the end of an answer";
    /// A reasoning item that what it belongs to does not follow.
    ReasoningWithoutItem = "reasoning_without_item", "a reasoning item without the item it belongs to";
    /// No message of this form.
    NotAMessage = "not_a_message", "no message of this form";
}

impl fmt::Display for FaultKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.word())
    }
}

impl Serialize for FaultKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// Something wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// What is wrong.
    pub fault: FaultKind,
    /// The message it is found at, counted from 0.
    pub index: usize,
    /// The id that the message has itself.
    pub message_id: Option<String>,
    /// The call it is about.
    pub tool_call_id: Option<String>,
}

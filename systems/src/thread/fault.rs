//! The possible faults of a message history, and their remedies.

use serde::{Serialize, Serializer};
use std::fmt;

/// Defines an enumeration with a word and a description for each value.
macro_rules! described_words {
    ($(#[$about:meta])* $name:ident: $($(#[$doc:meta])* $variant:ident = $word:literal, $description:literal;)*) => {
        words! {
            $(#[$about])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum $name { $($(#[$doc])* $variant = $word,)* }
        }

        impl $name {
            /// Returns a description for a person.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $description,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(self.word())
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }
    };
}

described_words! {
    /// A kind of fault.
    FaultKind:
    /// A call without a result anywhere.
    OrphanedCall = "orphaned_call", "a call without a result";
    /// A second call with an id that must be unique.
    DoubledCall = "doubled_call", "a second call of the same id";
    /// A call without a name, or of an unreadable form.
    MalformedCall = "malformed_call", "a malformed call";
    /// A call or a result without an id.
    MissingId = "missing_id", "a call or result without an id";
    /// An id with characters, with a beginning or of a length that the provider refuses.
    RefusedId = "refused_id", "an id that the provider refuses";
    /// A name of a tool or a speaker with characters or of a length that the provider refuses.
    RefusedName = "refused_name", "a name that the provider refuses";
    /// Arguments given as an object where a text is required, or the reverse.
    MistypedArguments = "mistyped_arguments", "arguments of another type than the provider takes";
    /// A call that one message gives in the forms of two providers.
    MixedForms = "mixed_forms", "a call in the form of another provider";
    /// `tool_calls` is an empty list, or null.
    EmptyToolCalls = "empty_tool_calls", "an empty list of calls";
    /// A result without a call anywhere.
    ResultWithoutCall = "result_without_call", "a result without a call";
    /// A second result of a call.
    DoubledResult = "doubled_result", "a second result of the same call";
    /// A result in a place other than where its call needs it.
    MisplacedResult = "misplaced_result", "a result that is not next to its call";
    /// A result of another type than its call, or with the name of another tool.
    MismatchedResult = "mismatched_result", "a result that names another type or tool than its call";
    /// A result with invalid content.
    MalformedResult = "malformed_result", "a result without proper content";
    /// An error result with content other than text.
    ErrorNotText = "error_not_text", "the result of an error that is not text alone";
    /// The result of a server tool without its use.
    ServerResultWithoutUse = "server_result_without_use", "a server tool's result without its use";
    /// The use of a server tool without its result.
    ServerUseWithoutResult = "server_use_without_result", "a server tool's use without its result";
    /// An invalid content block, or a field of a message that the provider refuses.
    MalformedBlock = "malformed_block", "an invalid block, or a field that the provider refuses";
    /// A lone surrogate: half of a character, left where a text was cut.
    CutCharacter = "cut_character", "half of a character, where a text was cut";
    /// An empty message or text block.
    EmptyMessage = "empty_message", "an empty message or text block";
    /// Trailing white space in the last answer.
    TrailingSpace = "trailing_space", "white space at the end of the last answer";
    /// Thinking that no text or call follows.
    TrailingThinking = "trailing_thinking", "thinking at the end of an answer";
    /// Thinking without the signature that proves its origin.
    UnsignedThinking = "unsigned_thinking", "thinking without its signature";
    /// A reasoning item that is not followed by the item it belongs to.
    ReasoningWithoutItem = "reasoning_without_item", "a reasoning item without the item it belongs to";
    /// Two adjacent messages of one role where the roles must alternate.
    RepeatedRole = "repeated_role", "a second message of the same role in a row";
    /// A history that does not begin with a user message.
    NoUserFirst = "no_user_first", "no message of the user at the beginning";
    /// More marks of the cache than the provider accepts.
    CacheMarks = "cache_marks", "more marks of the cache than the provider takes";
    /// An item with the id of an earlier one.
    RepeatedItem = "repeated_item", "an item with the id of an earlier one";
    /// A message without the field with its role or type.
    MissingRole = "missing_role", "a message that does not say its role or type";
    /// Not a message in this form.
    NotAMessage = "not_a_message", "not a message in this form";
}

described_words! {
    /// The remedy for a fault.
    Remedy:
    /// Removed.
    Removed = "removed", "removed";
    /// Repaired in place.
    Changed = "changed", "corrected";
    /// Given another id.
    Renamed = "renamed", "given another id";
    /// Moved to its place.
    Moved = "moved", "moved to its place";
    /// Answered with an inserted result.
    Answered = "answered", "a result is inserted";
    /// Kept as text for the model.
    KeptAsText = "kept_as_text", "kept as a text";
    /// Joined to the message before it.
    Merged = "merged", "made part of the message before it";
    /// Preceded by an inserted message.
    Preceded = "preceded", "a message is inserted before it";
}

/// A fault, its location, and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadFault {
    /// The kind of fault.
    pub fault: FaultKind,
    /// Index of the message in the original history, from 0.
    pub index: usize,
    /// The message's own id.
    pub message_id: Option<String>,
    /// The original id of the call concerned.
    pub tool_call_id: Option<String>,
    /// The remedy.
    pub remedy: Remedy,
}

impl fmt::Display for ThreadFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "message {}: {}", self.index, self.fault.about())?;
        if let Some(id) = &self.tool_call_id {
            write!(out, " {id}")?;
        }
        write!(out, ": {}", self.remedy.about())
    }
}

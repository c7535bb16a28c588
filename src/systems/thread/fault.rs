//! What can be wrong with a history of messages, and what is done about it.

use serde::{Serialize, Serializer};
use std::fmt;

macro_rules! words {
    ($(#[$about:meta])* $name:ident: $($(#[$doc:meta])* $variant:ident = $word:literal, $told:literal;)*) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
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
                match self { $(Self::$variant => $told,)* }
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

words! {
    /// What is wrong.
    FaultKind:
    /// A call whose result is nowhere.
    OrphanedCall = "orphaned_call", "a call without a result";
    /// A second call of an id that may be used only once.
    DoubledCall = "doubled_call", "a second call of the same id";
    /// A call without a name, or of a form that cannot be read.
    MalformedCall = "malformed_call", "a call that is not of the proper form";
    /// A call or a result without an id.
    MissingId = "missing_id", "a call or result without an id";
    /// An id of characters or of a length that the provider refuses.
    RefusedId = "refused_id", "an id that the provider refuses";
    /// Arguments as an object where a text is due, or the reverse.
    MistypedArguments = "mistyped_arguments", "arguments of another type than the provider takes";
    /// A call that stands in one message in the forms of two providers.
    MixedForms = "mixed_forms", "a call in the form of another provider";
    /// `tool_calls` is an empty list, or null.
    EmptyToolCalls = "empty_tool_calls", "a list of calls with nothing in it";
    /// A result whose call is nowhere.
    ResultWithoutCall = "result_without_call", "a result without a call";
    /// A second result of a call.
    DoubledResult = "doubled_result", "a second result of the same call";
    /// A result that is not where its call needs it.
    MisplacedResult = "misplaced_result", "a result that is not next to its call";
    /// A result that holds something that is no content.
    MalformedResult = "malformed_result", "a result without proper content";
    /// The result of an error with something beside texts.
    ErrorNotText = "error_not_text", "the result of an error that is not text alone";
    /// The result of a tool that the provider runs, without its use.
    ServerResultWithoutUse = "server_result_without_use", "a server tool's result without its use";
    /// The use of a tool that the provider runs, without its result.
    ServerUseWithoutResult = "server_use_without_result", "a server tool's use without its result";
    /// A content block that is none.
    MalformedBlock = "malformed_block", "something in the content that is no content block";
    /// Half of a surrogate pair, where a text was cut: no character.
    CutCharacter = "cut_character", "half of a character, where a text was cut";
    /// A message or text block that says nothing.
    EmptyMessage = "empty_message", "a message or text block that says nothing";
    /// White space at the end of the last answer.
    TrailingSpace = "trailing_space", "white space at the end of the last answer";
    /// Thinking after which nothing is said or called.
    TrailingThinking = "trailing_thinking", "thinking at the end of an answer";
    /// Thinking without the signature that proves where it is from.
    UnsignedThinking = "unsigned_thinking", "thinking without its signature";
    /// A reasoning item that what it belongs to does not follow.
    ReasoningWithoutItem = "reasoning_without_item", "a reasoning item without the item it belongs to";
    /// Two messages of one role where the roles must alternate.
    RepeatedRole = "repeated_role", "a second message of the same role in a row";
    /// A history that does not begin with a message of the user.
    NoUserFirst = "no_user_first", "no message of the user at the beginning";
    /// A message that lost the field that says its role or its type.
    MissingRole = "missing_role", "a message that does not say its role or type";
    /// No message of this form.
    NotAMessage = "not_a_message", "no message of this form";
}

words! {
    /// What sanitising does about a fault.
    Remedy:
    /// It is taken out.
    Removed = "removed", "taken out";
    /// It is put right where it is.
    Changed = "changed", "put right";
    /// It gets another id.
    Renamed = "renamed", "given another id";
    /// It is put where it belongs.
    Moved = "moved", "moved to its place";
    /// A result is put in.
    Answered = "answered", "a result is put in";
    /// What it says is kept as a text for the model.
    KeptAsText = "kept_as_text", "kept as a text";
    /// It becomes part of the message before it.
    Merged = "merged", "made part of the message before it";
    /// A message is put in before it.
    Preceded = "preceded", "a message is put in before it";
}

/// Something wrong, where, and what sanitising does about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ThreadFault {
    /// What is wrong.
    pub fault: FaultKind,
    /// The message of the history as it was given, counted from 0.
    pub index: usize,
    /// The id that the message has itself.
    pub message_id: Option<String>,
    /// The call it is about, by the id as it was given.
    pub tool_call_id: Option<String>,
    /// What sanitising does about it.
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

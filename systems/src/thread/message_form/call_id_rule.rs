//! The providers' rules for call ids and tool names.

use super::MessageForm;

/// A provider's rule for call ids.
pub(in crate::thread) struct CallIdRule {
    /// The maximum length in characters.
    pub(in crate::thread) max_chars: usize,
    /// Whether only letters, digits, `_` and `-` are allowed.
    pub(in crate::thread) plain_only: bool,
    /// Whether a call must have an id.
    pub(in crate::thread) required: bool,
    /// Whether an id must be unique in the whole history.
    pub(in crate::thread) unique: bool,
}

impl CallIdRule {
    /// Returns whether the provider accepts this id.
    pub(in crate::thread) fn accepts(&self, id: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if id.is_empty() {
            return !self.required;
        }
        id.chars().count() <= self.max_chars && (!self.plain_only || id.bytes().all(is_plain))
    }
}

impl MessageForm {
    /// Returns the replacement of a tool name that this form's provider refuses; `None` if the
    /// provider accepts the name. The same name always gets the same replacement.
    pub(super) fn replacement_name(self, name: &str) -> Option<String> {
        let longest = match self {
            Self::Plain | Self::OpenaiChat | Self::Bedrock => 64,
            Self::OpenaiResponses | Self::Anthropic => 128,
            _ => return None,
        };
        let is_plain = |next: char| next.is_ascii_alphanumeric() || matches!(next, '_' | '-');
        if name.chars().all(is_plain) && name.len() <= longest {
            return None;
        }
        let plain = |next: char| if is_plain(next) { next } else { '_' };
        Some(name.chars().map(plain).take(longest).collect())
    }

    /// Returns the rule for call ids of this form's provider.
    pub(in crate::thread) const fn id_rule(self) -> CallIdRule {
        let any =
            CallIdRule { max_chars: usize::MAX, plain_only: false, required: true, unique: false };
        match self {
            Self::Plain | Self::OpenaiChat => CallIdRule { max_chars: 40, ..any },
            Self::OpenaiResponses => CallIdRule { max_chars: 64, ..any },
            Self::Anthropic => CallIdRule { plain_only: true, unique: true, ..any },
            Self::Bedrock => CallIdRule { max_chars: 64, plain_only: true, unique: true, ..any },
            Self::Gemini => CallIdRule { required: false, ..any },
            Self::AiSdk | Self::Langchain | Self::LangchainFlat | Self::LangchainLc => any,
        }
    }
}

//! What each provider takes as the id of a call.

use super::Form;

/// What an id of a call may be.
pub(in crate::systems::thread) struct IdRule {
    /// The longest that is taken.
    pub(in crate::systems::thread) longest: usize,
    /// Whether only letters, digits, `_` and `-` are taken.
    pub(in crate::systems::thread) plain: bool,
    /// Whether a call must have one.
    pub(in crate::systems::thread) due: bool,
    /// Whether it may be used only once in the whole history.
    pub(in crate::systems::thread) once: bool,
}

impl IdRule {
    /// Whether the provider takes this id.
    pub(in crate::systems::thread) fn takes(&self, id: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if id.is_empty() {
            return !self.due;
        }
        id.chars().count() <= self.longest && (!self.plain || id.bytes().all(is_plain))
    }
}

impl Form {
    /// What the provider of this form takes as the id of a call.
    pub(in crate::systems::thread) const fn id_rule(self) -> IdRule {
        let any = IdRule { longest: usize::MAX, plain: false, due: true, once: false };
        match self {
            Self::Plain | Self::OpenaiChat => IdRule { longest: 40, ..any },
            Self::OpenaiResponses => IdRule { longest: 64, ..any },
            Self::Anthropic => IdRule { plain: true, once: true, ..any },
            Self::Bedrock => IdRule { longest: 64, plain: true, once: true, ..any },
            Self::Gemini => IdRule { due: false, ..any },
            Self::AiSdk | Self::Langchain | Self::LangchainFlat | Self::LangchainLc => any,
        }
    }
}

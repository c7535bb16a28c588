//! Fields that hold a word of a fixed vocabulary.

use serde::{Serialize, Serializer};
use std::fmt;

/// The error for a word outside the vocabulary of a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {word:?}: use one of {}", allowed.join(", "))]
pub struct UnknownWord {
    /// The name of the vocabulary.
    pub what: &'static str,
    /// The invalid word.
    pub word: String,
    /// The allowed words.
    pub allowed: &'static [&'static str],
}

/// A type whose variants are the words of a vocabulary: the words that a field may hold.
pub trait VocabularyWord: Copy + Sized + 'static {
    /// The name of the vocabulary, as shown to people.
    const WHAT: &'static str;
    /// The words, in the order of the variants.
    const WORDS: &'static [&'static str];
    /// Returns the variant of this word; `None` if the vocabulary does not contain it.
    fn from_word(word: &str) -> Option<Self>;
    /// Returns the word of this variant.
    fn word(self) -> &'static str;
}

/// Defines an enum whose variants are the words that a field may hold.
///
/// The enum gets [`VocabularyWord`](crate::model::claim::VocabularyWord),
/// [`FieldValue`](crate::model::claim::FieldValue), `Display`, `FromStr` and `Serialize`.
///
/// ```
/// forge_store::vocabulary! {
///     /// How bad a fault is.
///     Severity, "severity" {
///         /// Work goes on.
///         Minor = "minor",
///         /// Work stops.
///         Major = "major",
///     }
/// }
/// assert_eq!("major".parse(), Ok(Severity::Major));
/// let error = "huge".parse::<Severity>().unwrap_err();
/// assert_eq!(error.to_string(), "unknown severity \"huge\": use one of minor, major");
/// ```
#[macro_export]
macro_rules! vocabulary {
    ($(#[$doc:meta])* $name:ident, $what:literal {
        $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All variants, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
        }

        impl $crate::model::claim::VocabularyWord for $name {
            const WHAT: &'static str = $what;
            const WORDS: &'static [&'static str] = &[$($word,)*];

            fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }

            fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str($crate::model::claim::VocabularyWord::word(*self))
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::model::claim::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                use $crate::model::claim::{UnknownWord, VocabularyWord};
                Self::from_word(text).ok_or_else(|| UnknownWord {
                    what: Self::WHAT,
                    word: text.to_owned(),
                    allowed: Self::WORDS,
                })
            }
        }

        impl $crate::model::claim::serde_of_vocabulary::Serialize for $name {
            fn serialize<S: $crate::model::claim::serde_of_vocabulary::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($crate::model::claim::VocabularyWord::word(*self))
            }
        }

        impl $crate::model::claim::FieldValue for $name {
            const SHAPE: $crate::model::claim::FieldShape = $crate::model::claim::FieldShape::Word(
                <Self as $crate::model::claim::VocabularyWord>::WORDS
            );

            fn read(value: &$crate::model::Value) -> Option<Self> {
                value.as_text().and_then($crate::model::claim::VocabularyWord::from_word)
            }

            fn write(&self) -> $crate::model::Value {
                $crate::model::claim::VocabularyWord::word(*self).into()
            }

            fn allowed() -> String {
                format!("one of {}", <Self as $crate::model::claim::VocabularyWord>::WORDS.join(", "))
            }

            fn is_written(value: &$crate::model::Value) -> bool {
                <Self as $crate::model::claim::FieldValue>::read(value).is_some()
            }
        }
    };
}
pub(crate) use vocabulary;

/// Used by the macro, so that a crate that calls the macro need not depend on serde.
#[doc(hidden)]
pub use serde as serde_of_vocabulary;

/// A vocabulary with its name, for the glossary and help texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldVocabulary {
    /// The name of the vocabulary, as shown to people.
    pub what: &'static str,
    /// The words.
    pub words: &'static [&'static str],
}

impl FieldVocabulary {
    /// Returns the vocabulary of `W`.
    #[must_use]
    pub const fn of<W: VocabularyWord>() -> Self {
        Self { what: W::WHAT, words: W::WORDS }
    }
}

impl fmt::Display for FieldVocabulary {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.what, self.words.join(", "))
    }
}

impl Serialize for FieldVocabulary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.words.serialize(serializer)
    }
}

//! Names of branches and tags, and prefixes of ids.

use super::error::TimeError;
use super::resolved_time::ResolvedTime;
use std::fmt;

/// A prefix of an id, or a whole id: 4 to 64 lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdPrefix(String);

impl IdPrefix {
    /// Minimum length: shorter prefixes are often ambiguous.
    pub const MIN_DIGITS: usize = 4;
    /// Length of the longest id, in digits.
    pub const MAX_DIGITS: usize = 64;

    /// Parses a prefix; `None` if the text is too short, too long or not hexadecimal.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_prefix = (Self::MIN_DIGITS..=Self::MAX_DIGITS).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_prefix.then(|| Self(text.to_ascii_lowercase()))
    }

    /// Returns the digits, in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the id of these bytes begins with this prefix.
    #[must_use]
    pub fn matches(&self, id: &[u8]) -> bool {
        let mut digits = id.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        self.0.chars().all(|wanted| {
            digits.next().is_some_and(|digit| wanted.to_digit(16) == Some(digit.into()))
        })
    }
}

impl fmt::Display for IdPrefix {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// A word with several possible meanings, tried in this order: a tag, a branch, an id prefix, a
/// time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmbiguousName {
    /// The word.
    pub name: String,
    /// The id prefix it could be.
    pub id: Option<IdPrefix>,
    /// The time it could be, if it is a number such as `20250120`, a day such as `20-Jan-2025`, or
    /// could also be a long id ([`AmbiguousName::is_long_id`]).
    pub time: Option<ResolvedTime>,
    /// Why it is not a time, if it begins like one. This becomes the error if nothing has this
    /// name.
    pub time_error: Option<TimeError>,
}

impl AmbiguousName {
    /// Length from which a word with letters is taken for an id prefix: forge shows no shorter
    /// ones, and no span of time looks like this.
    const LONG_ID_DIGITS: usize = 8;
    /// Length from which a word of decimal digits is taken for an id prefix: no time consists of
    /// this many digits.
    const ALL_DIGITS_ID: usize = 20;

    /// Returns whether the word is a hexadecimal number that is long enough to be meant as an id.
    #[must_use]
    pub fn is_long_id(&self) -> bool {
        self.id.is_some() && is_long_id(&self.name)
    }
}

/// Implements [`AmbiguousName::is_long_id`].
pub(super) fn is_long_id(text: &str) -> bool {
    let has_letter = text.bytes().any(|byte| !byte.is_ascii_digit());
    let digits =
        if has_letter { AmbiguousName::LONG_ID_DIGITS } else { AmbiguousName::ALL_DIGITS_ID };
    text.len() >= digits && IdPrefix::parse(text).is_some()
}

/// Returns whether a moment can name a tag or branch like this without a prefix: one word without
/// control characters, `~`, `^`, `:`, `@{`, quotes or brackets, and without `#`, `-` or `+` in
/// front.
pub(super) fn is_word(text: &str) -> bool {
    is_name(text)
        && !text.starts_with(['#', '-', '+'])
        && !text.contains(|next: char| next.is_whitespace() || "^:'\"{}[]".contains(next))
}

/// Returns whether a tag or branch can have this name after an explicit `tag:` or `branch:`.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.trim() == text
        && !text.contains("@{")
        && !text.chars().any(|next| next.is_control() || next == '~')
}

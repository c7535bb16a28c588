//! Names: of branches and tags, and the beginnings of ids.

use super::error::TimeError;
use super::resolved_time::ResolvedTime;
use std::fmt;

/// The beginning of an id, or a whole one: 4 to 64 hexadecimal digits in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdPrefix(String);

impl IdPrefix {
    /// Fewer digits are too often the beginning of several ids.
    pub const MIN_DIGITS: usize = 4;
    /// The digits of the longest id.
    pub const MAX_DIGITS: usize = 64;

    /// The prefix this text is; `None` if it is too short, too long or not hexadecimal.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_prefix = (Self::MIN_DIGITS..=Self::MAX_DIGITS).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_prefix.then(|| Self(text.to_ascii_lowercase()))
    }

    /// The digits, in lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the id of these bytes begins like this.
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

/// A word that can be several things. They are tried in this order: a tag, a branch, the beginning of an id, a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmbiguousName {
    /// The word.
    pub name: String,
    /// The beginning of an id it could be.
    pub id: Option<IdPrefix>,
    /// The time it could be, if it is a number such as `20250120`, or has as many hexadecimal digits as an id.
    pub time: Option<ResolvedTime>,
    /// Why it is not a time, if it begins like one: what to say where nothing has that name.
    pub time_error: Option<TimeError>,
}

impl AmbiguousName {
    /// The beginning of an id that forge shows has more digits, and a span of time is never written like this.
    const LONG_ID_DIGITS: usize = 8;
    /// No time has as many digits and nothing else.
    const ALL_DIGITS_ID: usize = 20;

    /// Whether it has so many hexadecimal digits, letters among them, that it was meant as an id.
    #[must_use]
    pub fn is_long_id(&self) -> bool {
        self.id.is_some() && is_long_id(&self.name)
    }
}

/// As [`Named::is_long_id`].
pub(super) fn is_long_id(text: &str) -> bool {
    let has_letter = text.bytes().any(|byte| !byte.is_ascii_digit());
    let digits =
        if has_letter { AmbiguousName::LONG_ID_DIGITS } else { AmbiguousName::ALL_DIGITS_ID };
    text.len() >= digits && IdPrefix::parse(text).is_some()
}

/// Whether a tag or a branch can be named like this in a moment: one word without control characters, `~`, `^`, `:`,
/// `@{`, quotes, or a `#`, `-` or `+` in front.
pub(super) fn is_word(text: &str) -> bool {
    is_name(text)
        && !text.starts_with(['#', '-', '+'])
        && !text.contains(|next: char| next.is_whitespace() || "^:'\"{}[]".contains(next))
}

/// Whether a tag or a branch can be called this where it is said that it is one.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.trim() == text
        && !text.contains("@{")
        && !text.chars().any(|next| next.is_control() || next == '~')
}

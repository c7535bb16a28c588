//! Errors for texts that are not a time, moment or duration, with suggestions.

use super::resolved_time::EPOCH_DIGITS;
use crate::model::Timestamp;

/// Maximum number of characters of a quoted text in an error.
const MAX_QUOTED: usize = 60;

const TIME_EXAMPLES: &str =
    "write for example '2 hours ago', 'yesterday 14:30' or '2025-01-20 14:30:00'";

/// Why a text is not a time. Quoted texts are escaped and truncated to 60 characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimeError {
    /// The text is empty.
    #[error("a time is missing: {TIME_EXAMPLES}")]
    Empty,
    /// The text is too long for a time.
    #[error("'{text}' is too long for a time: {TIME_EXAMPLES}")]
    TooLong {
        /// The beginning of the text.
        text: String,
    },
    /// The text matches no form of the grammar.
    #[error("'{text}' is not a time{}: {TIME_EXAMPLES}", not_understood(.rest))]
    Unreadable {
        /// The text.
        text: String,
        /// The rest of the text after the part that a form of the grammar matched, if one did.
        rest: Option<String>,
    },
    /// The text is only a number, which is ambiguous.
    #[error(
        "'{text}' is a number, not a time: write '2025-01-20' for a date, '10m' for ten minutes \
         ago or '@1737383400' for seconds since 1970"
    )]
    Number {
        /// The text.
        text: String,
    },
    /// The text is a number that looks like a time since 1970 in a unit smaller than a second.
    #[error(
        "'{text}' looks like {unit} since 1970: write seconds, '@{seconds}', or for example \
         '2025-01-20' or '10m'"
    )]
    SmallUnit {
        /// The text.
        text: String,
        /// The name of the unit.
        unit: &'static str,
        /// The same time in seconds, a decimal number.
        seconds: String,
    },
    /// The text has the form of a time, but no such time exists, or its parts are contradictory.
    #[error("'{text}' is not a time: {problem}; write for example {instead}")]
    Impossible {
        /// The text.
        text: String,
        /// The problem.
        problem: String,
        /// What could be meant.
        instead: String,
    },
    /// The text names a time zone that is not known.
    #[error(
        "the zone '{zone}' in '{text}' is not known here: write its offset, as in '2025-01-20 \
         14:30:00-05:00', or UTC, as in '2025-01-20 14:30 UTC', or leave the zone out for local \
         time"
    )]
    Zone {
        /// The text.
        text: String,
        /// The name of the zone.
        zone: String,
    },
    /// The text names a span of time, not a point in time.
    #[error("'{text}' is a span of time, not a point in time: write for example {instead}")]
    Vague {
        /// The text.
        text: String,
        /// Points in time that could be meant.
        instead: String,
    },
    /// The time is later than now.
    #[error(
        "'{text}' is in the future{}: nothing is recorded for it yet; write a time up to now, \
         such as 'now', '10m' or 'yesterday 14:30'", in_brackets(.time)
    )]
    Future {
        /// The text.
        text: String,
        /// The future time, if the text states one.
        time: Option<Timestamp>,
    },
    /// The time is outside the years 0000 to 9999.
    #[error(
        "'{text}' is not within the years 0000 to 9999: write for example '2025-01-20', '3 \
         months ago' or '@1737383400' (seconds, not milliseconds)"
    )]
    OutOfRange {
        /// The text.
        text: String,
    },
}

impl TimeError {
    /// Returns whether the text has no form of a time, so that it may be a name.
    pub(super) const fn is_unread(&self) -> bool {
        matches!(
            self,
            Self::Empty
                | Self::TooLong { .. }
                | Self::Unreadable { .. }
                | Self::Number { .. }
                | Self::SmallUnit { .. }
        )
    }

    /// Returns the error for a number that looks like milliseconds, microseconds or nanoseconds
    /// since 1970; `None` for any other text.
    pub(super) fn small_unit(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('@').unwrap_or(text);
        let unit = match digits.len() - EPOCH_DIGITS.min(digits.len()) {
            3 => "milliseconds",
            6 => "microseconds",
            9 => "nanoseconds",
            _ => return None,
        };
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (whole, fraction) = digits.split_at(EPOCH_DIGITS);
        let seconds = format!("{whole}.{fraction}");
        let seconds = seconds.trim_end_matches('0').trim_end_matches('.').to_owned();
        Some(Self::SmallUnit { text: quoted(text), unit, seconds })
    }
}

fn not_understood(rest: &Option<String>) -> String {
    rest.as_ref().map_or_else(String::new, |rest| format!(" (not understood from '{rest}' on)"))
}

fn in_brackets(time: &Option<Timestamp>) -> String {
    time.map_or_else(String::new, |time| format!(" ({time})"))
}

const MOMENT_FORMS: &str = "a time ('2 hours ago', '2025-01-20 14:30'), a tag, a branch, the \
     beginning of an id (at least 4 digits), '#42', 'HEAD', 'HEAD~3', 'main@{10m}', 'start', \
     'last compaction', 'before last compaction', 'when H3 was rejected', 'commit 1a2b3c4' or \
     'before commit 1a2b3c4'; begin with 'tag:', 'branch:', 'id:' or 'time:' to say which of these \
     it is";

/// Why a text is not a moment. Quoted texts are escaped and truncated to 60 characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MomentError {
    /// The text is empty.
    #[error("a moment is missing: it can be {MOMENT_FORMS}")]
    Empty,
    /// The text matches no form of the grammar.
    #[error("'{text}' names no moment: a moment can be {MOMENT_FORMS}")]
    Unreadable {
        /// The text.
        text: String,
    },
    /// The text has the form of a moment, but a part of it is invalid.
    #[error("'{text}' names no moment: {problem}; write for example {instead}")]
    Impossible {
        /// The text.
        text: String,
        /// The problem.
        problem: String,
        /// What could be meant.
        instead: String,
    },
    /// The text is, or contains, an invalid time.
    #[error(transparent)]
    Time(#[from] TimeError),
}

/// Why a text is not a duration. The quoted text is escaped and truncated to 60 characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a duration: {problem}; write for example '90s', '10m', '2h30m' or '7d'")]
pub struct DurationError {
    pub(super) text: String,
    pub(super) problem: String,
}

/// Why a form of the grammar rejects a text that begins like this form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum GrammarFault {
    /// Contains the rest of the text, which the form does not match.
    Syntax(String),
    Impossible {
        problem: String,
        instead: &'static str,
    },
    Zone(String),
    Vague(&'static str),
    Future(Option<Timestamp>),
    OutOfRange,
}

impl GrammarFault {
    pub(super) fn syntax(rest: &str) -> Self {
        Self::Syntax(quoted(rest))
    }

    pub(super) fn impossible(problem: impl Into<String>, instead: &'static str) -> Self {
        Self::Impossible { problem: problem.into(), instead }
    }

    pub(super) fn in_text(self, text: &str) -> TimeError {
        let text = quoted(text);
        match self {
            Self::Syntax(rest) if rest.is_empty() || rest == text => {
                TimeError::Unreadable { text, rest: None }
            }
            Self::Syntax(rest) => TimeError::Unreadable { text, rest: Some(rest) },
            Self::Impossible { problem, instead } => {
                TimeError::Impossible { text, problem, instead: instead.to_owned() }
            }
            Self::Zone(zone) => TimeError::Zone { text, zone: quoted(&zone) },
            Self::Vague(instead) => TimeError::Vague { text, instead: instead.to_owned() },
            Self::Future(time) => TimeError::Future { text, time },
            Self::OutOfRange => {
                TimeError::small_unit(&text).unwrap_or(TimeError::OutOfRange { text })
            }
        }
    }
}

/// Returns a text for an error: with control characters escaped, truncated to 60 characters.
///
/// The cost depends on the length of the result, not on that of the text.
pub(super) fn quoted(text: &str) -> String {
    let mut shown = String::new();
    let mut left = MAX_QUOTED;
    // The length in bytes of the longest part that fits together with an ellipsis.
    let mut with_ellipsis = 0;
    for character in text.chars() {
        // Quotes are not escaped, unlike in a string literal.
        let escaped = match character {
            '\'' | '"' => character.to_string(),
            other => other.escape_debug().to_string(),
        };
        let length = escaped.chars().count();
        if length > left {
            // An escape is shown whole or not at all.
            shown.truncate(with_ellipsis);
            shown.push('…');
            break;
        }
        left -= length;
        shown.push_str(&escaped);
        if left > 0 {
            with_ellipsis = shown.len();
        }
    }
    shown
}

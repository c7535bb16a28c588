//! What the timeline shows: its level of detail, and its filter.

use forge_store::model::time_grammar::parse_time;
use forge_store::model::{Kind, Timestamp};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimelineLevel {
    /// The lines of the story.
    #[default]
    Story,
    /// Checkpoints and revisions.
    Revisions,
    /// Checkpoints, revisions and facts.
    Everything,
}

impl TimelineLevel {
    /// Returns the next level; after the last one comes the first.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::Story => Self::Revisions,
            Self::Revisions => Self::Everything,
            Self::Everything => Self::Story,
        }
    }

    /// Returns its name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Story => "the story",
            Self::Revisions => "every revision",
            Self::Everything => "everything",
        }
    }
}

/// A filter of the timeline: a row must match all its conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimelineFilter {
    /// The text of the row contains all of these words, without regard to case. Stored in lower
    /// case.
    pub words: Vec<String>,
    /// The row is, or changes, an entity of one of these kinds; empty: any kind.
    pub kinds: Vec<Kind>,
    pub tag: Option<String>,
    /// The trigger of the row contains this text.
    pub trigger: Option<String>,
    pub branch: Option<String>,
    pub session: Option<String>,
    /// The row has this time or a later one.
    pub since: Option<Timestamp>,
    /// The row has this time or an earlier one.
    pub until: Option<Timestamp>,
}

impl TimelineFilter {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Parses a filter: words, and `kind:`, `tag:`, `trigger:`, `branch:`, `session:`, `since:` and
    /// `until:` with a value. A value with blanks is put in quotes. A field without a value is
    /// ignored, and an unknown field is a word.
    ///
    /// # Errors
    /// A sentence that says what cannot be parsed.
    pub fn parse(
        text: &str,
        now: Timestamp,
        time: impl Fn(&str, Timestamp) -> Result<Timestamp, String>,
    ) -> Result<Self, String> {
        let mut filter = Self::default();
        for part in split_words(text) {
            let Some((field, value)) = part.split_once(':') else {
                filter.words.push(part.to_lowercase());
                continue;
            };
            let value = value.to_owned();
            if value.is_empty() {
                continue;
            }
            match field {
                "kind" => {
                    filter.kinds.push(value.parse().map_err(|_| {
                        let kinds: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
                        format!("there is no kind '{value}': {}", kinds.join(", "))
                    })?);
                }
                "tag" => filter.tag = Some(value),
                "trigger" => filter.trigger = Some(value.to_lowercase()),
                "branch" => filter.branch = Some(value),
                "session" => filter.session = Some(value),
                "since" => filter.since = Some(time(&value, now)?),
                "until" => filter.until = Some(time(&value, now)?),
                _ => filter.words.push(part.to_lowercase()),
            }
        }
        Ok(filter)
    }

    /// Returns whether this text contains every word.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.words.iter().all(|word| text.contains(word.as_str()))
    }
}

/// Parses a time in forge's time grammar.
pub(crate) fn read_time<Z: chrono::TimeZone>(
    text: &str,
    now: Timestamp,
    zone: &Z,
) -> Result<Timestamp, String> {
    parse_time(text, now, zone).map(|found| found.time).map_err(|error| error.to_string())
}

/// Splits a text at white space outside of quotes, and removes the quotes.
pub(crate) fn split_words(text: &str) -> Vec<String> {
    let (mut parts, mut part, mut quoted) = (Vec::new(), String::new(), false);
    for letter in text.chars() {
        match letter {
            '"' => quoted = !quoted,
            letter if letter.is_whitespace() && !quoted => {
                if !part.is_empty() {
                    parts.push(std::mem::take(&mut part));
                }
            }
            letter => part.push(letter),
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<TimelineFilter, String> {
        let now = Timestamp::parse_rfc3339("2025-03-11T12:00:00Z").unwrap();
        TimelineFilter::parse(text, now, |text, now| read_time(text, now, &chrono::Utc))
    }

    #[test]
    fn words_and_fields_of_a_filter_may_be_in_any_order() {
        let filter =
            parse("Lease kind:command tag:start since:\"2 hours ago\" \"two words\"").unwrap();
        assert_eq!(filter.words, ["lease", "two words"]);
        assert_eq!(filter.kinds, [Kind::Command]);
        assert_eq!(filter.tag.as_deref(), Some("start"));
        assert_eq!(filter.since.unwrap().to_string(), "2025-03-11T10:00:00Z");
        assert!(filter.matches("the LEASE of two words") && !filter.matches("lease"));
    }

    #[test]
    fn a_field_without_a_value_filters_nothing() {
        assert!(parse("kind: tag:").unwrap().is_empty());
        assert!(parse("kind:bogus").unwrap_err().contains("hypothesis"));
    }
}

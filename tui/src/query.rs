//! What the timeline shows: how much of it, and what passes the filter.

use forge_store::model::time_grammar::parse_time;
use forge_store::model::{Kind, Timestamp};

/// How much the timeline shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimelineLevel {
    /// Checkpoints.
    #[default]
    Checkpoints,
    /// And every revision.
    Revisions,
    /// And every fact.
    Everything,
}

impl TimelineLevel {
    /// The next one, around.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::Checkpoints => Self::Revisions,
            Self::Revisions => Self::Everything,
            Self::Everything => Self::Checkpoints,
        }
    }

    /// In words.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Checkpoints => "checkpoints",
            Self::Revisions => "revisions",
            Self::Everything => "everything",
        }
    }
}

/// What passes the filter: all of it must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimelineFilter {
    /// These stand somewhere in it, whatever their case (kept in lower case).
    pub words: Vec<String>,
    /// It is, or changes, one of one of these kinds; of none: any.
    pub kinds: Vec<Kind>,
    /// It has this tag.
    pub tag: Option<String>,
    /// Its trigger holds this word.
    pub trigger: Option<String>,
    /// It lies on this branch.
    pub branch: Option<String>,
    /// It lies in this session.
    pub session: Option<String>,
    /// It is of this time or later.
    pub since: Option<Timestamp>,
    /// It is of this time or earlier.
    pub until: Option<Timestamp>,
}

impl TimelineFilter {
    /// Whether everything passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads what a person typed: words, and `kind:`, `tag:`, `trigger:`, `branch:`, `session:`, `since:` and
    /// `until:` with what is wanted; a value with blanks stands in quotes.
    ///
    /// # Errors
    /// What cannot be read, in a sentence.
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

    /// Whether every word stands in this text.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        self.words.iter().all(|word| text.contains(word.as_str()))
    }
}

/// Reads a time in the one grammar.
pub(crate) fn read_time<Z: chrono::TimeZone>(
    text: &str,
    now: Timestamp,
    zone: &Z,
) -> Result<Timestamp, String> {
    parse_time(text, now, zone).map(|found| found.time).map_err(|error| error.to_string())
}

fn split_words(text: &str) -> Vec<String> {
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
    fn words_and_fields_stand_in_any_order() {
        let filter =
            parse("Lease kind:command tag:start since:\"2 hours ago\" \"two words\"").unwrap();
        assert_eq!(filter.words, ["lease", "two words"]);
        assert_eq!(filter.kinds, [Kind::Command]);
        assert_eq!(filter.tag.as_deref(), Some("start"));
        assert_eq!(filter.since.unwrap().to_string(), "2025-03-11T10:00:00Z");
        assert!(filter.matches("the LEASE of two words") && !filter.matches("lease"));
    }

    #[test]
    fn a_field_half_typed_filters_nothing_yet() {
        assert!(parse("kind: tag:").unwrap().is_empty());
        assert!(parse("kind:bogus").unwrap_err().contains("hypothesis"));
    }
}

//! The chips of the filter: conditions that a key or a click switches on and off.

use crate::query::split_words;

/// A named condition of the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterChip {
    /// Its name.
    pub word: &'static str,
    /// The parts that a filter with this condition contains.
    parts: &'static [&'static str],
}

/// All chips, in display order.
pub const FILTER_CHIPS: [FilterChip; 7] = [
    FilterChip { word: "you", parts: &["kind:prompt"] },
    FilterChip {
        word: "claims",
        parts: &["kind:hypothesis", "kind:evidence", "kind:belief", "kind:gap", "kind:note"],
    },
    FilterChip { word: "checks", parts: &["kind:verification"] },
    FilterChip { word: "edits", parts: &["kind:code"] },
    FilterChip { word: "commands", parts: &["kind:command"] },
    FilterChip { word: "messages", parts: &["kind:message"] },
    FilterChip { word: "since the mark", parts: &["since:mark"] },
];

impl FilterChip {
    /// Returns whether a filter has this condition.
    #[must_use]
    pub fn is_on(&self, filter: &str) -> bool {
        let words = split_words(filter);
        self.parts.iter().all(|part| words.iter().any(|word| word == part))
    }

    /// Returns a filter with this condition switched on or off.
    #[must_use]
    pub fn switched(&self, filter: &str) -> String {
        if !self.is_on(filter) {
            let filter = filter.trim_end();
            let space = if filter.is_empty() { "" } else { " " };
            return format!("{filter}{space}{} ", self.parts.join(" "));
        }
        let kept: Vec<String> = split_words(filter)
            .into_iter()
            .filter(|word| !self.parts.contains(&word.as_str()))
            .map(|word| if word.contains(char::is_whitespace) { requoted(&word) } else { word })
            .collect();
        kept.join(" ")
    }
}

/// Puts the value of a part into quotes again, because [`split_words`] removed the quotes.
fn requoted(word: &str) -> String {
    match word.split_once(':') {
        Some((field, value)) if !field.contains(char::is_whitespace) => {
            format!("{field}:\"{value}\"")
        }
        _ => format!("\"{word}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switching_a_filter_chip_keeps_the_typed_filter() {
        let [you, claims, ..] = FILTER_CHIPS;
        let typed = "lease since:\"2 hours ago\" \"two words\"";
        assert!(!you.is_on(typed));
        let with = you.switched(typed);
        assert_eq!(with, format!("{typed} kind:prompt "));
        let both = claims.switched(&with);
        assert!(you.is_on(&both) && claims.is_on(&both));
        assert_eq!(claims.switched(&both), with.trim_end());
        assert_eq!(you.switched(&with), typed);
        assert_eq!(you.switched(""), "kind:prompt ");
    }
}

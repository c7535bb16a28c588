//! Formats numbers, statuses and links for a page.

use forge_store::model::claim::HypothesisStatus;

/// Returns the link to a line of the story.
pub(crate) fn line_link(anchor: usize) -> String {
    format!("#e{anchor}")
}

/// The maximum number of hypotheses with a card.
pub(crate) const MAX_HYPOTHESES: usize = 300;
/// The maximum number of listed files.
pub(crate) const MAX_FILES: usize = 500;
/// The maximum number of rows of a table.
pub(crate) const MAX_ROWS: usize = 500;

/// Returns the link to the card of the hypothesis at an index, or to the section "What is known" if
/// the hypothesis has no card.
pub(crate) fn hypothesis_link(place: usize) -> String {
    if place < MAX_HYPOTHESES { format!("#hypothesis-{}", place + 1) } else { "#known".to_owned() }
}

/// Returns the link to the file at an index, or to the section of files if it is not listed.
pub(crate) fn file_link(place: usize) -> String {
    if place < MAX_FILES { format!("#file-{}", place + 1) } else { "#files".to_owned() }
}

/// Returns the sign of a status; `None` is for a hypothesis that is only on another branch.
pub(crate) const fn status_sign(status: Option<HypothesisStatus>) -> &'static str {
    match status {
        Some(HypothesisStatus::Confirmed) => "✓",
        Some(HypothesisStatus::Rejected) => "✗",
        Some(HypothesisStatus::Archived) => "–",
        Some(HypothesisStatus::UnderTest) => "◐",
        Some(HypothesisStatus::Active) => "○",
        None => "⌥",
    }
}

/// Returns a status in words, and the CSS class of its colour; `None` is as for [`status_sign`].
pub(crate) const fn status_words(status: Option<HypothesisStatus>) -> (&'static str, &'static str) {
    match status {
        Some(HypothesisStatus::Confirmed) => ("confirmed", "good"),
        Some(HypothesisStatus::Rejected) => ("rejected", "bad"),
        Some(HypothesisStatus::Archived) => ("archived", "soft"),
        Some(HypothesisStatus::UnderTest) => ("under test", "warn"),
        Some(HypothesisStatus::Active) => ("active", "warn"),
        None => ("only on another branch", "soft"),
    }
}

/// Returns a count with its noun: `2 commits`, `1 commit`.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count as u64), if count == 1 { one } else { many })
}

/// Returns a number with commas: `1,259`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!((grouped(999).as_str(), grouped(1_234_567).as_str()), ("999", "1,234,567"));
        assert_eq!(counted(1, "commit", "commits"), "1 commit");
    }
}

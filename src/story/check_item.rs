//! The items of a story about checks. A first failure, a first pass, and a pass after a failure are
//! loud; repeated and undecided results are not.

use super::gist::{ITEM_CHARS, one_line};
use super::item::{FoldKey, StoryItem, StoryKind, StoryMark};
use crate::model::claim::{FactText, VerificationResult, VerificationStatus, VocabularyWord};
use crate::model::{Fact, Kind};
use crate::store::{CheckTurn, check_label};

/// Maximum length of the name of a check, in characters.
const LABEL_CHARS: usize = 80;

/// Returns the item of a result of a check.
pub(super) fn check_item(fact: &Fact, result: &VerificationResult, turn: CheckTurn) -> StoryItem {
    let status = result.status.unwrap_or(VerificationStatus::Unknown);
    let word = match (status, turn) {
        (VerificationStatus::Passed, CheckTurn::PassesAgain) => "passes again".to_owned(),
        (VerificationStatus::Failed, CheckTurn::StillFails) => "failed again".to_owned(),
        (VerificationStatus::Unknown, _) => "has no known result".to_owned(),
        (status, _) => status.word().replace('_', " "),
    };
    let label = one_line(&check_label(fact, result), LABEL_CHARS);
    let text = format!("{label} {word}");
    let item = if turn.is_news() {
        StoryItem::loud(fact.at, StoryKind::Check, text)
    } else {
        StoryItem::quiet(fact.at, StoryKind::Check, FoldKey::Check, text)
    };
    let mark = match status {
        VerificationStatus::Passed => StoryMark::Good,
        VerificationStatus::Failed | VerificationStatus::Error | VerificationStatus::TimedOut => {
            StoryMark::Bad
        }
        VerificationStatus::Skipped | VerificationStatus::Unknown => StoryMark::Plain,
    };
    let description = result.description.as_ref().map(FactText::shown);
    item.marked(mark)
        .detailed(description.map(|text| one_line(&text, ITEM_CHARS)))
        .about(Kind::Verification, &fact.id)
        .by(result.agent.clone())
}

//! What every program shows of a line: its sign, the tone of its parts, and a long pause or another
//! branch before it.

use super::item::{FoldKey, StoryItem, StoryKind, StoryMark};
use super::row::StoryRow;
use crate::model::Timestamp;
use std::collections::BTreeMap;

/// A pause between two lines is shown if it is longer than this, in microseconds.
const PAUSE_MICROS: i64 = 20 * 60 * 1_000_000;

/// The meaning of a part of a line. A program chooses a colour for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoryTone {
    /// Nothing special.
    #[default]
    Plain,
    /// More important than others.
    Heading,
    /// Less important than others.
    Dim,
    /// A name or a neutral sign.
    Id,
    /// Passed, confirmed, filled.
    Good,
    /// Failed, rejected.
    Bad,
    /// Open, in doubt.
    Warning,
    /// New in a comparison.
    Added,
    /// Removed in a comparison.
    Removed,
}

impl StoryItem {
    /// Returns the sign of the line, at most three columns wide, and its tone.
    #[must_use]
    pub const fn sign(&self) -> (&'static str, StoryTone) {
        match (self.kind, self.mark) {
            (StoryKind::Prompt | StoryKind::Answer, _) => ("YOU", StoryTone::Heading),
            (StoryKind::Message, _) => ("⤷", StoryTone::Id),
            (StoryKind::Edit, _) => ("±", StoryTone::Id),
            (StoryKind::Commit, _) => ("◆", StoryTone::Heading),
            (StoryKind::Push | StoryKind::PullRequest, _) => ("↑", StoryTone::Heading),
            (StoryKind::Compaction, _) => ("┄", StoryTone::Heading),
            (StoryKind::Branch, _) => ("⑂", StoryTone::Heading),
            (StoryKind::Checkpoint, _) => ("★", StoryTone::Heading),
            (StoryKind::Agent, _) => ("⚙", StoryTone::Id),
            (StoryKind::Measurement, _) => ("#", StoryTone::Id),
            (StoryKind::Note, _) => ("✎", StoryTone::Id),
            (StoryKind::Restore, _) => ("↶", StoryTone::Heading),
            (_, StoryMark::Good) => ("✓", StoryTone::Good),
            (_, StoryMark::Bad) => ("✗", StoryTone::Bad),
            (_, StoryMark::Up) => ("▲", StoryTone::Good),
            (_, StoryMark::Down) => ("▼", StoryTone::Bad),
            (_, StoryMark::Open) => ("?", StoryTone::Warning),
            (_, StoryMark::New) => ("+", StoryTone::Id),
            (_, StoryMark::Plain) => ("·", StoryTone::Dim),
        }
    }

    /// Returns the tone of the text of the line.
    #[must_use]
    pub const fn text_tone(&self) -> StoryTone {
        match (self.kind, self.mark) {
            (
                StoryKind::Prompt
                | StoryKind::Answer
                | StoryKind::Commit
                | StoryKind::Checkpoint
                | StoryKind::Compaction,
                _,
            ) => StoryTone::Heading,
            (_, StoryMark::Good) => StoryTone::Good,
            (_, StoryMark::Bad) => StoryTone::Bad,
            (_, StoryMark::Open) => StoryTone::Warning,
            _ if !self.loud => StoryTone::Dim,
            _ => StoryTone::Plain,
        }
    }

    /// Returns the detail that follows the text on the same line; `None` if the detail is a
    /// question.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.detail.as_deref().filter(|_| !self.is_asked())
    }

    /// Returns the question that a person answered with this item.
    #[must_use]
    pub fn question(&self) -> Option<&str> {
        self.detail.as_deref().filter(|_| self.is_asked())
    }

    const fn is_asked(&self) -> bool {
        matches!(self.kind, StoryKind::Prompt | StoryKind::Answer)
    }
}

impl StoryRow<'_> {
    /// Returns the time of the line.
    #[must_use]
    pub const fn at(&self) -> Timestamp {
        match self {
            StoryRow::Item(item) => item.at,
            StoryRow::Folded { at, .. } => *at,
        }
    }
}

/// The sign of a line that counts what is folded.
pub const FOLDED_SIGN: &str = "▸";

/// Returns what is folded, in words: `3 commands, 1 message`.
#[must_use]
pub fn folded_words(folded: &BTreeMap<FoldKey, usize>) -> String {
    let counts = folded.iter().map(|(key, count)| key.counted(*count));
    counts.collect::<Vec<_>>().join(", ")
}

/// Returns the length of the pause between two lines in microseconds, if it is longer than 20
/// minutes.
#[must_use]
pub fn long_pause(earlier: Timestamp, later: Timestamp) -> Option<i64> {
    Some(later.micros_since(earlier)).filter(|micros| *micros > PAUSE_MICROS)
}

/// Follows the branch of the claims, line by line.
#[derive(Clone, Debug, Default)]
pub struct BranchWalk {
    branch: Option<String>,
}

impl BranchWalk {
    /// Returns the branch of the next line, if it differs from the branch of the claims before it.
    /// Before the first claims, the branch is `main`.
    pub fn change<'i>(&mut self, item: &'i StoryItem) -> Option<&'i str> {
        let branch = item.branch.as_ref().filter(|_| item.kind != StoryKind::Branch)?;
        let before = self.branch.replace(branch.clone());
        let is_same = before.as_deref().unwrap_or("main") == branch;
        (!is_same).then_some(branch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_named_where_it_begins_and_where_it_ends() {
        let on = |branch: &str| StoryItem {
            branch: Some(branch.to_owned()),
            ..StoryItem::loud(Timestamp::from_micros(0), StoryKind::Note, "a note")
        };
        let mut walk = BranchWalk::default();
        let named: Vec<Option<String>> = ["main", "fix", "fix", "main"]
            .map(|branch| walk.change(&on(branch)).map(str::to_owned))
            .into();
        assert_eq!(named, [None, Some("fix".to_owned()), None, Some("main".to_owned())]);
    }

    #[test]
    fn the_detail_of_an_answer_is_a_question_and_of_a_check_a_reason() {
        let item = |kind| StoryItem {
            detail: Some("why?".to_owned()),
            ..StoryItem::loud(Timestamp::from_micros(0), kind, "yes")
        };
        assert_eq!(item(StoryKind::Answer).question(), Some("why?"));
        assert_eq!(item(StoryKind::Answer).reason(), None);
        assert_eq!(item(StoryKind::Check).reason(), Some("why?"));
    }

    #[test]
    fn only_a_long_pause_is_named() {
        let at = |minute: i64| Timestamp::from_micros(minute * 60_000_000);
        assert_eq!(long_pause(at(0), at(20)), None);
        assert_eq!(long_pause(at(0), at(21)), Some(21 * 60_000_000));
    }
}

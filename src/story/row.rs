//! The lines that a reader sees: loud items, and counts of the items that are folded between them.

use super::item::{FoldKey, StoryItem};
use super::{Story, StoryTurn};
use crate::model::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// A line that a reader sees.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StoryRow<'s> {
    /// An item.
    Item(&'s StoryItem),
    /// The items that were folded between two loud items.
    Folded {
        /// The time of the first folded item.
        at: Timestamp,
        /// How many there are of each sort.
        folded: BTreeMap<FoldKey, usize>,
    },
}

impl Story {
    /// Returns the lines of all turns, oldest first.
    #[must_use]
    pub fn rows(&self) -> Vec<StoryRow<'_>> {
        self.turns.iter().flat_map(|turn| self.rows_of(turn)).collect()
    }

    /// Returns the lines of a turn, beginning with its prompt. Items that are neither loud nor
    /// counted, such as items of a sub-agent with a line, are left out unless the story is
    /// unfolded.
    #[must_use]
    pub fn rows_of<'s>(&self, turn: &'s StoryTurn) -> Vec<StoryRow<'s>> {
        let mut rows: Vec<StoryRow<'_>> = turn.prompt.iter().map(StoryRow::Item).collect();
        for item in &turn.items {
            if self.shows(item) {
                rows.push(StoryRow::Item(item));
                continue;
            }
            let Some(key) = item.fold_key else { continue };
            match rows.last_mut() {
                Some(StoryRow::Folded { folded, .. }) => *folded.entry(key).or_default() += 1,
                _ => {
                    let folded = BTreeMap::from([(key, 1)]);
                    rows.push(StoryRow::Folded { at: item.at, folded });
                }
            }
        }
        rows
    }

    /// Returns whether an item is shown.
    pub(super) const fn shows(&self, item: &StoryItem) -> bool {
        self.unfolded || item.loud
    }

    /// Keeps the last `count` shown items, and the folded items after the first of them. Returns
    /// the number of shown items that were removed.
    pub fn keep_last(&mut self, count: usize) -> usize {
        let shown = self.items().filter(|item| self.shows(item)).count();
        let removed = shown.saturating_sub(count);
        let mut left = removed;
        let unfolded = self.unfolded;
        for turn in &mut self.turns {
            if left == 0 {
                break;
            }
            if turn.prompt.take().is_some() {
                left -= 1;
            }
            let end = end_of_shown(&turn.items, unfolded, &mut left);
            turn.items.drain(..end);
        }
        self.turns.retain(|turn| turn.prompt.is_some() || !turn.items.is_empty());
        removed
    }
}

/// Returns how many of these items to remove, so that `left` shown ones are removed with the folded
/// items up to the next shown one. Subtracts the shown ones from `left`.
fn end_of_shown(items: &[StoryItem], unfolded: bool, left: &mut usize) -> usize {
    let mut end = 0;
    for (place, item) in items.iter().enumerate() {
        if unfolded || item.loud {
            if *left == 0 {
                return end;
            }
            *left -= 1;
        }
        end = place + 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::{StoryFindings, StoryKind, folded_words};

    fn item(second: i64, fold_key: Option<FoldKey>) -> StoryItem {
        let at = Timestamp::from_micros(second * 1_000_000);
        let text = second.to_string();
        match fold_key {
            None => StoryItem::loud(at, StoryKind::Check, text),
            Some(key) => StoryItem::quiet(at, StoryKind::Command, key, text),
        }
    }

    fn story() -> Story {
        let command = Some(FoldKey::Command);
        let first =
            vec![item(2, command), item(3, Some(FoldKey::Tool)), item(4, command), item(5, None)];
        let inside = StoryItem { fold_key: None, ..item(7, command) };
        let second = vec![inside, item(8, command), item(9, None), item(10, command)];
        let turns = [(1, first), (6, second)];
        let turns = turns.map(|(at, items)| StoryTurn { prompt: Some(item(at, None)), items });
        Story {
            session: "s".to_owned(),
            root: None,
            turns: turns.into(),
            findings: StoryFindings::default(),
            hypotheses: Vec::new(),
            checks: Vec::new(),
            cut: None,
            unfolded: false,
        }
    }

    fn shown(story: &Story) -> Vec<String> {
        let shown = |row| match row {
            StoryRow::Item(item) => item.text.clone(),
            StoryRow::Folded { folded, .. } => folded_words(&folded),
        };
        story.rows().into_iter().map(shown).collect()
    }

    #[test]
    fn quiet_items_are_folded_into_counts() {
        let all = ["1", "2 commands, 1 tool use", "5", "6", "1 command", "9", "1 command"];
        assert_eq!(shown(&story()), all);
    }

    #[test]
    fn keep_last_removes_whole_lines_from_the_beginning() {
        for (count, removed, expected) in [
            (9, 0, &["1", "2 commands, 1 tool use", "5", "6", "1 command", "9", "1 command"][..]),
            (3, 1, &["5", "6", "1 command", "9", "1 command"]),
            (2, 2, &["6", "1 command", "9", "1 command"]),
            (1, 3, &["9", "1 command"]),
            (0, 4, &[]),
        ] {
            let mut story = story();
            assert_eq!(story.keep_last(count), removed);
            assert_eq!(shown(&story), expected, "{count}");
        }
        let mut story = story();
        story.unfold();
        assert_eq!(story.keep_last(3), 7);
        assert_eq!(shown(&story), ["8", "9", "10"]);
    }
}

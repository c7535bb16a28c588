//! Finds the known items that a summary does not mention. [`mention`](super::mention) decides what
//! counts as a mention.

use super::mention::{Mention, SummaryText};

/// The kind of a missing item, most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossKind {
    /// Something that must hold.
    Constraint,
    /// A prompt that says how the work is to be done.
    Instruction,
    /// A hypothesis that was confirmed or rejected, or is still possible.
    Hypothesis,
    /// A decision that was made.
    Decision,
    /// A gap that is open.
    Gap,
    /// A check that fails.
    Failing,
    /// A command or tool call that was refused.
    Refused,
    /// A task that is not done.
    Task,
    /// Any other prompt.
    Prompt,
    /// A file that was changed.
    File,
}

impl LossKind {
    /// Returns the name of the kind in output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Constraint => "constraint",
            Self::Instruction => "instruction",
            Self::Hypothesis => "hypothesis",
            Self::Decision => "decision",
            Self::Gap => "gap",
            Self::Failing => "failing check",
            Self::Refused => "refused",
            Self::Task => "task",
            Self::Prompt => "prompt",
            Self::File => "file",
        }
    }

    /// Whether the id of such an item means something to a person. The ids of facts
    /// usually come from the agent.
    #[must_use]
    pub const fn has_meaningful_id(self) -> bool {
        matches!(
            self,
            Self::Constraint | Self::Hypothesis | Self::Decision | Self::Gap | Self::File
        )
    }
}

/// Something that a session knew, and that a summary should mention.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownItem {
    pub kind: LossKind,
    /// Its id; for a file, its path.
    pub id: String,
    /// Its text, or the beginning of a long one.
    pub text: String,
    /// The text by which it is judged, if that may be longer: the whole text of a prompt.
    pub whole_text: Option<String>,
    /// Its status or criticality.
    pub word: Option<String>,
}

/// A known item that a summary does not mention.
#[derive(Clone, Debug, PartialEq)]
pub struct LostItem {
    pub item: KnownItem,
    /// How many of its significant words the summary contains.
    pub mentioned: usize,
    pub significant_words: usize,
}

/// Returns the items that the summary does not mention, in the order of `items`.
#[must_use]
pub fn find_lost(items: &[KnownItem], summary: &str) -> Vec<LostItem> {
    let summary = SummaryText::new(summary);
    items.iter().filter_map(|item| lost_item(item, &summary)).collect()
}

fn lost_item(item: &KnownItem, summary: &SummaryText) -> Option<LostItem> {
    let mention = if item.kind == LossKind::File {
        Mention { is_mentioned: summary.names_file(&item.id), found: 0, words: 0 }
    } else {
        summary.mention(item.whole_text.as_deref().unwrap_or(&item.text))
    };
    let is_mentioned = mention.is_mentioned || summary.names_id(&item.id);
    (!is_mentioned).then(|| LostItem {
        item: item.clone(),
        mentioned: mention.found,
        significant_words: mention.words,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(kind: LossKind, id: &str, text: &str) -> KnownItem {
        KnownItem { kind, id: id.to_owned(), text: text.to_owned(), whole_text: None, word: None }
    }

    fn is_lost(kind: LossKind, id: &str, text: &str, summary: &str) -> bool {
        !find_lost(&[item(kind, id, text)], summary).is_empty()
    }

    #[test]
    fn an_id_is_found_in_a_summary_only_as_a_whole_word() {
        let lost = |summary| is_lost(LossKind::Hypothesis, "H1", "the cache is stale", summary);
        assert!(!lost("H1 was confirmed."));
        assert!(!lost("see (h1)"));
        assert!(lost("H10 and SH1 are others"));
        // A word without a digit may occur by chance.
        assert!(is_lost(LossKind::Gap, "cause", "nobody looked at strides", "the cause is clear"));
    }

    /// Regression: a long prompt was judged by its first 200 bytes.
    #[test]
    fn a_long_text_is_judged_by_the_whole_of_it() {
        let beginning = item(LossKind::Prompt, "p", "wondering about the heuristic…");
        let whole = "wondering about the heuristic: is the length of a line enough?".to_owned();
        let known = KnownItem { whole_text: Some(whole), ..beginning.clone() };
        let summary = "The length of a line is enough.";
        assert_eq!(find_lost(&[beginning], summary).len(), 1);
        assert_eq!(find_lost(&[known], summary), []);
    }

    #[test]
    fn a_file_is_known_by_its_name_or_the_end_of_its_path() {
        let lost = |path, summary| is_lost(LossKind::File, path, "", summary);
        assert!(!lost("/w/src/cache.rs", "changed `src/cache.rs`"));
        assert!(!lost("/w/src/cache.rs", "in cache.rs:42"));
        assert!(lost("/w/src/cache.rs", "in mycache.rs"));
        assert!(lost("/w/src/main", "the main point"));
        assert!(!lost("/w/src/main", "in src/main"));
        assert!(!lost("/w/Makefile", "the Makefile"));
    }
}

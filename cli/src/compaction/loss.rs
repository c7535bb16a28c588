//! Finds what a summary does not mention of what was known, by rules that a person can check.
//!
//! 1. An *id* with a digit in it (`H3`, `gap-12`) counts if it occurs as a word.
//! 2. A *file* is mentioned by its path, by the end of its path, or by its name if that has a dot
//!    in it.
//! 3. The significant words of a *text* have four letters or more and are not common words, or have
//!    a digit or `_` in them. Two words are equal if their first six letters are. The text is
//!    mentioned if at least half of its significant words are; a text without such words is
//!    mentioned if it occurs in full.
//! 4. A *failing check* is mentioned by its name or command, like a text (rule 3).

use std::collections::BTreeSet;

/// The kind of a missing item, most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossKind {
    /// A hypothesis that was confirmed or rejected, or is still possible.
    Hypothesis,
    /// A decision that was made.
    Decision,
    /// Something that must hold.
    Constraint,
    /// A gap that is open.
    Gap,
    /// A check that fails.
    Failing,
    /// A file that was changed.
    File,
}

impl LossKind {
    /// Its name in output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hypothesis => "hypothesis",
            Self::Decision => "decision",
            Self::Constraint => "constraint",
            Self::Gap => "gap",
            Self::Failing => "failing check",
            Self::File => "file",
        }
    }
}

/// An item that was known.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownItem {
    /// Its kind.
    pub kind: LossKind,
    /// Its id; for a file, its path.
    pub id: String,
    /// Its text.
    pub text: String,
    /// Its status or criticality.
    pub word: Option<String>,
}

/// An item that was known and is not mentioned.
#[derive(Clone, Debug, PartialEq)]
pub struct LostItem {
    /// The item.
    pub item: KnownItem,
    /// How many of its significant words are mentioned.
    pub mentioned: usize,
    /// The number of its significant words.
    pub telling: usize,
}

/// Returns the items that the summary does not mention, in their order.
#[must_use]
pub fn find_lost(items: &[KnownItem], summary: &str) -> Vec<LostItem> {
    let said = SummaryText::new(summary);
    items.iter().filter_map(|item| said.missing(item)).collect()
}

/// A summary, prepared for searching.
struct SummaryText {
    text: String,
    words: BTreeSet<String>,
    stems: BTreeSet<String>,
}

const STEM_LETTERS: usize = 6;
const SHORT_LETTERS: usize = 4;
/// Common words of four letters or more.
const COMMON: [&str; 48] = [
    "about", "after", "again", "also", "because", "been", "before", "being", "both", "cannot",
    "could", "does", "down", "each", "even", "every", "from", "have", "here", "into", "just",
    "like", "more", "most", "much", "only", "other", "over", "same", "should", "some", "such",
    "than", "that", "their", "them", "then", "there", "these", "they", "this", "very", "were",
    "what", "when", "which", "with", "would",
];

impl SummaryText {
    fn new(summary: &str) -> Self {
        let text = summary.to_lowercase();
        let words: BTreeSet<String> = words(&text).map(str::to_owned).collect();
        let stems = words.iter().map(|word| stem(word)).collect();
        Self { text, words, stems }
    }

    fn missing(&self, item: &KnownItem) -> Option<LostItem> {
        if item.kind == LossKind::File {
            let lost = !self.names_file(&item.id.to_lowercase());
            return lost.then(|| LostItem { item: item.clone(), mentioned: 0, telling: 0 });
        }
        let id = item.id.to_lowercase();
        if item.id.bytes().any(|byte| byte.is_ascii_digit()) && self.has_word(&id) {
            return None;
        }
        let text = item.text.to_lowercase();
        let telling = telling_words(&text);
        let mentioned = telling.iter().filter(|stem| self.stems.contains(*stem)).count();
        // A text that occurs literally is mentioned, however long it is.
        let whole = !text.trim().is_empty() && self.text.contains(text.trim());
        let known = whole || (!telling.is_empty() && mentioned * 2 >= telling.len());
        (!known).then(|| LostItem { item: item.clone(), mentioned, telling: telling.len() })
    }

    /// Whether this text occurs without a letter or digit directly before or after it.
    fn has_word(&self, what: &str) -> bool {
        let bounds = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
        self.text.match_indices(what).any(|(at, found)| {
            let before = self.text.get(..at).and_then(|text| text.chars().next_back());
            let behind = self.text.get(at + found.len()..).and_then(|text| text.chars().next());
            bounds(before) && bounds(behind)
        })
    }

    fn names_file(&self, path: &str) -> bool {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let name = parts.last().copied().unwrap_or(path);
        if name.contains('.') || parts.len() < 2 {
            return self.has_word(name);
        }
        // A name such as `Makefile` or `main` alone may be any word: it needs its folder.
        let end = parts.get(parts.len() - 2..).unwrap_or_default().join("/");
        self.has_word(&end) || (name.len() >= 6 && self.words.contains(name))
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn stem(word: &str) -> String {
    word.chars().take(STEM_LETTERS).collect()
}

fn telling_words(text: &str) -> BTreeSet<String> {
    words(text)
        .filter(|word| {
            let marked = word.chars().any(|c| c.is_ascii_digit() || c == '_');
            let long = word.chars().count() >= SHORT_LETTERS || !word.is_ascii();
            marked || (long && !COMMON.contains(word))
        })
        .map(stem)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(kind: LossKind, id: &str, text: &str) -> KnownItem {
        KnownItem { kind, id: id.to_owned(), text: text.to_owned(), word: None }
    }

    fn is_lost(kind: LossKind, id: &str, text: &str, summary: &str) -> bool {
        !find_lost(&[item(kind, id, text)], summary).is_empty()
    }

    #[test]
    fn an_id_counts_as_a_word_only() {
        let lost = |summary| is_lost(LossKind::Hypothesis, "H1", "the cache is stale", summary);
        assert!(!lost("H1 was confirmed."));
        assert!(!lost("see (h1)"));
        assert!(lost("H10 and SH1 are others"));
        // A word without a digit may occur by chance.
        assert!(is_lost(LossKind::Gap, "cause", "nobody looked at strides", "the cause is clear"));
    }

    #[test]
    fn half_of_the_telling_words_are_a_mention() {
        let lost =
            |summary| is_lost(LossKind::Hypothesis, "H1", "the cache returns stale rows", summary);
        assert!(!lost("It turned out that stale entries came from the cache."));
        assert!(lost("It was about rows."));
        let found = find_lost(&[item(LossKind::Gap, "G", "alpha bravo charlie delta")], "alpha");
        assert_eq!((found[0].mentioned, found[0].telling), (1, 4));
    }

    #[test]
    fn what_stands_word_for_word_is_not_lost() {
        let text = "it is: on. or so, no?";
        assert!(!is_lost(LossKind::Decision, "D", text, "we kept: IT IS: ON. OR SO, NO?"));
    }

    #[test]
    fn a_text_without_telling_words_must_stand_there_whole() {
        assert!(is_lost(LossKind::Decision, "D", "do it now", "we do it later"));
        assert!(!is_lost(LossKind::Decision, "D", "do it now", "so: Do it now!"));
        assert!(is_lost(LossKind::Decision, "D", "", "anything"));
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

    #[test]
    fn texts_in_other_scripts_are_compared_too() {
        assert!(!is_lost(LossKind::Gap, "G", "日本語 テスト", "日本語 の テスト"));
        assert!(is_lost(LossKind::Gap, "G", "日本語 テスト", "nothing of it"));
    }

    #[test]
    fn nothing_is_mentioned_by_an_empty_summary() {
        let items = [item(LossKind::Hypothesis, "H1", "x y"), item(LossKind::File, "a.rs", "")];
        assert_eq!(find_lost(&items, "").len(), 2);
    }
}

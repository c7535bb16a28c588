//! Decides whether a summary mentions a text, by rules that a person can check.
//!
//! 1. An *id* with a digit in it (`H3`, `gap-12`) is mentioned if it occurs as a word.
//! 2. A *file* is mentioned if its name occurs as a word. If its path has a folder and its name has
//!    no dot and fewer than six letters, the name must occur with the folder before it
//!    (`src/main`).
//! 3. The significant words of a *text* have four letters or more and are not common words, or have
//!    a digit, `_` or a letter outside ASCII in them. Two words are equal if their first six
//!    letters are equal; identifiers (`parseLine`, `max_len`) must be equal as a whole. The more
//!    sentences of the summary contain a word, the less it weighs. The text is mentioned if words
//!    with at least 45 % of its weight are in three neighbouring sentences. Sentences without
//!    significant words are skipped. A text that occurs in full is always mentioned.
//! 4. A text with more than 16 significant words is judged by its first sentences, until these have
//!    eight significant words. The rest of such a text is mostly quoted.
//!
//! `docs/hooks.md` says how often these rules are right.

use std::collections::{BTreeSet, HashMap, HashSet};

/// The number of neighbouring sentences in which the words of a text are counted together.
const WINDOW: usize = 3;
/// The minimum share of a text's weight that makes a mention.
const MENTIONED: f64 = 0.45;
/// A word in n sentences has the weight 1 / (1 + `COMMONNESS` * ln n).
const COMMONNESS: f64 = 0.3;
/// The maximum number of significant words of a text that is judged as a whole.
const LONG_WORDS: usize = 16;
/// The number of significant words by which a longer text is judged.
const BEGINNING_WORDS: usize = 8;
/// Two words are equal if their first letters, this many, are equal.
const STEM_LETTERS: usize = 6;
/// The minimum number of letters of a significant word.
const SIGNIFICANT_LETTERS: usize = 4;
/// The minimum length in bytes of a file's name that counts without a dot and without its folder.
const LONG_NAME_BYTES: usize = 6;
/// Common words of four letters or more, which are not significant.
const COMMON: [&str; 48] = [
    "about", "after", "again", "also", "because", "been", "before", "being", "both", "cannot",
    "could", "does", "down", "each", "even", "every", "from", "have", "here", "into", "just",
    "like", "more", "most", "much", "only", "other", "over", "same", "should", "some", "such",
    "than", "that", "their", "them", "then", "there", "these", "they", "this", "very", "were",
    "what", "when", "which", "with", "would",
];

/// How far a summary mentions a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mention {
    /// Whether the text is mentioned.
    pub is_mentioned: bool,
    /// How many significant words of the text are in the three neighbouring sentences in which
    /// these words have the greatest weight.
    pub found: usize,
    /// The number of significant words by which the text was judged.
    pub words: usize,
}

/// A summary, prepared for searching.
pub struct SummaryText {
    /// The summary in lower case.
    lower: String,
    /// All its words in lower case.
    words: HashSet<String>,
    /// The significant words of each sentence that has some.
    sentences: Vec<HashSet<String>>,
    /// By significant word, the number of sentences that contain it.
    sentence_counts: HashMap<String, usize>,
}

impl SummaryText {
    /// Prepares this summary.
    #[must_use]
    pub fn new(summary: &str) -> Self {
        let lower = summary.to_lowercase();
        let mut sentence_counts = HashMap::new();
        let sentences: Vec<HashSet<String>> = sentences(summary)
            .map(|sentence| significant_words(sentence).collect::<HashSet<String>>())
            .filter(|words| !words.is_empty())
            .collect();
        for word in sentences.iter().flatten() {
            *sentence_counts.entry(word.clone()).or_default() += 1;
        }
        let words = words(&lower).map(str::to_owned).collect();
        Self { lower, words, sentences, sentence_counts }
    }

    /// Whether this id occurs as a word. An id without a digit never counts, because it may be an
    /// ordinary word.
    #[must_use]
    pub fn names_id(&self, id: &str) -> bool {
        id.bytes().any(|byte| byte.is_ascii_digit()) && self.has_word(&id.to_lowercase())
    }

    /// Whether the file with this path is mentioned: see rule 2 of the module.
    #[must_use]
    pub fn names_file(&self, path: &str) -> bool {
        let path = path.to_lowercase();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let name = parts.last().copied().unwrap_or(&path);
        if name.contains('.') || parts.len() < 2 {
            return self.has_word(name);
        }
        // A short name such as `main` may be an ordinary word, so it needs its folder.
        let end = parts.get(parts.len() - 2..).unwrap_or_default().join("/");
        self.has_word(&end) || (name.len() >= LONG_NAME_BYTES && self.words.contains(name))
    }

    /// Returns how far this text is mentioned.
    #[must_use]
    pub fn mention(&self, text: &str) -> Mention {
        let words = judged_words(text);
        let weights: Vec<f64> = words.iter().map(|word| self.weight(word)).collect();
        let total: f64 = weights.iter().sum();
        let (mut best, mut found) = (0.0, 0);
        let windows = self.sentences.windows(WINDOW.min(self.sentences.len()).max(1));
        for window in windows {
            let is_there = |word: &String| window.iter().any(|sentence| sentence.contains(word));
            let mentioned = words.iter().zip(&weights).filter(|(word, _)| is_there(word));
            let (count, weight) = mentioned.fold((0, 0.0), |(n, sum), (_, one)| (n + 1, sum + one));
            if weight > best {
                (best, found) = (weight, count);
            }
        }
        // Of a long text only the beginning is known, with a mark at its end.
        let whole = text.trim().trim_end_matches('…').to_lowercase();
        let is_mentioned = (!whole.is_empty() && self.lower.contains(&whole))
            || (total > 0.0 && best >= MENTIONED * total);
        Mention { is_mentioned, found, words: words.len() }
    }

    fn weight(&self, word: &str) -> f64 {
        let sentences = self.sentence_counts.get(word).copied().unwrap_or_default().max(1);
        1.0 / (1.0 + COMMONNESS * (sentences as f64).ln())
    }

    /// Whether this text occurs without a letter, digit or `_` directly before or after it.
    fn has_word(&self, what: &str) -> bool {
        let bounds = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
        self.lower.match_indices(what).any(|(at, found)| {
            let before = self.lower.get(..at).and_then(|text| text.chars().next_back());
            let after = self.lower.get(at + found.len()..).and_then(|text| text.chars().next());
            bounds(before) && bounds(after)
        })
    }
}

/// Returns the number of significant words by which a text is judged.
#[must_use]
pub fn judged_word_count(text: &str) -> usize {
    judged_words(text).len()
}

/// Returns the words by which a text is judged, each once.
fn judged_words(text: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    // The rest of a very long text is not read.
    let is_long = significant_words(text).any(|word| {
        all.insert(word);
        all.len() > LONG_WORDS
    });
    if !is_long {
        return all;
    }
    let mut beginning = BTreeSet::new();
    for sentence in sentences(text) {
        beginning.extend(significant_words(sentence));
        if beginning.len() >= BEGINNING_WORDS {
            break;
        }
    }
    beginning
}

/// Returns the sentences of a text. A line break also ends a sentence.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| {
        let mut last = ' ';
        line.split_inclusive(move |c: char| {
            let ends = c.is_whitespace() && matches!(last, '.' | '!' | '?');
            last = c;
            ends
        })
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn significant_words(text: &str) -> impl Iterator<Item = String> {
    let significant = |word: &str| {
        let lower = word.to_lowercase();
        let is_marked = word.chars().any(|c| c.is_ascii_digit() || c == '_');
        let is_long = lower.chars().count() >= SIGNIFICANT_LETTERS || !lower.is_ascii();
        if !is_marked && (!is_long || COMMON.contains(&lower.as_str())) {
            return None;
        }
        let inner_capital =
            word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase);
        if is_marked || inner_capital { Some(lower) } else { Some(stem(&lower)) }
    };
    words(text).filter_map(significant)
}

fn stem(word: &str) -> String {
    word.chars().take(STEM_LETTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_mentioned(text: &str, summary: &str) -> bool {
        SummaryText::new(summary).mention(text).is_mentioned
    }

    #[test]
    fn words_in_neighbouring_sentences_are_a_mention() {
        let text = "the cache returns stale rows";
        assert!(is_mentioned(text, "It turned out that stale entries came from the cache."));
        assert!(is_mentioned(text, "We looked at the cache. It was slow. Its rows were stale."));
        assert!(!is_mentioned(text, "It was about rows."));
        // The same words far apart are about something else.
        let apart = "The cache is fast. One. Two words follow. Three more words. Rows are stale.";
        assert!(!is_mentioned("cache entries return stale", apart));
        let mention = SummaryText::new("alpha").mention("alpha bravo charlie delta");
        assert_eq!(mention, Mention { is_mentioned: false, found: 1, words: 4 });
    }

    #[test]
    fn an_identifier_is_mentioned_only_by_the_whole_identifier() {
        let summary = "generateCheckpointSummary is in explain.go.";
        assert!(is_mentioned("look at generateCheckpointSummary", summary));
        assert!(!is_mentioned("look at generateFromTranscript", summary));
    }

    #[test]
    fn a_word_that_the_whole_summary_is_about_weighs_little() {
        let summary = "The parser reads.\n".repeat(30) + "Done.";
        assert!(!is_mentioned("the parser deadlocks", &summary));
        assert!(is_mentioned("the parser deadlocks", "One parser."));
    }

    #[test]
    fn a_long_text_is_judged_by_its_beginning() {
        let quoted: String = (0..40).map(|number| format!("line{number} of the log\n")).collect();
        let prompt = format!("The upload of large pictures fails with a timeout:\n{quoted}");
        assert!(is_mentioned(&prompt, "The upload of large pictures had a timeout."));
        assert_eq!(judged_word_count(&prompt), 6 + 2);
    }

    #[test]
    fn a_text_without_significant_words_must_occur_in_full() {
        assert!(!is_mentioned("do it now", "we do it later"));
        assert!(is_mentioned("do it now", "so: Do it now!"));
        assert!(is_mentioned("it is: on. or so, no?", "we kept: IT IS: ON. OR SO, NO?"));
        assert!(!is_mentioned("", "anything"));
    }

    #[test]
    fn texts_in_other_scripts_are_compared_too() {
        assert!(is_mentioned("日本語 テスト", "日本語 の テスト"));
        assert!(!is_mentioned("日本語 テスト", "nothing of it"));
    }

    #[test]
    fn nothing_is_mentioned_by_an_empty_summary() {
        let summary = SummaryText::new("");
        assert!(!summary.mention("x y").is_mentioned);
        assert!(!summary.names_file("a.rs") && !summary.names_id("H1"));
    }
}

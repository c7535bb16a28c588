//! Finds typed words in lines. A typed word may lack some letters of the text.

use unicode_segmentation::UnicodeSegmentation;

/// The words that are searched for, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FuzzyPattern {
    words: Vec<Vec<String>>,
}

/// A match: how good it is, and at which letters of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuzzyMatch {
    /// The higher, the better.
    pub score: usize,
    pub places: Vec<usize>,
}

fn letters(text: &str) -> Vec<String> {
    text.graphemes(true).map(str::to_lowercase).collect()
}

impl FuzzyPattern {
    /// Creates a pattern of the words in a text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { words: text.split_whitespace().map(letters).collect() }
    }

    /// Whether there are no words to search for.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether the words may be in these texts. This is faster than [`Self::find`], and excludes
    /// most texts that lack one of the words.
    #[must_use]
    pub fn may_find(&self, texts: &[&str]) -> bool {
        self.words.iter().all(|word| {
            let mut letters = word.iter().flat_map(|letter| letter.bytes()).peekable();
            if word.iter().any(|letter| !letter.is_ascii()) {
                return true;
            }
            for byte in texts.iter().flat_map(|text| text.bytes()) {
                // The Kelvin sign, a `k` in lower case, ends with this byte.
                let byte = if byte == 0xaa { b'k' } else { byte.to_ascii_lowercase() };
                if letters.next_if_eq(&byte).is_some() && letters.peek().is_none() {
                    return true;
                }
            }
            false
        })
    }

    /// Finds all words in a text.
    #[must_use]
    pub fn find(&self, text: &str) -> Option<FuzzyMatch> {
        self.find_in(&letters(text))
    }

    /// Finds all words in a text that is split into letters, in lower case.
    #[must_use]
    pub fn find_in(&self, text: &[String]) -> Option<FuzzyMatch> {
        let mut all = FuzzyMatch { score: 0, places: Vec::new() };
        for word in &self.words {
            let found = find_word(word, text)?;
            all.score += found.score;
            all.places.extend(found.places);
        }
        Some(all)
    }
}

fn begins_word(text: &[String], place: usize) -> bool {
    let is_letter = |letter: &String| letter.chars().all(char::is_alphanumeric);
    let before = place.checked_sub(1).and_then(|before| text.get(before));
    before.is_none_or(|before| !is_letter(before))
}

fn find_word(word: &[String], text: &[String]) -> Option<FuzzyMatch> {
    let length = word.len();
    if length == 0 {
        return None;
    }
    // The word as it is, best at the beginning of a word.
    let whole = text.windows(length).enumerate().filter(|(_, window)| *window == word);
    let best = whole
        .map(|(place, _)| (usize::from(begins_word(text, place)), place))
        .max_by_key(|(begins, place)| (*begins, std::cmp::Reverse(*place)));
    if let Some((begins, place)) = best {
        let score = 1000 + 500 * begins + 10 * length;
        return Some(FuzzyMatch { score, places: (place..place + length).collect() });
    }
    // The word may lack letters of the text, but few, so that not everything matches.
    let longest = if length < 3 { return None } else { length + length / 2 + 1 };
    let mut best: Option<FuzzyMatch> = None;
    for start in (0..text.len()).filter(|start| text.get(*start) == word.first()) {
        if !begins_word(text, start) {
            continue;
        }
        let mut places = Vec::with_capacity(length);
        let mut rest = word.iter();
        let mut wanted = rest.next();
        for (place, letter) in text.iter().enumerate().skip(start).take(longest) {
            if Some(letter) == wanted {
                places.push(place);
                wanted = rest.next();
            }
        }
        if wanted.is_none() {
            let span = places.last().map_or(0, |last| last - start);
            let score = 100_usize.saturating_sub(span);
            if best.as_ref().is_none_or(|best| best.score < score) {
                best = Some(FuzzyMatch { score, places });
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(pattern: &str, text: &str) -> Option<Vec<usize>> {
        FuzzyPattern::new(pattern).find(text).map(|found| found.places)
    }

    #[test]
    fn words_are_found_in_any_case_and_any_order() {
        assert_eq!(
            places("CLOCK worker", "the worker's clock"),
            Some(vec![13, 14, 15, 16, 17, 4, 5, 6, 7, 8, 9])
        );
        assert_eq!(places("clock", "the lock"), None);
        assert_eq!(places("日本", "in 日本語"), Some(vec![3, 4]));
    }

    #[test]
    fn letters_may_be_left_out_but_not_many() {
        assert_eq!(places("rdlvry", "a redelivery"), Some(vec![2, 4, 6, 8, 10, 11]));
        assert_eq!(places("rde", "redelivery"), Some(vec![0, 2, 3]));
        assert_eq!(places("abc", "a long way to b and then to c"), None);
        assert_eq!(places("ab", "a-b"), None);
    }

    #[test]
    fn the_fast_check_excludes_no_text_that_the_fuzzy_search_finds() {
        let texts =
            ["the worker's clock", "a redelivery", "in 日本語", "İstanbul", "\u{212a}m", ""];
        for pattern in ["CLOCK worker", "rdlvry", "日本", "the", "st", "x", "tul", "km"] {
            let pattern = FuzzyPattern::new(pattern);
            for text in texts {
                let found = pattern.find(text).is_some();
                assert!(!found || pattern.may_find(&[text]), "{pattern:?} in {text}");
            }
        }
        assert!(!FuzzyPattern::new("clock").may_find(&["the lock", "of a car"]));
        // The Kelvin sign is a `k` in lower case.
        assert!(FuzzyPattern::new("km").find("\u{212a}m").is_some());
    }

    #[test]
    fn the_beginning_of_a_word_is_better_than_its_middle() {
        let score = |text| FuzzyPattern::new("test").find(text).unwrap().score;
        assert!(score("a test") > score("the latest"));
        assert!(score("the latest") > FuzzyPattern::new("tst").find("a test").unwrap().score);
    }
}

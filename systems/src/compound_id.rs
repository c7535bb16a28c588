//! Ids that consist of several words.

use forge_store::error::{Error, Result};
use forge_store::model::claim::{MAX_ID_BYTES, check_id};

/// The maximum length of an id made of several words, in bytes, with separators and escapes.
pub const MAX_COMPOUND_ID_BYTES: usize = MAX_ID_BYTES;

/// Joins several words to one id, separated by `/`. In a word, `/` is written as `%2F` and `%` as
/// `%25`.
///
/// # Errors
/// [`Error::Invalid`] if a word is not a valid id, or the result is too long.
pub fn join(words: &[&str]) -> Result<String> {
    let escaped = |word: &&str| -> Result<String> {
        check_id(word).map_err(|error| Error::invalid(error.to_string()))?;
        Ok(word.replace('%', "%25").replace('/', "%2F"))
    };
    let joined = words.iter().map(escaped).collect::<Result<Vec<_>>>()?.join("/");
    if joined.len() > MAX_COMPOUND_ID_BYTES {
        return Err(Error::invalid(format!(
            "'{}' are {} bytes together: use shorter ones, at most {MAX_COMPOUND_ID_BYTES}",
            words.join("' and '"),
            joined.len()
        )));
    }
    Ok(joined)
}

/// Splits an id into its words; `None` if it does not have `N` words.
#[must_use]
pub fn split<const N: usize>(id: &str) -> Option<[String; N]> {
    let words: Vec<String> =
        id.split('/').map(|word| word.replace("%2F", "/").replace("%25", "%")).collect();
    words.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn split_returns_the_joined_words(a in "[a%2F/5 x]{1,12}", b in "[a%2F/5]{1,12}") {
            prop_assume!(a.trim() == a && b.trim() == b);
            let joined = join(&[&a, &b]).unwrap();
            prop_assert_eq!(split::<2>(&joined), Some([a, b]));
        }
    }

    #[test]
    fn words_too_long_together_are_refused_and_named() {
        let long = "x".repeat(150);
        let error = join(&[&long, &long]).unwrap_err().to_string();
        assert!(error.contains("301 bytes") && error.contains("at most 200"), "{error}");
        assert!(join(&["", "x"]).is_err());
        assert_eq!(split::<2>("a/b/c"), None);
    }
}

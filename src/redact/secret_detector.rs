//! Caller-supplied detectors: find secrets in stored texts without knowing their values.

use super::{Redactor, TextForm, TextMasker};
use regex::bytes::Regex;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

/// A way to find secrets whose values are not known in advance.
#[derive(Clone, Debug)]
pub enum SecretDetector {
    /// Uses the built-in redaction rules.
    Rules(Redactor),
    /// Finds everything the rules match.
    Pattern(Regex),
}

impl SecretDetector {
    /// Finds every match of a regular expression.
    ///
    /// # Errors
    /// Returns the parse error as one line if the expression is invalid.
    pub fn pattern(text: &str) -> Result<Self, String> {
        let found = Regex::new(text).map(Self::Pattern);
        found.map_err(|error| {
            let said = error.to_string();
            let last = said.lines().last().unwrap_or_default().trim().to_owned();
            format!("the pattern is not a regular expression: {last}")
        })
    }

    /// Returns the secrets in a text, unescaped where the text is JSON. Some may be too short to
    /// purge.
    pub(crate) fn find(&self, text: &[u8], found: &mut BTreeSet<String>) {
        let mut put = |bytes: &[u8]| {
            let Ok(plain) = std::str::from_utf8(bytes) else { return };
            let mut text = plain.to_owned();
            // The unescaped secret follows escapes; elsewhere the same secret may occur without
            // escapes.
            while text.contains('\\')
                && let Ok(inner) = serde_json::from_str::<String>(&format!("\"{text}\""))
                && inner != text
            {
                text = inner;
            }
            found.insert(text);
        };
        match self {
            Self::Pattern(pattern) => pattern.find_iter(text).for_each(|one| put(one.as_bytes())),
            Self::Rules(redactor) => {
                let json = text.first().is_some_and(|byte| matches!(byte, b'{' | b'['));
                let form = if json { TextForm::Json } else { TextForm::Plain };
                for one in redactor.find(text, form) {
                    put(text.get(one.range).unwrap_or_default());
                }
            }
        }
    }
}

/// Collects the secrets it is given and changes nothing.
pub(crate) struct SecretCollector<'a> {
    pub(crate) seek: &'a SecretDetector,
    pub(crate) found: RefCell<BTreeSet<String>>,
}

impl TextMasker for SecretCollector<'_> {
    fn masked(&self, text: &[u8]) -> Option<(Vec<u8>, Vec<Range<usize>>)> {
        self.seek.find(text, &mut self.found.borrow_mut());
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(seek: &SecretDetector, text: &str) -> Vec<String> {
        let mut found = BTreeSet::new();
        seek.find(text.as_bytes(), &mut found);
        found.into_iter().collect()
    }

    #[test]
    fn what_matches_is_found_as_it_is_meant() {
        let seek = SecretDetector::pattern(r#"key-[0-9]+(\\+n|\n)?x"#).unwrap();
        assert_eq!(found(&seek, "a key-12345x key-1x"), ["key-12345x", "key-1x"]);
        assert_eq!(found(&SecretDetector::pattern("48[0-9]{3}").unwrap(), "pin 48151"), ["48151"]);
        assert_eq!(found(&seek, r#"{"a":"key-12345\nx"}"#), ["key-12345\nx"]);
        assert_eq!(found(&seek, r#"{"a":"key-12345\\nx"}"#), ["key-12345\nx"]);
        assert!(
            SecretDetector::pattern("(")
                .unwrap_err()
                .starts_with("the pattern is not a regular expression")
        );
    }

    #[test]
    fn rules_find_what_they_find_elsewhere() {
        let token = format!("ghp_{}", "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R");
        let seek = SecretDetector::Rules(Redactor::new());
        assert_eq!(found(&seek, &format!("token {token}.")), vec![token.clone()]);
        assert_eq!(found(&seek, &serde_json::json!({ "t": token }).to_string()), [token]);
    }
}

//! Finds what looks like a secret in a text, and removes it.
//!
//! Three kinds of rules are applied in one pass over the text (`scan`). Token shapes (`token_rule`)
//! describe a secret itself. Other credentials are recognised by their context: in `credential`
//! (private keys, URLs with a password, `Bearer` and `Basic`), `program_secret`, `command_secret`
//! and `query_rows`. The values of names that indicate a secret (`named_value`) count only if they
//! look like a secret themselves (`secret_heuristics`). Text with escapes is scanned a second time
//! with the escapes resolved (`unescaped_view`). This module only computes, in time linear in the
//! text. It finds only what its rules describe: it reduces risk and guarantees nothing.

mod byte_text;
mod command_hint;
mod command_secret;
mod credential;
mod dotted_token;
mod hint_starts;
mod hint_table;
mod json_text;
mod known_secrets;
mod kubernetes;
mod name_cursor;
mod named_value;
mod private_key;
mod program_secret;
mod query_rows;
mod redact_value;
mod rescan;
mod scan;
mod secret_detector;
mod secret_heuristics;
mod secret_stream;
mod short;
#[cfg(test)]
mod tests;
mod token_rule;
mod token_shape;
mod unescaped_view;
mod work_counter;
mod wrapped_token;

pub use known_secrets::{
    HashedSecrets, InvalidSecret, KnownSecrets, MIN_SECRET_BYTES, SecretSighting,
};
pub(crate) use known_secrets::{TextDifference, TextMasker, TextPieces};
pub(crate) use scan::{ScanFindings, scan};
pub(crate) use secret_detector::SecretCollector;
pub use secret_detector::SecretDetector;
pub use token_rule::{TokenRule, kinds, rules, unknown_kind};

use std::borrow::Cow;
use std::ops::Range;

/// Maximum length of a secret that is found, in bytes.
pub const MAX_SECRET_BYTES: usize = 16 << 10;

/// The format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// Plain text.
    Plain,
    /// JSON Lines: nothing that is removed may extend beyond the end of a string.
    Json,
}

/// What follows a part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartEnding {
    /// More text, continuing in the middle of a line.
    More,
    /// More text, beginning with a new line.
    Line,
    /// Nothing: the text ends here.
    End,
}

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretFinding {
    /// Its byte range.
    pub range: Range<usize>,
    /// Its kind: the word after `redacted:` in the mark that replaces it.
    pub kind: &'static str,
}

/// A redacted part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactedPart<'a> {
    /// Number of input bytes that are consumed. The rest may be the beginning of a secret: pass it
    /// again together with what follows.
    pub taken: usize,
    /// The consumed bytes, with a mark in place of each secret.
    pub bytes: Cow<'a, [u8]>,
    /// The secrets found, in order; ranges refer to the input.
    pub findings: Vec<SecretFinding>,
}

/// Finds secrets and removes them.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    allowed: Vec<Vec<u8>>,
    allowed_kinds: Vec<String>,
    variables: Vec<String>,
}

impl Redactor {
    /// Creates a redactor with all rules and nothing allowed.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds allowed secrets, which are not removed: `kind:NAME` allows every secret of this kind,
    /// any other text allows every secret that contains it. An empty text allows nothing.
    #[must_use]
    pub fn allow<T: AsRef<str>>(mut self, entries: impl IntoIterator<Item = T>) -> Self {
        for entry in entries {
            let entry = entry.as_ref().trim();
            match entry.strip_prefix("kind:") {
                Some(kind) => self.allowed_kinds.push(kind.to_owned()),
                None if entry.is_empty() => {}
                None => self.allowed.push(entry.as_bytes().to_vec()),
            }
        }
        self
    }

    /// Also keeps the values of these environment variables, besides the harmless ones
    /// ([`keeps_variable`]). A name may end with `*`.
    ///
    /// [`keeps_variable`]: Self::keeps_variable
    #[must_use]
    pub fn keep_variables<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.variables.extend(names.into_iter().map(Into::into));
        self
    }

    fn is_allowed(&self, kind: &str, secret: &[u8]) -> bool {
        self.allowed_kinds.iter().any(|allowed| allowed == kind)
            || self.allowed.iter().any(|allowed| byte_text::contains(secret, allowed))
    }

    /// Returns the secrets in a text that are not allowed, in order and disjoint. Once they are
    /// removed, the rules find no other in the text.
    #[must_use]
    pub fn find(&self, text: &[u8], form: TextForm) -> Vec<SecretFinding> {
        self.rescan_until_stable(text, scan(text, 0..text.len(), form), form).findings
    }

    fn drop_allowed(&self, text: &[u8], mut findings: Vec<SecretFinding>) -> Vec<SecretFinding> {
        findings.retain(|found| {
            !self.is_allowed(found.kind, text.get(found.range.clone()).unwrap_or_default())
        });
        findings
    }

    /// Returns the text with a mark in place of each secret ([`mark`]).
    #[must_use]
    pub fn clean<'a>(&self, text: &'a str, form: TextForm) -> Cow<'a, str> {
        let findings = self.find(text.as_bytes(), form);
        if findings.is_empty() {
            return Cow::Borrowed(text);
        }
        let clean = replace_findings(text.as_bytes(), &findings);
        // Findings begin and end with ASCII.
        Cow::Owned(String::from_utf8_lossy(&clean).into_owned())
    }

    /// Redacts a part of a longer text, and holds back its end if a secret may continue there. If
    /// each part is passed together with what was held back before it, no secret is missed.
    #[must_use]
    pub fn clean_part<'a>(
        &self,
        text: &'a [u8],
        form: TextForm,
        ending: PartEnding,
    ) -> RedactedPart<'a> {
        self.clean_found(text, form, vec![scan(text, 0..text.len(), form)], ending)
    }

    /// Like [`Redactor::clean_part`], with the findings of a scan in shares. The shares are in
    /// order and cover the text.
    pub(crate) fn clean_found<'a>(
        &self,
        text: &'a [u8],
        form: TextForm,
        shares: Vec<ScanFindings>,
        ending: PartEnding,
    ) -> RedactedPart<'a> {
        let found = self.rescan_until_stable(text, ScanFindings::together(shares), form);
        let ScanFindings { mut findings, indicated_ranges, open } = found;
        let mut taken = match ending {
            PartEnding::End => text.len(),
            PartEnding::Line => {
                // A key without an end, or the password of a login, is found whole only with the
                // text that follows. Its whole line is held back.
                let line = |at: usize| {
                    let before = text.get(..at).unwrap_or_default();
                    before.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1)
                };
                let key = open.filter(|at| text.len() - at <= MAX_SECRET_BYTES);
                let login = credential::login(text, text.len(), form);
                key.into_iter().chain(login).min().map_or(text.len(), line)
            }
            PartEnding::More => text.len().saturating_sub(MAX_SECRET_BYTES),
        };
        // A secret is held back together with the text that indicates it: a value without its name
        // is not recognised as a secret.
        if ending != PartEnding::End {
            taken = offset_before_ranges(indicated_ranges, taken);
        }
        findings.retain(|found| found.range.end <= taken);
        let text = text.get(..taken).unwrap_or_default();
        let bytes = if findings.is_empty() {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(replace_findings(text, &findings))
        };
        RedactedPart { taken, bytes, findings }
    }

    /// Returns the kind of the first secret in a name, if it contains one.
    #[must_use]
    pub fn secret_in_name(&self, name: &str) -> Option<&'static str> {
        self.find(name.as_bytes(), TextForm::Plain).first().map(|found| found.kind)
    }
}

/// Returns the last offset up to this one that is inside none of the ranges.
fn offset_before_ranges(mut ranges: Vec<Range<usize>>, offset: usize) -> usize {
    ranges.sort_unstable_by_key(|one| std::cmp::Reverse(one.end));
    // A range that ends before the offset contains neither it nor any earlier offset.
    ranges.into_iter().fold(offset, |offset, one| match one.start < offset && offset < one.end {
        true => one.start,
        false => offset,
    })
}

/// Returns the text that replaces a secret of this kind.
#[must_use]
pub fn mark(kind: &str) -> String {
    format!("[redacted:{kind}]")
}

fn replace_findings(text: &[u8], findings: &[SecretFinding]) -> Vec<u8> {
    let mut clean = Vec::with_capacity(text.len());
    let mut from = 0;
    for found in findings {
        clean.extend_from_slice(text.get(from..found.range.start).unwrap_or_default());
        clean.extend_from_slice(mark(found.kind).as_bytes());
        from = found.range.end;
    }
    clean.extend_from_slice(text.get(from..).unwrap_or_default());
    clean
}

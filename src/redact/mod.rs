//! What looks like a secret in a text, and the text without it.
//!
//! Three kinds of rules, all of them read in one pass over the text: token shapes (`rule`), credentials whose
//! surroundings give them away (private keys, addresses with a password, `Bearer` and `Basic`), and values behind a
//! telling name, which count only if they look like a secret themselves (`judge`). What is written with escapes is looked
//! at once more without them (`view`). Everything here only computes, in time linear in the text. What the rules do not know they do not find: this is a net, not a guarantee.

mod credential;
mod known_secrets;
mod kubernetes;
mod named_value;
mod redact_value;
mod rescan;
mod scan;
mod secret_detector;
mod secret_heuristics;
mod short;
#[cfg(test)]
mod tests;
mod token_rule;
mod token_shape;
mod unescaped_view;
mod work_counter;

pub(crate) use known_secrets::TextMasker;
pub use known_secrets::{InvalidSecret, KnownSecrets, MIN_SECRET_BYTES, SecretSighting};
pub(crate) use scan::{ScanFindings, scan};
pub(crate) use secret_detector::SecretCollector;
pub use secret_detector::SecretDetector;
pub use token_rule::{TokenRule, kinds, rules};

use std::borrow::Cow;
use std::ops::Range;

/// No secret that is found is longer than this, in bytes.
pub const MAX_SECRET_BYTES: usize = 16 << 10;

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextForm {
    /// As it is meant.
    Plain,
    /// As JSON, line by line: nothing that is taken out may reach over the end of a string.
    Json,
}

/// What follows a part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartEnding {
    /// More of it, from the middle of a line on.
    More,
    /// More of it, beginning with a new line.
    Line,
    /// Nothing.
    End,
}

/// A secret in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretFinding {
    /// Where it stands, in bytes.
    pub range: Range<usize>,
    /// What it is: the word behind `redacted:`.
    pub kind: &'static str,
}

/// A part of a text, cleaned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedactedPart<'a> {
    /// How many bytes of what was handed in this stands for. The rest may be the beginning of a secret: hand it in
    /// again with what follows.
    pub taken: usize,
    /// Those bytes without their secrets.
    pub bytes: Cow<'a, [u8]>,
    /// What was found, in order; ranges are in what was handed in.
    pub findings: Vec<SecretFinding>,
}

/// Finds secrets and takes them out.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    allowed: Vec<Vec<u8>>,
    allowed_kinds: Vec<String>,
    variables: Vec<String>,
}

impl Redactor {
    /// With the rules and nothing that is let through.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets through what is listed: `kind:NAME` every secret of this kind, any other text every secret that holds it.
    /// An empty text lets nothing through.
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

    /// Keeps the values of these environment variables too, beside the harmless ones ([`keeps_variable`]). A name may
    /// end with `*`.
    ///
    /// [`keeps_variable`]: Self::keeps_variable
    #[must_use]
    pub fn keep_variables<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.variables.extend(names.into_iter().map(Into::into));
        self
    }

    fn is_allowed(&self, kind: &str, secret: &[u8]) -> bool {
        self.allowed_kinds.iter().any(|allowed| allowed == kind)
            || self.allowed.iter().any(|allowed| scan::contains(secret, allowed))
    }

    /// The secrets in a text, in order, none inside another. Once they are taken out there is none left.
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

    /// The text without its secrets.
    #[must_use]
    pub fn clean<'a>(&self, text: &'a str, form: TextForm) -> Cow<'a, str> {
        let findings = self.find(text.as_bytes(), form);
        if findings.is_empty() {
            return Cow::Borrowed(text);
        }
        let clean = replace_findings(text.as_bytes(), &findings);
        // What is found begins and ends with ASCII.
        Cow::Owned(String::from_utf8_lossy(&clean).into_owned())
    }

    /// A part of a longer text without its secrets, held back where one may go on behind it. Of a text handed in
    /// part by part, each with what was held back before, no secret is missed.
    #[must_use]
    pub fn clean_part<'a>(
        &self,
        text: &'a [u8],
        form: TextForm,
        ending: PartEnding,
    ) -> RedactedPart<'a> {
        self.clean_found(text, form, vec![scan(text, 0..text.len(), form)], ending)
    }

    /// As [`Redactor::clean_part`], with what was found in the shares of the text, which are in order and leave nothing out.
    pub(crate) fn clean_found<'a>(
        &self,
        text: &'a [u8],
        form: TextForm,
        shares: Vec<ScanFindings>,
        ending: PartEnding,
    ) -> RedactedPart<'a> {
        let found = self.rescan_until_stable(text, ScanFindings::together(shares), form);
        let ScanFindings { mut findings, stretches, open } = found;
        let mut taken = match ending {
            PartEnding::End => text.len(),
            PartEnding::Line => {
                // An open key would be found whole with what follows, and so would the password of a login; the line is held
                // back with it.
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
        // A secret stays with what tells of it: a value without its name is taken for no secret.
        if ending != PartEnding::End {
            taken = before_stretches(stretches, taken);
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

    /// The kind of secret that this whole name is or holds, if it does.
    #[must_use]
    pub fn secret_in_name(&self, name: &str) -> Option<&'static str> {
        self.find(name.as_bytes(), TextForm::Plain).first().map(|found| found.kind)
    }
}

/// The last place up to this one that is inside of no stretch.
fn before_stretches(mut stretches: Vec<Range<usize>>, place: usize) -> usize {
    stretches.sort_unstable_by_key(|one| std::cmp::Reverse(one.end));
    // A stretch that ends before the place cannot hold it, nor a place before it.
    stretches.into_iter().fold(place, |place, one| match one.start < place && place < one.end {
        true => one.start,
        false => place,
    })
}

/// What stands where a secret of this kind was.
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

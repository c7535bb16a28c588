//! The single entry point for text from outside: secrets are removed here, before anything is
//! hashed, compared with stored data, or written.
//!
//! Every verb of the facade passes its input through the gate first. A source that is stored byte
//! for byte enters as a [`RedactedSource`], which only the gate makes, so that facts are parsed
//! from text without secrets.

use super::new_checkpoint::NewCheckpoint;
use super::new_session::NewSession;
use super::{Options, Store};
use crate::engine::blob::{self, BlobSegment};
use crate::engine::parallel::{self, cores};
use crate::engine::revision_plan::ClaimChange;
use crate::error::{Error, Result};
use crate::model::{BranchMetadata, Checkpoint, Fact, Value};
use crate::redact::{PartEnding, Redactor, TextForm, scan};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// How many secrets of each kind were removed.
pub(crate) type RedactionCounts = BTreeMap<&'static str, u64>;

/// Compressing fewer bytes than this is faster than starting a thread for it.
const MIN_COMPRESSED_BYTES: usize = 64 << 10;
/// The least text per searching thread: below this, starting another thread takes longer than the
/// search.
const MIN_SHARE_BYTES: usize = 128 << 10;

/// A part of a source: its original bytes, and its bytes without secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactedSource<'a> {
    source: Cow<'a, [u8]>,
    /// `None` if nothing was removed.
    clean: Option<Vec<u8>>,
    removed: u64,
    /// The bytes, compressed as the beginning of a source; empty if that was not done.
    compressed: Vec<BlobSegment>,
}

impl RedactedSource<'_> {
    /// Returns the source bytes that were accepted. The rest of the input must be passed again
    /// together with what follows.
    #[must_use]
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// Returns the bytes that are stored, and that facts must be parsed from.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.clean.as_deref().unwrap_or(&self.source)
    }

    /// Returns how many secrets were removed.
    #[must_use]
    pub const fn removed(&self) -> u64 {
        self.removed
    }

    /// Copies borrowed bytes, so that the value owns all its data.
    #[must_use]
    pub fn into_owned(self) -> RedactedSource<'static> {
        let source = Cow::Owned(self.source.into_owned());
        RedactedSource {
            source,
            clean: self.clean,
            removed: self.removed,
            compressed: self.compressed,
        }
    }

    /// Runs `work` on the bytes. Meanwhile other cores, if there are any, compress them as the
    /// beginning of a source, unless they are few. This saves [`super::Session::import_chunk`] that
    /// work.
    pub fn compress_while<T>(&mut self, work: impl FnOnce(&[u8]) -> T) -> T {
        let bytes = self.clean.as_deref().unwrap_or(&self.source);
        if bytes.len() < MIN_COMPRESSED_BYTES || cores() == 1 {
            return work(bytes);
        }
        let (compressed, done) = blob::segments_while(bytes, || work(bytes));
        self.compressed = compressed;
        done
    }

    /// Takes the compressed bytes, if they were compressed already.
    pub(super) fn take_compressed(&mut self) -> Vec<BlobSegment> {
        std::mem::take(&mut self.compressed)
    }
}

impl Store {
    /// Removes the secrets from a part of a source that is stored byte for byte (a transcript), if
    /// this store redacts. `ending` says what follows the part.
    #[must_use]
    pub fn redact_source<'a>(
        &self,
        source: &'a [u8],
        form: TextForm,
        ending: PartEnding,
    ) -> RedactedSource<'a> {
        let Some(redactor) = &self.engine.options.redaction else {
            return RedactedSource { source: Cow::Borrowed(source), ..RedactedSource::default() };
        };
        let shares = shares(source);
        let found = parallel::map(&shares, 2, |share| scan(source, share.clone(), form));
        let part = redactor.clean_found(source, form, found, ending);
        RedactedSource {
            compressed: Vec::new(),
            source: Cow::Borrowed(source.get(..part.taken).unwrap_or_default()),
            removed: part.findings.len() as u64,
            clean: match part.bytes {
                Cow::Borrowed(_) => None,
                Cow::Owned(bytes) => Some(bytes),
            },
        }
    }

    /// Returns a name from outside as it is stored: without its secrets.
    #[must_use]
    pub fn without_secrets(&self, name: &str) -> String {
        let mut clean = name.to_owned();
        self.gate().text(&mut clean, &mut RedactionCounts::new());
        clean
    }

    pub(crate) fn gate(&self) -> RedactionGate<'_> {
        RedactionGate::of(&self.engine.options)
    }
}

/// Splits a text into shares of whole lines, at most one for each core.
fn shares(text: &[u8]) -> Vec<Range<usize>> {
    let count = cores().min(text.len() / MIN_SHARE_BYTES).max(1);
    let mut shares = Vec::with_capacity(count);
    let mut from = 0;
    for number in 1..count {
        let about = text.len() / count * number;
        let line = text.get(about..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n'));
        let Some(line) = line else { break };
        let to = about + line + 1;
        if to > from {
            shares.push(from..to);
            from = to;
        }
    }
    shares.push(from..text.len());
    shares
}

/// Removes secrets from the input of a verb; changes nothing if the store does not redact.
#[derive(Clone, Copy)]
pub(crate) struct RedactionGate<'a>(Option<&'a Redactor>);

impl<'a> RedactionGate<'a> {
    pub(crate) fn of(options: &'a Options) -> Self {
        Self(options.redaction.as_deref())
    }

    /// Returns whether the store redacts.
    pub(crate) fn is_redacting(self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn value(self, value: &mut Value, removed: &mut RedactionCounts) {
        if let Some(redactor) = self.0 {
            for (kind, count) in redactor.clean_value(value) {
                *removed.entry(kind).or_default() += count;
            }
        }
    }

    pub(crate) fn text(self, text: &mut String, removed: &mut RedactionCounts) {
        if let Some(redactor) = self.0 {
            redactor.clean_text(text, removed);
        }
    }

    /// Redacts a line of an event stream.
    pub(crate) fn json(self, text: &str) -> Cow<'_, str> {
        self.0.map_or(Cow::Borrowed(text), |redactor| redactor.clean(text, TextForm::Json))
    }

    fn maybe(self, text: &mut Option<String>, removed: &mut RedactionCounts) {
        if let Some(text) = text {
            self.text(text, removed);
        }
    }

    fn texts(self, texts: &mut [String], removed: &mut RedactionCounts) {
        texts.iter_mut().for_each(|text| self.text(text, removed));
    }

    /// Refuses a name that contains a secret. This is for names that must not be changed, since
    /// other data refers to them.
    pub(crate) fn name(self, what: &str, name: &str) -> Result<()> {
        match self.0.and_then(|redactor| redactor.secret_in_name(name)) {
            None => Ok(()),
            Some(kind) => Err(Error::invalid(format!(
                "the {what} contains what looks like a secret ({kind}): choose another one, or allow it \
                 in the redaction settings"
            ))),
        }
    }

    pub(crate) fn claim(
        self,
        change: &mut ClaimChange,
        removed: &mut RedactionCounts,
    ) -> Result<()> {
        if let Some(value) = &mut change.value {
            self.name("id", &change.key.id)?;
            self.value(value, removed);
        }
        Ok(())
    }

    pub(crate) fn fact(self, fact: &mut Fact, removed: &mut RedactionCounts) {
        self.text(&mut fact.id, removed);
        self.value(&mut fact.value, removed);
    }

    pub(crate) fn checkpoint(self, checkpoint: &mut NewCheckpoint, removed: &mut RedactionCounts) {
        self.text(&mut checkpoint.message, removed);
        self.texts(&mut checkpoint.tags, removed);
        self.value(&mut checkpoint.body, removed);
        self.maybe(&mut checkpoint.key, removed);
    }

    /// Redacts a checkpoint that was changed after it was made.
    pub(crate) fn amended_checkpoint(self, checkpoint: &mut Checkpoint) {
        let removed = &mut RedactionCounts::new();
        self.text(&mut checkpoint.message, removed);
        self.texts(&mut checkpoint.tags, removed);
        self.value(&mut checkpoint.body, removed);
    }

    pub(crate) fn branch(self, metadata: &mut BranchMetadata) {
        let removed = &mut RedactionCounts::new();
        self.maybe(&mut metadata.hypothesis, removed);
        self.maybe(&mut metadata.approach, removed);
        self.texts(&mut metadata.success_criteria, removed);
        self.texts(&mut metadata.results, removed);
        self.value(&mut metadata.extra, removed);
    }

    pub(crate) fn session(self, new: &mut NewSession) {
        let removed = &mut RedactionCounts::new();
        self.text(&mut new.name, removed);
        self.maybe(&mut new.agent, removed);
        self.maybe(&mut new.agent_session, removed);
    }
}

/// Returns a warning about removed secrets; `None` if there were none.
pub(crate) fn warning(removed: &RedactionCounts) -> Option<String> {
    let count: u64 = removed.values().sum();
    let kinds: Vec<&str> = removed.keys().copied().collect();
    let (secrets, were) = if count == 1 { ("secret", "was") } else { ("secrets", "were") };
    (count > 0)
        .then(|| format!("{count} {secrets} {were} removed before storing: {}", kinds.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_divided_into_shares_of_whole_lines_without_gaps() {
        let line = "a line of some words\n";
        for text in [
            String::new(),
            line.to_owned(),
            "no line".repeat(MIN_SHARE_BYTES),
            line.repeat(MIN_SHARE_BYTES / 5),
            format!("{}{}", line.repeat(MIN_SHARE_BYTES / 10), "x".repeat(MIN_SHARE_BYTES * 4)),
            format!("{}{line}", "x".repeat(MIN_SHARE_BYTES * 4)),
        ] {
            let shares = shares(text.as_bytes());
            let mut end = 0;
            for share in &shares {
                assert_eq!(share.start, end);
                assert!(end == 0 || text.as_bytes()[end - 1] == b'\n');
                end = share.end;
            }
            assert_eq!(end, text.len());
        }
        let long = line.repeat(MIN_SHARE_BYTES / 5);
        assert_eq!(shares(long.as_bytes()).len(), cores().min(long.len() / MIN_SHARE_BYTES));
    }
}

//! Counts the secrets in a bundle that a store would redact, and finds secrets that were purged
//! elsewhere.

use crate::format::{
    Delta, DeltaSide, FactPage, ObjectKind, RecordChange, decode_entry, decode_key, pack_derived,
};
use crate::model::text::count_text;
use crate::model::{BranchMetadata, Checkpoint, Operation, SessionMetadata, Value};
use crate::redact::{HashedSecrets, MAX_SECRET_BYTES, Redactor, TextForm};
use std::collections::{BTreeMap, BTreeSet};

/// Counts the secrets in texts by kind, and collects the secrets with known hashes.
pub(super) struct SecretCounter<'a> {
    redactor: Option<&'a Redactor>,
    found: BTreeMap<&'static str, u64>,
    hashes: Option<&'a HashedSecrets>,
    purged: BTreeSet<String>,
}

impl<'a> SecretCounter<'a> {
    pub(super) const fn new(redactor: Option<&'a Redactor>) -> Self {
        Self { redactor, found: BTreeMap::new(), hashes: None, purged: BTreeSet::new() }
    }

    /// Also finds the secrets with these hashes.
    pub(super) const fn seeking(mut self, hashes: Option<&'a HashedSecrets>) -> Self {
        self.hashes = hashes;
        self
    }

    /// Returns the secrets that were found by their hashes.
    pub(super) fn into_purged(self) -> BTreeSet<String> {
        self.purged
    }

    /// Returns how many bytes before a text must be searched with it, because a secret that ends in
    /// the text may begin there.
    pub(super) fn overlap(&self) -> usize {
        let hashed = self.hashes.map_or(0, HashedSecrets::max_bytes);
        hashed.max(2 * MAX_SECRET_BYTES)
    }

    /// Returns the number and the kinds of the secrets in words, as for a message; `None` if there
    /// are none.
    pub(super) fn summary(&self) -> Option<String> {
        let count: u64 = self.found.values().sum();
        let kinds: Vec<&str> = self.found.keys().copied().collect();
        (count > 0).then(|| format!("{} ({})", count_text(count, "secret"), kinds.join(", ")))
    }

    /// Searches a text, and counts the secrets that end in it. `before` is the text before it, in
    /// which these secrets may begin.
    pub(super) fn count_after(&mut self, before: &[u8], text: &[u8], form: TextForm) {
        if self.redactor.is_none() && self.hashes.is_none() {
            return;
        }
        let whole = [before, text].concat();
        if let Some(hashes) = self.hashes {
            hashes.find(&whole, &mut self.purged);
        }
        let Some(redactor) = self.redactor else { return };
        for found in redactor.find(&whole, form) {
            if found.range.end > before.len() {
                *self.found.entry(found.kind).or_default() += 1;
            }
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.count_after(&[], text.as_bytes(), TextForm::Plain);
    }

    fn value(&mut self, value: &Value) {
        if let Some(hashes) = self.hashes {
            hashes.find(&pack_derived(value), &mut self.purged);
        }
        let Some(redactor) = self.redactor else { return };
        for (kind, count) in redactor.clean_value(&mut value.clone()) {
            *self.found.entry(kind).or_default() += count;
        }
    }

    pub(super) fn info(&mut self, info: &SessionMetadata) {
        self.text(&info.name);
        [&info.agent, &info.agent_session].into_iter().flatten().for_each(|text| self.text(text));
    }

    pub(super) fn operation(&mut self, operation: &Operation) {
        self.text(&operation.verb);
    }

    /// Searches the content of an object. If it cannot be decoded, it is searched as text.
    pub(super) fn object(&mut self, kind: ObjectKind, content: &[u8]) {
        if self.redactor.is_none() && self.hashes.is_none() {
            return;
        }
        match kind {
            ObjectKind::Delta => match Delta::decode(content) {
                Ok(delta) => {
                    for change in &delta.changes {
                        self.key(&change.key);
                        self.side(&change.old);
                        self.side(&change.new);
                    }
                }
                Err(_) => self.count_after(&[], content, TextForm::Plain),
            },
            ObjectKind::Page => match FactPage::decode(content) {
                Ok(page) => {
                    page.source.iter().for_each(|source| self.text(source));
                    for fact in &page.facts {
                        self.text(&fact.id);
                        self.value(&fact.value);
                    }
                }
                Err(_) => self.count_after(&[], content, TextForm::Plain),
            },
            ObjectKind::Blob | ObjectKind::Chunk => self.entry(content),
        }
    }

    fn key(&mut self, key: &[u8]) {
        match decode_key(key) {
            Ok(key) => self.text(&key.id),
            Err(_) => self.count_after(&[], key, TextForm::Plain),
        }
    }

    fn side(&mut self, side: &DeltaSide) {
        if let DeltaSide::Inline(entry) = side {
            self.entry(entry);
        }
    }

    fn entry(&mut self, entry: &[u8]) {
        match decode_entry(entry) {
            Ok(entry) => self.value(&entry.value),
            Err(_) => self.count_after(&[], entry, TextForm::Plain),
        }
    }

    /// Searches the texts of a change that are not in objects.
    pub(super) fn change(&mut self, change: &RecordChange) {
        match change {
            RecordChange::Branch { name, change, .. } => {
                self.text(name);
                self.metadata(&change.metadata);
            }
            RecordChange::BranchChanged { change, .. } => self.metadata(&change.metadata),
            RecordChange::Segment { blob, .. }
            | RecordChange::TextDropped { blob, .. }
            | RecordChange::TextShown { blob, .. }
            | RecordChange::TextMissing { blob, .. } => self.text(blob),
            RecordChange::Revision { body, .. } => self.count_after(&[], &body.0, TextForm::Plain),
            RecordChange::Checkpoint { checkpoint, .. }
            | RecordChange::CheckpointShown { checkpoint, .. } => self.checkpoint(checkpoint),
            RecordChange::Bookmark { source, bookmark, .. } => {
                self.text(source);
                if let Some(bookmark) = bookmark {
                    self.text(&bookmark.blob);
                    self.count_after(&[], &bookmark.carry.0, TextForm::Plain);
                }
            }
            RecordChange::Head(_)
            | RecordChange::Session { .. }
            | RecordChange::SessionBegun { .. }
            | RecordChange::SessionReplaced { .. }
            | RecordChange::SessionAbandoned { .. }
            | RecordChange::Pinned { .. }
            | RecordChange::Used { .. }
            | RecordChange::BranchHidden { .. }
            | RecordChange::Switched { .. }
            | RecordChange::Object { .. }
            | RecordChange::CheckpointHidden { .. }
            | RecordChange::Facts { .. }
            | RecordChange::TakesBack { .. }
            | RecordChange::Pruned { .. }
            | RecordChange::SessionDropped { .. }
            | RecordChange::SessionShown { .. }
            | RecordChange::Folded { .. }
            | RecordChange::Unfolded { .. }
            | RecordChange::Swept { .. }
            | RecordChange::SweptAhead { .. }
            | RecordChange::Schedule { .. } => {}
        }
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint) {
        self.text(&checkpoint.message);
        checkpoint.tags.iter().for_each(|tag| self.text(tag));
        checkpoint.key.iter().for_each(|key| self.text(key));
        self.value(&checkpoint.body);
    }

    fn metadata(&mut self, metadata: &BranchMetadata) {
        let one = [&metadata.hypothesis, &metadata.approach].into_iter().flatten();
        let texts = one.chain(&metadata.success_criteria).chain(&metadata.results);
        texts.for_each(|text| self.text(text));
        self.value(&metadata.extra);
    }
}

//! A change of one claim, encoded: its key and its entry before and after.

use crate::format::{EntryBytes, entry_hash};

/// An encoded key, and its entry before and after.
pub(crate) type EncodedChange = (Vec<u8>, Option<EntryBytes>, Option<DigestedEntry>);

/// An entry with its term in digests, if it is known: computing the term is most of the work of
/// removing the entry from a digest.
#[derive(Clone)]
pub(crate) struct DigestedEntry {
    pub(crate) entry: EntryBytes,
    /// The hash of the key and the entry, which digests add up; `None` if not computed yet.
    pub(crate) term: Option<[u8; 32]>,
}

impl DigestedEntry {
    /// Returns the term of this entry under this key in digests.
    pub(crate) fn term(&self, key: &[u8]) -> [u8; 32] {
        self.term.unwrap_or_else(|| entry_hash(key, &self.entry))
    }
}

impl From<EntryBytes> for DigestedEntry {
    fn from(entry: EntryBytes) -> Self {
        Self { entry, term: None }
    }
}

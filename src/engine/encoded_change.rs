//! A change of one claim, encoded: its key and its entry before and after.

use crate::format::{EntryBytes, entry_hash};

/// An encoded key, and its entry before and after.
pub(crate) type EncodedChange = (Vec<u8>, Option<EntryBytes>, Option<DigestedEntry>);

/// An entry with its contribution to digests, if that has been computed: it is most of the work of
/// removing the entry.
#[derive(Clone)]
pub(crate) struct DigestedEntry {
    pub(crate) entry: EntryBytes,
    pub(crate) term: Option<[u8; 32]>,
}

impl DigestedEntry {
    /// Returns the contribution to digests of this entry under this key.
    pub(crate) fn term(&self, key: &[u8]) -> [u8; 32] {
        self.term.unwrap_or_else(|| entry_hash(key, &self.entry))
    }
}

impl From<EntryBytes> for DigestedEntry {
    fn from(entry: EntryBytes) -> Self {
        Self { entry, term: None }
    }
}

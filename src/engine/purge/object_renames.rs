//! New ids of replaced objects: an id is the hash of the content, so new content has a new id.

use crate::error::{Error, Result};
use crate::model::ObjectId;
use aho_corasick::AhoCorasick;
use std::collections::BTreeMap;

/// Maps the old ids of objects to their new ones.
#[derive(Default)]
pub(super) struct ObjectRenames {
    new_ids: BTreeMap<ObjectId, ObjectId>,
    /// Finds all old ids, as bytes and as hex digits, and has the replacement of each. It is built
    /// when it is needed.
    search: Option<(AhoCorasick, Vec<Vec<u8>>)>,
}

impl ObjectRenames {
    pub(super) fn put(&mut self, old: ObjectId, new: ObjectId) {
        if old != new {
            self.new_ids.insert(old, new);
            self.search = None;
        }
    }

    /// Returns the bytes with new ids in place of old ones; `None` if they contain no old id.
    /// Ids are found as byte sequences, in any structure.
    pub(super) fn rewrite(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
        if self.new_ids.is_empty() {
            return Ok(None);
        }
        if self.search.is_none() {
            let forms = |id: &ObjectId| [id.as_bytes().to_vec(), id.to_string().into_bytes()];
            let patterns: Vec<_> = self.new_ids.keys().flat_map(forms).collect();
            let replacements = self.new_ids.values().flat_map(forms).collect();
            let search =
                AhoCorasick::new(patterns).map_err(|error| Error::invalid(error.to_string()))?;
            self.search = Some((search, replacements));
        }
        let Some((search, replacements)) = &self.search else { return Ok(None) };
        let mut changed: Option<Vec<u8>> = None;
        for found in search.find_iter(bytes) {
            let all = changed.get_or_insert_with(|| bytes.to_vec());
            if let (Some(old), Some(new)) =
                (all.get_mut(found.range()), replacements.get(found.pattern().as_usize()))
            {
                old.copy_from_slice(new);
            }
        }
        Ok(changed)
    }
}

//! New ids of replaced objects: an id is the hash of the content, so new content has a new id.

use crate::error::{Error, Result};
use crate::model::ObjectId;
use aho_corasick::AhoCorasick;
use std::collections::BTreeMap;

/// Maps old ids to new ones.
#[derive(Default)]
pub(super) struct ObjectRenames {
    new: BTreeMap<ObjectId, ObjectId>,
    /// Finds all old ids, as bytes and as hex digits.
    search: Option<(AhoCorasick, Vec<Vec<u8>>)>,
}

impl ObjectRenames {
    pub(super) fn put(&mut self, old: ObjectId, new: ObjectId) {
        if old != new {
            self.new.insert(old, new);
            self.search = None;
        }
    }

    /// Returns the bytes with new ids in place of old ones; `None` if they contain none. Ids are
    /// found as byte sequences, in any structure.
    pub(super) fn rewrite(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>> {
        if self.new.is_empty() {
            return Ok(None);
        }
        if self.search.is_none() {
            let forms = |id: &ObjectId| [id.as_bytes().to_vec(), id.to_string().into_bytes()];
            let old: Vec<_> = self.new.keys().flat_map(forms).collect();
            let new = self.new.values().flat_map(forms).collect();
            let search =
                AhoCorasick::new(old).map_err(|error| Error::invalid(error.to_string()))?;
            self.search = Some((search, new));
        }
        let Some((search, new)) = &self.search else { return Ok(None) };
        let mut changed: Option<Vec<u8>> = None;
        for found in search.find_iter(bytes) {
            let all = changed.get_or_insert_with(|| bytes.to_vec());
            if let (Some(place), Some(name)) =
                (all.get_mut(found.start()..found.end()), new.get(found.pattern().as_usize()))
            {
                place.copy_from_slice(name);
            }
        }
        Ok(changed)
    }
}

//! Cache of opened and checked objects of one generation: nearby revisions share their chunks and
//! most of their deltas.

use super::scanned_object::ScannedObject;
use crate::backend::locked;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Size limit in bytes of content.
const MAX_BYTES: usize = 32 << 20;
/// Objects that are opened together and exceed this size are not cached: they would only evict
/// everything else.
const MAX_BYTES_AT_ONCE: usize = MAX_BYTES / 2;

/// Opened objects by number. Shared by all snapshots of one generation and dropped with it, because
/// numbers are only valid within one generation.
#[derive(Default)]
pub(crate) struct ObjectCache(Mutex<ObjectCacheHalves>);

/// The two halves of the cache: objects used since the halves were last swapped, and older ones.
#[derive(Default)]
struct ObjectCacheHalves {
    young: HashMap<u64, Arc<ScannedObject>>,
    young_bytes: usize,
    old: HashMap<u64, Arc<ScannedObject>>,
}

impl ObjectCacheHalves {
    fn find(&mut self, number: u64) -> Option<Arc<ScannedObject>> {
        if let Some(known) = self.young.get(&number) {
            return Some(Arc::clone(known));
        }
        let known = self.old.remove(&number)?;
        self.keep(number, &known);
        Some(known)
    }

    fn keep(&mut self, number: u64, object: &Arc<ScannedObject>) {
        if self.young_bytes + object.weight() > MAX_BYTES / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        if self.young.insert(number, Arc::clone(object)).is_none() {
            self.young_bytes += object.weight();
        }
    }
}

impl ObjectCache {
    /// Returns the cached objects of these numbers, in the given order.
    pub(crate) fn find(
        &self,
        numbers: impl Iterator<Item = u64>,
    ) -> Vec<Option<Arc<ScannedObject>>> {
        let mut kept = locked(&self.0);
        numbers.map(|number| kept.find(number)).collect()
    }

    /// Adds objects that were just opened.
    pub(crate) fn keep<'a>(
        &self,
        objects: impl Iterator<Item = (u64, &'a Arc<ScannedObject>)> + Clone,
    ) {
        let bytes: usize = objects.clone().map(|(_, object)| object.weight()).sum();
        if bytes > MAX_BYTES_AT_ONCE {
            return;
        }
        let mut kept = locked(&self.0);
        objects.for_each(|(number, object)| kept.keep(number, object));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::scanned_object::ScannedRanges;

    fn object(bytes: usize) -> Arc<ScannedObject> {
        Arc::new(ScannedObject {
            bytes: Arc::new(vec![7; bytes]),
            ranges: ScannedRanges::Entries(Vec::new()),
        })
    }

    fn found(opened: &ObjectCache, number: u64) -> bool {
        opened.find(std::iter::once(number)).pop().flatten().is_some()
    }

    #[test]
    fn objects_that_were_not_used_lately_are_evicted_first() {
        let opened = ObjectCache::default();
        let piece = object(MAX_BYTES / 8);
        for number in 0..20 {
            opened.keep(std::iter::once((number, &piece)));
            assert!(found(&opened, 0), "the first is asked for every time");
            assert!(found(&opened, number));
        }
        let kept = (0..20).filter(|number| found(&opened, *number)).count();
        assert!((4..=8).contains(&kept), "{kept} are kept");
    }

    #[test]
    fn a_state_too_large_to_be_cached_evicts_nothing() {
        let opened = ObjectCache::default();
        opened.keep(std::iter::once((1, &object(100))));
        let large: Vec<_> = (2..20).map(|number| (number, object(MAX_BYTES / 10))).collect();
        opened.keep(large.iter().map(|(number, object)| (*number, object)));
        assert!(found(&opened, 1));
        assert!(!found(&opened, 2));
    }
}

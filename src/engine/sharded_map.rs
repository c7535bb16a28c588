//! A hash map for very many keys that grows in small steps.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Number of maps that share many keys. When a single map of 14,000 keys grows, a writer waits for
/// 3.5 ms.
const COUNT: usize = 64;
/// Up to this number of keys there is one map: 64 empty maps take 3 KB.
const KEYS_IN_ONE: usize = 256;

/// A map from bytes to values. It consists of several maps that grow separately.
pub(super) struct ShardedMap<V> {
    maps: Vec<HashMap<Vec<u8>, V>>,
    /// Selects the map of a key.
    hasher: RandomState,
}

impl<V> Default for ShardedMap<V> {
    fn default() -> Self {
        Self { maps: Vec::new(), hasher: RandomState::new() }
    }
}

impl<V> ShardedMap<V> {
    pub(super) fn get(&self, key: &[u8]) -> Option<&V> {
        self.maps.get(self.place(key))?.get(key)
    }

    pub(super) fn contains_key(&self, key: &[u8]) -> bool {
        self.get(key).is_some()
    }

    /// Inserts a value and returns the old one, if any.
    pub(super) fn insert(&mut self, key: &[u8], value: V) -> Option<V> {
        match self.maps.as_mut_slice() {
            [] => self.maps.push(HashMap::new()),
            [one] if one.len() >= KEYS_IN_ONE => self.split(),
            _ => {}
        }
        let place = self.place(key);
        let map = &mut self.maps[place];
        match map.get_mut(key) {
            Some(known) => Some(std::mem::replace(known, value)),
            None => map.insert(key.to_vec(), value),
        }
    }

    pub(super) fn remove(&mut self, key: &[u8]) -> Option<V> {
        let place = self.place(key);
        self.maps.get_mut(place)?.remove(key)
    }

    pub(super) fn clear(&mut self) {
        self.maps.clear();
    }

    /// Distributes the keys of the only map over [`COUNT`] maps.
    fn split(&mut self) {
        let one = std::mem::take(&mut self.maps);
        self.maps.resize_with(COUNT, HashMap::new);
        for (key, value) in one.into_iter().flatten() {
            let place = self.place(&key);
            self.maps[place].insert(key, value);
        }
    }

    /// Returns the index of the map of a key.
    fn place(&self, key: &[u8]) -> usize {
        self.hasher.hash_one(key) as usize % self.maps.len().max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_from_its_insertion_until_its_removal() {
        let mut map = ShardedMap::default();
        assert_eq!(map.remove(b"1"), None);
        assert!(!map.contains_key(b"1"));
        for number in 0..10_000_u32 {
            assert_eq!(map.insert(number.to_string().as_bytes(), number), None);
        }
        assert_eq!(map.insert(b"77", 7), Some(77));
        assert_eq!(map.remove(b"78"), Some(78));
        assert_eq!((map.get(b"77"), map.contains_key(b"78")), (Some(&7), false));
        let sizes = map.maps.iter().map(HashMap::len);
        assert_eq!(sizes.clone().sum::<usize>(), 9_999);
        assert!(sizes.clone().max() < Some(400) && sizes.min() > Some(20));
        map.clear();
        assert_eq!(map.get(b"77"), None);
    }
}

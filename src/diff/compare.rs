//! Comparison of two sorted states.

use crate::model::{ClaimEntry, EntryChange, Key};
use std::cmp::Ordering;

/// A key whose values differ: the old one and the new one, `None` where absent.
pub type KeyDifference<K, V> = (K, Option<V>, Option<V>);

/// Returns the keys whose values differ between two sequences sorted by strictly increasing keys,
/// in key order. `same` decides whether two values are equal; a caller that has bytes can compare
/// bytes and decode only what differs.
///
/// Reads both sequences once and buffers nothing, so states of any size can be streamed.
pub fn differences<K: Ord, V>(
    old: impl IntoIterator<Item = (K, V)>,
    new: impl IntoIterator<Item = (K, V)>,
    same: impl Fn(&V, &V) -> bool,
) -> impl Iterator<Item = KeyDifference<K, V>> {
    let (mut old, mut new) = (old.into_iter().peekable(), new.into_iter().peekable());
    std::iter::from_fn(move || {
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((old_key, _)), Some((new_key, _))) => old_key.cmp(new_key),
            };
            match order {
                Ordering::Less => return old.next().map(|(key, value)| (key, Some(value), None)),
                Ordering::Greater => {
                    return new.next().map(|(key, value)| (key, None, Some(value)));
                }
                Ordering::Equal => {
                    let ((key, before), (_, after)) = old.next().zip(new.next())?;
                    if !same(&before, &after) {
                        return Some((key, Some(before), Some(after)));
                    }
                }
            }
        }
    })
}

/// Returns the changes from the old state to the new one, in key order. Both inputs are sorted by
/// key (a `BTreeMap` is).
pub fn compare<'a>(
    old: impl IntoIterator<Item = (&'a Key, &'a ClaimEntry)>,
    new: impl IntoIterator<Item = (&'a Key, &'a ClaimEntry)>,
) -> Vec<EntryChange> {
    differences(old, new, |old, new| old == new)
        .map(|(key, old, new)| EntryChange {
            key: key.clone(),
            old: old.cloned(),
            new: new.cloned(),
        })
        .collect()
}

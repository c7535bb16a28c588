//! Changes applied to a state, turned round, and put behind each other.

use super::ClaimMap;
use crate::model::{EntryChange, Key};
use std::collections::BTreeMap;

/// A change whose old value is not what stands in the state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not what the change expects it to be")]
pub struct ChangeMismatch(pub Key);

/// Makes the new state of the old one. What a change says was there before is not looked at; see [`check_old_values`].
pub fn apply(state: &mut ClaimMap, changes: &[EntryChange]) {
    for change in changes {
        match &change.new {
            Some(entry) => state.insert(change.key.clone(), entry.clone()),
            None => state.remove(&change.key),
        };
    }
}

/// Whether the old value of every change is what stands in the state.
///
/// # Errors
/// [`ChangeMismatch`] with the first key where it is not.
pub fn check_old_values(state: &ClaimMap, changes: &[EntryChange]) -> Result<(), ChangeMismatch> {
    match changes.iter().find(|change| state.get(&change.key) != change.old.as_ref()) {
        Some(change) => Err(ChangeMismatch(change.key.clone())),
        None => Ok(()),
    }
}

/// The changes that take these back.
#[must_use]
pub fn invert(changes: Vec<EntryChange>) -> Vec<EntryChange> {
    let turn = |EntryChange { key, old, new }| EntryChange { key, old: new, new: old };
    changes.into_iter().map(turn).collect()
}

/// The one set of changes that does what `first` and then `second` do, in key order; what cancels out is left out.
/// Each has one change a key.
#[must_use]
pub fn compose(first: Vec<EntryChange>, second: Vec<EntryChange>) -> Vec<EntryChange> {
    let by_key = |change: EntryChange| (change.key.clone(), change);
    let mut net: BTreeMap<Key, EntryChange> = first.into_iter().map(by_key).collect();
    for change in second {
        match net.get_mut(&change.key) {
            Some(earlier) => earlier.new = change.new,
            None => {
                net.insert(change.key.clone(), change);
            }
        }
    }
    net.into_values().filter(|change| change.old != change.new).collect()
}

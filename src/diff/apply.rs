//! Applying, inverting and composing changes.

use super::ClaimMap;
use crate::model::{EntryChange, Key};
use std::collections::BTreeMap;

/// The error for a change whose old value differs from the value in the state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not what the change expects it to be")]
pub struct ChangeMismatch(pub Key);

/// Applies changes to the old state, giving the new one. Does not check the old values; see
/// [`check_old_values`].
pub fn apply(state: &mut ClaimMap, changes: &[EntryChange]) {
    for change in changes {
        match &change.new {
            Some(entry) => state.insert(change.key.clone(), entry.clone()),
            None => state.remove(&change.key),
        };
    }
}

/// Checks that the old value of every change equals the value in the state.
///
/// # Errors
/// [`ChangeMismatch`] with the first key whose value differs.
pub fn check_old_values(state: &ClaimMap, changes: &[EntryChange]) -> Result<(), ChangeMismatch> {
    match changes.iter().find(|change| state.get(&change.key) != change.old.as_ref()) {
        Some(change) => Err(ChangeMismatch(change.key.clone())),
        None => Ok(()),
    }
}

/// Returns the inverse changes.
#[must_use]
pub fn invert(changes: Vec<EntryChange>) -> Vec<EntryChange> {
    let turn = |EntryChange { key, old, new }| EntryChange { key, old: new, new: old };
    changes.into_iter().map(turn).collect()
}

/// Composes two sets of changes into one with the same effect as `first` and then `second`, in key
/// order; changes that cancel out are omitted. The result has at most one change per key.
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

//! Changes applied to a state, turned round, and put behind each other.

use super::State;
use crate::model::{Change, Key};
use std::collections::BTreeMap;

/// A change whose old value is not what stands in the state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not what the change expects it to be")]
pub struct Mismatch(pub Key);

/// Makes the new state of the old one. What a change says was there before is not looked at; see [`fits`].
pub fn apply(state: &mut State, changes: &[Change]) {
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
/// [`Mismatch`] with the first key where it is not.
pub fn fits(state: &State, changes: &[Change]) -> Result<(), Mismatch> {
    match changes.iter().find(|change| state.get(&change.key) != change.old.as_ref()) {
        Some(change) => Err(Mismatch(change.key.clone())),
        None => Ok(()),
    }
}

/// The changes that take these back.
#[must_use]
pub fn invert(changes: Vec<Change>) -> Vec<Change> {
    let turn = |Change { key, old, new }| Change { key, old: new, new: old };
    changes.into_iter().map(turn).collect()
}

/// The one set of changes that does what `first` and then `second` do, in key order; what cancels out is left out.
/// Each has one change a key.
#[must_use]
pub fn compose(first: Vec<Change>, second: Vec<Change>) -> Vec<Change> {
    let by_key = |change: Change| (change.key.clone(), change);
    let mut net: BTreeMap<Key, Change> = first.into_iter().map(by_key).collect();
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

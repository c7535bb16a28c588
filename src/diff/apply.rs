//! Applying and inverting changes.

use super::ClaimMap;
use crate::model::EntryChange;

/// Applies changes to the old state, giving the new one. Does not check the old values.
pub fn apply(state: &mut ClaimMap, changes: &[EntryChange]) {
    for change in changes {
        match &change.new {
            Some(entry) => state.insert(change.key.clone(), entry.clone()),
            None => state.remove(&change.key),
        };
    }
}

/// Returns the inverse changes.
#[must_use]
pub fn invert(changes: Vec<EntryChange>) -> Vec<EntryChange> {
    let turn = |EntryChange { key, old, new }| EntryChange { key, old: new, new: old };
    changes.into_iter().map(turn).collect()
}

//! Three-way merge by entity and field.

use super::State;
use crate::model::{Entry, Key, Map, Value};
use serde::Serialize;
use std::collections::BTreeSet;

/// Whose value wins where both sides changed the same thing differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The state merged into.
    Ours,
    /// The state merged from.
    Theirs,
}

/// The same thing changed differently on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// The claim.
    pub key: Key,
    /// The field that both changed; `None` if it is the claim as a whole (removed here, changed there).
    pub field: Option<String>,
    /// What both began with: the field, or all fields of the claim; `None` if it was not there.
    pub base: Option<Value>,
    /// What stands in ours.
    pub ours: Option<Value>,
    /// What stands in theirs.
    pub theirs: Option<Value>,
}

/// What came of a merge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merge {
    /// The merged state; where there is a conflict, with the preferred side's value.
    pub state: State,
    /// What both sides changed differently, by key and field. Whether it can be stored is for the caller to decide.
    pub conflicts: Vec<Conflict>,
}

/// Merges what changed from `base` to `theirs` into `ours`.
///
/// What only one side changed is taken from it; what both changed alike is taken once. Of a claim that both changed
/// (or both added) every field at the top is merged for itself. A claim that one side removed and the other changed is
/// a conflict as a whole. Conflicts are reported and `prefer` decides what stands in the state.
///
/// Laws (tested): merging a state with itself or with the base changes nothing; swapping the sides and the preference
/// gives the same state, and the same conflicts with sides swapped; every change of either side is in the merged state
/// or in a conflict.
#[must_use]
pub fn merge3(base: &State, ours: &State, theirs: &State, prefer: Side) -> Merge {
    let mut merge = Merge::default();
    let keys: BTreeSet<&Key> = base.keys().chain(ours.keys()).chain(theirs.keys()).collect();
    for key in keys {
        let sides = (base.get(key), ours.get(key), theirs.get(key));
        if let Some(entry) = entry(key, sides, prefer, &mut merge.conflicts) {
            merge.state.insert(key.clone(), entry);
        }
    }
    merge
}

type Sides<'a, T> = (Option<&'a T>, Option<&'a T>, Option<&'a T>);

/// The side to take where the two do not disagree; `None` if they do.
fn agreed<'a, T: PartialEq>((base, ours, theirs): Sides<'a, T>) -> Option<Option<&'a T>> {
    if theirs == base || theirs == ours {
        Some(ours)
    } else if ours == base {
        Some(theirs)
    } else {
        None
    }
}

fn entry(
    key: &Key,
    sides: Sides<'_, Entry>,
    prefer: Side,
    conflicts: &mut Vec<Conflict>,
) -> Option<Entry> {
    if let Some(entry) = agreed(sides) {
        return entry.cloned();
    }
    let (base, ours, theirs) = sides;
    let map = |entry: Option<&Entry>| entry.and_then(|entry| entry.value.as_map().cloned());
    let (Some(our), Some(their), Some(our_map), Some(their_map)) =
        (ours, theirs, map(ours), map(theirs))
    else {
        let value = |entry: Option<&Entry>| entry.map(|entry| entry.value.clone());
        conflicts.push(Conflict {
            key: key.clone(),
            field: None,
            base: value(base),
            ours: value(ours),
            theirs: value(theirs),
        });
        return pick(prefer, ours, theirs).cloned();
    };
    let base_map = map(base).unwrap_or_default();
    let names: BTreeSet<&String> =
        base_map.keys().chain(our_map.keys()).chain(their_map.keys()).collect();
    let mut merged = Map::new();
    for name in names {
        let sides = (base_map.get(name), our_map.get(name), their_map.get(name));
        let field = agreed(sides).unwrap_or_else(|| {
            let (base, ours, theirs) = sides;
            conflicts.push(Conflict {
                key: key.clone(),
                field: Some(name.clone()),
                base: base.cloned(),
                ours: ours.cloned(),
                theirs: theirs.cloned(),
            });
            pick(prefer, ours, theirs)
        });
        if let Some(field) = field {
            merged.insert(name.clone(), field.clone());
        }
    }
    let times = (base.map(|base| &base.added_at), Some(&our.added_at), Some(&their.added_at));
    // Added on both sides, the claim was first there at the earlier time.
    let earlier = our.added_at.min(their.added_at);
    let added_at = agreed(times).flatten().copied().unwrap_or(earlier);
    Some(Entry { added_at, value: Value::Map(merged) })
}

fn pick<'a, T>(prefer: Side, ours: Option<&'a T>, theirs: Option<&'a T>) -> Option<&'a T> {
    match prefer {
        Side::Ours => ours,
        Side::Theirs => theirs,
    }
}

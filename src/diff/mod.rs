//! Differences between two states: computes, applies, inverts, composes, describes and merges them.
//! All functions are pure.
//!
//! Laws (tested): `apply(a, compare(a, b))` is `b`; `apply(b, invert(compare(a, b)))` is `a`;
//! `compose(compare(a, b), compare(b, c))` is `compare(a, c)`; `compare(a, a)` is empty.

mod apply;
mod compare;
mod describe;
mod merge;
mod summary;
#[cfg(test)]
mod tests;

pub use apply::{ChangeMismatch, apply, check_old_values, compose, invert};
pub use compare::{KeyDifference, compare, differences};
pub use describe::{ChangeKind, TypedChange, describe, describe_facts};
pub use merge::{
    AncestorState, ClaimConflict, ConflictResolution, MergeOutcome, MergeSide, dangling, merge_by,
    merge3,
};
pub use summary::summary;

use crate::model::{ClaimEntry, Key};
use std::collections::BTreeMap;

/// The claims of a state.
pub type ClaimMap = BTreeMap<Key, ClaimEntry>;

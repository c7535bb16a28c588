//! Differences between two states: computes, applies, inverts, describes and merges them. Compares
//! texts line by line. All functions are pure.
//!
//! Laws (tested): `apply(a, compare(a, b))` is `b`; `apply(b, invert(compare(a, b)))` is `a`;
//! `compare(a, a)` is empty.

mod apply;
mod compare;
mod describe;
mod lines;
mod merge;
mod summary;
#[cfg(test)]
mod tests;

pub use apply::{apply, invert};
pub use compare::{KeyDifference, compare, differences};
pub use describe::{ChangeKind, TypedChange, describe, describe_facts};
pub use lines::{LineChange, compare_lines};
pub use merge::{
    AncestorState, ClaimConflict, ConflictResolution, MergeOutcome, MergeSide, dangling, merge_by,
};
pub use summary::summary;

use crate::model::{ClaimEntry, Key};
use std::collections::BTreeMap;

/// The claims of a state.
pub type ClaimMap = BTreeMap<Key, ClaimEntry>;

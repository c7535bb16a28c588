//! What differs between two states: compared, applied, turned round, put into words, merged. Pure.
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

pub use apply::{Mismatch, apply, compose, fits, invert};
pub use compare::{Difference, compare, differences};
pub use describe::{TypedChange, What, describe, describe_facts};
pub use merge::{Ancestor, Conflict, Merge, Settled, Side, dangling, merge_by, merge3};
pub use summary::summary;

use crate::model::{Entry, Key};
use std::collections::BTreeMap;

/// The claims of a state.
pub type State = BTreeMap<Key, Entry>;

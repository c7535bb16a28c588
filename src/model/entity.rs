//! Entities of a state and how they change.

use super::{Kind, Timestamp, Value};
use std::fmt;

/// What names an entity within a session: its kind and its id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// What it is.
    pub kind: Kind,
    /// Its id, chosen by whoever made it; unique within the kind.
    pub id: String,
}

impl Key {
    /// The key of the entity of this kind and id.
    pub fn new(kind: Kind, id: impl Into<String>) -> Self {
        Self { kind, id: id.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.kind, self.id)
    }
}

/// A claim as it stands in a state.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimEntry {
    /// The raw time of the revision that added it: its own time.
    pub added_at: Timestamp,
    /// Its fields.
    pub value: Value,
}

/// One claim's change from one state to another.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryChange {
    /// Which claim.
    pub key: Key,
    /// As it was; `None` if it was not there.
    pub old: Option<ClaimEntry>,
    /// As it is; `None` if it is gone.
    pub new: Option<ClaimEntry>,
}

//! Keys of entities, claims in a state, and changes of claims.

use super::{Kind, Timestamp, Value};
use serde::Serialize;
use std::fmt;

/// The key of an entity within a session: its kind and id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Key {
    /// The kind of the entity.
    pub kind: Kind,
    /// The id, chosen by the author; unique within the kind.
    pub id: String,
}

impl Key {
    /// Creates the key of the entity with this kind and id.
    pub fn new(kind: Kind, id: impl Into<String>) -> Self {
        Self { kind, id: id.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.kind, self.id)
    }
}

/// A claim in a state.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimEntry {
    /// The raw time of the revision that added the claim.
    pub added_at: Timestamp,
    /// The fields of the claim.
    pub value: Value,
}

/// The change of one claim from one state to another.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryChange {
    /// The key of the claim.
    pub key: Key,
    /// The old entry; `None` if the claim was added.
    pub old: Option<ClaimEntry>,
    /// The new entry; `None` if the claim was removed.
    pub new: Option<ClaimEntry>,
}

//! Branches.

use super::Value;
use serde::{Deserialize, Serialize};

/// A branch's number within its session, dense from 0, which is `main`; never leaves the store.
pub type BranchNumber = u32;

/// The name of a branch, unique within its session.
pub type BranchName = String;

/// What has become of a branch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum BranchStatus {
    /// Work goes on.
    #[default]
    Active,
    /// Its claims went into another branch.
    Merged,
    /// Given up.
    Abandoned,
    /// Kept, not worked on.
    Archived,
}

/// What a branch tries and how it went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BranchMetadata {
    /// The id of the hypothesis it tests.
    pub hypothesis: Option<String>,
    /// How it goes about it.
    pub approach: Option<String>,
    /// What would count as success.
    pub success_criteria: Vec<String>,
    /// What came of it.
    pub results: Vec<String>,
    /// Fields forge does not know.
    pub extra: Value,
}

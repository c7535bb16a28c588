//! Branches.

use super::Value;
use serde::{Deserialize, Serialize};

/// The number of a branch within its session, counted from 0 (`main`) without gaps. Commands and
/// output use names instead.
pub type BranchNumber = u32;

/// The name of a branch, unique within its session.
pub type BranchName = String;

/// The status of a branch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum BranchStatus {
    /// Work continues on it.
    #[default]
    Active,
    /// Its claims were merged into another branch.
    Merged,
    /// It was given up.
    Abandoned,
    /// It is kept, but not worked on.
    Archived,
}

impl BranchStatus {
    /// All states. Stored data name a status by its place here.
    pub const ALL: [Self; 4] = [Self::Active, Self::Merged, Self::Abandoned, Self::Archived];
}

/// The purpose of a branch and its outcome.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BranchMetadata {
    /// The id of the hypothesis it tests.
    pub hypothesis: Option<String>,
    /// The approach.
    pub approach: Option<String>,
    /// The criteria of success.
    pub success_criteria: Vec<String>,
    /// The outcome.
    pub results: Vec<String>,
    /// Fields that forge does not know.
    pub extra: Value,
}

//! The runs of checks over time.

use super::project_root::{ProjectRoot, shown_text};
use crate::model::claim::{FactText, VerificationResult, VerificationStatus};
use crate::model::{Fact, Timestamp};
use crate::store::{CheckTurn, check_label};

/// A run of a test, build or check.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckRun {
    /// The id of the verification.
    pub id: String,
    /// When it ended.
    pub at: Timestamp,
    /// The name of the check, with its targets.
    pub name: String,
    /// How it ended.
    pub status: VerificationStatus,
    /// Whether it is loud in the story: the first failure, a pass after a failure, or the first
    /// pass.
    pub is_loud: bool,
    /// A remark about it.
    pub description: Option<String>,
    /// The names of the checks that fail after this run, if it changed them.
    pub failing: Option<Vec<String>>,
}

impl CheckRun {
    pub(super) fn new(
        fact: &Fact,
        found: &VerificationResult,
        turn: CheckTurn,
        root: Option<&ProjectRoot>,
    ) -> Self {
        let description = found.description.as_ref().map(FactText::shown);
        Self {
            id: fact.id.clone(),
            at: fact.at,
            name: shown_text(root, &check_label(fact, found)).into_owned(),
            status: found.status.unwrap_or(VerificationStatus::Unknown),
            is_loud: turn.is_news(),
            description: description.map(|text| shown_text(root, &text).into_owned()),
            failing: None,
        }
    }
}

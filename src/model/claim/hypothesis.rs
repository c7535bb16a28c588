//! Hypotheses.

use super::field::{Confidence, record};
use super::vocabulary::vocabulary;

vocabulary! {
    /// What has become of a hypothesis.
    HypothesisStatus, "hypothesis status" {
        /// Thought possible.
        Active = "active",
        /// Being looked into.
        UnderTest = "under_test",
        /// Held to be the explanation.
        Confirmed = "confirmed",
        /// Held not to be it.
        Rejected = "rejected",
        /// Put aside undecided.
        Archived = "archived",
    }
}

record! {
    /// What might explain the problem.
    Hypothesis, Hypothesis {
        /// What it says.
        "description" => description: String,
        /// What has become of it; `active` when absent.
        "status" => status: HypothesisStatus,
        /// How probable it is held to be; counts as 0.5 when absent.
        "confidence" => confidence: Confidence,
        /// The id of the hypothesis it is a special case of.
        "parent" => parent: String,
        /// Words it is found by.
        "tags" => tags: Vec<String>,
        /// Why it has its status.
        "reason" => reason: String,
        /// Where it comes from.
        "source" => source: String,
    }
}

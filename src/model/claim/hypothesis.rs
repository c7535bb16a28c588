//! Hypotheses.

use super::field::{Confidence, record};
use super::vocabulary::vocabulary;

vocabulary! {
    /// The status of a hypothesis.
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
        /// Its status; `active` when absent.
        "status" => status: HypothesisStatus,
        /// How probable it is; counts as 0.5 when absent.
        "confidence" => confidence: Confidence,
        /// The id of the hypothesis it is a special case of.
        "parent" => parent: String,
        /// Words that find it.
        "tags" => tags: Vec<String>,
        /// Why it has its status.
        "reason" => reason: String,
        /// Where it comes from.
        "source" => source: String,
    }
}

//! Beliefs.

use super::field::{Confidence, record};
use super::vocabulary::vocabulary;

vocabulary! {
    /// What kind of thing is believed.
    BeliefKind, "belief kind" {
        /// Something that was seen or shown.
        Fact = "fact",
        /// Something taken to be so.
        Assumption = "assumption",
        /// Something that follows from other beliefs or evidence.
        Inference = "inference",
        /// Something that must hold, by contract or specification.
        Invariant = "invariant",
        /// Something that was decided.
        Decision = "decision",
        /// What should happen.
        Prediction = "prediction",
        /// None of these.
        Other = "other",
    }
}

record! {
    /// What is held to be true.
    Belief, Belief {
        /// What it says.
        "description" => description: String,
        /// What kind of thing is believed.
        "kind" => kind: BeliefKind,
        /// How probable it is.
        "confidence" => confidence: Confidence,
        /// Where it comes from: any text; the id of a hypothesis or of evidence makes it rest on
        /// that.
        "source" => source: String,
        /// The id of the hypothesis it rests on.
        "hypothesis" => hypothesis: String,
        /// The ids of the evidence it rests on.
        "evidence" => evidence: Vec<String>,
        /// Whether something that it rests on was rejected or contradicted.
        "in_doubt" => in_doubt: bool,
        /// Why it is in doubt.
        "doubt_reason" => doubt_reason: String,
    }
}

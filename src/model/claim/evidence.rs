//! Evidence.

use super::field::{Strength, record};
use super::vocabulary::vocabulary;

vocabulary! {
    /// How evidence was obtained.
    EvidenceKind, "evidence kind" {
        /// It was seen to happen.
        Observation = "observation",
        /// A number was taken.
        Measurement = "measurement",
        /// A test, build or check said so.
        Test = "test",
        /// An experiment made for the purpose.
        Experiment = "experiment",
        /// The source code says so.
        CodeReading = "code_reading",
        /// A log or trace says so.
        Log = "log",
        /// A manual, a specification or a report says so.
        Documentation = "documentation",
        /// A person who should know said so.
        Testimony = "testimony",
        /// It follows from something else.
        Reasoning = "reasoning",
        /// None of these.
        Other = "other",
    }
}

record! {
    /// What speaks for or against a hypothesis.
    Evidence, Evidence {
        /// The id of the hypothesis it is about.
        "hypothesis" => hypothesis: String,
        /// How it was obtained.
        "kind" => kind: EvidenceKind,
        /// How strongly it speaks for (up to 1) or against (down to -1) the hypothesis; counts as 0
        /// when absent.
        "strength" => strength: Strength,
        /// Where it can be found.
        "source" => source: String,
        /// What it says.
        "description" => description: String,
    }
}

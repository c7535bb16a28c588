//! Gaps in what is known.

use super::field::{FieldShape, FieldValue, record};
use super::vocabulary::vocabulary;
use crate::model::Value;

vocabulary! {
    /// What sort of knowledge is missing.
    GapType, "gap type" {
        /// A person or a document knows it.
        MissingInformation = "missing_information",
        /// Something assumed and not checked.
        UntestedAssumption = "untested_assumption",
        /// Two sources say different things.
        ContradictoryInformation = "contradictory_information",
        /// It happens, and the cause is not known.
        UnknownCause = "unknown_cause",
        /// Numbers, logs or inputs that were never taken.
        MissingData = "missing_data",
        /// It was seen, and cannot be made to happen again.
        Unreproduced = "unreproduced",
        /// None of these.
        Other = "other",
    }
}

vocabulary! {
    /// How much depends on a gap.
    Criticality, "gap criticality" {
        /// Good to know.
        Low = "low",
        /// Worth the effort.
        Medium = "medium",
        /// The effort may fail without it.
        High = "high",
        /// No progress is possible without it.
        Critical = "critical",
    }
}

vocabulary! {
    /// The status of a gap.
    GapStatus, "gap status" {
        /// It is not being worked on.
        Open = "open",
        /// It is being worked on.
        Filling = "filling",
        /// It is known now.
        Filled = "filled",
        /// It cannot be known.
        Unfillable = "unfillable",
        /// It no longer matters.
        Obsolete = "obsolete",
    }
}

impl GapStatus {
    /// Returns whether the gap is still to be filled.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::Filling)
    }
}

vocabulary! {
    /// How a gap might be filled.
    FillStrategy, "gap fill strategy" {
        /// Run a test, build or check.
        RunTest = "run_test",
        /// Read the code.
        ReadCode = "read_code",
        /// Read what is written about it.
        ReadDocumentation = "read_documentation",
        /// Look for it elsewhere.
        Search = "search",
        /// Take a number.
        Measure = "measure",
        /// Make the program say more: logs, traces, assertions.
        Instrument = "instrument",
        /// Make it happen again.
        Reproduce = "reproduce",
        /// Change something and see.
        Experiment = "experiment",
        /// Narrow down the change that brought it.
        Bisect = "bisect",
        /// Ask a person.
        Ask = "ask",
        /// Think.
        Reason = "reason",
        /// None of these.
        Other = "other",
    }
}

vocabulary! {
    /// How much work filling a gap takes.
    Effort, "gap effort" {
        /// Minutes.
        Trivial = "trivial",
        /// An hour.
        Small = "small",
        /// Half a day.
        Medium = "medium",
        /// Days.
        Large = "large",
        /// It is not known.
        Unknown = "unknown",
    }
}

/// What a gap blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GapBlocking {
    /// Everything, or nothing.
    All(bool),
    /// The hypotheses with these ids.
    Hypotheses(Vec<String>),
}

impl GapBlocking {
    /// Returns whether the gap blocks anything.
    #[must_use]
    pub const fn blocks(&self) -> bool {
        match self {
            Self::All(blocks) => *blocks,
            Self::Hypotheses(ids) => !ids.is_empty(),
        }
    }
}

impl FieldValue for GapBlocking {
    const SHAPE: FieldShape = FieldShape::Texts;

    fn read(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(blocks) => Some(Self::All(*blocks)),
            other => Vec::read(other).map(Self::Hypotheses),
        }
    }

    fn write(&self) -> Value {
        match self {
            Self::All(blocks) => (*blocks).into(),
            Self::Hypotheses(ids) => ids.write(),
        }
    }

    fn allowed() -> String {
        "true, false or a list of hypothesis ids".to_owned()
    }
}

record! {
    /// What is not known and should be.
    Gap, Gap {
        /// What is not known.
        "description" => description: String,
        /// What is missing.
        "type" => gap_type: GapType,
        /// How much depends on it; `medium` when absent.
        "criticality" => criticality: Criticality,
        /// Its status; `open` when absent.
        "status" => status: GapStatus,
        /// What it blocks: everything (true), nothing (false), or the hypotheses with these ids.
        "blocking" => blocking: GapBlocking,
        /// How it might be filled.
        "fill_strategy" => fill_strategy: FillStrategy,
        /// How much work that takes.
        "effort" => effort: Effort,
        /// What filled it, or why nothing can.
        "resolution" => resolution: String,
    }
}

impl Gap {
    /// Returns whether the gap is still to be filled. A gap without a status is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.status.is_none_or(GapStatus::is_open)
    }
}

//! Claims and facts with their fields: typed records, and the checks a value passes before it is stored.
//!
//! A kind has known fields, all of which may be absent, and any others, which survive untouched. A field that is
//! known of one kind is unknown of another (`tags` of a note). Nothing here decides what follows from a claim:
//! that is [`rule`](super::rule).

mod belief;
mod check;
mod code;
mod command;
mod conversation;
mod dependency;
mod evidence;
mod field;
mod gap;
mod hypothesis;
mod measurement;
mod metrics;
mod note;
mod reference;
mod task;
#[cfg(test)]
mod tests;
mod verification;
mod word;

pub use belief::{Belief, BeliefKind};
pub use check::{
    InvalidField, InvalidId, MAX_DEPTH, MAX_ID_BYTES, check, check_id, fields, is_checked,
};
pub use code::CodeState;
pub use command::{CommandOutcome, ExecutedCommand};
pub use conversation::{Agent, Inference, Message, Notice, Prompt, ToolOutcome, ToolUse};
pub use dependency::{Dependency, DependencyType};
pub use evidence::{Evidence, EvidenceKind};
pub use field::{Confidence, Field, Scalar, Shape, Strength, Text};
pub use gap::{Blocking, Criticality, Effort, FillStrategy, Gap, GapStatus, GapType};
pub use hypothesis::{Hypothesis, HypothesisStatus};
pub use measurement::Measurement;
pub use metrics::{IDLE_AFTER, SessionMetrics, time_in_debugging};
pub use note::Note;
pub use reference::references;
pub use task::Task;
pub use verification::{VerificationResult, VerificationStatus};
pub(crate) use word::words;
pub use word::{UnknownWord, Vocabulary, Word};

/// Every list of words that a field is checked against.
pub const VOCABULARIES: &[Vocabulary] = &[
    Vocabulary::of::<HypothesisStatus>(),
    Vocabulary::of::<EvidenceKind>(),
    Vocabulary::of::<BeliefKind>(),
    Vocabulary::of::<DependencyType>(),
    Vocabulary::of::<GapType>(),
    Vocabulary::of::<Criticality>(),
    Vocabulary::of::<GapStatus>(),
    Vocabulary::of::<FillStrategy>(),
    Vocabulary::of::<Effort>(),
    Vocabulary::of::<VerificationStatus>(),
    Vocabulary::of::<CommandOutcome>(),
    Vocabulary::of::<ToolOutcome>(),
];

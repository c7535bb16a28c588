//! Claims and facts with their fields: typed records, and the validation before a value is stored.
//!
//! A kind has known fields. Any of them may be absent, and an entity may have other fields, which
//! are preserved. A field known for one kind may be unknown for another: `tags` is a field of a
//! prompt, but not of a note. The consequences of changing claims are in [`rule`](super::rule).

mod belief;
mod code;
mod command;
mod conversation;
mod dependency;
mod evidence;
mod field;
mod gap;
mod hypothesis;
mod invalid_field;
mod measurement;
mod metrics;
mod note;
mod reference;
mod task;
#[cfg(test)]
mod tests;
mod validate;
mod verification;
mod vocabulary;

pub use belief::{Belief, BeliefKind};
pub use code::CodeState;
pub use command::{CommandOutcome, ExecutedCommand};
pub use conversation::{Agent, Inference, Message, Notice, Prompt, ToolOutcome, ToolUse};
pub use dependency::{Dependency, DependencyType};
pub use evidence::{Evidence, EvidenceKind};
pub use field::{
    Confidence, FactText, FieldDefinition, FieldShape, FieldValue, MeasuredValue, Strength,
    TypedRecord,
};
pub use gap::{Criticality, Effort, FillStrategy, Gap, GapBlocking, GapStatus, GapType};
pub use hypothesis::{Hypothesis, HypothesisStatus};
pub use invalid_field::InvalidField;
pub use measurement::Measurement;
pub use metrics::{IDLE_AFTER, SessionMetrics, time_in_debugging};
pub use note::Note;
pub use reference::{referenced_kind, references};
pub use task::Task;
pub use validate::{InvalidId, MAX_DEPTH, MAX_ID_BYTES, check, check_id, fields, is_checked};
pub use verification::{VerificationResult, VerificationStatus};
#[doc(hidden)]
pub use vocabulary::serde_of_vocabulary;
pub(crate) use vocabulary::vocabulary;
pub use vocabulary::{FieldVocabulary, UnknownWord, VocabularyWord};

/// All vocabularies of fields.
pub const VOCABULARIES: &[FieldVocabulary] = &[
    FieldVocabulary::of::<HypothesisStatus>(),
    FieldVocabulary::of::<EvidenceKind>(),
    FieldVocabulary::of::<BeliefKind>(),
    FieldVocabulary::of::<DependencyType>(),
    FieldVocabulary::of::<GapType>(),
    FieldVocabulary::of::<Criticality>(),
    FieldVocabulary::of::<GapStatus>(),
    FieldVocabulary::of::<FillStrategy>(),
    FieldVocabulary::of::<Effort>(),
    FieldVocabulary::of::<VerificationStatus>(),
    FieldVocabulary::of::<CommandOutcome>(),
    FieldVocabulary::of::<ToolOutcome>(),
];

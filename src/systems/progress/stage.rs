//! Stages of pipelines, and presets of them.

use super::frequency::Frequency;

/// One stage of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its name.
    pub name: &'static str,
    /// What happens in it.
    pub about: &'static str,
    /// How often its progress is worth saving.
    pub frequency: Frequency,
}

/// Named stages in the order in which a pipeline goes through them. A pipeline may have others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// What pipelines it is for.
    pub about: &'static str,
    /// The stages.
    pub stages: &'static [Stage],
}

const fn stage(name: &'static str, about: &'static str, frequency: Frequency) -> Stage {
    Stage { name, about, frequency }
}

/// The stages of a systematic literature review.
pub const SLR: Preset = Preset {
    name: "slr",
    about: "a systematic literature review",
    stages: &[
        stage("protocol_setup", "the question and the protocol are defined", Frequency::PerItem),
        stage("searching", "databases are searched", Frequency::PerBatch(500)),
        stage("deduplication", "what was found twice is merged", Frequency::PerBatch(100)),
        stage("screening_ta", "titles and abstracts are screened", Frequency::PerBatch(100)),
        stage("fulltext_retrieval", "full texts are fetched", Frequency::PerBatch(20)),
        stage("screening_ft", "full texts are screened", Frequency::PerItem),
        stage("extraction", "data are extracted", Frequency::PerItem),
        stage("rob_assessment", "the risk of bias is assessed", Frequency::PerItem),
        stage("synthesis", "studies are put together", Frequency::Interval(300_000_000)),
        stage("prisma_generation", "the flow diagram and the report are made", Frequency::PerItem),
        stage("human_review", "a person is waited for", Frequency::Paused),
    ],
};

/// All presets.
pub const PRESETS: &[Preset] = &[SLR];

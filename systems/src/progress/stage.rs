//! The stages of pipelines, and presets of them.

use super::frequency::SaveFrequency;

/// A stage of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelineStage {
    /// The name of the stage.
    pub name: &'static str,
    /// What happens in the stage.
    pub about: &'static str,
    /// How often progress should be saved in this stage.
    pub frequency: SaveFrequency,
}

/// Named stages in pipeline order. A pipeline may have others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelinePreset {
    /// The name of the preset.
    pub name: &'static str,
    /// The kind of pipeline that the preset is for.
    pub about: &'static str,
    /// The stages in order.
    pub stages: &'static [PipelineStage],
}

const fn stage(name: &'static str, about: &'static str, frequency: SaveFrequency) -> PipelineStage {
    PipelineStage { name, about, frequency }
}

/// The stages of a systematic literature review.
pub const SLR: PipelinePreset = PipelinePreset {
    name: "slr",
    about: "a systematic literature review",
    stages: &[
        stage(
            "protocol_setup",
            "the question and the protocol are defined",
            SaveFrequency::PerItem,
        ),
        stage("searching", "databases are searched", SaveFrequency::PerBatch(500)),
        stage("deduplication", "what was found twice is merged", SaveFrequency::PerBatch(100)),
        stage("screening_ta", "titles and abstracts are screened", SaveFrequency::PerBatch(100)),
        stage("fulltext_retrieval", "full texts are fetched", SaveFrequency::PerBatch(20)),
        stage("screening_ft", "full texts are screened", SaveFrequency::PerItem),
        stage("extraction", "data are extracted", SaveFrequency::PerItem),
        stage("rob_assessment", "the risk of bias is assessed", SaveFrequency::PerItem),
        stage("synthesis", "studies are put together", SaveFrequency::Interval(300_000_000)),
        stage(
            "prisma_generation",
            "the flow diagram and the report are made",
            SaveFrequency::PerItem,
        ),
        stage("human_review", "a person is waited for", SaveFrequency::Paused),
    ],
};

/// All presets.
pub const PRESETS: &[PipelinePreset] = &[SLR];

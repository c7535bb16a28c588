//! The tool `record_gap`: what the agent does not know.

use super::super::{McpTool, ToolEffect, ToolReply};
use super::{
    WrittenAnswer, given_arguments, record_claim, refuse_arguments, required_text, run_write, word,
};
use crate::commands::gap::GapFillArgs;
use crate::error::CommandError;
use crate::mcp::request::McpRequest;
use crate::mcp::schema::VocabularyTerm;
use forge_store::model::claim::{Criticality, Effort, FillStrategy, Gap, GapStatus, GapType};
use schemars::JsonSchema;
use serde::Deserialize;

/// Arguments of `record_gap`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct GapArguments {
    /// The id of an existing gap; omit it to add a new one.
    id: Option<String>,
    /// What is not known and should be.
    description: Option<String>,
    /// How much depends on it.
    criticality: Option<VocabularyTerm<Criticality>>,
    /// What kind of gap it is.
    #[serde(rename = "type")]
    gap_type: Option<VocabularyTerm<GapType>>,
    /// The ids of the hypotheses that it blocks, or 'all' or 'none' alone.
    #[serde(default)]
    blocking: Vec<String>,
    /// How it could be filled.
    fill_strategy: Option<VocabularyTerm<FillStrategy>>,
    /// How much work that is.
    effort: Option<VocabularyTerm<Effort>>,
    /// Its status. 'filled' needs 'resolution'.
    status: Option<VocabularyTerm<GapStatus>>,
    /// What was found out; of a gap that is unfillable or obsolete, why.
    resolution: Option<String>,
    /// The session to record it in, by name or id.
    #[expect(dead_code, reason = "'begin' reads it; the schema has it")]
    session: Option<String>,
}

impl McpTool for GapArguments {
    const NAME: &'static str = "record_gap";
    const TITLE: &'static str = "Record an open question";
    const ABOUT: &'static str = "Record what you do not know and need to find out or ask; later fill it by its id, with \
        the status 'filled' and what was found out. Durable when it returns.";
    const EFFECT: ToolEffect = ToolEffect::Adds;
    type Found = WrittenAnswer;

    fn run(&self, request: &mut McpRequest) -> Result<ToolReply<WrittenAnswer>, CommandError> {
        let mut given = given_arguments([
            ("description", self.description.clone().into()),
            ("type", word(self.gap_type)),
            ("criticality", word(self.criticality)),
            ("blocking", self.blocking.clone().into()),
            ("fill_strategy", word(self.fill_strategy)),
            ("effort", word(self.effort)),
            ("status", word(self.status)),
            ("resolution", self.resolution.clone().into()),
        ]);
        let status = self.status.map(|VocabularyTerm(status)| status);
        if let (Some(GapStatus::Filled), Some(id)) = (status, self.id.clone()) {
            refuse_arguments("filling a gap", &given, &["status", "resolution"])?;
            let resolution = required_text("resolution", self.resolution.as_deref())?;
            return run_write(request, "gap", &GapFillArgs { id, resolution });
        }
        if status == Some(GapStatus::Open) && self.id.is_none() {
            given.remove("status");
        }
        record_claim::<Gap>(request, self.id.clone(), given)
    }
}

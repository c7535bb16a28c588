//! The tool `record_gap`: what the agent does not know.

use super::super::{McpClient, McpTool, ToolEffect, ToolReply};
use super::{WrittenAnswer, refuse_arguments, required_text, run_write};
use crate::commands::gap::{GapAddArgs, GapFieldArgs, GapFillArgs, GapUpdateArgs};
use crate::error::CommandError;
use crate::mcp::request::McpRequest;
use crate::mcp::schema::VocabularyTerm;
use forge_store::model::claim::{Criticality, Effort, FillStrategy, GapStatus, GapType};
use schemars::JsonSchema;
use serde::Deserialize;

/// `record_gap`.
pub(in crate::mcp) struct GapTool;

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
    session: Option<String>,
}

impl McpTool for GapTool {
    const NAME: &'static str = "record_gap";
    const TITLE: &'static str = "Record an open question";
    const ABOUT: &'static str = "Record what you do not know and need to find out or ask; later fill it by its id with \
        what was found out. Durable when it returns.";
    const EFFECT: ToolEffect = ToolEffect::Adds;
    type Arguments = GapArguments;
    type Found = WrittenAnswer;

    fn session(arguments: &GapArguments) -> Option<&str> {
        arguments.session.as_deref()
    }

    fn run(
        given: &GapArguments,
        request: &mut McpRequest,
        _: &McpClient,
    ) -> Result<ToolReply<WrittenAnswer>, CommandError> {
        let fields = GapFieldArgs {
            gap_type: given.gap_type.map(|VocabularyTerm(word)| word),
            criticality: given.criticality.map(|VocabularyTerm(word)| word),
            blocking: given.blocking.clone(),
            fill_strategy: given.fill_strategy.map(|VocabularyTerm(word)| word),
            effort: given.effort.map(|VocabularyTerm(word)| word),
        };
        let status = given.status.map(|VocabularyTerm(status)| status);
        let Some(id) = given.id.clone() else {
            refuse_arguments(
                "a new gap",
                &[
                    ("status", status.is_some_and(|status| status != GapStatus::Open)),
                    ("resolution", given.resolution.is_some()),
                ],
            )?;
            let description = required_text("description", given.description.as_ref())?;
            return run_write(request, "gap", &GapAddArgs { description, id: None, fields });
        };
        if status == Some(GapStatus::Filled) {
            refuse_arguments(
                "filling a gap",
                &[
                    ("description", given.description.is_some()),
                    ("criticality", fields.criticality.is_some()),
                    ("type", fields.gap_type.is_some()),
                    ("blocking", !fields.blocking.is_empty()),
                    ("fill_strategy", fields.fill_strategy.is_some()),
                    ("effort", fields.effort.is_some()),
                ],
            )?;
            let resolution = required_text("resolution", given.resolution.as_ref())?;
            return run_write(request, "gap", &GapFillArgs { id, resolution });
        }
        let (description, resolution) = (given.description.clone(), given.resolution.clone());
        run_write(request, "gap", &GapUpdateArgs { id, description, status, resolution, fields })
    }
}

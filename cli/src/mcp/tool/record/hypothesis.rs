//! The tool `record_hypothesis`: what the agent considers possible.

use super::super::{McpClient, McpTool, ToolEffect, ToolReply};
use super::{WrittenAnswer, names, refuse_arguments, required_text, run_write, share};
use crate::commands::hypothesis::{HypothesisAddArgs, HypothesisSettleArgs, HypothesisUpdateArgs};
use crate::error::CommandError;
use crate::mcp::request::McpRequest;
use crate::mcp::schema::VocabularyTerm;
use forge_store::model::claim::HypothesisStatus;
use schemars::JsonSchema;
use serde::Deserialize;

/// `record_hypothesis`.
pub(in crate::mcp) struct HypothesisTool;

/// Arguments of `record_hypothesis`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct HypothesisArguments {
    /// The id of an existing hypothesis; omit it to add a new one.
    id: Option<String>,
    /// What might explain the problem.
    description: Option<String>,
    /// How likely it is.
    #[schemars(range(min = 0, max = 1))]
    confidence: Option<f64>,
    /// Status of the work on it. 'confirmed' and 'rejected' settle an existing one, with all consequences.
    status: Option<VocabularyTerm<HypothesisStatus>>,
    /// Why it is confirmed or rejected.
    reason: Option<String>,
    /// The id of the hypothesis that it is a part of.
    parent: Option<String>,
    /// Where it comes from: a file and line, a command, a document.
    source: Option<String>,
    /// Its tags.
    #[serde(default)]
    tags: Vec<String>,
    /// The session to record it in, by name or id.
    session: Option<String>,
}

impl McpTool for HypothesisTool {
    const NAME: &'static str = "record_hypothesis";
    const TITLE: &'static str = "Record a hypothesis";
    const ABOUT: &'static str = "Record what you believe might explain the problem, as soon as you believe it; later \
        change it by its id, and confirm or reject it when it is settled, with the reason. Rejecting one rejects its \
        parts. Durable when it returns.";
    const EFFECT: ToolEffect = ToolEffect::Adds;
    type Arguments = HypothesisArguments;
    type Found = WrittenAnswer;

    fn session(arguments: &HypothesisArguments) -> Option<&str> {
        arguments.session.as_deref()
    }

    fn run(
        given: &HypothesisArguments,
        request: &mut McpRequest,
        _: &McpClient,
    ) -> Result<ToolReply<WrittenAnswer>, CommandError> {
        let settles = given.status.map(|VocabularyTerm(status)| status).filter(|status| {
            matches!(status, HypothesisStatus::Confirmed | HypothesisStatus::Rejected)
        });
        let confidence = given.confidence.map(share).transpose()?;
        let status = given.status.map(|VocabularyTerm(status)| status);
        let tags = names("tags", &given.tags)?;
        if settles.is_none() && given.reason.is_some() {
            return Err(CommandError::invalid("'reason' says why a hypothesis is settled")
                .hinted("give it with 'status' confirmed or rejected"));
        }
        let Some(id) = given.id.clone() else {
            if settles.is_some() {
                return Err(CommandError::invalid("a new hypothesis is not settled yet")
                    .hinted("state it first, then settle it by its 'id'"));
            }
            let add = HypothesisAddArgs {
                description: required_text("description", given.description.as_ref())?,
                id: None,
                confidence,
                status,
                parent: given.parent.clone(),
                source: given.source.clone(),
                tags,
            };
            return run_write(request, "hypothesis", &add);
        };
        refuse_arguments("a hypothesis that is there", &[("source", given.source.is_some())])?;
        if let Some(status) = settles {
            refuse_arguments(
                "settling a hypothesis",
                &[
                    ("description", given.description.is_some()),
                    ("confidence", confidence.is_some()),
                    ("parent", given.parent.is_some()),
                    ("tags", !tags.is_empty()),
                ],
            )?;
            let reason = given.reason.clone();
            return match status {
                HypothesisStatus::Confirmed => {
                    run_write(request, "hypothesis", &HypothesisSettleArgs::<true> { id, reason })
                }
                _ => {
                    run_write(request, "hypothesis", &HypothesisSettleArgs::<false> { id, reason })
                }
            };
        }
        let update = HypothesisUpdateArgs {
            id,
            description: given.description.clone(),
            confidence,
            status,
            parent: given.parent.clone(),
            add_tags: tags,
            remove_tags: Vec::new(),
        };
        run_write(request, "hypothesis", &update)
    }
}

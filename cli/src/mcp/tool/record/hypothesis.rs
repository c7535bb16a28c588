//! The tool `record_hypothesis`: what the agent considers possible.

use super::super::{McpTool, ToolEffect, ToolReply, parse_argument};
use super::{
    WrittenAnswer, check_number, given_arguments, record_claim, refuse_arguments, rename_argument,
    run_write, word,
};
use crate::args::value::NameArg;
use crate::commands::hypothesis::HypothesisSettleArgs;
use crate::error::CommandError;
use crate::mcp::request::McpRequest;
use crate::mcp::schema::VocabularyTerm;
use forge_store::model::claim::{Hypothesis, HypothesisStatus};
use schemars::JsonSchema;
use serde::Deserialize;

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
    /// Status of the work on it. 'confirmed' and 'rejected' settle an existing one, with all
    /// consequences.
    status: Option<VocabularyTerm<HypothesisStatus>>,
    /// Why it is confirmed or rejected.
    reason: Option<String>,
    /// The id of the hypothesis that it is a special case of.
    parent: Option<String>,
    /// Where it comes from: a file and line, a command, a document.
    source: Option<String>,
    /// Its tags.
    #[serde(default)]
    tags: Vec<String>,
    /// The session to record it in, by name or id.
    #[expect(dead_code, reason = "'begin' reads it; the schema has it")]
    session: Option<String>,
}

impl McpTool for HypothesisArguments {
    const NAME: &'static str = "record_hypothesis";
    const TITLE: &'static str = "Record a hypothesis";
    const ABOUT: &'static str = "Record what you believe might explain the problem, as soon as you believe it; later \
        change it by its id, and confirm or reject it when it is settled, with the reason. Rejecting one rejects its \
        parts. Durable when it returns.";
    const EFFECT: ToolEffect = ToolEffect::Adds;
    type Found = WrittenAnswer;

    fn run(&self, request: &mut McpRequest) -> Result<ToolReply<WrittenAnswer>, CommandError> {
        check_number("confidence", self.confidence, 0.0)?;
        for tag in &self.tags {
            parse_argument::<NameArg>("tags", tag)?;
        }
        let mut given = given_arguments([
            ("description", self.description.clone().into()),
            ("confidence", self.confidence.into()),
            ("status", word(self.status)),
            ("reason", self.reason.clone().into()),
            ("parent", self.parent.clone().into()),
            ("source", self.source.clone().into()),
            ("tags", self.tags.clone().into()),
        ]);
        let (id, reason) = (self.id.clone(), self.reason.clone());
        let confirms = match self.status {
            Some(VocabularyTerm(HypothesisStatus::Confirmed)) => Some(true),
            Some(VocabularyTerm(HypothesisStatus::Rejected)) => Some(false),
            _ => None,
        };
        match (confirms, id) {
            (None, _) if reason.is_some() => {
                Err(CommandError::invalid("'reason' says why a hypothesis is settled")
                    .hinted("give it with 'status' confirmed or rejected"))
            }
            (None, id) => {
                if id.is_some() {
                    rename_argument(&mut given, "tags", "add_tags");
                }
                record_claim::<Hypothesis>(request, id, given)
            }
            (Some(_), None) => Err(CommandError::invalid("a new hypothesis is not settled yet")
                .hinted("state it first, then settle it by its 'id'")),
            (Some(confirms), Some(id)) => {
                refuse_arguments("settling a hypothesis", &given, &["status", "reason"])?;
                if confirms {
                    let confirm = HypothesisSettleArgs::<true> { id, reason };
                    run_write(request, "hypothesis", &confirm)
                } else {
                    let reject = HypothesisSettleArgs::<false> { id, reason };
                    run_write(request, "hypothesis", &reject)
                }
            }
        }
    }
}

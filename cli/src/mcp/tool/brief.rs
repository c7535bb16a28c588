//! The tool `brief`: what an agent needs to continue, in one page.

use super::super::answer::{AnswerPlace, ToolAnswer, naming_tools};
use super::super::request::McpRequest;
use super::super::resource;
use super::{McpTool, ToolEffect, ToolReply, parse_optional};
use crate::commands::brief::BriefArgs;
use crate::error::CommandError;
use crate::report::brief::BriefLists;
use forge_store::model::Timestamp;
use forge_store::shell::quoted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The default size of a brief, in bytes.
const BUDGET_BYTES: usize = 4000;
/// The minimum size, in bytes.
const LEAST_BYTES: usize = 500;
/// The maximum size, in bytes.
const MOST_BYTES: usize = 12_000;

/// Arguments of `brief`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct BriefArguments {
    /// The moment: '2 hours ago', '#42', a tag, 'before last compaction'. Now if left out.
    at: Option<String>,
    /// About how many bytes of text to use.
    #[schemars(range(min = LEAST_BYTES, max = MOST_BYTES))]
    budget: Option<usize>,
    /// The session, by name or id.
    #[expect(dead_code, reason = "'begin' reads it; the schema has it")]
    session: Option<String>,
}

/// What an agent needs to go on.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::mcp) struct BriefAnswer {
    /// Where it comes from; the session is empty if none has been begun.
    #[serde(flatten)]
    place: AnswerPlace,
    /// The branch.
    branch: String,
    /// The time of the moment; null if nothing has happened yet.
    #[schemars(with = "Option<String>")]
    at: Option<Timestamp>,
    /// What is known, rejected and open.
    #[serde(flatten)]
    lists: BriefLists,
    /// Remarks.
    warnings: Vec<String>,
}

impl McpTool for BriefArguments {
    const NAME: &'static str = "brief";
    const TITLE: &'static str = "Brief";
    const ABOUT: &'static str = "Show on one page what is known, rejected and open: call it first in a session, after \
        a compaction, and whenever you are not sure what was tried already.";
    const EFFECT: ToolEffect = ToolEffect::Reads;
    type Found = BriefAnswer;

    fn run(&self, request: &mut McpRequest) -> Result<ToolReply<BriefAnswer>, CommandError> {
        let budget = Some(self.budget.unwrap_or(BUDGET_BYTES).clamp(LEAST_BYTES, MOST_BYTES));
        let at = parse_optional("at", self.at.as_ref())?;
        let mut brief = request.run(&BriefArgs { at, budget })?;
        let session = brief.session.unwrap_or_default();
        // The answer names the session.
        let forge = format!("forge --session {} ", quoted(&session));
        for step in &mut brief.lists.next {
            *step = naming_tools(&step.replace(&forge, "forge "));
        }
        let uri = (!session.is_empty()).then(|| resource::timeline(&session));
        let found = BriefAnswer {
            place: AnswerPlace { session, chosen_by: request.chosen_by },
            branch: brief.branch,
            at: brief.at,
            lists: brief.lists,
            warnings: request.take_warnings(),
        };
        let answer = ToolAnswer::new(found);
        Ok(match uri {
            Some(uri) => answer.linked(uri, "timeline").into(),
            None => answer.into(),
        })
    }
}

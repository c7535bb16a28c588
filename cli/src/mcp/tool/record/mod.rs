//! The recording tools: hypotheses, findings, verifications and gaps.

mod finding;
mod gap;
mod hypothesis;
mod verification;

pub(super) use finding::FindingTool;
pub(super) use gap::GapTool;
pub(super) use hypothesis::HypothesisTool;
pub(super) use verification::VerificationTool;

use super::super::answer::{AnswerPlace, NamedEntity, ToolAnswer};
use super::super::request::McpRequest;
use super::super::{resource, session_choice};
use super::{ToolReply, parse_argument};
use crate::args::value::{NameArg, non_empty_text};
use crate::error::CommandError;
use crate::report::entity_write::{ChangedEntity, EntityWriteReport, MadeCheckpoint};
use crate::verb::Verb;
use forge_store::model::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

/// How many other changes an answer lists.
const ALSO: usize = 20;

/// What was written.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::mcp) struct WrittenAnswer {
    /// Where it went.
    #[serde(flatten)]
    place: AnswerPlace,
    /// The branch it went to.
    branch: String,
    /// What it is.
    kind: String,
    /// Its id: name it by this from now on.
    id: String,
    /// Whether anything changed; recording the same again changes nothing.
    changed: bool,
    /// The operation, for 'forge undo'; null if nothing changed.
    operation: Option<String>,
    /// The number of the new revision of claims; null for facts.
    revision: Option<u64>,
    /// The checkpoint that was made along with it; null if none was.
    checkpoint: Option<WrittenCheckpoint>,
    /// What changed along with it, such as the children of a rejected hypothesis.
    also_changed: Vec<NamedEntity>,
    /// How many more have changed.
    also_omitted: usize,
    /// Contradictions and other remarks.
    warnings: Vec<String>,
    /// Its address.
    uri: String,
}

/// A checkpoint.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Made", deny_unknown_fields)]
pub(in crate::mcp) struct WrittenCheckpoint {
    /// Its id.
    id: String,
    /// Its number in the session: '#7' names it.
    sequence: u64,
    /// The moment it names.
    #[schemars(with = "String")]
    time: Timestamp,
    /// What it says.
    message: String,
    /// Its tags.
    tags: Vec<String>,
}

impl From<MadeCheckpoint> for WrittenCheckpoint {
    fn from(made: MadeCheckpoint) -> Self {
        let MadeCheckpoint { id, sequence, time, message, tags, .. } = made;
        Self { id: id.to_string(), sequence, time, message, tags }
    }
}

/// Runs a verb that writes, and returns what it wrote.
pub(super) fn run_write<V: Verb<Report = EntityWriteReport>>(
    request: &mut McpRequest,
    kind: &str,
    verb: &V,
) -> Result<ToolReply<WrittenAnswer>, CommandError> {
    let report = request.run(verb)?;
    let id = report.id.unwrap_or_default();
    let named = |changed: ChangedEntity| (changed.kind.name().to_owned(), changed.id);
    let mut also: Vec<_> = report.changed.into_iter().map(named).collect();
    also.retain(|(changed, changed_id)| changed != kind || *changed_id != id);
    let also_omitted = also.len().saturating_sub(ALSO);
    let also = also.into_iter().take(ALSO).map(|(kind, id)| NamedEntity { kind, id });
    let mut warnings = report.warnings;
    warnings.extend(request.take_warnings());
    let uri = if kind == "checkpoint" {
        resource::checkpoint(&id)
    } else {
        resource::entity(&report.session, kind, &id)
    };
    let chosen_by =
        session_choice::chosen_session(&request.context, request.chosen_by, &report.session)?;
    let place = AnswerPlace { session: report.session, chosen_by };
    let name = format!("{kind} {id}");
    let found = WrittenAnswer {
        place,
        branch: report.branch,
        kind: kind.to_owned(),
        id,
        changed: report.operation.is_some(),
        operation: report.operation.map(|operation| operation.to_string()),
        revision: report.revision.map(|revision| revision.sequence),
        checkpoint: report.checkpoint.map(Into::into),
        also_changed: also.collect(),
        also_omitted,
        warnings,
        uri: uri.clone(),
    };
    Ok(ToolAnswer::new(found).linked(uri, name).into())
}

/// The required text, which must not be blank.
fn required_text(argument: &str, given: Option<&String>) -> Result<String, CommandError> {
    let Some(given) = given else {
        return Err(CommandError::invalid(format!("'{argument}' is missing"))
            .hinted(format!("say it in '{argument}'")));
    };
    non_empty_text(given).map_err(|error| CommandError::invalid(format!("'{argument}': {error}")))
}

/// Refuses arguments that have no meaning here.
fn refuse_arguments(what: &str, given: &[(&str, bool)]) -> Result<(), CommandError> {
    let names: Vec<String> =
        given.iter().filter(|(_, given)| *given).map(|(name, _)| format!("'{name}'")).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(CommandError::invalid(format!("{what} takes no {}", names.join(", ")))
        .hinted("leave these out, or give them in a call of their own"))
}

fn names(argument: &str, given: &[String]) -> Result<Vec<NameArg>, CommandError> {
    given.iter().map(|name| parse_argument(argument, name)).collect()
}

fn share(share: f64) -> Result<f64, CommandError> {
    if (0.0..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(CommandError::invalid("'confidence' must be a number from 0 to 1"))
}

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
use crate::commands::ForgeCommand;
use crate::error::CommandError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Made", deny_unknown_fields)]
pub(in crate::mcp) struct WrittenCheckpoint {
    /// Its id.
    id: String,
    /// Its number in the session: '#7' names it.
    sequence: u64,
    /// The moment it names.
    time: String,
    /// What it says.
    message: String,
    /// Its tags.
    tags: Vec<String>,
}

/// The document of commands that write.
#[derive(Debug, Deserialize)]
struct WrittenDocument {
    session: String,
    branch: String,
    operation: Option<String>,
    id: Option<String>,
    revision: Option<WrittenRevision>,
    checkpoint: Option<WrittenCheckpoint>,
    changed: Vec<NamedEntity>,
    warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct WrittenRevision {
    sequence: u64,
}

/// Runs a command that writes, and returns what it wrote.
pub(super) fn run_write(
    visit: &mut McpRequest,
    kind: &str,
    command: &ForgeCommand,
) -> Result<ToolReply<WrittenAnswer>, CommandError> {
    let document: WrittenDocument = visit.run_as(command)?;
    let id = document.id.unwrap_or_default();
    let mut also: Vec<NamedEntity> = document.changed;
    also.retain(|changed| changed.kind != kind || changed.id != id);
    let also_omitted = also.len().saturating_sub(ALSO);
    also.truncate(ALSO);
    let mut warnings = document.warnings;
    warnings.extend(visit.take_warnings());
    let uri = if kind == "checkpoint" {
        resource::checkpoint(&id)
    } else {
        resource::entity(&document.session, kind, &id)
    };
    let chosen_by =
        session_choice::chosen_session(&visit.context, visit.chosen_by, &document.session)?;
    let place = AnswerPlace { session: document.session, chosen_by };
    let name = format!("{kind} {id}");
    let found = WrittenAnswer {
        place,
        branch: document.branch,
        kind: kind.to_owned(),
        id,
        changed: document.operation.is_some(),
        operation: document.operation,
        revision: document.revision.map(|revision| revision.sequence),
        checkpoint: document.checkpoint,
        also_changed: also,
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

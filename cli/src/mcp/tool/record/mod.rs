//! The recording tools: hypotheses, findings, verifications and gaps.

mod finding;
mod gap;
mod hypothesis;
mod verification;

pub(super) use finding::Finding;
pub(super) use gap::Gap;
pub(super) use hypothesis::Hypothesis;
pub(super) use verification::Verification;

use super::super::answer::{Answer, Named, Place};
use super::super::visit::Visit;
use super::super::{place, resource};
use super::{Outcome, word};
use crate::args::value::{Name, said};
use crate::commands::Command;
use crate::error::CommandError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many other changes an answer lists.
const ALSO: usize = 20;

/// What was written.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::mcp) struct Written {
    /// Where it went.
    #[serde(flatten)]
    place: Place,
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
    checkpoint: Option<Made>,
    /// What changed along with it, such as the children of a rejected hypothesis.
    also_changed: Vec<Named>,
    /// How many more have changed.
    also_omitted: usize,
    /// Contradictions and other remarks.
    warnings: Vec<String>,
    /// Its address.
    uri: String,
}

/// A checkpoint.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub(in crate::mcp) struct Made {
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
struct Document {
    session: String,
    branch: String,
    operation: Option<String>,
    id: Option<String>,
    revision: Option<Revision>,
    checkpoint: Option<Made>,
    changed: Vec<Named>,
    warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Revision {
    sequence: u64,
}

/// Runs a command that writes, and returns what it wrote.
pub(super) fn written(
    visit: &mut Visit,
    kind: &str,
    command: &Command,
) -> Result<Outcome<Written>, CommandError> {
    let document: Document = visit.found(command)?;
    let id = document.id.unwrap_or_default();
    let mut also: Vec<Named> = document.changed;
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
    let chosen_by = place::settled(&visit.context, visit.chosen_by, &document.session)?;
    let place = Place { session: document.session, chosen_by };
    let name = format!("{kind} {id}");
    let found = Written {
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
    Ok(Answer::new(found).linked(uri, name).into())
}

/// The required text, which must not be blank.
fn text(argument: &str, given: Option<&String>) -> Result<String, CommandError> {
    let Some(given) = given else {
        return Err(CommandError::invalid(format!("'{argument}' is missing"))
            .hinted(format!("say it in '{argument}'")));
    };
    said(given).map_err(|error| CommandError::invalid(format!("'{argument}': {error}")))
}

/// Refuses arguments that have no meaning here.
fn refuse(what: &str, given: &[(&str, bool)]) -> Result<(), CommandError> {
    let names: Vec<String> =
        given.iter().filter(|(_, given)| *given).map(|(name, _)| format!("'{name}'")).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(CommandError::invalid(format!("{what} takes no {}", names.join(", ")))
        .hinted("leave these out, or give them in a call of their own"))
}

fn names(argument: &str, given: &[String]) -> Result<Vec<Name>, CommandError> {
    given.iter().map(|name| word(argument, name)).collect()
}

fn share(share: f64) -> Result<f64, CommandError> {
    if (0.0..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(CommandError::invalid("'confidence' must be a number from 0 to 1"))
}

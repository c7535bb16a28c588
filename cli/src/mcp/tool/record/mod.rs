//! The recording tools: hypotheses, findings, verifications and gaps.

mod finding;
mod gap;
mod hypothesis;
mod verification;

pub(super) use finding::FindingArguments;
pub(super) use gap::GapArguments;
pub(super) use hypothesis::HypothesisArguments;
pub(super) use verification::VerificationArguments;

use super::super::answer::{AnswerPlace, NamedEntity, ToolAnswer};
use super::super::request::McpRequest;
use super::super::schema::VocabularyTerm;
use super::super::{resource, session_choice};
use super::ToolReply;
use crate::args::value::non_empty_text;
use crate::commands::claim::{ClaimAddArgs, ClaimUpdateArgs, RecordedClaim};
use crate::error::CommandError;
use crate::report::entity_write::{ChangedEntity, EntityWriteReport, MadeCheckpoint};
use crate::verb::Verb;
use forge_store::model::claim::VocabularyWord;
use forge_store::model::{FieldMap, Timestamp, Value};
use schemars::JsonSchema;
use serde::Serialize;

/// The maximum number of other changes that an answer lists.
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
    let named = |changed: ChangedEntity| {
        let value = changed.value.as_ref();
        let confidence = value.and_then(|value| value.field("confidence")?.as_f64());
        NamedEntity { kind: changed.kind.name().to_owned(), id: changed.id, confidence }
    };
    let mut also: Vec<NamedEntity> = report.changed.into_iter().map(named).collect();
    also.retain(|one| one.kind != kind || one.id != id);
    let also_omitted = also.len().saturating_sub(ALSO);
    also.truncate(ALSO);
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
        also_changed: also,
        also_omitted,
        warnings,
        uri: uri.clone(),
    };
    Ok(ToolAnswer::new(found).linked(uri, name).into())
}

/// Returns a required text, which must not be blank.
pub(super) fn required_text(argument: &str, given: Option<&str>) -> Result<String, CommandError> {
    let Some(given) = given else {
        return Err(CommandError::invalid(format!("'{argument}' is missing"))
            .hinted(format!("say it in '{argument}'")));
    };
    non_empty_text(given).map_err(|error| CommandError::invalid(format!("'{argument}': {error}")))
}

/// Records a claim: changes the one with this id, or adds one if there is no id. Accepts the
/// options that `update` or `add` have on the command line.
fn record_claim<K: RecordedClaim>(
    request: &mut McpRequest,
    id: Option<String>,
    mut given: FieldMap,
) -> Result<ToolReply<WrittenAnswer>, CommandError> {
    let kind = K::KIND.name();
    let (what, options) = match id {
        None => (format!("a new {kind}"), K::ADD_OPTIONS),
        Some(_) => (format!("an existing {kind}"), K::UPDATE_OPTIONS),
    };
    let mut allowed: Vec<&str> = options.iter().map(|option| option.name).collect();
    allowed.push("description");
    refuse_arguments(&what, &given, &allowed)?;
    match id {
        None => {
            let description = given.remove("description");
            let description = description.as_ref().and_then(Value::as_text);
            let description = required_text("description", description)?;
            run_write(request, kind, &ClaimAddArgs::<K>::new(description, given))
        }
        Some(id) => run_write(request, kind, &ClaimUpdateArgs::<K>::new(id, given)),
    }
}

fn given_arguments<const N: usize>(arguments: [(&str, Value); N]) -> FieldMap {
    let mut given = FieldMap::from(arguments.map(|(name, value)| (name.to_owned(), value)));
    given.retain(|_, value| *value != Value::Null && value.as_list() != Some(&[]));
    given
}

fn rename_argument(given: &mut FieldMap, argument: &str, field: &str) {
    if let Some(value) = given.remove(argument) {
        given.insert(field.to_owned(), value);
    }
}

/// Refuses arguments that have no meaning here.
fn refuse_arguments(what: &str, given: &FieldMap, allowed: &[&str]) -> Result<(), CommandError> {
    let others = given.keys().filter(|name| !allowed.contains(&name.as_str()));
    let names: Vec<String> = others.map(|name| format!("'{name}'")).collect();
    if names.is_empty() {
        return Ok(());
    }
    Err(CommandError::invalid(format!("{what} takes no {}", names.join(", ")))
        .hinted("leave these out, or give them in a call of their own"))
}

fn word<W: VocabularyWord>(term: Option<VocabularyTerm<W>>) -> Value {
    term.map(|VocabularyTerm(word)| word.word()).into()
}

/// Refuses a number that is not from `least` to 1.
fn check_number(argument: &str, given: Option<f64>, least: f64) -> Result<(), CommandError> {
    if given.is_none_or(|number| (least..=1.0).contains(&number)) {
        return Ok(());
    }
    Err(CommandError::invalid(format!("'{argument}' must be a number from {least} to 1")))
}

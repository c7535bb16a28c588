//! The tools: one file per family, and this table of all tools.

mod brief;
mod checkpoint;
mod diff;
mod record;
mod restore;
mod search;
mod state;
mod story;
mod timeline;
mod why;

pub(super) use brief::BriefArguments;
pub(super) use diff::DiffArguments;
pub(super) use state::StateArguments;
pub(super) use timeline::TimelineArguments;

use super::answer::{self, ToolAnswer};
use super::request::{McpClient, McpRequest};
use super::session_choice::SessionUse;
use super::{ServerSetup, schema};
use crate::error::CommandError;
use rmcp::model::{CallToolResponse, JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::{Arc, LazyLock};

/// What a tool does to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolEffect {
    /// It only reads.
    Reads,
    /// It adds something. Every earlier state stays readable at its moment.
    Adds,
    /// It replaces the current state.
    Replaces,
}

/// The arguments of a tool, and what it does with them. The argument `session` names the session of
/// the request.
pub(super) trait McpTool: DeserializeOwned + JsonSchema {
    const NAME: &'static str;
    const TITLE: &'static str;
    /// Its description for models: when to use it.
    const ABOUT: &'static str;
    const EFFECT: ToolEffect;
    /// The type of its answer.
    type Found: Serialize + JsonSchema;

    fn run(&self, request: &mut McpRequest) -> Result<ToolReply<Self::Found>, CommandError>;
}

/// The result of a call.
pub(super) enum ToolReply<T> {
    Answer(ToolAnswer<T>),
    /// A question that the client must answer first.
    Question(Box<rmcp::model::InputRequiredResult>),
}

impl<T> From<ToolAnswer<T>> for ToolReply<T> {
    fn from(answer: ToolAnswer<T>) -> Self {
        Self::Answer(answer)
    }
}

type ToolFunction =
    fn(JsonObject, &ServerSetup, McpClient) -> Result<CallToolResponse, CommandError>;

#[derive(Debug)]
pub struct ToolEntry {
    /// Its description for clients.
    pub tool: Tool,
    run: ToolFunction,
}

static TABLE: LazyLock<Vec<ToolEntry>> = LazyLock::new(|| {
    vec![
        entry::<BriefArguments>(),
        entry::<story::StoryArguments>(),
        entry::<record::HypothesisArguments>(),
        entry::<record::FindingArguments>(),
        entry::<record::VerificationArguments>(),
        entry::<record::GapArguments>(),
        entry::<checkpoint::CheckpointArguments>(),
        entry::<TimelineArguments>(),
        entry::<StateArguments>(),
        entry::<DiffArguments>(),
        entry::<why::WhyArguments>(),
        entry::<search::SearchArguments>(),
        entry::<restore::RestoreArguments>(),
    ]
});

/// Returns all tools, always in this order.
pub fn all() -> &'static [ToolEntry] {
    &TABLE
}

pub fn find(name: &str) -> Option<&'static ToolEntry> {
    all().iter().find(|entry| entry.tool.name == name)
}

impl ToolEntry {
    /// Calls the tool. Errors of the arguments or the store become a result that reports them.
    pub fn call(
        &self,
        arguments: JsonObject,
        setup: &ServerSetup,
        client: McpClient,
    ) -> CallToolResponse {
        (self.run)(arguments, setup, client)
            .unwrap_or_else(|error| answer::error_result(&error).into())
    }
}

fn entry<T: McpTool>() -> ToolEntry {
    let annotations = ToolAnnotations::with_title(T::TITLE)
        .read_only(T::EFFECT == ToolEffect::Reads)
        .destructive(T::EFFECT == ToolEffect::Replaces)
        .idempotent(T::EFFECT != ToolEffect::Adds)
        .open_world(false);
    let tool = Tool::new(T::NAME, T::ABOUT, Arc::new(schema::input::<T>()))
        .with_title(T::TITLE)
        .with_raw_output_schema(Arc::new(schema::output::<T::Found>()))
        .with_annotations(annotations);
    ToolEntry { tool, run: call::<T> }
}

fn call<T: McpTool>(
    arguments: JsonObject,
    setup: &ServerSetup,
    client: McpClient,
) -> Result<CallToolResponse, CommandError> {
    let (tool, mut request) = begin::<T>(arguments, setup)?;
    request.client = client;
    match tool.run(&mut request)? {
        ToolReply::Answer(answer) => Ok(answer.into_result()?.into()),
        ToolReply::Question(question) => Ok((*question).into()),
    }
}

fn begin<T: McpTool>(
    arguments: JsonObject,
    setup: &ServerSetup,
) -> Result<(T, McpRequest), CommandError> {
    let session = arguments.get("session").and_then(Value::as_str).map(str::to_owned);
    let tool: T = parse_arguments(arguments)?;
    let to = if T::EFFECT == ToolEffect::Adds { SessionUse::Writes } else { SessionUse::Reads };
    let request = McpRequest::begin(setup, session.as_deref(), to)?;
    Ok((tool, request))
}

/// Runs a tool that only reads, and returns its answer as JSON, for a resource or a prompt.
pub(super) fn run_to_json<T: McpTool>(
    arguments: JsonObject,
    setup: &ServerSetup,
) -> Result<Value, CommandError> {
    let (tool, mut request) = begin::<T>(arguments, setup)?;
    match tool.run(&mut request)? {
        ToolReply::Answer(answer) => answer::json(&answer.found),
        ToolReply::Question(_) => Err(CommandError::internal("reading asks nothing")),
    }
}

fn parse_arguments<T: McpTool>(mut given: JsonObject) -> Result<T, CommandError> {
    // A client may send null for an argument that it leaves out.
    given.retain(|_, value| !value.is_null());
    serde_json::from_value(Value::Object(given.clone())).map_err(|error| {
        let wrong = wrong_type(&given, &schema::input::<T>());
        let wrong = wrong.unwrap_or_else(|| format!("the arguments are invalid: {error}"));
        CommandError::invalid(wrong)
    })
}

/// Returns which argument has another type than its schema says. The error of the parser does not
/// name the argument.
fn wrong_type(given: &JsonObject, schema: &JsonObject) -> Option<String> {
    given.iter().find_map(|(name, value)| {
        let property = schema.get("properties")?.get(name)?;
        let (fits, wanted) = match property.get("type")?.as_str()? {
            "array" => (is_list_of_texts(value), "a list of texts"),
            "boolean" => (value.is_boolean(), "true or false"),
            "integer" if property.get("minimum").is_some() => {
                (value.is_u64(), "a whole number that is not negative")
            }
            "integer" => (value.is_i64() || value.is_u64(), "a whole number"),
            "number" => (value.is_number(), "a number"),
            "string" => (value.is_string(), "a text"),
            _ => return None,
        };
        (!fits).then(|| format!("'{name}' must be {wanted}"))
    })
}

fn is_list_of_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

/// Parses an argument as the command line does: as a name or a moment, for example.
pub(super) fn parse_argument<T: std::str::FromStr<Err = String>>(
    argument: &str,
    text: &str,
) -> Result<T, CommandError> {
    text.parse().map_err(|error| CommandError::invalid(format!("'{argument}': {error}")))
}

/// Parses an optional argument like [`parse_argument`].
pub(super) fn parse_optional<T: std::str::FromStr<Err = String>>(
    argument: &str,
    text: Option<&String>,
) -> Result<Option<T>, CommandError> {
    text.map(|text| parse_argument(argument, text)).transpose()
}

//! The tools: one file per family, and this table of all tools.

mod brief;
mod checkpoint;
mod diff;
mod record;
mod restore;
mod search;
mod state;
mod timeline;
mod why;

pub(super) use brief::Brief;
pub(super) use diff::Diff;
pub(super) use state::State;
pub(super) use timeline::Timeline;

use super::answer::{self, Answer};
use super::place::Use;
use super::visit::Visit;
use super::{Setting, schema};
use crate::error::CommandError;
use rmcp::model::{
    CallToolResponse, ClientCapabilities, InputResponses, JsonObject, Tool, ToolAnnotations,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::{Arc, LazyLock};

/// What a tool does to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It only reads.
    Reads,
    /// It adds: what was there before stays readable at its moment.
    Adds,
    /// It replaces the current state.
    Replaces,
}

/// A tool.
pub(super) trait Does {
    /// Its name.
    const NAME: &'static str;
    /// Its title for people.
    const TITLE: &'static str;
    /// Its description for models: when to use it.
    const ABOUT: &'static str;
    /// Its effect on the store.
    const EFFECT: Effect;
    /// Its arguments.
    type Arguments: DeserializeOwned + JsonSchema;
    /// The type of its answer.
    type Found: Serialize + JsonSchema;

    /// Returns the session in the arguments.
    fn session(arguments: &Self::Arguments) -> Option<&str>;

    /// Runs the tool.
    ///
    /// # Errors
    ///
    /// The errors of its commands.
    fn run(
        arguments: &Self::Arguments,
        visit: &mut Visit,
        client: &Client,
    ) -> Result<Outcome<Self::Found>, CommandError>;
}

/// The result of a call.
pub(super) enum Outcome<T> {
    /// An answer.
    Answer(Answer<T>),
    /// A question that the client must answer first.
    Question(Box<rmcp::model::InputRequiredResult>),
}

impl<T> From<Answer<T>> for Outcome<T> {
    fn from(answer: Answer<T>) -> Self {
        Self::Answer(answer)
    }
}

/// What is known about the client of a call.
#[derive(Clone, Debug, Default)]
pub struct Client {
    /// Whether a result may be a question (the protocol of 2026-07-28).
    pub may_be_asked: bool,
    /// Its declared capabilities.
    pub capabilities: Option<ClientCapabilities>,
    /// Its answers to an earlier question.
    pub responses: Option<InputResponses>,
    /// The state that came with that question.
    pub state: Option<String>,
}

type Run = fn(JsonObject, &Setting, &Client) -> Result<CallToolResponse, CommandError>;

/// A tool in the table.
#[derive(Debug)]
pub struct Entry {
    /// Its description for clients.
    pub tool: Tool,
    run: Run,
}

static TABLE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    vec![
        entry::<Brief>(),
        entry::<record::Hypothesis>(),
        entry::<record::Finding>(),
        entry::<record::Verification>(),
        entry::<record::Gap>(),
        entry::<checkpoint::Checkpoint>(),
        entry::<Timeline>(),
        entry::<State>(),
        entry::<Diff>(),
        entry::<why::Why>(),
        entry::<search::Search>(),
        entry::<restore::Restore>(),
    ]
});

/// Returns all tools, always in this order.
#[must_use]
pub fn all() -> &'static [Entry] {
    &TABLE
}

/// Returns the tool with this name.
#[must_use]
pub fn named(name: &str) -> Option<&'static Entry> {
    all().iter().find(|entry| entry.tool.name == name)
}

impl Entry {
    /// Calls the tool. Errors of the arguments or the store become a result that reports them.
    #[must_use]
    pub fn call(
        &self,
        arguments: JsonObject,
        setting: &Setting,
        client: &Client,
    ) -> CallToolResponse {
        (self.run)(arguments, setting, client)
            .unwrap_or_else(|error| answer::refusal(&error).into())
    }
}

fn entry<T: Does>() -> Entry {
    let annotations = ToolAnnotations::with_title(T::TITLE)
        .read_only(T::EFFECT == Effect::Reads)
        .destructive(T::EFFECT == Effect::Replaces)
        .idempotent(T::EFFECT != Effect::Adds)
        .open_world(false);
    let tool = Tool::new(T::NAME, T::ABOUT, Arc::new(schema::input::<T::Arguments>()))
        .with_title(T::TITLE)
        .with_raw_output_schema(Arc::new(schema::output::<T::Found>()))
        .with_annotations(annotations);
    Entry { tool, run: call::<T> }
}

fn call<T: Does>(
    arguments: JsonObject,
    setting: &Setting,
    client: &Client,
) -> Result<CallToolResponse, CommandError> {
    let arguments: T::Arguments = taken(arguments)?;
    let mut visit = begun::<T>(&arguments, setting)?;
    match T::run(&arguments, &mut visit, client)? {
        Outcome::Answer(answer) => Ok(answer.into_result()?.into()),
        Outcome::Question(question) => Ok((*question).into()),
    }
}

fn begun<T: Does>(arguments: &T::Arguments, setting: &Setting) -> Result<Visit, CommandError> {
    let to = if T::EFFECT == Effect::Adds { Use::Writes } else { Use::Reads };
    Visit::begin(setting, T::session(arguments), to)
}

/// Runs a tool with arguments that forge itself made, and returns its answer as JSON.
///
/// # Errors
///
/// The errors of the tool.
pub(super) fn found<T: Does>(
    arguments: JsonObject,
    setting: &Setting,
) -> Result<Value, CommandError> {
    let arguments: T::Arguments = taken(arguments)?;
    let mut visit = begun::<T>(&arguments, setting)?;
    match T::run(&arguments, &mut visit, &Client::default())? {
        Outcome::Answer(answer) => answer::json(&answer.found),
        Outcome::Question(_) => Err(CommandError::internal("reading asks nothing")),
    }
}

fn taken<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, CommandError> {
    // A client may send null for an argument that it leaves out.
    let given = arguments.into_iter().filter(|(_, value)| !value.is_null());
    serde_json::from_value(Value::Object(given.collect()))
        .map_err(|error| CommandError::invalid(format!("the arguments are invalid: {error}")))
}

/// Parses an argument as a name, a moment or another word of the command line.
pub(super) fn word<T: std::str::FromStr<Err = String>>(
    argument: &str,
    text: &str,
) -> Result<T, CommandError> {
    text.parse().map_err(|error| CommandError::invalid(format!("'{argument}': {error}")))
}

/// Parses an optional argument in the same way.
pub(super) fn word_if<T: std::str::FromStr<Err = String>>(
    argument: &str,
    text: Option<&String>,
) -> Result<Option<T>, CommandError> {
    text.map(|text| word(argument, text)).transpose()
}

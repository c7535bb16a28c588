//! Naming a moment.

use super::super::visit::Visit;
use super::record::{Written, written};
use super::{Client, Does, Effect, Outcome, word, word_if};
use crate::commands::Command;
use crate::commands::checkpoint::{CheckpointCommand, CreateArgs};
use crate::error::CommandError;
use schemars::JsonSchema;
use serde::Deserialize;

/// `checkpoint`.
pub(super) struct Checkpoint;

/// Arguments of `checkpoint`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct CheckpointArguments {
    /// What moment it is.
    message: String,
    /// Its tags, each one word.
    #[serde(default)]
    tags: Vec<String>,
    /// A past moment to name instead of this one.
    at: Option<String>,
    /// The session to make it in, by name or id.
    session: Option<String>,
}

impl Does for Checkpoint {
    const NAME: &'static str = "checkpoint";
    const TITLE: &'static str = "Name this moment";
    const ABOUT: &'static str = "Name this moment so that you can find it, compare with it and go back to it. Costs \
        a few bytes. Every change is kept, also without a checkpoint.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = CheckpointArguments;
    type Found = Written;

    fn session(arguments: &CheckpointArguments) -> Option<&str> {
        arguments.session.as_deref()
    }

    fn run(
        given: &CheckpointArguments,
        visit: &mut Visit,
        _: &Client,
    ) -> Result<Outcome<Written>, CommandError> {
        let message = crate::args::value::said(&given.message)
            .map_err(|error| CommandError::invalid(format!("'message': {error}")))?;
        let tags: Result<_, _> = given.tags.iter().map(|tag| word("tags", tag)).collect();
        let at = word_if("at", given.at.as_ref())?;
        let create = CreateArgs { message, tags: tags?, at };
        written(visit, "checkpoint", &Command::Checkpoint(CheckpointCommand::Create(create).into()))
    }
}

//! The tool `checkpoint`: names a moment.

use super::super::request::McpRequest;
use super::record::{WrittenAnswer, required_text, run_write};
use super::{McpTool, ToolEffect, ToolReply, parse_argument, parse_optional};
use crate::commands::checkpoint::CheckpointCreateArgs;
use crate::error::CommandError;
use schemars::JsonSchema;
use serde::Deserialize;

/// Arguments of `checkpoint`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct CheckpointArguments {
    /// A description of the moment.
    message: String,
    /// Its tags, each one word.
    #[serde(default)]
    tags: Vec<String>,
    /// A past moment to name instead of this one.
    at: Option<String>,
    /// The session to make it in, by name or id.
    #[expect(dead_code, reason = "'begin' reads it; the schema has it")]
    session: Option<String>,
}

impl McpTool for CheckpointArguments {
    const NAME: &'static str = "checkpoint";
    const TITLE: &'static str = "Name this moment";
    const ABOUT: &'static str = "Name this moment so that you can find it, compare with it and go back to it. Costs \
        a few bytes. Every change is kept, also without a checkpoint.";
    const EFFECT: ToolEffect = ToolEffect::Adds;
    type Found = WrittenAnswer;

    fn run(&self, request: &mut McpRequest) -> Result<ToolReply<WrittenAnswer>, CommandError> {
        let message = required_text("message", Some(&self.message))?;
        let tags: Result<_, _> = self.tags.iter().map(|tag| parse_argument("tags", tag)).collect();
        let at = parse_optional("at", self.at.as_ref())?;
        run_write(
            request,
            "checkpoint",
            &CheckpointCreateArgs { message: Some(message), text: None, tags: tags?, at },
        )
    }
}

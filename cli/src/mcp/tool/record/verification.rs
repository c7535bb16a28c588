//! The tool `record_verification`: what the agent has checked.

use super::super::{McpTool, ToolEffect, ToolReply, parse_optional};
use super::{WrittenAnswer, required_text, run_write};
use crate::commands::verification::VerificationAddArgs;
use crate::error::CommandError;
use crate::mcp::request::McpRequest;
use crate::mcp::schema::VocabularyTerm;
use forge_store::model::claim::VerificationStatus;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// Arguments of `record_verification`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct VerificationArguments {
    /// What was checked: the name of a test, a build, a linter.
    name: String,
    /// How it ended.
    status: VocabularyTerm<VerificationStatus>,
    /// The command that checked it.
    command: Option<String>,
    /// The code with which that command exited.
    exit_code: Option<i64>,
    /// How long it took, in milliseconds.
    duration_ms: Option<u64>,
    /// What it printed, as far as it matters.
    output: Option<String>,
    /// What it means.
    description: Option<String>,
    /// Where it comes from: a file and line, a document.
    source: Option<String>,
    /// When it ended, if not now: '10m', 'yesterday 14:30', RFC 3339.
    at: Option<String>,
    /// The session to record it in, by name or id.
    #[expect(dead_code, reason = "'begin' reads it; the schema has it")]
    session: Option<String>,
}

impl McpTool for VerificationArguments {
    const NAME: &'static str = "record_verification";
    const TITLE: &'static str = "Record a test result";
    const ABOUT: &'static str = "Record the result of a test, build or check that hooks do not see, as it happened: a \
        fact, the same on every branch. Durable when it returns.";
    const EFFECT: ToolEffect = ToolEffect::Adds;
    type Found = WrittenAnswer;

    fn run(&self, request: &mut McpRequest) -> Result<ToolReply<WrittenAnswer>, CommandError> {
        let VocabularyTerm(status) = self.status;
        let add = VerificationAddArgs {
            name: required_text("name", Some(&self.name))?,
            status,
            command: self.command.clone(),
            duration: self.duration_ms.map(Duration::from_millis),
            output: self.output.clone(),
            exit_code: self.exit_code,
            description: self.description.clone(),
            source: self.source.clone(),
            at: parse_optional("at", self.at.as_ref())?,
            id: None,
        };
        run_write(request, "verification", &add)
    }
}

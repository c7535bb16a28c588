//! The tool `record_verification`: what the agent has checked.

use super::super::{Client, Does, Effect, Outcome, word_if};
use super::{Written, text, written};
use crate::commands::Command;
use crate::commands::verification::{self, VerificationCommand};
use crate::error::CommandError;
use crate::mcp::schema::Term;
use crate::mcp::visit::Visit;
use forge_store::model::claim::VerificationStatus;
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;

/// `record_verification`.
pub(in crate::mcp) struct Verification;

/// Arguments of `record_verification`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct VerificationArguments {
    /// What was checked: the name of a test, a build, a linter.
    name: String,
    /// How it ended.
    status: Term<VerificationStatus>,
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
    session: Option<String>,
}

impl Does for Verification {
    const NAME: &'static str = "record_verification";
    const TITLE: &'static str = "Record a test result";
    const ABOUT: &'static str = "Record the result of a test, build or check that hooks do not see, as it happened: a \
        fact, the same on every branch. Durable when it returns.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = VerificationArguments;
    type Found = Written;

    fn session(arguments: &VerificationArguments) -> Option<&str> {
        arguments.session.as_deref()
    }

    fn run(
        given: &VerificationArguments,
        visit: &mut Visit,
        _: &Client,
    ) -> Result<Outcome<Written>, CommandError> {
        let Term(status) = given.status;
        let command = VerificationCommand::Add(verification::AddArgs {
            name: text("name", Some(&given.name))?,
            status,
            command: given.command.clone(),
            duration: given.duration_ms.map(Duration::from_millis),
            output: given.output.clone(),
            exit_code: given.exit_code,
            description: given.description.clone(),
            source: given.source.clone(),
            at: word_if("at", given.at.as_ref())?,
            id: None,
        });
        written(visit, "verification", &Command::Verification(command.into()))
    }
}

//! The tool `record_hypothesis`: what the agent considers possible.

use super::super::{Client, Does, Effect, Outcome};
use super::{Written, names, refuse, share, text, written};
use crate::commands::Command;
use crate::commands::hypothesis::{self, HypothesisCommand};
use crate::error::CommandError;
use crate::mcp::schema::Term;
use crate::mcp::visit::Visit;
use forge_store::model::claim::HypothesisStatus;
use schemars::JsonSchema;
use serde::Deserialize;

/// `record_hypothesis`.
pub(in crate::mcp) struct Hypothesis;

/// Arguments of `record_hypothesis`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct HypothesisArguments {
    /// The id of an existing hypothesis; omit it to add a new one.
    id: Option<String>,
    /// What might explain the problem.
    description: Option<String>,
    /// How likely it is.
    #[schemars(range(min = 0, max = 1))]
    confidence: Option<f64>,
    /// Status of the work on it. 'confirmed' and 'rejected' settle an existing one, with all consequences.
    status: Option<Term<HypothesisStatus>>,
    /// Why it is confirmed or rejected.
    reason: Option<String>,
    /// The id of the hypothesis that it is a part of.
    parent: Option<String>,
    /// Where it comes from: a file and line, a command, a document.
    source: Option<String>,
    /// Its tags.
    #[serde(default)]
    tags: Vec<String>,
    /// The session to record it in, by name or id.
    session: Option<String>,
}

impl Does for Hypothesis {
    const NAME: &'static str = "record_hypothesis";
    const TITLE: &'static str = "Record a hypothesis";
    const ABOUT: &'static str = "Record what you believe might explain the problem, as soon as you believe it; later \
        change it by its id, and confirm or reject it when it is settled, with the reason. Rejecting one rejects its \
        parts. Durable when it returns.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = HypothesisArguments;
    type Found = Written;

    fn session(arguments: &HypothesisArguments) -> Option<&str> {
        arguments.session.as_deref()
    }

    fn run(
        arguments: &HypothesisArguments,
        visit: &mut Visit,
        _: &Client,
    ) -> Result<Outcome<Written>, CommandError> {
        written(visit, "hypothesis", &Command::Hypothesis(hypothesis_command(arguments)?.into()))
    }
}

fn hypothesis_command(given: &HypothesisArguments) -> Result<HypothesisCommand, CommandError> {
    let settles = given.status.map(|Term(status)| status).filter(|status| {
        matches!(status, HypothesisStatus::Confirmed | HypothesisStatus::Rejected)
    });
    let confidence = given.confidence.map(share).transpose()?;
    let status = given.status.map(|Term(status)| status);
    let tags = names("tags", &given.tags)?;
    if settles.is_none() && given.reason.is_some() {
        return Err(CommandError::invalid("'reason' says why a hypothesis is settled")
            .hinted("give it with 'status' confirmed or rejected"));
    }
    let Some(id) = given.id.clone() else {
        if settles.is_some() {
            return Err(CommandError::invalid("a new hypothesis is not settled yet")
                .hinted("state it first, then settle it by its 'id'"));
        }
        return Ok(HypothesisCommand::Add(hypothesis::AddArgs {
            description: text("description", given.description.as_ref())?,
            id: None,
            confidence,
            status,
            parent: given.parent.clone(),
            source: given.source.clone(),
            tags,
        }));
    };
    refuse("a hypothesis that is there", &[("source", given.source.is_some())])?;
    if let Some(status) = settles {
        refuse(
            "settling a hypothesis",
            &[
                ("description", given.description.is_some()),
                ("confidence", confidence.is_some()),
                ("parent", given.parent.is_some()),
                ("tags", !tags.is_empty()),
            ],
        )?;
        let settle = hypothesis::SettleArgs { id, reason: given.reason.clone() };
        return Ok(match status {
            HypothesisStatus::Confirmed => HypothesisCommand::Confirm(settle),
            _ => HypothesisCommand::Reject(settle),
        });
    }
    Ok(HypothesisCommand::Update(hypothesis::UpdateArgs {
        id,
        description: given.description.clone(),
        confidence,
        status,
        parent: given.parent.clone(),
        add_tags: tags,
        remove_tags: Vec::new(),
    }))
}

//! The tool `record_gap`: what the agent does not know.

use super::super::{Client, Does, Effect, Outcome};
use super::{Written, refuse, text, written};
use crate::commands::Command;
use crate::commands::gap::{self, GapCommand, GapFields};
use crate::error::CommandError;
use crate::mcp::schema::Term;
use crate::mcp::visit::Visit;
use forge_store::model::claim::{Criticality, Effort, FillStrategy, GapStatus, GapType};
use schemars::JsonSchema;
use serde::Deserialize;

/// `record_gap`.
pub(in crate::mcp) struct Gap;

/// Arguments of `record_gap`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::mcp) struct GapArguments {
    /// The id of an existing gap; omit it to add a new one.
    id: Option<String>,
    /// What is not known and should be.
    description: Option<String>,
    /// How much depends on it.
    criticality: Option<Term<Criticality>>,
    /// What kind of gap it is.
    #[serde(rename = "type")]
    gap_type: Option<Term<GapType>>,
    /// The ids of the hypotheses that it blocks, or 'all' or 'none' alone.
    #[serde(default)]
    blocking: Vec<String>,
    /// How it could be filled.
    fill_strategy: Option<Term<FillStrategy>>,
    /// How much work that is.
    effort: Option<Term<Effort>>,
    /// Its status. 'filled' needs 'resolution'.
    status: Option<Term<GapStatus>>,
    /// What was found out; of a gap that is unfillable or obsolete, why.
    resolution: Option<String>,
    /// The session to record it in, by name or id.
    session: Option<String>,
}

impl Does for Gap {
    const NAME: &'static str = "record_gap";
    const TITLE: &'static str = "Record an open question";
    const ABOUT: &'static str = "Record what you do not know and need to find out or ask; later fill it by its id with \
        what was found out. Durable when it returns.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = GapArguments;
    type Found = Written;

    fn session(arguments: &GapArguments) -> Option<&str> {
        arguments.session.as_deref()
    }

    fn run(
        arguments: &GapArguments,
        visit: &mut Visit,
        _: &Client,
    ) -> Result<Outcome<Written>, CommandError> {
        written(visit, "gap", &Command::Gap(gap_command(arguments)?.into()))
    }
}

fn gap_command(given: &GapArguments) -> Result<GapCommand, CommandError> {
    let fields = GapFields {
        gap_type: given.gap_type.map(|Term(word)| word),
        criticality: given.criticality.map(|Term(word)| word),
        blocking: given.blocking.clone(),
        fill_strategy: given.fill_strategy.map(|Term(word)| word),
        effort: given.effort.map(|Term(word)| word),
    };
    let status = given.status.map(|Term(status)| status);
    let Some(id) = given.id.clone() else {
        refuse(
            "a new gap",
            &[
                ("status", status.is_some_and(|status| status != GapStatus::Open)),
                ("resolution", given.resolution.is_some()),
            ],
        )?;
        let description = text("description", given.description.as_ref())?;
        return Ok(GapCommand::Add(gap::AddArgs { description, id: None, fields }));
    };
    if status == Some(GapStatus::Filled) {
        refuse(
            "filling a gap",
            &[
                ("description", given.description.is_some()),
                ("criticality", fields.criticality.is_some()),
                ("type", fields.gap_type.is_some()),
                ("blocking", !fields.blocking.is_empty()),
                ("fill_strategy", fields.fill_strategy.is_some()),
                ("effort", fields.effort.is_some()),
            ],
        )?;
        let resolution = text("resolution", given.resolution.as_ref())?;
        return Ok(GapCommand::Fill(gap::FillArgs { id, resolution }));
    }
    let (description, resolution) = (given.description.clone(), given.resolution.clone());
    Ok(GapCommand::Update(gap::UpdateArgs { id, description, status, resolution, fields }))
}

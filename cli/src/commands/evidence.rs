//! `forge evidence`.

use super::claim::{
    ClaimAddArgs, ClaimRetractArgs, ClaimUpdateArgs, RecordedClaim, RetractedClaim,
};
use crate::args::select::{ClaimListArgs, EntityShowArgs, Timed};
use crate::error::CommandError;
use crate::session_reader::find_entity;
use crate::session_writer::SessionWriter;
use crate::verb::commands;
use forge_store::model::claim::Evidence;
use forge_store::model::rule::{self, ClaimLookup, RuleError, RuleOutcome};
use forge_store::model::{FieldMap, Key, Kind, Value};
use forge_store::store::{HeadClaims, WriteReport};

/// Record evidence for or against a hypothesis.
#[derive(Debug, clap::Subcommand)]
pub enum EvidenceCommand {
    /// Record evidence; the confidence of its hypothesis follows
    Add(Timed<ClaimAddArgs<Evidence>>),
    /// Change evidence; the confidence of its hypothesis follows
    Update(Timed<ClaimUpdateArgs<Evidence>>),
    /// Retract evidence; the confidence of its hypothesis follows
    Retract(Timed<ClaimRetractArgs<Evidence>>),
    /// List evidence
    List(ClaimListArgs<Evidence>),
    /// Show one piece of evidence
    Show(EntityShowArgs<Evidence>),
}

commands!(EvidenceCommand: Add, Update, Retract, List, Show);

impl RetractedClaim for Evidence {
    fn retract(claims: &HeadClaims, id: &str) -> Result<RuleOutcome, RuleError> {
        rule::retract_evidence(claims, id)
    }
}

impl RecordedClaim for Evidence {
    fn add(
        writing: &SessionWriter,
        id: Option<&str>,
        mut fields: FieldMap,
    ) -> Result<(String, WriteReport), CommandError> {
        if let Some(from) = fields.remove("from") {
            add_source(writing, &mut fields, from.as_text().unwrap_or_default())?;
        }
        let value = Value::Map(fields);
        writing.add_by_rule(Kind::Evidence, id, |claims, id| rule::add_evidence(claims, id, &value))
    }

    fn update(
        writing: &SessionWriter,
        id: &str,
        changed: &FieldMap,
    ) -> Result<WriteReport, CommandError> {
        writing.write_rule(|claims| {
            let key = Key::new(Kind::Evidence, id);
            let mut value = claims.claim(&key).ok_or(RuleError::NotFound(key))?;
            if let Value::Map(fields) = &mut value {
                fields.extend(changed.clone());
            }
            rule::update_evidence(claims, id, &value)
        })
    }
}

/// Adds the command that showed the evidence as the source: `last` is the latest one.
fn add_source(
    writing: &SessionWriter,
    fields: &mut FieldMap,
    name: &str,
) -> Result<(), CommandError> {
    if fields.contains_key("source") {
        return Err(CommandError::invalid("'--from' and '--source' name the same thing")
            .hinted("leave one of them out"));
    }
    let state = writing.session.state(&writing.session.head()?)?;
    let name = name.strip_prefix("command:").unwrap_or(name);
    let id = if name == "last" {
        let commands = state.facts_of(Kind::Command)?;
        let last = commands.into_iter().max_by_key(|known| (known.fact.at, known.fact.place));
        let last = last.ok_or_else(|| {
            CommandError::not_found("no command is recorded in this session")
                .hinted("'forge command record -- COMMAND' records one")
        })?;
        last.fact.id
    } else {
        find_entity(&state, Kind::Command, name)?.into_id()
    };
    fields.insert("source".to_owned(), format!("command:{id}").into());
    Ok(())
}

//! `forge evidence`.

use super::claim::{ClaimAddArgs, RecordedClaim};
use crate::args::select::{ClaimListArgs, EntityShowArgs};
use crate::error::CommandError;
use crate::session_writer::SessionWriter;
use crate::verb::commands;
use forge_store::model::claim::Evidence;
use forge_store::model::{FieldMap, Kind, Value, rule};
use forge_store::store::WriteReport;

/// Record evidence for or against a hypothesis.
#[derive(Debug, clap::Subcommand)]
pub enum EvidenceCommand {
    /// Record evidence; the confidence of its hypothesis follows
    Add(ClaimAddArgs<Evidence>),
    /// List evidence
    List(ClaimListArgs<Evidence>),
    /// Show one piece of evidence
    Show(EntityShowArgs<Evidence>),
}

commands!(EvidenceCommand: Add, List, Show);

impl RecordedClaim for Evidence {
    fn add(
        writing: &SessionWriter,
        id: Option<&str>,
        fields: FieldMap,
    ) -> Result<(String, WriteReport), CommandError> {
        let value = Value::Map(fields);
        writing.add_by_rule(Kind::Evidence, id, |claims, id| rule::add_evidence(claims, id, &value))
    }
}

//! `forge gap`.

use super::claim::{ClaimAddArgs, ClaimUpdateArgs, RecordedClaim};
use crate::args::select::{ClaimListArgs, EntityShowArgs, Timed};
use crate::args::value;
use crate::context::Context;
use crate::report::entity_write::EntityWriteReport;
use crate::session_writer::SessionWriter;
use crate::verb::{Verb, VerbResult, commands};
use forge_store::model::claim::Gap;
use forge_store::model::{Kind, Value, rule};

/// Record open questions.
#[derive(Debug, clap::Subcommand)]
pub enum GapCommand {
    /// Add a gap
    Add(Timed<ClaimAddArgs<Gap>>),
    /// Fill a gap with what was found out
    Fill(Timed<GapFillArgs>),
    /// Change fields of a gap
    Update(Timed<ClaimUpdateArgs<Gap>>),
    /// List gaps, the most critical first
    List(ClaimListArgs<Gap>),
    /// Show one gap
    Show(EntityShowArgs<Gap>),
}

commands!(GapCommand: Add, Fill, Update, List, Show);

impl RecordedClaim for Gap {
    fn word_for_ids(text: &str) -> Option<Value> {
        match text {
            "all" => Some(true.into()),
            "none" => Some(false.into()),
            _ => None,
        }
    }
}

#[derive(Debug, clap::Args)]
pub struct GapFillArgs {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// What was found out
    #[arg(value_name = "RESOLUTION", value_parser = value::non_empty_text)]
    pub resolution: String,
}

impl Verb for GapFillArgs {
    const NAME: &'static str = "gap fill";
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let id = writing.claim_id(Kind::Gap, &self.id)?;
        let done =
            writing.write_rule(|claims| rule::fill_gap(claims, &id, Some(&self.resolution)))?;
        Ok(EntityWriteReport::new("Filled", done).about_claim(Kind::Gap, id))
    }
}

//! `forge gap`.

use super::claim::{ClaimAddArgs, ClaimUpdateArgs, RecordedClaim};
use crate::args::select::{ChangeTimeArgs, ClaimListArgs, EntityShowArgs};
use crate::args::value::{self, MomentArg};
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
    Add(ClaimAddArgs<Gap>),
    /// Fill a gap with what was found out
    Fill(GapFillArgs),
    /// Change fields of a gap
    Update(ClaimUpdateArgs<Gap>),
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

    #[command(flatten)]
    pub when: ChangeTimeArgs,
}

impl Verb for GapFillArgs {
    const NAME: &'static str = "gap fill";
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn change_time(&self) -> Option<&MomentArg> {
        self.when.at.as_ref()
    }

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let id = writing.claim_id(Kind::Gap, &self.id)?;
        let done =
            writing.write_rule(|claims| rule::fill_gap(claims, &id, Some(&self.resolution)))?;
        Ok(EntityWriteReport::new("Filled", done).about_claim(Kind::Gap, id))
    }
}

//! `forge gap`.

use super::claim::{ClaimAddArgs, ClaimUpdateArgs, RecordedClaim};
use crate::args::select::{ClaimListArgs, EntityShowArgs, Timed};
use crate::args::value;
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity_write::EntityWriteReport;
use crate::session_writer::SessionWriter;
use crate::text::shorten;
use crate::verb::{Verb, VerbResult, commands};
use forge_store::model::claim::Gap;
use forge_store::model::{FieldMap, Key, Kind, Value, rule};

/// The length, in characters with the ellipsis, at which a replaced answer is cut for display.
const MAX_ANSWER_CHARACTERS: usize = 160;

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
    /// Refuses a resolution of a gap that stays open.
    fn check_change(
        writing: &SessionWriter,
        id: &str,
        fields: &FieldMap,
    ) -> Result<(), CommandError> {
        if !writing.session.is_resolved_while_open(id, fields)? {
            return Ok(());
        }
        let fill =
            "'forge gap fill' fills it; otherwise give its status too: 'unfillable' or 'obsolete'";
        Err(CommandError::invalid(format!("the gap {id} is open: it cannot have a resolution"))
            .hinted(fill))
    }

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
        let key = Key::new(Kind::Gap, id.as_str());
        let before = writing.session.claim(&writing.session.head()?, &key)?;
        let done =
            writing.write_rule(|claims| rule::fill_gap(claims, &id, Some(&self.resolution)))?;
        let mut report = EntityWriteReport::new("Filled", done).about_claim(Kind::Gap, id);
        let earlier = before.as_ref().and_then(|gap| gap.value.field("resolution")?.as_text());
        if report.revision.is_some()
            && let Some(earlier) = earlier.filter(|earlier| *earlier != self.resolution)
        {
            let answer = shorten(earlier, MAX_ANSWER_CHARACTERS);
            report.warnings.push(format!("the earlier answer is replaced: {answer}"));
        }
        Ok(report)
    }
}

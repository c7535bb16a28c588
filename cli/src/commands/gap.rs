//! `forge gap`.

use crate::args::select::{ClaimListArgs, EntityShowArgs};
use crate::args::value::{self, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity::EntityListReport;
use crate::report::entity_write::EntityWriteReport;
use crate::session_reader::SessionReader;
use crate::session_writer::SessionWriter;
use crate::verb::{Verb, VerbResult, commands};
use crate::workspace::SessionNeed;
use forge_store::model::claim::Gap;
use forge_store::model::claim::{
    Criticality, Effort, FillStrategy, GapStatus, GapType, VocabularyWord,
};
use forge_store::model::{FieldMap, Kind, Value, rule};

/// The statuses of a gap that need no answer; `fill` records an answer.
const UNANSWERED: &[GapStatus] =
    &[GapStatus::Open, GapStatus::Filling, GapStatus::Unfillable, GapStatus::Obsolete];

/// Record open questions.
#[derive(Debug, clap::Subcommand)]
pub enum GapCommand {
    /// Add a gap
    Add(GapAddArgs),
    /// Fill a gap with what was found out
    Fill(GapFillArgs),
    /// Change fields of a gap
    Update(GapUpdateArgs),
    /// List gaps, the most critical first
    List(GapListArgs),
    /// Show one gap
    Show(EntityShowArgs<Gap>),
}

/// Fields of a gap beside its question.
#[derive(Debug, clap::Args)]
pub struct GapFieldArgs {
    /// Kind of gap
    #[arg(long = "type", value_name = "TYPE", value_parser = value::word_parser::<GapType>())]
    pub gap_type: Option<GapType>,

    /// How much depends on it
    #[arg(long, value_name = "CRITICALITY", value_parser = value::word_parser::<Criticality>())]
    pub criticality: Option<Criticality>,

    /// Hypotheses that it blocks, or 'all' or 'none'
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub blocking: Vec<String>,

    /// How it could be filled
    #[arg(long, value_name = "STRATEGY", value_parser = value::word_parser::<FillStrategy>())]
    pub fill_strategy: Option<FillStrategy>,

    /// How much work that is
    #[arg(long, value_name = "EFFORT", value_parser = value::word_parser::<Effort>())]
    pub effort: Option<Effort>,
}

/// Arguments of `forge gap add`.
#[derive(Debug, clap::Args)]
pub struct GapAddArgs {
    /// What is not known
    #[arg(value_name = "DESCRIPTION", value_parser = value::non_empty_text)]
    pub description: String,

    /// Id, instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<NameArg>,

    /// What else is known of it.
    #[command(flatten)]
    pub fields: GapFieldArgs,
}

/// Arguments of `forge gap fill`.
#[derive(Debug, clap::Args)]
pub struct GapFillArgs {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// What was found out
    #[arg(value_name = "RESOLUTION", value_parser = value::non_empty_text)]
    pub resolution: String,
}

/// Arguments of `forge gap update`.
#[derive(Debug, clap::Args)]
pub struct GapUpdateArgs {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// New description
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,

    /// Status of the work on it
    #[arg(long, value_name = "STATUS", value_parser = value::word_subset_parser(UNANSWERED))]
    pub status: Option<GapStatus>,

    /// Why nothing can fill it, or why it no longer matters
    #[arg(long, value_name = "TEXT")]
    pub resolution: Option<String>,

    /// What else is known of it.
    #[command(flatten)]
    pub fields: GapFieldArgs,
}

/// Arguments of `forge gap list`.
#[derive(Debug, clap::Args)]
pub struct GapListArgs {
    /// Only those with this status
    #[arg(long, value_name = "STATUS", value_parser = value::word_parser::<GapStatus>())]
    pub status: Option<GapStatus>,

    /// Where and how many.
    #[command(flatten)]
    pub list: ClaimListArgs<Gap>,
}

commands!(GapCommand: Add, Fill, Update, List, Show);

impl Verb for GapAddArgs {
    const NAME: &'static str = "gap add";
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn session_need(&self) -> SessionNeed {
        if blocked_hypotheses(&self.fields).is_empty() {
            SessionNeed::OrNew
        } else {
            SessionNeed::Existing
        }
    }

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let mut fields = field_values(writing, &self.fields)?;
        fields.insert("description".to_owned(), self.description.as_str().into());
        fields.insert("status".to_owned(), GapStatus::Open.word().into());
        let id = self.id.as_ref().map(NameArg::as_str);
        let (id, done) = writing.add_value(Kind::Gap, id, &Value::Map(fields))?;
        Ok(EntityWriteReport::new("Added", done).about_claim(Kind::Gap, id))
    }
}

/// The hypotheses that a gap blocks, as they were typed.
fn blocked_hypotheses(fields: &GapFieldArgs) -> &[String] {
    match fields.blocking.as_slice() {
        [word] if word == "all" || word == "none" => &[],
        names => names,
    }
}

fn field_values(writing: &SessionWriter, fields: &GapFieldArgs) -> Result<FieldMap, CommandError> {
    let blocking = match fields.blocking.as_slice() {
        [] => Value::Null,
        [word] if word == "all" => true.into(),
        [word] if word == "none" => false.into(),
        names => writing.claim_ids(Kind::Hypothesis, names)?.into(),
    };
    let values = Value::from([
        ("type", fields.gap_type.map(VocabularyWord::word).into()),
        ("criticality", fields.criticality.map(VocabularyWord::word).into()),
        ("blocking", blocking),
        ("fill_strategy", fields.fill_strategy.map(VocabularyWord::word).into()),
        ("effort", fields.effort.map(VocabularyWord::word).into()),
    ]);
    Ok(values.as_map().cloned().unwrap_or_default())
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

impl Verb for GapUpdateArgs {
    const NAME: &'static str = "gap update";
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let id = writing.claim_id(Kind::Gap, &self.id)?;
        let mut fields = field_values(writing, &self.fields)?;
        let more = [
            ("description", self.description.clone().into()),
            ("status", self.status.map(VocabularyWord::word).into()),
            ("resolution", self.resolution.clone().into()),
        ];
        if let Value::Map(more) = Value::from(more) {
            fields.extend(more);
        }
        let done = writing.update(Kind::Gap, &id, &Value::Map(fields), |_| ())?;
        Ok(EntityWriteReport::new("Updated", done).about_claim(Kind::Gap, id))
    }
}

impl Verb for GapListArgs {
    const NAME: &'static str = "gap list";
    type Opened = SessionReader;
    type Report = EntityListReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        let status = self.status.map(VocabularyWord::word);
        super::entity::list_claims(&self.list, reading, context, |value| {
            super::entity::has_word(value, "status", status, "open")
        })
    }
}

//! `forge gap`.

use crate::args::select::{ClaimList, Show};
use crate::args::value::{self, Name};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::written::Written;
use crate::workplace::Need;
use crate::writing::Writing;
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
    Add(AddArgs),
    /// Fill a gap with what was found out
    Fill(FillArgs),
    /// Change fields of a gap
    Update(UpdateArgs),
    /// List gaps, the most critical first
    List(ListArgs),
    /// Show one gap
    Show(Show),
}

/// Fields of a gap beside its question.
#[derive(Debug, clap::Args)]
pub struct GapFields {
    /// Kind of gap
    #[arg(long = "type", value_name = "TYPE", value_parser = value::words::<GapType>())]
    pub gap_type: Option<GapType>,

    /// How much depends on it
    #[arg(long, value_name = "CRITICALITY", value_parser = value::words::<Criticality>())]
    pub criticality: Option<Criticality>,

    /// Hypotheses that it blocks, or 'all' or 'none'
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub blocking: Vec<String>,

    /// How it could be filled
    #[arg(long, value_name = "STRATEGY", value_parser = value::words::<FillStrategy>())]
    pub fill_strategy: Option<FillStrategy>,

    /// How much work that is
    #[arg(long, value_name = "EFFORT", value_parser = value::words::<Effort>())]
    pub effort: Option<Effort>,
}

/// Arguments of `forge gap add`.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// What is not known
    #[arg(value_name = "DESCRIPTION", value_parser = value::said)]
    pub description: String,

    /// Id, instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<Name>,

    /// What else is known of it.
    #[command(flatten)]
    pub fields: GapFields,
}

/// Arguments of `forge gap fill`.
#[derive(Debug, clap::Args)]
pub struct FillArgs {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// What was found out
    #[arg(value_name = "RESOLUTION", value_parser = value::said)]
    pub resolution: String,
}

/// Arguments of `forge gap update`.
#[derive(Debug, clap::Args)]
pub struct UpdateArgs {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// New description
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,

    /// Status of the work on it
    #[arg(long, value_name = "STATUS", value_parser = value::words_of(UNANSWERED))]
    pub status: Option<GapStatus>,

    /// Why nothing can fill it, or why it no longer matters
    #[arg(long, value_name = "TEXT")]
    pub resolution: Option<String>,

    /// What else is known of it.
    #[command(flatten)]
    pub fields: GapFields,
}

/// Arguments of `forge gap list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Only those with this status
    #[arg(long, value_name = "STATUS", value_parser = value::words::<GapStatus>())]
    pub status: Option<GapStatus>,

    /// Where and how many.
    #[command(flatten)]
    pub list: ClaimList,
}

/// Runs `forge gap`.
pub fn run(command: &GapCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        GapCommand::Add(args) => add(args, context),
        GapCommand::Fill(args) => fill(args, context),
        GapCommand::Update(args) => update(args, context),
        GapCommand::List(args) => list(args, context),
        GapCommand::Show(args) => show(args, context),
    }
}

fn add(args: &AddArgs, context: &mut Context) -> Result<(), CommandError> {
    let need = if blocked(&args.fields).is_empty() { Need::OrNew } else { Need::Existing };
    let writing = Writing::begin(context, "gap add", need)?;
    let mut fields = values(&writing, &args.fields)?;
    fields.insert("description".to_owned(), args.description.as_str().into());
    fields.insert("status".to_owned(), GapStatus::Open.word().into());
    let id = args.id.as_ref().map(Name::as_str);
    let (id, done) = writing.add_value(Kind::Gap, id, &Value::Map(fields))?;
    context.out.emit(&Written::new("forge.gap.add/1", "Added", done).of(Kind::Gap, id))?;
    writing.finish();
    Ok(())
}

/// The hypotheses that a gap blocks, as they were typed.
fn blocked(fields: &GapFields) -> &[String] {
    match fields.blocking.as_slice() {
        [word] if word == "all" || word == "none" => &[],
        names => names,
    }
}

fn values(writing: &Writing, fields: &GapFields) -> Result<FieldMap, CommandError> {
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

fn fill(args: &FillArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = Writing::begin(context, "gap fill", Need::Existing)?;
    let id = writing.claim_id(Kind::Gap, &args.id)?;
    let done = writing.by_rule(|claims| rule::fill_gap(claims, &id, Some(&args.resolution)))?;
    context.out.emit(&Written::new("forge.gap.fill/1", "Filled", done).of(Kind::Gap, id))?;
    writing.finish();
    Ok(())
}

fn update(args: &UpdateArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = Writing::begin(context, "gap update", Need::Existing)?;
    let id = writing.claim_id(Kind::Gap, &args.id)?;
    let mut fields = values(&writing, &args.fields)?;
    let more = [
        ("description", args.description.clone().into()),
        ("status", args.status.map(VocabularyWord::word).into()),
        ("resolution", args.resolution.clone().into()),
    ];
    if let Value::Map(more) = Value::from(more) {
        fields.extend(more);
    }
    let done = writing.update(Kind::Gap, &id, &Value::Map(fields), |_| ())?;
    context.out.emit(&Written::new("forge.gap.update/1", "Updated", done).of(Kind::Gap, id))?;
    writing.finish();
    Ok(())
}

fn list(args: &ListArgs, context: &mut Context) -> Result<(), CommandError> {
    let status = args.status.map(VocabularyWord::word);
    super::entity::list_claims(Kind::Gap, &args.list, context, |value| {
        super::entity::has_word(value, "status", status, "open")
    })
}

fn show(args: &Show, context: &mut Context) -> Result<(), CommandError> {
    super::entity::show(Kind::Gap, args, context)
}

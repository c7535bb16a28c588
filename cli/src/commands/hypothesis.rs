//! `forge hypothesis`.

use crate::args::select::{ClaimList, Show};
use crate::args::value::{self, Name};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::written::Written;
use crate::workplace::Need;
use crate::writing::Writing;
use forge_store::model::claim::{HypothesisStatus, VocabularyWord};
use forge_store::model::{Key, Kind, Value, rule};

/// The statuses that do not settle a hypothesis; `confirm` and `reject` settle it, with their
/// consequences.
const UNSETTLED: &[HypothesisStatus] =
    &[HypothesisStatus::Active, HypothesisStatus::UnderTest, HypothesisStatus::Archived];

/// Add, test and settle hypotheses.
#[derive(Debug, clap::Subcommand)]
pub enum HypothesisCommand {
    /// Add a hypothesis
    Add(AddArgs),
    /// Change fields of a hypothesis
    Update(UpdateArgs),
    /// Confirm a hypothesis
    Confirm(SettleArgs),
    /// Reject a hypothesis, and its children with it
    Reject(SettleArgs),
    /// List hypotheses
    List(ListArgs),
    /// Show one hypothesis with its evidence
    Show(Show),
}

/// Arguments of `forge hypothesis add`.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// What might explain the problem
    #[arg(value_name = "DESCRIPTION", value_parser = value::said)]
    pub description: String,

    /// Id, instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<Name>,

    /// Confidence, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = value::share, allow_negative_numbers = true)]
    pub confidence: Option<f64>,

    /// Status of the work on it
    #[arg(long, value_name = "STATUS", value_parser = value::words_of(UNSETTLED))]
    pub status: Option<HypothesisStatus>,

    /// Hypothesis that it is a part of
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,

    /// Where it comes from
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,

    /// Tags
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub tags: Vec<Name>,
}

/// Arguments of `forge hypothesis update`.
#[derive(Debug, clap::Args)]
pub struct UpdateArgs {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// New description
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,

    /// Confidence, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = value::share, allow_negative_numbers = true)]
    pub confidence: Option<f64>,

    /// Status of the work on it
    #[arg(long, value_name = "STATUS", value_parser = value::words_of(UNSETTLED))]
    pub status: Option<HypothesisStatus>,

    /// Hypothesis that it is a part of
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,

    /// Tags to add
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub add_tags: Vec<Name>,

    /// Tags to remove
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub remove_tags: Vec<Name>,
}

/// Arguments of `forge hypothesis confirm` and `reject`.
#[derive(Debug, clap::Args)]
pub struct SettleArgs {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// Reason
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Arguments of `forge hypothesis list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Only those with this status
    #[arg(long, value_name = "STATUS", value_parser = value::words::<HypothesisStatus>())]
    pub status: Option<HypothesisStatus>,

    /// Only those with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<Name>,

    /// Where and how many.
    #[command(flatten)]
    pub list: ClaimList,
}

/// Runs `forge hypothesis`.
pub fn run(command: &HypothesisCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        HypothesisCommand::Add(args) => add(args, context),
        HypothesisCommand::Update(args) => update(args, context),
        HypothesisCommand::Confirm(args) => confirm(args, context),
        HypothesisCommand::Reject(args) => reject(args, context),
        HypothesisCommand::List(args) => list(args, context),
        HypothesisCommand::Show(args) => show(args, context),
    }
}

fn add(args: &AddArgs, context: &mut Context) -> Result<(), CommandError> {
    let need = if args.parent.is_some() { Need::Existing } else { Need::OrNew };
    let writing = Writing::begin(context, "hypothesis add", need)?;
    let parent =
        args.parent.as_ref().map(|id| writing.claim_id(Kind::Hypothesis, id)).transpose()?;
    let value = Value::from([
        ("description", args.description.as_str().into()),
        ("confidence", args.confidence.into()),
        ("status", args.status.unwrap_or(HypothesisStatus::Active).word().into()),
        ("parent", parent.into()),
        ("source", args.source.clone().into()),
        ("tags", words(&args.tags)),
    ]);
    let id = args.id.as_ref().map(Name::as_str);
    let (id, done) = writing.add_value(Kind::Hypothesis, id, &value)?;
    let report = Written::new("forge.hypothesis.add/1", "Added", done).of(Kind::Hypothesis, id);
    context.out.emit(&report)?;
    writing.finish();
    Ok(())
}

/// Names as a list; null if there are none.
fn words(names: &[Name]) -> Value {
    match names {
        [] => Value::Null,
        names => names.iter().map(Name::as_str).collect::<Vec<_>>().into(),
    }
}

/// Adds and removes tags of a hypothesis.
fn retag(value: &mut Value, args: &UpdateArgs) {
    if args.add_tags.is_empty() && args.remove_tags.is_empty() {
        return;
    }
    let old = value.field("tags").and_then(Value::as_list).unwrap_or_default();
    let mut tags: Vec<String> = old.iter().filter_map(Value::as_text).map(str::to_owned).collect();
    tags.retain(|tag| !args.remove_tags.iter().any(|removed| removed.as_str() == tag));
    for tag in &args.add_tags {
        if !tags.iter().any(|known| known == tag.as_str()) {
            tags.push(tag.as_str().to_owned());
        }
    }
    if let Value::Map(fields) = value {
        fields.insert("tags".to_owned(), tags.into());
    }
}

/// Refuses a hypothesis as a part of itself, or of one of its own parts.
fn refuse_circle(writing: &Writing, id: &str, parent: &str) -> Result<(), CommandError> {
    let head = writing.session.head()?;
    let mut way = vec![id.to_owned()];
    let mut next = Some(parent.to_owned());
    while let Some(here) = next {
        let closed = here == id;
        if way[1..].contains(&here) {
            break;
        }
        way.push(here.clone());
        if closed {
            let way = way.join(" -> ");
            return Err(CommandError::invalid(format!("a circle of parents: {way}"))
                .hinted("name another parent"));
        }
        let above = writing.session.claim(&head, &Key::new(Kind::Hypothesis, here))?;
        next = above.and_then(|entry| {
            entry.value.field("parent").and_then(Value::as_text).map(str::to_owned)
        });
    }
    Ok(())
}

fn update(args: &UpdateArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = Writing::begin(context, "hypothesis update", Need::Existing)?;
    let id = writing.claim_id(Kind::Hypothesis, &args.id)?;
    let parent =
        args.parent.as_ref().map(|id| writing.claim_id(Kind::Hypothesis, id)).transpose()?;
    if let Some(parent) = &parent {
        refuse_circle(&writing, &id, parent)?;
    }
    let fields = Value::from([
        ("description", args.description.clone().into()),
        ("confidence", args.confidence.into()),
        ("status", args.status.map(VocabularyWord::word).into()),
        ("parent", parent.into()),
    ]);
    let done = writing.update(Kind::Hypothesis, &id, &fields, |value| retag(value, args))?;
    let report = Written::new("forge.hypothesis.update/1", "Updated", done);
    context.out.emit(&report.of(Kind::Hypothesis, id))?;
    writing.finish();
    Ok(())
}

fn confirm(args: &SettleArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = Writing::begin(context, "hypothesis confirm", Need::Existing)?;
    let id = writing.claim_id(Kind::Hypothesis, &args.id)?;
    let done =
        writing.by_rule(|claims| rule::confirm_hypothesis(claims, &id, args.reason.as_deref()))?;
    let report = Written::new("forge.hypothesis.confirm/1", "Confirmed", done);
    context.out.emit(&report.of(Kind::Hypothesis, id))?;
    writing.finish();
    Ok(())
}

fn reject(args: &SettleArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = Writing::begin(context, "hypothesis reject", Need::Existing)?;
    let id = writing.claim_id(Kind::Hypothesis, &args.id)?;
    let done =
        writing.by_rule(|claims| rule::reject_hypothesis(claims, &id, args.reason.as_deref()))?;
    let report = Written::new("forge.hypothesis.reject/1", "Rejected", done);
    context.out.emit(&report.of(Kind::Hypothesis, id))?;
    writing.finish();
    Ok(())
}

fn list(args: &ListArgs, context: &mut Context) -> Result<(), CommandError> {
    let status = args.status.map(VocabularyWord::word);
    let tag = args.tag.as_ref().map(Name::as_str);
    super::entity::list_claims(Kind::Hypothesis, &args.list, context, |value| {
        super::entity::has_word(value, "status", status, "active")
            && super::entity::has_tag(value, tag)
    })
}

fn show(args: &Show, context: &mut Context) -> Result<(), CommandError> {
    super::entity::show(Kind::Hypothesis, args, context)
}

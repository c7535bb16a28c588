//! `forge hypothesis`.

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
use forge_store::model::claim::Hypothesis;
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
    Add(HypothesisAddArgs),
    /// Change fields of a hypothesis
    Update(HypothesisUpdateArgs),
    /// Confirm a hypothesis
    Confirm(HypothesisSettleArgs<true>),
    /// Reject a hypothesis, and its children with it
    Reject(HypothesisSettleArgs<false>),
    /// List hypotheses
    List(HypothesisListArgs),
    /// Show one hypothesis with its evidence
    Show(EntityShowArgs<Hypothesis>),
}

/// Arguments of `forge hypothesis add`.
#[derive(Debug, clap::Args)]
pub struct HypothesisAddArgs {
    /// What might explain the problem
    #[arg(value_name = "DESCRIPTION", value_parser = value::non_empty_text)]
    pub description: String,

    /// Id, instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<NameArg>,

    /// Confidence, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = value::parse_share, allow_negative_numbers = true)]
    pub confidence: Option<f64>,

    /// Status of the work on it
    #[arg(long, value_name = "STATUS", value_parser = value::word_subset_parser(UNSETTLED))]
    pub status: Option<HypothesisStatus>,

    /// Hypothesis that it is a part of
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,

    /// Where it comes from
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,

    /// Tags
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub tags: Vec<NameArg>,
}

/// Arguments of `forge hypothesis update`.
#[derive(Debug, clap::Args)]
pub struct HypothesisUpdateArgs {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// New description
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,

    /// Confidence, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = value::parse_share, allow_negative_numbers = true)]
    pub confidence: Option<f64>,

    /// Status of the work on it
    #[arg(long, value_name = "STATUS", value_parser = value::word_subset_parser(UNSETTLED))]
    pub status: Option<HypothesisStatus>,

    /// Hypothesis that it is a part of
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,

    /// Tags to add
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub add_tags: Vec<NameArg>,

    /// Tags to remove
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub remove_tags: Vec<NameArg>,
}

/// Arguments of `forge hypothesis confirm` and `reject`.
#[derive(Debug, clap::Args)]
pub struct HypothesisSettleArgs<const CONFIRMS: bool> {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// Reason
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Arguments of `forge hypothesis list`.
#[derive(Debug, clap::Args)]
pub struct HypothesisListArgs {
    /// Only those with this status
    #[arg(long, value_name = "STATUS", value_parser = value::word_parser::<HypothesisStatus>())]
    pub status: Option<HypothesisStatus>,

    /// Only those with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<NameArg>,

    /// Where and how many.
    #[command(flatten)]
    pub list: ClaimListArgs<Hypothesis>,
}

commands!(HypothesisCommand: Add, Update, Confirm, Reject, List, Show);

impl Verb for HypothesisAddArgs {
    const NAME: &'static str = "hypothesis add";
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn session_need(&self) -> SessionNeed {
        if self.parent.is_some() { SessionNeed::Existing } else { SessionNeed::OrNew }
    }

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let parent =
            self.parent.as_ref().map(|id| writing.claim_id(Kind::Hypothesis, id)).transpose()?;
        let value = Value::from([
            ("description", self.description.as_str().into()),
            ("confidence", self.confidence.into()),
            ("status", self.status.unwrap_or(HypothesisStatus::Active).word().into()),
            ("parent", parent.into()),
            ("source", self.source.clone().into()),
            ("tags", name_list(&self.tags)),
        ]);
        let id = self.id.as_ref().map(NameArg::as_str);
        let (id, done) = writing.add_value(Kind::Hypothesis, id, &value)?;
        let report = EntityWriteReport::new("Added", done).about_claim(Kind::Hypothesis, id);
        Ok(report)
    }
}

/// Names as a list; null if there are none.
fn name_list(names: &[NameArg]) -> Value {
    match names {
        [] => Value::Null,
        names => names.iter().map(NameArg::as_str).collect::<Vec<_>>().into(),
    }
}

/// Adds and removes tags of a hypothesis.
fn change_tags(value: &mut Value, args: &HypothesisUpdateArgs) {
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
fn refuse_cycle(writing: &SessionWriter, id: &str, parent: &str) -> Result<(), CommandError> {
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

impl Verb for HypothesisUpdateArgs {
    const NAME: &'static str = "hypothesis update";
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let id = writing.claim_id(Kind::Hypothesis, &self.id)?;
        let parent =
            self.parent.as_ref().map(|id| writing.claim_id(Kind::Hypothesis, id)).transpose()?;
        if let Some(parent) = &parent {
            refuse_cycle(writing, &id, parent)?;
        }
        let fields = Value::from([
            ("description", self.description.clone().into()),
            ("confidence", self.confidence.into()),
            ("status", self.status.map(VocabularyWord::word).into()),
            ("parent", parent.into()),
        ]);
        let done =
            writing.update(Kind::Hypothesis, &id, &fields, |value| change_tags(value, self))?;
        let report = EntityWriteReport::new("Updated", done);
        Ok(report.about_claim(Kind::Hypothesis, id))
    }
}

impl<const CONFIRMS: bool> Verb for HypothesisSettleArgs<CONFIRMS> {
    const NAME: &'static str = if CONFIRMS { "hypothesis confirm" } else { "hypothesis reject" };
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let id = writing.claim_id(Kind::Hypothesis, &self.id)?;
        let reason = self.reason.as_deref();
        let done = writing.write_rule(|claims| {
            if CONFIRMS {
                rule::confirm_hypothesis(claims, &id, reason)
            } else {
                rule::reject_hypothesis(claims, &id, reason)
            }
        })?;
        let report = EntityWriteReport::new(if CONFIRMS { "Confirmed" } else { "Rejected" }, done);
        Ok(report.about_claim(Kind::Hypothesis, id))
    }
}

impl Verb for HypothesisListArgs {
    const NAME: &'static str = "hypothesis list";
    type Opened = SessionReader;
    type Report = EntityListReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        let status = self.status.map(VocabularyWord::word);
        let tag = self.tag.as_ref().map(NameArg::as_str);
        super::entity::list_claims(&self.list, reading, context, |value| {
            super::entity::has_word(value, "status", status, "active")
                && super::entity::has_tag(value, tag)
        })
    }
}

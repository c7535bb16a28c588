//! `forge inference` lists, promotes and dismisses the statements that rules found in messages.

use crate::args::select::{EntityShowArgs, FactListArgs};
use crate::args::value::NameArg;
use crate::context::Context;
use crate::error::CommandError;
use crate::id_match;
use crate::report::entity::EntityListReport;
use crate::report::entity_write::EntityWriteReport;
use crate::session_reader::SessionReader;
use crate::session_writer::SessionWriter;
use crate::verb::{Verb, VerbResult, commands};
use forge_store::model::claim::Inference;
use forge_store::model::{Fact, FactOrigin, Kind, Timestamp, Value};

/// List what rules found in messages, promote it or dismiss it.
#[derive(Debug, clap::Subcommand)]
pub enum InferenceCommand {
    /// List open inferences, oldest first
    List(InferenceListArgs),
    /// Show an inference with all its fields
    Show(EntityShowArgs<Inference>),
    /// Add the hypothesis, belief or gap that an inference states
    Promote(InferencePromoteArgs),
    /// Dismiss an inference
    Dismiss(InferenceDismissArgs),
}

#[derive(Debug, clap::Args)]
pub struct InferenceListArgs {
    #[command(flatten)]
    pub select: FactListArgs<Inference>,

    /// Only dismissed ones
    #[arg(long)]
    pub dismissed: bool,

    /// Only promoted ones
    #[arg(long, conflicts_with = "dismissed")]
    pub promoted: bool,

    /// List all of them
    #[arg(long, conflicts_with_all = ["dismissed", "promoted"])]
    pub all: bool,
}

#[derive(Debug, clap::Args)]
pub struct InferencePromoteArgs {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub inference: String,

    /// Id of the claim
    #[arg(long, value_name = "ID")]
    pub id: Option<NameArg>,
}

#[derive(Debug, clap::Args)]
pub struct InferenceDismissArgs {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub inference: String,

    /// Reason
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

commands!(InferenceCommand: List, Show, Promote, Dismiss);

impl Verb for InferenceListArgs {
    const NAME: &'static str = "inference list";
    type Opened = SessionReader;
    type Report = EntityListReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        let wanted = (self.dismissed, self.promoted);
        super::entity::list_facts(&self.select, reading, context, |value| {
            let is = |field| value.field(field).is_some();
            let is_promoted = is(PROMOTED);
            // An inference can be promoted after it was dismissed.
            self.all || (is(DISMISSED) && !is_promoted, is_promoted) == wanted
        })
    }
}

/// The field that an inference has after it was dismissed.
const DISMISSED: &str = "dismissed";
/// The field with the id of the claim that an inference was promoted to.
const PROMOTED: &str = "promoted";

/// Finds the inference with this id, or the only one whose id begins with this prefix.
fn find_inference(writing: &SessionWriter, name: &str) -> Result<Fact, CommandError> {
    let state = writing.session.state(&writing.session.head()?)?;
    let facts: Vec<Fact> =
        state.facts_of(Kind::Inference)?.into_iter().map(|known| known.fact).collect();
    let ids = facts.iter().map(|fact| fact.id.clone());
    let id = id_match::match_id(Kind::Inference, name, ids)?;
    Ok(facts.into_iter().find(|fact| fact.id == id).expect("the id is one of these facts' ids"))
}

/// Returns an error with this hint if the inference was promoted.
fn check_not_promoted(fact: &Fact, hint: &str) -> Result<(), CommandError> {
    let Some(claim) = fact.value.field(PROMOTED).and_then(Value::as_text) else { return Ok(()) };
    let what = format!("'{}' was already promoted to claim '{claim}'", fact.id);
    Err(CommandError::invalid(what).hinted(hint))
}

impl Verb for InferencePromoteArgs {
    const NAME: &'static str = "inference promote";
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn run(&self, writing: &SessionWriter, context: &mut Context) -> VerbResult<Self> {
        let fact = find_inference(writing, &self.inference)?;
        let hint = format!("'{} inference list' lists the open inferences", context.forge());
        check_not_promoted(&fact, &hint)?;
        let stated = fact.value.field("found").and_then(|found| found.field("kind"));
        let kind = stated.and_then(Value::as_text).and_then(|kind| kind.parse::<Kind>().ok());
        let Some(kind) = kind.filter(|kind| kind.is_claim()) else {
            return Err(CommandError::invalid(format!(
                "'{}' does not say which kind of claim it states",
                fact.id
            ))
            .hinted("add the claim with 'forge hypothesis add', 'belief add' or 'gap add'"));
        };
        let value = Value::from([
            ("description", fact.value.field("description").cloned().unwrap_or_default()),
            ("kind", if kind == Kind::Belief { "inference".into() } else { Value::Null }),
            ("source", format!("inference:{}", fact.id).into()),
        ]);
        let id = self.id.as_ref().map(NameArg::as_str);
        let promoted = |id: &str| new_version(&fact, context.now, [(PROMOTED, id.into())]);
        let (id, done) = writing.add_value(kind, id, &value, |id| Some(promoted(id)))?;
        Ok(EntityWriteReport::new("Added", done).about_claim(kind, id))
    }
}

impl Verb for InferenceDismissArgs {
    const NAME: &'static str = "inference dismiss";
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn run(&self, writing: &SessionWriter, context: &mut Context) -> VerbResult<Self> {
        let fact = find_inference(writing, &self.inference)?;
        let hint = format!("correct the claim instead; '{} show ID' shows it", context.forge());
        check_not_promoted(&fact, &hint)?;
        let reason = Value::from(self.reason.clone());
        let fact = new_version(&fact, context.now, [(DISMISSED, true.into()), ("reason", reason)]);
        let id = fact.id.clone();
        let done = writing.write_fact(fact, None)?;
        Ok(EntityWriteReport::new("Dismissed", done).about_claim(Kind::Inference, id))
    }
}

/// Creates a new version of a fact with these fields in addition. A null field is left out.
fn new_version<const N: usize>(fact: &Fact, now: Timestamp, fields: [(&str, Value); N]) -> Fact {
    let mut fact =
        Fact { at: now, recorded_at: now, origin: FactOrigin::Recorded, place: 0, ..fact.clone() };
    if let Value::Map(known) = &mut fact.value {
        let added = fields.into_iter().filter(|(_, value)| *value != Value::Null);
        known.extend(added.map(|(name, value)| (name.to_owned(), value)));
    }
    fact
}

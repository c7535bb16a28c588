//! `forge hypothesis`.

use super::claim::{ClaimAddArgs, ClaimUpdateArgs, RecordedClaim};
use crate::args::select::{ClaimListArgs, EntityShowArgs, Timed};
use crate::args::value;
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity_write::EntityWriteReport;
use crate::session_writer::SessionWriter;
use crate::verb::{Verb, VerbResult, commands};
use forge_store::model::claim::Hypothesis;
use forge_store::model::{FieldMap, Key, Kind, Value, rule};

/// Add, test and settle hypotheses.
#[derive(Debug, clap::Subcommand)]
pub enum HypothesisCommand {
    /// Add a hypothesis
    Add(Timed<ClaimAddArgs<Hypothesis>>),
    /// Change fields of a hypothesis
    Update(Timed<ClaimUpdateArgs<Hypothesis>>),
    /// Confirm a hypothesis
    Confirm(Timed<HypothesisSettleArgs<true>>),
    /// Reject a hypothesis, and its children with it
    Reject(Timed<HypothesisSettleArgs<false>>),
    /// List hypotheses
    List(ClaimListArgs<Hypothesis>),
    /// Show one hypothesis with its evidence
    Show(EntityShowArgs<Hypothesis>),
}

commands!(HypothesisCommand: Add, Update, Confirm, Reject, List, Show);

impl RecordedClaim for Hypothesis {
    fn check_change(
        writing: &SessionWriter,
        id: &str,
        fields: &FieldMap,
    ) -> Result<(), CommandError> {
        let parent = fields.get("parent").and_then(Value::as_text);
        let Some(parent) = parent else { return Ok(()) };
        match writing.session.parent_cycle(id, parent)? {
            None => Ok(()),
            Some(path) => {
                let path = path.join(" -> ");
                Err(CommandError::invalid(format!("a cycle of parents: {path}"))
                    .hinted("name another parent"))
            }
        }
    }

    fn change(fields: &mut FieldMap, changed: &FieldMap) {
        let texts = |value: Option<&Value>| -> Vec<String> {
            let list = value.and_then(Value::as_list).unwrap_or_default();
            list.iter().filter_map(Value::as_text).map(str::to_owned).collect()
        };
        let mut changed = changed.clone();
        let (added, removed) = (changed.remove("add_tags"), changed.remove("remove_tags"));
        if added.is_some() || removed.is_some() {
            let mut tags = texts(fields.get("tags"));
            let removed = texts(removed.as_ref());
            tags.retain(|tag| !removed.contains(tag));
            for tag in texts(added.as_ref()) {
                if !tags.contains(&tag) {
                    tags.push(tag);
                }
            }
            changed.insert("tags".to_owned(), tags.into());
        }
        rule::change_fields(Kind::Hypothesis, fields, changed);
    }
}

#[derive(Debug, clap::Args)]
pub struct HypothesisSettleArgs<const CONFIRMS: bool> {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// Reason
    #[arg(short = 'm', long, value_name = "TEXT", value_parser = value::non_empty_text)]
    pub reason: Option<String>,
}

/// Warns if a hypothesis was confirmed although its confidence is less than 0.5.
fn note_low_confidence(
    writing: &SessionWriter,
    id: &str,
    context: &Context,
) -> Result<(), CommandError> {
    let claim = writing.session.claim(&writing.session.head()?, &Key::new(Kind::Hypothesis, id))?;
    let confidence = claim.and_then(|claim| claim.value.field("confidence")?.as_f64());
    if let Some(confidence) = confidence.filter(|confidence| *confidence < 0.5) {
        context.out.warn(&format!(
            "{id} is confirmed with a confidence of {confidence:.2}: '{} evidence add TEXT -H \
             {id} -s strong' records what settled it",
            context.forge()
        ));
    }
    Ok(())
}

impl<const CONFIRMS: bool> Verb for HypothesisSettleArgs<CONFIRMS> {
    const NAME: &'static str = if CONFIRMS { "hypothesis confirm" } else { "hypothesis reject" };
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn run(&self, writing: &SessionWriter, context: &mut Context) -> VerbResult<Self> {
        let id = writing.claim_id(Kind::Hypothesis, &self.id)?;
        let reason = self.reason.as_deref();
        let done = writing.write_rule(|claims| {
            if CONFIRMS {
                rule::confirm_hypothesis(claims, &id, reason)
            } else {
                rule::reject_hypothesis(claims, &id, reason)
            }
        })?;
        if CONFIRMS {
            note_low_confidence(writing, &id, context)?;
        }
        let report = EntityWriteReport::new(if CONFIRMS { "Confirmed" } else { "Rejected" }, done);
        Ok(report.about_claim(Kind::Hypothesis, id))
    }
}

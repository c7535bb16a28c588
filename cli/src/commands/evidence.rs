//! `forge evidence`.

use crate::args::select::{ClaimListArgs, EntityShowArgs};
use crate::args::value::{self, NameArg};
use crate::context::Context;
use crate::report::entity::EntityListReport;
use crate::report::entity_write::EntityWriteReport;
use crate::session_reader::SessionReader;
use crate::session_writer::SessionWriter;
use crate::verb::{Verb, VerbResult, commands};
use forge_store::model::claim::Evidence;
use forge_store::model::claim::{EvidenceKind, VocabularyWord};
use forge_store::model::{Kind, Value, rule};

/// Record evidence for or against a hypothesis.
#[derive(Debug, clap::Subcommand)]
pub enum EvidenceCommand {
    /// Record evidence; the confidence of its hypothesis follows
    Add(EvidenceAddArgs),
    /// List evidence
    List(EvidenceListArgs),
    /// Show one piece of evidence
    Show(EntityShowArgs<Evidence>),
}

/// Arguments of `forge evidence add`.
#[derive(Debug, clap::Args)]
pub struct EvidenceAddArgs {
    /// What was observed
    #[arg(value_name = "DESCRIPTION", value_parser = value::non_empty_text)]
    pub description: String,

    /// Hypothesis that it is about
    #[arg(long, value_name = "ID")]
    pub hypothesis: String,

    /// Strength for the hypothesis, from -1 (refutes) to 1 (proves)
    #[arg(
        long,
        value_name = "STRENGTH",
        value_parser = value::parse_strength,
        allow_negative_numbers = true
    )]
    pub strength: f64,

    /// Kind of evidence
    #[arg(long, value_name = "KIND", value_parser = value::word_parser::<EvidenceKind>())]
    pub kind: Option<EvidenceKind>,

    /// Source: a file and line, a command, a document
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,

    /// Id, instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<NameArg>,
}

/// Arguments of `forge evidence list`.
#[derive(Debug, clap::Args)]
pub struct EvidenceListArgs {
    /// Only those about this hypothesis
    #[arg(long, value_name = "ID")]
    pub hypothesis: Option<String>,

    /// Where and how many.
    #[command(flatten)]
    pub list: ClaimListArgs<Evidence>,
}

commands!(EvidenceCommand: Add, List, Show);

impl Verb for EvidenceAddArgs {
    const NAME: &'static str = "evidence add";
    type Opened = SessionWriter;
    type Report = EntityWriteReport;

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let hypothesis = writing.claim_id(Kind::Hypothesis, &self.hypothesis)?;
        let value = Value::from([
            ("description", self.description.as_str().into()),
            ("hypothesis", hypothesis.into()),
            ("strength", self.strength.into()),
            ("kind", self.kind.map(VocabularyWord::word).into()),
            ("source", self.source.clone().into()),
        ]);
        let (id, done) = writing.add_by_rule(
            Kind::Evidence,
            self.id.as_ref().map(NameArg::as_str),
            |claims, id| rule::add_evidence(claims, id, &value),
        )?;
        let report = EntityWriteReport::new("Added", done).about_claim(Kind::Evidence, id);
        Ok(report)
    }
}

impl Verb for EvidenceListArgs {
    const NAME: &'static str = "evidence list";
    type Opened = SessionReader;
    type Report = EntityListReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        let hypothesis = self.hypothesis.as_deref();
        super::entity::list_claims(&self.list, reading, context, |value| {
            super::entity::has_word(value, "hypothesis", hypothesis, "")
        })
    }
}

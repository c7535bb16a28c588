//! `forge evidence`.

use crate::args::select::{ClaimListArgs, EntityShowArgs};
use crate::args::value::{self, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity_write::EntityWriteReport;
use crate::session_writer::SessionWriter;
use crate::workspace::SessionNeed;
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
    Show(EntityShowArgs),
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
    pub list: ClaimListArgs,
}

/// Runs `forge evidence`.
pub fn run(command: &EvidenceCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        EvidenceCommand::Add(args) => add(args, context),
        EvidenceCommand::List(args) => list(args, context),
        EvidenceCommand::Show(args) => show(args, context),
    }
}

fn add(args: &EvidenceAddArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = SessionWriter::begin(context, "evidence add", SessionNeed::Existing)?;
    let hypothesis = writing.claim_id(Kind::Hypothesis, &args.hypothesis)?;
    let value = Value::from([
        ("description", args.description.as_str().into()),
        ("hypothesis", hypothesis.into()),
        ("strength", args.strength.into()),
        ("kind", args.kind.map(VocabularyWord::word).into()),
        ("source", args.source.clone().into()),
    ]);
    let (id, done) = writing.add_by_rule(
        Kind::Evidence,
        args.id.as_ref().map(NameArg::as_str),
        |claims, id| rule::add_evidence(claims, id, &value),
    )?;
    let report = EntityWriteReport::new("forge.evidence.add/1", "Added", done)
        .about_claim(Kind::Evidence, id);
    context.out.emit(&report)?;
    writing.finish();
    Ok(())
}

fn list(args: &EvidenceListArgs, context: &mut Context) -> Result<(), CommandError> {
    let hypothesis = args.hypothesis.as_deref();
    super::entity::list_claims(Kind::Evidence, &args.list, context, |value| {
        super::entity::has_word(value, "hypothesis", hypothesis, "")
    })
}

fn show(args: &EntityShowArgs, context: &mut Context) -> Result<(), CommandError> {
    super::entity::show(Kind::Evidence, args, context)
}

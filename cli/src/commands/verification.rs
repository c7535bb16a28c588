//! `forge verification`.

use crate::args::select::{EntityShowArgs, FactListArgs};
use crate::args::value::{self, MomentArg, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity_write::EntityWriteReport;
use crate::session_writer::{SessionWriter, new_fact, past_time};
use crate::workspace::SessionNeed;
use forge_store::model::claim::{VerificationStatus, VocabularyWord};
use forge_store::model::{AutoTrigger, Kind, Value};
use std::time::Duration;

/// Record results of tests, builds and checks.
#[derive(Debug, clap::Subcommand)]
pub enum VerificationCommand {
    /// Record a result
    Add(VerificationAddArgs),
    /// List results, oldest first
    List(VerificationListArgs),
    /// Show one result
    Show(EntityShowArgs),
}

/// Arguments of `forge verification add`.
#[derive(Debug, clap::Args)]
pub struct VerificationAddArgs {
    /// What was checked
    #[arg(value_name = "NAME", value_parser = value::non_empty_text)]
    pub name: String,

    /// How it ended
    #[arg(long, value_name = "STATUS", value_parser = value::word_parser::<VerificationStatus>())]
    pub status: VerificationStatus,

    /// Command that checked it
    #[arg(long, value_name = "COMMAND")]
    pub command: Option<String>,

    /// How long it took
    #[arg(long, value_name = "DURATION", value_parser = value::parse_duration)]
    pub duration: Option<Duration>,

    /// Text of its output
    #[arg(long, value_name = "TEXT")]
    pub output: Option<String>,

    /// Exit code of that command
    #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
    pub exit_code: Option<i64>,

    /// What it means
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,

    /// Where it comes from
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,

    /// When it ended; now by default
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,

    /// Id, instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<NameArg>,
}

/// Arguments of `forge verification list`.
#[derive(Debug, clap::Args)]
pub struct VerificationListArgs {
    /// Only those with this status
    #[arg(long, value_name = "STATUS", value_parser = value::word_parser::<VerificationStatus>())]
    pub status: Option<VerificationStatus>,

    /// When and how many.
    #[command(flatten)]
    pub list: FactListArgs,
}

/// Runs `forge verification`.
pub fn run(command: &VerificationCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        VerificationCommand::Add(args) => add(args, context),
        VerificationCommand::List(args) => list(args, context),
        VerificationCommand::Show(args) => show(args, context),
    }
}

fn add(args: &VerificationAddArgs, context: &mut Context) -> Result<(), CommandError> {
    let at = past_time(context, args.at.as_ref())?;
    let writing = SessionWriter::begin(context, "verification add", SessionNeed::OrNew)?;
    let value = Value::from([
        ("name", args.name.as_str().into()),
        ("status", args.status.word().into()),
        ("command", args.command.clone().into()),
        ("duration_ms", args.duration.map(milliseconds).into()),
        ("output", args.output.clone().into()),
        ("exit_code", args.exit_code.into()),
        ("description", args.description.clone().into()),
        ("source", args.source.clone().into()),
    ]);
    let at = at.resolved(context, &writing.session)?;
    let id = args.id.as_ref().map(NameArg::as_str);
    let fact = new_fact(Kind::Verification, id, at, context.now, value)?;
    writing.refuse_taken_id(&fact, id)?;
    let done = writing.write_fact(fact.clone(), Some(AutoTrigger::VerificationComplete))?;
    let report = EntityWriteReport::new("forge.verification.add/1", "Added", done);
    context.out.emit(&report.about_fact(fact))?;
    writing.finish();
    Ok(())
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn list(args: &VerificationListArgs, context: &mut Context) -> Result<(), CommandError> {
    let status = args.status.map(VocabularyWord::word);
    super::entity::list_facts(Kind::Verification, &args.list, context, |value| {
        super::entity::has_word(value, "status", status, "unknown")
    })
}

fn show(args: &EntityShowArgs, context: &mut Context) -> Result<(), CommandError> {
    super::entity::show(Kind::Verification, args, context)
}

//! `forge measurement`.

use crate::args::select::{EntityShowArgs, FactListArgs};
use crate::args::value::{self, MomentArg, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity_write::EntityWriteReport;
use crate::session_writer::{SessionWriter, new_fact, past_time};
use crate::workspace::SessionNeed;
use forge_store::model::Kind;
use forge_store::model::Value;

/// Record measured values.
#[derive(Debug, clap::Subcommand)]
pub enum MeasurementCommand {
    /// Record a value
    Record(MeasurementRecordArgs),
    /// List values, oldest first
    List(MeasurementListArgs),
    /// Show one value
    Show(EntityShowArgs),
}

/// Arguments of `forge measurement record`.
#[derive(Debug, clap::Args)]
pub struct MeasurementRecordArgs {
    /// What was measured
    #[arg(value_name = "NAME")]
    pub name: NameArg,

    /// Value: a number, 'true', 'false' or a text
    #[arg(value_name = "VALUE", value_parser = value::parse_scalar, allow_negative_numbers = true)]
    pub value: Value,

    /// Unit
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<NameArg>,

    /// Where it comes from
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,

    /// When it was measured; now by default
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,
}

/// Arguments of `forge measurement list`.
#[derive(Debug, clap::Args)]
pub struct MeasurementListArgs {
    /// Only those with this name
    #[arg(long, value_name = "NAME")]
    pub name: Option<NameArg>,

    /// When and how many.
    #[command(flatten)]
    pub list: FactListArgs,
}

/// Runs `forge measurement`.
pub fn run(command: &MeasurementCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        MeasurementCommand::Record(args) => record(args, context),
        MeasurementCommand::List(args) => list(args, context),
        MeasurementCommand::Show(args) => show(args, context),
    }
}

fn record(args: &MeasurementRecordArgs, context: &mut Context) -> Result<(), CommandError> {
    let at = past_time(context, args.at.as_ref())?;
    let writing = SessionWriter::begin(context, "measurement record", SessionNeed::OrNew)?;
    let value = Value::from([
        ("name", args.name.as_str().into()),
        ("value", args.value.clone()),
        ("unit", args.unit.as_ref().map(NameArg::as_str).into()),
        ("source", args.source.clone().into()),
    ]);
    let at = at.resolved(context, &writing.session)?;
    let fact = new_fact(Kind::Measurement, None, at, context.now, value)?;
    let done = writing.write_fact(fact.clone(), None)?;
    let report = EntityWriteReport::new("forge.measurement.record/1", "Recorded", done);
    context.out.emit(&report.about_fact(fact))?;
    writing.finish();
    Ok(())
}

fn list(args: &MeasurementListArgs, context: &mut Context) -> Result<(), CommandError> {
    let name = args.name.as_ref().map(NameArg::as_str);
    super::entity::list_facts(Kind::Measurement, &args.list, context, |value| {
        super::entity::has_word(value, "name", name, "")
    })
}

fn show(args: &EntityShowArgs, context: &mut Context) -> Result<(), CommandError> {
    super::entity::show(Kind::Measurement, args, context)
}

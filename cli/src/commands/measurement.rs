//! `forge measurement`.

use crate::args::select::{FactList, Show};
use crate::args::value::{self, Moment, Name};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::written::Written;
use crate::workplace::Need;
use crate::writing::{Writing, new_fact, past_time};
use forge_store::model::Kind;
use forge_store::model::Value;

/// Record measured values.
#[derive(Debug, clap::Subcommand)]
pub enum MeasurementCommand {
    /// Record a value
    Record(RecordArgs),
    /// List values, oldest first
    List(ListArgs),
    /// Show one value
    Show(Show),
}

/// Arguments of `forge measurement record`.
#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// What was measured
    #[arg(value_name = "NAME")]
    pub name: Name,

    /// Value: a number, 'true', 'false' or a text
    #[arg(value_name = "VALUE", value_parser = value::scalar, allow_negative_numbers = true)]
    pub value: Value,

    /// Unit
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<Name>,

    /// Where it comes from
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,

    /// When it was measured; now by default
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,
}

/// Arguments of `forge measurement list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Only those with this name
    #[arg(long, value_name = "NAME")]
    pub name: Option<Name>,

    /// When and how many.
    #[command(flatten)]
    pub list: FactList,
}

/// Runs `forge measurement`.
pub fn run(command: &MeasurementCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        MeasurementCommand::Record(args) => record(args, context),
        MeasurementCommand::List(args) => list(args, context),
        MeasurementCommand::Show(args) => show(args, context),
    }
}

fn record(args: &RecordArgs, context: &mut Context) -> Result<(), CommandError> {
    let at = past_time(context, args.at.as_ref())?;
    let writing = Writing::begin(context, "measurement record", Need::OrNew)?;
    let value = Value::from([
        ("name", args.name.as_str().into()),
        ("value", args.value.clone()),
        ("unit", args.unit.as_ref().map(Name::as_str).into()),
        ("source", args.source.clone().into()),
    ]);
    let at = at.resolved(context, &writing.session)?;
    let fact = new_fact(Kind::Measurement, None, at, context.now, value)?;
    let done = writing.fact(fact.clone(), None)?;
    let report = Written::new("forge.measurement.record/1", "Recorded", done);
    context.out.emit(&report.of_fact(fact))?;
    writing.finish();
    Ok(())
}

fn list(args: &ListArgs, context: &mut Context) -> Result<(), CommandError> {
    let name = args.name.as_ref().map(Name::as_str);
    super::entity::list_facts(Kind::Measurement, &args.list, context, |value| {
        super::entity::has_word(value, "name", name, "")
    })
}

fn show(args: &Show, context: &mut Context) -> Result<(), CommandError> {
    super::entity::show(Kind::Measurement, args, context)
}

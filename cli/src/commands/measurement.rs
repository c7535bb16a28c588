//! `forge measurement`.

use crate::args::select::{FactList, Show};
use crate::args::value::{self, Moment, Name};
use crate::context::Context;
use crate::error::CommandError;
use forge_store::model::Value;

/// Record named values.
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
    /// Say what was measured
    #[arg(value_name = "NAME")]
    pub name: Name,

    /// Say what came out: a number, 'true', 'false' or a text
    #[arg(value_name = "VALUE", value_parser = value::scalar, allow_negative_numbers = true)]
    pub value: Value,

    /// Say in which unit
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<Name>,

    /// Say where it comes from
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,

    /// Say when it was measured, if not now
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,
}

/// Arguments of `forge measurement list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// List those of this name
    #[arg(long, value_name = "NAME")]
    pub name: Option<Name>,

    /// When and how many.
    #[command(flatten)]
    pub list: FactList,
}

/// Does it.
pub fn run(command: &MeasurementCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        MeasurementCommand::Record(args) => record(args, context),
        MeasurementCommand::List(args) => list(args, context),
        MeasurementCommand::Show(args) => show(args, context),
    }
}

fn record(_args: &RecordArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn list(_args: &ListArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn show(_args: &Show, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

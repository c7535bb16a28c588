//! `forge measurement`.

use crate::args::select::{EntityShowArgs, FactListArgs};
use crate::args::value::{self, MomentArg, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity_write::EntityWriteReport;
use crate::session_writer::{SessionWriter, new_fact, past_time};
use crate::verb::{Verb, VerbResult, commands};
use crate::workspace::SessionNeed;
use forge_store::model::claim::Measurement;
use forge_store::model::{Kind, Value};

/// Record measured values.
#[derive(Debug, clap::Subcommand)]
pub enum MeasurementCommand {
    /// Record a value
    Record(MeasurementRecordArgs),
    /// List values, oldest first
    List(FactListArgs<Measurement>),
    /// Show one value
    Show(EntityShowArgs<Measurement>),
}

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

commands!(MeasurementCommand: Record, List, Show);

impl Verb for MeasurementRecordArgs {
    const NAME: &'static str = "measurement record";
    type Opened = SessionWriter;
    type Report = EntityWriteReport;
    const SESSION: SessionNeed = SessionNeed::OrNew;

    fn check(&self, context: &Context) -> Result<(), CommandError> {
        context.check_moment(self.at.as_ref())
    }

    fn run(&self, writing: &SessionWriter, context: &mut Context) -> VerbResult<Self> {
        let value = Value::from([
            ("name", self.name.as_str().into()),
            ("value", self.value.clone()),
            ("unit", self.unit.as_ref().map(NameArg::as_str).into()),
            ("source", self.source.clone().into()),
        ]);
        let at = past_time(context, &writing.session, self.at.as_ref())?;
        let fact = new_fact(Kind::Measurement, None, at, context.now, value)?;
        let done = writing.write_fact(fact.clone(), None)?;
        Ok(EntityWriteReport::new("Recorded", done).about_fact(fact))
    }
}

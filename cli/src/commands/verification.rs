//! `forge verification`.

use crate::args::select::{EntityShowArgs, FactListArgs};
use crate::args::value::{self, MomentArg, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity_write::EntityWriteReport;
use crate::session_writer::{SessionWriter, new_fact, past_time};
use crate::verb::{Verb, VerbResult, commands};
use crate::workspace::SessionNeed;
use forge_store::model::claim::{VerificationResult, VerificationStatus, VocabularyWord};
use forge_store::model::{AutoTrigger, Kind, Value};
use std::time::Duration;

/// Record results of tests, builds and checks.
#[derive(Debug, clap::Subcommand)]
pub enum VerificationCommand {
    /// Record a result
    Add(VerificationAddArgs),
    /// List results, oldest first
    List(FactListArgs<VerificationResult>),
    /// Show one result
    Show(EntityShowArgs<VerificationResult>),
}

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

commands!(VerificationCommand: Add, List, Show);

impl Verb for VerificationAddArgs {
    const NAME: &'static str = "verification add";
    type Opened = SessionWriter;
    type Report = EntityWriteReport;
    const SESSION: SessionNeed = SessionNeed::OrNew;

    fn check(&self, context: &Context) -> Result<(), CommandError> {
        context.check_moment(self.at.as_ref())
    }

    fn run(&self, writing: &SessionWriter, context: &mut Context) -> VerbResult<Self> {
        let value = Value::from([
            ("name", self.name.as_str().into()),
            ("status", self.status.word().into()),
            ("command", self.command.clone().into()),
            ("duration_ms", self.duration.map(milliseconds).into()),
            ("output", self.output.clone().into()),
            ("exit_code", self.exit_code.into()),
            ("description", self.description.clone().into()),
            ("source", self.source.clone().into()),
        ]);
        let at = past_time(context, &writing.session, self.at.as_ref())?;
        let id = self.id.as_ref().map(NameArg::as_str);
        let fact = new_fact(Kind::Verification, id, at, context.now, value)?;
        writing.refuse_taken_id(&fact, id)?;
        let done = writing.write_fact(fact.clone(), Some(AutoTrigger::VerificationComplete))?;
        let mut report = EntityWriteReport::new("Added", done).about_fact(fact);
        if self.status == VerificationStatus::Passed
            && let Some(code) = self.exit_code.filter(|code| *code != 0)
        {
            report.warnings.push(format!(
                "it is recorded as passed, but its command exited with {code}; if that is wrong, \
                 record it again with the right status"
            ));
        }
        Ok(report)
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

//! `forge check`.

use super::command::record_command;
use crate::child_process::FinishedCommand;
use crate::context::Context;
use crate::report::entity_write::EntityWriteReport;
use crate::session_writer::SessionWriter;
use crate::verb::{Verb, VerbResult};
use crate::workspace::SessionNeed;
use forge_store::model::FieldMap;
use forge_store::model::claim::{CommandOutcome, VerificationStatus, VocabularyWord};
use std::ffi::OsString;

#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// What is checked
    #[arg(value_name = "NAME", value_parser = crate::args::value::non_empty_text)]
    pub name: String,

    /// Program that checks it, with its arguments; it passes with exit code 0
    #[arg(value_name = "COMMAND", required = true, last = true, num_args = 1..)]
    pub command: Vec<OsString>,
}

impl Verb for CheckArgs {
    const NAME: &'static str = "check";
    type Opened = SessionWriter;
    type Report = Option<EntityWriteReport>;
    const SESSION: SessionNeed = SessionNeed::OrNew;

    fn run(&self, writing: &SessionWriter, context: &mut Context) -> VerbResult<Self> {
        record_command(&self.command, writing, context, |ran, mut recognised| {
            // If exactly one check was recognised in the command line, its other fields are kept.
            let mut fields =
                if recognised.len() == 1 { recognised.remove(0) } else { FieldMap::new() };
            fields.insert("name".to_owned(), self.name.as_str().into());
            fields.insert("status".to_owned(), verification_status(ran).word().into());
            vec![fields]
        })
    }
}

fn verification_status(ran: &FinishedCommand) -> VerificationStatus {
    match (ran.exit_code, ran.outcome) {
        (Some(0), _) => VerificationStatus::Passed,
        (Some(_), _) => VerificationStatus::Failed,
        (None, CommandOutcome::TimedOut) => VerificationStatus::TimedOut,
        (None, _) => VerificationStatus::Error,
    }
}

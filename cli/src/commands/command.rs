//! `forge command`.

use crate::args::select::{EntityShowArgs, FactListArgs};
use crate::child_process::{command_line, run_child};
use crate::context::Context;
use crate::report::entity::EntityListReport;
use crate::report::entity_write::EntityWriteReport;
use crate::session_reader::SessionReader;
use crate::session_writer::{SessionWriter, new_fact};
use crate::verb::{Verb, VerbResult, commands};
use crate::workspace::SessionNeed;
use forge_store::model::claim::ExecutedCommand;
use forge_store::model::claim::VocabularyWord;
use forge_store::model::{Kind, Value};
use std::ffi::OsString;

/// Run commands and record how they end.
#[derive(Debug, clap::Subcommand)]
pub enum CommandCommand {
    /// Run a command, record it, pass its output through, and exit with its code
    Record(CommandRecordArgs),
    /// List commands, oldest first
    List(CommandListArgs),
    /// Show one command with its output
    Show(EntityShowArgs<ExecutedCommand>),
}

#[derive(Debug, clap::Args)]
pub struct CommandRecordArgs {
    /// Program to run, with its arguments
    #[arg(value_name = "COMMAND", required = true, last = true, num_args = 1..)]
    pub command: Vec<OsString>,
}

#[derive(Debug, clap::Args)]
pub struct CommandListArgs {
    /// Only those that did not end with exit code 0
    #[arg(long)]
    pub failed: bool,

    /// When and how many.
    #[command(flatten)]
    pub list: FactListArgs<ExecutedCommand>,
}

commands!(CommandCommand: Record, List, Show);

impl Verb for CommandRecordArgs {
    const NAME: &'static str = "command record";
    type Opened = SessionWriter;
    type Report = Option<EntityWriteReport>;
    const SESSION: SessionNeed = SessionNeed::OrNew;

    fn run(&self, writing: &SessionWriter, context: &mut Context) -> VerbResult<Self> {
        // Problems of the store are reported before anything is run.
        let ran = run_child(&self.command, &context.cwd, context.global.json);
        let after =
            |micros: u128| context.now.plus_micros(i64::try_from(micros).unwrap_or(i64::MAX));
        let end = after(ran.took.as_micros());
        let redactor = crate::workspace::redactor(context);
        let value = Value::from([
            ("command", command_line(&self.command).into()),
            ("working_dir", context.cwd.to_string_lossy().as_ref().into()),
            ("exit_code", ran.exit_code.map(i64::from).into()),
            ("outcome", ran.outcome.word().into()),
            ("stdout_preview", ran.stdout.text(redactor.as_ref()).into()),
            ("stderr_preview", ran.stderr.text(redactor.as_ref()).into()),
            ("reason", ran.reason.clone().into()),
            ("called_at", context.now.to_string().into()),
            ("duration_ms", u64::try_from(ran.took.as_millis()).unwrap_or(u64::MAX).into()),
        ]);
        context.exit_code = ran.shell_code();
        if let Some(reason) = &ran.reason {
            context.out.warn(reason);
        }
        let writing = writing.at(end);
        let recorded = new_fact(Kind::Command, None, end, end, value).and_then(|fact| {
            let done = writing.write_fact(fact.clone(), None)?;
            Ok(EntityWriteReport::new("Recorded", done).about_fact(fact))
        });
        match recorded {
            Ok(report) if context.global.json => return Ok(Some(report)),
            Ok(report) => context.out.print_status(&report.line()),
            // Callers use the command's own exit code, so it has priority unless it reports success.
            Err(error) if context.exit_code == 0 => {
                return Err(error.with_context("the command ended well, but could not be recorded"));
            }
            Err(error) => {
                let causes = error.causes().into_iter().map(|cause| format!(": {cause}"));
                let causes: String = causes.collect();
                context.out.warn(&format!("the command could not be recorded: {error}{causes}"));
            }
        }
        Ok(None)
    }
}

impl Verb for CommandListArgs {
    const NAME: &'static str = "command list";
    type Opened = SessionReader;
    type Report = EntityListReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        let failed = |value: &Value| value.field("exit_code").and_then(Value::as_i64) != Some(0);
        super::entity::list_facts(&self.list, reading, context, |value| {
            !self.failed || failed(value)
        })
    }
}

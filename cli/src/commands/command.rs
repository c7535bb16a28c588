//! `forge command`.

use crate::args::select::{EntityShowArgs, FactListArgs};
use crate::args::value::to_micros;
use crate::child_process::{FinishedCommand, command_line, run_child};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity::EntityListReport;
use crate::report::entity_write::{ChangedEntity, EntityWriteReport};
use crate::session_reader::SessionReader;
use crate::session_writer::{SessionWriter, new_fact};
use crate::verb::{Verb, VerbResult, commands};
use crate::workspace::SessionNeed;
use forge_agents::FinishedLine;
use forge_store::model::claim::{ExecutedCommand, VocabularyWord};
use forge_store::model::{AutoTrigger, Fact, FieldMap, Kind, Value};
use std::ffi::OsString;

/// Run commands and record how they end.
#[derive(Debug, clap::Subcommand)]
pub enum CommandCommand {
    /// Run a command, record it and the checks in it, and exit with its code
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
        record_command(&self.command, writing, context, |_, checks| checks)
    }
}

/// Runs a command and records it, with the checks in it. `select` gets the finished command and the
/// verifications that were recognised in it, and returns those to record.
pub fn record_command(
    command: &[OsString],
    writing: &SessionWriter,
    context: &mut Context,
    select: impl FnOnce(&FinishedCommand, Vec<FieldMap>) -> Vec<FieldMap>,
) -> Result<Option<EntityWriteReport>, CommandError> {
    // The store is open, so its problems were reported before the command is run.
    let ran = run_child(command, &context.cwd, context.global.json);
    context.exit_code = ran.shell_code();
    if let Some(reason) = &ran.reason {
        context.out.warn(reason);
    }
    match write_command(command, &ran, writing, context, select) {
        Ok(report) if context.global.json => return Ok(Some(report)),
        Ok(report) => context.out.print_status(&report.line()),
        // Callers use the exit code of the command, so a failure of the command has priority.
        Err(error) if context.exit_code == 0 => {
            return Err(error.with_context("the command ended well, but could not be recorded"));
        }
        Err(error) => {
            let error = error.message_with_causes();
            context.out.warn(&format!("the command could not be recorded: {error}"));
        }
    }
    Ok(None)
}

fn write_command(
    command: &[OsString],
    ran: &FinishedCommand,
    writing: &SessionWriter,
    context: &Context,
    select: impl FnOnce(&FinishedCommand, Vec<FieldMap>) -> Vec<FieldMap>,
) -> Result<EntityWriteReport, CommandError> {
    let end = context.now.plus_micros(to_micros(ran.took));
    let redactor = crate::workspace::redactor(context);
    let line = command_line(command);
    let (stdout, stderr) = (ran.stdout.text(redactor.as_ref()), ran.stderr.text(redactor.as_ref()));
    let output = [stdout.as_deref(), stderr.as_deref()].map(Option::unwrap_or_default).join("\n");
    let exit_code = ran.exit_code.map(i64::from);
    let checks = forge_agents::checks_of(&FinishedLine {
        line: &line,
        working_dir: &context.cwd.to_string_lossy(),
        outcome: ran.outcome.word(),
        exit_code,
        output: &output,
    });
    let value = Value::from([
        ("command", line.as_str().into()),
        ("working_dir", context.cwd.to_string_lossy().as_ref().into()),
        ("exit_code", exit_code.into()),
        ("outcome", ran.outcome.word().into()),
        ("stdout_preview", stdout.into()),
        ("stderr_preview", stderr.into()),
        ("reason", ran.reason.clone().into()),
        ("called_at", context.now.to_string().into()),
        ("duration_ms", u64::try_from(ran.took.as_millis()).unwrap_or(u64::MAX).into()),
    ]);
    let writing = writing.at(end);
    let fact = new_fact(Kind::Command, None, end, end, value)?;
    let checks = select(ran, checks).into_iter().map(|mut fields| {
        fields.insert("command".to_owned(), line.as_str().into());
        fields.insert("exit_code".to_owned(), exit_code.into());
        fields.insert("source".to_owned(), format!("command:{}", fact.id).into());
        new_fact(Kind::Verification, None, end, end, Value::Map(fields).without_nulls())
    });
    let checks: Vec<Fact> = checks.collect::<Result<_, _>>()?;
    let event = (!checks.is_empty()).then_some(AutoTrigger::VerificationComplete);
    let facts = std::iter::once(fact.clone()).chain(checks.iter().cloned());
    let done = writing.write_facts(facts, event)?;
    let mut report = EntityWriteReport::new("Recorded", done).about_fact(fact);
    report.changed.extend(checks.into_iter().map(ChangedEntity::from));
    Ok(report)
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

//! `forge code`.

use crate::args::select::{EntityShowArgs, FactListArgs};
use crate::context::Context;
use crate::error::CommandError;
use crate::git::{self, process::GitTimeLimit};
use crate::report::entity_write::EntityWriteReport;
use crate::session_writer::{SessionWriter, new_fact};
use crate::workspace::{self, SessionNeed};
use forge_store::model::{AutoTrigger, Kind, Value};

/// Record the state of the source code.
#[derive(Debug, clap::Subcommand)]
pub enum CodeCommand {
    /// Record the commit and the uncommitted changes of this checkout
    Capture(CodeCaptureArgs),
    /// List edits and captured states, oldest first
    List(FactListArgs),
    /// Show one edit or captured state with its patch
    Show(EntityShowArgs),
}

/// Arguments of `forge code capture`.
#[derive(Debug, clap::Args)]
pub struct CodeCaptureArgs {
    /// Message that describes the state
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,

    /// Also record environment variables: those that 'redact.variables' and forge's own list name
    #[arg(long)]
    pub env: bool,
}

/// Runs `forge code`.
pub fn run(command: &CodeCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        CodeCommand::Capture(args) => capture(args, context),
        CodeCommand::List(args) => list(args, context),
        CodeCommand::Show(args) => show(args, context),
    }
}

fn capture(args: &CodeCaptureArgs, context: &mut Context) -> Result<(), CommandError> {
    // Both are checked before a session is started.
    let store = context.store_directory()?;
    let captured = git::capture_checkout(&context.cwd, &store, GitTimeLimit::Each(git::PATIENCE))?;
    let writing = SessionWriter::begin(context, "code capture", SessionNeed::OrNew)?;
    let mut value = captured.value(args.message.as_deref());
    if let (true, Value::Map(fields)) = (args.env, &mut value) {
        fields.insert("env_vars".to_owned(), variables(context));
    }
    let fact = new_fact(Kind::Code, None, context.now, context.now, value)?;
    let is_modified = !captured.is_clean();
    let done =
        writing.write_fact(fact.clone(), is_modified.then_some(AutoTrigger::CodeModified))?;
    let mut report = EntityWriteReport::new("forge.code.capture/1", "Captured", done);
    report.warnings.extend(
        captured
            .left_out
            .iter()
            .map(|path| format!("the changes of '{path}' are too large to be kept")),
    );
    if !captured.unfiltered.is_empty() {
        report.warnings.push(git::UNFILTERED.to_owned());
    }
    context.out.emit(&report.about_fact(fact))?;
    writing.finish();
    Ok(())
}

/// The environment variables that may be stored.
fn variables(context: &Context) -> Value {
    let redactor = workspace::redactor(context).unwrap_or_default();
    let kept = context.environment.texts().filter(|(name, _)| redactor.keeps_variable(name));
    Value::Map(kept.map(|(name, value)| (name.to_owned(), value.into())).collect())
}

fn list(args: &FactListArgs, context: &mut Context) -> Result<(), CommandError> {
    super::entity::list_facts(Kind::Code, args, context, |_| true)
}

fn show(args: &EntityShowArgs, context: &mut Context) -> Result<(), CommandError> {
    super::entity::show(Kind::Code, args, context)
}

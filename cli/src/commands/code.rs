//! `forge code`.

use crate::args::select::{EntityShowArgs, FactListArgs};
use crate::context::Context;
use crate::error::CommandError;
use crate::git::{self, CapturedCheckout, process::GitTimeLimit};
use crate::report::entity_write::EntityWriteReport;
use crate::session_writer::{SessionWriter, new_fact};
use crate::verb::{Opened, Verb, VerbResult, commands};
use crate::workspace::{self, SessionNeed};
use forge_store::model::claim::CodeState;
use forge_store::model::{AutoTrigger, Kind, Value};

/// Record the state of the source code.
#[derive(Debug, clap::Subcommand)]
pub enum CodeCommand {
    /// Record the commit and the uncommitted changes of this checkout
    Capture(CodeCaptureArgs),
    /// List edits and captured states, oldest first
    List(FactListArgs<CodeState>),
    /// Show one edit or captured state with its patch
    Show(EntityShowArgs<CodeState>),
}

#[derive(Debug, clap::Args)]
pub struct CodeCaptureArgs {
    /// Message that describes the state
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,

    /// Also record environment variables: those that 'redact.variables' and forge's own list name
    #[arg(long)]
    pub env: bool,
}

commands!(CodeCommand: Capture, List, Show);

/// The captured state of a checkout, and the session to write it to. The state is captured first,
/// so that a failure begins no session.
pub struct CapturedSession {
    captured: CapturedCheckout,
    writing: SessionWriter,
}

impl Opened for CapturedSession {
    fn open<V: Verb>(verb: &V, context: &Context) -> Result<Self, CommandError> {
        let store = context.store_directory()?;
        let limit = GitTimeLimit::Each(git::PATIENCE);
        let captured = git::capture_checkout(&context.cwd, &store, limit)?;
        Ok(Self { captured, writing: SessionWriter::open(verb, context)? })
    }

    fn finish(&self, context: &Context) {
        self.writing.finish(context);
    }
}

impl Verb for CodeCaptureArgs {
    const NAME: &'static str = "code capture";
    type Opened = CapturedSession;
    type Report = EntityWriteReport;
    const SESSION: SessionNeed = SessionNeed::OrNew;

    fn run(&self, opened: &CapturedSession, context: &mut Context) -> VerbResult<Self> {
        let CapturedSession { captured, writing } = opened;
        let mut value = captured.value(self.message.as_deref());
        if let (true, Value::Map(fields)) = (self.env, &mut value) {
            fields.insert("env_vars".to_owned(), variables(context));
        }
        let fact = new_fact(Kind::Code, None, context.now, context.now, value)?;
        let is_modified = !captured.is_clean();
        let done =
            writing.write_fact(fact.clone(), is_modified.then_some(AutoTrigger::CodeModified))?;
        let mut report = EntityWriteReport::new("Captured", done);
        report.warnings.extend(
            captured
                .left_out
                .iter()
                .map(|path| format!("the changes of '{path}' are too large to be kept")),
        );
        if !captured.unfiltered.is_empty() {
            report.warnings.push(git::UNFILTERED.to_owned());
        }
        Ok(report.about_fact(fact))
    }
}

/// Returns the environment variables that may be stored.
fn variables(context: &Context) -> Value {
    let redactor = workspace::redactor(context).unwrap_or_default();
    let kept = context.environment.texts().filter(|(name, _)| redactor.keeps_variable(name));
    Value::Map(kept.map(|(name, value)| (name.to_owned(), value.into())).collect())
}

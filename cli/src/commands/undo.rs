//! `forge undo`.

use crate::context::Context;
use crate::error::CommandError;
use crate::report::undo::OperationUndoReport;
use crate::session_writer::SessionWriter;
use crate::verb::{Verb, VerbResult};
use forge_store::error::Error;
use forge_store::store::OperationSummary;

#[derive(Debug, clap::Args)]
pub struct UndoArgs {
    /// Id of the operation, or a unique prefix; the last one by default
    #[arg(value_name = "OP")]
    pub operation: Option<String>,
}

impl Verb for UndoArgs {
    const NAME: &'static str = "undo";
    type Opened = SessionWriter;
    type Report = OperationUndoReport;

    fn run(&self, writing: &SessionWriter, context: &mut Context) -> VerbResult<Self> {
        let undone = writing.session.undo(&writing.write_context, self.operation.as_deref());
        let undone = undone.map_err(|error| undo_error(error, context))?;
        if let Some(OperationSummary { verb, id, .. }) = &undone.passed {
            let id = id.short();
            let text = format!("'{verb}' {id} cannot be undone: one before it was undone instead");
            context.out.warn(&text);
        }
        OperationUndoReport::new("Undid", &writing.session, undone)
    }
}

#[derive(Debug, clap::Args)]
pub struct RedoArgs {}

impl Verb for RedoArgs {
    const NAME: &'static str = "redo";
    type Opened = SessionWriter;
    type Report = OperationUndoReport;

    fn run(&self, writing: &SessionWriter, context: &mut Context) -> VerbResult<Self> {
        let undone = writing.session.redo(&writing.write_context);
        let undone = undone.map_err(|error| undo_error(error, context))?;
        OperationUndoReport::new("Did again", &writing.session, undone)
    }
}

/// Adds a hint to the error of an operation that was not found.
fn undo_error(error: Error, context: &Context) -> CommandError {
    let hint = format!("'{} log --operations' names what was done", context.forge());
    match error {
        Error::NotFound { .. } | Error::NothingToUndo | Error::NothingToRedo => {
            CommandError::from(error).hinted(hint)
        }
        other => other.into(),
    }
}

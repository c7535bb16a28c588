//! `forge undo`.

use crate::context::Context;
use crate::error::CommandError;
use crate::report::undo::OperationUndoReport;
use crate::session_writer::SessionWriter;
use crate::verb::{Verb, VerbResult};
use forge_store::error::Error;

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

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let undone =
            writing.session.undo(&writing.write_context, self.operation.as_deref()).map_err(
                |error| undo_error(error, self.operation.is_none(), "there is nothing to undo"),
            )?;
        OperationUndoReport::new("Undid", &writing.session, undone)
    }
}

#[derive(Debug, clap::Args)]
pub struct RedoArgs {}

impl Verb for RedoArgs {
    const NAME: &'static str = "redo";
    type Opened = SessionWriter;
    type Report = OperationUndoReport;

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let nothing = "there is nothing to do again: the last thing done was not an undo";
        let undone = writing.session.redo(&writing.write_context);
        let undone = undone.map_err(|error| undo_error(error, true, nothing))?;
        OperationUndoReport::new("Did again", &writing.session, undone)
    }
}

/// Adds a hint to the error of an operation that was not found. If no operation was named, the
/// message of the error becomes `message`.
fn undo_error(error: Error, is_unnamed: bool, message: &str) -> CommandError {
    let hint = "'forge log --operations' names what was done";
    match error {
        Error::NotFound { .. } if is_unnamed => CommandError::not_found(message).hinted(hint),
        error @ Error::NotFound { .. } => CommandError::from(error).hinted(hint),
        other => other.into(),
    }
}

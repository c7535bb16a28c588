//! `forge undo`.

use crate::context::Context;
use crate::error::CommandError;
use crate::report::undo::OperationUndoReport;
use crate::session_writer::SessionWriter;
use crate::workspace::SessionNeed;
use forge_store::error::Error;

/// Arguments of `forge undo`.
#[derive(Debug, clap::Args)]
pub struct UndoArgs {
    /// Id of the operation, or a unique prefix; the last one by default
    #[arg(value_name = "OP")]
    pub operation: Option<String>,
}

/// Undoes an operation.
pub fn run(args: &UndoArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = SessionWriter::begin(context, "undo", SessionNeed::Existing)?;
    let undone =
        writing.session.undo(&writing.act, args.operation.as_deref()).map_err(|error| {
            nothing_to_undo(error, args.operation.is_none(), "there is nothing to undo")
        })?;
    let report = OperationUndoReport::new("forge.undo/1", "Undid", &writing.session, undone)?;
    context.out.emit(&report)?;
    writing.finish();
    Ok(())
}

/// Redoes the last undo.
pub fn redo(context: &mut Context) -> Result<(), CommandError> {
    let writing = SessionWriter::begin(context, "redo", SessionNeed::Existing)?;
    let undone = writing.session.redo(&writing.act).map_err(|error| {
        nothing_to_undo(
            error,
            true,
            "there is nothing to do again: the last thing done was no undo",
        )
    })?;
    let report = OperationUndoReport::new("forge.redo/1", "Did again", &writing.session, undone)?;
    context.out.emit(&report)?;
    writing.finish();
    Ok(())
}

/// Reports in a sentence that there was nothing to undo or redo; if an operation was named, the
/// error stays.
fn nothing_to_undo(error: Error, is_unnamed: bool, message: &str) -> CommandError {
    let hint = "'forge log --operations' names what was done";
    match error {
        Error::NotFound { .. } if is_unnamed => CommandError::not_found(message).hinted(hint),
        error @ Error::NotFound { .. } => CommandError::from(error).hinted(hint),
        other => other.into(),
    }
}

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
    /// Name the operation by its id or a unique prefix of it; the last one if left out
    #[arg(value_name = "OP")]
    pub operation: Option<String>,
}

/// Takes an operation back.
pub fn run(args: &UndoArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = SessionWriter::begin(context, "undo", SessionNeed::Existing)?;
    let undone =
        writing.session.undo(&writing.act, args.operation.as_deref()).map_err(|error| {
            nothing_to_undo(
                error,
                args.operation.is_none(),
                "nothing has been done that could be taken back",
            )
        })?;
    let report = OperationUndoReport::new("forge.undo/1", "Took back", &writing.session, undone)?;
    context.out.emit(&report)?;
    writing.finish();
    Ok(())
}

/// Takes the last undo back.
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

/// Says in a sentence that there was nothing of what was asked for; an operation that was named has its own error.
fn nothing_to_undo(error: Error, is_unnamed: bool, message: &str) -> CommandError {
    let hint = "'forge log --operations' names what was done";
    match error {
        Error::NotFound { .. } if is_unnamed => CommandError::not_found(message).hinted(hint),
        error @ Error::NotFound { .. } => CommandError::from(error).hinted(hint),
        other => other.into(),
    }
}

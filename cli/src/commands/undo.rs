//! `forge undo`.

use crate::context::Context;
use crate::error::CommandError;
use crate::report::undo::Undone;
use crate::workplace::Need;
use crate::writing::Writing;
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
    let writing = Writing::begin(context, "undo", Need::Existing)?;
    let undone = writing
        .session
        .undo(&writing.act, args.operation.as_deref())
        .map_err(|error| nothing(error, args.operation.is_none(), "there is nothing to undo"))?;
    let report = Undone::new("forge.undo/1", "Undid", &writing.session, undone)?;
    context.out.emit(&report)?;
    writing.finish();
    Ok(())
}

/// Redoes the last undo.
pub fn redo(context: &mut Context) -> Result<(), CommandError> {
    let writing = Writing::begin(context, "redo", Need::Existing)?;
    let undone = writing.session.redo(&writing.act).map_err(|error| {
        nothing(error, true, "there is nothing to do again: the last thing done was no undo")
    })?;
    let report = Undone::new("forge.redo/1", "Did again", &writing.session, undone)?;
    context.out.emit(&report)?;
    writing.finish();
    Ok(())
}

/// Reports in a sentence that there was nothing to undo or redo; if an operation was named, the
/// error stays.
fn nothing(error: Error, is_unnamed: bool, message: &str) -> CommandError {
    let hint = "'forge log --operations' names what was done";
    match error {
        Error::NotFound { .. } if is_unnamed => CommandError::not_found(message).hinted(hint),
        error @ Error::NotFound { .. } => CommandError::from(error).hinted(hint),
        other => other.into(),
    }
}

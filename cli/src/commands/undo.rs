//! `forge undo`.

use crate::context::Context;
use crate::error::CommandError;
use crate::report::undo::Undone;
use crate::workplace::Need;
use crate::writing::Writing;

/// Arguments of `forge undo`.
#[derive(Debug, clap::Args)]
pub struct UndoArgs {
    /// Name the operation by its id or a unique prefix of it; the last one if left out
    #[arg(value_name = "OP")]
    pub operation: Option<String>,
}

/// Takes an operation back.
pub fn run(args: &UndoArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = Writing::begin(context, "undo", Need::Existing)?;
    let undone = writing.session.undo(&writing.act, args.operation.as_deref())?;
    let report = Undone::new("forge.undo/1", "Took back", &writing.session, undone)?;
    context.out.emit(&report)?;
    writing.finish();
    Ok(())
}

/// Takes the last undo back.
pub fn redo(context: &mut Context) -> Result<(), CommandError> {
    let writing = Writing::begin(context, "redo", Need::Existing)?;
    let undone = writing.session.redo(&writing.act)?;
    let report = Undone::new("forge.redo/1", "Did again", &writing.session, undone)?;
    context.out.emit(&report)?;
    writing.finish();
    Ok(())
}

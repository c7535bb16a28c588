//! `forge undo`.

use crate::context::Context;
use crate::error::CommandError;

/// Arguments of `forge undo`.
#[derive(Debug, clap::Args)]
pub struct UndoArgs {
    /// Name the operation by its id or a unique prefix of it; the last one if left out
    #[arg(value_name = "OP")]
    pub operation: Option<String>,
}

/// Does it.
pub fn run(_args: &UndoArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

/// Takes back the last undo.
pub fn redo(_context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

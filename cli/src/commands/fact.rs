//! `forge task`, `message`, `prompt`, `agent`, `inference`: facts that only imports and hooks record.

use crate::args::select::FactCommand;
use crate::context::Context;
use crate::error::CommandError;
use forge_store::model::Kind;

/// Does it.
pub fn run(
    _kind: Kind,
    _command: &FactCommand,
    _context: &mut Context,
) -> Result<(), CommandError> {
    Err(super::unwritten())
}

//! `forge import events`.

use super::EventsArgs;
use crate::context::Context;
use crate::error::CommandError;

/// Does it.
pub(super) fn run(_args: &EventsArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(crate::commands::unwritten())
}

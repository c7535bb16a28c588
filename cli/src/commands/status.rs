//! `forge status`.

use crate::context::Context;
use crate::error::CommandError;

/// Does it.
pub fn run(_context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

//! `forge init`.

use crate::args::value::Name;
use crate::context::Context;
use crate::error::CommandError;
use std::path::PathBuf;

/// Arguments of `forge init`.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Make the store for the project in this directory instead of this one
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,

    /// Begin a session of this name at once
    #[arg(long, value_name = "NAME")]
    pub name: Option<Name>,

    /// Import what the agent has recorded here so far, without asking
    #[arg(long)]
    pub import: bool,
}

/// Does it.
pub fn run(_args: &InitArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

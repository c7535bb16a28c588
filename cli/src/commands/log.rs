//! `forge log`.

use crate::args::value::{EntityName, Moment, Name};
use crate::context::Context;
use crate::error::CommandError;

/// Arguments of `forge log`.
#[derive(Debug, clap::Args)]
pub struct LogArgs {
    /// Show the changes of this entity only
    #[arg(value_name = "ENTITY")]
    pub entity: Option<EntityName>,

    /// Show the changes on this branch instead of the current one
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub branch: Option<Name>,

    /// Show the changes on all branches
    #[arg(long)]
    pub all: bool,

    /// Show changes at this moment or later
    #[arg(long, value_name = "T")]
    pub since: Option<Moment>,

    /// Show changes at this moment or earlier
    #[arg(long, value_name = "T")]
    pub until: Option<Moment>,

    /// Show operations, by the ids that 'forge undo' takes
    #[arg(long, conflicts_with_all = ["entity", "branch"])]
    pub operations: bool,

    /// Show at most this many
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// Does it.
pub fn run(_args: &LogArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

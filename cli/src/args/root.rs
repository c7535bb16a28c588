//! The root of the command line. It knows every command; the other files of arguments know none.

use super::Global;
use crate::commands::Command;
use clap::Parser;

/// Remember what a debugging effort knew, believed and tried, and go back to any moment of it
#[derive(Debug, Parser)]
#[command(
    name = "forge",
    version,
    propagate_version = false,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = "Start with 'forge init', then 'forge status' and 'forge brief'."
)]
pub struct Args {
    /// Flags every command knows.
    #[command(flatten)]
    pub global: Global,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

//! The root of the command line: the global options and all commands.

use super::GlobalArgs;
use crate::commands::ForgeCommand;
use clap::Parser;

/// Record what is known, believed and tried in a debugging session, and go back to any moment of it
#[derive(Debug, Parser)]
#[command(
    name = "forge",
    version,
    propagate_version = false,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    infer_subcommands = true,
    max_term_width = 100,
    after_help = "Start with 'forge init'. 'forge help COMMAND' explains a command, with examples; a \
                  unique beginning of its name is enough."
)]
pub struct ForgeArgs {
    #[command(flatten)]
    pub global: GlobalArgs,

    #[command(subcommand)]
    pub command: ForgeCommand,
}

//! `forge command`.

use crate::args::select::{FactList, Show};
use crate::context::Context;
use crate::error::CommandError;
use std::ffi::OsString;

/// Run commands and record how they end.
#[derive(Debug, clap::Subcommand)]
pub enum CommandCommand {
    /// Run a command, pass its output on, record it, and exit as it does
    Record(RecordArgs),
    /// List commands, oldest first
    List(ListArgs),
    /// Show one command with its output
    Show(Show),
}

/// Arguments of `forge command record`.
#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// Run this program with these arguments
    #[arg(value_name = "COMMAND", required = true, last = true, num_args = 1..)]
    pub command: Vec<OsString>,
}

/// Arguments of `forge command list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// List those that did not end with exit code 0
    #[arg(long)]
    pub failed: bool,

    /// When and how many.
    #[command(flatten)]
    pub list: FactList,
}

/// Does it.
pub fn run(command: &CommandCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        CommandCommand::Record(args) => record(args, context),
        CommandCommand::List(args) => list(args, context),
        CommandCommand::Show(args) => show(args, context),
    }
}

fn record(_args: &RecordArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn list(_args: &ListArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn show(_args: &Show, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

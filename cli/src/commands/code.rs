//! `forge code`.

use crate::args::select::{FactList, Show};
use crate::context::Context;
use crate::error::CommandError;

/// Record the state of the source code.
#[derive(Debug, clap::Subcommand)]
pub enum CodeCommand {
    /// Record commit and uncommitted changes of this checkout
    Capture(CaptureArgs),
    /// List edits and captured states, oldest first
    List(FactList),
    /// Show one edit or captured state with its patch
    Show(Show),
}

/// Arguments of `forge code capture`.
#[derive(Debug, clap::Args)]
pub struct CaptureArgs {
    /// Say what state it is
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
}

/// Does it.
pub fn run(command: &CodeCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        CodeCommand::Capture(args) => capture(args, context),
        CodeCommand::List(args) => list(args, context),
        CodeCommand::Show(args) => show(args, context),
    }
}

fn capture(_args: &CaptureArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn list(_args: &FactList, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn show(_args: &Show, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

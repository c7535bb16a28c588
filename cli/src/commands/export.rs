//! `forge export`.

use crate::context::Context;
use crate::error::CommandError;
use std::path::PathBuf;

/// Write out what is recorded.
#[derive(Debug, clap::Subcommand)]
pub enum ExportCommand {
    /// Write a session's imported transcript back, byte for byte
    Transcript(ExportArgs),
    /// Write a session as a stream of events that 'forge import events' reads
    Events(ExportArgs),
}

/// Arguments of `forge export transcript` and `events`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Name the session by name or id; the current one if left out
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Does it.
pub fn run(_args: &ExportCommand, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

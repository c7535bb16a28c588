//! `forge import`.

use crate::args::value::Moment;
use crate::context::Context;
use crate::error::CommandError;
use std::path::PathBuf;

/// Take in what others have recorded.
#[derive(Debug, clap::Subcommand)]
pub enum ImportCommand {
    /// Import transcripts of Claude Code; without a file, show this directory's and ask
    ClaudeCode(ClaudeCodeArgs),
    /// Import a trajectory of SWE-agent
    SweAgent(SweAgentArgs),
    /// Import a stream of events, one JSON object a line
    Events(EventsArgs),
}

/// Arguments of `forge import claude-code`.
#[derive(Debug, clap::Args)]
pub struct ClaudeCodeArgs {
    /// Import these transcripts
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Refuse a file with a bad line and change nothing
    #[arg(long)]
    pub strict: bool,

    /// Import what is found without asking
    #[arg(long)]
    pub yes: bool,

    /// Say what would be imported, and change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `forge import swe-agent`.
#[derive(Debug, clap::Args)]
pub struct SweAgentArgs {
    /// Import this trajectory
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Say when the run began, as the file does not
    #[arg(long, value_name = "T")]
    pub started_at: Option<Moment>,

    /// Refuse a file with a bad step and change nothing
    #[arg(long)]
    pub strict: bool,
}

/// Arguments of `forge import events`.
#[derive(Debug, clap::Args)]
pub struct EventsArgs {
    /// Import this file; '-' is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Does it.
pub fn run(_args: &ImportCommand, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

//! `forge session`.

use crate::args::value::Name;
use crate::context::Context;
use crate::error::CommandError;

/// Begin, choose and list debugging sessions.
#[derive(Debug, clap::Subcommand)]
pub enum SessionCommand {
    /// Begin a session and make it the current one
    New(NewArgs),
    /// List the sessions, the one last written to first
    List(ListArgs),
    /// Show one session with its metrics
    Show(ShowArgs),
    /// Make a session the current one until another is chosen
    Use(UseArgs),
}

/// Arguments of `forge session new`.
#[derive(Debug, clap::Args)]
pub struct NewArgs {
    /// Give it this name
    #[arg(value_name = "NAME")]
    pub name: Name,

    /// Say which agent works in it
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<Name>,
}

/// Arguments of `forge session list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// List runs, progress, programs and threads too
    #[arg(long)]
    pub all: bool,

    /// List at most this many
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// Arguments of `forge session show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Name it by name or id; the current one if left out
    #[arg(value_name = "SESSION")]
    pub which: Option<String>,
}

/// Arguments of `forge session use`.
#[derive(Debug, clap::Args)]
pub struct UseArgs {
    /// Name it by name or id
    #[arg(value_name = "SESSION")]
    pub which: String,
}

/// Does it.
pub fn run(command: &SessionCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        SessionCommand::New(args) => new(args, context),
        SessionCommand::List(args) => list(args, context),
        SessionCommand::Show(args) => show(args, context),
        SessionCommand::Use(args) => use_session(args, context),
    }
}

fn new(_args: &NewArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn list(_args: &ListArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn show(_args: &ShowArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn use_session(_args: &UseArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

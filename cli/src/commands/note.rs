//! `forge note`.

use crate::args::select::{ClaimList, Show};
use crate::args::value::Name;
use crate::context::Context;
use crate::error::CommandError;

/// Write remarks down.
#[derive(Debug, clap::Subcommand)]
pub enum NoteCommand {
    /// Write a remark down
    Add(AddArgs),
    /// List remarks
    List(ClaimList),
    /// Show one remark
    Show(Show),
}

/// Arguments of `forge note add`.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// Say it
    #[arg(value_name = "DESCRIPTION")]
    pub description: String,

    /// Say where it comes from
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,

    /// Give it this id instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<Name>,
}

/// Does it.
pub fn run(command: &NoteCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        NoteCommand::Add(args) => add(args, context),
        NoteCommand::List(args) => list(args, context),
        NoteCommand::Show(args) => show(args, context),
    }
}

fn add(_args: &AddArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn list(_args: &ClaimList, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn show(_args: &Show, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

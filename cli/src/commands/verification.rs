//! `forge verification`.

use crate::args::select::{FactList, Show};
use crate::args::value::{self, Moment, Name};
use crate::context::Context;
use crate::error::CommandError;
use forge_store::model::claim::VerificationStatus;
use std::time::Duration;

/// Record results of tests, builds and checks.
#[derive(Debug, clap::Subcommand)]
pub enum VerificationCommand {
    /// Record a result
    Add(AddArgs),
    /// List results, oldest first
    List(ListArgs),
    /// Show one result
    Show(Show),
}

/// Arguments of `forge verification add`.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// Say what was checked
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Say how it ended
    #[arg(long, value_name = "STATUS", value_parser = value::words::<VerificationStatus>())]
    pub status: VerificationStatus,

    /// Say which command checked it
    #[arg(long, value_name = "COMMAND")]
    pub command: Option<String>,

    /// Say how long it took
    #[arg(long, value_name = "DURATION", value_parser = value::duration)]
    pub duration: Option<Duration>,

    /// Keep this text as its output
    #[arg(long, value_name = "TEXT")]
    pub output: Option<String>,

    /// Say with which code that command exited
    #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
    pub exit_code: Option<i64>,

    /// Say what it means
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,

    /// Say where it comes from
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,

    /// Say when it ended, if not now
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,

    /// Give it this id instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<Name>,
}

/// Arguments of `forge verification list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// List those with this status
    #[arg(long, value_name = "STATUS", value_parser = value::words::<VerificationStatus>())]
    pub status: Option<VerificationStatus>,

    /// When and how many.
    #[command(flatten)]
    pub list: FactList,
}

/// Does it.
pub fn run(command: &VerificationCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        VerificationCommand::Add(args) => add(args, context),
        VerificationCommand::List(args) => list(args, context),
        VerificationCommand::Show(args) => show(args, context),
    }
}

fn add(_args: &AddArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn list(_args: &ListArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn show(_args: &Show, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

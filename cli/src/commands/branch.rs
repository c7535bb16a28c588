//! `forge branch`.

use crate::args::value::{Moment, Name};
use crate::context::Context;
use crate::error::CommandError;

/// Try another line of thought without losing this one.
#[derive(Debug, clap::Subcommand)]
pub enum BranchCommand {
    /// Begin a branch here or at another moment
    Create(CreateArgs),
    /// Go on with another branch
    Switch(SwitchArgs),
    /// List branches
    List(ListArgs),
    /// Show one branch
    Show(ShowArgs),
    /// Give a branch up; what it holds stays readable
    Abandon(AbandonArgs),
}

/// Arguments of `forge branch create`.
#[derive(Debug, clap::Args)]
pub struct CreateArgs {
    /// Give it this name
    #[arg(value_name = "NAME")]
    pub name: Name,

    /// Begin it at this moment instead of the head of the current branch
    #[arg(long, value_name = "X")]
    pub from: Option<Moment>,

    /// Name the hypothesis it tests
    #[arg(long, value_name = "ID")]
    pub hypothesis: Option<String>,

    /// Say how it goes about it
    #[arg(long, value_name = "TEXT")]
    pub approach: Option<String>,

    /// Say what would count as success; may be given more than once
    #[arg(long, value_name = "TEXT")]
    pub success: Vec<String>,
}

/// Arguments of `forge branch switch`.
#[derive(Debug, clap::Args)]
pub struct SwitchArgs {
    /// Name the branch
    #[arg(value_name = "NAME")]
    pub name: Name,
}

/// Arguments of `forge branch list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// List merged, abandoned and archived ones too
    #[arg(long)]
    pub all: bool,
}

/// Arguments of `forge branch show`.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Name the branch; the current one if left out
    #[arg(value_name = "NAME")]
    pub name: Option<Name>,
}

/// Arguments of `forge branch abandon`.
#[derive(Debug, clap::Args)]
pub struct AbandonArgs {
    /// Name the branch
    #[arg(value_name = "NAME")]
    pub name: Name,

    /// Say what came of it
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Does it.
pub fn run(command: &BranchCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        BranchCommand::Create(args) => create(args, context),
        BranchCommand::Switch(args) => switch(args, context),
        BranchCommand::List(args) => list(args, context),
        BranchCommand::Show(args) => show(args, context),
        BranchCommand::Abandon(args) => abandon(args, context),
    }
}

fn create(_args: &CreateArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn switch(_args: &SwitchArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn list(_args: &ListArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn show(_args: &ShowArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn abandon(_args: &AbandonArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

//! `forge hypothesis`.

use crate::args::select::{ClaimList, Show};
use crate::args::value::{self, Name};
use crate::context::Context;
use crate::error::CommandError;
use forge_store::model::claim::HypothesisStatus;

/// What may be said of a hypothesis without settling it: `confirm` and `reject` do that, with what follows.
const UNSETTLED: &[HypothesisStatus] =
    &[HypothesisStatus::Active, HypothesisStatus::UnderTest, HypothesisStatus::Archived];

/// State, test and settle hypotheses.
#[derive(Debug, clap::Subcommand)]
pub enum HypothesisCommand {
    /// State a hypothesis
    Add(AddArgs),
    /// Change fields of a hypothesis
    Update(UpdateArgs),
    /// Settle a hypothesis as true
    Confirm(SettleArgs),
    /// Settle a hypothesis as false, and its children with it
    Reject(SettleArgs),
    /// List hypotheses
    List(ListArgs),
    /// Show one hypothesis with its evidence
    Show(Show),
}

/// Arguments of `forge hypothesis add`.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// Say what might explain the problem
    #[arg(value_name = "DESCRIPTION")]
    pub description: String,

    /// Give it this id instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<Name>,

    /// Say how likely it is, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = value::share, allow_negative_numbers = true)]
    pub confidence: Option<f64>,

    /// Say where the work on it stands
    #[arg(long, value_name = "STATUS", value_parser = value::words_of(UNSETTLED))]
    pub status: Option<HypothesisStatus>,

    /// Make it a part of another hypothesis
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,

    /// Say where it comes from
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,

    /// Tag it with these words
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub tags: Vec<Name>,
}

/// Arguments of `forge hypothesis update`.
#[derive(Debug, clap::Args)]
pub struct UpdateArgs {
    /// Name it by its id or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// Say it in other words
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,

    /// Say how likely it is, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = value::share, allow_negative_numbers = true)]
    pub confidence: Option<f64>,

    /// Say where the work on it stands
    #[arg(long, value_name = "STATUS", value_parser = value::words_of(UNSETTLED))]
    pub status: Option<HypothesisStatus>,

    /// Make it a part of another hypothesis
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,

    /// Add these tags
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub add_tags: Vec<Name>,

    /// Remove these tags
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub remove_tags: Vec<Name>,
}

/// Arguments of `forge hypothesis confirm` and `reject`.
#[derive(Debug, clap::Args)]
pub struct SettleArgs {
    /// Name it by its id or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// Say why
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Arguments of `forge hypothesis list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// List those with this status
    #[arg(long, value_name = "STATUS", value_parser = value::words::<HypothesisStatus>())]
    pub status: Option<HypothesisStatus>,

    /// List those with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<Name>,

    /// Where and how many.
    #[command(flatten)]
    pub list: ClaimList,
}

/// Does it.
pub fn run(command: &HypothesisCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        HypothesisCommand::Add(args) => add(args, context),
        HypothesisCommand::Update(args) => update(args, context),
        HypothesisCommand::Confirm(args) => confirm(args, context),
        HypothesisCommand::Reject(args) => reject(args, context),
        HypothesisCommand::List(args) => list(args, context),
        HypothesisCommand::Show(args) => show(args, context),
    }
}

fn add(_args: &AddArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn update(_args: &UpdateArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn confirm(_args: &SettleArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn reject(_args: &SettleArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn list(_args: &ListArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

fn show(_args: &Show, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

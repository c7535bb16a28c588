//! `forge hypothesis`.

use crate::args::select::{ClaimList, Show};
use crate::args::value::{self, Name};

/// What may be said of a hypothesis without settling it.
const OPEN_STATUS: [&str; 3] = ["active", "under_test", "archived"];
/// Every status of a hypothesis.
const STATUS: [&str; 5] = ["active", "under_test", "confirmed", "rejected", "archived"];

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
    #[arg(value_name = "STATEMENT")]
    pub statement: String,

    /// Give it this id instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<Name>,

    /// Say how likely it is, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = value::share, allow_negative_numbers = true)]
    pub confidence: Option<f64>,

    /// Say where the work on it stands
    #[arg(long, value_name = "STATUS", value_parser = OPEN_STATUS)]
    pub status: Option<String>,

    /// Make it a part of another hypothesis
    #[arg(long, value_name = "ID")]
    pub parent: Option<String>,

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
    pub statement: Option<String>,

    /// Say how likely it is, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = value::share, allow_negative_numbers = true)]
    pub confidence: Option<f64>,

    /// Say where the work on it stands
    #[arg(long, value_name = "STATUS", value_parser = OPEN_STATUS)]
    pub status: Option<String>,

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
    #[arg(long, value_name = "STATUS", value_parser = STATUS)]
    pub status: Option<String>,

    /// List those with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<Name>,

    /// Where and how many.
    #[command(flatten)]
    pub list: ClaimList,
}

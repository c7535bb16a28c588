//! Arguments that several commands share: which claims or facts to list or show.

use super::value::{Moment, Name};

/// Which claims to list.
#[derive(Debug, clap::Args)]
pub struct ClaimList {
    /// List them as they stood at this moment
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,

    /// List those on this branch instead of the current one
    #[arg(long, value_name = "NAME", conflicts_with = "at")]
    pub branch: Option<Name>,

    /// List at most this many
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// Which claim or fact to show.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// Name it by its id or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// Show it as it stood at this moment
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,

    /// Show texts whole, however long
    #[arg(long)]
    pub full: bool,
}

/// Which facts to list.
#[derive(Debug, clap::Args)]
pub struct FactList {
    /// List those known at this moment
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,

    /// List those that happened at this time or later, such as -2h or 'yesterday 14:30'
    #[arg(long, value_name = "T")]
    pub since: Option<Moment>,

    /// List those that happened at this time or earlier
    #[arg(long, value_name = "T")]
    pub until: Option<Moment>,

    /// List at most this many, the latest ones
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// List or show facts of one kind.
#[derive(Debug, clap::Subcommand)]
pub enum FactCommand {
    /// List them, oldest first
    List(FactList),
    /// Show one with all its fields
    Show(Show),
}

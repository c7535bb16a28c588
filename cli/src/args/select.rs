//! Arguments that several commands share: which claims or facts to list or show.

use super::value::{MomentArg, NameArg};

/// Which claims to list.
#[derive(Debug, clap::Args)]
pub struct ClaimListArgs {
    /// List them as they stood at this moment
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,

    /// List those on this branch instead of the current one
    #[arg(long, value_name = "NAME", conflicts_with = "at")]
    pub branch: Option<NameArg>,

    /// List at most this many
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// Which claim or fact to show.
#[derive(Debug, clap::Args)]
pub struct EntityShowArgs {
    /// Name it by its id or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// Show it as it stood at this moment
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,

    /// Show texts whole, however long
    #[arg(long)]
    pub full: bool,
}

/// Which facts to list.
#[derive(Debug, clap::Args)]
pub struct FactListArgs {
    /// List those known at this moment
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,

    /// List those that happened at this time or later, such as -2h or 'yesterday 14:30'
    #[arg(long, value_name = "T")]
    pub since: Option<MomentArg>,

    /// List those that happened at this time or earlier
    #[arg(long, value_name = "T")]
    pub until: Option<MomentArg>,

    /// List at most this many, the latest ones
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
}

/// List or show facts of one kind.
#[derive(Debug, clap::Subcommand)]
pub enum FactCommand {
    /// List them, oldest first
    List(FactListArgs),
    /// Show one with all its fields
    Show(EntityShowArgs),
}

//! `forge note`.

use crate::args::select::{ClaimList, Show};
use crate::args::value::{EntityName, Name};

/// Write remarks down.
#[derive(Debug, clap::Subcommand)]
pub enum NoteCommand {
    /// Write a remark down
    Add(AddArgs),
    /// List remarks
    List(ListArgs),
    /// Show one remark
    Show(Show),
}

/// Arguments of `forge note add`.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// Say it
    #[arg(value_name = "TEXT")]
    pub text: String,

    /// Name what it is about
    #[arg(long, value_name = "ENTITY")]
    pub about: Option<EntityName>,

    /// Tag it with these words
    #[arg(long, value_name = "TAG,...", value_delimiter = ',')]
    pub tags: Vec<Name>,

    /// Give it this id instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<Name>,
}

/// Arguments of `forge note list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// List those with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<Name>,

    /// Where and how many.
    #[command(flatten)]
    pub list: ClaimList,
}

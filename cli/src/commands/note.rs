//! `forge note`.

use crate::args::select::{ClaimList, Show};
use crate::args::value::Name;

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

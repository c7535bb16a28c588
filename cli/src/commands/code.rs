//! `forge code`.

use crate::args::select::{FactList, Show};

/// Record the state of the source code.
#[derive(Debug, clap::Subcommand)]
pub enum CodeCommand {
    /// Record commit and uncommitted changes of this checkout
    Capture(CaptureArgs),
    /// List edits and captured states, oldest first
    List(FactList),
    /// Show one edit or captured state with its patch
    Show(Show),
}

/// Arguments of `forge code capture`.
#[derive(Debug, clap::Args)]
pub struct CaptureArgs {
    /// Say what state it is
    #[arg(short, long, value_name = "TEXT")]
    pub message: Option<String>,
}

//! `forge brief`.

use crate::args::value::Moment;
use crate::context::Context;
use crate::error::CommandError;

/// Arguments of `forge brief`.
#[derive(Debug, clap::Args)]
pub struct BriefArgs {
    /// Say what was known at this moment
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,

    /// Use at most this many bytes
    #[arg(long, value_name = "BYTES")]
    pub budget: Option<usize>,
}

/// Does it.
pub fn run(_args: &BriefArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

//! `forge blame` and `forge why`.

use crate::args::value::{EntityName, Moment};
use crate::context::Context;
use crate::error::CommandError;

/// Arguments of `forge blame`.
#[derive(Debug, clap::Args)]
pub struct BlameArgs {
    /// Name it by a unique prefix of its id, after 'KIND:' where that is ambiguous
    #[arg(value_name = "ENTITY")]
    pub entity: EntityName,

    /// Look at it as it stood at this moment
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,
}

/// Arguments of `forge why`.
#[derive(Debug, clap::Args)]
pub struct WhyArgs {
    /// Name it by a unique prefix of its id, after 'KIND:' where that is ambiguous
    #[arg(value_name = "ENTITY")]
    pub entity: EntityName,

    /// Look at it as it stood at this moment
    #[arg(long, value_name = "T")]
    pub at: Option<Moment>,
}

/// Says which change made each field what it is.
pub fn run(_args: &BlameArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

/// Says what an entity rests on and what rests on it.
pub fn why(_args: &WhyArgs, _context: &mut Context) -> Result<(), CommandError> {
    Err(super::unwritten())
}

//! `forge gap`.

use crate::args::select::{ClaimList, Show};
use crate::args::value::Name;

/// Every status of a gap.
const STATUS: [&str; 5] = ["open", "filling", "filled", "unfillable", "obsolete"];
/// The statuses of a gap that are not an answer.
const UNANSWERED: [&str; 4] = ["open", "filling", "unfillable", "obsolete"];

/// Record what is not known and should be.
#[derive(Debug, clap::Subcommand)]
pub enum GapCommand {
    /// Name a gap
    Add(AddArgs),
    /// Answer a gap
    Fill(FillArgs),
    /// Change fields of a gap
    Update(UpdateArgs),
    /// List gaps, the most critical first
    List(ListArgs),
    /// Show one gap
    Show(Show),
}

/// Fields of a gap beside its question.
#[derive(Debug, clap::Args)]
pub struct GapFields {
    /// Say what kind of gap it is
    #[arg(long = "type", value_name = "TYPE")]
    pub gap_type: Option<String>,

    /// Say how much depends on it
    #[arg(long, value_name = "CRITICALITY")]
    pub criticality: Option<String>,

    /// Name the claims it blocks
    #[arg(long, value_name = "ID,...", value_delimiter = ',')]
    pub blocking: Vec<String>,

    /// Say how it could be filled
    #[arg(long, value_name = "STRATEGY")]
    pub strategy: Option<String>,

    /// Say how much work that is
    #[arg(long, value_name = "EFFORT")]
    pub effort: Option<String>,
}

/// Arguments of `forge gap add`.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// Say what is not known
    #[arg(value_name = "DESCRIPTION")]
    pub description: String,

    /// Give it this id instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<Name>,

    /// What else is known of it.
    #[command(flatten)]
    pub fields: GapFields,
}

/// Arguments of `forge gap fill`.
#[derive(Debug, clap::Args)]
pub struct FillArgs {
    /// Name it by its id or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// Say what was found out
    #[arg(value_name = "ANSWER")]
    pub answer: String,
}

/// Arguments of `forge gap update`.
#[derive(Debug, clap::Args)]
pub struct UpdateArgs {
    /// Name it by its id or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// Say it in other words
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,

    /// Say where the work on it stands
    #[arg(long, value_name = "STATUS", value_parser = UNANSWERED)]
    pub status: Option<String>,

    /// What else is known of it.
    #[command(flatten)]
    pub fields: GapFields,
}

/// Arguments of `forge gap list`.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// List those with this status
    #[arg(long, value_name = "STATUS", value_parser = STATUS)]
    pub status: Option<String>,

    /// Where and how many.
    #[command(flatten)]
    pub list: ClaimList,
}

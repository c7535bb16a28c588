//! Arguments that the commands about claims and facts share: which ones to list or show, the text
//! of a new one, and when a change took place.

use super::field_option::{FieldArgs, Listed, ListedKind};
use super::list_format::ListFormat;
use super::value::{self, MomentArg, NameArg};
use std::marker::PhantomData;

/// Which claims to list.
#[derive(Debug, clap::Args)]
pub struct ClaimListArgs<K: ListedKind> {
    #[command(flatten)]
    pub filter: FieldArgs<K, Listed>,

    /// Moment at which to list them
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,

    /// Branch to list; the current one by default
    #[arg(long, value_name = "NAME", conflicts_with = "at")]
    pub branch: Option<NameArg>,

    /// Maximum number to list; the latest ones are listed, of gaps the most critical ones
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,

    /// Line for each, with fields as in JSON: '{id} {status}'
    #[arg(long, value_name = "TEMPLATE")]
    pub format: Option<ListFormat>,
}

/// Which claim or fact to show.
#[derive(Debug, clap::Args)]
pub struct EntityShowArgs<K: ListedKind> {
    /// Id, or a unique prefix of it
    #[arg(value_name = "ID")]
    pub id: String,

    /// Moment at which to show it
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,

    /// Show whole texts
    #[arg(long)]
    pub full: bool,

    #[arg(skip)]
    pub kind: PhantomData<K>,
}

/// Which facts to list.
#[derive(Debug, clap::Args)]
pub struct FactListArgs<K: ListedKind> {
    #[command(flatten)]
    pub filter: FieldArgs<K, Listed>,

    /// Moment at which they were known
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,

    /// Earliest time, such as -2h or 'yesterday 14:30'
    #[arg(long, value_name = "T")]
    pub since: Option<MomentArg>,

    /// Latest time
    #[arg(long, value_name = "T")]
    pub until: Option<MomentArg>,

    /// Maximum number to list; the latest ones are listed
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,

    /// Line for each, with fields as in JSON: '{id} {status}'
    #[arg(long, value_name = "TEMPLATE")]
    pub format: Option<ListFormat>,
}

/// The text of a new claim, given as an argument or, as in `git commit`, with `-m`.
#[derive(Debug, clap::Args)]
pub struct DescriptionArgs<K: ListedKind> {
    #[arg(
        value_name = "DESCRIPTION",
        help = K::DESCRIPTION,
        value_parser = value::non_empty_text,
        required_unless_present = "message"
    )]
    pub description: Option<String>,

    /// The same as DESCRIPTION
    #[arg(
        short,
        long,
        value_name = "TEXT",
        value_parser = value::non_empty_text,
        conflicts_with = "description"
    )]
    pub message: Option<String>,

    #[arg(skip)]
    pub kind: PhantomData<K>,
}

impl<K: ListedKind> DescriptionArgs<K> {
    /// Returns the text; empty if none is given.
    pub fn text(&self) -> &str {
        self.description.as_deref().or(self.message.as_deref()).unwrap_or_default()
    }
}

impl<K: ListedKind> From<String> for DescriptionArgs<K> {
    fn from(text: String) -> Self {
        Self { description: Some(text), message: None, kind: PhantomData }
    }
}

/// A verb that changes claims, and when the change took place.
#[derive(Debug, clap::Args)]
pub struct Timed<V: clap::Args> {
    #[command(flatten)]
    pub verb: V,

    /// When it took place, after the last change on the branch; now by default
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,
}

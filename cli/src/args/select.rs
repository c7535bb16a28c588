//! Arguments that several commands share: which claims or facts to list or show.

use super::value::{MomentArg, NameArg};
use forge_store::model::claim::{
    Agent, Belief, CodeState, Dependency, Evidence, ExecutedCommand, Gap, Hypothesis, Inference,
    Measurement, Message, Note, Notice, Prompt, Task, ToolUse, TypedRecord, VerificationResult,
};
use std::marker::PhantomData;

/// A kind with the verbs `list` and `show`.
pub trait ListedKind: TypedRecord {
    /// The name of its verb `list`.
    const LIST: &'static str;
    /// The name of its verb `show`.
    const SHOW: &'static str;
}

macro_rules! listed_kinds {
    ($($record:ident: $name:literal,)+) => {
        $(impl ListedKind for $record {
            const LIST: &'static str = concat!($name, " list");
            const SHOW: &'static str = concat!($name, " show");
        })+
    };
}

listed_kinds! {
    Agent: "agent",
    Belief: "belief",
    CodeState: "code",
    Dependency: "dependency",
    Evidence: "evidence",
    ExecutedCommand: "command",
    Gap: "gap",
    Hypothesis: "hypothesis",
    Inference: "inference",
    Measurement: "measurement",
    Message: "message",
    Note: "note",
    Notice: "notice",
    Prompt: "prompt",
    Task: "task",
    ToolUse: "tool",
    VerificationResult: "verification",
}

/// Which claims to list.
#[derive(Debug, clap::Args)]
pub struct ClaimListArgs<K: ListedKind> {
    /// Moment at which to list them
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,

    /// Branch to list; the current one by default
    #[arg(long, value_name = "NAME", conflicts_with = "at")]
    pub branch: Option<NameArg>,

    /// Largest number to list
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,

    /// The kind.
    #[arg(skip)]
    pub kind: PhantomData<K>,
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

    /// The kind.
    #[arg(skip)]
    pub kind: PhantomData<K>,
}

/// Which facts to list.
#[derive(Debug, clap::Args)]
pub struct FactListArgs<K: ListedKind> {
    /// Moment at which they were known
    #[arg(long, value_name = "T")]
    pub at: Option<MomentArg>,

    /// Earliest time, such as -2h or 'yesterday 14:30'
    #[arg(long, value_name = "T")]
    pub since: Option<MomentArg>,

    /// Latest time
    #[arg(long, value_name = "T")]
    pub until: Option<MomentArg>,

    /// Largest number to list; the latest ones are listed
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,

    /// The kind.
    #[arg(skip)]
    pub kind: PhantomData<K>,
}

/// List or show facts of one kind.
#[derive(Debug, clap::Subcommand)]
pub enum FactCommand<K: ListedKind> {
    /// List them, oldest first
    List(FactListArgs<K>),
    /// Show one with all its fields
    Show(EntityShowArgs<K>),
}

crate::verb::commands!(FactCommand<K>: List, Show);

//! `forge dependency`.

use crate::args::select::{ClaimListArgs, EntityShowArgs};
use crate::context::Context;
use crate::report::entity::EntityListReport;
use crate::session_reader::SessionReader;
use crate::verb::{Verb, VerbResult, commands};
use forge_store::model::Value;
use forge_store::model::claim::Dependency;

/// List and show what beliefs rest on.
#[derive(Debug, clap::Subcommand)]
pub enum DependencyCommand {
    /// List dependencies
    List(DependencyListArgs),
    /// Show one dependency
    Show(EntityShowArgs<Dependency>),
}

#[derive(Debug, clap::Args)]
pub struct DependencyListArgs {
    /// Only those from or to this belief
    #[arg(long, value_name = "ID")]
    pub belief: Option<String>,

    #[command(flatten)]
    pub list: ClaimListArgs<Dependency>,
}

commands!(DependencyCommand: List, Show);

impl Verb for DependencyListArgs {
    const NAME: &'static str = "dependency list";
    type Opened = SessionReader;
    type Report = EntityListReport;

    fn run(&self, reading: &SessionReader, context: &mut Context) -> VerbResult<Self> {
        let is_end = |value: &Value, belief: &str| {
            ["from", "to"]
                .iter()
                .any(|end| value.field(end).and_then(Value::as_text) == Some(belief))
        };
        super::entity::list_claims(&self.list, reading, context, |value| {
            self.belief.as_deref().is_none_or(|belief| is_end(value, belief))
        })
    }
}

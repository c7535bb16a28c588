//! `forge dependency`.

use super::entity;
use crate::args::select::{ClaimListArgs, EntityShowArgs};
use crate::context::Context;
use crate::error::CommandError;
use forge_store::model::{Kind, Value};

/// List and show what beliefs rest on.
#[derive(Debug, clap::Subcommand)]
pub enum DependencyCommand {
    /// List dependencies
    List(DependencyListArgs),
    /// Show one dependency
    Show(EntityShowArgs),
}

/// Arguments of `forge dependency list`.
#[derive(Debug, clap::Args)]
pub struct DependencyListArgs {
    /// Only those from or to this belief
    #[arg(long, value_name = "ID")]
    pub belief: Option<String>,

    /// Where and how many.
    #[command(flatten)]
    pub list: ClaimListArgs,
}

/// Runs `forge dependency`.
pub fn run(command: &DependencyCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        DependencyCommand::List(args) => {
            let is_end = |value: &Value, belief: &str| {
                ["from", "to"]
                    .iter()
                    .any(|end| value.field(end).and_then(Value::as_text) == Some(belief))
            };
            entity::list_claims(Kind::Dependency, &args.list, context, |value| {
                args.belief.as_deref().is_none_or(|belief| is_end(value, belief))
            })
        }
        DependencyCommand::Show(args) => entity::show(Kind::Dependency, args, context),
    }
}

//! `forge task`, `message`, `prompt`, `agent`, `tool`, `notice`: facts that only imports and hooks
//! record.

use crate::args::select::FactCommand;
use crate::context::Context;
use crate::error::CommandError;
use forge_store::model::Kind;

/// Lists or shows facts of a kind.
pub fn run(kind: Kind, command: &FactCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        FactCommand::List(args) => super::entity::list_facts(kind, args, context, |_| true),
        FactCommand::Show(args) => super::entity::show(kind, args, context),
    }
}

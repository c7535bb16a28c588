//! `forge note`.

use crate::args::select::{ClaimList, Show};
use crate::args::value::{self, Name};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::written::Written;
use crate::workplace::Need;
use crate::writing::Writing;
use forge_store::model::{Kind, Value};

/// Record notes.
#[derive(Debug, clap::Subcommand)]
pub enum NoteCommand {
    /// Add a note
    Add(AddArgs),
    /// List notes
    List(ClaimList),
    /// Show one note
    Show(Show),
}

/// Arguments of `forge note add`.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// Text
    #[arg(value_name = "DESCRIPTION", value_parser = value::said)]
    pub description: String,

    /// Where it comes from
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,

    /// Id, instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<Name>,
}

/// Runs `forge note`.
pub fn run(command: &NoteCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        NoteCommand::Add(args) => add(args, context),
        NoteCommand::List(args) => list(args, context),
        NoteCommand::Show(args) => show(args, context),
    }
}

fn add(args: &AddArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = Writing::begin(context, "note add", Need::OrNew)?;
    let value = Value::from([
        ("description", args.description.as_str().into()),
        ("source", args.source.clone().into()),
    ]);
    let id = args.id.as_ref().map(Name::as_str);
    let (id, done) = writing.add_value(Kind::Note, id, &value)?;
    context.out.emit(&Written::new("forge.note.add/1", "Added", done).of(Kind::Note, id))?;
    writing.finish();
    Ok(())
}

fn list(args: &ClaimList, context: &mut Context) -> Result<(), CommandError> {
    super::entity::list_claims(Kind::Note, args, context, |_| true)
}

fn show(args: &Show, context: &mut Context) -> Result<(), CommandError> {
    super::entity::show(Kind::Note, args, context)
}

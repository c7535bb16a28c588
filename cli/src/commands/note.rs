//! `forge note`.

use crate::args::select::{ClaimListArgs, EntityShowArgs};
use crate::args::value::{self, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity_write::EntityWriteReport;
use crate::session_writer::SessionWriter;
use crate::workspace::SessionNeed;
use forge_store::model::{Kind, Value};

/// Record notes.
#[derive(Debug, clap::Subcommand)]
pub enum NoteCommand {
    /// Add a note
    Add(NoteAddArgs),
    /// List notes
    List(ClaimListArgs),
    /// Show one note
    Show(EntityShowArgs),
}

/// Arguments of `forge note add`.
#[derive(Debug, clap::Args)]
pub struct NoteAddArgs {
    /// Text
    #[arg(value_name = "DESCRIPTION", value_parser = value::non_empty_text)]
    pub description: String,

    /// Where it comes from
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,

    /// Id, instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<NameArg>,
}

/// Runs `forge note`.
pub fn run(command: &NoteCommand, context: &mut Context) -> Result<(), CommandError> {
    match command {
        NoteCommand::Add(args) => add(args, context),
        NoteCommand::List(args) => list(args, context),
        NoteCommand::Show(args) => show(args, context),
    }
}

fn add(args: &NoteAddArgs, context: &mut Context) -> Result<(), CommandError> {
    let writing = SessionWriter::begin(context, "note add", SessionNeed::OrNew)?;
    let value = Value::from([
        ("description", args.description.as_str().into()),
        ("source", args.source.clone().into()),
    ]);
    let id = args.id.as_ref().map(NameArg::as_str);
    let (id, done) = writing.add_value(Kind::Note, id, &value)?;
    context.out.emit(
        &EntityWriteReport::new("forge.note.add/1", "Added", done).about_claim(Kind::Note, id),
    )?;
    writing.finish();
    Ok(())
}

fn list(args: &ClaimListArgs, context: &mut Context) -> Result<(), CommandError> {
    super::entity::list_claims(Kind::Note, args, context, |_| true)
}

fn show(args: &EntityShowArgs, context: &mut Context) -> Result<(), CommandError> {
    super::entity::show(Kind::Note, args, context)
}

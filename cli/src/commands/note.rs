//! `forge note`.

use crate::args::select::{ClaimListArgs, EntityShowArgs};
use crate::args::value::{self, NameArg};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::entity_write::EntityWriteReport;
use crate::session_writer::SessionWriter;
use crate::workspace::SessionNeed;
use forge_store::model::{Kind, Value};

/// Write remarks down.
#[derive(Debug, clap::Subcommand)]
pub enum NoteCommand {
    /// Write a remark down
    Add(NoteAddArgs),
    /// List remarks
    List(ClaimListArgs),
    /// Show one remark
    Show(EntityShowArgs),
}

/// Arguments of `forge note add`.
#[derive(Debug, clap::Args)]
pub struct NoteAddArgs {
    /// Say it
    #[arg(value_name = "DESCRIPTION", value_parser = value::non_empty_text)]
    pub description: String,

    /// Say where it comes from
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,

    /// Give it this id instead of a new one
    #[arg(long, value_name = "ID")]
    pub id: Option<NameArg>,
}

/// Does it.
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

//! `forge note`.

use crate::args::select::{ClaimListArgs, EntityShowArgs};
use crate::args::value::{self, NameArg};
use crate::context::Context;
use crate::report::entity_write::EntityWriteReport;
use crate::session_writer::SessionWriter;
use crate::verb::{Verb, VerbResult, commands};
use crate::workspace::SessionNeed;
use forge_store::model::claim::Note;
use forge_store::model::{Kind, Value};

/// Record notes.
#[derive(Debug, clap::Subcommand)]
pub enum NoteCommand {
    /// Add a note
    Add(NoteAddArgs),
    /// List notes
    List(ClaimListArgs<Note>),
    /// Show one note
    Show(EntityShowArgs<Note>),
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

commands!(NoteCommand: Add, List, Show);

impl Verb for NoteAddArgs {
    const NAME: &'static str = "note add";
    type Opened = SessionWriter;
    type Report = EntityWriteReport;
    const SESSION: SessionNeed = SessionNeed::OrNew;

    fn run(&self, writing: &SessionWriter, _: &mut Context) -> VerbResult<Self> {
        let value = Value::from([
            ("description", self.description.as_str().into()),
            ("source", self.source.clone().into()),
        ]);
        let id = self.id.as_ref().map(NameArg::as_str);
        let (id, done) = writing.add_value(Kind::Note, id, &value)?;
        Ok(EntityWriteReport::new("Added", done).about_claim(Kind::Note, id))
    }
}

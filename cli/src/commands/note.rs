//! `forge note`.

use super::claim::{ClaimAddArgs, RecordedClaim};
use crate::args::select::{ClaimListArgs, EntityShowArgs};
use crate::verb::commands;
use forge_store::model::claim::Note;

/// Record notes.
#[derive(Debug, clap::Subcommand)]
pub enum NoteCommand {
    /// Add a note
    Add(ClaimAddArgs<Note>),
    /// List notes
    List(ClaimListArgs<Note>),
    /// Show one note
    Show(EntityShowArgs<Note>),
}

commands!(NoteCommand: Add, List, Show);

impl RecordedClaim for Note {}

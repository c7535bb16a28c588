//! `forge note`.

use super::claim::{
    ClaimAddArgs, ClaimRetractArgs, ClaimUpdateArgs, RecordedClaim, RetractedClaim,
};
use crate::args::select::{ClaimListArgs, EntityShowArgs, Timed};
use crate::context::Context;
use crate::error::{CommandError, CommandErrorKind};
use crate::verb::{Command, commands};
use forge_store::model::claim::Note;
use forge_store::model::rule::{self, RuleError, RuleOutcome};
use forge_store::store::HeadClaims;
use strsim::damerau_levenshtein;

/// Record notes: 'forge note TEXT' adds one.
#[derive(Debug, clap::Args)]
#[command(subcommand_negates_reqs = true)]
pub struct NoteArgs {
    #[command(subcommand)]
    pub command: Option<NoteCommand>,

    #[command(flatten)]
    pub add: Timed<ClaimAddArgs<Note>>,
}

/// Record notes.
#[derive(Debug, clap::Subcommand)]
pub enum NoteCommand {
    /// Add a note
    Add(Timed<ClaimAddArgs<Note>>),
    /// Change a note
    Update(Timed<ClaimUpdateArgs<Note>>),
    /// Retract a note; the history keeps it
    Retract(Timed<ClaimRetractArgs<Note>>),
    /// List notes
    List(ClaimListArgs<Note>),
    /// Show one note
    Show(EntityShowArgs<Note>),
}

commands!(NoteCommand: Add, Update, Retract, List, Show);

impl RecordedClaim for Note {}

impl RetractedClaim for Note {
    fn retract(claims: &HeadClaims, id: &str) -> Result<RuleOutcome, RuleError> {
        rule::retract_note(claims, id)
    }
}

/// The maximum number of typing errors in a text that is taken for the name of a command.
const MAX_TYPOS: usize = 1;

impl Command for NoteArgs {
    fn execute(&self, context: &mut Context) -> Result<(), CommandError> {
        let text = self.add.verb.text.text();
        match &self.command {
            Some(command) if text.is_empty() => command.execute(context),
            Some(_) => Err(CommandError::new(
                CommandErrorKind::Usage,
                format!("a command of 'forge note' comes first, not after '{text}'"),
            )
            .hinted("'forge note TEXT' adds a note; put a text of several words in quotes")),
            None => {
                refuse_typo(text)?;
                self.add.execute(context)
            }
        }
    }

    fn add_names(names: &mut Vec<&'static str>) {
        NoteCommand::add_names(names);
    }
}

/// Refuses a text that is probably a mistyped command of `forge note`.
fn refuse_typo(text: &str) -> Result<(), CommandError> {
    let mut names = Vec::new();
    NoteCommand::add_names(&mut names);
    let mut commands = names.into_iter().filter_map(|name| name.strip_prefix("note "));
    match commands.find(|name| (1..=MAX_TYPOS).contains(&damerau_levenshtein(name, text))) {
        None => Ok(()),
        Some(name) => Err(CommandError::new(
            CommandErrorKind::Usage,
            format!("'{text}' is not a command of 'forge note'"),
        )
        .hinted(format!("'forge note {name}' is; 'forge note add {text}' adds the note '{text}'"))),
    }
}

//! Sessions, revisions, checkpoints and moments as parts of other reports.

use super::entity_write::MadeCheckpoint;
use crate::error::CommandError;
use crate::output::{Screen, Tone};
use crate::text::{TextLength, TextReader, json_word};
use forge_store::model::{Checkpoint, CheckpointTrigger, Timestamp, Value};
use forge_store::store::{ResolvedMoment, RevisionSummary, Session};
use serde::Serialize;
use std::ops::Deref;

/// Converts microseconds to seconds.
#[expect(clippy::cast_precision_loss, reason = "53 bits of microseconds are 285 years")]
pub fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

#[derive(Clone, Debug, Serialize)]
pub struct CheckpointJson {
    #[serde(flatten)]
    pub made: MadeCheckpoint,
    /// The branch at that time.
    pub branch: String,
    /// Further data; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

impl Deref for CheckpointJson {
    type Target = MadeCheckpoint;

    fn deref(&self) -> &MadeCheckpoint {
        &self.made
    }
}

impl CheckpointJson {
    /// Creates the report of a checkpoint, without its body.
    pub fn new(session: &Session, checkpoint: &Checkpoint) -> Result<Self, CommandError> {
        let branch = session.branch_name(checkpoint.branch)?;
        Ok(Self { made: checkpoint.into(), branch, body: None })
    }

    /// Creates the report of a checkpoint with its body. With `full`, long texts are not cut.
    pub fn with_body(
        session: &Session,
        checkpoint: &Checkpoint,
        full: bool,
    ) -> Result<Self, CommandError> {
        let length = if full { TextLength::Whole } else { TextLength::Cut };
        let body = match &checkpoint.body {
            Value::Null => None,
            body => {
                // A checkpoint does not name the source of its texts; their hash finds it.
                let mut texts = TextReader::new(session, length);
                let source = texts.source_of(body)?;
                Some(texts.resolve(source.as_deref(), body.clone())?)
            }
        };
        Ok(Self { body, ..Self::new(session, checkpoint)? })
    }
}

pub fn trigger_word(trigger: CheckpointTrigger) -> String {
    match trigger {
        CheckpointTrigger::Manual => "manual".to_owned(),
        CheckpointTrigger::Scheduled => "scheduled".to_owned(),
        CheckpointTrigger::Automatic(auto) => json_word(auto).replace('_', " "),
    }
}

/// One of two moments in a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct MomentJson {
    /// Its time; null if nothing has happened yet.
    pub at: Option<Timestamp>,
    pub branch: String,
    /// Its revision; null before the first.
    pub revision: Option<RevisionSummary>,
    /// The checkpoint that was given; null if none was.
    pub checkpoint: Option<CheckpointJson>,
}

impl MomentJson {
    /// Creates the report of a moment.
    pub fn new(session: &Session, moment: &ResolvedMoment) -> Result<Self, CommandError> {
        let checkpoint = moment.named_checkpoint();
        Ok(Self {
            at: session.time_of(moment)?,
            branch: session.branch_of(moment)?,
            revision: session.revision_of(moment)?,
            checkpoint: checkpoint.map(|one| CheckpointJson::new(session, one)).transpose()?,
        })
    }

    /// Writes the moment in one line.
    pub fn print(&self, label: &str, screen: &mut Screen) {
        screen.put(Tone::Dim, label);
        screen.put(Tone::Plain, &self.at.map_or("nothing yet".to_owned(), |at| screen.time(at)));
        screen.put(Tone::Dim, &format!(" on {}", self.branch));
        if let Some(revision) = &self.revision {
            screen.put(Tone::Id, &format!(" #{}", revision.sequence));
        }
        if let Some(checkpoint) = &self.checkpoint {
            screen.put(Tone::Plain, &format!(" \"{}\"", checkpoint.message));
        }
        screen.end_line();
    }
}

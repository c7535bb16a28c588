//! Reports about tagged checkpoints and the checkpoint schedule.

use super::entity_write::MadeCheckpoint;
use crate::output::{Report, Screen, Tone};
use forge_store::model::Timestamp;
use forge_store::model::time_grammar::describe_distance;
use serde::Serialize;

/// A checkpoint whose tags were to be changed.
#[derive(Debug, Serialize)]
pub struct CheckpointTagReport {
    pub session: String,
    /// The current branch.
    pub branch: String,
    /// Whether its tags were others before.
    #[serde(skip)]
    pub changed: bool,
    /// The checkpoint as it is now.
    pub checkpoint: MadeCheckpoint,
}

impl Report for CheckpointTagReport {
    fn human(&self, screen: &mut Screen) {
        let done = if self.changed { "Tagged" } else { "Nothing to change" };
        screen.plain(&format!("{done} (session {})", self.session));
        self.checkpoint.print(screen);
    }
}

#[derive(Debug, Serialize)]
pub struct CheckpointScheduleReport {
    pub session: String,
    /// The current branch.
    pub branch: String,
    /// The seconds between scheduled checkpoints; null without a schedule.
    pub every_seconds: Option<i64>,
    /// When the last checkpoint with any trigger was made; null if there is none.
    pub last_checkpoint: Option<Timestamp>,
}

impl Report for CheckpointScheduleReport {
    fn human(&self, screen: &mut Screen) {
        match self.every_seconds {
            None => screen.put(Tone::Plain, "No checkpoints are scheduled"),
            Some(seconds) => {
                let every = describe_distance(seconds.saturating_mul(1_000_000));
                screen.put(Tone::Plain, &format!("A checkpoint is due {every} after the last"));
                screen.put(Tone::Plain, " one, at the next write");
            }
        }
        screen.dim(&format!(" (session {})", self.session));
    }
}

//! Lists of checkpoints.

use super::entity_write::MadeCheckpoint;
use super::moment::CheckpointJson;
use crate::output::{Report, Screen, TableCell, TextTable, cells};
use forge_store::model::CheckpointTrigger;
use serde::Serialize;

/// Checkpoints, newest first.
#[derive(Debug, Serialize)]
pub struct CheckpointListReport {
    /// The session of the checkpoints; null for a list over all sessions.
    pub session: Option<String>,
    pub checkpoints: Vec<CheckpointListItem>,
    /// How many checkpoints were left out because their messages say only that time had passed.
    pub unnamed: usize,
    /// Whether `--limit` left some out.
    #[serde(skip)]
    pub more: bool,
    /// Whether an option may have excluded checkpoints.
    #[serde(skip)]
    pub filtered: bool,
}

impl CheckpointListReport {
    fn print_unnamed(&self, screen: &mut Screen) {
        let count = match self.unnamed {
            0 => return,
            1 => "1 checkpoint without a name is".to_owned(),
            count => format!("{count} checkpoints without a name are"),
        };
        screen.dim(&format!("{count} not listed; '--unnamed' lists all."));
    }
}

const MORE: &str = "More with a greater '--limit'";

/// A checkpoint of the list.
#[derive(Debug, Serialize)]
pub struct CheckpointListItem {
    #[serde(flatten)]
    pub checkpoint: CheckpointJson,
    /// Its session, in a list of all sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

impl Report for CheckpointListReport {
    fn human(&self, screen: &mut Screen) {
        if self.more && self.checkpoints.is_empty() {
            return screen.dim(MORE);
        }
        if self.checkpoints.is_empty() && self.filtered {
            screen.plain("No matching checkpoints.");
            let all = format!("'{} checkpoint list' lists all of the session.", screen.forge());
            screen.dim(&all);
            return self.print_unnamed(screen);
        }
        if self.checkpoints.is_empty() {
            screen.plain("No checkpoints.");
            screen.dim(&format!("'{} checkpoint create MESSAGE' makes one.", screen.forge()));
            return self.print_unnamed(screen);
        }
        let titles: &[&str] = match self.session {
            Some(_) => &["No", "Time", "Message", "Tags", "Trigger", "Branch"],
            None => &["No", "Time", "Message", "Tags", "Trigger", "Branch", "Session"],
        };
        let mut table = TextTable::new(titles).right(0).flexible(2);
        for CheckpointListItem { checkpoint, session } in &self.checkpoints {
            let mut row = cells![
                Id: format!("#{}", checkpoint.sequence), screen.column_time(checkpoint.time),
                &checkpoint.message, own_tags(&checkpoint.made),
                Dim: short_trigger(checkpoint.trigger), &checkpoint.branch,
            ];
            row.extend(session.as_ref().map(TableCell::plain));
            table.row(row);
        }
        screen.table(&table);
        if self.more {
            screen.dim(MORE);
        }
        self.print_unnamed(screen);
    }
}

/// Returns the tags of a checkpoint, without those that repeat its trigger or message.
fn own_tags(checkpoint: &MadeCheckpoint) -> String {
    const REPEATED: [&str; 4] = ["auto", "time", "hypothesis_confirmed", "hypothesis_rejected"];
    let is_automatic = matches!(checkpoint.trigger, CheckpointTrigger::Automatic(_));
    let tags = checkpoint.tags.iter().map(String::as_str);
    let own = tags.filter(|tag| !is_automatic || !REPEATED.contains(tag));
    own.collect::<Vec<_>>().join(",")
}

/// Returns the short name of a trigger. It does not name the event: the message of the checkpoint
/// does.
const fn short_trigger(trigger: CheckpointTrigger) -> &'static str {
    match trigger {
        CheckpointTrigger::Manual => "manual",
        CheckpointTrigger::Scheduled => "scheduled",
        CheckpointTrigger::Automatic(_) => "automatic",
    }
}

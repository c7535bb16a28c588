//! Reports of restores and their previews.

use super::diff::{print_changes, print_some_changes};
use crate::output::{Report, Screen, Tone};
use crate::text::count_text;
use forge_store::diff::TypedChange;
use forge_store::model::Timestamp;
use forge_store::store::RevisionSummary;
use serde::Serialize;

/// How many changes of a kind are shown for a finished restore; its summary counts them all.
const CHANGES_SHOWN: usize = 10;

/// The result of a restore, or its preview.
#[derive(Debug, Serialize)]
pub struct CheckpointRestoreReport {
    /// The id of the restored checkpoint, or else of the revision; null for the moment before the
    /// first revision.
    pub restored_to: Option<String>,
    /// The restored moment.
    pub timestamp: Option<Timestamp>,
    /// The checkpoint's message, or else the moment as it was given.
    pub message: String,
    /// Whether all claims equal the claims at the moment; false for a dry run.
    pub recovery_complete: bool,
    pub dry_run: bool,
    pub session: String,
    /// The current branch, which gets the new revision.
    pub branch: String,
    /// The new revision; null if there is none, because all claims were equal already.
    pub revision: Option<RevisionSummary>,
    /// The number of claims at the restored moment.
    pub claims_restored: u64,
    /// The number of facts after the restored moment. They are kept.
    pub facts_since: u64,
    pub changes: Vec<TypedChange>,
    /// A summary in one sentence.
    pub summary: String,
}

impl Report for CheckpointRestoreReport {
    fn human(&self, screen: &mut Screen) {
        let when = self.timestamp.map_or("the beginning".to_owned(), |time| screen.time(time));
        let done = match (self.dry_run, &self.revision) {
            (true, _) => "Would go back to",
            (false, Some(_)) => "Went back to",
            (false, None) => "Already as at",
        };
        screen.plain(&format!("{done} \"{}\", {when}", self.message));
        screen.put(Tone::Dim, &format!("{} on {}", self.session, self.branch));
        if let Some(revision) = &self.revision {
            screen.put(Tone::Id, &format!(" #{}", revision.sequence));
        }
        screen.dim(&format!(", {}", count_text(self.claims_restored, "claim")));
        if self.facts_since > 0 {
            let facts = if self.facts_since == 1 { "fact has" } else { "facts have" };
            screen.plain(&format!("{} {facts} come since; facts stay.", self.facts_since));
        }
        screen.line(Tone::Heading, &self.summary);
        if self.dry_run {
            print_changes(&self.changes, screen);
        } else {
            let rest_is = format!("'{} checkpoint diff HEAD~1 HEAD' has all", screen.forge());
            print_some_changes(&self.changes, CHANGES_SHOWN, &rest_is, screen);
        }
        if self.revision.is_some() {
            screen.gap();
            screen.dim(&format!("'{} undo' reverts this.", screen.forge()));
        }
    }
}

//! Reports of the logs of a branch, a session, an entity, and of operations.

use super::diff::{print_change, readable};
use super::moment::{CheckpointJson, trigger_word};
use crate::output::{Report, Screen, Tone};
use crate::text::name_list;
use forge_store::diff::{TypedChange, summary};
use forge_store::model::Key;
use forge_store::store::{LogEntry, OperationSummary};
use serde::Serialize;
use std::collections::BTreeMap;

/// Revisions and checkpoints, newest first.
#[derive(Debug, Serialize)]
pub struct LogReport {
    pub session: String,
    /// The branch; null for all.
    pub branch: Option<String>,
    /// The entity, if this is the history of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<Key>,
    pub entries: Vec<LogLine>,
}

/// A revision or a checkpoint.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LogLine {
    Revision(RevisionLine),
    Checkpoint(CheckpointJson),
    /// A revision whose changes were lost before a repair.
    Unreadable(RevisionLine),
    /// A revision that was lost before a repair.
    Lost(LostLine),
}

/// A revision that was lost before a repair.
#[derive(Debug, Serialize)]
pub struct LostLine {
    pub sequence: u64,
    pub branch: String,
}

#[derive(Debug, Serialize)]
pub struct RevisionLine {
    #[serde(flatten)]
    pub entry: LogEntry,
    pub changes: Vec<TypedChange>,
}

impl RevisionLine {
    /// Creates the line of a revision with these changes.
    pub fn new(entry: LogEntry, changes: Vec<TypedChange>) -> Self {
        Self { entry, changes: changes.into_iter().map(readable).collect() }
    }

    /// Writes the revision in one line.
    pub fn print(&self, screen: &mut Screen) {
        let LogEntry { sequence, time, branch, verb, merged, .. } = &self.entry;
        let time = screen.time(*time);
        let merged = merged.map(|merged| format!(" of #{merged}")).unwrap_or_default();
        screen.short_line(&[
            (Tone::Id, &format!("#{sequence} ")),
            (Tone::Dim, &format!("{time} ")),
            (Tone::Plain, verb),
            (Tone::Id, &merged),
            (Tone::Dim, &format!(" on {branch}")),
        ]);
    }
}

/// The maximum number of changes of a revision that are shown one by one; more are summarised.
const CHANGES_SHOWN: usize = 6;

impl Report for LogReport {
    fn human(&self, screen: &mut Screen) {
        if self.entries.is_empty() {
            let session = &self.session;
            return screen.plain(&format!(
                "No revision or checkpoint of the session '{session}' is in this part of the log."
            ));
        }
        for entry in &self.entries {
            match entry {
                LogLine::Revision(revised) => {
                    revised.print(screen);
                    if revised.changes.len() > CHANGES_SHOWN {
                        let summary = summary(&revised.changes, None);
                        screen.short_line(&[(Tone::Plain, &format!("  {summary}"))]);
                    } else {
                        revised.changes.iter().for_each(|change| print_change(change, screen));
                    }
                }
                LogLine::Unreadable(revised) => {
                    revised.print(screen);
                    screen.warning("  its changes were lost before a repair");
                }
                LogLine::Lost(lost) => screen.short_line(&[
                    (Tone::Id, &format!("#{} ", lost.sequence)),
                    (Tone::Warning, "lost before a repair"),
                    (Tone::Dim, &format!(" on {}", lost.branch)),
                ]),
                LogLine::Checkpoint(checkpoint) => {
                    let time = screen.time(checkpoint.time);
                    let tags = checkpoint.tags.join(",");
                    let tags = if tags.is_empty() { tags } else { format!(" [{tags}]") };
                    let trigger = trigger_word(checkpoint.trigger);
                    screen.short_line(&[
                        (Tone::Id, &format!("#{} ", checkpoint.sequence)),
                        (Tone::Dim, &format!("{time} ")),
                        (Tone::Heading, "checkpoint "),
                        (Tone::Plain, &checkpoint.message),
                        (Tone::Dim, &format!("{tags} {trigger}")),
                    ]);
                }
            }
        }
    }
}

/// Operations, newest first.
#[derive(Debug, Serialize)]
pub struct OperationListReport {
    pub session: String,
    pub operations: Vec<OperationSummary>,
    /// What each revision changed, by its number; only for people.
    #[serde(skip)]
    pub summaries: BTreeMap<u64, String>,
}

impl Report for OperationListReport {
    const SCHEMA: Option<&'static str> = Some("forge.log.operations/1");

    fn human(&self, screen: &mut Screen) {
        if self.operations.is_empty() {
            screen.plain(&format!(
                "No operation of the session '{}' is in this part of the log.",
                self.session
            ));
        }
        for operation in &self.operations {
            let time = screen.column_time(operation.time);
            let about = operation.revision.and_then(|number| self.summaries.get(&number));
            let about = about.map(|about| format!(": {about}")).unwrap_or_default();
            let state = if operation.taken_back { " (undone)" } else { "" };
            let effects = name_list(&operation.effects);
            let effects = if effects.is_empty() { effects } else { format!(" ({effects})") };
            screen.short_line(&[
                (Tone::Id, &format!("{} ", operation.id.short())),
                (Tone::Dim, &format!("{time} ")),
                (Tone::Plain, &operation.verb),
                (Tone::Warning, state),
                (Tone::Plain, &about),
                (Tone::Dim, &effects),
            ]);
        }
    }
}

//! Reports of pipeline executions: their stages, failures and clean-up.

use crate::output::{Report, Screen, TextTable, Tone, cells};
use forge_store::model::claim::VocabularyWord as _;
use forge_store::model::time_grammar::describe_distance;
use forge_store::model::{OperationId, Timestamp};
use forge_systems::progress::{
    self, FailedItem, KeepReason, PipelineExecution, PipelinePreset, ProgressDocument,
    RetryBackoff, SaveFrequency,
};
use serde::Serialize;
use std::collections::BTreeSet;

/// The progress of an execution, in one line.
#[derive(Debug, Serialize)]
pub struct ExecutionJson {
    pub review: String,
    pub execution: String,
    /// Its current stage; null if no document is saved, and items were reported at several stages.
    pub stage: Option<String>,
    pub items_processed: Option<i64>,
    /// The number of all items.
    pub items_total: Option<i64>,
    pub error_count: Option<i64>,
    /// When its document was last saved; null if only items were reported.
    pub updated_at: Option<Timestamp>,
}

impl ExecutionJson {
    pub fn new(execution: &PipelineExecution, document: &ProgressDocument) -> Self {
        let counts = document.counts();
        Self {
            review: execution.review().to_owned(),
            execution: execution.execution().to_owned(),
            stage: document.stage().map(str::to_owned),
            items_processed: counts.items_processed,
            items_total: counts.items_total,
            error_count: document.error_count(),
            updated_at: document.updated_at(),
        }
    }

    /// Describes an execution with no document, whose items were reported at these stages.
    pub fn without_document(execution: &PipelineExecution, stages: BTreeSet<String>) -> Self {
        let mut stages = stages.into_iter();
        Self {
            review: execution.review().to_owned(),
            execution: execution.execution().to_owned(),
            stage: stages.next().filter(|_| stages.next().is_none()),
            items_processed: None,
            items_total: None,
            error_count: None,
            updated_at: None,
        }
    }

    /// Whether a document is saved, and not only items were reported.
    fn has_document(&self) -> bool {
        self.updated_at.is_some()
    }

    fn counted(&self) -> String {
        let text = |count: Option<i64>| count.map_or("?".to_owned(), |count| count.to_string());
        format!("{} of {}", text(self.items_processed), text(self.items_total))
    }

    pub(super) fn print(&self, screen: &mut Screen) {
        screen.put(Tone::Id, &format!("{} {}", self.review, self.execution));
        let stage = self.stage.as_deref().unwrap_or("no stage");
        screen.put(Tone::Plain, &format!(" at {stage}: {} items", self.counted()));
    }
}

#[derive(Debug, Serialize)]
pub struct FailedItemJson {
    pub id: String,
    /// The class of its last failure.
    pub class: Option<&'static str>,
    /// Whether a retry may help; otherwise a person must look at it.
    pub retriable: bool,
    /// The number of failed attempts.
    pub attempts: i64,
    /// The last error.
    pub error: Option<String>,
    /// The time of the last failure.
    pub failed_at: Option<Timestamp>,
    /// When to try again.
    pub retry_at: Option<Timestamp>,
    /// Whether that time has come.
    pub due: bool,
}

impl FailedItemJson {
    pub fn new(item: FailedItem, backoff: &RetryBackoff, now: Timestamp) -> Self {
        let retry_at = item.retry_at(backoff);
        Self {
            class: item.class.map(|class| class.word()),
            retriable: item.is_retriable(),
            due: retry_at.is_some_and(|time| time <= now),
            retry_at,
            id: item.id,
            attempts: item.attempts,
            error: item.error,
            failed_at: item.failed_at,
        }
    }
}

#[derive(Debug, Serialize)]
pub struct ProgressFailedReport {
    pub review: String,
    pub execution: String,
    pub stage: String,
    pub items: Vec<FailedItemJson>,
}

impl Report for ProgressFailedReport {
    fn human(&self, screen: &mut Screen) {
        if self.items.is_empty() {
            return screen.dim("No failed items");
        }
        let mut table = TextTable::new(&["Item", "Class", "Failed", "Retry", "Error"]).right(2);
        for item in &self.items {
            let retry = match item.retry_at {
                None if item.retriable => "now".to_owned(),
                None => "needs a person".to_owned(),
                Some(_) if item.due => "now".to_owned(),
                Some(time) => screen.ago(time),
            };
            table.row(cells![
                Id: &item.id, item.class.unwrap_or("-"), item.attempts, retry,
                item.error.as_deref().unwrap_or_default(),
            ]);
        }
        screen.table(&table);
    }
}

#[derive(Debug, Serialize)]
pub struct ProgressListReport {
    /// The executions, the one with the last write first.
    pub executions: Vec<ExecutionJson>,
}

impl Report for ProgressListReport {
    fn human(&self, screen: &mut Screen) {
        if self.executions.is_empty() {
            return screen.dim("No progress is saved");
        }
        let mut table =
            TextTable::new(&["Review", "Execution", "Stage", "Items", "Errors", "Saved"]);
        for one in &self.executions {
            let (items, errors) = match one.has_document() {
                true => (one.counted(), one.error_count.unwrap_or(0).to_string()),
                false => ("-".to_owned(), "-".to_owned()),
            };
            table.row(cells![
                &one.review, Id: &one.execution, one.stage.as_deref().unwrap_or("-"), items, errors,
                Dim: one.updated_at.map(|t| screen.ago(t)).unwrap_or_default(),
            ]);
        }
        screen.table(&table);
    }
}

#[derive(Debug, Serialize)]
pub struct StageJson {
    /// Its name.
    pub stage: &'static str,
    /// Its description.
    pub about: &'static str,
    /// How often to save its progress: `per_item`, `per_batch`, `interval`, `paused`.
    pub frequency: &'static str,
    /// For `per_batch`: the number of items.
    pub items: Option<u64>,
    /// For `interval`: the number of seconds.
    pub seconds: Option<i64>,
}

#[derive(Debug, Serialize)]
pub struct ProgressStagesReport {
    pub preset: &'static str,
    /// Its purpose.
    pub about: &'static str,
    pub stages: Vec<StageJson>,
}

impl ProgressStagesReport {
    pub fn new(preset: &PipelinePreset) -> Self {
        let stage_json = |stage: &progress::PipelineStage| {
            let (frequency, items, seconds) = match stage.frequency {
                SaveFrequency::PerItem => ("per_item", None, None),
                SaveFrequency::PerBatch(items) => ("per_batch", Some(items), None),
                SaveFrequency::Interval(micros) => ("interval", None, Some(micros / 1_000_000)),
                SaveFrequency::Paused => ("paused", None, None),
            };
            StageJson { stage: stage.name, about: stage.about, frequency, items, seconds }
        };
        let stages = preset.stages.iter().map(stage_json).collect();
        Self { preset: preset.name, about: preset.about, stages }
    }
}

impl Report for ProgressStagesReport {
    fn human(&self, screen: &mut Screen) {
        let mut table = TextTable::new(&["Stage", "Save", "What happens"]);
        for stage in &self.stages {
            let every = stage.seconds.map(|seconds| describe_distance(seconds * 1_000_000));
            let save = match (stage.items, every) {
                (Some(items), _) => format!("every {items} items"),
                (_, Some(every)) => format!("every {every}"),
                _ if stage.frequency == "paused" => "-".to_owned(),
                _ => "every item".to_owned(),
            };
            table.row(cells![Id: stage.stage, save, stage.about]);
        }
        screen.table(&table);
    }
}

/// An execution that was considered for clean-up.
#[derive(Debug, Serialize)]
pub struct CleanedExecutionJson {
    pub review: String,
    pub execution: String,
    /// When it was last saved.
    pub updated_at: Option<Timestamp>,
    /// Why it is kept: `unfinished`, `errors`, `recent`; null if it is removed.
    pub kept: Option<&'static str>,
    /// The session that contains it, for `forge undo --session`.
    pub session: String,
    /// The operation that removed it; null if it is kept, or in a dry run.
    pub operation: Option<OperationId>,
}

/// The result of a clean-up.
#[derive(Debug, Serialize)]
pub struct ProgressCleanReport {
    /// Whether nothing was changed.
    pub dry_run: bool,
    pub removed: Vec<CleanedExecutionJson>,
    /// The executions that are kept, each with the reason.
    pub left: Vec<CleanedExecutionJson>,
}

impl ProgressCleanReport {
    pub fn new(found: Vec<progress::CleanedExecution>, dry_run: bool) -> Self {
        let execution_json = |one: progress::CleanedExecution| CleanedExecutionJson {
            session: forge_systems::join(&[&one.review, &one.execution]).unwrap_or_default(),
            review: one.review,
            execution: one.execution,
            updated_at: one.updated_at,
            kept: one.kept.map(KeepReason::word),
            operation: one.operation,
        };
        let (removed, left) =
            found.into_iter().map(execution_json).partition(|one| one.kept.is_none());
        Self { dry_run, removed, left }
    }
}

impl Report for ProgressCleanReport {
    fn human(&self, screen: &mut Screen) {
        let done = if self.dry_run { "Would remove" } else { "Removed" };
        for one in &self.removed {
            screen.put(Tone::Plain, &format!("{done} "));
            screen.put(Tone::Id, &format!("{} {}", one.review, one.execution));
            let saved = one.updated_at.map(|time| screen.ago(time)).unwrap_or_default();
            screen.dim(&format!(", saved {saved}"));
            if !self.dry_run {
                let undo =
                    format!("  'forge undo --session {}', twice, brings it back", one.session);
                screen.dim(&undo);
            }
        }
        if self.removed.is_empty() {
            screen.plain("Nothing to remove");
        }
        for one in &self.left {
            screen.put(Tone::Plain, &format!("Kept {} {}", one.review, one.execution));
            screen.dim(&format!(" ({})", one.kept.unwrap_or_default()));
        }
    }
}

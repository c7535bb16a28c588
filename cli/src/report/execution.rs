//! Executions of long pipelines, their stages, what failed in them and what is cleaned away.

use crate::output::{Cell, Report, Screen, Table, Tone};
use forge_store::model::claim::VocabularyWord as _;
use forge_store::model::time_grammar::describe_distance;
use forge_store::model::{OperationId, Timestamp};
use forge_systems::progress::{
    self, FailedItem, KeepReason, PipelineExecution, PipelinePreset, ProgressDocument,
    RetryBackoff, SaveFrequency,
};
use serde::Serialize;

/// How far an execution is, in a line.
#[derive(Debug, Serialize)]
pub struct ExecutionJson {
    /// The review.
    pub review: String,
    /// The execution.
    pub execution: String,
    /// The stage it has come to.
    pub stage: Option<String>,
    /// How many items are processed.
    pub items_processed: Option<i64>,
    /// How many there are.
    pub items_total: Option<i64>,
    /// How many errors there were.
    pub error_count: Option<i64>,
    /// When it was last saved.
    pub updated_at: Option<Timestamp>,
}

impl ExecutionJson {
    /// What is told of an execution.
    #[must_use]
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

    fn counted(&self) -> String {
        let said = |count: Option<i64>| count.map_or("?".to_owned(), |count| count.to_string());
        format!("{} of {}", said(self.items_processed), said(self.items_total))
    }

    pub(super) fn tell(&self, screen: &mut Screen) {
        screen.put(Tone::Id, &format!("{} {}", self.review, self.execution));
        let stage = self.stage.as_deref().unwrap_or("no stage");
        screen.put(Tone::Plain, &format!(" at {stage}: {} items", self.counted()));
    }
}

/// An item that failed.
#[derive(Debug, Serialize)]
pub struct FailedJson {
    /// Its id.
    pub id: String,
    /// The class of its last failure.
    pub class: Option<&'static str>,
    /// Whether another try may help; else a person has to look.
    pub retriable: bool,
    /// How often it failed.
    pub attempts: i64,
    /// What went wrong last.
    pub error: Option<String>,
    /// When it failed last.
    pub failed_at: Option<Timestamp>,
    /// When to try again.
    pub retry_at: Option<Timestamp>,
    /// Whether that time has come.
    pub due: bool,
}

impl FailedJson {
    /// What is told of it.
    #[must_use]
    pub fn of(item: FailedItem, backoff: &RetryBackoff, now: Timestamp) -> Self {
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

/// The items that failed.
#[derive(Debug, Serialize)]
pub struct Failed {
    /// The review.
    pub review: String,
    /// The execution.
    pub execution: String,
    /// The stage.
    pub stage: String,
    /// The items.
    pub items: Vec<FailedJson>,
}

impl Report for Failed {
    const SCHEMA: &'static str = "forge.progress.failed/1";

    fn human(&self, screen: &mut Screen) {
        if self.items.is_empty() {
            screen.line(Tone::Dim, "No failed items");
            return;
        }
        let mut table = Table::new(&["Item", "Class", "Failed", "Retry", "Error"]).right(2);
        for item in &self.items {
            let retry = match item.retry_at {
                None if item.retriable => "now".to_owned(),
                None => "a person has to look".to_owned(),
                Some(_) if item.due => "now".to_owned(),
                Some(time) => screen.ago(time),
            };
            table.row(vec![
                Cell::new(Tone::Id, &item.id),
                Cell::plain(item.class.unwrap_or("-")),
                Cell::plain(item.attempts.to_string()),
                Cell::plain(retry),
                Cell::plain(item.error.as_deref().unwrap_or_default()),
            ]);
        }
        screen.table(&table);
    }
}

/// Several executions.
#[derive(Debug, Serialize)]
pub struct Executions {
    /// The executions, the one last written to first.
    pub executions: Vec<ExecutionJson>,
}

impl Report for Executions {
    const SCHEMA: &'static str = "forge.progress.list/1";

    fn human(&self, screen: &mut Screen) {
        if self.executions.is_empty() {
            screen.line(Tone::Dim, "No progress is saved");
            return;
        }
        let mut table = Table::new(&["Review", "Execution", "Stage", "Items", "Errors", "Saved"]);
        for one in &self.executions {
            table.row(vec![
                Cell::plain(&one.review),
                Cell::new(Tone::Id, &one.execution),
                Cell::plain(one.stage.as_deref().unwrap_or("-")),
                Cell::plain(one.counted()),
                Cell::plain(one.error_count.unwrap_or(0).to_string()),
                Cell::new(Tone::Dim, one.updated_at.map(|t| screen.ago(t)).unwrap_or_default()),
            ]);
        }
        screen.table(&table);
    }
}

/// A stage.
#[derive(Debug, Serialize)]
pub struct StageJson {
    /// Its name.
    pub stage: &'static str,
    /// What happens in it.
    pub about: &'static str,
    /// How often its progress is worth saving: `per_item`, `per_batch`, `interval`, `paused`.
    pub frequency: &'static str,
    /// Of `per_batch`: how many items.
    pub items: Option<u64>,
    /// Of `interval`: how many seconds.
    pub seconds: Option<i64>,
}

/// The stages of a preset.
#[derive(Debug, Serialize)]
pub struct Stages {
    /// The preset.
    pub preset: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Its stages in order.
    pub stages: Vec<StageJson>,
}

impl Stages {
    /// What is told of it.
    #[must_use]
    pub fn of(preset: &PipelinePreset) -> Self {
        let told = |stage: &progress::PipelineStage| {
            let (frequency, items, seconds) = match stage.frequency {
                SaveFrequency::PerItem => ("per_item", None, None),
                SaveFrequency::PerBatch(items) => ("per_batch", Some(items), None),
                SaveFrequency::Interval(micros) => ("interval", None, Some(micros / 1_000_000)),
                SaveFrequency::Paused => ("paused", None, None),
            };
            StageJson { stage: stage.name, about: stage.about, frequency, items, seconds }
        };
        let stages = preset.stages.iter().map(told).collect();
        Self { preset: preset.name, about: preset.about, stages }
    }
}

impl Report for Stages {
    const SCHEMA: &'static str = "forge.progress.stages/1";

    fn human(&self, screen: &mut Screen) {
        let mut table = Table::new(&["Stage", "Save", "What happens"]);
        for stage in &self.stages {
            let every = stage.seconds.map(|seconds| describe_distance(seconds * 1_000_000));
            let save = match (stage.items, every) {
                (Some(items), _) => format!("every {items} items"),
                (_, Some(every)) => format!("every {every}"),
                _ if stage.frequency == "paused" => "-".to_owned(),
                _ => "every item".to_owned(),
            };
            table.row(vec![
                Cell::new(Tone::Id, stage.stage),
                Cell::plain(save),
                Cell::plain(stage.about),
            ]);
        }
        screen.table(&table);
    }
}

/// An execution that was looked at.
#[derive(Debug, Serialize)]
pub struct CleanedJson {
    /// The review.
    pub review: String,
    /// The execution.
    pub execution: String,
    /// When it was last saved.
    pub updated_at: Option<Timestamp>,
    /// Why it is kept: `unfinished`, `errors`, `recent`; null if it goes.
    pub kept: Option<&'static str>,
    /// The session it is kept in, for `forge undo --session`.
    pub session: String,
    /// The operation that took it out.
    pub operation: Option<OperationId>,
}

/// What was cleaned up.
#[derive(Debug, Serialize)]
pub struct Cleaned {
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// The executions that go.
    pub removed: Vec<CleanedJson>,
    /// Those that are kept, each with the reason.
    pub left: Vec<CleanedJson>,
}

impl Cleaned {
    /// What is told of it.
    #[must_use]
    pub fn of(found: Vec<progress::CleanedExecution>, dry_run: bool) -> Self {
        let told = |one: progress::CleanedExecution| CleanedJson {
            session: forge_systems::join(&[&one.review, &one.execution]).unwrap_or_default(),
            review: one.review,
            execution: one.execution,
            updated_at: one.updated_at,
            kept: one.kept.map(KeepReason::word),
            operation: one.operation,
        };
        let (removed, left) = found.into_iter().map(told).partition(|one| one.kept.is_none());
        Self { dry_run, removed, left }
    }
}

impl Report for Cleaned {
    const SCHEMA: &'static str = "forge.progress.clean/1";

    fn human(&self, screen: &mut Screen) {
        let done = if self.dry_run { "Would take out" } else { "Took out" };
        for one in &self.removed {
            screen.put(Tone::Plain, &format!("{done} "));
            screen.put(Tone::Id, &format!("{} {}", one.review, one.execution));
            let saved = one.updated_at.map(|time| screen.ago(time)).unwrap_or_default();
            screen.line(Tone::Dim, &format!(", saved {saved}"));
            if !self.dry_run {
                let undo =
                    format!("  'forge undo --session {}', twice, brings it back", one.session);
                screen.line(Tone::Dim, &undo);
            }
        }
        if self.removed.is_empty() {
            screen.line(Tone::Plain, "Nothing to take out");
        }
        for one in &self.left {
            screen.put(Tone::Plain, &format!("Kept {} {}", one.review, one.execution));
            screen.line(Tone::Dim, &format!(" ({})", one.kept.unwrap_or_default()));
        }
    }
}

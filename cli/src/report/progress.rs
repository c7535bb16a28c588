//! Reports of the progress of long pipelines.

use super::execution::ExecutionJson;
use crate::error::{EXIT_NO, EXIT_OK};
use crate::output::{Report, Screen, Tone};
use crate::text::name_list;
use forge_store::model::{FieldMap, OperationId, Timestamp, Value};
use forge_store::store::WriteReport;
use forge_systems::progress::{
    PipelineExecution, ProgressDocument, ProgressFault, ProgressFaultKind, ProgressValidation,
    ResultCursor, ResumeDecision, ResumePoint,
};
use serde::Serialize;

/// A document that was saved.
#[derive(Debug, Serialize)]
pub struct ProgressSaveReport {
    #[serde(flatten)]
    pub at: ExecutionJson,
    /// The sequence number of the revision.
    pub sequence: Option<u64>,
    /// The operation, for `forge undo`.
    pub operation: OperationId,
    /// What would prevent resuming, or what a person should know.
    pub warnings: Vec<String>,
}

impl ProgressSaveReport {
    pub fn new(
        execution: &PipelineExecution,
        document: &ProgressDocument,
        done: &WriteReport,
        warnings: Vec<String>,
    ) -> Self {
        let at = ExecutionJson::new(execution, document);
        let sequence = done.revision.map(|(sequence, _)| sequence);
        Self { at, sequence, operation: done.operation, warnings }
    }
}

impl Report for ProgressSaveReport {
    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, "Saved ");
        self.at.print(screen);
        screen.dim(&self.sequence.map(|number| format!(" (#{number})")).unwrap_or_default());
        print_faults(screen, &[], &self.warnings);
    }
}

#[derive(Debug, Serialize)]
pub struct ProgressItemReport {
    pub review: String,
    pub execution: String,
    pub stage: String,
    pub id: String,
    /// The reported status: `done`, `failed`.
    pub status: &'static str,
    /// The class of the failure, if it is known.
    pub class: Option<&'static str>,
    /// Whether this status changed the saved progress.
    pub changed: bool,
    /// The sequence number of the revision; null if nothing changed.
    pub sequence: Option<u64>,
}

impl ProgressItemReport {
    pub fn new(
        execution: &PipelineExecution,
        stage: String,
        id: &str,
        (status, class): (&'static str, Option<&'static str>),
        done: &WriteReport,
    ) -> Self {
        Self {
            review: execution.review().to_owned(),
            execution: execution.execution().to_owned(),
            stage,
            id: id.to_owned(),
            status,
            class,
            changed: done.revision.is_some(),
            sequence: done.revision.map(|(sequence, _)| sequence),
        }
    }
}

impl Report for ProgressItemReport {
    const SCHEMA: Option<&'static str> = Some("forge.progress.item/1");

    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Id, &self.id);
        let already = if self.changed { "" } else { " already" };
        let class = self.class.map(|class| format!(" ({class})")).unwrap_or_default();
        screen.put(Tone::Plain, &format!(" is {}{already}{class}", self.status));
        screen.dim(&format!(" ({} {}, {})", self.review, self.execution, self.stage));
    }
}

/// The answer whether an item is done.
#[derive(Debug, Serialize)]
pub struct ProgressDoneReport {
    pub review: String,
    pub stage: String,
    /// The item.
    pub id: String,
    pub done: bool,
    pub execution: Option<String>,
    /// When it was reported as done.
    pub done_at: Option<Timestamp>,
}

impl Report for ProgressDoneReport {
    fn exit_code(&self) -> u8 {
        if self.done { EXIT_OK } else { EXIT_NO }
    }

    fn human(&self, screen: &mut Screen) {
        screen.plain(if self.done { "yes" } else { "no" });
    }
}

/// The whole progress of an execution.
#[derive(Debug, Serialize)]
pub struct ProgressShowReport {
    #[serde(flatten)]
    pub line: ExecutionJson,
    /// The saved document.
    pub document: FieldMap,
}

impl ProgressShowReport {
    pub fn new(execution: &PipelineExecution, document: &ProgressDocument) -> Self {
        let line = ExecutionJson::new(execution, document);
        Self { line, document: document.fields().clone() }
    }
}

impl Report for ProgressShowReport {
    fn human(&self, screen: &mut Screen) {
        self.line.print(screen);
        screen.end_line();
        for (name, value) in &self.document {
            if ["review_id", "execution_id", "stage"].contains(&name.as_str()) {
                continue;
            }
            let shown = match value {
                Value::Text(text) => text.clone(),
                other => serde_json::to_string(other).unwrap_or_default(),
            };
            screen.paragraph(Tone::Plain, 2, &format!("{name}: {shown}"));
        }
    }
}

#[derive(Debug, Serialize)]
pub struct SavedDocument {
    /// The sequence number of the revision.
    pub sequence: u64,
    pub time: Timestamp,
    /// The document; null if it was cleaned up.
    pub document: Option<Value>,
}

/// All documents of an execution.
#[derive(Debug, Serialize)]
pub struct ProgressHistoryReport {
    pub review: String,
    pub execution: String,
    /// The documents, newest first.
    pub saved: Vec<SavedDocument>,
}

impl Report for ProgressHistoryReport {
    const SCHEMA: Option<&'static str> = Some("forge.progress.history/1");

    fn human(&self, screen: &mut Screen) {
        for one in &self.saved {
            screen.line(Tone::Heading, &format!("#{} {}", one.sequence, screen.ago(one.time)));
            match &one.document {
                None => screen.dim("  cleaned up"),
                Some(document) => {
                    let text = serde_json::to_string(document).unwrap_or_default();
                    screen.paragraph(Tone::Plain, 2, &text);
                }
            }
        }
    }
}

fn print_faults(screen: &mut Screen, refusals: &[ProgressFault], warnings: &[String]) {
    for refusal in refusals {
        screen.put(Tone::Bad, "  refused: ");
        screen.plain(&refusal.message);
    }
    for warning in warnings {
        screen.put(Tone::Warning, "  warning: ");
        screen.plain(warning);
    }
}

/// The decision whether a pipeline can resume, and where.
#[derive(Debug, Default, Serialize)]
pub struct ProgressResumeReport {
    /// Whether it can resume.
    pub resume: bool,
    /// Why it cannot.
    pub reason: Option<String>,
    /// How it resumes: `paginated`, `batch`, `sequential`.
    pub mode: Option<&'static str>,
    pub next_batch: Option<i64>,
    /// The last processed item.
    pub after_id: Option<String>,
    /// The position in the result of a server.
    pub page: Option<ResultCursor>,
    /// The number of processed items.
    pub processed: Option<i64>,
    /// The number of remaining items.
    pub remaining: Option<i64>,
    /// The failed items, which can be retried separately.
    pub failed_ids: Vec<String>,
    pub warnings: Vec<String>,
    /// What prevents resuming.
    pub refusals: Vec<ProgressFault>,
    pub from_execution: Option<String>,
}

impl ProgressResumeReport {
    pub fn from_decision(answer: ResumeDecision) -> Self {
        match answer {
            ResumeDecision::Go(point) => Self::from_point(*point, true, None, Vec::new()),
            ResumeDecision::Refused { refusals, point } => {
                let messages: Vec<&str> = refusals.iter().map(|one| one.message.as_str()).collect();
                let reason = format!("refused: {}; '--force' insists", messages.join("; "));
                Self::from_point(*point, false, Some(reason), refusals)
            }
            ResumeDecision::Nothing { reason, from_execution } => {
                Self { reason: Some(reason), from_execution, ..Self::default() }
            }
        }
    }

    fn from_point(
        point: ResumePoint,
        resume: bool,
        reason: Option<String>,
        refusals: Vec<ProgressFault>,
    ) -> Self {
        Self {
            resume,
            reason,
            mode: Some(point.mode.word()),
            next_batch: point.next_batch,
            after_id: point.after_id,
            page: point.page,
            processed: Some(point.processed),
            remaining: point.remaining,
            failed_ids: point.failed_ids,
            warnings: point.warnings,
            refusals,
            from_execution: Some(point.from_execution),
        }
    }
}

impl Report for ProgressResumeReport {
    fn exit_code(&self) -> u8 {
        if self.refusals.is_empty() { EXIT_OK } else { EXIT_NO }
    }

    fn human(&self, screen: &mut Screen) {
        let from = self.from_execution.as_deref().unwrap_or_default();
        if !self.resume {
            if self.refusals.is_empty() {
                let why = self.reason.as_deref().unwrap_or_default();
                screen.plain(&format!("Nothing to resume: {why}"));
            } else {
                screen.line(Tone::Bad, &format!("Refused: {from} cannot be resumed"));
                print_faults(screen, &self.refusals, &self.warnings);
                screen.dim("  '--force' resumes anyway");
            }
            return;
        }
        let mode = self.mode.unwrap_or_default();
        screen.plain(&format!("Go on from {from}, {mode}:"));
        if let Some(batch) = self.next_batch {
            screen.plain(&format!("  next batch {batch}"));
        }
        if let Some(id) = &self.after_id {
            screen.plain(&format!("  after the item {id}"));
        }
        if let Some(page) = &self.page {
            let key = page.query_key.as_deref().unwrap_or("-");
            screen.plain(&format!("  from record {} of {} query {key}", page.offset, page.webenv));
        }
        let remaining = self.remaining.map(|left| format!(", {left} left")).unwrap_or_default();
        let processed = self.processed.unwrap_or(0);
        screen.plain(&format!("  {processed} processed{remaining}"));
        if !self.failed_ids.is_empty() {
            screen.plain(&format!("  failed: {}", name_list(&self.failed_ids)));
        }
        print_faults(screen, &[], &self.warnings);
    }
}

/// The validation of a document.
#[derive(Debug, Serialize)]
pub struct ProgressValidateReport {
    /// The execution or file that was checked.
    pub checked: String,
    /// Whether nothing prevents resuming.
    pub valid: bool,
    /// What prevents resuming.
    pub refusals: Vec<ProgressFault>,
    pub warnings: Vec<String>,
}

impl ProgressValidateReport {
    pub fn new(checked: String, found: Result<ProgressValidation, String>) -> Self {
        match found {
            Ok(found) => Self {
                checked,
                valid: found.is_valid(),
                refusals: found.refusals,
                warnings: found.warnings.into_iter().map(|fault| fault.message).collect(),
            },
            Err(message) => {
                let kind = ProgressFaultKind::Corrupt;
                let refusals = vec![ProgressFault { kind, message }];
                Self { checked, valid: false, refusals, warnings: Vec::new() }
            }
        }
    }
}

impl Report for ProgressValidateReport {
    fn exit_code(&self) -> u8 {
        if self.valid { EXIT_OK } else { EXIT_NO }
    }

    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Id, &self.checked);
        screen.plain(if self.valid { " is valid" } else { " is not valid" });
        print_faults(screen, &self.refusals, &self.warnings);
    }
}

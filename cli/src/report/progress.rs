//! Progress of long pipelines.

use super::execution::ExecutionJson;
use crate::output::{Report, Screen, Tone};
use forge_store::model::{FieldMap, OperationId, Timestamp, Value};
use forge_store::store::WriteReport;
use forge_systems::progress::{
    self, PipelineExecution, ProgressDocument, ProgressFault, ProgressValidation, ResumeDecision,
    ResumePoint,
};
use serde::Serialize;

/// A document that was saved.
#[derive(Debug, Serialize)]
pub struct Saved {
    /// How far it is.
    #[serde(flatten)]
    pub at: ExecutionJson,
    /// The number of the revision in the execution's one count.
    pub sequence: Option<u64>,
    /// The operation, for `forge undo`.
    pub operation: OperationId,
    /// What would refuse going on, or should be known.
    pub warnings: Vec<String>,
}

impl Saved {
    /// What is told of a save.
    #[must_use]
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

impl Report for Saved {
    const SCHEMA: &'static str = "forge.progress.save/1";

    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Plain, "Saved ");
        self.at.tell(screen);
        let number = self.sequence.map(|number| format!(" (#{number})")).unwrap_or_default();
        screen.line(Tone::Dim, &number);
        for warning in &self.warnings {
            screen.put(Tone::Warning, "  warning: ");
            screen.line(Tone::Plain, warning);
        }
    }
}

/// An item that was reported.
#[derive(Debug, Serialize)]
pub struct Reported {
    /// The review.
    pub review: String,
    /// The execution.
    pub execution: String,
    /// The stage.
    pub stage: String,
    /// The item.
    pub id: String,
    /// What was reported: `done`, `failed`.
    pub status: &'static str,
    /// The class of a failure, if it is known.
    pub class: Option<&'static str>,
    /// Whether that was new.
    pub changed: bool,
    /// The number of the revision in the execution's one count; null if nothing changed.
    pub sequence: Option<u64>,
}

impl Reported {
    /// What is told of it.
    #[must_use]
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

impl Report for Reported {
    const SCHEMA: &'static str = "forge.progress.item/1";

    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Id, &self.id);
        let already = if self.changed { "" } else { " already" };
        let class = self.class.map(|class| format!(" ({class})")).unwrap_or_default();
        screen.put(Tone::Plain, &format!(" is {}{already}{class}", self.status));
        screen.line(Tone::Dim, &format!(" ({} {}, {})", self.review, self.execution, self.stage));
    }
}

/// Whether an item is done.
#[derive(Debug, Serialize)]
pub struct Done {
    /// The review.
    pub review: String,
    /// The stage.
    pub stage: String,
    /// The item.
    pub id: String,
    /// Whether it was reported done.
    pub done: bool,
    /// By which execution.
    pub execution: Option<String>,
    /// When.
    pub done_at: Option<Timestamp>,
}

impl Report for Done {
    const SCHEMA: &'static str = "forge.progress.done/1";

    fn human(&self, screen: &mut Screen) {
        screen.line(Tone::Plain, if self.done { "yes" } else { "no" });
    }
}

/// How far an execution is, whole.
#[derive(Debug, Serialize)]
pub struct Show {
    /// How far it is.
    #[serde(flatten)]
    pub line: ExecutionJson,
    /// What was saved.
    pub document: FieldMap,
}

impl Show {
    /// What is told of it.
    #[must_use]
    pub fn new(execution: &PipelineExecution, document: &ProgressDocument) -> Self {
        let line = ExecutionJson::new(execution, document);
        Self { line, document: document.fields().clone() }
    }
}

impl Report for Show {
    const SCHEMA: &'static str = "forge.progress.show/1";

    fn human(&self, screen: &mut Screen) {
        self.line.tell(screen);
        screen.end_line();
        for (name, value) in &self.document {
            if ["review_id", "execution_id", "stage"].contains(&name.as_str()) {
                continue;
            }
            let said = match value {
                Value::Text(text) => text.clone(),
                other => serde_json::to_string(other).unwrap_or_default(),
            };
            screen.paragraph(Tone::Plain, 2, &format!("{name}: {said}"));
        }
    }
}

/// A document as it was saved.
#[derive(Debug, Serialize)]
pub struct SavedAt {
    /// The number of the revision in the execution's one count.
    pub sequence: u64,
    /// When.
    pub time: Timestamp,
    /// The document; null where it was cleaned up.
    pub document: Option<Value>,
}

/// Every document of an execution.
#[derive(Debug, Serialize)]
pub struct History {
    /// The review.
    pub review: String,
    /// The execution.
    pub execution: String,
    /// The documents, the newest first.
    pub saved: Vec<SavedAt>,
}

impl Report for History {
    const SCHEMA: &'static str = "forge.progress.history/1";

    fn human(&self, screen: &mut Screen) {
        for one in &self.saved {
            screen.line(Tone::Heading, &format!("#{} {}", one.sequence, screen.ago(one.time)));
            match &one.document {
                None => screen.line(Tone::Dim, "  cleaned up"),
                Some(document) => {
                    let text = serde_json::to_string(document).unwrap_or_default();
                    screen.paragraph(Tone::Plain, 2, &text);
                }
            }
        }
    }
}

/// Something wrong with a document.
#[derive(Debug, Serialize)]
pub struct FaultJson {
    /// What: `corrupt`, `invalid_counts`, `expired_context`, `not_recoverable`, `error_rate`.
    pub kind: &'static str,
    /// In words.
    pub message: String,
}

impl From<ProgressFault> for FaultJson {
    fn from(fault: ProgressFault) -> Self {
        Self { kind: fault.kind.word(), message: fault.message }
    }
}

fn tell_faults(screen: &mut Screen, refusals: &[FaultJson], warnings: &[String]) {
    for refusal in refusals {
        screen.put(Tone::Bad, "  refused: ");
        screen.line(Tone::Plain, &refusal.message);
    }
    for warning in warnings {
        screen.put(Tone::Warning, "  warning: ");
        screen.line(Tone::Plain, warning);
    }
}

/// Where in a server's result a pipeline goes on.
#[derive(Debug, Serialize)]
pub struct PageJson {
    /// The server's name for the result.
    pub webenv: String,
    /// The query in it.
    pub query_key: Option<String>,
    /// The number of the next record, from 0.
    pub offset: i64,
    /// How many to ask for.
    pub size: Option<i64>,
}

/// Whether a pipeline goes on, and where.
#[derive(Debug, Serialize)]
pub struct Resume {
    /// Whether it goes on.
    pub resume: bool,
    /// Why it does not.
    pub reason: Option<String>,
    /// By what it goes on: `paginated`, `batch`, `sequential`.
    pub mode: Option<&'static str>,
    /// The batch to do next.
    pub next_batch: Option<i64>,
    /// The item processed last.
    pub after_id: Option<String>,
    /// Where in a server's result.
    pub page: Option<PageJson>,
    /// How many items are processed.
    pub processed: Option<i64>,
    /// How many are left.
    pub remaining: Option<i64>,
    /// Items that failed, for a retry of their own.
    pub failed_ids: Vec<String>,
    /// What should be known.
    pub warnings: Vec<String>,
    /// What forbids going on.
    pub refusals: Vec<FaultJson>,
    /// The execution it goes on from.
    pub from_execution: Option<String>,
}

impl Resume {
    /// What is told of an answer.
    #[must_use]
    pub fn of(answer: ResumeDecision) -> Self {
        match answer {
            ResumeDecision::Go(point) => Self::at(*point, true, None, Vec::new()),
            ResumeDecision::Refused { refusals, point } => {
                let refusals: Vec<FaultJson> = refusals.into_iter().map(Into::into).collect();
                let said: Vec<&str> = refusals.iter().map(|one| one.message.as_str()).collect();
                let reason = format!("refused: {}; '--force' insists", said.join("; "));
                Self::at(*point, false, Some(reason), refusals)
            }
            ResumeDecision::Nothing { reason, from_execution } => Self {
                resume: false,
                reason: Some(reason),
                mode: None,
                next_batch: None,
                after_id: None,
                page: None,
                processed: None,
                remaining: None,
                failed_ids: Vec::new(),
                warnings: Vec::new(),
                refusals: Vec::new(),
                from_execution,
            },
        }
    }

    fn at(
        point: ResumePoint,
        resume: bool,
        reason: Option<String>,
        refusals: Vec<FaultJson>,
    ) -> Self {
        Self {
            resume,
            reason,
            mode: Some(point.mode.word()),
            next_batch: point.next_batch,
            after_id: point.after_id,
            page: point.page.map(|page| PageJson {
                webenv: page.webenv,
                query_key: page.query_key,
                offset: page.offset,
                size: page.size,
            }),
            processed: Some(point.processed),
            remaining: point.remaining,
            failed_ids: point.failed_ids,
            warnings: point.warnings,
            refusals,
            from_execution: Some(point.from_execution),
        }
    }
}

impl Report for Resume {
    const SCHEMA: &'static str = "forge.progress.resume/1";

    fn human(&self, screen: &mut Screen) {
        let from = self.from_execution.as_deref().unwrap_or_default();
        if !self.resume {
            let why = self.reason.as_deref().unwrap_or_default();
            let what = if self.refusals.is_empty() { "Nothing to go on with" } else { "Refused" };
            if self.refusals.is_empty() {
                screen.line(Tone::Plain, &format!("{what}: {why}"));
            } else {
                screen.line(Tone::Bad, &format!("{what}: {from} is not gone on from"));
                tell_faults(screen, &self.refusals, &self.warnings);
                screen.line(Tone::Dim, "  '--force' goes on all the same");
            }
            return;
        }
        let mode = self.mode.unwrap_or_default();
        screen.line(Tone::Plain, &format!("Go on from {from}, {mode}:"));
        if let Some(batch) = self.next_batch {
            screen.line(Tone::Plain, &format!("  next batch {batch}"));
        }
        if let Some(id) = &self.after_id {
            screen.line(Tone::Plain, &format!("  after the item {id}"));
        }
        if let Some(page) = &self.page {
            let key = page.query_key.as_deref().unwrap_or("-");
            let line = format!("  from record {} of {} query {key}", page.offset, page.webenv);
            screen.line(Tone::Plain, &line);
        }
        let remaining = self.remaining.map(|left| format!(", {left} left")).unwrap_or_default();
        let processed = self.processed.unwrap_or(0);
        screen.line(Tone::Plain, &format!("  {processed} processed{remaining}"));
        if !self.failed_ids.is_empty() {
            screen.line(Tone::Plain, &format!("  failed: {}", self.failed_ids.join(", ")));
        }
        tell_faults(screen, &[], &self.warnings);
    }
}

/// Whether a document can be gone on from.
#[derive(Debug, Serialize)]
pub struct Validated {
    /// The execution, or the file.
    pub checked: String,
    /// Whether nothing forbids going on.
    pub valid: bool,
    /// What forbids it.
    pub refusals: Vec<FaultJson>,
    /// What should be known.
    pub warnings: Vec<String>,
}

impl Validated {
    /// What is told of it.
    #[must_use]
    pub fn of(checked: String, found: Result<ProgressValidation, String>) -> Self {
        match found {
            Ok(found) => Self {
                checked,
                valid: found.is_valid(),
                refusals: found.refusals.into_iter().map(Into::into).collect(),
                warnings: found.warnings.into_iter().map(|fault| fault.message).collect(),
            },
            Err(message) => {
                let kind = progress::ProgressFaultKind::Corrupt.word();
                let refusals = vec![FaultJson { kind, message }];
                Self { checked, valid: false, refusals, warnings: Vec::new() }
            }
        }
    }
}

impl Report for Validated {
    const SCHEMA: &'static str = "forge.progress.validate/1";

    fn human(&self, screen: &mut Screen) {
        screen.put(Tone::Id, &self.checked);
        screen.line(Tone::Plain, if self.valid { " is valid" } else { " is not valid" });
        tell_faults(screen, &self.refusals, &self.warnings);
    }
}

//! Checks whether a pipeline can resume from a document. Pure: the time is a parameter.

use super::document::ProgressDocument;
use super::retry::FailureClass;
use forge_store::model::Timestamp;
use forge_store::model::claim::VocabularyWord as _;
use serde::Serialize;

/// Error rate (errors per processed item) above which a document gets a warning.
pub const ERROR_RATE: f64 = 0.1;
/// How long a server keeps a search result (`webenv`): 24 hours.
pub const WEBENV_LIFETIME_MICROS: i64 = 24 * 3_600_000_000;

/// A kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProgressFaultKind {
    /// A field has a wrong type, the stage or the time is missing, or the time is in the future.
    Corrupt,
    /// The counts contradict each other.
    InvalidCounts,
    /// The server no longer keeps the search result (`webenv`) of the document.
    ExpiredContext,
    /// A retry cannot fix the last error.
    NotRecoverable,
    /// More than [`ERROR_RATE`] of the items fail: a warning.
    ErrorRate,
}

/// A problem in a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProgressFault {
    /// The kind of problem.
    pub kind: ProgressFaultKind,
    /// A readable description.
    pub message: String,
}

/// The problems found in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgressValidation {
    /// Problems that prevent resuming unless forced.
    pub refusals: Vec<ProgressFault>,
    /// Problems to report that do not prevent resuming.
    pub warnings: Vec<ProgressFault>,
}

impl ProgressValidation {
    /// Returns whether nothing prevents resuming.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.refusals.is_empty()
    }
}

/// Checks a document: its fields, its counts, the age of its search result, its last error and its
/// error rate.
#[must_use]
pub fn validate(document: &ProgressDocument, now: Timestamp) -> ProgressValidation {
    let mut found = ProgressValidation::default();
    let mut refuse = |kind, message: String| found.refusals.push(ProgressFault { kind, message });
    if let Err(shape) = document.check() {
        refuse(ProgressFaultKind::Corrupt, shape.to_string());
    }
    if document.stage().is_none() {
        refuse(ProgressFaultKind::Corrupt, "it names no stage".to_owned());
    }
    let updated = document.updated_at();
    match updated {
        None => refuse(ProgressFaultKind::Corrupt, "it does not say when it was saved".to_owned()),
        Some(time) if time > now => {
            let message = format!("it was saved at {time}, which is in the future");
            refuse(ProgressFaultKind::Corrupt, message);
        }
        Some(_) => {}
    }
    let counts = document.counts();
    let batches = document.batch_info();
    for (count_name, count, limit_name, limit) in [
        ("items_processed", counts.items_processed, "items_total", counts.items_total),
        ("items_failed", counts.items_failed, "items_total", counts.items_total),
        ("current_batch", batches.current_batch, "total_batches", batches.total_batches),
    ] {
        if let (Some(count), Some(limit)) = (count, limit)
            && count > limit
        {
            let message = format!("{count_name} ({count}) exceeds {limit_name} ({limit})");
            refuse(ProgressFaultKind::InvalidCounts, message);
        }
    }
    if document.context("webenv").is_some()
        && let Some(updated) = updated
        && now.micros_since(updated) > WEBENV_LIFETIME_MICROS
    {
        let message = format!("the WebEnv of {updated} has expired after 24 hours: search again");
        refuse(ProgressFaultKind::ExpiredContext, message);
    }
    if let Some(why) = not_recoverable(document) {
        refuse(ProgressFaultKind::NotRecoverable, why);
    }
    found.warnings.extend(error_rate(document));
    found
}

fn not_recoverable(document: &ProgressDocument) -> Option<String> {
    let error = document.last_error().unwrap_or("no message");
    let declared_class = document.error_class().and_then(FailureClass::from_word);
    let class = declared_class.or_else(|| FailureClass::of_message(error));
    match (document.recoverable(), class) {
        (Some(false), _) => {
            Some(format!("its last error is not recoverable ({error}): a person must examine it"))
        }
        (None, Some(class)) if !class.is_retriable() => Some(format!(
            "its last error is of the class {} ({error}): a person must examine it",
            class.word()
        )),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio of counts does not need 53 bits")]
fn error_rate(document: &ProgressDocument) -> Option<ProgressFault> {
    let counts = document.counts();
    let errors = document.error_count().max(counts.items_failed).filter(|errors| *errors > 0)?;
    let processed = counts.items_processed.unwrap_or(0);
    let share = errors as f64 / processed.max(1) as f64;
    (processed <= 0 || share > ERROR_RATE).then(|| ProgressFault {
        kind: ProgressFaultKind::ErrorRate,
        message: format!("{errors} errors at {processed} processed items: more than 10 %"),
    })
}

//! Removes executions that are finished, without errors, and old.

use super::PipelineExecution;
use super::document::ProgressDocument;
use forge_store::error::{Error, Result};
use forge_store::model::{Kind, OperationId, RetentionPolicy, Timestamp, Value};
use forge_store::store::{Store, WriteContext};
use std::collections::BTreeSet;

/// Retention of a finished execution: 30 days.
pub const KEEP_MICROS: i64 = 30 * 24 * 3_600_000_000;

words! {
    /// Why an execution is kept.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum KeepReason {
        /// Items are left, or the total is not known.
        Unfinished = "unfinished",
        /// There were errors, which a person may want to examine.
        Errors = "errors",
        /// It was saved recently.
        Recent = "recent",
    }
}

/// Checks that an execution may be removed: it is finished, without errors, and was last saved more
/// than `keep_micros` ago. An execution with missing information is kept.
///
/// # Errors
/// [`KeepReason`] if it must be kept.
pub fn check_disposable(
    document: &ProgressDocument,
    now: Timestamp,
    keep_micros: i64,
) -> Result<(), KeepReason> {
    let counts = document.counts();
    match counts.items_processed.zip(counts.items_total) {
        Some((processed, total)) if processed == total => {}
        // More processed items than the total is an error, not completion.
        Some((processed, total)) if processed > total => return Err(KeepReason::Errors),
        _ => return Err(KeepReason::Unfinished),
    }
    let errors = document.error_count().unwrap_or(0).max(counts.items_failed.unwrap_or(0));
    if errors > 0 || !document.failed_item_ids().is_empty() {
        return Err(KeepReason::Errors);
    }
    match document.updated_at() {
        Some(updated) if now.micros_since(updated) > keep_micros => Ok(()),
        _ => Err(KeepReason::Recent),
    }
}

/// The cleanup result for one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanedExecution {
    /// The name of the review.
    pub review: String,
    /// The name of the execution.
    pub execution: String,
    /// When it was last saved.
    pub updated_at: Option<Timestamp>,
    /// Why it is kept; `None` if it is removed.
    pub kept: Option<KeepReason>,
    /// The operation that removed it, for `undo`; `None` if it was kept, or in a dry run.
    pub operation: Option<OperationId>,
}

/// Removes all claims of every execution that passes [`check_disposable`], and prunes its history.
/// These are two operations: two undos take them back, until a sweep. Without an `act`, nothing is
/// changed.
///
/// # Errors
/// Any error of a write to the store. Executions removed before the error stay removed.
pub fn clean(
    store: &Store,
    act: Option<&WriteContext>,
    review: Option<&str>,
    now: Timestamp,
    keep_micros: i64,
) -> Result<Vec<CleanedExecution>> {
    let mut found = Vec::new();
    for execution in PipelineExecution::list(store, review)? {
        let document = execution.document()?;
        let kept = match &document {
            None if execution.item_stages()?.is_empty() => continue,
            // Without a document, the number of items is not known.
            None => Some(KeepReason::Unfinished),
            Some(document) => reason_to_keep(&execution, document, now, keep_micros)?,
        };
        let operation = match (kept, act) {
            (None, Some(act)) => Some(remove_execution(&execution, act, keep_micros)?),
            _ => None,
        };
        found.push(CleanedExecution {
            review: execution.review().to_owned(),
            execution: execution.execution().to_owned(),
            updated_at: document.and_then(|document| document.updated_at()),
            kept,
            operation,
        });
    }
    Ok(found)
}

fn reason_to_keep(
    execution: &PipelineExecution,
    document: &ProgressDocument,
    now: Timestamp,
    keep_micros: i64,
) -> Result<Option<KeepReason>> {
    match (check_disposable(document, now, keep_micros), document.stage()) {
        (Err(kept), _) => Ok(Some(kept)),
        // Failed items that were not done since count as errors, whatever the document says.
        (Ok(()), Some(stage)) if !execution.failed(stage)?.is_empty() => {
            Ok(Some(KeepReason::Errors))
        }
        (Ok(()), _) => Ok(None),
    }
}

fn remove_execution(
    execution: &PipelineExecution,
    act: &WriteContext,
    keep_micros: i64,
) -> Result<OperationId> {
    // The document can have changed since it was read.
    let check_again = move |known: &[Option<Value>]| match known.iter().flatten().next() {
        Some(held)
            if check_disposable(&ProgressDocument::stored(held.clone()), act.now, keep_micros)
                .is_err() =>
        {
            Err(Error::Conflict(format!(
                "the execution '{}' was saved in between: it is kept",
                execution.execution()
            )))
        }
        _ => Ok(Vec::new()),
    };
    let kinds = BTreeSet::from([Kind::Progress, Kind::Item]);
    let write = execution.session().write(act).edit(vec![execution.own_key()], check_again);
    let removed = write.replace_kinds(kinds, Vec::new()).commit()?.operation;
    // Finished work needs no history, so all revisions before the head of each branch are folded.
    let retention = RetentionPolicy { revisions: 0, ..RetentionPolicy::none() };
    let pruned = execution.session().prune_unmeasured(act, &retention)?;
    Ok(pruned.operation.unwrap_or(removed))
}

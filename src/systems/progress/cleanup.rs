//! Cleaning up: executions that are finished, without errors, and old.

use super::PipelineExecution;
use super::document::ProgressDocument;
use crate::error::{Error, Result};
use crate::model::{Kind, OperationId, Timestamp, Value};
use crate::store::{Store, WriteContext};
use std::collections::BTreeSet;

/// How long a finished execution is kept: 30 days.
pub const KEEP_MICROS: i64 = 30 * 24 * 3_600_000_000;

/// Why an execution is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeepReason {
    /// Items are left, or nobody said how many there are.
    Unfinished,
    /// There were errors: somebody may want to look.
    Errors,
    /// It was saved not long ago.
    Recent,
}

impl KeepReason {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unfinished => "unfinished",
            Self::Errors => "errors",
            Self::Recent => "recent",
        }
    }
}

/// Whether an execution may go: finished, without errors, and last saved longer ago than `keep_micros`. What is not
/// known speaks for keeping. Else, why it is kept.
///
/// # Errors
/// [`KeepReason`].
pub fn is_disposable(
    document: &ProgressDocument,
    now: Timestamp,
    keep_micros: i64,
) -> Result<(), KeepReason> {
    let counts = document.counts();
    match counts.items_processed.zip(counts.items_total) {
        Some((processed, total)) if processed == total => {}
        // More than there are is no end but an error.
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

/// What a cleaning found of one execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CleanedExecution {
    /// The review.
    pub review: String,
    /// The execution.
    pub execution: String,
    /// When it was last saved.
    pub updated_at: Option<Timestamp>,
    /// Why it is kept; `None` if it goes.
    pub kept: Option<KeepReason>,
    /// The operation that took it out, for `undo`; `None` if it was kept, or only looked at.
    pub operation: Option<OperationId>,
}

/// Takes out what is held of every execution that [`is_disposable`], whole, and prunes its history: two operations, which
/// two undos bring back until they are swept. Without an act nothing is changed.
///
/// # Errors
/// As every write. What was taken out before stays out.
pub fn clean(
    store: &Store,
    act: Option<&WriteContext>,
    review: Option<&str>,
    now: Timestamp,
    keep_micros: i64,
) -> Result<Vec<CleanedExecution>> {
    let mut found = Vec::new();
    for execution in PipelineExecution::list(store, review)? {
        let Some(document) = execution.document()? else { continue };
        let kept = match (is_disposable(&document, now, keep_micros), document.stage()) {
            (Err(kept), _) => Some(kept),
            // Items that failed and were not done since are errors too, whatever the document says.
            (Ok(()), Some(stage)) if !execution.failed(stage)?.is_empty() => {
                Some(KeepReason::Errors)
            }
            (Ok(()), _) => None,
        };
        let operation = match (kept, act) {
            (None, Some(act)) => Some(take_out(&execution, act, keep_micros)?),
            _ => None,
        };
        found.push(CleanedExecution {
            review: execution.review().to_owned(),
            execution: execution.execution().to_owned(),
            updated_at: document.updated_at(),
            kept,
            operation,
        });
    }
    Ok(found)
}

fn take_out(
    execution: &PipelineExecution,
    act: &WriteContext,
    keep_micros: i64,
) -> Result<OperationId> {
    let still = move |known: &[Option<Value>]| match known.iter().flatten().next() {
        Some(held)
            if is_disposable(&ProgressDocument::stored(held.clone()), act.now, keep_micros)
                .is_err() =>
        {
            Err(Error::Conflict(format!(
                "the execution '{}' was saved meanwhile: it is kept",
                execution.execution()
            )))
        }
        _ => Ok(Vec::new()),
    };
    let kinds = BTreeSet::from([Kind::Progress, Kind::Item]);
    let write = execution.session().write(act).edit(vec![execution.own_key()], still);
    let taken_out = write.replace_kinds(kinds, Vec::new()).commit()?.operation;
    // What it was made of goes too: nothing stands on it any more.
    let pruned = execution.session().fold_all(act)?;
    Ok(pruned.operation.unwrap_or(taken_out))
}

//! Decides where a pipeline resumes. The document and the time are parameters.

use super::document::ProgressDocument;
use super::validate::{ProgressFault, validate};
use forge_store::model::Timestamp;
use serde::Serialize;

words! {
    /// The unit in which a pipeline resumes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ResumeMode {
        /// Pages of a result that a server keeps.
        Paginated = "paginated",
        /// Numbered batches.
        Batch = "batch",
        /// Items in order, after the last processed one.
        Sequential = "sequential",
    }
}

/// A position in a server's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ResultCursor {
    /// The server's name for the result (WebEnv).
    pub webenv: String,
    /// The number of the query in that result.
    pub query_key: Option<String>,
    /// Number of records processed, which is also the 0-based number of the next one.
    pub offset: i64,
    /// Number of records to request.
    pub size: Option<i64>,
}

/// Where a pipeline resumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumePoint {
    /// The unit of the position.
    pub mode: ResumeMode,
    /// The next batch: the one after the last finished batch.
    pub next_batch: Option<i64>,
    /// The item processed last; resume after it.
    pub after_id: Option<String>,
    /// The position in a server's result.
    pub page: Option<ResultCursor>,
    /// Number of items processed.
    pub processed: i64,
    /// Number of items left, if the total is known.
    pub remaining: Option<i64>,
    /// Failed items, to be retried separately.
    pub failed_ids: Vec<String>,
    /// Warnings to report.
    pub warnings: Vec<String>,
    /// The execution that is resumed.
    pub from_execution: String,
}

/// Whether a pipeline resumes, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumeDecision {
    /// The pipeline resumes.
    Go(Box<ResumePoint>),
    /// There is nothing to resume: start afresh, or stop.
    Nothing {
        /// The reason.
        reason: String,
        /// The execution that is complete, if there is one.
        from_execution: Option<String>,
    },
    /// The pipeline could resume, but a person should look at the problems first.
    Refused {
        /// The problems to look at.
        refusals: Vec<ProgressFault>,
        /// Where it would resume.
        point: Box<ResumePoint>,
    },
}

/// Returns where the execution of this document resumes. With `force`, problems that would prevent
/// this become warnings.
#[must_use]
pub fn resume_point(
    document: &ProgressDocument,
    execution: &str,
    now: Timestamp,
    force: bool,
) -> ResumeDecision {
    let validation = validate(document, now);
    let counts = document.counts();
    let processed = counts.items_processed.unwrap_or(0);
    let failed = document.failed_item_ids();
    if let Some(total) = counts.items_total
        && processed == total
        && validation.is_valid()
    {
        let retry = match failed.len() {
            0 => String::new(),
            1 => "; 1 failed item can be tried again".to_owned(),
            some => format!("; {some} failed items can be tried again"),
        };
        return ResumeDecision::Nothing {
            reason: format!("all {total} items are processed{retry}"),
            from_execution: Some(execution.to_owned()),
        };
    }
    let batches = document.batch_info();
    let next_batch = batches.current_batch.map(|batch| batch.saturating_add(1));
    let after_id = document.last_processed().map(str::to_owned);
    let page = document.context("webenv").map(|webenv| ResultCursor {
        webenv: webenv.to_owned(),
        query_key: document.context("query_key").map(str::to_owned),
        offset: processed,
        size: batches.batch_size,
    });
    let mode = match (&page, next_batch) {
        (Some(_), _) => ResumeMode::Paginated,
        (None, Some(_)) => ResumeMode::Batch,
        (None, None) => ResumeMode::Sequential,
    };
    let mut warnings: Vec<String> =
        validation.warnings.into_iter().map(|fault| fault.message).collect();
    if mode == ResumeMode::Sequential && after_id.is_none() && processed > 0 {
        warnings
            .push("the last processed item is not recorded: skip the finished items".to_owned());
    }
    if force {
        warnings.extend(validation.refusals.iter().map(|fault| fault.message.clone()));
    }
    let point = Box::new(ResumePoint {
        mode,
        next_batch,
        after_id,
        page,
        processed,
        remaining: counts.items_total.map(|total| total.saturating_sub(processed).max(0)),
        failed_ids: failed.into_iter().map(str::to_owned).collect(),
        warnings,
        from_execution: execution.to_owned(),
    });
    if validation.refusals.is_empty() || force {
        ResumeDecision::Go(point)
    } else {
        ResumeDecision::Refused { refusals: validation.refusals, point }
    }
}

//! Where a pipeline goes on. Pure: the document and the time come in.

use super::document::ProgressDocument;
use super::validate::{ProgressFault, validate};
use crate::model::Timestamp;

/// By what a pipeline goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeMode {
    /// By pages that a server keeps for it.
    Paginated,
    /// By numbered batches.
    Batch,
    /// By items in order, behind the last one.
    Sequential,
}

impl ResumeMode {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Paginated => "paginated",
            Self::Batch => "batch",
            Self::Sequential => "sequential",
        }
    }
}

/// Where in a server's result a pipeline goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultCursor {
    /// The server's name for the result.
    pub webenv: String,
    /// The query in it.
    pub query_key: Option<String>,
    /// How many of its records are processed: the next one has this number, from 0.
    pub offset: i64,
    /// How many to ask for.
    pub size: Option<i64>,
}

/// Where a pipeline goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumePoint {
    /// By what.
    pub mode: ResumeMode,
    /// The batch to do next: the one after the last finished one.
    pub next_batch: Option<i64>,
    /// The item processed last: go on with those behind it.
    pub after_id: Option<String>,
    /// Where in a server's result.
    pub page: Option<ResultCursor>,
    /// How many items are processed.
    pub processed: i64,
    /// How many are left, if it is known how many there are.
    pub remaining: Option<i64>,
    /// Items that failed, for a retry of their own.
    pub failed_ids: Vec<String>,
    /// What somebody should know.
    pub warnings: Vec<String>,
    /// The execution it goes on from.
    pub from_execution: String,
}

/// Whether a pipeline goes on, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResumeDecision {
    /// It does.
    Go(Box<ResumePoint>),
    /// There is nothing to go on with: begin, or be content.
    Nothing {
        /// Why.
        reason: String,
        /// The execution that is complete, if one is.
        from_execution: Option<String>,
    },
    /// It would, but should not before somebody has looked.
    Refused {
        /// Why not.
        refusals: Vec<ProgressFault>,
        /// Where it would go on.
        point: Box<ResumePoint>,
    },
}

/// Where the execution of this document goes on. With `force` what forbids it becomes a warning.
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
            some => format!("; {some} failed ones wait for a retry"),
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
            .push("it does not say which item was the last: skip those that are done".to_owned());
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

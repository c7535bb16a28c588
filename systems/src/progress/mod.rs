//! Progress of long pipelines: how far each execution of a review has come, and where it resumes.
//!
//! An execution is a session of kind `progress` with the key `REVIEW/EXECUTION`. It contains one
//! [`ProgressDocument`] (kind `progress`), and one item (kind `item`, id `STAGE/ID`) for each piece
//! of work that was reported done or failed between saves. Every save replaces the document; the
//! earlier versions stay in the history.

mod cleanup;
mod document;
mod frequency;
mod import;
mod item;
mod resume;
mod retry;
mod stage;
#[cfg(test)]
mod tests;
mod validate;

pub use cleanup::{CleanedExecution, KEEP_MICROS, KeepReason, check_disposable, clean};
pub use document::{BatchProgress, ItemCounts, ProgressDocument, ProgressFormatError};
pub use frequency::SaveFrequency;
pub use item::{FailedItem, ItemReport};
pub use resume::{ResultCursor, ResumeDecision, ResumeMode, ResumePoint, resume_point};
pub use retry::{FailureClass, RetryBackoff};
pub use stage::{PRESETS, PipelinePreset, PipelineStage, SLR};
pub use validate::{
    ERROR_RATE, ProgressFault, ProgressFaultKind, ProgressValidation, WEBENV_LIFETIME_MICROS,
    validate,
};

use super::{join, newest_first, open, open_or_create, split};
use forge_store::error::{Error, Result};
use forge_store::model::{Key, Kind, SessionKind, Timestamp};
use forge_store::store::{ClaimChange, Session, Store, WriteContext, WriteReport};

/// An execution of a review's pipeline.
#[derive(Clone, Debug)]
pub struct PipelineExecution {
    session: Session,
    review: String,
    execution: String,
}

/// A saved document with the revision that saved it.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedProgress {
    /// The sequence number of the revision.
    pub sequence: u64,
    /// When it was saved.
    pub time: Timestamp,
    /// The document; `None` if it was removed by a cleanup.
    pub document: Option<ProgressDocument>,
}

impl PipelineExecution {
    /// Opens the execution with this review and name.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it does not exist; [`Error::Invalid`] if a name is not valid; or any
    /// error of a read.
    pub fn open(store: &Store, review: &str, execution: &str) -> Result<Self> {
        let key = join(&[review, execution])?;
        Ok(Self::new(open(store, SessionKind::Progress, &key)?, review, execution))
    }

    /// Opens the execution with this review and name, or creates it.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the names are not valid; or any error of a write.
    pub fn open_or_create(
        store: &Store,
        act: &WriteContext,
        review: &str,
        execution: &str,
    ) -> Result<Self> {
        let key = join(&[review, execution])?;
        let session = open_or_create(store, act, SessionKind::Progress, &key)?;
        Ok(Self::new(session, review, execution))
    }

    fn new(session: Session, review: &str, execution: &str) -> Self {
        Self { session, review: review.to_owned(), execution: execution.to_owned() }
    }

    /// Lists the executions of all reviews or of one, the most recently written first.
    pub fn list(store: &Store, review: Option<&str>) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        for one in newest_first(store, SessionKind::Progress)? {
            let Some([name, execution]) = split::<2>(&one.name) else { continue };
            if review.is_none_or(|review| review == name) {
                found.push(Self { session: one.session, review: name, execution });
            }
        }
        Ok(found)
    }

    /// Returns the execution of a review (and of a stage, if given) whose document was saved last,
    /// with the document.
    pub fn latest(
        store: &Store,
        review: &str,
        stage: Option<&str>,
    ) -> Result<Option<(Self, ProgressDocument)>> {
        let mut best: Option<(Self, ProgressDocument)> = None;
        for one in Self::list(store, Some(review))? {
            let Some(document) = one.document()? else { continue };
            let newer =
                |(_, known): &(Self, ProgressDocument)| document.updated_at() > known.updated_at();
            if document.is_of(stage) && best.as_ref().is_none_or(newer) {
                best = Some((one, document));
            }
        }
        Ok(best)
    }

    /// Returns the named execution, else the one that [`PipelineExecution::latest`] finds, with its
    /// document. `None` if no document is saved, or none at the given stage.
    ///
    /// # Errors
    /// Any error of a read; if an execution is named, also as [`PipelineExecution::open`].
    pub fn find(
        store: &Store,
        review: &str,
        execution: Option<&str>,
        stage: Option<&str>,
    ) -> Result<Option<(Self, ProgressDocument)>> {
        let Some(name) = execution else { return Self::latest(store, review, stage) };
        let one = Self::open(store, review, name)?;
        let found = one.document()?.filter(|document| document.is_of(stage));
        Ok(found.map(|document| (one, document)))
    }

    /// Returns the name of the review.
    #[must_use]
    pub fn review(&self) -> &str {
        &self.review
    }

    /// Returns the name of the execution.
    #[must_use]
    pub fn execution(&self) -> &str {
        &self.execution
    }

    /// Returns the session that stores the execution.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Returns the key of the document.
    fn own_key(&self) -> Key {
        Key::new(Kind::Progress, self.execution.clone())
    }

    /// Returns the current document; `None` if nothing was saved, or it was removed by a cleanup.
    pub fn document(&self) -> Result<Option<ProgressDocument>> {
        let entry = self.session.claim(&self.session.head()?, &self.own_key())?;
        Ok(entry.map(|entry| ProgressDocument::stored(entry.value)))
    }

    /// Returns every saved document and every removal by a cleanup, the newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] if none was ever saved.
    pub fn history(&self) -> Result<Vec<SavedProgress>> {
        let history = self.session.history(&self.session.head()?, &self.own_key())?.into_iter();
        Ok(history
            .map(|one| SavedProgress {
                sequence: one.revision.sequence,
                time: one.revision.time,
                document: one.change.new.map(|entry| ProgressDocument::stored(entry.value)),
            })
            .collect())
    }

    /// Saves the document in place of the previous one. Durable on return.
    pub fn save(&self, act: &WriteContext, document: &ProgressDocument) -> Result<WriteReport> {
        let edit = move |known: &[Option<forge_store::model::Value>]| {
            let old = known.iter().flatten().next().cloned().map(ProgressDocument::stored);
            let new =
                document.with_save_times(&self.review, &self.execution, old.as_ref(), act.now);
            Ok(vec![ClaimChange::put(self.own_key(), new.into_value())])
        };
        self.session.write(act).edit(vec![self.own_key()], edit).commit()
    }

    /// Returns whether this execution reported an item done.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the names are not valid; or any error of a read.
    pub fn is_done(&self, stage: &str, id: &str) -> Result<bool> {
        Ok(self.item(stage, id)?.is_some_and(|item| item.is_done()))
    }
}

/// Returns the execution that a review resumes from, and where it resumes: see [`resume_point`].
///
/// # Errors
/// As [`PipelineExecution::find`].
pub fn resume(
    store: &Store,
    review: &str,
    stage: &str,
    execution: Option<&str>,
    now: Timestamp,
    force: bool,
) -> Result<ResumeDecision> {
    if let Some((execution, document)) =
        PipelineExecution::find(store, review, execution, Some(stage))?
    {
        let mut answer = resume_point(&document, &execution.execution, now, force);
        if let ResumeDecision::Go(point) | ResumeDecision::Refused { point, .. } = &mut answer {
            // The document names failed items that may be done by now, and not the items that were
            // reported one by one.
            point.failed_ids = execution.failed(stage)?.into_iter().map(|one| one.id).collect();
        }
        return Ok(answer);
    }
    let reason = match (PipelineExecution::find(store, review, execution, None)?, execution) {
        (Some((saved, document)), _) => format!(
            "nothing is saved of the stage '{stage}': the execution '{}' is at '{}'",
            saved.execution,
            document.stage().unwrap_or("no stage")
        ),
        (None, name) => {
            let of = name.map_or_else(
                || format!("the review '{review}'"),
                |name| format!("the execution '{name}' of the review '{review}'"),
            );
            match has_items(store, review, name)? {
                true => format!(
                    "no document is saved of {of}, only items were reported: skip those that \
                    'forge progress done' finds"
                ),
                false => format!("nothing is saved of {of}"),
            }
        }
    };
    Ok(ResumeDecision::Nothing { reason, from_execution: None })
}

/// Returns whether items were reported one by one, of the named execution or of any of the review.
fn has_items(store: &Store, review: &str, execution: Option<&str>) -> Result<bool> {
    let executions = match execution {
        Some(name) => vec![PipelineExecution::open(store, review, name)?],
        None => PipelineExecution::list(store, Some(review))?,
    };
    for one in executions {
        if !one.item_stages()?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the error for an unknown item. The error puts quotes around the whole name, so the name
/// here has only the inner quotes.
fn no_item(stage: &str, id: &str) -> Error {
    Error::not_found("item", format!("{id}' of the stage '{stage}"))
}

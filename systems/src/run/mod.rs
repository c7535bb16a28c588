//! Workflow runs: many items, each taken through steps, with the output of every step.
//!
//! A run is a session of kind `run`. It contains one [`RunState`] (kind `run`, with the input in a
//! separate claim), one [`RunItem`] per item, which holds its position and finished steps, and
//! one [`StepOutput`] for each step that an item has finished, with the id `ITEM/STEP`. A finished
//! step is recorded in one revision, with its output, the item and the run. So a loaded item has
//! all its outputs; if one is missing nevertheless, loading fails and names its step.

mod audit;
mod import;
mod load;
mod model;
mod plan;
mod query;
mod template;
#[cfg(test)]
mod tests;

pub use audit::{FindingKind, PromptFinding, audit};
pub use import::CheckpointRow;
pub use load::{LoadedItem, ResumedRun};
pub use model::{ItemStatus, RunItem, RunState, RunStatus, StepOutput, output_id};
pub use plan::{NextStep, StepRecord};
pub use query::{RunHistoryEntry, RunSummary};
pub use template::{RenderError, RenderResult, placeholders, render};

use super::{newest_first, open, open_or_create};
use forge_store::error::{Error, Result};
use forge_store::model::{Key, Kind, SessionKind, Value};
use forge_store::store::{Session, Store, WriteContext, WriteReport};

/// A workflow run.
#[derive(Clone, Debug)]
pub struct WorkflowRun {
    session: Session,
    key: String,
}

impl WorkflowRun {
    /// Opens the run of this name.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it does not exist; or any error of a read.
    pub fn open(store: &Store, key: &str) -> Result<Self> {
        Ok(Self { session: open(store, SessionKind::Run, key)?, key: key.to_owned() })
    }

    /// Opens the run of this name, or creates it.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the name is not valid; or any error of a write.
    pub fn open_or_create(store: &Store, act: &WriteContext, key: &str) -> Result<Self> {
        let session = open_or_create(store, act, SessionKind::Run, key)?;
        Ok(Self { session, key: key.to_owned() })
    }

    /// Returns the run that last recorded something about this item.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none; or any error of a read.
    pub fn of_item(store: &Store, item: &str) -> Result<Self> {
        let found = Self::find_item(store, item)?;
        found.ok_or_else(|| Error::not_found("run with the item", item))
    }

    /// Like [`WorkflowRun::of_item`], but returns `None` if no run recorded the item.
    pub fn find_item(store: &Store, item: &str) -> Result<Option<Self>> {
        let key = Key::new(Kind::Item, item);
        let mut best: Option<(forge_store::model::Timestamp, Self)> = None;
        for one in newest_first(store, SessionKind::Run)? {
            // The runs are sorted by their last events, and nothing in a run is newer than that.
            if best.as_ref().is_some_and(|(time, _)| *time >= super::last_event(&one)) {
                break;
            }
            let Some(entry) = one.session.claim(&one.session.head()?, &key)? else { continue };
            let recorded = RunItem::read(item, &entry.value).recorded_at.unwrap_or(entry.added_at);
            if best.as_ref().is_none_or(|(time, _)| recorded > *time) {
                best = Some((recorded, Self { session: one.session, key: one.name }));
            }
        }
        Ok(best.map(|(_, run)| run))
    }

    /// Returns the name of the run.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the session that stores the run.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Starts the run, or continues one that had ended: its status becomes `running`. If the input
    /// is a list of objects with an `item`, the items that do not exist are created without a
    /// finished step; the other fields of each object become the data of its item.
    ///
    /// # Errors
    /// [`Error::Invalid`] if only some elements of the input have an `item`, or an `item` is not a
    /// valid name; or any error of a write.
    pub fn start(&self, act: &WriteContext, input: Option<&Value>) -> Result<WriteReport> {
        let registered = input.map(plan::items_of_input).transpose()?.unwrap_or_default();
        let items = registered.iter().map(|(item, _)| Key::new(Kind::Item, item.clone()));
        let keys = [plan::run_key(), plan::input_key()].into_iter().chain(items).collect();
        let edit =
            move |known: &[Option<Value>]| Ok(plan::start(known, input, &registered, act.now));
        self.session.write(act).edit(keys, edit).commit()
    }

    /// Records that a step of an item is finished, with its output. Repeating a record changes
    /// nothing.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the names are not valid; or any error of a write.
    pub fn record(&self, act: &WriteContext, record: &StepRecord) -> Result<WriteReport> {
        self.record_all(act, std::slice::from_ref(record))
    }

    /// Records several finished steps in one revision.
    ///
    /// # Errors
    /// As [`WorkflowRun::record`].
    pub fn record_all(&self, act: &WriteContext, records: &[StepRecord]) -> Result<WriteReport> {
        let mut keys = vec![plan::run_key()];
        for record in records {
            keys.extend(plan::keys_of(record)?);
        }
        let wanted = keys.clone();
        let edit = move |known: &[Option<Value>]| plan::record(&wanted, known, records, act.now);
        self.session.write(act).edit(keys, edit).commit()
    }

    /// Ends the run with the status `finished`, or `failed` and the reason.
    pub fn end(
        &self,
        act: &WriteContext,
        status: RunStatus,
        error: Option<&str>,
    ) -> Result<WriteReport> {
        let edit = move |known: &[Option<Value>]| {
            let old = known.first().and_then(Option::as_ref);
            Ok(plan::end(old, status, error, act.now))
        };
        self.session.write(act).edit(vec![plan::run_key()], edit).commit()
    }

    /// Clears the outputs of these steps of an item, so that the steps are done again; the old
    /// outputs stay in the history. The first of these steps that the item did becomes its next
    /// step.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the run does not have the item, or a step has no output;
    /// [`Error::Invalid`] if the names are not valid; or any error of a write.
    pub fn forget(&self, act: &WriteContext, item: &str, steps: &[String]) -> Result<WriteReport> {
        let mut keys = vec![plan::run_key(), Key::new(Kind::Item, item)];
        for step in steps {
            keys.push(Key::new(Kind::Output, output_id(item, step)?));
        }
        let edit =
            move |known: &[Option<Value>]| plan::forget(&self.key, item, steps, known, act.now);
        self.session.write(act).edit(keys, edit).commit()
    }
}

//! Items reported one by one between saves: done, or failed.

use super::retry::{FailureClass, RetryBackoff};
use super::{PipelineExecution, no_item};
use crate::{join, split};
use forge_store::error::Result;
use forge_store::model::claim::VocabularyWord as _;
use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::{ClaimChange, WriteContext, WriteReport};
use std::collections::{BTreeMap, BTreeSet};

/// The reported result of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemReport {
    /// The item is done.
    Done,
    /// The item failed.
    Failed {
        /// The class of the failure; if it is `None`, the class is guessed from the error message.
        class: Option<FailureClass>,
        /// The error message.
        error: Option<String>,
    },
}

pub(super) struct StoredItem(Value);

impl StoredItem {
    pub(super) fn is_done(&self) -> bool {
        self.0.field("status").and_then(Value::as_text) == Some("done")
    }

    fn attempts(&self) -> i64 {
        self.0.field("attempts").and_then(Value::as_i64).unwrap_or(0)
    }
}

/// An item that failed and has not been done since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedItem {
    /// The id of the item.
    pub id: String,
    /// The class of its last failure, if known.
    pub class: Option<FailureClass>,
    /// The last error message.
    pub error: Option<String>,
    /// Number of failures; 1 if only the document names the item.
    pub attempts: i64,
    /// When it failed last, if known.
    pub failed_at: Option<Timestamp>,
}

impl FailedItem {
    /// Returns whether a retry may help. True for an unknown class.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        self.class.is_none_or(FailureClass::is_retriable)
    }

    /// Returns when to retry; `None` if a retry does not help, or the time of the failure is not
    /// known.
    #[must_use]
    pub fn retry_at(&self, backoff: &RetryBackoff) -> Option<Timestamp> {
        let failed_at = self.failed_at.filter(|_| self.is_retriable())?;
        Some(failed_at.plus_micros(backoff.wait_micros(self.attempts)))
    }
}

impl PipelineExecution {
    pub(super) fn item(&self, stage: &str, id: &str) -> Result<Option<StoredItem>> {
        let key = Key::new(Kind::Item, join(&[stage, id])?);
        let held = self.session().claim(&self.session().head()?, &key)?;
        Ok(held.map(|entry| StoredItem(entry.value)))
    }

    /// Records that an item is done, or has failed once more. Recording a done item as done again
    /// changes nothing.
    ///
    /// # Errors
    /// [`forge_store::error::Error::Invalid`] if the names are not valid; or any error of a write.
    pub fn report(
        &self,
        act: &WriteContext,
        stage: &str,
        id: &str,
        news: &ItemReport,
    ) -> Result<WriteReport> {
        let key = Key::new(Kind::Item, join(&[stage, id])?);
        let edit = |known: &[Option<Value>]| {
            let old = known.iter().flatten().next().cloned().map(StoredItem);
            let value = match news {
                ItemReport::Done if old.as_ref().is_some_and(StoredItem::is_done) => {
                    return Ok(Vec::new());
                }
                ItemReport::Done => Value::from([
                    ("status", "done".into()),
                    ("recorded_at", act.now.to_string().into()),
                ]),
                ItemReport::Failed { class, error } => {
                    let guessed = error.as_deref().and_then(FailureClass::of_message);
                    let attempts = old.as_ref().map_or(0, StoredItem::attempts).saturating_add(1);
                    Value::from([
                        ("status", "failed".into()),
                        ("class", class.or(guessed).map(|class| class.word()).into()),
                        ("error", error.clone().into()),
                        ("attempts", attempts.into()),
                        ("recorded_at", act.now.to_string().into()),
                    ])
                }
            };
            Ok(vec![ClaimChange::put(key.clone(), value)])
        };
        self.session().write(act).edit(vec![key.clone()], edit).commit()
    }

    /// Returns the items of a stage that failed and have not been done since, sorted by id: the
    /// items that were reported one by one, and the items that the document names.
    pub fn failed(&self, stage: &str) -> Result<Vec<FailedItem>> {
        let state = self.session().state(&self.session().head()?)?;
        let mut found = BTreeMap::new();
        if let Some(document) = self.document()?.filter(|one| one.stage() == Some(stage)) {
            let declared_class = document.error_class().and_then(FailureClass::from_word);
            let of_message = || document.last_error().and_then(FailureClass::of_message);
            for id in document.failed_item_ids() {
                let failed = FailedItem {
                    id: id.to_owned(),
                    class: declared_class.or_else(of_message),
                    error: document.last_error().map(str::to_owned),
                    attempts: 1,
                    failed_at: document.updated_at(),
                };
                found.insert(id.to_owned(), failed);
            }
        }
        for entry in state.claims().entries_of_kind(Kind::Item) {
            let (key, entry) = entry?;
            let Some([of, id]) = split::<2>(&key.id) else { continue };
            let item = StoredItem(entry.value);
            if of != stage {
                continue;
            }
            if item.is_done() {
                found.remove(&id);
                continue;
            }
            let text = |name| item.0.field(name).and_then(Value::as_text);
            let failed = FailedItem {
                class: text("class").and_then(FailureClass::from_word),
                error: text("error").map(str::to_owned),
                attempts: item.attempts(),
                failed_at: text("recorded_at").and_then(Timestamp::parse_rfc3339),
                id,
            };
            found.insert(failed.id.clone(), failed);
        }
        Ok(found.into_values().collect())
    }

    /// Returns the stages of the items that were reported one by one.
    pub fn item_stages(&self) -> Result<BTreeSet<String>> {
        let state = self.session().state(&self.session().head()?)?;
        let mut stages = BTreeSet::new();
        for entry in state.claims().entries_of_kind(Kind::Item) {
            if let Some([stage, _]) = split::<2>(&entry?.0.id) {
                stages.insert(stage);
            }
        }
        Ok(stages)
    }

    /// Returns when an item was reported done.
    ///
    /// # Errors
    /// [`forge_store::error::Error::NotFound`] if it was not reported done.
    pub fn done_at(&self, stage: &str, id: &str) -> Result<Timestamp> {
        let held = self.item(stage, id)?.filter(StoredItem::is_done);
        let time = held.as_ref().and_then(|item| item.0.field("recorded_at")?.as_text());
        time.and_then(Timestamp::parse_rfc3339).ok_or_else(|| no_item(stage, id))
    }
}

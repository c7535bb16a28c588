//! The progress document of a pipeline execution: it keeps unknown fields, and checks the types of
//! known ones.

use forge_store::model::{FieldMap, Timestamp, Value};

/// Progress in batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchProgress {
    /// The number of the last finished batch.
    pub current_batch: Option<i64>,
    /// Total number of batches.
    pub total_batches: Option<i64>,
    /// Number of items in a batch.
    pub batch_size: Option<i64>,
}

/// Progress in items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemCounts {
    /// Number of items processed so far.
    pub items_processed: Option<i64>,
    /// Total number of items to process.
    pub items_total: Option<i64>,
    /// Number of items failed so far.
    pub items_failed: Option<i64>,
}

/// The error for a document of the wrong form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProgressFormatError(pub String);

/// How far an execution has come. Unknown fields are preserved.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgressDocument(FieldMap);

/// The columns of a table row that become fields of the document, and the path of each field.
const COLUMNS: [(&str, &[&str]); 5] = [
    ("workflow_stage", &["stage"]),
    ("items_processed", &["progress", "items_processed"]),
    ("items_total", &["progress", "items_total"]),
    ("last_processed_id", &["last_processed", "document_id"]),
    ("error_count", &["error_info", "error_count"]),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum ProgressFieldType {
    Text,
    Count,
    Truth,
    Time,
    Ids,
    Fields,
}

impl ProgressFieldType {
    const fn description(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Count => "a whole number from 0 on",
            Self::Truth => "true or false",
            Self::Time => "an RFC 3339 time",
            Self::Ids => "a list of ids",
            Self::Fields => "an object",
        }
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            Self::Text => value.as_text().is_some(),
            Self::Count => value.as_i64().is_some_and(|count| count >= 0),
            Self::Truth => value.as_bool().is_some(),
            Self::Time => value.as_text().and_then(Timestamp::parse_rfc3339).is_some(),
            Self::Ids => {
                value.as_list().is_some_and(|list| list.iter().all(|id| id.as_text().is_some()))
            }
            Self::Fields => value.as_map().is_some(),
        }
    }
}

/// The paths of the known fields, and their types.
const FIELDS: [(&[&str], ProgressFieldType); 24] = [
    (&["stage"], ProgressFieldType::Text),
    (&["batch_info"], ProgressFieldType::Fields),
    (&["batch_info", "current_batch"], ProgressFieldType::Count),
    (&["batch_info", "total_batches"], ProgressFieldType::Count),
    (&["batch_info", "batch_size"], ProgressFieldType::Count),
    (&["progress"], ProgressFieldType::Fields),
    (&["progress", "items_processed"], ProgressFieldType::Count),
    (&["progress", "items_total"], ProgressFieldType::Count),
    (&["progress", "items_failed"], ProgressFieldType::Count),
    (&["last_processed"], ProgressFieldType::Fields),
    (&["last_processed", "document_id"], ProgressFieldType::Text),
    (&["last_processed", "timestamp"], ProgressFieldType::Time),
    (&["context"], ProgressFieldType::Fields),
    (&["context", "webenv"], ProgressFieldType::Text),
    (&["context", "query_key"], ProgressFieldType::Text),
    (&["error_info"], ProgressFieldType::Fields),
    (&["error_info", "last_error"], ProgressFieldType::Text),
    (&["error_info", "error_count"], ProgressFieldType::Count),
    (&["error_info", "recoverable"], ProgressFieldType::Truth),
    (&["error_info", "failed_item_ids"], ProgressFieldType::Ids),
    (&["error_info", "class"], ProgressFieldType::Text),
    (&["metadata"], ProgressFieldType::Fields),
    (&["created_at"], ProgressFieldType::Time),
    (&["updated_at"], ProgressFieldType::Time),
];

impl ProgressDocument {
    /// Reads a document from JSON: the document itself, or a table row with the document under
    /// `checkpoint_data` and counts in further columns. If the document names no stage, it gets
    /// `stage`.
    ///
    /// # Errors
    /// [`ProgressFormatError`] if a field has the wrong type, if the document names another stage
    /// than `stage`, or if neither names one.
    pub fn read(value: Value, stage: Option<&str>) -> Result<Self, ProgressFormatError> {
        let Value::Map(mut row) = value.without_nulls() else {
            return Err(ProgressFormatError("progress is an object with fields".to_owned()));
        };
        let mut document = match row.remove("checkpoint_data") {
            None => Self(FieldMap::new()),
            Some(Value::Map(inner)) => Self(inner),
            Some(_) => {
                return Err(ProgressFormatError("'checkpoint_data' must be an object".to_owned()));
            }
        };
        for (column, place) in COLUMNS {
            if let Some(value) = row.remove(column) {
                document.put(place, value)?;
            }
        }
        document.0.extend(row);
        document.check()?;
        match (document.stage(), stage) {
            (None, None) => Err(ProgressFormatError(
                "it names no stage: add a field 'stage', or give '--stage'".to_owned(),
            )),
            (Some(own), Some(said)) if own != said => {
                Err(ProgressFormatError(format!("its stage is '{own}', not '{said}'")))
            }
            (None, Some(said)) => {
                document.0.insert("stage".to_owned(), said.into());
                Ok(document)
            }
            (Some(_), _) => Ok(document),
        }
    }

    /// Creates a document from a stored value, without checks. A value that is not a map becomes
    /// its field `corrupt`.
    pub(super) fn stored(value: Value) -> Self {
        match value {
            Value::Map(fields) => Self(fields),
            other => Self(FieldMap::from([("corrupt".to_owned(), other)])),
        }
    }

    /// Converts the document into a map of its fields.
    #[must_use]
    pub fn into_value(self) -> Value {
        Value::Map(self.0)
    }

    /// Returns the fields.
    #[must_use]
    pub const fn fields(&self) -> &FieldMap {
        &self.0
    }

    fn put(&mut self, place: &[&str], value: Value) -> Result<(), ProgressFormatError> {
        let [path @ .., last] = place else { return Ok(()) };
        let mut fields = &mut self.0;
        for name in path {
            let inner =
                fields.entry((*name).to_owned()).or_insert_with(|| Value::Map(FieldMap::new()));
            let Value::Map(inner) = inner else {
                return Err(ProgressFormatError(format!("'{name}' must be an object")));
            };
            fields = inner;
        }
        fields.insert((*last).to_owned(), value);
        Ok(())
    }

    fn at(&self, place: &[&str]) -> Option<&Value> {
        let (first, rest) = place.split_first()?;
        let start = self.0.get(*first).filter(|value| **value != Value::Null)?;
        rest.iter().try_fold(start, |value, name| value.field(name))
    }

    fn count(&self, place: &[&str]) -> Option<i64> {
        self.at(place).and_then(Value::as_i64)
    }

    fn text(&self, place: &[&str]) -> Option<&str> {
        self.at(place).and_then(Value::as_text)
    }

    fn time(&self, place: &[&str]) -> Option<Timestamp> {
        self.text(place).and_then(Timestamp::parse_rfc3339)
    }

    /// Returns the document in the form to be stored: with the ids of its review and execution, and
    /// with the times at which it was first and last saved. `old` is the version saved before. The
    /// `updated_at` of the document is kept if it is later than that of `old` and not in the
    /// future; otherwise it becomes `now`.
    pub(super) fn with_save_times(
        &self,
        review: &str,
        execution: &str,
        old: Option<&Self>,
        now: Timestamp,
    ) -> Self {
        let before = old.and_then(Self::updated_at);
        let is_newer = |time: &Timestamp| *time <= now && before.is_none_or(|old| *time > old);
        let updated = self.updated_at().filter(is_newer).unwrap_or(now);
        let created = old.and_then(Self::created_at).or(self.created_at()).unwrap_or(now);
        let mut new = self.0.clone();
        for (name, value) in [
            ("review_id", review.to_owned()),
            ("execution_id", execution.to_owned()),
            ("created_at", created.min(updated).to_string()),
            ("updated_at", updated.to_string()),
        ] {
            new.insert(name.to_owned(), value.into());
        }
        Self(new)
    }

    /// Checks that every known field has its type.
    ///
    /// # Errors
    /// [`ProgressFormatError`] for the first field of another type.
    pub fn check(&self) -> Result<(), ProgressFormatError> {
        for (place, holds) in FIELDS {
            if let Some(value) = self.at(place)
                && !holds.fits(value)
            {
                return Err(ProgressFormatError(format!(
                    "'{}' must be {}",
                    place.join("."),
                    holds.description()
                )));
            }
        }
        Ok(())
    }

    /// Returns the current stage.
    #[must_use]
    pub fn stage(&self) -> Option<&str> {
        self.text(&["stage"])
    }

    /// Returns whether the current stage is `stage`; `true` if `stage` is `None`.
    pub(super) fn is_of(&self, stage: Option<&str>) -> bool {
        stage.is_none_or(|stage| self.stage() == Some(stage))
    }

    /// Returns the batch progress.
    #[must_use]
    pub fn batch_info(&self) -> BatchProgress {
        BatchProgress {
            current_batch: self.count(&["batch_info", "current_batch"]),
            total_batches: self.count(&["batch_info", "total_batches"]),
            batch_size: self.count(&["batch_info", "batch_size"]),
        }
    }

    /// Returns the item progress.
    #[must_use]
    pub fn counts(&self) -> ItemCounts {
        ItemCounts {
            items_processed: self.count(&["progress", "items_processed"]),
            items_total: self.count(&["progress", "items_total"]),
            items_failed: self.count(&["progress", "items_failed"]),
        }
    }

    /// Returns the id of the item processed last.
    #[must_use]
    pub fn last_processed(&self) -> Option<&str> {
        self.text(&["last_processed", "document_id"])
    }

    /// Returns a text of the context, such as `webenv`. A pipeline needs it to resume.
    #[must_use]
    pub fn context(&self, name: &str) -> Option<&str> {
        self.text(&["context", name])
    }

    /// Returns the message of the last error.
    #[must_use]
    pub fn last_error(&self) -> Option<&str> {
        self.text(&["error_info", "last_error"])
    }

    /// Returns the number of errors.
    #[must_use]
    pub fn error_count(&self) -> Option<i64> {
        self.count(&["error_info", "error_count"])
    }

    /// Returns whether it is possible to continue after the last error, if recorded.
    #[must_use]
    pub fn recoverable(&self) -> Option<bool> {
        self.at(&["error_info", "recoverable"]).and_then(Value::as_bool)
    }

    /// Returns the class of the last error, if recorded.
    #[must_use]
    pub fn error_class(&self) -> Option<&str> {
        self.text(&["error_info", "class"])
    }

    /// Returns the ids of the failed items.
    #[must_use]
    pub fn failed_item_ids(&self) -> Vec<&str> {
        let list = self.at(&["error_info", "failed_item_ids"]).and_then(Value::as_list);
        list.unwrap_or_default().iter().filter_map(Value::as_text).collect()
    }

    /// Returns the id of the table row that the document was imported from.
    pub(super) fn row_id(&self) -> Option<&str> {
        self.text(&["id"])
    }

    /// Returns when the document was first saved.
    #[must_use]
    pub fn created_at(&self) -> Option<Timestamp> {
        self.time(&["created_at"])
    }

    /// Returns when the document was last saved.
    #[must_use]
    pub fn updated_at(&self) -> Option<Timestamp> {
        self.time(&["updated_at"])
    }
}

//! Imports progress that another program kept in the rows of a table.

use super::PipelineExecution;
use super::document::ProgressDocument;
use crate::row_import::RowImport;
use forge_store::error::{Error, Result};
use forge_store::model::Value;
use forge_store::store::{ClaimChange, Store, WriteContext};
use std::cell::Cell;

impl PipelineExecution {
    /// Imports a row as the document of an execution. The document has the id of the row in `id`,
    /// and in `updated_at` when the row last changed, which is also the time of the context.
    /// Durable after [`Store::sync`].
    ///
    /// A row that was imported before changes nothing. Neither does a row that is older than the
    /// stored document.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a name is not valid, or the document has no `id`; or any error of a
    /// read or write.
    pub fn import_row(
        store: &Store,
        act: &WriteContext,
        (review, execution): (&str, &str),
        document: &ProgressDocument,
    ) -> Result<RowImport> {
        let Some(id) = document.row_id().map(|id| store.without_secrets(id)) else {
            return Err(Error::invalid("the row has no 'id': add the id that it has in its table"));
        };
        let is_row = |known: &ProgressDocument| {
            known.row_id() == Some(&*id) && known.updated_at() == Some(act.now)
        };
        let one = Self::open_or_create(store, act, review, execution)?;
        if one.document()?.is_some_and(|saved| saved.updated_at() >= Some(act.now)) {
            let mut saved = one.history()?.into_iter().filter_map(|saved| saved.document);
            if saved.any(|document| is_row(&document)) {
                return Ok(RowImport::Known);
            }
        }
        let result = Cell::new(RowImport::Known);
        let edit = |known: &[Option<Value>]| {
            let old = known.iter().flatten().next().cloned().map(ProgressDocument::stored);
            result.set(match &old {
                Some(old) if is_row(old) => RowImport::Known,
                Some(old) if old.updated_at() > Some(act.now) => RowImport::Older,
                _ => RowImport::Saved,
            });
            if result.get() != RowImport::Saved {
                return Ok(Vec::new());
            }
            let new = document.with_save_times(review, execution, old.as_ref(), act.now);
            Ok(vec![ClaimChange::put(one.own_key(), new.into_value())])
        };
        one.session.write(act).imported().edit(vec![one.own_key()], edit).commit()?;
        Ok(result.get())
    }
}

//! Incomplete sessions: they are built beside another session with the same id, and replace it when
//! they are complete.
//!
//! Until then both have revisions, checkpoints and operations with the same ids. A row that finds
//! something by its id belongs to the complete session; the key of the other row ends with the
//! number of the incomplete one.

use super::super::table_rows::rows_between;
use super::session_deletion::id_keys;
use super::{RecordIndexer, is_incomplete, operations_of};
use crate::backend::{Snapshot, TableId};
use crate::engine::refs::StoreRefs;
use crate::error::Result;
use crate::format::key::{self, in_incomplete, is_id_table, short_at};
use crate::model::SessionNumber;
use std::collections::BTreeSet;

/// Returns the key of a row, given the key that it has in a complete session.
pub(crate) fn key_in(
    refs: &StoreRefs,
    table: TableId,
    key: Vec<u8>,
    value: &[u8],
) -> Result<Vec<u8>> {
    match short_at(value, 0).filter(|_| is_id_table(table)) {
        Some(session) if is_incomplete(refs, session)? => Ok(in_incomplete(key, session)),
        _ => Ok(key),
    }
}

/// Returns the value of the row that finds an id in a session, from a table of ids. The session may
/// be incomplete.
pub(crate) fn value_in(
    view: &dyn Snapshot,
    table: TableId,
    id: Vec<u8>,
    session: SessionNumber,
) -> Result<Option<Vec<u8>>> {
    let of_session = |value: &Vec<u8>| short_at(value, 0) == Some(session);
    match view.get(table, &id)?.filter(of_session) {
        Some(value) => Ok(Some(value)),
        None => Ok(view.get(table, &in_incomplete(id, session))?),
    }
}

impl RecordIndexer<'_> {
    /// Notes whether the record changes an incomplete session.
    pub(super) fn note_incomplete(
        &mut self,
        refs: &StoreRefs,
        number: SessionNumber,
    ) -> Result<()> {
        if is_incomplete(refs, number)? {
            self.incomplete = Some(number);
        }
        Ok(())
    }

    /// Returns the key of a row of a table of ids for a session.
    pub(super) fn id_key(&self, id: Vec<u8>, session: SessionNumber) -> Vec<u8> {
        if self.incomplete == Some(session) { in_incomplete(id, session) } else { id }
    }

    /// Puts a row that was derived for a session.
    pub(super) fn put_derived(
        &mut self,
        session: SessionNumber,
        table: TableId,
        key: Vec<u8>,
        value: Vec<u8>,
    ) {
        let key = if is_id_table(table) { self.id_key(key, session) } else { key };
        self.rows.put(table, key, value);
    }

    /// Deletes everything of a session, and lets an incomplete session replace it.
    pub(super) fn replace_session(&mut self, new: SessionNumber, old: SessionNumber) -> Result<()> {
        let operations = operations_of(&self.view(), new)?.into_iter();
        let operations: BTreeSet<_> = operations.map(|row| *row.operation.id.as_bytes()).collect();
        let prunings = rows_between(&self.view(), key::PRUNINGS, &[], &[])?;
        self.delete_twin(old, new)?;
        for (place, session) in prunings {
            let is_shared = place.last_chunk().is_some_and(|id| operations.contains(id));
            if short_at(&session, 0) == Some(old) && is_shared {
                self.rows.put(key::PRUNINGS, place, new.to_be_bytes().to_vec());
            }
        }
        for (table, id) in id_keys(&self.view(), new)? {
            let own = in_incomplete(id.clone(), new);
            if let Some(value) = self.view().get(table, &own)? {
                self.rows.delete(table, own);
                self.rows.put(table, id, value);
            }
        }
        self.incomplete = None;
        Ok(())
    }
}

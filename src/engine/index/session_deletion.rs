//! Permanent deletion of sessions, with everything in the tables that belongs only to them.

use super::super::table_rows::{for_each_row, rows, rows_between};
use super::{RecordIndexer, object, operations_of};
use crate::backend::{Snapshot, TableId};
use crate::error::{Error, Result};
use crate::format::key::{self, KeyBuilder, of};
use crate::format::{
    CheckpointRow, FactPageOutline, ObjectKind, OperationEffect, OperationRow, RevisionHeader,
    RevisionRow, SegmentRow,
};
use crate::model::{ObjectId, SessionNumber, TextRef};
use std::collections::BTreeSet;

pub(crate) struct SessionObjects {
    /// Parts of deltas, fact pages that no other session has, and segments of growing blobs.
    pub(crate) objects: BTreeSet<u64>,
    /// The large values that these refer to; other sessions may refer to them too.
    pub(crate) named: BTreeSet<ObjectId>,
}

/// The sessions of every page of facts: equal pages of two sessions may be stored as one object. To
/// find them, all operations of the store are read, so one value serves all sessions of a sweep.
#[derive(Default)]
pub(crate) struct PageOwners {
    /// Each page with each of its sessions, once a page was looked up.
    known: Option<BTreeSet<(u64, SessionNumber)>>,
    /// The sessions that were deleted since.
    deleted: BTreeSet<SessionNumber>,
}

impl PageOwners {
    /// Returns the pages of a session that no other session has.
    fn only_in(
        &mut self,
        view: &dyn Snapshot,
        number: SessionNumber,
        mut pages: BTreeSet<u64>,
    ) -> Result<BTreeSet<u64>> {
        if pages.is_empty() {
            return Ok(pages);
        }
        let known = match self.known.take() {
            Some(known) => known,
            None => page_owners(view)?,
        };
        let known = self.known.insert(known);
        pages.retain(|page| {
            let mut owners = known.range((*page, 0)..=(*page, SessionNumber::MAX));
            owners.all(|(_, owner)| *owner == number || self.deleted.contains(owner))
        });
        Ok(pages)
    }
}

fn page_owners(view: &dyn Snapshot) -> Result<BTreeSet<(u64, SessionNumber)>> {
    let mut found = BTreeSet::new();
    for_each_row(view, key::OPERATIONS, |place, row| {
        let session = key::short_at(place, 0).unwrap_or(0);
        let row = OperationRow::decode(row).map_err(Error::corrupt("an operation"))?;
        found.extend(fact_pages(&row).map(|page| (page, session)));
        Ok(())
    })?;
    Ok(found)
}

/// Returns the numbers of the pages of facts that an operation recorded.
fn fact_pages(row: &OperationRow) -> impl Iterator<Item = u64> {
    row.effects.iter().filter_map(|effect| match effect {
        OperationEffect::Facts { page, .. } if object::is_object_number(*page) => Some(*page),
        _ => None,
    })
}

/// Returns the parts of the deltas of a session's revisions, including folded ones.
fn delta_parts(view: &dyn Snapshot, number: SessionNumber) -> Result<BTreeSet<u64>> {
    let mut parts = BTreeSet::new();
    for table in [key::REVISIONS, key::FOLDED] {
        for (_, row) in rows(view, table, of(number))? {
            if row != RevisionRow::LOST {
                let row = RevisionRow::decode(&row).map_err(Error::corrupt("a revision"))?;
                parts.extend(row.parts.into_iter().filter(|part| object::is_object_number(*part)));
            }
        }
    }
    Ok(parts)
}

/// Finds the objects of a session.
pub(crate) fn session_objects(
    view: &dyn Snapshot,
    number: SessionNumber,
    owners: &mut PageOwners,
) -> Result<SessionObjects> {
    let objects = delta_parts(view, number)?;
    let mut owned = SessionObjects { objects, named: BTreeSet::new() };
    for part in &owned.objects {
        let content = object::content(view, ObjectKind::Delta, *part)?;
        owned.named.extend(object::blobs_named_in_delta(&content)?);
    }
    for (_, row) in rows(view, key::CHECKPOINTS, of(number))? {
        let row = CheckpointRow::decode(&row).map_err(Error::corrupt("a checkpoint"))?;
        owned.named.extend(TextRef::objects_in(&row.checkpoint.body));
    }
    for (_, row) in rows(view, key::SEGMENTS, of(number))? {
        let row = SegmentRow::decode(&row).map_err(Error::corrupt("a part of a blob"))?;
        owned.objects.extend(Some(row.object).filter(|object| object::is_object_number(*object)));
    }
    let mut pages = BTreeSet::new();
    for row in operations_of(view, number)? {
        pages.extend(fact_pages(&row));
        for effect in &row.effects {
            // An undo could restore the checkpoint.
            if let OperationEffect::CheckpointHidden { old }
            | OperationEffect::CheckpointChanged { old } = effect
            {
                owned.named.extend(TextRef::objects_in(&old.body));
            }
        }
    }
    for page in owners.only_in(view, number, pages)? {
        owned.objects.insert(page);
        let content = object::content(view, ObjectKind::Page, page)?;
        let page = FactPageOutline::decode(&content).map_err(Error::corrupt("a page of facts"))?;
        owned.named.extend(page.facts.iter().flat_map(|fact| &fact.texts.0));
    }
    Ok(owned)
}

/// Returns the keys of the rows that find something of a session by its id, as they are in a
/// complete session.
pub(super) fn id_keys(
    view: &dyn Snapshot,
    number: SessionNumber,
) -> Result<Vec<(TableId, Vec<u8>)>> {
    let mut found = Vec::new();
    for table in [key::REVISIONS, key::FOLDED] {
        for (_, row) in rows(view, table, of(number))? {
            if let Ok(row) = RevisionRow::decode(&row) {
                let id = RevisionHeader::id_of(&row.header);
                found.push((key::IDS, key::revision_id(&id)));
            }
        }
    }
    for (_, row) in rows(view, key::CHECKPOINTS, of(number))? {
        let row = CheckpointRow::decode(&row).map_err(Error::corrupt("a checkpoint"))?;
        found.push((key::IDS, key::checkpoint_id(&row.checkpoint.id)));
    }
    for row in operations_of(view, number)? {
        found.push((key::OPERATION_IDS, key::operation_id(&row.operation.id)));
    }
    Ok(found)
}

impl RecordIndexer<'_> {
    /// Deletes everything that belongs only to a session. The sweep deletes its large values, the
    /// applier the chunks of its keyframes.
    pub(super) fn delete_session(
        &mut self,
        number: SessionNumber,
        owners: &mut PageOwners,
    ) -> Result<()> {
        let objects = session_objects(&self.view(), number, owners)?.objects;
        owners.deleted.insert(number);
        self.delete_rows(number, objects)
    }

    /// Deletes everything of a session that another one with the same id does not have. Large
    /// deltas of both may be stored as one object.
    pub(super) fn delete_twin(&mut self, number: SessionNumber, twin: SessionNumber) -> Result<()> {
        let owners = &mut PageOwners::default();
        let mut objects = session_objects(&self.view(), number, owners)?.objects;
        for part in delta_parts(&self.view(), twin)? {
            objects.remove(&part);
        }
        self.delete_rows(number, objects)
    }

    fn delete_rows(&mut self, number: SessionNumber, objects: BTreeSet<u64>) -> Result<()> {
        self.forget_objects(&objects.into_iter().collect::<Vec<_>>())?;
        let ids = id_keys(&self.view(), number)?;
        let ids = ids.into_iter().map(|(table, id)| (table, self.id_key(id, number)));
        let mut found: Vec<(TableId, Vec<u8>)> = ids.collect();
        for table in key::session_tables() {
            for (place, row) in rows(&self.view(), table, of(number))? {
                match table {
                    key::CHECKPOINTS => {
                        let row = CheckpointRow::decode(&row);
                        let one = row.map_err(Error::corrupt("a checkpoint"))?.checkpoint;
                        let all = KeyBuilder::new().time(one.time).session(number);
                        found.push((key::ALL_CHECKPOINTS, all.number(one.sequence).build()));
                    }
                    key::OPERATIONS => self.cut.operations += 1,
                    key::SEGMENTS => self.cut.segments += 1,
                    _ => {}
                }
                found.push((table, place));
            }
        }
        for (place, session) in rows_between(&self.view(), key::PRUNINGS, &[], &[])? {
            if key::short_at(&session, 0) == Some(number) {
                found.push((key::PRUNINGS, place));
            }
        }
        found.into_iter().for_each(|(table, place)| self.rows.delete(table, place));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::EmptySnapshot;
    use crate::engine::counting_snapshot::CountingSnapshot;
    use crate::engine::row_overlay::{OverlaySnapshot, RowOverlay};
    use crate::format::{FactPage, encode_object};
    use crate::model::{Operation, OperationAuthor, OperationId, Timestamp};

    /// Regression: for every session that a sweep deleted, all operations of the store were read
    /// and decoded.
    #[test]
    fn the_operations_of_the_store_are_read_once_for_all_deleted_sessions() {
        let mut rows = RowOverlay::default();
        let (name, page) =
            encode_object(ObjectKind::Page, &FactPage::new(None, Vec::new()).encode());
        for number in [1, 2, 3, 9] {
            object::put_unnamed(&mut rows, number, &page);
        }
        // Each session has a page of its own, and the first two share one.
        for session in 0..3_u8 {
            let shared = (session < 2).then_some(9);
            let pages = [Some(u64::from(session) + 1), shared].into_iter().flatten();
            let row = OperationRow {
                operation: Operation {
                    id: OperationId::from_bytes([session; 16]),
                    verb: "import".to_owned(),
                    author: OperationAuthor::Asked,
                    time: Timestamp::default(),
                },
                effects: pages
                    .map(|page| OperationEffect::Facts { count: 0, page, name })
                    .collect(),
                takes_back: None,
                taken_back_by: None,
                sequence: 0,
                session: session.into(),
                position: 0,
                continued: Vec::new(),
            };
            let place = key::operation_place(row.session, 0, &row.operation.id);
            rows.put(key::OPERATIONS, place, row.encode());
        }
        let view = OverlaySnapshot::new(&EmptySnapshot, &rows, 0);
        let view = CountingSnapshot::new(view, Some(key::OPERATIONS));
        let mut owners = PageOwners::default();
        let mut objects = |number, deleted: Option<SessionNumber>| {
            owners.deleted.extend(deleted);
            session_objects(&view, number, &mut owners).unwrap().objects
        };
        assert_eq!(objects(0, None), BTreeSet::from([1]));
        assert_eq!(objects(2, Some(0)), BTreeSet::from([3]));
        assert_eq!(objects(1, Some(2)), BTreeSet::from([2, 9]), "no other session is left");
        // Each session's own operation, and all three once.
        assert_eq!(view.rows(), 6);
    }
}

//! Permanent deletion of sessions, with everything in the tables that belongs only to them.

use super::super::table_rows::{for_each_row, rows, rows_between};
use super::{RecordIndexer, object};
use crate::backend::{Snapshot, TableId};
use crate::error::{Error, Result};
use crate::format::key::{self, KeyBuilder, of};
use crate::format::{
    CheckpointRow, FactPageOutline, ObjectKind, OperationEffect, OperationRow, RevisionHeader,
    RevisionRow, SegmentRow,
};
use crate::model::{ObjectId, SessionNumber, TextRef};
use std::collections::BTreeSet;

/// Tables whose keys begin with the session.
pub(crate) const OWN: [TableId; 20] = [
    key::REVISIONS,
    key::SEQUENCES,
    key::TIMES,
    key::CHECKPOINTS,
    key::CHECKPOINT_TIMES,
    key::TAGS,
    key::HISTORY,
    key::FACTS,
    key::FACT_IDS,
    key::SWITCHES,
    key::KEYFRAMES,
    key::RESETS,
    key::OPERATIONS,
    key::BOOKMARKS,
    key::SEGMENTS,
    key::CHECKPOINT_KEYS,
    key::FOLDS,
    key::FOLDED,
    key::MERGES,
    key::CONTINUATIONS,
];

#[derive(Default)]
pub(crate) struct SessionObjects {
    /// Parts of deltas, fact pages that no other session has, and segments of growing blobs.
    pub(crate) objects: BTreeSet<u64>,
    /// The large values that these refer to; other sessions may refer to them too.
    pub(crate) named: BTreeSet<ObjectId>,
}

/// Finds the objects of a session.
pub(crate) fn session_objects(
    view: &dyn Snapshot,
    number: SessionNumber,
) -> Result<SessionObjects> {
    let mut owned = SessionObjects::default();
    for table in [key::REVISIONS, key::FOLDED] {
        for (_, row) in rows(view, table, of(number))? {
            if row == RevisionRow::LOST {
                continue;
            }
            let row = RevisionRow::decode(&row).map_err(Error::corrupt("a revision"))?;
            for part in row.parts.into_iter().filter(|part| object::is_object_number(*part)) {
                if owned.objects.insert(part) {
                    let content = object::content(view, ObjectKind::Delta, part)?;
                    owned.named.extend(object::blobs_named_in_delta(&content)?);
                }
            }
        }
    }
    for (_, row) in rows(view, key::CHECKPOINTS, of(number))? {
        let row = CheckpointRow::decode(&row).map_err(Error::corrupt("a checkpoint"))?;
        owned.named.extend(TextRef::objects_in(&row.checkpoint.body));
    }
    for (_, row) in rows(view, key::SEGMENTS, of(number))? {
        let row = SegmentRow::decode(&row).map_err(Error::corrupt("a part of a blob"))?;
        owned.objects.extend(Some(row.object).filter(|object| object::is_object_number(*object)));
    }
    // Equal pages of two sessions may be stored as one object.
    let (mut own, mut others) = (BTreeSet::new(), BTreeSet::new());
    for_each_row(view, key::OPERATIONS, |place, row| {
        let whose = key::short_at(place, 0) == Some(number);
        let row = OperationRow::decode(row).map_err(Error::corrupt("an operation"))?;
        for effect in row.effects {
            match effect {
                OperationEffect::Facts { page, .. } if object::is_object_number(page) => {
                    if whose {
                        own.insert(page)
                    } else {
                        others.insert(page)
                    };
                }
                // An undo could restore the checkpoint.
                OperationEffect::CheckpointHidden { old }
                | OperationEffect::CheckpointChanged { old }
                    if whose =>
                {
                    owned.named.extend(TextRef::objects_in(&old.body));
                }
                _ => {}
            }
        }
        Ok(())
    })?;
    for page in own.difference(&others) {
        owned.objects.insert(*page);
        let content = object::content(view, ObjectKind::Page, *page)?;
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
    for (_, row) in rows(view, key::OPERATIONS, of(number))? {
        let row = OperationRow::decode(&row).map_err(Error::corrupt("an operation"))?;
        found.push((key::OPERATION_IDS, key::operation_id(&row.operation.id)));
    }
    Ok(found)
}

impl RecordIndexer<'_> {
    /// Deletes everything that belongs only to a session. The sweep deletes its large values, the
    /// applier the chunks of its keyframes.
    pub(super) fn delete_session(&mut self, number: SessionNumber) -> Result<()> {
        let objects = session_objects(&self.view(), number)?.objects;
        self.delete_rows(number, objects)
    }

    /// Deletes everything of a session that another one with the same id does not have. Large
    /// deltas of both may be stored as one object.
    pub(super) fn delete_twin(&mut self, number: SessionNumber, twin: SessionNumber) -> Result<()> {
        let mut objects = session_objects(&self.view(), number)?.objects;
        for table in [key::REVISIONS, key::FOLDED] {
            for (_, row) in rows(&self.view(), table, of(twin))? {
                if row != RevisionRow::LOST {
                    let row = RevisionRow::decode(&row).map_err(Error::corrupt("a revision"))?;
                    for part in &row.parts {
                        objects.remove(part);
                    }
                }
            }
        }
        self.delete_rows(number, objects)
    }

    fn delete_rows(&mut self, number: SessionNumber, objects: BTreeSet<u64>) -> Result<()> {
        self.forget_objects(&objects.into_iter().collect::<Vec<_>>())?;
        let ids = id_keys(&self.view(), number)?;
        let ids = ids.into_iter().map(|(table, id)| (table, self.id_key(id, number)));
        let mut found: Vec<(TableId, Vec<u8>)> = ids.collect();
        for table in OWN {
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

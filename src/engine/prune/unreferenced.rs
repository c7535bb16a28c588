//! Finds large values, and long texts of checkpoints, that only data about to be deleted refers to.

use super::super::index::{find_operation, operations_of, session_deletion};
use super::super::read_snapshot::ReadSnapshot;
use super::super::refs::session;
use super::super::table_rows::for_each_row;
use super::super::{checkpoint, object};
use super::{PendingPruning, pruned_sessions, taken_out};
use crate::backend::{Snapshot, TableId};
use crate::error::{Error, Result};
use crate::format::key;
use crate::format::{
    CheckpointRow, DeltaPart, ObjectKind, OperationEffect, OperationRow, Record, RecordChange,
    SessionRemoval, decode_object, object_kind,
};
use crate::model::{Checkpoint, CheckpointId, ObjectId, SessionNumber, TextRef};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the large values and long texts that only data hidden by a pruning refers to.
pub(crate) fn unreferenced_blobs(
    view: &ReadSnapshot,
    pruning: &PendingPruning,
) -> Result<UnreferencedBlobs> {
    let mut ids = BTreeSet::new();
    let mut leaving = SweepSet::default();
    for row in taken_out(view, pruning)? {
        for part in row.parts {
            leaving.objects.insert(part);
            let content = object::content(view, ObjectKind::Delta, part)?;
            ids.extend(object::blobs_named_in_delta(&content)?);
        }
    }
    for old in hidden_by(view, pruning)? {
        leaving.checkpoints.insert(old.id);
        ids.extend(TextRef::objects_in(&old.body));
    }
    let mut owners = session_deletion::PageOwners::default();
    for number in pruned_sessions(view, &view.refs, &pruning.operation)? {
        let removal = session(&view.refs, number)?.removal;
        if removal == Some(SessionRemoval::Pruned(pruning.operation)) {
            let owned = session_deletion::session_objects(view, number, &mut owners)?;
            leaving.objects.extend(owned.objects);
            ids.extend(owned.named);
            leaving.sessions.insert(number);
        }
    }
    let mut loose = UnreferencedBlobs::new(ids);
    loose.keep_stored(view, &leaving)?;
    Ok(loose)
}

/// Returns the old checkpoint in an effect: undoing the operation restores it.
fn copied(effect: &OperationEffect) -> Option<&Checkpoint> {
    match effect {
        OperationEffect::CheckpointHidden { old } | OperationEffect::CheckpointChanged { old } => {
            Some(old)
        }
        _ => None,
    }
}

/// Returns the checkpoints that are deleted with a pruning, in every copy that operations contain:
/// those that are hidden, unless a later operation hid them, whose undo could restore them.
fn hidden_by(view: &ReadSnapshot, pruning: &PendingPruning) -> Result<Vec<Checkpoint>> {
    let row = find_operation(view, &pruning.operation)?
        .ok_or_else(|| Error::missing(format!("the operation {}", pruning.operation)))?;
    if !row.effects.iter().any(|effect| matches!(effect, OperationEffect::CheckpointHidden { .. }))
    {
        return Ok(Vec::new());
    }
    let rows = operations_of(view, pruning.session)?;
    let hiders = checkpoint::last_hiding_operations(rows.iter());
    let mut going = Vec::new();
    for old in rows.iter().flat_map(|row| &row.effects).filter_map(copied) {
        if hiders.get(&old.id) == Some(&pruning.operation)
            && checkpoint::by_id(view, pruning.session, &old.id)?.is_none()
        {
            going.push(old.clone());
        }
    }
    Ok(going)
}

/// Data about to be permanently deleted. Its references to other data do not count.
#[derive(Default)]
pub(super) struct SweepSet {
    pub(super) objects: BTreeSet<u64>,
    pub(super) sessions: BTreeSet<SessionNumber>,
    pub(super) checkpoints: BTreeSet<CheckpointId>,
}

impl SweepSet {
    /// Returns a row without the checkpoints to be deleted; `None` if the row is one of them.
    fn rest_of<'a>(&self, table: TableId, row: &'a [u8]) -> Result<Option<Cow<'a, [u8]>>> {
        let goes = |one: &Checkpoint| self.checkpoints.contains(&one.id);
        if self.checkpoints.is_empty() {
            return Ok(Some(row.into()));
        }
        match table {
            key::CHECKPOINTS => {
                let one = CheckpointRow::decode(row).map_err(Error::corrupt("a checkpoint"))?;
                Ok((!goes(&one.checkpoint)).then(|| row.into()))
            }
            key::OPERATIONS => {
                let mut one = OperationRow::decode(row).map_err(Error::corrupt("an operation"))?;
                let all = one.effects.len();
                one.effects.retain(|effect| !copied(effect).is_some_and(goes));
                let rest = if one.effects.len() == all { row.into() } else { one.encode().into() };
                Ok(Some(rest))
            }
            _ => Ok(Some(row.into())),
        }
    }
}

/// Large values without a known reference. A reference is found as a byte sequence; a chance match
/// keeps the value.
#[derive(Clone)]
pub(crate) struct UnreferencedBlobs {
    ids: BTreeSet<ObjectId>,
    /// Search patterns by their first bytes. Deltas contain ids as bytes; texts of facts and
    /// checkpoints contain them as hex digits.
    by_start: BTreeMap<[u8; 8], Vec<(Vec<u8>, ObjectId)>>,
}

impl UnreferencedBlobs {
    pub(super) fn new(ids: BTreeSet<ObjectId>) -> Self {
        let mut by_start: BTreeMap<[u8; 8], Vec<(Vec<u8>, ObjectId)>> = BTreeMap::new();
        for id in &ids {
            for name in [id.as_bytes().to_vec(), id.to_string().into_bytes()] {
                let start = *name.first_chunk().expect("8 of 32 bytes, or of 64 digits");
                by_start.entry(start).or_default().push((name, *id));
            }
        }
        Self { ids, by_start }
    }

    /// Returns whether no reference to this value was found.
    pub(super) fn has(&self, id: &ObjectId) -> bool {
        self.ids.contains(id)
    }

    pub(crate) fn into_ids(self) -> Vec<ObjectId> {
        self.ids.into_iter().collect()
    }

    /// Removes the values that these bytes refer to.
    fn keep_in(&mut self, bytes: &[u8]) {
        for (place, start) in bytes.array_windows().enumerate() {
            for (name, id) in self.by_start.get(start).into_iter().flatten() {
                if bytes.get(place..).is_some_and(|rest| rest.starts_with(name)) {
                    self.ids.remove(id);
                }
            }
        }
    }

    /// Removes the values that an object refers to. An unreadable object is an error, because it
    /// may refer to anything.
    fn keep_in_object(&mut self, encoded: &[u8]) -> Result<()> {
        let wrong = || Error::corrupt("an object that may name others");
        let kind = object_kind(encoded).map_err(wrong())?;
        // References in chunks and blobs need not be searched: some delta contains the same ones.
        if matches!(kind, ObjectKind::Delta | ObjectKind::Page) {
            self.keep_in(&decode_object(kind, encoded).map_err(wrong())?);
        }
        Ok(())
    }

    /// Removes the values that any stored object or row refers to, except the data about to be
    /// deleted.
    pub(super) fn keep_stored(&mut self, view: &dyn Snapshot, leaving: &SweepSet) -> Result<()> {
        for table in [key::CHECKPOINTS, key::OPERATIONS, key::BOOKMARKS] {
            for_each_row(view, table, |place, row| {
                if key::short_at(place, 0).is_none_or(|one| !leaving.sessions.contains(&one)) {
                    leaving.rest_of(table, row)?.iter().for_each(|rest| self.keep_in(rest));
                }
                Ok(())
            })?;
        }
        for_each_row(view, key::OBJECTS, |place, encoded| {
            let number = key::last_number(place).unwrap_or(0);
            if leaving.objects.contains(&number) { Ok(()) } else { self.keep_in_object(encoded) }
        })
    }

    /// Removes the values that a record refers to.
    pub(crate) fn keep_recorded(&mut self, record: &Record) -> Result<()> {
        if self.ids.is_empty() {
            return Ok(());
        }
        self.keep_in(&record.encode());
        // Objects may be compressed.
        for change in &record.changes {
            match change {
                RecordChange::Object { object } => self.keep_in_object(&object.0)?,
                RecordChange::Revision { delta, .. } | RecordChange::Folded { delta, .. } => {
                    delta.iter().try_for_each(|part| self.keep_in_part(part))?;
                }
                RecordChange::Facts { page, .. } => self.keep_in_part(page)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn keep_in_part(&mut self, part: &DeltaPart) -> Result<()> {
        match part {
            DeltaPart::Inline(encoded) => self.keep_in_object(&encoded.0),
            // The part is in an earlier record, or was stored already.
            DeltaPart::Named(_) => Ok(()),
        }
    }
}

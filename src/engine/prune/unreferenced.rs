//! What nothing names any more but what is going for good: large values, and long texts of
//! checkpoints.

use super::super::derive::for_each_row;
use super::super::index::{find_operation, session_drop};
use super::super::journal_follower::ReadSnapshot;
use super::super::{checkpoint, object};
use super::{PendingPruning, taken_out};
use crate::backend::{ScanDirection, Snapshot, TableId};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    CheckpointRow, DeltaPart, ObjectKind, OperationEffect, OperationRow, Record, RecordChange,
    SessionRemoval, open, sealed_kind,
};
use crate::model::{Checkpoint, CheckpointId, ObjectId, OperationId, SessionNumber};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The large values and long texts that only what a pruning took out of sight names.
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
        ids.extend(object::texts_in(&old.body));
    }
    for (number, session) in view.refs.sessions.all() {
        if session.gone == Some(SessionRemoval::Pruned(pruning.operation)) {
            let owned = session_drop::session_objects(view, number)?;
            leaving.objects.extend(owned.objects);
            ids.extend(owned.named);
            leaving.sessions.insert(number);
        }
    }
    let mut loose = UnreferencedBlobs::new(ids);
    loose.keep_stored(view, &leaving)?;
    Ok(loose)
}

/// By which operation each checkpoint was hidden last, of operations in the order of the journal. A
/// redo does again what another one did: then it is that one.
pub(crate) fn last_hiding_operations<'a>(
    rows: impl Iterator<Item = &'a OperationRow>,
) -> BTreeMap<CheckpointId, OperationId> {
    let (mut takes_back, mut hiders) = (BTreeMap::new(), BTreeMap::new());
    for row in rows {
        let own = row.operation.id;
        takes_back.extend(row.takes_back.map(|other| (own, other)));
        let first = row.takes_back.and_then(|undo| takes_back.get(&undo)).copied();
        for effect in &row.effects {
            match effect {
                OperationEffect::CheckpointHidden { old } => {
                    hiders.insert(old.id, first.unwrap_or(own));
                }
                OperationEffect::Swept { checkpoints, .. } => {
                    hiders.extend(checkpoints.iter().map(|(_, id)| (*id, own)));
                }
                _ => {}
            }
        }
    }
    hiders
}

/// The checkpoint that an operation can bring back or change back, as it was.
fn copied(effect: &OperationEffect) -> Option<&Checkpoint> {
    match effect {
        OperationEffect::CheckpointHidden { old } | OperationEffect::CheckpointChanged { old } => {
            Some(old)
        }
        _ => None,
    }
}

/// The checkpoints that go with a pruning, as each operation knows them: those that are out of
/// sight, and were not hidden by another operation since, which could bring them back.
fn hidden_by(view: &ReadSnapshot, pruning: &PendingPruning) -> Result<Vec<Checkpoint>> {
    let row = find_operation(view, &pruning.operation)?
        .ok_or_else(|| Error::missing(format!("the operation {}", pruning.operation)))?;
    if !row.effects.iter().any(|effect| matches!(effect, OperationEffect::CheckpointHidden { .. }))
    {
        return Ok(Vec::new());
    }
    let (from, to) = (of(pruning.session).build(), of(pruning.session).end());
    let rows = view.scan(key::OPERATIONS, &from, &to, ScanDirection::Ascending, usize::MAX)?;
    let rows = rows
        .iter()
        .map(|(_, row)| OperationRow::decode(row).map_err(Error::corrupt("an operation")))
        .collect::<Result<Vec<_>>>()?;
    let hiders = last_hiding_operations(rows.iter());
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

/// What is going for good: what it names need not be kept for its sake.
#[derive(Default)]
pub(super) struct SweepSet {
    pub(super) objects: BTreeSet<u64>,
    pub(super) sessions: BTreeSet<SessionNumber>,
    pub(super) checkpoints: BTreeSet<CheckpointId>,
}

impl SweepSet {
    /// What a row holds without the checkpoints that go: `None` if it is one of them.
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

/// Large values that nothing was seen to name. A name is looked for as the bytes it has: what looks
/// like one by chance is kept.
#[derive(Clone)]
pub(crate) struct UnreferencedBlobs {
    ids: BTreeSet<ObjectId>,
    /// By the first bytes of what names them: in deltas their bytes, in texts of facts and
    /// checkpoints their digits.
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

    /// Whether nothing was seen to name it.
    pub(super) fn has(&self, id: &ObjectId) -> bool {
        self.ids.contains(id)
    }

    pub(crate) fn into_ids(self) -> Vec<ObjectId> {
        self.ids.into_iter().collect()
    }

    /// Whatever these bytes name is kept.
    fn keep_in(&mut self, bytes: &[u8]) {
        for (place, start) in bytes.array_windows().enumerate() {
            for (name, id) in self.by_start.get(start).into_iter().flatten() {
                if bytes.get(place..).is_some_and(|rest| rest.starts_with(name)) {
                    self.ids.remove(id);
                }
            }
        }
    }

    /// Whatever this object names is kept. What cannot be read may name anything: that is an error.
    fn keep_in_object(&mut self, sealed: &[u8]) -> Result<()> {
        let wrong = || Error::corrupt("an object that may name others");
        let kind = sealed_kind(sealed).map_err(wrong())?;
        // Chunks are whole entries and blobs whole values: what they name is named by a delta too.
        if matches!(kind, ObjectKind::Delta | ObjectKind::Page) {
            self.keep_in(&open(kind, sealed).map_err(wrong())?);
        }
        Ok(())
    }

    /// Whatever any object or row names is kept, but for what is going.
    pub(super) fn keep_stored(&mut self, view: &dyn Snapshot, leaving: &SweepSet) -> Result<()> {
        for table in [key::CHECKPOINTS, key::OPERATIONS, key::BOOKMARKS] {
            for_each_row(view, table, |place, row| {
                if key::short_at(place, 0).is_none_or(|one| !leaving.sessions.contains(&one)) {
                    leaving.rest_of(table, row)?.iter().for_each(|rest| self.keep_in(rest));
                }
                Ok(())
            })?;
        }
        for_each_row(view, key::OBJECTS, |place, sealed| {
            let number = key::last_number(place).unwrap_or(0);
            if leaving.objects.contains(&number) { Ok(()) } else { self.keep_in_object(sealed) }
        })
    }

    /// Whatever this record names is kept.
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
            DeltaPart::Inline(sealed) => self.keep_in_object(&sealed.0),
            // It stands in a record before, or was stored already.
            DeltaPart::Named(_) => Ok(()),
        }
    }
}

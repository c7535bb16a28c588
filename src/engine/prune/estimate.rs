//! Estimates how many bytes of the index are freed when a pruning is swept.

use super::super::derive;
use super::super::index::session_deletion;
use super::super::object;
use super::super::read_snapshot::ReadSnapshot;
use super::super::table_rows::{self, for_each_row};
use super::FoldRange;
use super::unreferenced::{SweepSet, UnreferencedBlobs};
use crate::backend::TableId;
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    CheckpointRow, Delta, DeltaPart, KeyframeRow, ObjectKind, compress_object, decode_object,
};
use crate::model::{
    BranchNumber, Checkpoint, CheckpointId, ObjectId, OperationId, SessionNumber, TextRef,
};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of the row that lists a change in the history of a claim.
const HISTORY_BYTES: u64 = 28;
/// Bytes of the row that finds a revision by its time.
const TIME_BYTES: u64 = 24;
/// Bytes of the row that finds a revision or checkpoint by its id.
const ID_BYTES: u64 = 28;
/// Bytes of the row that finds an operation by its id.
const OPERATION_ID_BYTES: u64 = 44;
/// Bytes of a checkpoint's row in the list of the checkpoints of all sessions.
const ALL_CHECKPOINTS_BYTES: u64 = 20;
/// Bytes of the two keys and the number of an object that is found by its id.
const NAMED_BYTES: u64 = 40;

/// What a pruning removes. Keys and values are counted as stored in the index, without the overhead
/// of its files.
#[derive(Default)]
pub(crate) struct PruneEstimate {
    /// Bytes of rows and of transcript parts.
    rows: u64,
    /// Removed objects that nothing else refers to, with the bytes that each frees.
    objects: BTreeMap<u64, u64>,
    /// Large values and long texts that these objects, or checkpoints, refer to.
    named: BTreeSet<ObjectId>,
    /// Large values that the combined deltas refer to.
    held: BTreeSet<ObjectId>,
    /// By session, branch and target revision: the first folded revision, and the bytes of the
    /// combined delta.
    folds: BTreeMap<(SessionNumber, BranchNumber, u64), (u64, u64)>,
    sessions: BTreeSet<SessionNumber>,
    checkpoints: BTreeSet<CheckpointId>,
}

impl PruneEstimate {
    /// Adds a revision that is folded into a later one: all but its header is removed.
    pub(super) fn body(&mut self, body: &[u8]) {
        self.rows += body.len() as u64 + TIME_BYTES;
    }

    /// Adds a part of a delta.
    pub(super) fn part(&mut self, number: u64, encoded: &[u8], delta: &[u8]) -> Result<()> {
        let changes = Delta::scan(delta).map_err(Error::corrupt("a delta"))?.len() as u64;
        self.objects.insert(number, stored_bytes(encoded) + changes * HISTORY_BYTES);
        self.named.extend(object::blobs_named_in_delta(delta)?);
        Ok(())
    }

    /// Adds the fold of a range, with the combined delta that replaces it.
    pub(super) fn fold(
        &mut self,
        number: SessionNumber,
        run: &FoldRange,
        together: &[DeltaPart],
    ) -> Result<()> {
        let mut kept = 0;
        for part in together {
            let DeltaPart::Inline(encoded) = part else { continue };
            let delta =
                decode_object(ObjectKind::Delta, &encoded.0).map_err(Error::corrupt("a delta"))?;
            let changes = Delta::scan(&delta).map_err(Error::corrupt("a delta"))?.len() as u64;
            kept += stored_bytes(&encoded.0) + changes * HISTORY_BYTES;
            self.held.extend(object::blobs_named_in_delta(&delta)?);
        }
        self.folds.insert((number, run.branch, run.last), (run.first, kept));
        Ok(())
    }

    /// Adds a checkpoint: its sequence number and its id stay.
    pub(crate) fn checkpoint(&mut self, number: SessionNumber, one: &Checkpoint) -> Result<()> {
        self.checkpoints.insert(one.id);
        self.named.extend(TextRef::objects_in(&one.body));
        let operation = OperationId::from_bytes([0; 16]);
        let row = CheckpointRow { checkpoint: one.clone(), operation };
        self.row(&of(number).time(one.time).number(one.sequence).build(), &row.encode());
        derive::derive_checkpoint(number, one, &mut |table, place, row| {
            if table != key::SEQUENCES {
                self.row(&place, &row);
            }
            Ok(())
        })
    }

    /// Adds bytes of a transcript.
    pub(crate) fn text(&mut self, bytes: u64) {
        self.rows += bytes;
    }

    /// Adds sessions, each with everything that only it has.
    pub(crate) fn add_sessions(
        &mut self,
        view: &ReadSnapshot,
        numbers: impl Iterator<Item = SessionNumber>,
    ) -> Result<()> {
        let mut owners = session_deletion::PageOwners::default();
        for number in numbers {
            let owned = session_deletion::session_objects(view, number, &mut owners)?;
            for object in owned.objects {
                self.objects.insert(object, stored_bytes(&object::encoded(view, object)?));
            }
            self.named.extend(owned.named);
            for table in key::session_tables().filter(|table| *table != key::KEYFRAMES) {
                for (place, row) in table_rows::rows(view, table, of(number))? {
                    self.row(&place, &row);
                    self.rows += elsewhere(table);
                }
            }
            self.sessions.insert(number);
        }
        Ok(())
    }

    pub(crate) fn add(&mut self, mut other: Self) {
        self.rows += other.rows;
        self.objects.append(&mut other.objects);
        self.named.append(&mut other.named);
        self.held.append(&mut other.held);
        self.folds.append(&mut other.folds);
        self.sessions.append(&mut other.sessions);
        self.checkpoints.append(&mut other.checkpoints);
    }

    /// Estimates how many bytes of the index a sweep frees. `view` is from before the pruning.
    pub(crate) fn bytes(&self, view: &ReadSnapshot) -> Result<u64> {
        // The combined delta of an earlier step of a long range is not stored in `view`: it is
        // created and removed.
        let objects: u64 =
            self.objects.range(..object::next_number(view)?).map(|(_, bytes)| bytes).sum();
        let freed = self.rows + objects + self.values(view)? + self.keyframes(view)?;
        Ok(freed.saturating_sub(self.kept()))
    }

    /// Returns the bytes of the combined deltas that stay. A long range is folded in several steps,
    /// each into the next.
    fn kept(&self) -> u64 {
        let ends = self.folds.iter();
        let into_next = |(session, branch, last): &(_, _, u64)| {
            let next = self.folds.range((*session, *branch, last + 1)..).next();
            next.is_some_and(|(next, (first, _))| {
                (next.0, next.1) == (*session, *branch) && first == last
            })
        };
        ends.filter(|(end, _)| !into_next(end)).map(|(_, (_, kept))| kept).sum()
    }

    /// Returns the bytes of large values that nothing else refers to. Reads all objects if there
    /// are candidates.
    fn values(&self, view: &ReadSnapshot) -> Result<u64> {
        let mut loose =
            UnreferencedBlobs::new(self.named.difference(&self.held).copied().collect());
        if self.named.is_subset(&self.held) {
            return Ok(0);
        }
        let leaving = SweepSet {
            objects: self.objects.keys().copied().collect(),
            sessions: self.sessions.clone(),
            checkpoints: self.checkpoints.clone(),
        };
        loose.keep_stored(view, &leaving)?;
        let mut bytes = 0;
        for id in loose.into_ids() {
            if let Some(number) = object::find_number(view, &id)? {
                bytes += stored_bytes(&object::encoded(view, number)?) + NAMED_BYTES;
            }
        }
        Ok(bytes)
    }

    /// Returns the bytes of removed keyframes, without chunks that others share. The newest
    /// keyframe in each fold is not counted, because a similar one is made again if reading would
    /// be slow without it.
    fn keyframes(&self, view: &ReadSnapshot) -> Result<u64> {
        let (mut bytes, mut going, mut staying) = (0, BTreeSet::new(), BTreeSet::new());
        let mut newest = BTreeMap::new();
        for_each_row(view, key::KEYFRAMES, |place, row| {
            let session = key::short_at(place, 0).unwrap_or(0);
            let branch = key::short_at(place, 4).unwrap_or(0);
            let sequence = key::last_number(place).unwrap_or(0);
            let found = KeyframeRow::decode(row).map_err(Error::corrupt("a keyframe"))?;
            let chunks: Vec<_> = found.chunks.iter().map(|chunk| chunk.object).collect();
            let size = (place.len() + row.len()) as u64;
            if self.sessions.contains(&session) {
                bytes += size;
                going.extend(chunks);
            } else if let Some(fold) = self.fold_of(session, branch, sequence) {
                if let Some((older, size)) = newest.insert(fold, (chunks, size)) {
                    bytes += size;
                    going.extend(older);
                }
            } else {
                staying.extend(chunks);
            }
            Ok(())
        })?;
        staying.extend(newest.into_values().flat_map(|(chunks, _)| chunks));
        for chunk in going.difference(&staying) {
            bytes += stored_bytes(&object::encoded(view, *chunk)?) + NAMED_BYTES;
        }
        Ok(bytes)
    }

    /// Returns the target of the fold that a revision is part of.
    fn fold_of(
        &self,
        session: SessionNumber,
        branch: BranchNumber,
        sequence: u64,
    ) -> Option<(SessionNumber, BranchNumber, u64)> {
        let (end, (first, _)) = self.folds.range((session, branch, sequence + 1)..).next()?;
        ((end.0, end.1) == (session, branch) && *first <= sequence).then_some(*end)
    }

    fn row(&mut self, place: &[u8], row: &[u8]) {
        self.rows += (place.len() + row.len()) as u64;
    }
}

/// Returns the bytes that a row of a session takes in tables whose keys do not begin with the
/// session.
const fn elsewhere(table: TableId) -> u64 {
    match table {
        key::REVISIONS | key::FOLDED => ID_BYTES,
        key::CHECKPOINTS => ID_BYTES + ALL_CHECKPOINTS_BYTES,
        key::OPERATIONS => OPERATION_ID_BYTES,
        _ => 0,
    }
}

/// Returns the size of an object in the index, where it is compressed.
fn stored_bytes(encoded: &[u8]) -> u64 {
    let smaller = compress_object(encoded).ok().flatten();
    smaller.map_or(encoded.len(), |smaller| smaller.len()) as u64
}

//! What a pruning takes out of sight, and an estimate of the bytes that come free once it is swept.

use super::super::derive::{self, for_each_row};
use super::super::index::session_drop;
use super::super::journal_follower::ReadSnapshot;
use super::super::object;
use super::FoldRange;
use super::unreferenced::{SweepSet, UnreferencedBlobs};
use crate::backend::TableId;
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    CheckpointRow, Delta, DeltaPart, KeyframeRow, ObjectKind, compress_sealed, open,
};
use crate::model::{BranchNumber, Checkpoint, CheckpointId, ObjectId, OperationId, SessionNumber};
use std::collections::{BTreeMap, BTreeSet};

/// The row by which the history of a claim finds a change.
const HISTORY_BYTES: u64 = 28;
/// The row by which a revision is found by its time.
const TIME_BYTES: u64 = 24;
/// The row by which something is found by its id.
const ID_BYTES: u64 = 28;
/// The row by which an operation is found by its id.
const OPERATION_ID_BYTES: u64 = 44;
/// The row by which a checkpoint is found among those of all sessions.
const ALL_CHECKPOINTS_BYTES: u64 = 20;
/// The two keys and the number of an object that is found by its name.
const NAMED_BYTES: u64 = 40;

/// What goes. Keys and values are counted as they stand in the index, without what its files add to
/// them.
#[derive(Default)]
pub(crate) struct PruneEstimate {
    /// Bytes of rows and of parts of transcripts.
    rows: u64,
    /// Objects that nothing else points to, with what goes with each.
    objects: BTreeMap<u64, u64>,
    /// Large values and long texts that these, or checkpoints, name.
    named: BTreeSet<ObjectId>,
    /// Large values that what stands for them names.
    held: BTreeSet<ObjectId>,
    /// By session, branch and the revision folded into: the first revision, and the bytes of what
    /// stands for them.
    folds: BTreeMap<(SessionNumber, BranchNumber, u64), (u64, u64)>,
    sessions: BTreeSet<SessionNumber>,
    checkpoints: BTreeSet<CheckpointId>,
}

impl PruneEstimate {
    /// A revision that is folded into a later one: all but its header goes.
    pub(super) fn body(&mut self, body: &[u8]) {
        self.rows += body.len() as u64 + TIME_BYTES;
    }

    /// A part of a delta.
    pub(super) fn part(&mut self, number: u64, sealed: &[u8], delta: &[u8]) -> Result<()> {
        let changes = Delta::scan(delta).map_err(Error::corrupt("a delta"))?.len() as u64;
        self.objects.insert(number, stored_bytes(sealed) + changes * HISTORY_BYTES);
        self.named.extend(object::blobs_named_in_delta(delta)?);
        Ok(())
    }

    /// The fold of a run, with what stands for it from now on.
    pub(super) fn fold(
        &mut self,
        number: SessionNumber,
        run: &FoldRange,
        together: &[DeltaPart],
    ) -> Result<()> {
        let mut kept = 0;
        for part in together {
            let DeltaPart::Inline(sealed) = part else { continue };
            let delta = open(ObjectKind::Delta, &sealed.0).map_err(Error::corrupt("a delta"))?;
            let changes = Delta::scan(&delta).map_err(Error::corrupt("a delta"))?.len() as u64;
            kept += stored_bytes(&sealed.0) + changes * HISTORY_BYTES;
            self.held.extend(object::blobs_named_in_delta(&delta)?);
        }
        self.folds.insert((number, run.branch, run.last), (run.first, kept));
        Ok(())
    }

    /// A checkpoint: its number and its id stay.
    pub(crate) fn checkpoint(&mut self, number: SessionNumber, one: &Checkpoint) -> Result<()> {
        self.checkpoints.insert(one.id);
        self.named.extend(object::texts_in(&one.body));
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

    /// Bytes of a transcript.
    pub(crate) fn text(&mut self, bytes: u64) {
        self.rows += bytes;
    }

    /// A session with all that is its own.
    pub(crate) fn session(&mut self, view: &ReadSnapshot, number: SessionNumber) -> Result<()> {
        let owned = session_drop::session_objects(view, number)?;
        for object in owned.objects {
            self.objects.insert(object, stored_bytes(&object::sealed(view, object)?));
        }
        self.named.extend(owned.named);
        for table in session_drop::OWN.into_iter().filter(|table| *table != key::KEYFRAMES) {
            for (place, row) in session_drop::rows(view, table, number)? {
                self.row(&place, &row);
                self.rows += elsewhere(table);
            }
        }
        self.sessions.insert(number);
        Ok(())
    }

    /// What else goes.
    pub(crate) fn add(&mut self, mut other: Self) {
        self.rows += other.rows;
        self.objects.append(&mut other.objects);
        self.named.append(&mut other.named);
        self.held.append(&mut other.held);
        self.folds.append(&mut other.folds);
        self.sessions.append(&mut other.sessions);
        self.checkpoints.append(&mut other.checkpoints);
    }

    /// About how many bytes of the index come free once all of it is swept, in a view from before
    /// it went.
    pub(crate) fn bytes(&self, view: &ReadSnapshot) -> Result<u64> {
        // What a long run was folded into first goes as it came.
        let objects: u64 =
            self.objects.range(..object::next_number(view)?).map(|(_, bytes)| bytes).sum();
        let freed = self.rows + objects + self.values(view)? + self.keyframes(view)?;
        Ok(freed.saturating_sub(self.kept()))
    }

    /// What stands for what is folded. A long run is folded in several steps, each into the next.
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

    /// The large values that nothing else names: all objects are read for that, if there are any.
    fn values(&self, view: &ReadSnapshot) -> Result<u64> {
        let mut loose =
            UnreferencedBlobs::new(self.named.difference(&self.held).copied().collect());
        if self.named.is_subset(&self.held) {
            return Ok(0);
        }
        loose.keep_stored(
            view,
            &SweepSet {
                objects: self.objects.keys().copied().collect(),
                sessions: self.sessions.clone(),
                checkpoints: self.checkpoints.clone(),
            },
        )?;
        let mut bytes = 0;
        for id in loose.into_ids() {
            if let Some(number) = object::find_number(view, &id)? {
                bytes += stored_bytes(&object::sealed(view, number)?) + NAMED_BYTES;
            }
        }
        Ok(bytes)
    }

    /// The full states that go, but for the chunks that others share. The newest in each fold is
    /// not counted: one like it is made again where reading would take long without.
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
            bytes += stored_bytes(&object::sealed(view, *chunk)?) + NAMED_BYTES;
        }
        Ok(bytes)
    }

    /// The end of the fold that a revision goes into.
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

/// What goes with a row of a session in tables whose keys begin with something else.
const fn elsewhere(table: TableId) -> u64 {
    match table {
        key::REVISIONS | key::FOLDED => ID_BYTES,
        key::CHECKPOINTS => ID_BYTES + ALL_CHECKPOINTS_BYTES,
        key::OPERATIONS => OPERATION_ID_BYTES,
        _ => 0,
    }
}

/// What an object takes in the index, where it is compressed.
fn stored_bytes(sealed: &[u8]) -> u64 {
    let smaller = compress_sealed(sealed).ok().flatten();
    smaller.map_or(sealed.len(), |smaller| smaller.len()) as u64
}

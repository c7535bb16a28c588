//! Computes the state of a revision: reads the nearest keyframe, and replays the deltas between the
//! keyframe and the revision.

use super::lineage::{self, RevisionRange, RevisionRef};
use super::object;
use super::parallel;
use super::scanned_object::{ObjectSource, ScannedObject, ScannedRanges, scan};
use super::state::{BufferRange, RevisionState, StateBuilder};
use crate::backend::{ScanDirection, Snapshot};
use crate::engine::refs::StoreRefs;
use crate::error::{Error, Result};
use crate::format::key;
use crate::format::{
    ChunkEntry, DeltaChangeRange, DeltaSideRange, KeyframeRow, ObjectKind, RevisionRow,
};
use crate::model::SessionNumber;
use std::ops::Range;
use std::sync::Arc;

/// Half a millisecond of replay at one byte per nanosecond. Below this cost no keyframe is made.
pub(super) const MIN_REPLAY_COST: u64 = 500_000;
/// Below this number of entries one thread builds two states faster than two threads.
const PARALLEL_ENTRIES: usize = 8192;

/// Computes the state of a revision. Checks each object against its id, and the number of claims
/// against the revision's header.
pub(crate) fn materialize(
    view: &dyn ObjectSource,
    refs: &StoreRefs,
    session: SessionNumber,
    at: RevisionRef,
) -> Result<RevisionState> {
    let plan = plan(view, refs, session, at)?;
    let scanned = scan(view, &plan.objects(), plan.cost)?;
    build(view, session, at, &plan, &scanned)
}

/// Computes the states of two revisions like [`materialize`], and reads their objects together.
pub(crate) fn materialize_pair(
    view: &dyn ObjectSource,
    refs: &StoreRefs,
    session: SessionNumber,
    (one, other): (RevisionRef, RevisionRef),
) -> Result<(RevisionState, RevisionState)> {
    let plans = (plan(view, refs, session, one)?, plan(view, refs, session, other)?);
    let mut wanted = plans.0.objects();
    let first = wanted.len();
    wanted.extend(plans.1.objects());
    let scanned = scan(view, &wanted, plans.0.cost.saturating_add(plans.1.cost))?;
    let is_worth_it = scanned.iter().map(|one| one.len()).sum::<usize>() >= PARALLEL_ENTRIES;
    let (left, right) = scanned.split_at(first.min(scanned.len()));
    let (one, other) = parallel::both(
        is_worth_it,
        || build(view, session, one, &plans.0, left),
        || build(view, session, other, &plans.1, right),
    );
    Ok((one?, other?))
}

/// The keyframe and the deltas from which a state is computed.
#[derive(Default)]
struct ReplayPlan {
    keyframe: Option<KeyframeRow>,
    /// Revisions to replay forwards, oldest first.
    forward: Vec<RevisionRow>,
    /// Revisions to undo, newest first.
    backward: Vec<RevisionRow>,
    /// Total cost of reading, in bytes at memory speed.
    cost: u64,
}

impl ReplayPlan {
    fn forward(keyframe: Option<KeyframeRow>, path: ReplayPath) -> Self {
        Self { keyframe, forward: path.rows, backward: Vec::new(), cost: path.cost }
    }

    fn backward(keyframe: KeyframeRow, path: ReplayPath) -> Self {
        Self { keyframe: Some(keyframe), forward: Vec::new(), backward: path.rows, cost: path.cost }
    }

    /// Number of objects that are deltas to replay forwards.
    fn forward_parts(&self) -> usize {
        self.forward.iter().map(|row| row.parts.len()).sum()
    }

    /// Number of objects that are deltas.
    fn deltas(&self) -> usize {
        self.forward_parts() + self.backward.iter().map(|row| row.parts.len()).sum::<usize>()
    }

    /// Returns the required objects in this order: deltas to replay forwards, deltas to undo,
    /// chunks of the keyframe.
    fn objects(&self) -> Vec<(ObjectKind, u64)> {
        let rows = self.forward.iter().chain(&self.backward);
        let deltas = rows.flat_map(|row| &row.parts).map(|part| (ObjectKind::Delta, *part));
        let chunks = self.keyframe.iter().flat_map(|keyframe| &keyframe.chunks);
        deltas.chain(chunks.map(|chunk| (ObjectKind::Chunk, chunk.object))).collect()
    }
}

/// Returns the first or last keyframe of a range of revisions, with its sequence number.
fn keyframe_near(
    view: &dyn Snapshot,
    session: SessionNumber,
    range: RevisionRange,
    direction: ScanDirection,
) -> Result<Option<(u64, KeyframeRow)>> {
    let (from, to) = lineage::row_bounds(session, range);
    let found = view.scan(key::KEYFRAMES, &from, &to, direction, 1)?;
    let Some((place, row)) = found.first() else { return Ok(None) };
    let row = KeyframeRow::decode(row).map_err(Error::corrupt("a keyframe"))?;
    Ok(Some((key::last_number(place).unwrap_or(0), row)))
}

fn plan(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    session: SessionNumber,
    at: RevisionRef,
) -> Result<ReplayPlan> {
    if at.sequence == 0 {
        return Ok(ReplayPlan::default());
    }
    let mut ranges = Vec::new();
    let mut keyframe = None;
    let mut count = 0;
    for range in lineage::state_ranges(view, refs, session, at)? {
        let found = keyframe_near(view, session, range, ScanDirection::Descending)?;
        let after = found.as_ref().map_or(range.after, |(sequence, _)| *sequence);
        count += range.to - after;
        ranges.push(RevisionRange { after, ..range });
        if let Some((_, row)) = found {
            keyframe = Some(row);
            break;
        }
    }
    let start = keyframe.as_ref().map_or(0, |row: &KeyframeRow| row.bytes);
    let forward = || -> Result<ReplayPath> {
        let mut rows = Vec::new();
        for range in &ranges {
            rows.extend(rows_of(view, session, *range)?);
        }
        rows.reverse();
        Ok(ReplayPath::of(rows, start))
    };
    let Some((between, later)) = later_keyframe(view, session, at)? else {
        return Ok(ReplayPlan::forward(keyframe, forward()?));
    };
    let backward = || Ok(ReplayPath::of(rows_of(view, session, between)?, later.bytes));
    // The direction with fewer revisions is usually cheaper. The rows of the other direction are
    // read only if it could save much.
    let is_back = between.to - between.after < count;
    let first = if is_back { backward()? } else { forward()? };
    let other = || if is_back { forward() } else { backward() };
    let other = if first.is_short() { None } else { Some(other()?) };
    let (chosen, is_back) = match other {
        Some(other) if other.cost < first.cost => (other, !is_back),
        _ => (first, is_back),
    };
    Ok(if is_back {
        ReplayPlan::backward(later, chosen)
    } else {
        ReplayPlan::forward(keyframe, chosen)
    })
}

/// Returns the nearest keyframe after a revision on its branch, and the revisions between, whose
/// deltas can be undone. `None` if there is no such keyframe, or if a reset is between: the claims
/// of a reset do not follow from the revision before it.
fn later_keyframe(
    view: &dyn Snapshot,
    session: SessionNumber,
    at: RevisionRef,
) -> Result<Option<(RevisionRange, KeyframeRow)>> {
    let after = RevisionRange { branch: at.branch, after: at.sequence, to: u64::MAX - 1 };
    let Some((sequence, row)) = keyframe_near(view, session, after, ScanDirection::Ascending)?
    else {
        return Ok(None);
    };
    let between = RevisionRange { to: sequence, ..after };
    let (from, to) = lineage::row_bounds(session, between);
    let reset = view.scan(key::RESETS, &from, &to, ScanDirection::Ascending, 1)?;
    Ok(reset.is_empty().then_some((between, row)))
}

/// The revisions to replay from a keyframe or from the empty state, with the cost.
struct ReplayPath {
    rows: Vec<RevisionRow>,
    cost: u64,
}

impl ReplayPath {
    fn of(rows: Vec<RevisionRow>, keyframe_bytes: u64) -> Self {
        let cost = keyframe_bytes + rows.iter().map(cost).sum::<u64>();
        Self { rows, cost }
    }

    /// Returns whether the cost is so low that another path cannot save much.
    fn is_short(&self) -> bool {
        let state = self.rows.first().map_or(u64::MAX, |row| row.state_bytes);
        self.cost <= state.saturating_mul(2).max(MIN_REPLAY_COST)
    }
}

/// Returns the cost of replaying a revision, in bytes read at memory speed.
pub(crate) const fn cost(row: &RevisionRow) -> u64 {
    const REVISION_BYTES: u64 = 4096;
    row.bytes + REVISION_BYTES
}

/// Returns the rows of a range, newest first.
fn rows_of(
    view: &dyn Snapshot,
    session: SessionNumber,
    range: RevisionRange,
) -> Result<Vec<RevisionRow>> {
    let rows = lineage::revisions(view, session, range, ScanDirection::Descending, usize::MAX)?;
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// The last change of a key: the key, its range in a buffer, and one side of the change.
#[derive(Clone, Copy)]
struct EntryOverride<'a> {
    key: &'a [u8],
    buffer: u32,
    place: &'a Range<u32>,
    side: &'a DeltaSideRange,
}

/// Builds the state of a plan from its objects.
fn build(
    view: &dyn Snapshot,
    session: SessionNumber,
    at: RevisionRef,
    plan: &ReplayPlan,
    scanned: &[Arc<ScannedObject>],
) -> Result<RevisionState> {
    // Before the first revision the state is empty.
    if at.sequence == 0 {
        return Ok(RevisionState::default());
    }
    let state = replay(view, plan, scanned)?;
    let row = lineage::revision(view, session, at)?;
    let header = lineage::header(&row.header)?;
    if header.count != state.len() as u64 {
        return Err(Error::Corrupt {
            what: format!("the state of #{}", at.sequence),
            source: format!("it has {} claims, not {}", state.len(), header.count).into(),
        });
    }
    Ok(state)
}

/// Builds the state from the base of a plan and the last change of each key.
fn replay(
    view: &dyn Snapshot,
    plan: &ReplayPlan,
    scanned: &[Arc<ScannedObject>],
) -> Result<RevisionState> {
    let (forward, deltas) = (plan.forward_parts(), plan.deltas());
    let base = base(plan, scanned, deltas);
    let mut overrides: Vec<EntryOverride<'_>> = Vec::new();
    for (place, one) in scanned.iter().take(deltas).enumerate() {
        if let ScannedRanges::Changes(changes) = &one.ranges
            && !base.contains(&place)
        {
            overrides.extend(changes.iter().map(|change| EntryOverride {
                key: one.at(&change.key),
                buffer: place as u32,
                place: &change.key,
                side: if place < forward { &change.new } else { &change.old },
            }));
        }
    }
    // The stable sort is fast, because the keys of a large delta are sorted already. It keeps the
    // changes of each key in the order of their deltas: the last one counts.
    overrides.sort_by(|a, b| a.key.cmp(b.key));
    overrides.dedup_by(|later, first| {
        let same = later.key == first.key;
        if same {
            *first = *later;
        }
        same
    });

    let entries: usize =
        scanned.iter().skip(base.start).take(base.len()).map(|one| one.len()).sum();
    let mut builder = StateBuilder::with_capacity(entries + overrides.len());
    for one in scanned {
        builder.buffer(Arc::clone(&one.bytes));
    }
    let mut overrides = overrides.as_slice();
    for place in base {
        let Some(one) = scanned.get(place) else { continue };
        let under = (one.as_ref(), place as u32);
        overrides = match &one.ranges {
            ScannedRanges::Entries(entries) => {
                overlay_entries(view, &mut builder, under, entries, overrides)?
            }
            ScannedRanges::Changes(changes) => {
                overlay_entries(view, &mut builder, under, changes, overrides)?
            }
        };
    }
    for other in overrides {
        other.push(view, &mut builder)?;
    }
    Ok(builder.finish())
}

/// Returns which objects form the sorted base into which the other deltas are merged: the chunks of
/// the keyframe, or the parts of the first delta. Their keys ascend, so they are not sorted again,
/// and not all are compared.
fn base(plan: &ReplayPlan, scanned: &[Arc<ScannedObject>], deltas: usize) -> Range<usize> {
    if plan.keyframe.is_some() {
        return deltas..scanned.len();
    }
    let first = plan.forward.first().map_or(0, |row| row.parts.len());
    let ascend = |pair: &[Arc<ScannedObject>]| match pair {
        [one, next] => one.last_key() < next.first_key(),
        _ => true,
    };
    // The order of the parts of a delta from another store has not been checked before.
    let sorted = scanned.get(..first).is_some_and(|parts| parts.windows(2).all(ascend));
    0..if sorted { first } else { 0 }
}

trait BaseEntry {
    fn key(&self) -> &Range<u32>;

    fn push(&self, view: &dyn Snapshot, builder: &mut StateBuilder, buffer: u32) -> Result<()>;
}

impl BaseEntry for ChunkEntry {
    fn key(&self) -> &Range<u32> {
        &self.key
    }

    fn push(&self, _: &dyn Snapshot, builder: &mut StateBuilder, buffer: u32) -> Result<()> {
        builder.push(BufferRange::new(buffer, &self.key), BufferRange::new(buffer, &self.entry));
        Ok(())
    }
}

impl BaseEntry for DeltaChangeRange {
    fn key(&self) -> &Range<u32> {
        &self.key
    }

    fn push(&self, view: &dyn Snapshot, builder: &mut StateBuilder, buffer: u32) -> Result<()> {
        push(view, builder, buffer, &self.key, &self.new)
    }
}

/// Merges the overrides into the entries of one base object, up to its last entry. Returns the
/// remaining overrides.
fn overlay_entries<'o>(
    view: &dyn Snapshot,
    builder: &mut StateBuilder,
    (one, buffer): (&ScannedObject, u32),
    entries: &[impl BaseEntry],
    overrides: &'o [EntryOverride<'o>],
) -> Result<&'o [EntryOverride<'o>]> {
    let mut rest = entries;
    let mut left = overrides;
    while let Some((next, others)) = left.split_first() {
        let (before, after) = rest.split_at(first_from(one, rest, next.key));
        before.iter().try_for_each(|entry| entry.push(view, builder, buffer))?;
        rest = after;
        // The key of the override is after the last key of this object.
        let Some((first, after)) = rest.split_first() else { break };
        next.push(view, builder)?;
        if one.at(first.key()) == next.key {
            rest = after;
        }
        left = others;
    }
    rest.iter().try_for_each(|entry| entry.push(view, builder, buffer))?;
    Ok(left)
}

/// Returns the index of the first entry whose key is not less than this key, by a galloping search:
/// the step doubles until it is too far. Keys are scattered in memory, so few should be compared,
/// and if there are many overrides the entry is near.
fn first_from(one: &ScannedObject, entries: &[impl BaseEntry], key: &[u8]) -> usize {
    let is_before =
        |place: usize| entries.get(place).is_some_and(|entry| one.at(entry.key()) < key);
    let mut from = 0;
    let mut step = 1;
    while is_before(from + step - 1) {
        from += step;
        step *= 2;
    }
    let end = entries.len().min(from + step - 1);
    let unknown = entries.get(from..end).unwrap_or_default();
    from + unknown.partition_point(|entry| one.at(entry.key()) < key)
}

impl EntryOverride<'_> {
    fn push(&self, view: &dyn Snapshot, builder: &mut StateBuilder) -> Result<()> {
        push(view, builder, self.buffer, self.place, self.side)
    }
}

fn push(
    view: &dyn Snapshot,
    builder: &mut StateBuilder,
    buffer: u32,
    key: &Range<u32>,
    side: &DeltaSideRange,
) -> Result<()> {
    let key = BufferRange::new(buffer, key);
    match side {
        DeltaSideRange::Absent => {}
        DeltaSideRange::Inline(entry) => builder.push(key, BufferRange::new(buffer, entry)),
        DeltaSideRange::Blob(id) => {
            let entry = object::content_of(view, ObjectKind::Blob, id)?;
            let all = 0..entry.len() as u32;
            let buffer = builder.buffer(Arc::new(entry));
            builder.push(key, BufferRange::new(buffer, &all));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::EmptySnapshot;
    use crate::format::{Delta, DeltaChange, DeltaSide, StateChunk};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn chunk(entries: &[(u8, u8)]) -> ScannedObject {
        let mut chunk = StateChunk::default();
        entries.iter().for_each(|(key, entry)| chunk.push(&[*key], &[*entry]));
        let bytes = chunk.encode();
        let ranges = ScannedRanges::Entries(StateChunk::decode(&bytes).unwrap());
        ScannedObject { bytes: Arc::new(bytes), ranges }
    }

    fn delta(changes: impl Iterator<Item = (u8, Option<u8>)>) -> ScannedObject {
        let side = |entry: Option<u8>| match entry {
            Some(entry) => DeltaSide::Inline([entry].into()),
            None => DeltaSide::Absent,
        };
        let change =
            |(key, new)| DeltaChange { key: vec![key], old: DeltaSide::Absent, new: side(new) };
        let bytes = Delta { changes: changes.map(change).collect() }.encode([0; 16]);
        let ranges = ScannedRanges::Changes(Delta::scan(&bytes).unwrap());
        ScannedObject { bytes: Arc::new(bytes), ranges }
    }

    proptest! {
        #[test]
        fn overrides_of_several_base_objects_give_the_same_state_as_a_map(
            entries in prop::collection::btree_map(0_u8..60, any::<u8>(), 0..40),
            over in prop::collection::btree_map(0_u8..60, prop::option::of(any::<u8>()), 0..20),
            size in 1_usize..15,
            as_deltas: bool,
        ) {
            let all: Vec<(u8, u8)> = entries.clone().into_iter().collect();
            let mut objects: Vec<ScannedObject> = all
                .chunks(size)
                .map(|some| {
                    if as_deltas {
                        delta(some.iter().map(|(key, entry)| (*key, Some(*entry))))
                    } else {
                        chunk(some)
                    }
                })
                .collect();
            objects.push(delta(over.clone().into_iter()));
            let last = objects.last().unwrap();
            let ScannedRanges::Changes(changes) = &last.ranges else { panic!("a delta") };
            let buffer = objects.len() as u32 - 1;
            let overrides: Vec<_> = changes
                .iter()
                .map(|one| EntryOverride { key: last.at(&one.key), buffer, place: &one.key, side: &one.new })
                .collect();
            let mut builder = StateBuilder::default();
            for one in &objects {
                builder.buffer(Arc::clone(&one.bytes));
            }
            let mut left = overrides.as_slice();
            for (place, one) in (0..buffer).zip(&objects) {
                left = match &one.ranges {
                    ScannedRanges::Entries(entries) => overlay_entries(&EmptySnapshot, &mut builder, (one, place), entries, left),
                    ScannedRanges::Changes(changes) => overlay_entries(&EmptySnapshot, &mut builder, (one, place), changes, left),
                }
                .unwrap();
            }
            for other in left {
                other.push(&EmptySnapshot, &mut builder).unwrap();
            }
            let mut wanted: BTreeMap<u8, u8> = entries;
            for (key, entry) in over {
                match entry {
                    Some(entry) => wanted.insert(key, entry),
                    None => wanted.remove(&key),
                };
            }
            let state = builder.finish();
            let found: Vec<_> = state.encoded().map(|(key, entry)| (key.to_vec(), entry.to_vec())).collect();
            let wanted: Vec<_> = wanted.iter().map(|(key, entry)| (vec![*key], vec![*entry])).collect();
            prop_assert_eq!(found, wanted);
        }
    }
}

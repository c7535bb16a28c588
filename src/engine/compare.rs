//! Differences between two revisions. They are computed from the deltas between the two if one is
//! an ancestor of the other and that is cheaper, otherwise from both states.

use super::lineage::{self, RevisionRange, RevisionRef};
use super::materialize::{self, cost};
use super::object;
use super::refs::{StoreRefs, session};
use super::scanned_object::{ALWAYS_PARALLEL_COST, ObjectSource, ScannedRanges, scan};
use super::state::{BufferRange, StateDifferences};
use crate::backend::{ScanDirection, Snapshot};
use crate::error::{Error, Result};
use crate::format::{DeltaSideRange, ObjectKind, decode_entry, decode_key};
use crate::model::{ClaimEntry, EntryChange, SessionNumber};
use std::sync::Arc;

/// Returns the claims that differ, sorted by key.
pub(crate) fn compare(
    view: &dyn ObjectSource,
    refs: &StoreRefs,
    number: SessionNumber,
    from: Option<RevisionRef>,
    to: Option<RevisionRef>,
) -> Result<Vec<EntryChange>> {
    compare_encoded(view, refs, number, from, to)?
        .iter()
        .map(|(key, old, new)| {
            let key = decode_key(key).map_err(Error::corrupt("a delta"))?;
            let decode = |bytes: Option<&[u8]>| -> Result<Option<ClaimEntry>> {
                let entry = bytes.map(decode_entry).transpose();
                entry.map_err(Error::corrupt(format_args!("the {key}")))
            };
            Ok(EntryChange { old: decode(old)?, new: decode(new)?, key })
        })
        .collect()
}

/// Returns the same differences as [`compare`], not decoded.
pub(crate) fn compare_encoded(
    view: &dyn ObjectSource,
    refs: &StoreRefs,
    number: SessionNumber,
    from: Option<RevisionRef>,
    to: Option<RevisionRef>,
) -> Result<StateDifferences> {
    if from == to {
        return Ok(StateDifferences::default());
    }
    let at = |at: Option<RevisionRef>| at.unwrap_or(RevisionRef { branch: 0, sequence: 0 });
    let (from, to) = (at(from), at(to));
    if let Some(differences) = net_changes_to_descendant(view, refs, number, from, to)? {
        return Ok(differences);
    }
    if let Some(differences) = net_changes_to_descendant(view, refs, number, to, from)? {
        return Ok(differences.swapped());
    }
    let (old, new) = materialize::materialize_pair(view, refs, number, (from, to))?;
    Ok(StateDifferences::between(&old, &new))
}

/// Fewer revisions than this are always read delta by delta, without comparing costs.
const MIN_ROWS: usize = 64;

/// Returns the net changes of the deltas from a revision to its descendant; `None` if `to` is not a
/// descendant of `from`, or if reading both states is cheaper.
fn net_changes_to_descendant(
    view: &dyn ObjectSource,
    refs: &StoreRefs,
    number: SessionNumber,
    from: RevisionRef,
    to: RevisionRef,
) -> Result<Option<StateDifferences>> {
    if from.sequence >= to.sequence {
        return Ok(None);
    }
    if let Some(parts) = deltas_of_near_revisions(view, refs, number, from, to)? {
        return net_changes(view, &parts, ALWAYS_PARALLEL_COST).map(Some);
    }
    let mut between = Vec::new();
    let mut reached = from.sequence == 0;
    for range in lineage::state_ranges(view, refs, number, to)? {
        if range.branch == from.branch && (range.after..=range.to).contains(&from.sequence) {
            between.push(RevisionRange { after: from.sequence, ..range });
            reached = true;
            break;
        }
        between.push(range);
    }
    if !reached {
        return Ok(None);
    }
    // Newest first, in portions: over a large distance even the rows would cost more than the
    // states.
    let bound = lineage::revision(view, number, to)?.state_bytes.saturating_mul(2);
    let (mut parts, mut costs, mut rows) = (Vec::new(), 0, 0);
    for range in between {
        let mut left = range;
        loop {
            let portion =
                lineage::revisions(view, number, left, ScanDirection::Descending, MIN_ROWS)?;
            let Some((oldest, _)) = portion.last() else { break };
            left.to = oldest - 1;
            rows += portion.len();
            for (_, row) in &portion {
                costs += cost(row);
                parts.extend(row.parts.iter().rev().map(|part| (ObjectKind::Delta, *part)));
            }
            // Estimates the cost of the remaining revisions from the average of those read, to
            // notice a large distance early.
            let (read, ahead) = (to.sequence - left.to, left.to.saturating_sub(from.sequence));
            let all = costs.saturating_add(costs / read.max(1) * ahead);
            if rows >= MIN_ROWS && all > bound {
                return Ok(None);
            }
        }
    }
    parts.reverse();
    net_changes(view, &parts, costs).map(Some)
}

/// Up to this distance each revision is looked up from the one that follows it, without a scan.
const NEAR: u64 = 8;

/// Returns the deltas from a revision to a nearby later one on the same branch; `None` if it is not
/// nearby or not an ancestor on that branch, or if revisions between them were folded or reset.
fn deltas_of_near_revisions(
    view: &dyn Snapshot,
    refs: &StoreRefs,
    number: SessionNumber,
    from: RevisionRef,
    to: RevisionRef,
) -> Result<Option<Vec<(ObjectKind, u64)>>> {
    let base = session(refs, number)?.branch(to.branch)?.base.map_or(0, |(_, sequence)| sequence);
    if from.branch != to.branch || from.sequence <= base || to.sequence - from.sequence > NEAR {
        return Ok(None);
    }
    let mut parts = Vec::new();
    let mut at = to;
    while at.sequence > from.sequence {
        // The changes of a folded parent are part of the revision that it was folded into.
        let Some(row) = lineage::find(view, number, at)? else { return Ok(None) };
        let header = lineage::header(&row.header)?;
        let Some(parent) = header.parents.first().filter(|_| header.reset.is_none()) else {
            return Ok(None);
        };
        parts.extend(row.parts.iter().rev().map(|part| (ObjectKind::Delta, *part)));
        at.sequence = parent.sequence;
    }
    parts.reverse();
    Ok((at.sequence == from.sequence).then_some(parts))
}

/// A change of one claim, with the index of its delta.
struct NumberedChange<'a> {
    delta: u32,
    key: &'a [u8],
    place: BufferRange,
    old: &'a DeltaSideRange,
    new: &'a DeltaSideRange,
}

/// Returns the net changes of deltas, oldest first. `cost` is what reading them costs.
fn net_changes(
    view: &dyn ObjectSource,
    parts: &[(ObjectKind, u64)],
    cost: u64,
) -> Result<StateDifferences> {
    let scanned = scan(view, parts, cost)?;
    let count = scanned.iter().map(|one| match &one.ranges {
        ScannedRanges::Changes(changes) => changes.len(),
        ScannedRanges::Entries(_) => 0,
    });
    let mut sides: Vec<NumberedChange<'_>> = Vec::with_capacity(count.sum());
    for (delta, one) in (0..).zip(&scanned) {
        if let ScannedRanges::Changes(changes) = &one.ranges {
            for change in changes {
                sides.push(NumberedChange {
                    delta,
                    key: change.key_in(&one.bytes),
                    place: BufferRange::new(delta, &change.key),
                    old: &change.old,
                    new: &change.new,
                });
            }
        }
    }
    // The sort is stable: the changes of one key stay in the order of their deltas.
    sides.sort_by(|a, b| a.key.cmp(b.key));
    let buffers = scanned.iter().map(|one| Arc::clone(&one.bytes)).collect();
    let mut differences = StateDifferences::with_buffers(buffers, sides.len());
    for same in sides.chunk_by(|a, b| a.key == b.key) {
        let (Some(first), Some(last)) = (same.first(), same.last()) else { continue };
        let old = copy_side(view, &mut differences, first.delta, first.old)?;
        let new = copy_side(view, &mut differences, last.delta, last.new)?;
        differences.push(first.place, old, new);
    }
    Ok(differences)
}

fn copy_side(
    view: &dyn Snapshot,
    differences: &mut StateDifferences,
    delta: u32,
    side: &DeltaSideRange,
) -> Result<Option<BufferRange>> {
    match side {
        DeltaSideRange::Absent => Ok(None),
        DeltaSideRange::Inline(range) => Ok(Some(BufferRange::new(delta, range))),
        DeltaSideRange::Blob(id) => {
            Ok(Some(differences.keep(object::content_of(view, ObjectKind::Blob, id)?)))
        }
    }
}

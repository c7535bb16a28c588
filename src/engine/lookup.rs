//! Looks up one claim at a past moment, or the history of one claim, without the rest of the state.

use super::lineage::{self, RevisionRange, RevisionRef};
use super::refs::{StoreRefs, session};
use super::scanned_object::{
    ALWAYS_PARALLEL_COST, ObjectSource, ScannedObject, ScannedRanges, scan,
};
use super::{object, parallel};
use crate::backend::{LastRows, ScanDirection, Snapshot};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    Delta, DeltaChangeRange, DeltaSide, DeltaSideRange, EntryBytes, ObjectKind, RevisionRow,
    decode_entry, decode_key, entity_hash,
};
use crate::model::{ClaimEntry, EntryChange, SessionId, SessionNumber};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A change of one claim.
#[derive(Clone, Debug)]
pub(crate) struct ClaimHistoryEntry {
    pub(crate) at: RevisionRef,
    pub(crate) old: DeltaSide,
    pub(crate) new: DeltaSide,
}

/// Returns the encoded entry of a claim at a revision.
pub(crate) fn entry(
    view: &dyn ObjectSource,
    refs: &StoreRefs,
    number: SessionNumber,
    at: RevisionRef,
    key: &[u8],
) -> Result<Option<EntryBytes>> {
    let ranges = lineage::state_ranges(view, refs, number, at)?;
    entry_in(view, refs, number, &ranges, key)
}

/// Looks up a claim like [`entry`], in given ranges. For callers that look up many claims of one
/// revision.
pub(crate) fn entry_in(
    view: &dyn ObjectSource,
    refs: &StoreRefs,
    number: SessionNumber,
    ranges: &[RevisionRange],
    key: &[u8],
) -> Result<Option<EntryBytes>> {
    for range in ranges {
        if let Some(touched) = newest(view, refs, number, *range, key)? {
            return delta_side_bytes(view, &touched.new);
        }
    }
    Ok(None)
}

/// Returns whether any revision in these ranges changed a claim, even if the claim was removed
/// since. Reads no deltas, so a claim whose key has the same hash counts too.
pub(crate) fn is_touched(
    view: &dyn Snapshot,
    session: (&SessionId, SessionNumber),
    ranges: &[RevisionRange],
    key: &[u8],
) -> Result<bool> {
    for range in ranges {
        if !history_rows(view, session, *range, key, 1)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Prefetches the rows that [`is_touched`] reads.
pub(crate) fn prefetch_touched(
    view: &dyn Snapshot,
    session: (&SessionId, SessionNumber),
    ranges: &[RevisionRange],
    keys: &dyn Fn() -> Vec<Vec<u8>>,
) -> Result<()> {
    let key_range = |range: &RevisionRange, key: &[u8]| {
        let (from, to) = history_range(session, *range, key);
        LastRows { table: key::HISTORY, from, to, limit: 1 }
    };
    let of_key = |key: Vec<u8>| ranges.iter().map(move |range| key_range(range, &key));
    Ok(view.prefetch(&|| keys().into_iter().flat_map(of_key).collect())?)
}

/// Below this number of claims one thread is faster than two.
const PARALLEL_CLAIMS: usize = 8;

/// Looks up several claims like [`entry_in`], on all cores. Objects that several of them need are
/// read once.
pub(crate) fn entries_in(
    view: &dyn ObjectSource,
    refs: &StoreRefs,
    number: SessionNumber,
    ranges: &[RevisionRange],
    keys: &[&Vec<u8>],
) -> Result<Vec<Option<EntryBytes>>> {
    let id = &session(refs, number)?.info.id;
    let last = |key: &&Vec<u8>| -> Result<Option<(RevisionRef, usize)>> {
        for range in ranges {
            let rows = history_rows(view, (id, number), *range, key, 1)?;
            if let Some(found) = rows.first() {
                return Ok(Some(*found));
            }
        }
        Ok(None)
    };
    let places: Vec<_> =
        parallel::map(keys, PARALLEL_CLAIMS, last).into_iter().collect::<Result<_>>()?;
    let mut rows: HashMap<RevisionRef, RevisionRow> = HashMap::new();
    let mut objects: Vec<Option<u64>> = Vec::with_capacity(keys.len());
    for place in &places {
        let Some((at, ordinal)) = place else {
            objects.push(None);
            continue;
        };
        let row = match rows.entry(*at) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(lineage::revision(view, number, *at)?),
        };
        objects.push(Some(part_of(row, *at, *ordinal)?));
    }
    let mut wanted: Vec<_> =
        objects.iter().flatten().map(|part| (ObjectKind::Delta, *part)).collect();
    wanted.sort_unstable_by_key(|(_, part)| *part);
    wanted.dedup();
    let scanned = scan(view, &wanted, ALWAYS_PARALLEL_COST)?;
    let found = |key: &[u8], part: u64| {
        let place = wanted.binary_search_by_key(&part, |(_, part)| *part).ok()?;
        let delta = scanned.get(place)?;
        Some(side(delta, &change_in(delta, key)?.new))
    };
    let one = |(key, part): (&&Vec<u8>, Option<u64>)| match part.map(|part| found(key, part)) {
        None => Ok(None),
        Some(Some(side)) => delta_side_bytes(view, &side),
        // The delta that was found changed another claim with the same hash.
        Some(None) => entry_in(view, refs, number, ranges, key),
    };
    keys.iter().zip(objects).map(one).collect()
}

/// Returns the first changes of a delta, at most `limit`, from its content.
pub(crate) fn delta_changes(
    view: &dyn Snapshot,
    content: &[u8],
    limit: usize,
) -> Result<Vec<EntryChange>> {
    let delta = Delta::decode(content).map_err(Error::corrupt("a delta"))?;
    let changes = delta.changes.iter().take(limit).map(|change| {
        let key = decode_key(&change.key).map_err(Error::corrupt("a delta"))?;
        let entry = |side| -> Result<Option<ClaimEntry>> {
            let bytes = delta_side_bytes(view, side)?;
            let entry = bytes.map(|bytes| decode_entry(&bytes)).transpose();
            entry.map_err(Error::corrupt(format_args!("the {key}")))
        };
        Ok(EntryChange { old: entry(&change.old)?, new: entry(&change.new)?, key })
    });
    changes.collect()
}

/// Returns the encoded entry of one side of a change.
pub(crate) fn delta_side_bytes(
    view: &dyn Snapshot,
    side: &DeltaSide,
) -> Result<Option<EntryBytes>> {
    match side {
        DeltaSide::Absent => Ok(None),
        DeltaSide::Inline(entry) => Ok(Some(EntryBytes::clone(entry))),
        DeltaSide::Blob(id) => Ok(Some(object::content_of(view, ObjectKind::Blob, id)?.into())),
    }
}

fn newest(
    view: &dyn ObjectSource,
    refs: &StoreRefs,
    number: SessionNumber,
    range: RevisionRange,
    key: &[u8],
) -> Result<Option<ClaimHistoryEntry>> {
    let mut to = range.to;
    loop {
        match touches(view, refs, number, RevisionRange { to, ..range }, key, 1)? {
            ClaimHistoryPage::Changes(mut touched) => return Ok(touched.pop()),
            ClaimHistoryPage::OnlyOthers(sequence) if sequence > range.after + 1 => {
                to = sequence - 1;
            }
            ClaimHistoryPage::OnlyOthers(_) | ClaimHistoryPage::End => return Ok(None),
        }
    }
}

enum ClaimHistoryPage {
    /// Changes of this claim, newest first.
    Changes(Vec<ClaimHistoryEntry>),
    /// Only changes of other claims with the same hash, down to this revision.
    OnlyOthers(u64),
    End,
}

fn touches(
    view: &dyn ObjectSource,
    refs: &StoreRefs,
    number: SessionNumber,
    range: RevisionRange,
    key: &[u8],
    limit: usize,
) -> Result<ClaimHistoryPage> {
    let id = &session(refs, number)?.info.id;
    let rows = history_rows(view, (id, number), range, key, limit)?;
    let Some((last, _)) = rows.last() else { return Ok(ClaimHistoryPage::End) };
    let last = last.sequence;
    let mut found = Vec::new();
    for (at, ordinal) in rows {
        let part = part_of(&lineage::revision(view, number, at)?, at, ordinal)?;
        for one in scan(view, &[(ObjectKind::Delta, part)], ALWAYS_PARALLEL_COST)? {
            if let Some(change) = change_in(&one, key) {
                let (old, new) = (side(&one, &change.old), side(&one, &change.new));
                found.push(ClaimHistoryEntry { at, old, new });
            }
        }
    }
    Ok(if found.is_empty() {
        ClaimHistoryPage::OnlyOthers(last)
    } else {
        ClaimHistoryPage::Changes(found)
    })
}

/// Returns the revisions of a range that changed a claim, or another one with the same hash, newest
/// first, each with the index of the delta part.
fn history_rows(
    view: &dyn Snapshot,
    (id, number): (&SessionId, SessionNumber),
    range: RevisionRange,
    key: &[u8],
    limit: usize,
) -> Result<Vec<(RevisionRef, usize)>> {
    let (from, to) = history_range((id, number), range, key);
    let rows = view.scan(key::HISTORY, &from, &to, ScanDirection::Descending, limit)?;
    let found = |(place, ordinal): &(Vec<u8>, Vec<u8>)| {
        let sequence = key::last_number(place).unwrap_or(0);
        let at = RevisionRef { branch: range.branch, sequence };
        (at, key::short_at(ordinal, 0).unwrap_or(0) as usize)
    };
    Ok(rows.iter().map(found).collect())
}

/// Returns the start and the end of the rows that [`history_rows`] reads.
fn history_range(
    (id, number): (&SessionId, SessionNumber),
    range: RevisionRange,
    key: &[u8],
) -> (Vec<u8>, Vec<u8>) {
    let place = of(number).bytes(&entity_hash(id, key)).branch(range.branch);
    let from = place.clone().number(range.after.saturating_add(1)).build();
    (from, place.number(range.to.saturating_add(1)).build())
}

/// Returns the object number of a part of a revision's delta.
fn part_of(row: &RevisionRow, at: RevisionRef, ordinal: usize) -> Result<u64> {
    let part = row.parts.get(ordinal).copied();
    part.ok_or_else(|| Error::missing(format!("a part of the delta of #{}", at.sequence)))
}

fn change_in<'a>(delta: &'a ScannedObject, key: &[u8]) -> Option<&'a DeltaChangeRange> {
    let ScannedRanges::Changes(changes) = &delta.ranges else { return None };
    let place = changes.binary_search_by(|change| delta.at(&change.key).cmp(key)).ok()?;
    changes.get(place)
}

/// Copies one side of a change.
fn side(delta: &ScannedObject, side: &DeltaSideRange) -> DeltaSide {
    match side {
        DeltaSideRange::Absent => DeltaSide::Absent,
        DeltaSideRange::Inline(range) => DeltaSide::Inline(delta.at(range).into()),
        DeltaSideRange::Blob(id) => DeltaSide::Blob(*id),
    }
}

/// Returns every change of a claim that led to its value at a revision, newest first.
pub(crate) fn history(
    view: &dyn ObjectSource,
    refs: &StoreRefs,
    number: SessionNumber,
    at: RevisionRef,
    key: &[u8],
) -> Result<Vec<ClaimHistoryEntry>> {
    let mut all = Vec::new();
    for range in lineage::state_ranges(view, refs, number, at)? {
        if let ClaimHistoryPage::Changes(touched) =
            touches(view, refs, number, range, key, usize::MAX)?
        {
            all.extend(touched);
        }
    }
    Ok(all)
}

//! One claim at a past moment, and the history of one claim, without the rest of the state.

use super::lineage::{self, At, Stretch};
use super::refs::session;
use super::scanned::{Content, LARGE, Objects, Scanned, scan};
use super::{cores, object};
use crate::backend::{Direction, Snapshot};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    ChangeRange, EntryBytes, ObjectKind, Refs, RevisionRow, Side, SideRange, entity_hash,
};
use crate::model::{SessionId, SessionNumber};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A change of one claim.
#[derive(Clone, Debug)]
pub(crate) struct Touched {
    pub(crate) at: At,
    pub(crate) old: Side,
    pub(crate) new: Side,
}

/// The encoded entry of a claim at a revision.
pub(crate) fn entry(
    view: &dyn Objects,
    refs: &Refs,
    number: SessionNumber,
    at: At,
    key: &[u8],
) -> Result<Option<EntryBytes>> {
    let stretches = lineage::stretches(view, refs, number, at)?;
    entry_in(view, refs, number, &stretches, key)
}

/// As [`entry`], for whoever looks up many claims of one revision.
pub(crate) fn entry_in(
    view: &dyn Objects,
    refs: &Refs,
    number: SessionNumber,
    stretches: &[Stretch],
    key: &[u8],
) -> Result<Option<EntryBytes>> {
    for stretch in stretches {
        if let Some(touched) = newest(view, refs, number, *stretch, key)? {
            return bytes(view, &touched.new);
        }
    }
    Ok(None)
}

/// Below this many claims one thread is faster than two.
const PARALLEL_CLAIMS: usize = 8;

/// As [`entry_in`], of several claims, on all cores. What several of them need is read once.
pub(crate) fn entries_in(
    view: &dyn Objects,
    refs: &Refs,
    number: SessionNumber,
    stretches: &[Stretch],
    keys: &[&Vec<u8>],
) -> Result<Vec<Option<EntryBytes>>> {
    let id = &session(refs, number)?.info.id;
    let last = |key: &&Vec<u8>| -> Result<Option<(At, usize)>> {
        for stretch in stretches {
            let rows = history_rows(view, (id, number), *stretch, key, 1)?;
            if let Some(found) = rows.first() {
                return Ok(Some(*found));
            }
        }
        Ok(None)
    };
    let places: Vec<_> =
        cores::map(keys, PARALLEL_CLAIMS, last).into_iter().collect::<Result<_>>()?;
    let mut rows: HashMap<At, RevisionRow> = HashMap::new();
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
    let scanned = scan(view, &wanted, LARGE)?;
    let found = |key: &[u8], part: u64| {
        let place = wanted.binary_search_by_key(&part, |(_, part)| *part).ok()?;
        let delta = scanned.get(place)?;
        Some(side(delta, &change_in(delta, key)?.new))
    };
    let one = |(key, part): (&&Vec<u8>, Option<u64>)| match part.map(|part| found(key, part)) {
        None => Ok(None),
        Some(Some(side)) => bytes(view, &side),
        // Another claim with the same hash was changed there.
        Some(None) => entry_in(view, refs, number, stretches, key),
    };
    keys.iter().zip(objects).map(one).collect()
}

/// The bytes of one side of a change.
pub(crate) fn bytes(view: &dyn Snapshot, side: &Side) -> Result<Option<EntryBytes>> {
    match side {
        Side::Absent => Ok(None),
        Side::Inline(entry) => Ok(Some(EntryBytes::clone(entry))),
        Side::Blob(id) => Ok(Some(object::content_of(view, ObjectKind::Blob, id)?.into())),
    }
}

fn newest(
    view: &dyn Objects,
    refs: &Refs,
    number: SessionNumber,
    stretch: Stretch,
    key: &[u8],
) -> Result<Option<Touched>> {
    let mut to = stretch.to;
    loop {
        let some = touches(view, refs, number, Stretch { to, ..stretch }, key, 1)?;
        match some {
            Page::Touched(mut touched) => return Ok(touched.pop()),
            Page::Other(sequence) if sequence > stretch.after + 1 => to = sequence - 1,
            Page::Other(_) | Page::End => return Ok(None),
        }
    }
}

enum Page {
    /// Changes of this claim, newest first.
    Touched(Vec<Touched>),
    /// Only changes of other claims with the same hash, down to this revision.
    Other(u64),
    End,
}

fn touches(
    view: &dyn Objects,
    refs: &Refs,
    number: SessionNumber,
    stretch: Stretch,
    key: &[u8],
    limit: usize,
) -> Result<Page> {
    let id = &session(refs, number)?.info.id;
    let rows = history_rows(view, (id, number), stretch, key, limit)?;
    let Some((last, _)) = rows.last() else { return Ok(Page::End) };
    let last = last.sequence;
    let mut found = Vec::new();
    for (at, ordinal) in rows {
        let part = part_of(&lineage::revision(view, number, at)?, at, ordinal)?;
        for one in scan(view, &[(ObjectKind::Delta, part)], LARGE)? {
            if let Some(change) = change_in(&one, key) {
                let (old, new) = (side(&one, &change.old), side(&one, &change.new));
                found.push(Touched { at, old, new });
            }
        }
    }
    Ok(if found.is_empty() { Page::Other(last) } else { Page::Touched(found) })
}

/// Which revisions of a stretch changed a claim, or another one with the same hash, newest first, and in which part of their deltas.
fn history_rows(
    view: &dyn Snapshot,
    (id, number): (&SessionId, SessionNumber),
    stretch: Stretch,
    key: &[u8],
    limit: usize,
) -> Result<Vec<(At, usize)>> {
    let place = of(number).bytes(&entity_hash(id, key)).branch(stretch.branch);
    let from = place.clone().number(stretch.after.saturating_add(1)).build();
    let to = place.number(stretch.to.saturating_add(1)).build();
    let rows = view.scan(key::HISTORY, &from, &to, Direction::Descending, limit)?;
    let found = |(place, ordinal): &(Vec<u8>, Vec<u8>)| {
        let sequence = key::last_number(place).unwrap_or(0);
        let at = At { branch: stretch.branch, sequence };
        (at, key::short_at(ordinal, 0).unwrap_or(0) as usize)
    };
    Ok(rows.iter().map(found).collect())
}

/// The object that a part of a revision's delta is.
fn part_of(row: &RevisionRow, at: At, ordinal: usize) -> Result<u64> {
    let part = row.parts.get(ordinal).copied();
    part.ok_or_else(|| Error::missing(format!("a part of the delta of #{}", at.sequence)))
}

/// What a delta says of a claim.
fn change_in<'a>(delta: &'a Scanned, key: &[u8]) -> Option<&'a ChangeRange> {
    let Content::Changes(changes) = &delta.content else { return None };
    let place = changes.binary_search_by(|change| delta.at(&change.key).cmp(key)).ok()?;
    changes.get(place)
}

/// A copy of one side of a change, alone.
fn side(delta: &Scanned, side: &SideRange) -> Side {
    match side {
        SideRange::Absent => Side::Absent,
        SideRange::Inline(range) => Side::Inline(delta.at(range).into()),
        SideRange::Blob(id) => Side::Blob(*id),
    }
}

/// Every change of a claim that made it what it is at a revision, newest first.
pub(crate) fn history(
    view: &dyn Objects,
    refs: &Refs,
    number: SessionNumber,
    at: At,
    key: &[u8],
) -> Result<Vec<Touched>> {
    let mut all = Vec::new();
    for stretch in lineage::stretches(view, refs, number, at)? {
        if let Page::Touched(touched) = touches(view, refs, number, stretch, key, usize::MAX)? {
            all.extend(touched);
        }
    }
    Ok(all)
}

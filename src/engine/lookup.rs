//! One claim at a past moment, and the history of one claim, without the rest of the state.

use super::lineage::{self, At, Stretch};
use super::materialize::{Content, Objects, Scanned, scan};
use super::refs::session;
use super::{cores, object};
use crate::backend::{Direction, Snapshot};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{EntryBytes, ObjectKind, Refs, Side, SideRange, entity_hash};
use crate::model::SessionNumber;

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

/// As [`entry_in`], of several claims, on all cores.
pub(crate) fn entries_in(
    view: &dyn Objects,
    refs: &Refs,
    number: SessionNumber,
    stretches: &[Stretch],
    keys: &[&Vec<u8>],
) -> Result<Vec<Option<EntryBytes>>> {
    let one = |key: &&Vec<u8>| entry_in(view, refs, number, stretches, key);
    cores::map(keys, PARALLEL_CLAIMS, one).into_iter().collect()
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
    let entity = entity_hash(&session(refs, number)?.info.id, key);
    let place = of(number).bytes(&entity).branch(stretch.branch);
    let from = place.clone().number(stretch.after.saturating_add(1)).build();
    let to = place.number(stretch.to.saturating_add(1)).build();
    let rows = view.scan(key::HISTORY, &from, &to, Direction::Descending, limit)?;
    let Some((last, _)) = rows.last() else { return Ok(Page::End) };
    let last = key::last_number(last).unwrap_or(0);
    let mut found = Vec::new();
    for (place, ordinal) in &rows {
        let sequence = key::last_number(place).unwrap_or(0);
        let at = At { branch: stretch.branch, sequence };
        let ordinal = key::short_at(ordinal, 0).unwrap_or(0) as usize;
        let row = lineage::revision(view, number, at)?;
        let part = row
            .parts
            .get(ordinal)
            .ok_or_else(|| Error::missing(format!("a part of the delta of #{sequence}")))?;
        for one in scan(view, &[(ObjectKind::Delta, *part)])? {
            let Content::Changes(changes) = &one.content else { continue };
            let place = changes.binary_search_by(|change| one.at(&change.key).cmp(key));
            if let Some(change) = place.ok().and_then(|place| changes.get(place)) {
                let (old, new) = (side(&one, &change.old), side(&one, &change.new));
                found.push(Touched { at, old, new });
            }
        }
    }
    Ok(if found.is_empty() { Page::Other(last) } else { Page::Touched(found) })
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

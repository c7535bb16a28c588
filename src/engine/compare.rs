//! What changed between two revisions: from the deltas between them where one is on the way to the other, else from
//! both states.

use super::lineage::{self, At, Stretch};
use super::materialize::{self, cost};
use super::object;
use super::refs::session;
use super::scanned::{Content, LARGE, Objects, scan};
use super::state::{Differences, Place};
use crate::backend::{Direction, Snapshot};
use crate::error::{Error, Result};
use crate::format::{Header, ObjectKind, Refs, SideRange, decode_entry, decode_key};
use crate::model::{Change, Entry, SessionNumber};
use std::sync::Arc;

/// The claims that differ, sorted by key.
pub(crate) fn compare(
    view: &dyn Objects,
    refs: &Refs,
    number: SessionNumber,
    from: Option<At>,
    to: Option<At>,
) -> Result<Vec<Change>> {
    raw(view, refs, number, from, to)?
        .iter()
        .map(|(key, old, new)| {
            let key = decode_key(key).map_err(Error::corrupt("a delta"))?;
            let decode = |bytes: Option<&[u8]>| -> Result<Option<Entry>> {
                bytes
                    .map(|bytes| {
                        decode_entry(bytes).map_err(Error::corrupt(format_args!("the {key}")))
                    })
                    .transpose()
            };
            Ok(Change { old: decode(old)?, new: decode(new)?, key: key.clone() })
        })
        .collect()
}

/// As [`compare`], not decoded.
pub(crate) fn raw(
    view: &dyn Objects,
    refs: &Refs,
    number: SessionNumber,
    from: Option<At>,
    to: Option<At>,
) -> Result<Differences> {
    if from == to {
        return Ok(Differences::default());
    }
    let at = |at: Option<At>| at.unwrap_or(At { branch: 0, sequence: 0 });
    let (from, to) = (at(from), at(to));
    if let Some(differences) = along(view, refs, number, from, to)? {
        return Ok(differences);
    }
    if let Some(differences) = along(view, refs, number, to, from)? {
        return Ok(differences.swapped());
    }
    let (old, new) = materialize::both(view, refs, number, (from, to))?;
    Ok(Differences::between(&old, &new))
}

/// Fewer revisions than this are always read one by one.
const MIN_ROWS: usize = 64;

/// The net changes of the deltas from one revision to a later one that stands on it; `None` if it does not, or if
/// reading both states costs less.
fn along(
    view: &dyn Objects,
    refs: &Refs,
    number: SessionNumber,
    from: At,
    to: At,
) -> Result<Option<Differences>> {
    if from.sequence >= to.sequence {
        return Ok(None);
    }
    if let Some(parts) = near(view, refs, number, from, to)? {
        return net(view, &parts, LARGE).map(Some);
    }
    let mut between = Vec::new();
    let mut reached = from.sequence == 0;
    for stretch in lineage::stretches(view, refs, number, to)? {
        if stretch.branch == from.branch && (stretch.after..=stretch.to).contains(&from.sequence) {
            between.push(Stretch { after: from.sequence, ..stretch });
            reached = true;
            break;
        }
        between.push(stretch);
    }
    if !reached {
        return Ok(None);
    }
    // Newest first, in portions: far apart, the rows alone would cost more than the states.
    let bound = lineage::revision(view, number, to)?.state_bytes.saturating_mul(2);
    let (mut parts, mut costs, mut rows) = (Vec::new(), 0, 0);
    for stretch in between {
        let mut left = stretch;
        loop {
            let portion = lineage::revisions(view, number, left, Direction::Descending, MIN_ROWS)?;
            let Some((oldest, _)) = portion.last() else { break };
            left.to = oldest - 1;
            rows += portion.len();
            for (_, row) in &portion {
                costs += cost(row);
                parts.extend(row.parts.iter().rev().map(|part| (ObjectKind::Delta, *part)));
            }
            // What is still to be read costs about as much a number as what was: far apart, that is known early.
            let (read, ahead) = (to.sequence - left.to, left.to.saturating_sub(from.sequence));
            let all = costs.saturating_add(costs / read.max(1) * ahead);
            if rows >= MIN_ROWS && all > bound {
                return Ok(None);
            }
        }
    }
    parts.reverse();
    net(view, &parts, costs).map(Some)
}

/// Revisions this near are found one by one, each by the one behind it: that takes no scan.
const NEAR: u64 = 8;

/// The deltas from one revision to a later one near it on the same branch; `None` if there are others between, or if it
/// does not stand on it.
fn near(
    view: &dyn Snapshot,
    refs: &Refs,
    number: SessionNumber,
    from: At,
    to: At,
) -> Result<Option<Vec<(ObjectKind, u64)>>> {
    let base = session(refs, number)?.branch(to.branch)?.base.map_or(0, |(_, sequence)| sequence);
    if from.branch != to.branch || from.sequence <= base || to.sequence - from.sequence > NEAR {
        return Ok(None);
    }
    let mut parts = Vec::new();
    let mut at = to;
    while at.sequence > from.sequence {
        // A parent that was folded left its changes in what it was folded into.
        let Some(row) = lineage::find(view, number, at)? else { return Ok(None) };
        let header = Header::decode(&row.header).map_err(Error::corrupt("a revision's header"))?;
        let Some(parent) = header.parents.first().filter(|_| header.reset.is_none()) else {
            return Ok(None);
        };
        parts.extend(row.parts.iter().rev().map(|part| (ObjectKind::Delta, *part)));
        at.sequence = parent.sequence;
    }
    parts.reverse();
    Ok((at.sequence == from.sequence).then_some(parts))
}

/// One side of a change, with the number of its delta.
struct Side<'a> {
    delta: u32,
    key: &'a [u8],
    place: Place,
    old: &'a SideRange,
    new: &'a SideRange,
}

/// The net changes of deltas that cost so much to read, oldest first.
fn net(view: &dyn Objects, parts: &[(ObjectKind, u64)], cost: u64) -> Result<Differences> {
    let scanned = scan(view, parts, cost)?;
    let count = scanned.iter().map(|one| match &one.content {
        Content::Changes(changes) => changes.len(),
        Content::Entries(_) => 0,
    });
    let mut sides: Vec<Side<'_>> = Vec::with_capacity(count.sum());
    for (delta, one) in (0..).zip(&scanned) {
        if let Content::Changes(changes) = &one.content {
            for change in changes {
                sides.push(Side {
                    delta,
                    key: change.key_in(&one.bytes),
                    place: Place::new(delta, &change.key),
                    old: &change.old,
                    new: &change.new,
                });
            }
        }
    }
    // A stable sort: the sides of one key stay in the order of their deltas.
    sides.sort_by(|a, b| a.key.cmp(b.key));
    let buffers = scanned.iter().map(|one| Arc::clone(&one.bytes)).collect();
    let mut differences = Differences::with_buffers(buffers, sides.len());
    for same in sides.chunk_by(|a, b| a.key == b.key) {
        let (Some(first), Some(last)) = (same.first(), same.last()) else { continue };
        let old = place(view, &mut differences, first.delta, first.old)?;
        let new = place(view, &mut differences, last.delta, last.new)?;
        differences.push(first.place, old, new);
    }
    Ok(differences)
}

fn place(
    view: &dyn Snapshot,
    differences: &mut Differences,
    delta: u32,
    side: &SideRange,
) -> Result<Option<Place>> {
    match side {
        SideRange::Absent => Ok(None),
        SideRange::Inline(range) => Ok(Some(Place::new(delta, range))),
        SideRange::Blob(id) => {
            Ok(Some(differences.keep(object::content_of(view, ObjectKind::Blob, id)?)))
        }
    }
}

//! Verifies objects and their use: deltas lead to the digests of their revisions, keyframes have
//! the digests of their revisions, growing blobs can be opened.

use super::{VerifyFindings, chain};
use crate::backend::Snapshot;
use crate::engine::blob;
use crate::engine::index::fold;
use crate::engine::keyframe::digest as state_digest;
use crate::engine::lineage::RevisionRef;
use crate::engine::object::{self, LOST_OBJECT};
use crate::engine::read_snapshot::ReadSnapshot;
use crate::engine::refs::visible_sessions;
use crate::engine::table_rows::for_each_row;
use crate::engine::{delta_parts, lookup, materialize, timeline};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    Delta, KeyframeRow, ObjectKind, RevisionHeader, RevisionRow, SegmentRow, StateChunk,
    entry_hash, is_self_contained, is_whole, object_id, object_kind,
};
use crate::model::{ObjectId, SessionNumber, StateDigest};
use std::collections::{HashMap, HashSet};

pub(super) fn objects(view: &ReadSnapshot, findings: &mut VerifyFindings) -> Result<()> {
    let mut segments = HashSet::new();
    for_each_row(view, key::SEGMENTS, |_, row| {
        segments.extend(SegmentRow::decode(row).map(|row| row.object));
        Ok(())
    })?;
    for_each_row(view, key::OBJECTS, |place, encoded| {
        let number = key::last_number(place).unwrap_or(0);
        findings.checked.objects += 1;
        if !is_whole(encoded) {
            findings.add_primary(format!("the object number {number}"), &"its hash differs");
        } else if object_kind(encoded)
            .is_ok_and(|kind| matches!(kind, ObjectKind::Blob | ObjectKind::Chunk))
            && is_self_contained(encoded).is_ok_and(|alone| alone)
            && !segments.contains(&number)
            && let Ok(id) = object_id(encoded)
            && object::find_number(view, &id)?.is_none()
        {
            // Large values, and chunks that later keyframes share, are found only by their ids.
            // Parts of growing blobs are found by number.
            findings.add_derived(format!("the name of the object {number}"), &"it is missing");
        }
        Ok(())
    })?;
    // Objects of the tail are numbered separately.
    if let Some(last) = object::beyond_counter(view.generation())? {
        findings
            .add_derived("the counter of objects", &format!("it is not above the object {last}"));
    }
    for_each_row(view, key::OBJECT_NAMES, |name, number| {
        let number = key::last_number(number).unwrap_or(0);
        let encoded = object::encoded(view, number).ok();
        let found = encoded.and_then(|encoded| object_id(&encoded).ok());
        if found.is_none_or(|id| key::object_name(&id) != name) {
            findings.add_derived(format!("the name of the object {number}"), &"it has another one");
        }
        Ok(())
    })
}

/// Verifies the digest and count of each revision: they must follow from its parent and the
/// changes of its delta.
pub(super) fn digests(view: &ReadSnapshot, findings: &mut VerifyFindings) -> Result<()> {
    let mut sums: HashMap<(SessionNumber, u64), (StateDigest, u64)> = HashMap::new();
    let mut rows = Vec::new();
    for_each_row(view, key::REVISIONS, |place, row| {
        let number = key::short_at(place, 0).unwrap_or(0);
        if let Ok(row) = RevisionRow::decode(row)
            && let Ok(header) = RevisionHeader::decode(&row.header)
        {
            sums.insert((number, header.sequence), (header.digest, header.count));
            rows.push((number, header, row.parts));
        }
        Ok(())
    })?;
    for (number, header, parts) in rows {
        let own = RevisionRef { branch: header.branch, sequence: header.sequence };
        let folds = fold::row(view, number, own)?.is_some();
        let begins = if folds { first_folded(view, number, own)? } else { Some(header.clone()) };
        let start = begins.and_then(|begins| match begins.start() {
            None => Some((StateDigest::EMPTY, 0)),
            Some(from) => sums.get(&(number, from.sequence)).copied(),
        });
        let place = format!("revision #{}", header.sequence);
        if parts.contains(&LOST_OBJECT) {
            findings.lost_before += 1;
            continue;
        }
        // The changes were permanently removed before the import, which has not reached the fold.
        if parts.is_empty() && !folds && delta_parts::is_delta_lost(&header, &[]) {
            continue;
        }
        // The revision that the claims come from, or the first one of a fold, was lost, so this
        // revision cannot be checked.
        let Some((digest, count)) = start else { continue };
        match replay(view, &parts, digest, count) {
            Ok((sum, names)) => {
                if sum != (header.digest, header.count) {
                    findings.add_primary(place.clone(), &"its delta does not lead to its digest");
                }
                // A fold replaces the delta by the combined one, whose name the header lacks.
                if names != header.delta && !folds {
                    findings.add_primary(place, &"its delta is another one's");
                }
            }
            Err(error) => findings.add_primary(format!("the delta of {place}"), &chain(&error)),
        }
    }
    Ok(())
}

/// Verifies the state of each branch's head, if nothing was found yet: states are computed from
/// derived data too, whose damage would be reported as damage of the state. Even after losses every
/// head must be readable, because a repair gives each branch a readable head.
pub(super) fn heads(view: &ReadSnapshot, findings: &mut VerifyFindings) -> Result<()> {
    if !findings.found.is_empty() {
        return Ok(());
    }
    for one in visible_sessions(&view.refs) {
        let (number, session) = one?;
        for (branch, one) in (0..).zip(&session.branches) {
            let (Some(head), Some(at)) = (one.head, timeline::head_of(&view.refs, number, branch)?)
            else {
                continue;
            };
            let place =
                format!("the claims at the head of '{}' of '{}'", one.name, session.info.name);
            match materialize::materialize(view, &view.refs, number, at) {
                Err(error) => findings.add_unreadable(place, &error),
                Ok(state) if state_digest(&state) != head.digest => {
                    findings.add_primary(place, &"their digest differs");
                }
                Ok(_) => {}
            }
        }
    }
    Ok(())
}

/// Returns the header of the first revision that was folded into this one; `None` if that revision
/// was lost before a repair.
fn first_folded(
    view: &ReadSnapshot,
    number: SessionNumber,
    mut at: RevisionRef,
) -> Result<Option<RevisionHeader>> {
    loop {
        let Some(row) = fold::row(view, number, at)? else {
            let what = format!("the list of revisions folded into #{}", at.sequence);
            return Err(Error::missing(what));
        };
        let into = at.sequence;
        at.sequence = row.first;
        if at.sequence == into || fold::row(view, number, at)?.is_none() {
            // A repair puts the mark of a lost revision in the table of those that are not folded.
            let place = of(number).branch(at.branch).number(at.sequence).build();
            if view.get(key::REVISIONS, &place)?.is_some_and(|row| row == RevisionRow::LOST) {
                return Ok(None);
            }
            let found = fold::find(view, number, at.branch, (at.sequence, into))?;
            return RevisionHeader::decode(&found.header)
                .map(Some)
                .map_err(Error::corrupt(format!("the header of #{}", at.sequence)));
        }
    }
}

type ReplayedDelta = ((StateDigest, u64), ObjectId);

fn replay(
    view: &ReadSnapshot,
    parts: &[u64],
    mut digest: StateDigest,
    mut count: u64,
) -> Result<ReplayedDelta> {
    let mut names = Vec::new();
    for part in parts {
        let content = object::content(view, ObjectKind::Delta, *part)?;
        names.push(Delta::name(&content));
        let delta = Delta::decode(&content).map_err(Error::corrupt("a delta"))?;
        for change in &delta.changes {
            if let Some(old) = lookup::delta_side_bytes(view, &change.old)? {
                digest = digest.minus(&entry_hash(&change.key, &old));
                count = count.wrapping_sub(1);
            }
            if let Some(new) = lookup::delta_side_bytes(view, &change.new)? {
                digest = digest.plus(&entry_hash(&change.key, &new));
                count = count.wrapping_add(1);
            }
        }
    }
    Ok(((digest, count), delta_parts::list_id(&names)))
}

pub(super) fn keyframes(view: &ReadSnapshot, findings: &mut VerifyFindings) -> Result<()> {
    for_each_row(view, key::KEYFRAMES, |place, row| {
        let number = key::short_at(place, 0).unwrap_or(0);
        let branch = key::short_at(place, 4).unwrap_or(0);
        let sequence = key::last_number(place).unwrap_or(0);
        if let Err(error) = keyframe(view, number, branch, sequence, row) {
            findings.add_derived(format!("the full state of #{sequence}"), &chain(&error));
        }
        Ok(())
    })
}

/// Checks that one keyframe has the digest and count of its revision.
pub(crate) fn keyframe(
    view: &dyn Snapshot,
    number: SessionNumber,
    branch: u32,
    sequence: u64,
    row: &[u8],
) -> Result<()> {
    let row = KeyframeRow::decode(row).map_err(Error::corrupt("a keyframe"))?;
    let mut digest = StateDigest::EMPTY;
    let mut count = 0;
    for chunk in &row.chunks {
        let content = object::content(view, ObjectKind::Chunk, chunk.object)?;
        for entry in StateChunk::decode(&content).map_err(Error::corrupt("a chunk"))? {
            let bytes = |range: &std::ops::Range<u32>| {
                content.get(range.start as usize..range.end as usize).unwrap_or_default()
            };
            digest = digest.plus(&entry_hash(bytes(&entry.key), bytes(&entry.entry)));
            count += 1;
        }
    }
    let at = RevisionRef { branch, sequence };
    let (head, _) = timeline::head_at(view, number, at)?;
    if (head.digest, head.count) == (digest, count) {
        return Ok(());
    }
    let what = format!("the full state of #{sequence}");
    Err(Error::Corrupt { what, source: "its digest is not the revision's".into() })
}

/// Opens every segment of every growing blob, each with the bytes before it as prefix.
pub(super) fn segments(view: &ReadSnapshot, findings: &mut VerifyFindings) -> Result<()> {
    let mut rows = Vec::new();
    for_each_row(view, key::SEGMENTS, |place, row| {
        let decoded = SegmentRow::decode(row);
        rows.push((place.to_vec(), decoded));
        Ok(())
    })?;
    let mut blob: Vec<u8> = Vec::new();
    let mut before: Vec<u8> = Vec::new();
    let mut next = 0;
    for (place, row) in rows {
        let offset = key::last_number(&place).unwrap_or(0);
        let name = place.get(..12).unwrap_or_default();
        if name != blob {
            (blob, before, next) = (name.to_vec(), Vec::new(), 0);
        }
        let what = format!("a growing blob at {offset}");
        if let Ok(gone) = &row
            && !object::is_object_number(gone.object)
        {
            findings.lost_before += u64::from(gone.object == LOST_OBJECT);
            (before, next) = (Vec::new(), offset + gone.length);
            continue;
        }
        let opened = row.map_err(Error::corrupt("a blob segment")).and_then(|row| {
            if offset != next {
                return Err(Error::missing(format!("the part before {offset}")));
            }
            blob::segment_content(view, &row, &before)
        });
        match opened {
            Ok(content) => {
                next = offset + content.len() as u64;
                before.extend_from_slice(&content);
                // No segment's prefix reaches across a restart.
                if blob::restart_before(next) == next {
                    before.clear();
                }
            }
            Err(error) => {
                findings.add_primary(what, &chain(&error));
                (before, next) = (Vec::new(), offset);
            }
        }
    }
    Ok(())
}

//! Checks whether the records of a bundle continue a session as it is here.

use crate::backend::Snapshot;
use crate::engine::blob::{self, BlobCache};
use crate::engine::checkpoint;
use crate::engine::index::fold;
use crate::engine::lineage::{self, RevisionRef};
use crate::engine::object;
use crate::engine::plan_context::PlanContext;
use crate::engine::refs::{StoreRefs, session as session_refs};
use crate::error::{Error, Result};
use crate::format::key::{self, of};
use crate::format::{
    BundleSession, ObjectKind, OperationEffect, OperationRow, RecordBytes, RecordChange,
    RevisionHeader, SegmentRow, SequenceRow, SessionRefs, decode_object_with_prefix, object_id,
};
use crate::model::SessionNumber;

/// Returns the error for a session that has diverged from the bundle.
pub(super) fn divergence_error(session: &BundleSession, error: &Error) -> Error {
    Error::Conflict(format!(
        "the session '{}' went another way here: {}",
        session.info.name,
        crate::engine::verify::chain(error)
    ))
}

/// Returns the error for a session whose next number here is not that of the bundle.
pub(super) fn diverged(session: &BundleSession, here: &SessionRefs) -> Error {
    Error::Conflict(format!(
        "the session '{}' went another way here: #{} is not the next one of the bundle",
        session.info.name,
        here.next_sequence - 1
    ))
}

/// Returns whether a change is here already. It is effect number `at` of its operation.
pub(super) fn is_known(
    context: &PlanContext<'_>,
    known: Option<&OperationRow>,
    change: &RecordChange,
    at: usize,
) -> Result<bool> {
    Ok(match change {
        RecordChange::Segment { .. } if known.is_some_and(|row| at < row.effects.len()) => true,
        RecordChange::Segment { session, blob, offset, prefix, object } => {
            let part = (*offset, *prefix, object);
            is_known_part(context, *session, blob, part)?
        }
        RecordChange::TextMissing { session, blob, bytes } => {
            blob::end(&context.view()?, *session, blob)? >= *bytes
        }
        // These changes come last, in one record.
        RecordChange::TakesBack { .. } => known.is_some_and(|row| row.takes_back.is_some()),
        RecordChange::Pruned { .. } => known.is_some(),
        RecordChange::Swept { .. } => known.is_some_and(OperationRow::is_swept),
        // The row of the operation lists its effects.
        _ => known.is_some_and(|row| row.is_swept() || at < row.effects.len()),
    })
}

/// Returns whether a part of a source is here. It does not count as here if its bytes are in other
/// parts, because they were undone and imported again: then the parts of the bundle replace these.
/// Other bytes in its place are an error.
fn is_known_part(
    context: &PlanContext<'_>,
    session: SessionNumber,
    blob: &str,
    (offset, prefix, object): (u64, u64, &RecordBytes),
) -> Result<bool> {
    let view = context.view()?;
    let place = of(session).text(blob).number(offset).build();
    let Some(row) = view.get(key::SEGMENTS, &place)? else { return Ok(false) };
    let row = SegmentRow::decode(&row).map_err(Error::corrupt("a part of a source"))?;
    if !object::is_object_number(row.object) {
        // The part was dropped here.
        return Ok(true);
    }
    let name = |encoded: &[u8]| object_id(encoded).map_err(Error::corrupt("an object"));
    if name(&object::encoded(&view, row.object)?)? == name(&object.0)? {
        return Ok(true);
    }
    let from = offset.saturating_sub(prefix);
    // The earlier bytes may be in other parts by now.
    let cache = BlobCache::default();
    let (start, bytes) = cache.read(&view, session, blob, from, prefix + row.length)?;
    let at = |place: u64| usize::try_from(place - start).unwrap_or(usize::MAX);
    let before = bytes.get(at(from)..at(offset)).ok_or_else(|| Error::missing("a source"))?;
    let theirs = decode_object_with_prefix(ObjectKind::Blob, before, &object.0)
        .map_err(Error::corrupt("a part of a source"))?;
    let ours = bytes.get(at(offset)..).unwrap_or_default();
    let both = ours.len().min(theirs.len());
    if ours.get(..both) != theirs.get(..both) {
        return Err(Error::Conflict(format!("the source '{blob}' has other bytes here")));
    }
    Ok(false)
}

/// Returns whether a change that is here already has the same number as in the bundle. `effect` is
/// its effect here. `branch` is the number of a new branch in the bundle, if that is known.
pub(super) fn has_same_number(
    context: &PlanContext<'_>,
    number: SessionNumber,
    (change, branch): (&RecordChange, Option<u64>),
    effect: Option<&OperationEffect>,
) -> Result<bool> {
    Ok(match (change, effect) {
        (
            RecordChange::Revision { header, .. },
            Some(OperationEffect::Revision { branch, sequence }),
        ) => {
            let header = RevisionHeader::decode(&header.0).map_err(Error::corrupt("a revision"))?;
            (header.branch, header.sequence) == (*branch, *sequence)
        }
        (RecordChange::Branch { .. }, Some(OperationEffect::BranchMade { branch: here })) => {
            branch.is_none_or(|branch| branch == u64::from(*here))
        }
        (RecordChange::Checkpoint { checkpoint, .. }, _) => {
            let here = checkpoint::by_id(&context.view()?, number, &checkpoint.id)?;
            here.is_none_or(|here| here.sequence == checkpoint.sequence)
        }
        _ => true,
    })
}

/// Checks that a change continues the history of this session in the same way as where the bundle
/// was made. `branch` is the number of a new branch there, if that is known.
pub(super) fn check_continuity(
    context: &PlanContext<'_>,
    refs: &StoreRefs,
    number: SessionNumber,
    session: &BundleSession,
    (change, branch): (&RecordChange, Option<u64>),
) -> Result<()> {
    let here = session_refs(refs, number)?;
    let went = || diverged(session, here);
    match change {
        RecordChange::Revision { header, .. } => {
            let header = RevisionHeader::decode(&header.0).map_err(Error::corrupt("a revision"))?;
            let head = here.branch(header.branch)?.head;
            let parent = header.parents.first().map(|parent| parent.id);
            if header.sequence != here.next_sequence || head.map(|head| head.id) != parent {
                return Err(went());
            }
        }
        RecordChange::Folded { branch, first, last, .. } => {
            let at = RevisionRef { branch: *branch, sequence: *last };
            if fold::row(&context.view()?, number, at)?.is_some_and(|row| row.first <= *first) {
                return Err(went());
            }
        }
        // The bytes here end before the next part of the bundle.
        RecordChange::TextMissing { blob, .. }
            if blob::end(&context.view()?, number, blob)? > 0 =>
        {
            return Err(went());
        }
        RecordChange::Switched { branch, .. } => drop(here.branch(*branch)?),
        RecordChange::Checkpoint { checkpoint, .. } => {
            here.branch(checkpoint.branch)?;
            let is_taken = checkpoint.sequence < here.next_sequence && {
                let known = lineage::sequence_row(&context.view()?, number, checkpoint.sequence)?;
                known.is_some_and(|known| known != SequenceRow::Checkpoint(checkpoint.id))
            };
            if is_taken
                || checkpoint.sequence > here.next_sequence
                || checkpoint.revision.is_some_and(|one| one >= here.next_sequence)
            {
                return Err(went());
            }
        }
        RecordChange::Branch { name, base, .. } => {
            here.branch(*base)?;
            let taken = here.branches.iter().any(|one| one.name == *name && !one.hidden);
            // Later changes name the branch by its number.
            if taken || branch.is_some_and(|branch| branch != here.branches.len() as u64) {
                return Err(went());
            }
        }
        _ => {}
    }
    Ok(())
}

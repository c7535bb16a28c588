//! Makes the header, body and delta of a new revision from the refs and a prepared delta.

use super::delta_parts::{encode_delta, list_id};
use super::encoded_change::{DigestedEntry, EncodedChange};
use super::refs::{StoreRefs, effective, session};
use crate::error::Result;
use crate::format::{
    BranchHead, DeltaPart, EntryBytes, ParentRevision, RecordBytes, RecordChange, ResetSource,
    RevisionBody, RevisionHeader, entry_hash,
};
use crate::model::{
    BranchNumber, ObjectId, Operation, RevisionId, SessionNumber, StateDigest, Timestamp,
};
use std::sync::Arc;

/// The session, branch, time and operation of a new revision.
#[derive(Clone, Copy)]
pub(crate) struct CommitTarget<'a> {
    pub(crate) session: SessionNumber,
    pub(crate) branch: BranchNumber,
    pub(crate) time: Timestamp,
    pub(crate) operation: &'a Operation,
}

/// An encoded delta, and what a revision needs to know of it. It is valid as long as the head does
/// not change.
pub(crate) struct PreparedDelta {
    pub(super) head: Option<RevisionId>,
    /// Number of purges when the delta was encoded: a purge changes the content of a head without
    /// changing its id.
    pub(super) purges: u64,
    pub(super) blobs: Vec<RecordChange>,
    pub(super) parts: Vec<DeltaPart>,
    pub(super) delta: ObjectId,
    pub(super) digest: StateDigest,
    pub(super) count: u64,
    pub(super) entries: Arc<[EncodedChange]>,
}

/// A revision that is not written yet.
pub(crate) struct PlannedRevision {
    /// The large values that the revision refers to, then the revision itself.
    pub(crate) changes: Vec<RecordChange>,
    /// The branch's head after the commit.
    pub(crate) head: BranchHead,
    pub(crate) parent: Option<RevisionId>,
    /// The changed entries before and after the revision, for the head cache.
    pub(crate) entries: Arc<[EncodedChange]>,
}

/// Returns an empty delta that leads to a state with this digest and count.
pub(super) fn empty_delta(
    head: Option<&BranchHead>,
    digest: StateDigest,
    count: u64,
) -> PreparedDelta {
    PreparedDelta {
        head: head.map(|head| head.id),
        purges: 0,
        blobs: Vec::new(),
        parts: Vec::new(),
        delta: list_id(&[]),
        digest,
        count,
        entries: Arc::default(),
    }
}

/// Plans a revision whose state is empty, for a repair. All random values are derived from `salt`.
pub(crate) fn plan_cleared(
    refs: &StoreRefs,
    place: CommitTarget<'_>,
    salt: [u8; 16],
) -> Result<PlannedRevision> {
    let head = session(refs, place.session)?.branch(place.branch)?.head;
    let prepared = empty_delta(head.as_ref(), StateDigest::EMPTY, 0);
    finish(refs, place, head.as_ref(), &prepared, Some(ResetSource::Empty), &[], salt)
}

/// Plans a revision that adds new claims. All random values are derived from `salt`, so planning
/// again on the same head gives the same revision.
pub(crate) fn plan_additions(
    refs: &StoreRefs,
    place: CommitTarget<'_>,
    mut additions: Vec<(Vec<u8>, EntryBytes)>,
    salt: [u8; 16],
) -> Result<PlannedRevision> {
    let head = session(refs, place.session)?.branch(place.branch)?.head;
    let (mut digest, count) =
        head.map_or((StateDigest::EMPTY, 0), |head| (head.digest, head.count));
    additions.sort();
    let mut next = salt;
    let mut salts = || {
        next = *blake3::hash(&next).as_bytes().first_chunk().expect("16 of 32 bytes");
        Ok(next)
    };
    let count = count + additions.len() as u64;
    let added = |(key, entry): (Vec<u8>, EntryBytes)| {
        let term = entry_hash(&key, &entry);
        digest = digest.plus(&term);
        (key, None, Some(DigestedEntry { entry, term: Some(term) }))
    };
    let entries: Arc<[EncodedChange]> = additions.into_iter().map(added).collect();
    let (blobs, parts, delta) = encode_delta(&entries, &mut salts)?;
    let head_id = head.map(|head| head.id);
    let prepared =
        PreparedDelta { head: head_id, purges: 0, blobs, parts, delta, digest, count, entries };
    finish(refs, place, head.as_ref(), &prepared, None, &[], salt)
}

pub(super) fn finish(
    refs: &StoreRefs,
    place: CommitTarget<'_>,
    head: Option<&BranchHead>,
    prepared: &PreparedDelta,
    reset: Option<ResetSource>,
    merged: &[ParentRevision],
    salt: [u8; 16],
) -> Result<PlannedRevision> {
    let session = session(refs, place.session)?;
    let body = RevisionBody { salt, operation: place.operation.clone(), stands_for: None }.encode();
    let own = head.map(|head| ParentRevision { sequence: head.sequence, id: head.id });
    let header = RevisionHeader {
        session: session.info.id,
        branch: place.branch,
        sequence: session.next_sequence,
        parents: own.into_iter().chain(merged.iter().copied()).collect(),
        reset,
        time: place.time,
        body: ObjectId::from_bytes(*blake3::hash(&body).as_bytes()),
        delta: prepared.delta,
        digest: prepared.digest,
        count: prepared.count,
    };
    let encoded = header.encode();
    let id = RevisionHeader::id_of(&encoded);
    let new_head = BranchHead::of(&header, id, effective(head, place.time));
    let mut changes = prepared.blobs.clone();
    changes.push(RecordChange::Revision {
        session: place.session,
        header: RecordBytes(encoded),
        body: RecordBytes(body),
        delta: prepared.parts.clone(),
    });
    let (parent, entries) = (head.map(|head| head.id), Arc::clone(&prepared.entries));
    Ok(PlannedRevision { changes, head: new_head, parent, entries })
}

//! Plans revisions: turns changes of claims into a delta, a header and an id.

use super::commit::{PlanContext, blob, random};
use super::head_cache::DigestedEntry;
use super::lineage::RevisionRef;
use super::lookup;
use super::refs::{effective, session};
use super::scanned_object::ObjectSource;
use crate::error::{Error, Result};
use crate::format::{
    BranchHead, Delta, DeltaChange, DeltaPart, DeltaSide, EntryBytes, ObjectKind, ParentRevision,
    RecordBytes, RecordChange, ResetSource, RevisionBody, RevisionHeader, StoreRefs, added_at,
    encode_key, encode_value, entry_hash, has_value, seal, seal_raw,
};
use crate::model::claim;
use crate::model::{
    BranchNumber, EntryChange, Key, ObjectId, Operation, RevisionId, SessionNumber, StateDigest,
    Timestamp, Value,
};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A condition that a claim must meet before it is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClaimPrecondition {
    /// No condition.
    #[default]
    Any,
    /// The claim does not exist yet.
    Absent,
    /// The claim exists.
    Present,
}

/// A change of one claim.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimChange {
    /// The claim to be changed.
    pub key: Key,
    /// The new fields; `None` removes the claim.
    pub value: Option<Value>,
    /// The condition to check first.
    pub expect: ClaimPrecondition,
    /// The claim's own time, if it differs from the time of the revision that adds it, for example
    /// because a stream gives it.
    pub added_at: Option<Timestamp>,
    /// The entry as stored, if a purged entry is restored: its contribution to digests is that of
    /// the old value, which cannot be computed from the new one.
    pub(crate) stored: Option<EntryBytes>,
}

impl ClaimChange {
    /// Sets the fields of a claim, whether or not it exists.
    #[must_use]
    pub const fn put(key: Key, value: Value) -> Self {
        Self {
            key,
            value: Some(value),
            expect: ClaimPrecondition::Any,
            added_at: None,
            stored: None,
        }
    }

    /// Adds a new claim with these fields.
    #[must_use]
    pub const fn add(key: Key, value: Value) -> Self {
        Self {
            key,
            value: Some(value),
            expect: ClaimPrecondition::Absent,
            added_at: None,
            stored: None,
        }
    }

    /// Sets the claim's own time; `None` leaves the time of the revision that adds it.
    #[must_use]
    pub const fn with_added_at(mut self, time: Option<Timestamp>) -> Self {
        self.added_at = time;
        self
    }

    /// Removes a claim if it exists.
    #[must_use]
    pub const fn remove(key: Key) -> Self {
        Self { key, value: None, expect: ClaimPrecondition::Any, added_at: None, stored: None }
    }
}

/// A planned revision.
pub(crate) struct PlannedRevision {
    /// The large values that it refers to, then the revision itself.
    pub(crate) changes: Vec<RecordChange>,
    /// The branch's head after the commit.
    pub(crate) head: BranchHead,
    pub(crate) parent: Option<RevisionId>,
    /// The entries before and after, for the head cache.
    pub(crate) entries: Arc<[EncodedChange]>,
}

/// An encoded key, and its entry before and after.
pub(crate) type EncodedChange = (Vec<u8>, Option<EntryBytes>, Option<DigestedEntry>);

/// Size limit in bytes for inline entries. Larger ones are stored as blobs.
const MAX_INLINE_ENTRY_BYTES: usize = 4096;
/// Approximate size in bytes of the parts of a delta: a lookup of one claim opens one part.
const PIECE_BYTES: usize = 32 << 10;

/// Deltas of one part, up to this size in bytes, are stored uncompressed in the journal.
const MAX_RAW_BYTES: usize = 32 << 10;

/// The session, branch, time and operation of a new revision.
#[derive(Clone, Copy)]
pub(crate) struct CommitTarget<'a> {
    pub(crate) session: SessionNumber,
    pub(crate) branch: BranchNumber,
    pub(crate) time: Timestamp,
    pub(crate) operation: &'a Operation,
}

/// A sealed delta, valid as long as the head does not change.
pub(crate) struct PreparedDelta {
    head: Option<RevisionId>,
    /// Number of purges at that time: a purge changes the content of a head without changing its
    /// id.
    purges: u64,
    blobs: Vec<RecordChange>,
    parts: Vec<DeltaPart>,
    delta: ObjectId,
    digest: StateDigest,
    count: u64,
    entries: Arc<[EncodedChange]>,
}

/// Plans changes of claims on a branch; `None` if nothing changes. `memo` keeps the sealed delta
/// for planning again under the lock.
pub(crate) fn plan(
    desk: &PlanContext<'_>,
    place: CommitTarget<'_>,
    changes: &[impl Borrow<ClaimChange>],
    memo: &mut Option<PreparedDelta>,
) -> Result<Option<PlannedRevision>> {
    let head = session(&desk.refs, place.session)?.branch(place.branch)?.head;
    let now = (head.map(|head| head.id), desk.refs.purges);
    if memo.as_ref().is_none_or(|memo| (memo.head, memo.purges) != now) {
        *memo = seal_changes(desk, place, head.as_ref(), changes)?;
    }
    let Some(sealed) = memo else { return Ok(None) };
    let planned = finish(&desk.refs, place, head.as_ref(), sealed, None, &[], random()?)?;
    Ok(Some(planned))
}

/// Plans a revision whose claims are those of an earlier one, or none; in a merge, those of the
/// merged revision.
pub(crate) fn plan_reset(
    desk: &PlanContext<'_>,
    place: CommitTarget<'_>,
    reset: ResetSource,
    (digest, count): (StateDigest, u64),
    merged: &[ParentRevision],
) -> Result<PlannedRevision> {
    let head = session(&desk.refs, place.session)?.branch(place.branch)?.head;
    let sealed = unchanged(head.as_ref(), digest, count);
    // The branch's own parent comes first. Without one, the revision has no parents, even in a
    // merge.
    let merged = if head.is_some() { merged } else { &[] };
    finish(&desk.refs, place, head.as_ref(), &sealed, Some(reset), merged, random()?)
}

/// Plans a revision with two parents. It is made even if no claim changes, to record that both are
/// merged.
pub(crate) fn plan_merge(
    desk: &PlanContext<'_>,
    place: CommitTarget<'_>,
    changes: &[ClaimChange],
    merged: ParentRevision,
) -> Result<PlannedRevision> {
    let head = session(&desk.refs, place.session)?.branch(place.branch)?.head;
    let sealed = seal_changes(desk, place, head.as_ref(), changes)?.unwrap_or_else(|| {
        let (digest, count) =
            head.map_or((StateDigest::EMPTY, 0), |head| (head.digest, head.count));
        unchanged(head.as_ref(), digest, count)
    });
    finish(&desk.refs, place, head.as_ref(), &sealed, None, &[merged], random()?)
}

fn unchanged(head: Option<&BranchHead>, digest: StateDigest, count: u64) -> PreparedDelta {
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

fn seal_changes(
    desk: &PlanContext<'_>,
    place: CommitTarget<'_>,
    head: Option<&BranchHead>,
    changes: &[impl Borrow<ClaimChange>],
) -> Result<Option<PreparedDelta>> {
    let mut wanted: Vec<(Vec<u8>, &ClaimChange)> = changes
        .iter()
        .map(Borrow::borrow)
        .map(|change| (encode_key(&change.key), change))
        .collect();
    // If a claim is changed twice in one revision, the last change counts.
    wanted.reverse();
    wanted.sort_by(|a, b| a.0.cmp(&b.0));
    wanted.dedup_by(|a, b| a.0 == b.0);
    let (keys, wanted): (Vec<Vec<u8>>, Vec<&ClaimChange>) = wanted.into_iter().unzip();
    let olds = desk.engine.heads.entries(desk, place.session, place.branch, head, &keys)?;
    let mut digest = head.map_or(StateDigest::EMPTY, |head| head.digest);
    let mut count = head.map_or(0, |head| head.count);
    let mut entries: Vec<EncodedChange> = Vec::with_capacity(keys.len());
    for ((key, change), old) in keys.into_iter().zip(&wanted).zip(olds) {
        check_expected(change, old.is_some())?;
        let new = new_entry(place, change, old.as_ref().map(|old| &*old.entry))?;
        if new.as_ref() == old.as_ref().map(|old| &old.entry) {
            continue;
        }
        if let Some(old) = &old {
            digest = digest.minus(&old.term(&key));
            count -= 1;
        }
        let new = new.map(|entry| {
            let term = entry_hash(&key, &entry);
            digest = digest.plus(&term);
            count += 1;
            DigestedEntry { entry, term: Some(term) }
        });
        entries.push((key, old.map(|old| old.entry), new));
    }
    if entries.is_empty() {
        return Ok(None);
    }
    check_references(desk, place, head, &wanted, &entries)?;
    let (blobs, parts, delta) = seal_delta(&entries, &mut random)?;
    let entries = entries.into();
    let (head, purges) = (head.map(|head| head.id), desk.refs.purges);
    Ok(Some(PreparedDelta { head, purges, blobs, parts, delta, digest, count, entries }))
}

fn check_expected(change: &ClaimChange, present: bool) -> Result<()> {
    match (change.expect, present) {
        (ClaimPrecondition::Absent, true) => {
            Err(Error::Duplicate { kind: change.key.kind.name(), id: change.key.id.clone() })
        }
        (ClaimPrecondition::Present, false) => {
            Err(Error::not_found(change.key.kind.name(), change.key.id.clone()))
        }
        _ => Ok(()),
    }
}

fn new_entry(
    place: CommitTarget<'_>,
    change: &ClaimChange,
    old: Option<&[u8]>,
) -> Result<Option<EntryBytes>> {
    let Some(value) = &change.value else { return Ok(None) };
    let added_at = match (change.added_at, old) {
        (Some(time), _) => time,
        (None, Some(old)) => {
            added_at(old).map_err(Error::corrupt(format_args!("the {}", change.key)))?
        }
        (None, None) => place.time,
    };
    // A purged entry with an equal value has other bytes, which must be kept.
    let is_it = |entry: &&[u8]| {
        has_value(entry, value) && self::added_at(entry).is_ok_and(|time| time == added_at)
    };
    match old.into_iter().chain(change.stored.as_deref()).find(is_it) {
        Some(known) => Ok(Some(known.into())),
        None => Ok(Some(encode_value(added_at, value))),
    }
}

/// Returns the change that restores or copies an entry from a revision.
pub(crate) fn restoring_change(
    view: &dyn ObjectSource,
    refs: &StoreRefs,
    number: SessionNumber,
    from: Option<RevisionRef>,
    change: EntryChange,
) -> Result<ClaimChange> {
    let stored = match from {
        // Only needed if there was a purge.
        Some(at) if refs.purges > 0 && change.new.is_some() => {
            lookup::entry(view, refs, number, at, &encode_key(&change.key))?
        }
        _ => None,
    };
    let added_at = change.new.as_ref().map(|entry| entry.added_at);
    let value = change.new.map(|entry| entry.value);
    Ok(ClaimChange { key: change.key, value, expect: ClaimPrecondition::Any, added_at, stored })
}

/// Checks that every claim that a changed one refers to exists at the end of the revision.
fn check_references(
    desk: &PlanContext<'_>,
    place: CommitTarget<'_>,
    head: Option<&BranchHead>,
    changes: &[&ClaimChange],
    entries: &[EncodedChange],
) -> Result<()> {
    let mut wanted: Vec<(Vec<u8>, &Key, Key)> = Vec::new();
    for change in changes {
        if let Some(value) = &change.value {
            for target in claim::references(change.key.kind, value) {
                wanted.push((encode_key(&target), &change.key, target));
            }
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let written: BTreeMap<&[u8], bool> =
        entries.iter().map(|(key, _, entry)| (key.as_slice(), entry.is_some())).collect();
    let mut elsewhere = Vec::new();
    for (key, from, to) in &wanted {
        match written.get(key.as_slice()) {
            Some(true) => {}
            Some(false) => return Err(dangling(from, to)),
            None => elsewhere.push((key.clone(), *from, to)),
        }
    }
    if elsewhere.is_empty() {
        return Ok(());
    }
    let keys: Vec<_> = elsewhere.iter().map(|(key, _, _)| key.clone()).collect();
    let found = desk.engine.heads.entries(desk, place.session, place.branch, head, &keys)?;
    for ((_, from, to), entry) in elsewhere.iter().zip(found) {
        if entry.is_none() {
            return Err(dangling(from, to));
        }
    }
    Ok(())
}

fn dangling(from: &Key, to: &Key) -> Error {
    Error::Dangling { from: from.to_string(), to: to.to_string() }
}

type SealedDelta = (Vec<RecordChange>, Vec<DeltaPart>, ObjectId);

fn seal_delta(
    delta: &[EncodedChange],
    salt: &mut dyn FnMut() -> Result<[u8; 16]>,
) -> Result<SealedDelta> {
    let mut blobs = Vec::new();
    let mut side = |entry: Option<&EntryBytes>| match entry {
        None => DeltaSide::Absent,
        Some(entry) if entry.len() <= MAX_INLINE_ENTRY_BYTES => {
            DeltaSide::Inline(Arc::clone(entry))
        }
        Some(entry) => {
            let (id, object) = blob(entry);
            blobs.push(object);
            DeltaSide::Blob(id)
        }
    };
    let changes = delta.iter().map(|(key, old, new)| DeltaChange {
        key: key.as_slice(),
        old: side(old.as_ref()),
        new: side(new.as_ref().map(|new| &new.entry)),
    });
    let (ids, parts) = seal_pieces(changes, salt)?;
    Ok((blobs, parts, list_id(&ids)))
}

/// Seals changes in key order as delta parts of limited size. Returns their ids and the parts.
pub(crate) fn seal_pieces<K: AsRef<[u8]>>(
    changes: impl Iterator<Item = DeltaChange<K>>,
    salt: &mut dyn FnMut() -> Result<[u8; 16]>,
) -> Result<(Vec<ObjectId>, Vec<DeltaPart>)> {
    let mut pieces = vec![(Delta { changes: Vec::new() }, 0)];
    for change in changes {
        let bytes = change.bytes();
        let (piece, size) = pieces.last_mut().expect("never empty");
        if *size > 0 && *size + bytes > PIECE_BYTES {
            pieces.push((Delta { changes: vec![change] }, bytes));
        } else {
            piece.changes.push(change);
            *size += bytes;
        }
    }
    let mut ids = Vec::with_capacity(pieces.len());
    let mut parts = Vec::with_capacity(pieces.len());
    let alone = pieces.len() == 1;
    for (piece, _) in pieces {
        let content = piece.encode(salt()?);
        // Compressing a small delta takes longer than the rest of a commit, so that is left to the
        // applier.
        let (id, sealed) = if alone && content.len() <= MAX_RAW_BYTES {
            seal_raw(ObjectKind::Delta, &content)
        } else {
            seal(ObjectKind::Delta, &content)
        };
        ids.push(id);
        parts.push(DeltaPart::Inline(RecordBytes(sealed)));
    }
    Ok((ids, parts))
}

/// Returns the hash in the header that stands for a list of delta parts.
pub(crate) fn list_id(parts: &[ObjectId]) -> ObjectId {
    if let [only] = parts {
        return *only;
    }
    let mut hasher = blake3::Hasher::new();
    parts.iter().for_each(|id| {
        hasher.update(id.as_bytes());
    });
    ObjectId::from_bytes(*hasher.finalize().as_bytes())
}

/// Plans a revision with exactly these claims: those that could be saved on a branch whose head
/// cannot be computed.
pub(crate) fn plan_saved(
    refs: &StoreRefs,
    place: CommitTarget<'_>,
    claims: Vec<(Vec<u8>, EntryBytes)>,
    salt: [u8; 16],
) -> Result<PlannedRevision> {
    let head = session(refs, place.session)?.branch(place.branch)?.head;
    plan_on(
        refs,
        place,
        head.as_ref(),
        (StateDigest::EMPTY, 0),
        claims,
        Some(ResetSource::Empty),
        salt,
    )
}

/// Plans a revision that adds new claims. All random values are derived from `salt`, so planning
/// again on the same head gives the same revision.
pub(crate) fn plan_additions(
    refs: &StoreRefs,
    place: CommitTarget<'_>,
    additions: Vec<(Vec<u8>, EntryBytes)>,
    salt: [u8; 16],
) -> Result<PlannedRevision> {
    let head = session(refs, place.session)?.branch(place.branch)?.head;
    let start = head.map_or((StateDigest::EMPTY, 0), |head| (head.digest, head.count));
    plan_on(refs, place, head.as_ref(), start, additions, None, salt)
}

fn plan_on(
    refs: &StoreRefs,
    place: CommitTarget<'_>,
    head: Option<&BranchHead>,
    (mut digest, count): (StateDigest, u64),
    mut additions: Vec<(Vec<u8>, EntryBytes)>,
    reset: Option<ResetSource>,
    salt: [u8; 16],
) -> Result<PlannedRevision> {
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
    let (blobs, parts, delta) = seal_delta(&entries, &mut salts)?;
    let head_id = head.map(|head| head.id);
    let sealed =
        PreparedDelta { head: head_id, purges: 0, blobs, parts, delta, digest, count, entries };
    finish(refs, place, head, &sealed, reset, &[], salt)
}

fn finish(
    refs: &StoreRefs,
    place: CommitTarget<'_>,
    head: Option<&BranchHead>,
    sealed: &PreparedDelta,
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
        delta: sealed.delta,
        digest: sealed.digest,
        count: sealed.count,
    };
    let encoded = header.encode();
    let new_head = BranchHead {
        sequence: header.sequence,
        id: RevisionHeader::id_of(&encoded),
        effective: effective(head, place.time),
        digest: sealed.digest,
        count: sealed.count,
    };
    let mut changes = sealed.blobs.clone();
    changes.push(RecordChange::Revision {
        session: place.session,
        header: RecordBytes(encoded),
        body: RecordBytes(body),
        delta: sealed.parts.clone(),
    });
    Ok(PlannedRevision {
        changes,
        head: new_head,
        parent: head.map(|head| head.id),
        entries: Arc::clone(&sealed.entries),
    })
}

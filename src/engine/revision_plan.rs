//! Plans revisions: turns changes of claims into a delta, a header and an id.

use super::delta_parts::encode_delta;
use super::encoded_change::{DigestedEntry, EncodedChange};
use super::lineage::RevisionRef;
use super::lookup;
use super::plan_context::PlanContext;
use super::planned_revision::{CommitTarget, PlannedRevision, PreparedDelta, empty_delta, finish};
use super::random::random;
use super::refs::{StoreRefs, session};
use super::scanned_object::ObjectSource;
use crate::error::{Error, Result};
use crate::format::{
    BranchHead, EntryBytes, ParentRevision, ResetSource, added_at, encode_key, encode_value,
    entry_hash, has_value,
};
use crate::model::claim;
use crate::model::{EntryChange, Key, SessionNumber, StateDigest, Timestamp, Value};
use std::borrow::Borrow;
use std::collections::BTreeMap;

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
    /// because an event stream states it.
    pub added_at: Option<Timestamp>,
    /// The stored entry, if a purged entry is restored: its hash in digests is that of the value
    /// before the purge, which cannot be computed from the value after it.
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

/// Plans a revision with changes of claims on a branch; `None` if nothing changes. `memo` keeps the
/// prepared delta: it need not be made again if the revision is planned again under the lock.
pub(crate) fn plan(
    context: &PlanContext<'_>,
    place: CommitTarget<'_>,
    changes: &[impl Borrow<ClaimChange>],
    memo: &mut Option<PreparedDelta>,
) -> Result<Option<PlannedRevision>> {
    let head = session(&context.refs, place.session)?.branch(place.branch)?.head;
    let now = (head.map(|head| head.id), context.refs.purges);
    if memo.as_ref().is_none_or(|memo| (memo.head, memo.purges) != now) {
        *memo = prepare_delta(context, place, head.as_ref(), changes)?;
    }
    let Some(prepared) = memo else { return Ok(None) };
    let planned = finish(&context.refs, place, head.as_ref(), prepared, None, &[], random()?)?;
    Ok(Some(planned))
}

/// Plans a revision that has the claims of another revision, or none. `merged` has that revision in
/// a fast-forward merge, and is empty otherwise.
pub(crate) fn plan_reset(
    context: &PlanContext<'_>,
    place: CommitTarget<'_>,
    reset: ResetSource,
    (digest, count): (StateDigest, u64),
    merged: &[ParentRevision],
) -> Result<PlannedRevision> {
    let head = session(&context.refs, place.session)?.branch(place.branch)?.head;
    let prepared = empty_delta(head.as_ref(), digest, count);
    // The first parent is the head of the branch. Without a head, the revision has no parents, even
    // in a merge.
    let merged = if head.is_some() { merged } else { &[] };
    finish(&context.refs, place, head.as_ref(), &prepared, Some(reset), merged, random()?)
}

/// Plans a revision that is written even if no claim changes: a merge, or a copy of a revision of
/// another session.
pub(crate) fn plan_always(
    context: &PlanContext<'_>,
    place: CommitTarget<'_>,
    changes: &[ClaimChange],
    merged: Option<ParentRevision>,
) -> Result<PlannedRevision> {
    let head = session(&context.refs, place.session)?.branch(place.branch)?.head;
    let prepared = prepare_delta(context, place, head.as_ref(), changes)?.unwrap_or_else(|| {
        let (digest, count) =
            head.map_or((StateDigest::EMPTY, 0), |head| (head.digest, head.count));
        empty_delta(head.as_ref(), digest, count)
    });
    finish(&context.refs, place, head.as_ref(), &prepared, None, merged.as_slice(), random()?)
}

fn prepare_delta(
    context: &PlanContext<'_>,
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
    let olds = context.head_entries(place.session, place.branch, head, &keys)?;
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
    check_references(context, place, head, &wanted, &entries)?;
    let (blobs, parts, delta) = encode_delta(&entries, &mut random)?;
    let entries = entries.into();
    let (head, purges) = (head.map(|head| head.id), context.refs.purges);
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
    let is_equal = |entry: &&[u8]| {
        has_value(entry, value) && self::added_at(entry).is_ok_and(|time| time == added_at)
    };
    match old.into_iter().chain(change.stored.as_deref()).find(is_equal) {
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
        // The stored bytes matter only after a purge.
        Some(at) if refs.purges > 0 && change.new.is_some() => {
            lookup::entry(view, refs, number, at, &encode_key(&change.key))?
        }
        _ => None,
    };
    let added_at = change.new.as_ref().map(|entry| entry.added_at);
    let value = change.new.map(|entry| entry.value);
    Ok(ClaimChange { key: change.key, value, expect: ClaimPrecondition::Any, added_at, stored })
}

/// Checks that the changed claims refer only to claims that exist at the end of the revision.
fn check_references(
    context: &PlanContext<'_>,
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
    let found = context.head_entries(place.session, place.branch, head, &keys)?;
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

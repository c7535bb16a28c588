//! Compares a full set of claims with the claims at a branch's head. Encoded values are compared
//! directly, so nothing is decoded or encoded unless it differs.

use super::validate::check_claim;
use super::write::HeadClaims;
use crate::engine::parallel;
use crate::engine::revision_plan::ClaimChange;
use crate::engine::state::RevisionState;
use crate::error::{Error, Result};
use crate::format::{decode_key, has_value};
use crate::model::{Key, Kind, Value};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Below this many claims one thread is faster than two.
const PARALLEL_CLAIMS: usize = 1000;
/// Shards per core: several, so that a thread that starts late does not delay the others.
const SHARDS_PER_CORE: usize = 4;

/// Sorts the claims by key, which is the order of stored claims. Of several with the same key, the
/// last one is kept.
fn sorted(claims: &[(Key, Value)]) -> Vec<&(Key, Value)> {
    let mut all: Vec<_> = claims.iter().collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            *first = *later;
        }
        same
    });
    all
}

/// Compares a key with an encoded one.
fn compare(key: &Key, stored: &[u8]) -> Ordering {
    let (kind, id) = stored.split_first().map_or((0, &[][..]), |(kind, id)| (*kind, id));
    key.kind.code().cmp(&kind).then_with(|| key.id.as_bytes().cmp(id))
}

/// The changes that a snapshot makes: claims with a new value, and the keys of removed claims.
#[derive(Default)]
struct SnapshotDiff<'a> {
    differing: Vec<&'a (Key, Value)>,
    removed: Vec<&'a [u8]>,
}

/// The claims at the head, and the earlier changes of the same write.
#[derive(Clone, Copy)]
struct HeldClaims<'a> {
    state: &'a RevisionState,
    changed: &'a BTreeMap<Key, Option<Value>>,
}

/// A shard of the given claims, and the ranges of the claims at the head whose keys belong to it.
struct SnapshotShard<'a, T> {
    /// The last claim of the shard before.
    before: Option<&'a T>,
    wanted: &'a [T],
    held: Vec<Range<usize>>,
}

impl<'a, T: Borrow<(Key, Value)>> SnapshotShard<'a, T> {
    /// Splits all claims into shards, in key order.
    fn all(
        state: &RevisionState,
        kinds: &BTreeSet<Kind>,
        wanted: &'a [T],
        count: usize,
    ) -> Vec<Self> {
        let size = wanted.len().div_ceil(count).max(1);
        let mut left: Vec<_> = kinds.iter().map(|kind| state.kind_range(*kind)).collect();
        let mut shares = Vec::with_capacity(count);
        let (mut before, mut rest) = (None, wanted);
        while let Some(next) = rest.get(size) {
            let (wanted, after) = rest.split_at(size);
            let to = &next.borrow().0;
            let held = left.iter_mut().map(|places| {
                let from = places.start;
                places.start = state.first_of(places, |key| compare(to, key).is_gt());
                from..places.start
            });
            shares.push(Self { before, wanted, held: held.collect() });
            (before, rest) = (wanted.last(), after);
        }
        shares.push(Self { before, wanted: rest, held: left });
        shares
    }

    /// Returns the changes of this shard; `None` if its claims are not sorted by key without
    /// duplicates.
    fn found(&self, held: HeldClaims<'a>) -> Option<SnapshotDiff<'a>> {
        let mut found = SnapshotDiff::default();
        let mut last = self.before.map(|claim| &claim.borrow().0);
        let mut take = |claim: &'a (Key, Value), entry: Option<&[u8]>| {
            if last.replace(&claim.0).is_some_and(|last| *last >= claim.0) {
                return None;
            }
            // A claim that this write has already changed does not have the value at the head.
            let entry = entry.filter(|_| !held.changed.contains_key(&claim.0));
            if entry.is_none_or(|entry| !has_value(entry, &claim.1)) {
                found.differing.push(claim);
            }
            Some(())
        };
        let mut next = self.wanted.iter().map(Borrow::borrow).peekable();
        let places = self.held.iter().cloned();
        for (key, entry) in places.flat_map(|places| held.state.encoded_at(places)) {
            while let Some(new) = next.next_if(|claim| compare(&claim.0, key).is_lt()) {
                take(new, None)?;
            }
            match next.next_if(|claim| compare(&claim.0, key).is_eq()) {
                Some(claim) => take(claim, Some(entry))?,
                None => found.removed.push(key),
            }
        }
        next.try_for_each(|claim| take(claim, None))?;
        Some(found)
    }
}

/// Compares claims with those at the head; `None` if they are not sorted by key without duplicates.
/// Each claim is visited once, since most of them are not in the CPU cache.
fn compare_shards<'a, T: Borrow<(Key, Value)> + Sync>(
    held: HeldClaims<'a>,
    kinds: &BTreeSet<Kind>,
    wanted: &'a [T],
    shares: usize,
) -> Option<Vec<SnapshotDiff<'a>>> {
    let shares = SnapshotShard::all(held.state, kinds, wanted, shares);
    parallel::map_while(&shares, usize::MAX, |share| share.found(held), || ())
        .0
        .into_iter()
        .collect()
}

/// Returns the changes that make the claims of these kinds equal to the given ones.
pub(super) fn snapshot_changes(
    held: &HeadClaims,
    kinds: &BTreeSet<Kind>,
    claims: &[(Key, Value)],
) -> Result<Vec<ClaimChange>> {
    let wanted: Vec<&(Key, Value)>;
    let beside = HeldClaims { state: held.state(), changed: held.changed() };
    // The claims are usually sorted already.
    let shares =
        if claims.len() < PARALLEL_CLAIMS { 1 } else { SHARDS_PER_CORE * parallel::cores() };
    let found = match compare_shards(beside, kinds, claims, shares) {
        Some(found) => found,
        None => {
            wanted = sorted(claims);
            compare_shards(beside, kinds, &wanted, shares)
                .ok_or_else(|| Error::Internal("sorted claims do not ascend".to_owned()))?
        }
    };
    let mut changes = Vec::new();
    for (key, value) in found.iter().flat_map(|found| &found.differing) {
        let mut change = ClaimChange::put(key.clone(), value.clone());
        check_claim(&mut change)?;
        changes.push(change);
    }
    let removed = found.iter().flat_map(|found| &found.removed);
    let decoded = removed.map(|key| decode_key(key).map_err(Error::corrupt("a state")));
    let mut removed = decoded.collect::<Result<Vec<Key>>>()?;
    if !held.changed().is_empty() {
        let given: BTreeSet<&Key> = claims.iter().map(|(key, _)| key).collect();
        let added = held.changed().iter().filter(|(key, value)| {
            value.is_some() && kinds.contains(&key.kind) && !given.contains(key)
        });
        removed.extend(added.map(|(key, _)| key.clone()));
    }
    changes.extend(removed.into_iter().map(ClaimChange::remove));
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::state::{BufferRange, StateBuilder};
    use crate::format::{encode_entry, encode_key};
    use crate::model::{ClaimEntry, Timestamp};
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use proptest::sample::select;
    use std::sync::Arc;

    fn key((kind, id): (Kind, u8)) -> Key {
        Key::new(kind, format!("{id}"))
    }

    fn state(claims: &BTreeMap<Key, i64>) -> RevisionState {
        let mut builder = StateBuilder::default();
        for (key, number) in claims {
            let entry = ClaimEntry { added_at: Timestamp::default(), value: (*number).into() };
            let (key, entry) = (encode_key(key), encode_entry(&entry));
            let (end, all) = (key.len() as u32, (key.len() + entry.len()) as u32);
            let buffer = builder.buffer(Arc::new([&key[..], &entry[..]].concat()));
            builder
                .push(BufferRange::new(buffer, &(0..end)), BufferRange::new(buffer, &(end..all)));
        }
        builder.finish()
    }

    proptest! {
        #[test]
        fn a_snapshot_in_any_order_gives_the_same_changes_as_a_map(
            held in btree_map((select(Kind::ALL), 0_u8..20).prop_map(key), 0_i64..3, 0..40),
            changed in btree_map((select(Kind::ALL), 0_u8..20).prop_map(key), prop::option::of(0_i64..3), 0..3),
            claims in vec(((select(Kind::ALL), 0_u8..20).prop_map(key), 0_i64..3), 0..40),
            is_sorted: bool,
            shares in 1_usize..7,
        ) {
            let mut claims: Vec<(Key, Value)> = claims.into_iter().map(|(key, number)| (key, number.into())).collect();
            if is_sorted {
                claims.sort_by(|a, b| a.0.cmp(&b.0));
            }
            let kinds: BTreeSet<Kind> = claims.iter().map(|(key, _)| key.kind).take(5).collect();
            claims.retain(|(key, _)| kinds.contains(&key.kind));
            let state = state(&held);
            let changed: BTreeMap<Key, Option<Value>> =
                changed.into_iter().map(|(key, number)| (key, number.map(Value::from))).collect();
            let beside = HeldClaims { state: &state, changed: &changed };
            let wanted: BTreeMap<&Key, &Value> = claims.iter().map(|(key, value)| (key, value)).collect();
            let ascend = claims.windows(2).all(|pair| pair[0].0 < pair[1].0);
            prop_assert_eq!(compare_shards(beside, &kinds, &claims, shares).is_some(), ascend);
            let in_order = sorted(&claims);
            let found = compare_shards(beside, &kinds, &in_order, shares).unwrap();
            let differing: Vec<_> =
                found.iter().flat_map(|found| &found.differing).map(|(key, value)| (key, value)).collect();
            let removed: Vec<Key> =
                found.iter().flat_map(|found| &found.removed).map(|key| decode_key(key).unwrap()).collect();
            let is_held = |key: &Key, value: &Value| {
                !changed.contains_key(key) && held.get(key).is_some_and(|number| Value::from(*number) == *value)
            };
            let other: Vec<_> =
                wanted.iter().filter(|(key, value)| !is_held(key, value)).map(|(key, value)| (*key, *value)).collect();
            prop_assert_eq!(differing, other);
            let missing: Vec<Key> =
                held.keys().filter(|key| kinds.contains(&key.kind) && !wanted.contains_key(key)).cloned().collect();
            prop_assert_eq!(removed, missing);
        }
    }
}

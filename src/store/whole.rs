//! A whole snapshot beside the claims that are held: what of it changed. Values are compared with what stands there, so
//! that nothing is decoded and nothing encoded, and only what differs is looked at more closely.

use super::write::{HeadClaims, check_claim};
use crate::engine::cores;
use crate::engine::revise::ClaimChange;
use crate::error::{Error, Result};
use crate::format::{decode_key, has_value};
use crate::model::{Key, Kind, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Below this many claims one thread is faster than two.
const PARALLEL_CLAIMS: usize = 1000;

/// The claims in the order of their keys, which is that of what is stored; of two with one key the later one.
fn sorted(claims: &[(Key, Value)]) -> Vec<&(Key, Value)> {
    let mut all: Vec<_> = claims.iter().collect();
    // Where they come sorted, as they mostly do, nothing is moved.
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

/// How the key of a claim compares with a stored one.
fn compare(key: &Key, stored: &[u8]) -> Ordering {
    let (kind, id) = stored.split_first().map_or((0, &[][..]), |(kind, id)| (*kind, id));
    key.kind.code().cmp(&kind).then_with(|| key.id.as_bytes().cmp(id))
}

/// A claim handed in, beside the entry that is held of it.
type Pair<'a> = (&'a (Key, Value), Option<&'a [u8]>);

/// Those of these claims whose entries hold something else.
fn differing<'a>(pairs: &[Pair<'a>]) -> impl Iterator<Item = &'a (Key, Value)> {
    let same = cores::map(pairs, PARALLEL_CLAIMS, |(claim, entry)| {
        entry.is_some_and(|entry| has_value(entry, &claim.1))
    });
    pairs.iter().zip(same).filter(|(_, same)| !same).map(|((claim, _), _)| *claim)
}

/// The changes that make the claims of these kinds be these.
pub(super) fn changes(
    held: &HeadClaims,
    kinds: &BTreeSet<Kind>,
    claims: &[(Key, Value)],
) -> Result<Vec<ClaimChange>> {
    let wanted = sorted(claims);
    let mut pairs: Vec<Pair<'_>> = Vec::with_capacity(wanted.len());
    let mut gone = Vec::new();
    let mut next = wanted.iter().copied().peekable();
    for kind in kinds {
        for (key, entry) in held.state().encoded_of(*kind) {
            while let Some(new) = next.next_if(|claim| compare(&claim.0, key).is_lt()) {
                pairs.push((new, None));
            }
            match next.next_if(|claim| compare(&claim.0, key).is_eq()) {
                // What this write has changed already is not what is held.
                Some(claim) if held.changed().contains_key(&claim.0) => pairs.push((claim, None)),
                Some(claim) => pairs.push((claim, Some(entry))),
                None => gone.push(key),
            }
        }
    }
    pairs.extend(next.map(|claim| (claim, None)));
    let mut changes = Vec::new();
    for (key, value) in differing(&pairs) {
        let mut change = ClaimChange::put(key.clone(), value.clone());
        check_claim(&mut change)?;
        changes.push(change);
    }
    let decoded = gone.into_iter().map(|key| decode_key(key).map_err(Error::corrupt("a state")));
    let mut gone = decoded.collect::<Result<Vec<Key>>>()?;
    let added = held.changed().iter().filter(|(key, value)| {
        let kept = || wanted.binary_search_by(|claim| claim.0.cmp(key)).is_ok();
        value.is_some() && kinds.contains(&key.kind) && !kept()
    });
    gone.extend(added.map(|(key, _)| key.clone()));
    changes.extend(gone.into_iter().map(ClaimChange::remove));
    Ok(changes)
}

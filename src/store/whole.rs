//! A whole snapshot beside the claims that are held: what of it changed. Values are compared as they would be stored, so
//! that nothing is decoded, and only what differs is looked at more closely.

use super::write::{HeadClaims, check_claim};
use crate::engine::materialize::workers;
use crate::engine::revise::ClaimChange;
use crate::error::{Error, Result};
use crate::format::{EntryBytes, decode_key, encode_key, encode_value, value_bytes};
use crate::model::{Key, Kind, Timestamp, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// One claim of a snapshot as it would be stored.
struct Encoded<'a> {
    key: Vec<u8>,
    entry: EntryBytes,
    claim: &'a (Key, Value),
}

/// Below this many claims one thread is faster than two.
const PARALLEL_CLAIMS: usize = 1000;

/// The claims in the order of their keys; of two with one key the later one.
fn encoded(claims: &[(Key, Value)]) -> Vec<Encoded<'_>> {
    let mut all: Vec<Encoded<'_>> = if claims.len() < PARALLEL_CLAIMS || workers() == 1 {
        claims.iter().map(one).collect()
    } else {
        std::thread::scope(|scope| {
            let parts = claims.chunks(claims.len().div_ceil(workers()));
            let workers: Vec<_> =
                parts.map(|part| scope.spawn(move || part.iter().map(one).collect())).collect();
            let joined = workers.into_iter().map(|worker| -> Vec<Encoded<'_>> {
                worker.join().expect("a worker only encodes")
            });
            joined.flatten().collect()
        })
    };
    all.reverse();
    all.sort_by(|a, b| a.key.cmp(&b.key));
    all.dedup_by(|a, b| a.key == b.key);
    all
}

fn one(claim: &(Key, Value)) -> Encoded<'_> {
    Encoded {
        key: encode_key(&claim.0),
        entry: encode_value(Timestamp::default(), &claim.1),
        claim,
    }
}

/// The changes that make the claims of these kinds be these.
pub(super) fn changes(
    held: &HeadClaims,
    kinds: &BTreeSet<Kind>,
    claims: &[(Key, Value)],
) -> Result<Vec<ClaimChange>> {
    let mut wanted = encoded(claims).into_iter().peekable();
    let mut changes = Vec::new();
    let mut put = |claim: &(Key, Value)| -> Result<()> {
        let mut change = ClaimChange::put(claim.0.clone(), claim.1.clone());
        check_claim(&mut change)?;
        changes.push(change);
        Ok(())
    };
    let mut gone = Vec::new();
    for kind in kinds {
        for (key, entry) in held.state().encoded_of(*kind) {
            loop {
                let order =
                    wanted.peek().map_or(Ordering::Greater, |next| next.key.as_slice().cmp(key));
                if order.is_gt() {
                    gone.push(key.to_vec());
                    break;
                }
                let Some(next) = wanted.next() else { break };
                let same = order.is_eq()
                    && value_bytes(&next.entry) == value_bytes(entry)
                    && !held.changed().contains_key(&next.claim.0);
                if !same {
                    put(next.claim)?;
                }
                if order.is_eq() {
                    break;
                }
            }
        }
    }
    wanted.try_for_each(|next| put(next.claim))?;
    let decoded = gone.iter().map(|key| decode_key(key).map_err(Error::corrupt("a state")));
    let mut gone = decoded.collect::<Result<Vec<Key>>>()?;
    let kept: BTreeSet<&Key> =
        claims.iter().map(|(key, _)| key).filter(|key| held.changed().contains_key(key)).collect();
    let added = held
        .changed()
        .iter()
        .filter(|(key, value)| value.is_some() && kinds.contains(&key.kind) && !kept.contains(key));
    gone.extend(added.map(|(key, _)| key.clone()));
    changes.extend(gone.into_iter().map(ClaimChange::remove));
    Ok(changes)
}

//! A cache of the entries at branch heads, so that a write need not look up the entries that it
//! replaces.

use super::delta_parts::is_delta_lost;
use super::encoded_change::{DigestedEntry, EncodedChange};
use super::lineage::{self, RevisionRef};
use super::plan_context::PlanContext;
use super::refs::{head_branch, session as session_refs};
use super::sharded_map::ShardedMap;
use super::state::RevisionState;
use super::{lookup, materialize};
use crate::backend::{LogPosition, locked};
use crate::error::{Error, Result};
use crate::format::{
    BranchHead, Delta, DeltaPart, DeltaSide, EntryBytes, ObjectKind, RecordChange, decode_object,
};
use crate::model::{BranchNumber, RevisionId, SessionNumber};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

/// A head with more claims than this is not read completely, but claim by claim.
const MAX_WHOLE_COUNT: u64 = 100_000;
/// Size limit in bytes for all heads together. The head in use is kept even if it alone is larger.
const MAX_BYTES: usize = 32 << 20;
/// Size limit in bytes for the last completely read state.
const MAX_WHOLE_BYTES: usize = 64 << 20;
/// Memory in bytes per cached entry, in addition to the key and the entry.
const ENTRY_BYTES: usize = 200;
/// Memory in bytes per cached head, in addition to its entries.
const HEAD_BYTES: usize = 512;
/// If there are more pending changes than this, it is faster to read the state again than to update
/// it.
const MAX_PENDING: usize = 4096;
/// If a branch was used more often than this, its head is read completely.
const WHOLE_AFTER_USES: u32 = 2;

/// The cached entries of one branch.
#[derive(Default)]
struct CachedHead {
    /// The revision to which the entries belong.
    head: Option<RevisionId>,
    /// The changes of the records before this position are included.
    position: LogPosition,
    /// The entries by key; `None` for a key that is not in the state.
    entries: ShardedMap<Option<DigestedEntry>>,
    /// Size of the entries in bytes.
    bytes: usize,
    /// Whether `entries` is complete: a key that is not in it is not in the state.
    whole: bool,
    /// Whether the complete head was larger than a head may be in the cache. Then it is not read
    /// completely again.
    too_large: bool,
    /// Number of uses.
    uses: u32,
    /// Value of [`CachedHeads::clock`] at the last use, for eviction.
    used_at: u64,
}

/// The last completely read state of a branch head, with the later changes by this process.
struct CachedHeadState {
    of: (SessionNumber, BranchNumber),
    head: RevisionId,
    state: Arc<RevisionState>,
    /// Changes that are not in `state` yet.
    pending: Vec<Arc<[EncodedChange]>>,
    /// Number of pending changes.
    changes: usize,
    /// Size in bytes of the state and of all changes so far. An updated state still holds the
    /// buffers of the old entries.
    bytes: usize,
}

impl CachedHeadState {
    /// Adds pending changes. Returns whether the state is still within the limits.
    fn follow(&mut self, to: RevisionId, changes: &Arc<[EncodedChange]>) -> bool {
        let taken = |(key, _, new): &EncodedChange| {
            key.len() + ENTRY_BYTES + new.as_ref().map_or(0, |new| new.entry.len())
        };
        self.head = to;
        self.pending.push(Arc::clone(changes));
        self.changes += changes.len();
        self.bytes += changes.iter().map(taken).sum::<usize>();
        self.changes <= MAX_PENDING && self.bytes <= MAX_WHOLE_BYTES
    }

    /// Applies the pending changes and returns the state.
    fn state(&mut self) -> Arc<RevisionState> {
        if !self.pending.is_empty() {
            let pending = std::mem::take(&mut self.pending);
            self.changes = 0;
            let triples = pending.iter().flat_map(|triples| triples.iter());
            let new =
                |entry: &'_ Option<DigestedEntry>| entry.as_ref().map(|new| new.entry.clone());
            // For each key the last change counts.
            let changes: BTreeMap<&[u8], Option<EntryBytes>> =
                triples.map(|(key, _, entry)| (key.as_slice(), new(entry))).collect();
            let changes = changes.iter().map(|(key, entry)| (*key, entry.as_deref()));
            Arc::make_mut(&mut self.state).change(changes);
        }
        Arc::clone(&self.state)
    }
}

/// The cache: the heads of the branches used last, and one complete state.
pub(crate) struct HeadCache {
    heads: Mutex<CachedHeads>,
    /// Size limit in bytes for one head.
    head_bytes: usize,
}

#[derive(Default)]
struct CachedHeads {
    branches: HashMap<(SessionNumber, BranchNumber), CachedHead>,
    /// Size of all heads in bytes, with [`HEAD_BYTES`] for each.
    bytes: usize,
    /// Number of uses of all heads.
    clock: u64,
    /// The last completely read state.
    full_state: Option<CachedHeadState>,
    /// Number of purges so far.
    purges: u64,
}

impl CachedHeads {
    /// Clears the cache after a purge, which changes the content of heads but not their ids.
    fn forget_purged(&mut self, purges: u64) {
        if self.purges != purges {
            *self = Self { purges, ..Self::default() };
        }
    }

    /// Runs a function on the cached head of a branch. If all heads are too large after that,
    /// evicts the least recently used ones.
    fn with<T>(
        &mut self,
        of: (SessionNumber, BranchNumber),
        work: impl FnOnce(&mut CachedHead) -> T,
    ) -> T {
        self.clock += 1;
        let known = self.branches.entry(of).or_insert_with(|| {
            self.bytes += HEAD_BYTES;
            CachedHead::default()
        });
        known.used_at = self.clock;
        let before = known.bytes;
        let done = work(known);
        self.bytes = (self.bytes + known.bytes).saturating_sub(before);
        if self.bytes > MAX_BYTES {
            self.evict(of);
        }
        done
    }

    /// Evicts the least recently used heads except `kept`, until an eighth of the limit is free.
    /// This way not every new head causes an eviction, which sorts all heads.
    fn evict(&mut self, kept: (SessionNumber, BranchNumber)) {
        let others = self.branches.iter().filter(|(of, _)| **of != kept);
        let mut oldest: Vec<_> = others.map(|(of, known)| (known.used_at, *of)).collect();
        oldest.sort_unstable();
        for (_, of) in oldest {
            if self.bytes <= MAX_BYTES - MAX_BYTES / 8 {
                break;
            }
            self.bytes -= self.branches.remove(&of).map_or(0, |known| known.bytes + HEAD_BYTES);
        }
    }
}

impl HeadCache {
    /// Creates a cache that holds at most `head_bytes` bytes of one head.
    pub(crate) fn new(head_bytes: usize) -> Self {
        Self { heads: Mutex::default(), head_bytes }
    }

    fn lock(&self, purges: u64) -> MutexGuard<'_, CachedHeads> {
        let mut heads = locked(&self.heads);
        heads.forget_purged(purges);
        heads
    }

    /// Returns the entries of these keys at a branch's head.
    pub(crate) fn entries(
        &self,
        context: &PlanContext<'_>,
        of: (SessionNumber, BranchNumber),
        head: Option<&BranchHead>,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<DigestedEntry>>> {
        let Some(head) = head else { return Ok(vec![None; keys.len()]) };
        self.lock(context.refs.purges)
            .with(of, |known| known.entries_at(context, of, head, keys, self.head_bytes))
    }

    /// Returns the claims at a branch's head. The last state is cached and updated by the writes of
    /// this process, so that a program that records one snapshot after another reads it only once.
    pub(crate) fn state(
        &self,
        context: &PlanContext<'_>,
        of: (SessionNumber, BranchNumber),
    ) -> Result<Arc<RevisionState>> {
        let Some(head) = session_refs(&context.refs, of.0)?.branch(of.1)?.head else {
            return Ok(Arc::default());
        };
        let mut heads = self.lock(context.refs.purges);
        if let Some(whole) =
            heads.full_state.as_mut().filter(|whole| (whole.of, whole.head) == (of, head.id))
        {
            return Ok(whole.state());
        }
        let at = at(context, of, &head)?;
        let state = Arc::new(materialize::materialize(&context.view()?, &context.refs, of.0, at)?);
        let bytes = state.bytes();
        heads.full_state = (bytes <= MAX_WHOLE_BYTES).then(|| CachedHeadState {
            of,
            head: head.id,
            state: Arc::clone(&state),
            pending: Vec::new(),
            changes: 0,
            bytes,
        });
        Ok(state)
    }

    /// Updates the cache after this process has committed the revision `to` on the branch.
    pub(crate) fn moved(
        &self,
        position: LogPosition,
        of: (SessionNumber, BranchNumber),
        from: Option<RevisionId>,
        to: RevisionId,
        changes: &Arc<[EncodedChange]>,
    ) {
        let mut heads = locked(&self.heads);
        if let Some(whole) = &mut heads.full_state
            && (whole.of, Some(whole.head)) == (of, from)
            && !whole.follow(to, changes)
        {
            heads.full_state = None;
        }
        heads.with(of, |known| known.moved(position, from, to, changes, self.head_bytes));
    }
}

impl CachedHead {
    /// Implements [`HeadCache::entries`] for one branch.
    fn entries_at(
        &mut self,
        context: &PlanContext<'_>,
        (session, branch): (SessionNumber, BranchNumber),
        head: &BranchHead,
        keys: &[Vec<u8>],
        most: usize,
    ) -> Result<Vec<Option<DigestedEntry>>> {
        if self.head != Some(head.id) {
            self.follow(context, session, branch, most)?;
        }
        if self.head != Some(head.id) {
            let Self { uses, too_large, used_at, .. } = *self;
            *self = Self { head: Some(head.id), uses, too_large, used_at, ..Self::default() };
        }
        self.position = context.follower.end();
        self.uses = self.uses.saturating_add(1);
        if self.whole || keys.iter().all(|key| self.entries.contains_key(key)) {
            return Ok(self.found(keys));
        }
        let view = context.view()?;
        let at = at(context, (session, branch), head)?;
        let worth_it = self.uses > WHOLE_AFTER_USES && head.count <= MAX_WHOLE_COUNT;
        if worth_it && !self.too_large {
            let state = materialize::materialize(&view, &context.refs, session, at)?;
            self.clear();
            for (key, entry) in state.encoded() {
                self.remember(key, Some(EntryBytes::from(entry).into()));
            }
            self.whole = self.bytes <= most;
            if self.whole {
                return Ok(self.found(keys));
            }
            self.too_large = true;
            self.clear();
        }
        let ranges = lineage::state_ranges(&view, &context.refs, session, at)?;
        let unknown: Vec<_> = keys.iter().filter(|key| !self.entries.contains_key(key)).collect();
        let found = lookup::entries_in(&view, &context.refs, session, &ranges, &unknown)?;
        for (key, entry) in unknown.into_iter().zip(found) {
            self.remember(key, entry.map(DigestedEntry::from));
        }
        Ok(self.found(keys))
    }

    fn found(&self, keys: &[Vec<u8>]) -> Vec<Option<DigestedEntry>> {
        keys.iter().map(|key| self.entries.get(key).cloned().flatten()).collect()
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    /// Implements [`HeadCache::moved`] for one branch.
    fn moved(
        &mut self,
        position: LogPosition,
        from: Option<RevisionId>,
        to: RevisionId,
        changes: &[EncodedChange],
        most: usize,
    ) {
        if self.head != from {
            return;
        }
        self.head = Some(to);
        self.position = position;
        // Before the first revision the state is empty, so its changes are all entries.
        self.whole |= from.is_none();
        for (key, _, entry) in changes {
            self.remember(key, entry.clone());
        }
        self.limit(most);
    }

    /// Applies the revisions of other writers that are in the journal's tail. Stops at a revision
    /// whose changes are not in its record.
    fn follow(
        &mut self,
        context: &PlanContext<'_>,
        session: SessionNumber,
        branch: BranchNumber,
        most: usize,
    ) -> Result<()> {
        if self.head.is_none() {
            return Ok(());
        }
        let Some(records) = context.follower.records_since(self.position) else {
            return Ok(());
        };
        for change in records.iter().flat_map(|placed| &placed.record.changes) {
            let RecordChange::Revision { session: on, header, delta, .. } = change else {
                continue;
            };
            let header = lineage::header(&header.0)?;
            let follows = header.parents.first().map(|parent| parent.id) == self.head;
            if *on != session || header.branch != branch || !follows {
                continue;
            }
            // The delta of an imported revision may be missing because pruning elsewhere folded it
            // into a later revision.
            if is_delta_lost(&header, delta) {
                return Ok(());
            }
            let inline: Option<Vec<&[u8]>> = delta
                .iter()
                .map(|part| match part {
                    DeltaPart::Inline(encoded) => Some(encoded.0.as_slice()),
                    DeltaPart::Named(_) => None,
                })
                .collect();
            let Some(parts) = inline.filter(|_| header.reset.is_none()) else { return Ok(()) };
            for part in parts {
                let content =
                    decode_object(ObjectKind::Delta, part).map_err(Error::corrupt("a delta"))?;
                let delta = Delta::decode(&content).map_err(Error::corrupt("a delta"))?;
                self.take(delta, most);
            }
            self.head = Some(header.id());
        }
        Ok(())
    }

    /// Applies the changes of another writer.
    fn take(&mut self, delta: Delta, most: usize) {
        for change in delta.changes {
            match change.new {
                DeltaSide::Absent => self.remember(&change.key, None),
                DeltaSide::Inline(entry) => self.remember(&change.key, Some(entry.into())),
                // A large entry is read only when it is needed.
                DeltaSide::Blob(_) => {
                    self.forget(&change.key);
                    self.whole = false;
                }
            }
        }
        self.limit(most);
    }

    /// Clears the entries if they take more than `most` bytes. Then the head is not read completely
    /// again.
    fn limit(&mut self, most: usize) {
        if self.bytes > most {
            self.clear();
            (self.whole, self.too_large) = (false, true);
        }
    }

    fn remember(&mut self, key: &[u8], entry: Option<DigestedEntry>) {
        self.bytes += length_of(entry.as_ref());
        match self.entries.insert(key, entry) {
            Some(known) => self.bytes = self.bytes.saturating_sub(length_of(known.as_ref())),
            None => self.bytes += key.len() + ENTRY_BYTES,
        }
    }

    fn forget(&mut self, key: &[u8]) {
        if let Some(known) = self.entries.remove(key) {
            self.bytes =
                self.bytes.saturating_sub(key.len() + ENTRY_BYTES + length_of(known.as_ref()));
        }
    }
}

fn length_of(entry: Option<&DigestedEntry>) -> usize {
    entry.map_or(0, |known| known.entry.len())
}

/// Returns the revision at the head of a branch.
fn at(
    context: &PlanContext<'_>,
    (session, branch): (SessionNumber, BranchNumber),
    head: &BranchHead,
) -> Result<RevisionRef> {
    let branch = head_branch(&context.refs, session, branch, head.sequence)?;
    Ok(RevisionRef { branch, sequence: head.sequence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::DeltaChange;
    use crate::model::ObjectId;

    #[test]
    fn a_head_is_cached_until_it_exceeds_the_limit() {
        let change = |name: &str| -> EncodedChange {
            (name.as_bytes().to_vec(), None, Some(EntryBytes::from([7; 100].as_slice()).into()))
        };
        let ids = [1, 2].map(|byte| RevisionId::from_bytes([byte; 32]));
        let most = 2 * (1 + ENTRY_BYTES + 100);
        let mut known = CachedHead::default();
        known.moved(1, None, ids[0], &[change("a"), change("b")], most);
        assert!(known.whole && known.bytes == most && !known.too_large);
        let names = ["a", "b", "c"].map(|name| name.as_bytes().to_vec());
        let is_known = |known: &CachedHead| {
            known.found(&names).iter().map(Option::is_some).collect::<Vec<_>>()
        };
        assert_eq!(is_known(&known), [true, true, false]);
        // One byte above the limit.
        known.moved(2, Some(ids[0]), ids[1], &[change("c")], most);
        assert_eq!((known.whole, known.bytes, known.too_large), (false, 0, true));
        assert_eq!(is_known(&known), [false; 3]);
    }

    /// Only a write of this process applied the limit of one head, so the changes of other writers
    /// made it larger.
    #[test]
    fn a_cached_head_stays_within_its_limit_when_it_follows_other_writers() {
        let change = |name: &str, new| -> DeltaChange {
            DeltaChange { key: name.as_bytes().to_vec(), old: DeltaSide::Absent, new }
        };
        let small = || DeltaSide::Inline(EntryBytes::from([7; 100].as_slice()));
        let large = DeltaSide::Blob(ObjectId::from_bytes([9; 32]));
        let most = 2 * (1 + ENTRY_BYTES + 100);
        let mut known = CachedHead { whole: true, ..CachedHead::default() };
        known.take(Delta { changes: vec![change("a", small()), change("b", small())] }, most);
        assert_eq!((known.whole, known.bytes, known.too_large), (true, most, false));
        // A large entry takes the place of a small one, and is not in the cache.
        known.take(Delta { changes: vec![change("a", large), change("c", small())] }, most);
        assert_eq!((known.whole, known.bytes, known.too_large), (false, most, false));
        known.take(Delta { changes: vec![change("d", DeltaSide::Absent)] }, most);
        assert_eq!((known.bytes, known.too_large), (0, true));
        assert!(known.found(&[b"c".to_vec()]).iter().all(Option::is_none));
    }

    #[test]
    fn the_least_recently_used_heads_are_evicted_first() {
        let mut heads = CachedHeads::default();
        let take = |heads: &mut CachedHeads, session, bytes| {
            heads.with((session, 0), |known| known.bytes = bytes - HEAD_BYTES);
        };
        take(&mut heads, 1, MAX_BYTES / 2);
        take(&mut heads, 2, MAX_BYTES / 4);
        take(&mut heads, 1, MAX_BYTES / 2);
        take(&mut heads, 3, MAX_BYTES / 4);
        assert_eq!((heads.branches.len(), heads.bytes), (3, MAX_BYTES));
        take(&mut heads, 4, HEAD_BYTES);
        let mut left: Vec<_> = heads.branches.keys().map(|(session, _)| *session).collect();
        left.sort_unstable();
        assert_eq!((left, heads.bytes), (vec![1, 3, 4], MAX_BYTES / 4 * 3 + HEAD_BYTES));
        // The head in use stays, however large it is.
        take(&mut heads, 5, MAX_BYTES + 1);
        assert_eq!((heads.branches.len(), heads.bytes), (1, MAX_BYTES + 1));
        heads.forget_purged(0);
        assert_eq!(heads.branches.len(), 1);
        heads.forget_purged(1);
        assert_eq!((heads.branches.len(), heads.bytes, heads.purges), (0, 0, 1));
    }
}

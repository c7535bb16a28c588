//! States in memory, as stored: a claim is found by its key, and decoded only on demand.

use super::parallel;
use super::stored_claim::StoredClaim;
use crate::diff::ChangeKind;
use crate::error::{Error, Result};
use crate::format::{decode_entry, decode_key, encode_key, has_same_content};
use crate::model::{ClaimEntry, Key, Kind};
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A shared buffer that entries point into.
pub(crate) type SharedBuffer = Arc<Vec<u8>>;

/// A range of bytes in a numbered buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferRange {
    buffer: u32,
    start: u32,
    length: u32,
}

impl BufferRange {
    pub(crate) const fn new(buffer: u32, range: &Range<u32>) -> Self {
        Self { buffer, start: range.start, length: range.end - range.start }
    }

    pub(crate) fn bytes_in(self, buffers: &[SharedBuffer]) -> &[u8] {
        let start = self.start as usize;
        buffers
            .get(self.buffer as usize)
            .and_then(|buffer| buffer.get(start..start + self.length as usize))
            .expect("each range is in its buffer")
    }

    /// Returns the range with the buffer number increased by `by`.
    const fn shifted(self, by: u32) -> Self {
        Self { buffer: self.buffer + by, ..self }
    }
}

/// The ranges of the key and the entry of one claim.
#[derive(Clone, Copy, Debug)]
struct EntrySlot {
    key: BufferRange,
    entry: BufferRange,
}

impl EntrySlot {
    /// Returns the slot with the buffer numbers increased by `by`.
    const fn shifted(self, by: u32) -> Self {
        Self { key: self.key.shifted(by), entry: self.entry.shifted(by) }
    }
}

/// Fewer claims than this are compared faster by one thread than by two.
const PARALLEL_CLAIMS: usize = 4096;

/// The claims of one revision, sorted by kind and id.
#[derive(Clone, Default)]
pub struct RevisionState {
    buffers: Vec<SharedBuffer>,
    slots: Vec<EntrySlot>,
}

impl fmt::Debug for RevisionState {
    /// Without the claims, which may be many.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RevisionState").field("claims", &self.len()).finish_non_exhaustive()
    }
}

impl RevisionState {
    /// Returns the number of claims.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no claims.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    fn key(&self, slot: &EntrySlot) -> &[u8] {
        slot.key.bytes_in(&self.buffers)
    }

    /// Returns the size of the state in memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let buffers = self.buffers.iter().map(|buffer| buffer.len());
        buffers.sum::<usize>() + size_of_val(self.slots.as_slice())
    }

    /// Changes some claims, given in key order, each once; `None` removes a claim.
    pub(crate) fn change<'a>(
        &mut self,
        changes: impl ExactSizeIterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    ) {
        let buffer = self.buffers.len() as u32;
        let mut bytes = Vec::new();
        let mut place = |part: &[u8]| {
            let start = bytes.len() as u32;
            bytes.extend_from_slice(part);
            BufferRange { buffer, start, length: part.len() as u32 }
        };
        let mut slots = Vec::with_capacity(self.slots.len() + changes.len());
        let mut rest = self.slots.as_slice();
        for (key, entry) in changes {
            let (own, after) = rest.split_at(rest.partition_point(|slot| self.key(slot) < key));
            slots.extend_from_slice(own);
            rest = match after.split_first() {
                Some((first, others)) if self.key(first) == key => others,
                _ => after,
            };
            slots.extend(entry.map(|entry| EntrySlot { key: place(key), entry: place(entry) }));
        }
        slots.extend_from_slice(rest);
        self.slots = slots;
        self.buffers.push(Arc::new(bytes));
    }

    /// Splits the claims of two states by key into at most `count` shares. Equal keys are in the
    /// same share.
    fn shares<'a>(
        &'a self,
        other: &'a Self,
        count: usize,
    ) -> Vec<(&'a [EntrySlot], &'a [EntrySlot])> {
        let (mut left, mut right) = (self.slots.as_slice(), other.slots.as_slice());
        let mut shares = Vec::with_capacity(count);
        let size = right.len().div_ceil(count).max(1);
        while shares.len() + 1 < count {
            let Some(next) = right.get(size) else { break };
            let before = left.partition_point(|slot| self.key(slot) < other.key(next));
            let (mine, others) = (left.split_at(before), right.split_at(size));
            shares.push((mine.0, others.0));
            (left, right) = (mine.1, others.1);
        }
        shares.push((left, right));
        shares
    }

    /// Returns the claims as stored, sorted by key: encoded key and encoded entry.
    pub fn encoded(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> + ExactSizeIterator {
        self.encoded_at(0..self.len())
    }

    /// Decodes the claims one by one.
    pub fn entries(&self) -> impl Iterator<Item = Result<(Key, ClaimEntry)>> + '_ {
        self.encoded().map(|(key, entry)| decode(key, entry))
    }

    /// Decodes the claims of one kind one by one.
    pub fn entries_of_kind(
        &self,
        kind: Kind,
    ) -> impl Iterator<Item = Result<(Key, ClaimEntry)>> + '_ {
        self.encoded_of(kind).map(|(key, entry)| decode(key, entry))
    }

    /// Returns the number of claims of one kind, without decoding them.
    #[must_use]
    pub fn count_of_kind(&self, kind: Kind) -> usize {
        self.kind_range(kind).len()
    }

    /// Returns the index range of the claims of one kind.
    pub(crate) fn kind_range(&self, kind: Kind) -> Range<usize> {
        let first = |code: u8| {
            self.slots
                .partition_point(|slot| self.key(slot).first().is_none_or(|have| *have < code))
        };
        first(kind.code())..first(kind.code().saturating_add(1))
    }

    /// Returns the index of the first claim in a range for whose key `is_before` is false.
    pub(crate) fn first_of(
        &self,
        places: &Range<usize>,
        is_before: impl Fn(&[u8]) -> bool,
    ) -> usize {
        let slots = self.slots.get(places.clone()).unwrap_or_default();
        places.start + slots.partition_point(|slot| is_before(self.key(slot)))
    }

    /// Returns the claims of an index range, as stored.
    pub(crate) fn encoded_at(
        &self,
        places: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> + ExactSizeIterator {
        let slots = self.slots.get(places).unwrap_or_default();
        slots.iter().map(|slot| (self.key(slot), slot.entry.bytes_in(&self.buffers)))
    }

    /// Returns the claims of one kind whose ids have this prefix, sorted by id, as stored: nothing
    /// is copied or decoded. They are found by binary search in the state.
    pub fn claims_with_prefix(
        &self,
        kind: Kind,
        prefix: &str,
    ) -> impl DoubleEndedIterator<Item = StoredClaim<'_>> + ExactSizeIterator {
        let start = encode_key(&Key::new(kind, prefix));
        let from = self.slots.partition_point(|slot| self.key(slot) < start.as_slice());
        let rest = self.slots.get(from..).unwrap_or_default();
        let count = rest.partition_point(|slot| self.key(slot).starts_with(&start));
        self.encoded_at(from..from + count).map(|(key, entry)| StoredClaim::new(key, entry))
    }

    /// Returns the claims of one kind, as stored.
    fn encoded_of(&self, kind: Kind) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.encoded_at(self.kind_range(kind))
    }

    /// Returns the entry of the claim with this encoded key, as stored.
    #[must_use]
    pub fn encoded_entry(&self, key: &[u8]) -> Option<&[u8]> {
        let place = self.slots.binary_search_by(|slot| self.key(slot).cmp(key)).ok()?;
        let slot = self.slots.get(place)?;
        Some(slot.entry.bytes_in(&self.buffers))
    }

    /// Returns the entry of one claim, decoded.
    ///
    /// # Errors
    /// If the stored entry cannot be decoded.
    pub fn entry(&self, key: &Key) -> Result<Option<ClaimEntry>> {
        let Some(bytes) = self.encoded_entry(&encode_key(key)) else { return Ok(None) };
        decode_entry(bytes).map(Some).map_err(Error::corrupt(format_args!("the {key}")))
    }
}

fn decode(key: &[u8], entry: &[u8]) -> Result<(Key, ClaimEntry)> {
    let key = decode_key(key).map_err(Error::corrupt("a state"))?;
    let entry = decode_entry(entry).map_err(Error::corrupt(format_args!("the {key}")))?;
    Ok((key, entry))
}

/// Builds a state from claims in key order.
#[derive(Default)]
pub(crate) struct StateBuilder(RevisionState);

impl StateBuilder {
    pub(crate) fn with_capacity(entries: usize) -> Self {
        let mut builder = Self::default();
        builder.0.slots.reserve(entries);
        builder
    }

    /// Adds a buffer that entries point into, and returns its number.
    pub(crate) fn buffer(&mut self, bytes: SharedBuffer) -> u32 {
        self.0.buffers.push(bytes);
        // A state has fewer than 2^32 buffers, because each contains at least one entry.
        (self.0.buffers.len() - 1) as u32
    }

    /// Adds a claim after all others.
    pub(crate) fn push(&mut self, key: BufferRange, entry: BufferRange) {
        self.0.slots.push(EntrySlot { key, entry });
    }

    pub(crate) fn finish(self) -> RevisionState {
        self.0
    }
}

/// The claims that differ between two states, as stored: nothing is copied, and decoding is on
/// demand.
#[derive(Clone, Default)]
pub struct StateDifferences {
    buffers: Vec<SharedBuffer>,
    rows: Vec<DifferingEntry>,
}

impl fmt::Debug for StateDifferences {
    /// Without the claims, which may be many.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("StateDifferences").field("claims", &self.len()).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug)]
struct DifferingEntry {
    key: BufferRange,
    old: Option<BufferRange>,
    new: Option<BufferRange>,
}

/// Whether two entries have different content, or only one of them exists.
fn differ(buffers: &[SharedBuffer], old: Option<BufferRange>, new: Option<BufferRange>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => !has_same_content(old.bytes_in(buffers), new.bytes_in(buffers)),
        (old, new) => old.is_some() != new.is_some(),
    }
}

/// The buffers of two states in one list.
struct CombinedBuffers<'a> {
    buffers: &'a [SharedBuffer],
    /// Number of buffers of the first state.
    by: u32,
}

impl CombinedBuffers<'_> {
    /// Compares slots of the first state with slots of the second state. Returns the claims that
    /// differ.
    fn rows(&self, old: &[EntrySlot], new: &[EntrySlot]) -> Vec<DifferingEntry> {
        let mut rows = Vec::new();
        let (mut left, mut right) =
            (old.iter().peekable(), new.iter().map(|slot| slot.shifted(self.by)).peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => return rows,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(one), Some(other)) => {
                    one.key.bytes_in(self.buffers).cmp(other.key.bytes_in(self.buffers))
                }
            };
            let before = if order.is_le() { left.next().copied() } else { None };
            let after = if order.is_ge() { right.next() } else { None };
            let (from, to) = (before.map(|slot| slot.entry), after.map(|slot| slot.entry));
            if differ(self.buffers, from, to)
                && let Some(slot) = before.or(after)
            {
                rows.push(DifferingEntry { key: slot.key, old: from, new: to });
            }
        }
    }
}

/// A claim that differs, as stored: its encoded key, and its entry in the first and in the second
/// state.
pub type DifferenceBytes<'a> = (&'a [u8], Option<&'a [u8]>, Option<&'a [u8]>);

impl StateDifferences {
    /// Compares two states.
    pub(crate) fn between(old: &RevisionState, new: &RevisionState) -> Self {
        let is_small = old.len().max(new.len()) < PARALLEL_CLAIMS;
        Self::in_shares(old, new, if is_small { 1 } else { parallel::cores() })
    }

    fn in_shares(old: &RevisionState, new: &RevisionState, count: usize) -> Self {
        let buffers: Vec<_> = old.buffers.iter().chain(&new.buffers).map(Arc::clone).collect();
        let moved = CombinedBuffers { buffers: &buffers, by: old.buffers.len() as u32 };
        let rows = parallel::map(&old.shares(new, count), 2, |(old, new)| moved.rows(old, new));
        let rows = rows.concat();
        Self { buffers, rows }
    }

    pub(crate) fn with_buffers(buffers: Vec<SharedBuffer>, most: usize) -> Self {
        Self { buffers, rows: Vec::with_capacity(most) }
    }

    /// Adds bytes as a new buffer, and returns their range.
    pub(crate) fn keep(&mut self, bytes: Vec<u8>) -> BufferRange {
        let length = bytes.len() as u32;
        self.buffers.push(Arc::new(bytes));
        BufferRange { buffer: (self.buffers.len() - 1) as u32, start: 0, length }
    }

    /// Adds a claim after all others, if it differs.
    pub(crate) fn push(
        &mut self,
        key: BufferRange,
        old: Option<BufferRange>,
        new: Option<BufferRange>,
    ) {
        if differ(&self.buffers, old, new) {
            self.rows.push(DifferingEntry { key, old, new });
        }
    }

    /// Swaps the two states.
    pub(crate) fn swapped(mut self) -> Self {
        for row in &mut self.rows {
            std::mem::swap(&mut row.old, &mut row.new);
        }
        self
    }

    /// Returns the number of claims that differ.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the states are equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the keys of the claims that differ, sorted, and whether each was added, removed or
    /// updated.
    pub fn keys(&self) -> impl Iterator<Item = Result<(Key, ChangeKind)>> + '_ {
        self.iter().map(|(key, old, new)| {
            let key = decode_key(key).map_err(Error::corrupt("a delta"))?;
            let change = match (old, new) {
                (None, _) => ChangeKind::Added,
                (_, None) => ChangeKind::Removed,
                (Some(_), Some(_)) => ChangeKind::Updated,
            };
            Ok((key, change))
        })
    }

    /// Returns the claims that differ, sorted by key, as stored.
    pub fn iter(&self) -> impl Iterator<Item = DifferenceBytes<'_>> {
        let bytes = |place: Option<BufferRange>| place.map(|place| place.bytes_in(&self.buffers));
        self.rows
            .iter()
            .map(move |row| (row.key.bytes_in(&self.buffers), bytes(row.old), bytes(row.new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::encode_entry;
    use crate::model::Timestamp;
    use proptest::collection::btree_map;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn entry(number: u8) -> Vec<u8> {
        let value = i64::from(number).into();
        encode_entry(&ClaimEntry { added_at: Timestamp::default(), value }).to_vec()
    }

    fn state(claims: &BTreeMap<u8, u8>) -> RevisionState {
        let mut builder = StateBuilder::default();
        for (key, number) in claims {
            let key_at = builder.buffer(Arc::new(vec![*key]));
            let bytes = entry(*number);
            let all = 0..bytes.len() as u32;
            let entry_at = builder.buffer(Arc::new(bytes));
            builder.push(BufferRange::new(key_at, &(0..1)), BufferRange::new(entry_at, &all));
        }
        builder.finish()
    }

    proptest! {
        #[test]
        fn comparing_states_in_any_number_of_shares_gives_the_differences_of_the_maps(
            old in btree_map(0_u8..40, 0_u8..3, 0..40),
            new in btree_map(0_u8..40, 0_u8..3, 0..40),
            shares in 1_usize..7,
        ) {
            let differences = StateDifferences::in_shares(&state(&old), &state(&new), shares);
            let found: Vec<_> = differences
                .iter()
                .map(|(key, old, new)| (key[0], old.map(<[u8]>::to_vec), new.map(<[u8]>::to_vec)))
                .collect();
            let keys: BTreeSet<u8> = old.keys().chain(new.keys()).copied().collect();
            let encoded = |number: Option<&u8>| number.map(|number| entry(*number));
            let wanted: Vec<_> = keys
                .into_iter()
                .filter(|key| old.get(key) != new.get(key))
                .map(|key| (key, encoded(old.get(&key)), encoded(new.get(&key))))
                .collect();
            prop_assert_eq!(found, wanted);
        }
    }
}

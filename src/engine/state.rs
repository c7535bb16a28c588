//! A state in memory: every entry verified and addressable, none decoded before it is asked for.

use crate::error::{Error, Result};
use crate::format::{decode_entry, decode_key, encode_key, reads_as};
use crate::model::{Entry, Key, Kind};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Bytes that entries lie in; shared by all who point into them.
pub(crate) type Buffer = Arc<Vec<u8>>;

/// Where some bytes lie: a buffer's number, and a range in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    buffer: u32,
    start: u32,
    length: u32,
}

impl Place {
    pub(crate) const fn new(buffer: u32, range: &Range<u32>) -> Self {
        Self { buffer, start: range.start, length: range.end - range.start }
    }

    pub(crate) fn of(self, buffers: &[Buffer]) -> &[u8] {
        let start = self.start as usize;
        buffers
            .get(self.buffer as usize)
            .and_then(|buffer| buffer.get(start..start + self.length as usize))
            .expect("places point into their buffers")
    }

    /// The same place where the buffers stand behind so many others.
    const fn shifted(self, by: u32) -> Self {
        Self { buffer: self.buffer + by, ..self }
    }
}

/// Where one entry lies.
#[derive(Clone, Copy, Debug)]
struct Slot {
    key: Place,
    entry: Place,
}

/// The claims of one revision, sorted by kind and id.
#[derive(Clone, Debug, Default)]
pub struct State {
    buffers: Vec<Buffer>,
    slots: Vec<Slot>,
}

impl State {
    /// How many claims there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    fn key(&self, slot: &Slot) -> &[u8] {
        slot.key.of(&self.buffers)
    }

    /// The claims as stored, sorted by key: encoded key and encoded entry.
    pub fn encoded(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> + ExactSizeIterator {
        self.slots.iter().map(|slot| (self.key(slot), slot.entry.of(&self.buffers)))
    }

    /// The claims, decoded one by one.
    pub fn entries(&self) -> impl Iterator<Item = Result<(Key, Entry)>> + '_ {
        self.encoded().map(|(key, entry)| decode(key, entry))
    }

    /// The claims of one kind, decoded one by one.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = Result<(Key, Entry)>> + '_ {
        self.encoded_of(kind).map(|(key, entry)| decode(key, entry))
    }

    /// The claims of one kind, as stored.
    pub(crate) fn encoded_of(&self, kind: Kind) -> impl Iterator<Item = (&[u8], &[u8])> {
        let first = |code: u8| {
            self.slots
                .partition_point(|slot| self.key(slot).first().is_none_or(|have| *have < code))
        };
        let (from, to) = (first(kind.code()), first(kind.code().saturating_add(1)));
        self.encoded().skip(from).take(to - from)
    }

    /// The stored bytes of one claim.
    #[must_use]
    pub fn encoded_entry(&self, key: &[u8]) -> Option<&[u8]> {
        let place = self.slots.binary_search_by(|slot| self.key(slot).cmp(key)).ok()?;
        let slot = self.slots.get(place)?;
        Some(slot.entry.of(&self.buffers))
    }

    /// One claim.
    ///
    /// # Errors
    /// If what is stored cannot be decoded.
    pub fn entry(&self, key: &Key) -> Result<Option<Entry>> {
        let Some(bytes) = self.encoded_entry(&encode_key(key)) else { return Ok(None) };
        decode_entry(bytes).map(Some).map_err(Error::corrupt(format_args!("the {key}")))
    }
}

fn decode(key: &[u8], entry: &[u8]) -> Result<(Key, Entry)> {
    let key = decode_key(key).map_err(Error::corrupt("a state"))?;
    let entry = decode_entry(entry).map_err(Error::corrupt(format_args!("the {key}")))?;
    Ok((key, entry))
}

/// Builds a state from entries in key order.
#[derive(Default)]
pub(crate) struct StateBuilder(State);

impl StateBuilder {
    pub(crate) fn with_capacity(entries: usize) -> Self {
        let mut builder = Self::default();
        builder.0.slots.reserve(entries);
        builder
    }

    /// Takes a buffer in which entries lie.
    pub(crate) fn buffer(&mut self, bytes: Buffer) -> u32 {
        self.0.buffers.push(bytes);
        // A state has fewer buffers than 2^32: each holds at least one entry.
        (self.0.buffers.len() - 1) as u32
    }

    /// Adds an entry behind all others.
    pub(crate) fn push(&mut self, key: Place, entry: Place) {
        self.0.slots.push(Slot { key, entry });
    }

    pub(crate) fn finish(self) -> State {
        self.0
    }
}

/// The claims that differ between two states, as stored: nothing is copied or decoded before it is asked for.
#[derive(Clone, Debug, Default)]
pub struct Differences {
    buffers: Vec<Buffer>,
    rows: Vec<Difference>,
}

#[derive(Clone, Copy, Debug)]
struct Difference {
    key: Place,
    old: Option<Place>,
    new: Option<Place>,
}

/// Whether an entry reads otherwise than another, or one of them is not there.
fn differ(buffers: &[Buffer], old: Option<Place>, new: Option<Place>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => !reads_as(old.of(buffers), new.of(buffers)),
        (old, new) => old.is_some() != new.is_some(),
    }
}

/// A claim that differs, as stored: its encoded key, its entry before and after.
pub type DifferenceBytes<'a> = (&'a [u8], Option<&'a [u8]>, Option<&'a [u8]>);

impl Differences {
    /// The claims that differ between two states.
    pub(crate) fn between(old: &State, new: &State) -> Self {
        let buffers: Vec<_> = old.buffers.iter().chain(&new.buffers).map(Arc::clone).collect();
        let by = old.buffers.len() as u32;
        let places = |state: &State, by| -> Vec<(Place, Place)> {
            let shifted = |slot: &Slot| (slot.key.shifted(by), slot.entry.shifted(by));
            state.slots.iter().map(shifted).collect()
        };
        let (old, new) = (places(old, 0), places(new, by));
        let mut rows = Vec::new();
        let (mut left, mut right) = (old.into_iter().peekable(), new.into_iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((one, _)), Some((other, _))) => one.of(&buffers).cmp(other.of(&buffers)),
            };
            let before = if order.is_le() { left.next() } else { None };
            let after = if order.is_ge() { right.next() } else { None };
            let entry = |side: Option<(Place, Place)>| side.map(|(_, entry)| entry);
            let (from, to) = (entry(before), entry(after));
            if differ(&buffers, from, to)
                && let Some((key, _)) = before.or(after)
            {
                rows.push(Difference { key, old: from, new: to });
            }
        }
        Self { buffers, rows }
    }

    pub(crate) fn with_buffers(buffers: Vec<Buffer>, most: usize) -> Self {
        Self { buffers, rows: Vec::with_capacity(most) }
    }

    /// Takes bytes that lie in no buffer yet.
    pub(crate) fn keep(&mut self, bytes: Vec<u8>) -> Place {
        let length = bytes.len() as u32;
        self.buffers.push(Arc::new(bytes));
        Place { buffer: (self.buffers.len() - 1) as u32, start: 0, length }
    }

    /// Adds a claim behind all others, if it differs.
    pub(crate) fn push(&mut self, key: Place, old: Option<Place>, new: Option<Place>) {
        if differ(&self.buffers, old, new) {
            self.rows.push(Difference { key, old, new });
        }
    }

    /// The same, seen from the other state.
    pub(crate) fn swapped(mut self) -> Self {
        for row in &mut self.rows {
            std::mem::swap(&mut row.old, &mut row.new);
        }
        self
    }

    /// How many claims differ.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the states are the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The claims that differ, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = DifferenceBytes<'_>> {
        let bytes = |place: Option<Place>| place.map(|place| place.of(&self.buffers));
        self.rows.iter().map(move |row| (row.key.of(&self.buffers), bytes(row.old), bytes(row.new)))
    }
}

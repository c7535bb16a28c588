//! A state in memory: every entry verified and addressable, none decoded before it is asked for.

use crate::error::{Error, Result};
use crate::format::{decode_entry, decode_key, encode_key};
use crate::model::{Entry, Key, Kind};
use std::sync::Arc;

/// Where one entry lies.
#[derive(Clone, Copy, Debug)]
struct Slot {
    buffer: u32,
    key: u32,
    key_length: u32,
    entry: u32,
    entry_length: u32,
}

/// The claims of one revision, sorted by kind and id.
#[derive(Clone, Debug, Default)]
pub struct State {
    buffers: Vec<Arc<[u8]>>,
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

    fn bytes(&self, slot: &Slot, start: u32, length: u32) -> &[u8] {
        let (start, length) = (start as usize, length as usize);
        self.buffers
            .get(slot.buffer as usize)
            .and_then(|buffer| buffer.get(start..start + length))
            .expect("slots point into their buffers")
    }

    /// The claims as stored, sorted by key: encoded key and encoded entry.
    pub fn encoded(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> + ExactSizeIterator {
        self.slots.iter().map(|slot| {
            (
                self.bytes(slot, slot.key, slot.key_length),
                self.bytes(slot, slot.entry, slot.entry_length),
            )
        })
    }

    /// The claims, decoded one by one.
    pub fn entries(&self) -> impl Iterator<Item = Result<(Key, Entry)>> + '_ {
        self.encoded().map(|(key, entry)| decode(key, entry))
    }

    /// The claims of one kind, decoded one by one.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = Result<(Key, Entry)>> + '_ {
        let first = |code: u8| {
            self.slots.partition_point(|slot| {
                self.bytes(slot, slot.key, slot.key_length).first().is_none_or(|have| *have < code)
            })
        };
        let (from, to) = (first(kind.code()), first(kind.code().saturating_add(1)));
        self.encoded().skip(from).take(to - from).map(|(key, entry)| decode(key, entry))
    }

    /// The stored bytes of one claim.
    #[must_use]
    pub fn encoded_entry(&self, key: &[u8]) -> Option<&[u8]> {
        let place = self
            .slots
            .binary_search_by(|slot| self.bytes(slot, slot.key, slot.key_length).cmp(key))
            .ok()?;
        let slot = self.slots.get(place)?;
        Some(self.bytes(slot, slot.entry, slot.entry_length))
    }

    /// One claim.
    ///
    /// # Errors
    /// If what is stored cannot be decoded.
    pub fn entry(&self, key: &Key) -> Result<Option<Entry>> {
        let Some(bytes) = self.encoded_entry(&encode_key(key)) else { return Ok(None) };
        decode_entry(bytes).map(Some).map_err(Error::corrupt(format!("the {key}")))
    }
}

fn decode(key: &[u8], entry: &[u8]) -> Result<(Key, Entry)> {
    let key = decode_key(key).map_err(Error::corrupt("a state"))?;
    let entry = decode_entry(entry).map_err(Error::corrupt(format!("the {key}")))?;
    Ok((key, entry))
}

/// Builds a state from runs of entries in key order.
#[derive(Default)]
pub(crate) struct StateBuilder {
    state: State,
    /// What is not in a buffer of its own yet.
    extra: Vec<u8>,
    pending: Vec<Slot>,
}

impl StateBuilder {
    pub(crate) fn with_capacity(entries: usize) -> Self {
        let mut builder = Self::default();
        builder.state.slots.reserve(entries);
        builder
    }

    /// Takes a buffer in which entries lie.
    pub(crate) fn buffer(&mut self, bytes: Arc<[u8]>) -> u32 {
        self.state.buffers.push(bytes);
        // A state has fewer chunks than 2^32: each holds at least one entry.
        (self.state.buffers.len() - 1) as u32
    }

    /// Adds an entry that lies in a buffer, behind all others.
    pub(crate) fn push(&mut self, buffer: u32, entry: &crate::format::ChunkEntry) {
        self.state.slots.push(Slot {
            buffer,
            key: entry.key.start,
            key_length: entry.key.end - entry.key.start,
            entry: entry.entry.start,
            entry_length: entry.entry.end - entry.entry.start,
        });
    }

    /// Adds an entry that lies nowhere else, behind all others.
    pub(crate) fn push_bytes(&mut self, key: &[u8], entry: &[u8]) {
        const BUFFER_BYTES: usize = 8 << 20;
        if self.extra.len() + key.len() + entry.len() > BUFFER_BYTES {
            self.flush();
        }
        let start = self.extra.len() as u32;
        self.extra.extend_from_slice(key);
        self.extra.extend_from_slice(entry);
        let slot = Slot {
            buffer: u32::MAX,
            key: start,
            key_length: key.len() as u32,
            entry: start + key.len() as u32,
            entry_length: entry.len() as u32,
        };
        self.pending.push(slot);
        self.state.slots.push(slot);
    }

    fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut self.extra);
        let buffer = self.buffer(bytes.into());
        self.pending.clear();
        for slot in self.state.slots.iter_mut().rev() {
            // Slots that wait for this buffer are marked; those behind the last flush are the only ones.
            if slot.buffer == u32::MAX {
                slot.buffer = buffer;
            }
        }
    }

    pub(crate) fn finish(mut self) -> State {
        self.flush();
        self.state
    }
}

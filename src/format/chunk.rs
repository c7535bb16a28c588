//! Chunks of a full state: runs of entries. Boundaries depend on keys and sizes only, so that equal
//! runs of two states are usually equal objects.

use super::codec::{ByteReader, DecodeError, put_bytes, put_varint};
use std::ops::Range;

/// Minimum size of a chunk in bytes, except for the last one of a state.
pub const CHUNK_MIN_BYTES: usize = 16 << 10;
/// A chunk ends at the first entry with which it has at least this many bytes.
pub const CHUNK_MAX_BYTES: usize = 256 << 10;

/// Returns whether a chunk may end after the entity with this hash: after one in 256 on average,
/// independently of its neighbours. This is content-defined chunking with the key as content, so a
/// changed value moves a boundary only if it changes which chunks have the minimum or maximum size.
#[must_use]
pub const fn is_boundary(entity_hash: [u8; 8]) -> bool {
    entity_hash[7] == 0
}

/// The ranges of one entry in the bytes of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkEntry {
    /// The encoded key.
    pub key: Range<u32>,
    /// The encoded entry.
    pub entry: Range<u32>,
}

/// A run of entries of a state, keys ascending.
#[derive(Debug, Default)]
pub struct StateChunk {
    content: Vec<u8>,
    count: u64,
}

const VERSION: u8 = 1;

impl StateChunk {
    /// Appends an entry.
    pub fn push(&mut self, key: &[u8], entry: &[u8]) {
        put_bytes(&mut self.content, key);
        put_bytes(&mut self.content, entry);
        self.count += 1;
    }

    /// Returns the number of bytes of its entries.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.content.len()
    }

    /// Returns the number of its entries.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Encodes this chunk.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.content.len() + 8);
        out.push(VERSION);
        put_varint(&mut out, self.count);
        out.extend_from_slice(&self.content);
        out
    }

    /// Returns the ranges of the entries in an encoded chunk.
    pub fn decode(bytes: &[u8]) -> Result<Vec<ChunkEntry>, DecodeError> {
        let mut reader = ByteReader::new("chunk", bytes);
        let total = bytes.len();
        if u32::try_from(total).is_err() {
            return Err(reader.error("it is too large"));
        }
        if reader.byte()? != VERSION {
            return Err(reader.error("unknown version"));
        }
        let count = reader.length()?;
        let mut entries = Vec::with_capacity(count.min(1 << 16));
        let mut previous: &[u8] = &[];
        for _ in 0..count {
            let key = reader.bytes()?;
            if key <= previous {
                return Err(reader.error("its keys are not in order"));
            }
            previous = key;
            let key = reader.range_just_read(total, key.len());
            let entry_bytes = reader.bytes()?.len();
            let entry = reader.range_just_read(total, entry_bytes);
            entries.push(ChunkEntry { key, entry });
        }
        reader.end()?;
        Ok(entries)
    }
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entries_of_a_chunk_decode_as_they_were_encoded(entries in prop::collection::btree_map(
            prop::collection::vec(any::<u8>(), 1..9), prop::collection::vec(any::<u8>(), 0..50), 0..40
        )) {
            let mut chunk = StateChunk::default();
            entries.iter().for_each(|(key, entry)| chunk.push(key, entry));
            let bytes = chunk.encode();
            let at = |range: &Range<u32>| bytes[range.start as usize..range.end as usize].to_vec();
            let read: Vec<_> =
                StateChunk::decode(&bytes).unwrap().iter().map(|e| (at(&e.key), at(&e.entry))).collect();
            prop_assert_eq!(read, entries.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn decoding_any_bytes_does_not_panic(bytes: Vec<u8>) {
            let _ = StateChunk::decode(&bytes);
        }
    }
}

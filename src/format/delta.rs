//! Deltas: the changes of a revision, with the values before and after.

use super::codec::{ByteReader, DecodeError, put_bytes, put_varint};
use super::entry::EntryBytes;
use crate::model::ObjectId;
use std::ops::Range;

/// A claim's entry before or after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeltaSide {
    /// There is no entry.
    Absent,
    /// The entry itself.
    Inline(EntryBytes),
    /// The blob that holds a large entry.
    Blob(ObjectId),
}

impl DeltaSide {
    fn bytes(&self) -> usize {
        match self {
            Self::Absent => 0,
            Self::Inline(entry) => entry.len(),
            Self::Blob(_) => 32,
        }
    }
}

/// The change of one claim. `K` holds its key, or points to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeltaChange<K = Vec<u8>> {
    /// The encoded key.
    pub key: K,
    /// The entry before the change.
    pub old: DeltaSide,
    /// The entry after the change.
    pub new: DeltaSide,
}

impl<K: AsRef<[u8]>> DeltaChange<K> {
    /// Returns the size of its key and both entries in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.key.as_ref().len() + self.old.bytes() + self.new.bytes()
    }
}

/// The changes of one revision, or of one part of a large one, by key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta<K = Vec<u8>> {
    /// The changes, keys ascending and unique.
    pub changes: Vec<DeltaChange<K>>,
}

/// The range of an entry in an encoded delta.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeltaSideRange {
    /// There is no entry.
    Absent,
    /// The entry itself.
    Inline(Range<u32>),
    /// The blob that holds a large entry.
    Blob(ObjectId),
}

/// The ranges of one change in an encoded delta.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeltaChangeRange {
    /// The encoded key.
    pub key: Range<u32>,
    /// The entry before the change.
    pub old: DeltaSideRange,
    /// The entry after the change.
    pub new: DeltaSideRange,
}

impl DeltaChangeRange {
    /// Returns the encoded key, from the bytes that were scanned.
    #[must_use]
    pub fn key_in<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes
            .get(self.key.start as usize..self.key.end as usize)
            .expect("scanned ranges lie inside the delta")
    }
}

const VERSION: u8 = 1;
/// The version of a delta that replaces another delta; the name of the replaced delta follows.
const REPLACING_VERSION: u8 = 2;

impl<K: AsRef<[u8]>> Delta<K> {
    /// Encodes this delta after 16 random bytes. Without these, the hash of a deleted delta would
    /// confirm a guess at its content.
    #[must_use]
    pub fn encode(&self, salt: [u8; 16]) -> Vec<u8> {
        self.encode_as(salt, None)
    }

    /// Encodes a delta that replaces the one with this name, from which a secret was purged.
    #[must_use]
    pub fn encode_for(&self, salt: [u8; 16], name: &ObjectId) -> Vec<u8> {
        self.encode_as(salt, Some(name))
    }

    fn encode_as(&self, salt: [u8; 16], name: Option<&ObjectId>) -> Vec<u8> {
        // Usual bytes of a change besides its data: three lengths and two marks.
        const MORE_BYTES: usize = 3 * 3 + 2;
        let bytes: usize = self.changes.iter().map(|change| change.bytes() + MORE_BYTES).sum();
        let mut out = Vec::with_capacity(64 + bytes);
        out.extend_from_slice(&salt);
        match name {
            None => out.push(VERSION),
            Some(name) => {
                out.push(REPLACING_VERSION);
                out.extend_from_slice(name.as_bytes());
            }
        }
        put_varint(&mut out, self.changes.len() as u64);
        for change in &self.changes {
            put_bytes(&mut out, change.key.as_ref());
            for side in [&change.old, &change.new] {
                match side {
                    DeltaSide::Absent => out.push(0),
                    DeltaSide::Inline(bytes) => {
                        out.push(1);
                        put_bytes(&mut out, bytes);
                    }
                    DeltaSide::Blob(id) => {
                        out.push(2);
                        out.extend_from_slice(id.as_bytes());
                    }
                }
            }
        }
        out
    }
}

impl Delta {
    /// Returns the name by which a revision refers to this encoded delta: the name of the delta
    /// that it replaces, otherwise its hash.
    #[must_use]
    pub fn name(bytes: &[u8]) -> ObjectId {
        let after_version =
            bytes.get(16..).and_then(|rest| rest.strip_prefix(&[REPLACING_VERSION]));
        let name = after_version.and_then(|rest| rest.first_chunk::<32>()).copied();
        ObjectId::from_bytes(name.unwrap_or_else(|| *blake3::hash(bytes).as_bytes()))
    }

    /// Decodes a delta.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let at = |range: &Range<u32>| {
            bytes.get(range.start as usize..range.end as usize).expect("scanned ranges lie inside")
        };
        let side = |side: DeltaSideRange| match side {
            DeltaSideRange::Absent => DeltaSide::Absent,
            DeltaSideRange::Inline(range) => DeltaSide::Inline(at(&range).into()),
            DeltaSideRange::Blob(id) => DeltaSide::Blob(id),
        };
        let changes = Self::scan(bytes)?
            .into_iter()
            .map(|change| DeltaChange {
                key: at(&change.key).to_vec(),
                old: side(change.old),
                new: side(change.new),
            })
            .collect();
        Ok(Self { changes })
    }

    /// Returns the ranges of the changes in an encoded delta, for callers that read many deltas and
    /// need no copies.
    pub fn scan(bytes: &[u8]) -> Result<Vec<DeltaChangeRange>, DecodeError> {
        let mut reader = ByteReader::new("delta", bytes);
        let total = bytes.len();
        if u32::try_from(total).is_err() {
            return Err(reader.error("it is too large"));
        }
        reader.take(16)?;
        match reader.byte()? {
            VERSION => {}
            REPLACING_VERSION => {
                reader.take(32)?;
            }
            _ => return Err(reader.error("unknown version")),
        }
        let count = reader.length()?;
        let mut changes = Vec::with_capacity(count.min(1 << 16));
        let mut previous: Option<&[u8]> = None;
        for _ in 0..count {
            let key = reader.bytes()?;
            if previous.is_some_and(|previous| previous >= key) {
                return Err(reader.error("its keys are not in order"));
            }
            previous = Some(key);
            let key = reader.range_just_read(total, key.len());
            let old = side(&mut reader, total)?;
            let new = side(&mut reader, total)?;
            changes.push(DeltaChangeRange { key, old, new });
        }
        reader.end()?;
        Ok(changes)
    }
}

fn side(reader: &mut ByteReader<'_>, total: usize) -> Result<DeltaSideRange, DecodeError> {
    match reader.byte()? {
        0 => Ok(DeltaSideRange::Absent),
        1 => {
            let length = reader.bytes()?.len();
            Ok(DeltaSideRange::Inline(reader.range_just_read(total, length)))
        }
        2 => Ok(DeltaSideRange::Blob(ObjectId::from_bytes(reader.array()?))),
        _ => Err(reader.error("unknown mark of a value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_side() -> impl Strategy<Value = DeltaSide> {
        prop_oneof![
            Just(DeltaSide::Absent),
            prop::collection::vec(any::<u8>(), 0..40)
                .prop_map(|bytes| DeltaSide::Inline(bytes.into())),
            any::<[u8; 32]>().prop_map(|bytes| DeltaSide::Blob(ObjectId::from_bytes(bytes))),
        ]
    }

    proptest! {
        #[test]
        fn a_delta_decodes_as_it_was_encoded(changes in prop::collection::btree_map(
            prop::collection::vec(any::<u8>(), 1..9), (any_side(), any_side()), 0..30
        )) {
            let changes = changes.into_iter().map(|(key, (old, new))| DeltaChange { key, old, new });
            let delta = Delta { changes: changes.collect() };
            prop_assert_eq!(Delta::decode(&delta.encode([7; 16])).unwrap(), delta);
        }

        #[test]
        fn decoding_any_bytes_does_not_panic(bytes: Vec<u8>) {
            let _ = Delta::decode(&bytes);
        }
    }

    #[test]
    fn a_delta_that_replaces_another_keeps_its_name() {
        let delta = |entry: &[u8]| Delta {
            changes: vec![DeltaChange {
                key: b"k".to_vec(),
                old: DeltaSide::Absent,
                new: DeltaSide::Inline(entry.into()),
            }],
        };
        let old = delta(b"with a secret").encode([1; 16]);
        let name = Delta::name(&old);
        assert_eq!(name.as_bytes(), blake3::hash(&old).as_bytes());
        let new = delta(b"without").encode_for([2; 16], &name);
        assert_eq!(Delta::decode(&new).unwrap(), delta(b"without"));
        assert_eq!(Delta::name(&new), name);
        assert_eq!(Delta::name(&delta(b"again").encode_for([3; 16], &Delta::name(&new))), name);
    }

    #[test]
    fn keys_out_of_order_are_refused() {
        let change = |key: &[u8]| DeltaChange {
            key: key.to_vec(),
            old: DeltaSide::Absent,
            new: DeltaSide::Inline(b"x".as_slice().into()),
        };
        let delta = Delta { changes: vec![change(b"b"), change(b"a")] };
        assert!(Delta::decode(&delta.encode([0; 16])).is_err());
    }
}

//! Keys and entries of a state.

use super::codec::{DecodeError, Reader, pack_into, put_signed, unpack};
use crate::model::{Entry, Key, Kind, SessionId, Timestamp, Value};
use std::sync::Arc;

/// An entry as it is stored; shared, since many states hold it.
pub type EntryBytes = Arc<[u8]>;

/// Public keys of the two hashes: what they hash cannot be mistaken for anything else forge hashes.
const ENTRY_CONTEXT: &[u8; 32] = b"forge entry of a state, digest 1";
const ENTITY_CONTEXT: &[u8; 32] = b"forge entity key for tables, v 1";

/// The bytes of a key: its kind's code, then its id.
#[must_use]
pub fn encode_key(key: &Key) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + key.id.len());
    bytes.push(key.kind.code());
    bytes.extend_from_slice(key.id.as_bytes());
    bytes
}

/// The key these bytes stand for.
///
/// # Errors
/// If they are not a key.
pub fn decode_key(bytes: &[u8]) -> Result<Key, DecodeError> {
    let wrong = |reason: &str| DecodeError::new("key of an entity", reason);
    let (&code, id) = bytes.split_first().ok_or_else(|| wrong("it is empty"))?;
    let kind = Kind::from_code(code).ok_or_else(|| wrong("unknown kind"))?;
    let id = std::str::from_utf8(id).map_err(|_| wrong("its id is not UTF-8"))?;
    Ok(Key::new(kind, id))
}

/// The bytes of an entry.
#[must_use]
pub fn encode_entry(entry: &Entry) -> EntryBytes {
    encode_value(entry.added_at, &entry.value)
}

/// The bytes of an entry of this time with these fields.
#[must_use]
pub fn encode_value(added_at: Timestamp, value: &Value) -> EntryBytes {
    const USUAL_BYTES: usize = 512;
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    put_signed(&mut bytes, added_at.as_micros());
    pack_into(&mut bytes, value);
    bytes.into()
}

/// The bytes of an entry without those of its time: equal values have equal bytes.
#[must_use]
pub fn value_bytes(entry: &[u8]) -> &[u8] {
    let time = entry.iter().take_while(|byte| **byte >= 0x80).count() + 1;
    entry.get(time..).unwrap_or_default()
}

/// The entry these bytes stand for.
///
/// # Errors
/// If they are not an entry.
pub fn decode_entry(bytes: &[u8]) -> Result<Entry, DecodeError> {
    let mut reader = Reader::new("entry", bytes);
    let added_at = Timestamp::from_micros(reader.signed()?);
    let value = reader.take(reader.remaining())?;
    Ok(Entry { added_at, value: unpack("value", value)? })
}

/// What an entry adds to the digest of its state.
#[must_use]
pub fn entry_hash(key: &[u8], entry: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(ENTRY_CONTEXT);
    hasher.update(&(key.len() as u64).to_le_bytes());
    hasher.update(key);
    hasher.update(entry);
    *hasher.finalize().as_bytes()
}

/// Eight bytes that stand for an entity in the keys of tables, where no text may stand. Two entities may share them:
/// whoever finds a row by them checks the key in what the row points to.
#[must_use]
pub fn entity_hash(session: &SessionId, key: &[u8]) -> [u8; 8] {
    let mut hasher = blake3::Hasher::new_keyed(ENTITY_CONTEXT);
    hasher.update(session.as_bytes());
    hasher.update(key);
    let mut short = [0; 8];
    hasher.finalize_xof().fill(&mut short);
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Value;

    #[test]
    fn keys_and_entries_come_back() {
        let key = Key::new(Kind::Belief, "b1");
        assert_eq!(decode_key(&encode_key(&key)).unwrap(), key);
        let entry = Entry {
            added_at: Timestamp::from_micros(-5),
            value: Value::from([("description", "x".into())]),
        };
        assert_eq!(decode_entry(&encode_entry(&entry)).unwrap(), entry);
    }

    #[test]
    fn the_bytes_of_a_value_are_the_same_at_any_time() {
        let value = Value::from([("description", "x".into())]);
        for time in [0, -1, 63, 64, 1_700_000_000_000_000, i64::MIN, i64::MAX] {
            let entry = encode_value(Timestamp::from_micros(time), &value);
            assert_eq!(value_bytes(&entry), super::super::codec::pack(&value), "{time}");
        }
        assert_eq!(value_bytes(&[0x80]), b"");
    }

    #[test]
    fn the_hash_of_an_entry_tells_key_from_value() {
        assert_ne!(entry_hash(b"ab", b"c"), entry_hash(b"a", b"bc"));
    }
}

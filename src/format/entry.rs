//! The encoding and the hashes of the keys and entries of a state.

use super::codec::{ByteReader, DecodeError, MAX_DEPTH, pack, pack_into, put_signed, unpack};
use super::packed_value::is_packed;
use crate::model::{ClaimEntry, Key, Kind, SessionId, Timestamp, Value};
use serde::Deserialize;
use std::sync::Arc;

/// An encoded entry. It is shared, because many states contain it.
pub type EntryBytes = Arc<[u8]>;

/// Public keys of the two hashes below. They make these hashes differ from all other hashes in
/// forge.
const ENTRY_CONTEXT: &[u8; 32] = b"forge entry of a state, digest 1";
const ENTITY_CONTEXT: &[u8; 32] = b"forge entity key for tables, v 1";

/// Encodes a key: the code of its kind, then its id.
#[must_use]
pub fn encode_key(key: &Key) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + key.id.len());
    bytes.push(key.kind.code());
    bytes.extend_from_slice(key.id.as_bytes());
    bytes
}

/// Decodes a key.
pub fn decode_key(bytes: &[u8]) -> Result<Key, DecodeError> {
    let wrong = |reason: &str| DecodeError::new("key of an entity", reason);
    let (&code, id) = bytes.split_first().ok_or_else(|| wrong("it is empty"))?;
    let kind = Kind::from_code(code).ok_or_else(|| wrong("unknown kind"))?;
    let id = std::str::from_utf8(id).map_err(|_| wrong("its id is not UTF-8"))?;
    Ok(Key::new(kind, id))
}

/// Encodes an entry.
#[must_use]
pub fn encode_entry(entry: &ClaimEntry) -> EntryBytes {
    encode_value(entry.added_at, &entry.value)
}

/// Encodes an entry with this time and these fields.
#[must_use]
pub fn encode_value(added_at: Timestamp, value: &Value) -> EntryBytes {
    const USUAL_BYTES: usize = 512;
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    put_signed(&mut bytes, added_at.as_micros());
    pack_into(&mut bytes, value);
    bytes.into()
}

/// The first bytes of a purged entry: a zero in an overlong encoding, which no time uses. Then come
/// the digest term of the entry before the purge (32 bytes), and the entry without the secret.
const PURGED: [u8; 2] = [0x80, 0];

/// Returns the digest term that is stored in a purged entry; `None` for any other entry.
fn kept_term(entry: &[u8]) -> Option<[u8; 32]> {
    entry.strip_prefix(&PURGED).and_then(|rest| rest.first_chunk::<32>()).copied()
}

/// Returns the entry without the first bytes and the digest term of a purged entry.
fn plain(entry: &[u8]) -> &[u8] {
    match kept_term(entry) {
        Some(_) => entry.get(PURGED.len() + 32..).unwrap_or_default(),
        None => entry,
    }
}

/// Returns the purged form of an entry; `None` if `rewrite` changes nothing. `key` is the key of
/// the entry before the purge.
///
/// `rewrite` receives the value and must keep its length. The fields are sorted again, because
/// their names may have changed, and equal values must have equal bytes. The purged entry keeps the
/// digest term of the entry, so no digest changes.
#[must_use]
pub fn purge_entry(
    key: &[u8],
    entry: &[u8],
    rewrite: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
) -> Option<EntryBytes> {
    let value = rewrite(value_bytes(entry))?;
    // A value that cannot be decoded is not sorted: readers reject it.
    let ordered = unpack::<Value>("value", &value).map(|value| pack(&value));
    Some(purged_form(key, entry, Some(ordered.as_ref().unwrap_or(&value))))
}

/// Returns the purged form of an entry whose key changes. `key` is the old key: the entry keeps the
/// digest term that it has with that key.
#[must_use]
pub fn rekey_entry(key: &[u8], entry: &[u8]) -> EntryBytes {
    purged_form(key, entry, None)
}

/// Returns the purged form of an entry: with the digest term that the entry has with this key, and
/// with another value, if one is given.
fn purged_form(key: &[u8], entry: &[u8], value: Option<&[u8]>) -> EntryBytes {
    let term = entry_hash(key, entry);
    let plain = plain(entry);
    let old = value_bytes(entry);
    let time = plain.get(..plain.len() - old.len()).unwrap_or_default();
    [&PURGED, term.as_slice(), time, value.unwrap_or(old)].concat().into()
}

/// Returns the encoded value of an entry: the bytes after its time. Equal values have equal bytes.
pub(super) fn value_bytes(entry: &[u8]) -> &[u8] {
    let entry = plain(entry);
    let time = entry.iter().take_while(|byte| **byte >= 0x80).count() + 1;
    entry.get(time..).unwrap_or_default()
}

/// Decodes only those fields of an entry's value that `T` names. `T` can borrow texts and bytes
/// from the entry.
///
/// # Errors
/// [`DecodeError`] if a field is missing or of another type, or the value is damaged.
pub fn entry_fields<'a, T: Deserialize<'a>>(entry: &'a [u8]) -> Result<T, DecodeError> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(value_bytes(entry));
    reader.set_max_depth(MAX_DEPTH);
    T::deserialize(&mut reader).map_err(|error| DecodeError::new("value", error.to_string()))
}

/// Returns whether an entry has exactly this value, at any time. Compares while it encodes `value`,
/// up to the first difference.
#[must_use]
pub fn has_value(entry: &[u8], value: &Value) -> bool {
    is_packed(value_bytes(entry), value)
}

/// Returns whether two entries have the same time and value. Their digest terms may differ, if one
/// of them was purged.
#[must_use]
pub fn has_same_content(entry: &[u8], other: &[u8]) -> bool {
    plain(entry) == plain(other)
}

/// Decodes only the time of an entry.
///
/// # Errors
/// [`DecodeError`] if it does not begin with a time.
pub fn added_at(entry: &[u8]) -> Result<Timestamp, DecodeError> {
    ByteReader::new("entry", plain(entry)).signed().map(Timestamp::from_micros)
}

/// Decodes an entry.
pub fn decode_entry(bytes: &[u8]) -> Result<ClaimEntry, DecodeError> {
    let mut reader = ByteReader::new("entry", plain(bytes));
    let added_at = Timestamp::from_micros(reader.signed()?);
    let value = reader.take(reader.remaining())?;
    Ok(ClaimEntry { added_at, value: unpack("value", value)? })
}

/// Returns the digest term of an entry, which is added to the digest of its state. For a purged
/// entry it is the term before the purge.
#[must_use]
pub fn entry_hash(key: &[u8], entry: &[u8]) -> [u8; 32] {
    if let Some(term) = kept_term(entry) {
        return term;
    }
    let mut hasher = blake3::Hasher::new_keyed(ENTRY_CONTEXT);
    hasher.update(&(key.len() as u64).to_le_bytes());
    hasher.update(key);
    hasher.update(entry);
    *hasher.finalize().as_bytes()
}

/// Returns a hash of an entity's key, for keys of rows, which contain no text. The hashes of two
/// entities may be equal, so a reader must check the key in the data to which the row points.
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
    fn keys_and_entries_decode_as_they_were_encoded() {
        let key = Key::new(Kind::Belief, "b1");
        assert_eq!(decode_key(&encode_key(&key)).unwrap(), key);
        let entry = ClaimEntry {
            added_at: Timestamp::from_micros(-5),
            value: Value::from([("description", "x".into())]),
        };
        assert_eq!(decode_entry(&encode_entry(&entry)).unwrap(), entry);
    }

    #[test]
    fn the_value_bytes_of_an_entry_do_not_depend_on_its_time() {
        let value = Value::from([("description", "x".into())]);
        for time in [0, -1, 63, 64, 1_700_000_000_000_000, i64::MIN, i64::MAX] {
            let entry = encode_value(Timestamp::from_micros(time), &value);
            assert_eq!(value_bytes(&entry), pack(&value), "{time}");
        }
        assert_eq!(value_bytes(&[0x80]), b"");
    }

    #[test]
    fn fields_are_borrowed_as_they_were_written() {
        #[derive(Deserialize, Debug, PartialEq)]
        struct Fields<'a> {
            text: Option<&'a str>,
            none: Option<&'a str>,
            raw: &'a [u8],
        }
        let list = Value::List(vec![1_i64.into(), "x".into()]);
        let raw = Value::Bytes(vec![0, 1, 0xff]);
        let value = Value::from([("list", list), ("raw", raw), ("text", "as it is".into())]);
        let entry = encode_value(Timestamp::from_micros(-1), &value);
        let expected = Fields { text: Some("as it is"), none: None, raw: &[0, 1, 0xff] };
        assert_eq!(entry_fields::<Fields<'_>>(&entry).unwrap(), expected);
        for end in 0..entry.len() {
            assert!(entry_fields::<Fields<'_>>(entry.get(..end).unwrap()).is_err(), "{end}");
        }
        for wrong in [Value::Int(1), Value::from([("raw", 7_i64.into())])] {
            let entry = encode_value(Timestamp::default(), &wrong);
            assert!(entry_fields::<Fields<'_>>(&entry).is_err());
        }
    }

    #[test]
    fn an_entry_is_equal_to_its_value_only() {
        let value = |text: &str| Value::from([("confidence", 0.5.into()), ("note", text.into())]);
        let entry =
            encode_value(Timestamp::from_micros(1_700_000_000_000_000), &value("as it was"));
        assert_eq!(added_at(&entry).unwrap(), Timestamp::from_micros(1_700_000_000_000_000));
        assert!(has_value(&entry, &value("as it was")));
        for other in ["as it is", "as it", "as it was then", ""] {
            assert!(!has_value(&entry, &value(other)), "{other}");
        }
        assert!(!has_value(&entry, &Value::from([("confidence", 0.5.into())])));
        assert!(!has_value(entry.split_last().unwrap().1, &value("as it was")));
        let longer = [&*entry, &[0]].concat();
        assert!(!has_value(&longer, &value("as it was")));
        assert!(!has_value(b"", &Value::Null));
        assert!(added_at(b"").is_err());
    }

    #[test]
    fn a_purged_entry_keeps_its_hash_and_reads_as_its_new_value() {
        let key = encode_key(&Key::new(Kind::Note, "N1"));
        let value = |text: &str| Value::from([("text", text.into())]);
        let time = Timestamp::from_micros(1_700_000_000_000_000);
        let entry = encode_value(time, &value("hunter22"));
        let purge =
            |entry: &[u8], to: &str| purge_entry(&key, entry, |_| Some(pack(&value(to)))).unwrap();
        let once = purge(&entry, "purgedxx");
        let twice = purge(&once, "again-xx");
        let moved = rekey_entry(&key, &twice);
        for (purged, text) in [(&once, "purgedxx"), (&twice, "again-xx"), (&moved, "again-xx")] {
            assert_eq!(entry_hash(&key, purged), entry_hash(&key, &entry));
            assert_eq!(entry_hash(b"another key", purged), entry_hash(&key, &entry));
            let read = decode_entry(purged).unwrap();
            assert_eq!((read.added_at, read.value), (time, value(text)));
            assert_eq!(added_at(purged).unwrap(), time);
            assert!(has_value(purged, &value(text)) && !has_value(purged, &value("hunter22")));
        }
        assert_eq!(once.len(), twice.len());
        assert!(purge_entry(&key, &entry, |_| None).is_none());
        // The encoding of a time never begins like a purged entry.
        for time in [0, -1, 1, 63, 64, -64, -65, i64::MAX, i64::MIN] {
            let entry = encode_value(Timestamp::from_micros(time), &Value::Null);
            assert_eq!(kept_term(&entry), None);
        }
    }

    /// Regression test: the fields were not sorted again after a purge changed the name of one. So
    /// a purged claim differed from a claim with the same value.
    #[test]
    fn a_purged_entry_has_its_fields_in_order() {
        let key = encode_key(&Key::new(Kind::Note, "N1"));
        let fields = |name: &str| {
            let inner = Value::from([("q", 1_i64.into()), (name, 2_i64.into())]);
            Value::from([("rest", "b".into()), (name, inner), ("source", 0.5.into())])
        };
        let entry = encode_value(Timestamp::from_micros(7), &fields("s3cr3t"));
        let rewrite = |value: &[u8]| {
            super::super::rewrite_texts(value, |text| {
                (text == b"s3cr3t").then(|| b"purged".to_vec())
            })
        };
        let purged = purge_entry(&key, &entry, rewrite).unwrap();
        assert_eq!(decode_entry(&purged).unwrap().value, fields("purged"));
        assert!(has_value(&purged, &fields("purged")));
        assert!(has_same_content(
            &purged,
            &encode_value(Timestamp::from_micros(7), &fields("purged"))
        ));
        assert_eq!(entry_hash(&key, &purged), entry_hash(&key, &entry));
    }

    #[test]
    fn the_hash_of_an_entry_distinguishes_key_and_value() {
        assert_ne!(entry_hash(b"ab", b"c"), entry_hash(b"a", b"bc"));
    }
}

//! Converts keys to their form on disk: the part of a key that reveals its subject (a hash or an
//! id) is replaced by a keyed hash.

use crate::backend::{Cipher, Error, TableId, TableRow};

/// The bytes of a table's keys that are hidden. Numbers and times before and after them stay
/// readable, so that rows keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HiddenKeyBytes {
    /// The offset of the first hidden byte.
    pub at: usize,
    /// The number of hidden bytes, at most 16.
    pub bytes: usize,
    /// The number of leading hidden bytes that are hashed separately, so that keys with the same
    /// prefix up to there are stored together.
    pub bucket: usize,
}

/// Maps each table to the bytes that are hidden in its keys.
pub type KeyHidingRule = fn(TableId) -> Option<HiddenKeyBytes>;

impl HiddenKeyBytes {
    /// Creates a range of hidden bytes without a bucket.
    #[must_use]
    pub const fn new(at: usize, bytes: usize) -> Self {
        Self { at, bytes, bucket: 0 }
    }

    /// Returns the offset after the last hidden byte.
    pub(super) const fn end(self) -> usize {
        self.at + self.bytes
    }
}

/// Returns the keyed hash that replaces `key[hidden.at..upto]`. It also covers the bytes before
/// that part, so that equal parts after different bytes have different hashes.
fn name(cipher: &Cipher, table: TableId, key: &[u8], upto: usize) -> [u8; 32] {
    cipher.name(&[&[table.0, upto as u8], &key[..upto]])
}

/// Returns a key as stored on disk; `None` if it ends before its hidden bytes do.
pub(super) fn stored(
    cipher: &Cipher,
    hidden: Option<HiddenKeyBytes>,
    table: TableId,
    key: &[u8],
) -> Option<Vec<u8>> {
    let Some(hidden) = hidden else { return Some(key.to_vec()) };
    if key.len() < hidden.end() {
        return None;
    }
    let mut stored = key.to_vec();
    stored[hidden.at..hidden.end()]
        .copy_from_slice(&name(cipher, table, key, hidden.end())[..hidden.bytes]);
    if hidden.bucket > 0 {
        let bucket = bucket(cipher, hidden, table, key);
        stored[..bucket.len()].copy_from_slice(&bucket);
    }
    Some(stored)
}

/// Returns the common prefix on disk of all keys that agree with this key up to the end of its
/// bucket.
pub(super) fn bucket(
    cipher: &Cipher,
    hidden: HiddenKeyBytes,
    table: TableId,
    key: &[u8],
) -> Vec<u8> {
    let upto = hidden.at + hidden.bucket;
    let mut start = key[..hidden.at].to_vec();
    start.extend_from_slice(&name(cipher, table, key, upto)[..hidden.bucket]);
    start
}

/// Returns the plaintext of a row: the hidden bytes of its key, followed by its value.
pub(super) fn content(hidden: Option<HiddenKeyBytes>, key: &[u8], value: &[u8]) -> Vec<u8> {
    let part = hidden.map_or(&[][..], |hidden| &key[hidden.at..hidden.end()]);
    [part, value].concat()
}

/// Restores the key and value of a row from its key on disk and its decrypted content.
pub(super) fn decode_row(
    hidden: Option<HiddenKeyBytes>,
    table: TableId,
    mut key: Vec<u8>,
    mut content: Vec<u8>,
) -> Result<TableRow, Error> {
    let Some(hidden) = hidden else { return Ok((key, content)) };
    if key.len() < hidden.end() || content.len() < hidden.bytes {
        let what = format!("a row of table {} is shorter than its key", table.0);
        return Err(Error::DamagedIndex { what });
    }
    let value = content.split_off(hidden.bytes);
    key[hidden.at..hidden.end()].copy_from_slice(&content);
    Ok((key, value))
}

/// Returns the smallest key after all keys with this prefix; empty if there is none.
pub(crate) fn prefix_end(mut key: Vec<u8>) -> Vec<u8> {
    while let Some(last) = key.pop() {
        if last < u8::MAX {
            key.push(last + 1);
            break;
        }
    }
    key
}

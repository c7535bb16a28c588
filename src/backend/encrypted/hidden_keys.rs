//! Keys on disk: what of a key tells of what it is, a hash or an id, is replaced by a keyed hash of it.

use crate::backend::{Cipher, Error, TableId, TableRow};
use std::borrow::Cow;

/// Which bytes of a table's keys are hidden: numbers and times before and behind them stay, so that rows keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HiddenKeyBytes {
    /// Where they begin.
    pub at: usize,
    /// How many they are, at most 16.
    pub bytes: usize,
    /// So many of them are hidden by themselves: keys that begin alike up to there are found together.
    pub bucket: usize,
}

/// What is hidden in the keys of each table.
pub type KeyHidingRule = fn(TableId) -> Option<HiddenKeyBytes>;

impl HiddenKeyBytes {
    /// These bytes of a key.
    #[must_use]
    pub const fn new(at: usize, bytes: usize) -> Self {
        Self { at, bytes, bucket: 0 }
    }

    /// Where the hidden bytes end.
    pub(super) const fn end(self) -> usize {
        self.at + self.bytes
    }
}

/// What stands for `key[hidden.at..upto]`: of what stands before it too, so that the same in two places looks different.
fn name(cipher: &Cipher, table: TableId, key: &[u8], upto: usize) -> [u8; 32] {
    cipher.name(&[&[table.0, upto as u8], &key[..upto]])
}

/// A key as it stands on disk; `None` if it is shorter than keys of its table are.
pub(super) fn stored<'k>(
    cipher: &Cipher,
    hidden: Option<HiddenKeyBytes>,
    table: TableId,
    key: &'k [u8],
) -> Option<Cow<'k, [u8]>> {
    let Some(hidden) = hidden else { return Some(Cow::Borrowed(key)) };
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
    Some(Cow::Owned(stored))
}

/// How all keys begin on disk that begin as this one does, up to where its bucket ends.
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

/// What is encrypted of a row: the bytes that its key hides, then its value.
pub(super) fn content(hidden: Option<HiddenKeyBytes>, key: &[u8], value: &[u8]) -> Vec<u8> {
    let part = hidden.map_or(&[][..], |hidden| &key[hidden.at..hidden.end()]);
    [part, value].concat()
}

/// The key and the value of a row, of its key on disk and its content.
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

/// The first key behind all that begin so; empty if there is none.
pub(super) fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    while let Some(last) = key.pop() {
        if last < u8::MAX {
            key.push(last + 1);
            break;
        }
    }
    key
}

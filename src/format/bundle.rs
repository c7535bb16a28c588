//! Bundles: sessions as one file, with their records and objects unchanged. Specified in
//! `docs/format.md`.

use super::codec::{DecodeError, packed};
use crate::model::{OperationId, SessionMetadata};
use serde::{Deserialize, Serialize};

/// The latest version that is written and read. Another major version is rejected. Minor version 1
/// added ranges that continue an earlier export.
pub const BUNDLE_VERSION: (u8, u8) = (1, 1);
const MAGIC: &[u8; 14] = b"forge bundle\r\n";
/// Bytes before the first item.
pub const BUNDLE_HEADER_BYTES: usize = 16;
/// Bytes of an item before its content: its kind and the length of its content.
pub const ITEM_HEADER_BYTES: usize = 5;
/// Bytes of an item's check, after its content.
pub const ITEM_CHECK_BYTES: usize = 16;
/// Maximum size of an item: an object or a record.
const MAX_ITEM_BYTES: usize = super::MAX_OBJECT_BYTES + (1 << 20);

/// The kind of an item in a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleItemKind {
    /// [`BundleContents`]: the first item.
    Contents = 1,
    /// A stored object, before the record that names it.
    Object = 2,
    /// A record. Its session numbers refer to the list in the contents.
    Record = 3,
    /// [`BundleEnd`]: the last item.
    End = 4,
}

/// A session in a bundle, or a range of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleSession {
    /// The metadata of the session.
    pub info: SessionMetadata,
    /// The last sequence number before the range; 0 for the beginning.
    pub from: u64,
    /// The last sequence number of the range.
    pub to: u64,
    /// The operations that began before the range and continue in it.
    pub begun: Vec<BegunOperation>,
    /// The number of branches that the session had at the end of an earlier export, if the range
    /// continues that export. The export ended at `from`; with `from` 0, before the first number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<u64>,
}

impl BundleSession {
    /// Returns whether this is a range that needs what was written before it.
    #[must_use]
    pub const fn needs_earlier(&self) -> bool {
        self.from > 0 || self.continues.is_some()
    }
}

/// An operation that began before the start of a range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BegunOperation {
    /// The id of the operation.
    pub operation: OperationId,
    /// The number of its effects before the range.
    pub effects: u64,
}

/// A mark up to which a session was exported. The default is the beginning. It has a meaning only
/// in the store that made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportMark {
    /// The position after the last record that was exported.
    pub position: u64,
    /// The last sequence number of the session there.
    pub sequence: u64,
    /// The hash of the last record before that position.
    pub last: Option<[u8; 32]>,
}

/// The list of a bundle's contents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleContents {
    /// The sessions, in the order of their numbers.
    pub sessions: Vec<BundleSession>,
}

/// The number of objects and records in a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleEnd {
    /// Number of object items.
    pub objects: u64,
    /// Number of record items.
    pub records: u64,
}

packed!(BundleContents, "list of a bundle's contents");
packed!(BundleEnd, "end of a bundle");

/// Returns the first bytes of a bundle with these contents, with the earliest version that has all
/// of them.
#[must_use]
pub fn bundle_header(contents: &BundleContents) -> [u8; BUNDLE_HEADER_BYTES] {
    let mut header = [0; BUNDLE_HEADER_BYTES];
    let minor = u8::from(contents.sessions.iter().any(|session| session.continues.is_some()));
    let bytes = MAGIC.iter().chain([&BUNDLE_VERSION.0, &minor]);
    header.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    header
}

/// The running check of a bundle: each item's check covers all items before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleChain([u8; ITEM_CHECK_BYTES]);

impl BundleChain {
    /// Starts the check after the header of a bundle.
    ///
    /// # Errors
    /// [`DecodeError`] if the header is not that of a readable bundle.
    pub fn begin(header: &[u8; BUNDLE_HEADER_BYTES]) -> Result<Self, DecodeError> {
        let wrong = |reason: String| DecodeError::new("bundle", reason);
        if header.get(..MAGIC.len()) != Some(&MAGIC[..]) {
            return Err(wrong("it does not begin with the header of a bundle".to_owned()));
        }
        let (major, minor) = (header[14], header[15]);
        if major != BUNDLE_VERSION.0 {
            let (ours, _) = BUNDLE_VERSION;
            return Err(wrong(format!(
                "it is of version {major}.{minor}, and this forge reads version {ours}"
            )));
        }
        Ok(Self(check(&[header])))
    }

    /// Advances over an item and returns its check.
    pub fn next(&mut self, kind: u8, content: &[u8]) -> [u8; ITEM_CHECK_BYTES] {
        let length = (content.len() as u64).to_le_bytes();
        self.0 = check(&[&self.0, &[kind], &length, content]);
        self.0
    }

    /// Encodes the next item.
    #[must_use]
    pub fn item(&mut self, kind: BundleItemKind, content: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(ITEM_HEADER_BYTES + content.len() + ITEM_CHECK_BYTES);
        out.push(kind as u8);
        out.extend_from_slice(&(content.len() as u32).to_le_bytes());
        out.extend_from_slice(content);
        out.extend_from_slice(&self.next(kind as u8, content));
        out
    }
}

fn check(parts: &[&[u8]]) -> [u8; ITEM_CHECK_BYTES] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    *hasher.finalize().as_bytes().first_chunk().expect("16 of 32 bytes")
}

/// Decodes the kind of an item and the length of its content.
///
/// # Errors
/// [`DecodeError`] if the kind is unknown, or the length above the maximum.
pub fn item_header(bytes: [u8; ITEM_HEADER_BYTES]) -> Result<(BundleItemKind, usize), DecodeError> {
    let [kind, length @ ..] = bytes;
    let wrong = |reason: &str| DecodeError::new("item of a bundle", reason);
    let kind = match kind {
        1 => BundleItemKind::Contents,
        2 => BundleItemKind::Object,
        3 => BundleItemKind::Record,
        4 => BundleItemKind::End,
        _ => return Err(wrong("there is no such kind")),
    };
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_ITEM_BYTES {
        return Err(wrong("it says it is larger than any"));
    }
    Ok((kind, length))
}

//! Bundles: sessions as one file, with their records and objects as they are. `docs/format.md` specifies it.

use super::codec::{DecodeError, pack, unpack};
use crate::model::{OperationId, SessionMetadata};
use serde::{Deserialize, Serialize};

/// The version that is written. Another major one is refused.
pub const BUNDLE_VERSION: (u8, u8) = (1, 0);
const MAGIC: &[u8; 14] = b"forge bundle\r\n";
/// Bytes before the first item.
pub const BUNDLE_HEADER_BYTES: usize = 16;
/// Bytes before the content of an item: what it is, and its length.
pub const ITEM_HEADER_BYTES: usize = 5;
/// Bytes behind the content of an item.
pub const ITEM_CHECK_BYTES: usize = 16;
/// An item holds an object or a record, and neither is larger.
const MAX_ITEM_BYTES: usize = super::MAX_OBJECT_BYTES + (1 << 20);

/// What an item of a bundle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleItemKind {
    /// [`BundleContents`]: the first one.
    Contents = 1,
    /// A stored object, before the record that names it.
    Object = 2,
    /// A record, with the numbers of sessions as they stand in the contents.
    Record = 3,
    /// [`BundleEnd`]: the last one.
    End = 4,
}

/// A session of a bundle, or a range of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleSession {
    /// What it is.
    pub info: SessionMetadata,
    /// The last number before it; 0: from the beginning.
    pub from: u64,
    /// Its last number.
    pub to: u64,
    /// The operations that began before it and go on in it.
    pub begun: Vec<BegunOperation>,
}

/// An operation that a range begins in the middle of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BegunOperation {
    /// Its id.
    pub operation: OperationId,
    /// How many of its effects stand before the range.
    pub effects: u64,
}

/// What a bundle holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleContents {
    /// Its sessions, in the order of their numbers.
    pub sessions: Vec<BundleSession>,
}

/// How much a bundle holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleEnd {
    /// Objects that stand by themselves.
    pub objects: u64,
    /// Records.
    pub records: u64,
}

macro_rules! packed_item {
    ($name:ident, $what:literal) => {
        impl $name {
            /// The content of this item.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                pack(self)
            }

            /// The item this content stands for.
            ///
            /// # Errors
            /// If it is not one.
            pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
                unpack($what, bytes)
            }
        }
    };
}
packed_item!(BundleContents, "list of what a bundle holds");
packed_item!(BundleEnd, "end of a bundle");

/// The first bytes of a bundle.
#[must_use]
pub fn bundle_header() -> [u8; BUNDLE_HEADER_BYTES] {
    let mut header = [0; BUNDLE_HEADER_BYTES];
    let (major, minor) = BUNDLE_VERSION;
    let bytes = MAGIC.iter().chain([&major, &minor]);
    header.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    header
}

/// What ties an item to all that stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleChain([u8; ITEM_CHECK_BYTES]);

impl BundleChain {
    /// Behind the first bytes of a bundle.
    ///
    /// # Errors
    /// If they are not those of a bundle that can be read.
    pub fn begin(header: &[u8; BUNDLE_HEADER_BYTES]) -> Result<Self, DecodeError> {
        let wrong = |reason: String| DecodeError::new("bundle", reason);
        if header.get(..MAGIC.len()) != Some(&MAGIC[..]) {
            return Err(wrong("it does not begin as one".to_owned()));
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

    /// Moves on by an item and gives its check.
    pub fn next(&mut self, kind: u8, content: &[u8]) -> [u8; ITEM_CHECK_BYTES] {
        let length = (content.len() as u64).to_le_bytes();
        self.0 = check(&[&self.0, &[kind], &length, content]);
        self.0
    }

    /// The bytes of an item that comes next.
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

/// What an item is, and the length of its content.
///
/// # Errors
/// If there is no such item, or none so large.
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

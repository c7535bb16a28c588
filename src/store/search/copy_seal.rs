//! The pieces of the copy of texts for searching. Each has a length and a hash, by which it is
//! checked when it is read.

use crate::backend::{Cipher, EncryptionContext, SealKey};
use std::borrow::Cow;

/// The size of the head of a piece: the length of the content, and the first 16 bytes of its hash.
pub(super) const HEAD_BYTES: usize = 4 + 16;

/// What a piece belongs to. A piece is valid only for the owner and place it was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceOwner {
    /// The catalogue; the place is the offset in it.
    Catalogue,
    /// The block with this number: at place 0 its entries, at place 1 its texts.
    Block(u64),
    /// The group with this number: at place 0 the lengths of its pages, then the pages.
    Group(u64),
}

impl PieceOwner {
    fn bytes(self) -> [u8; 9] {
        let (kind, number) = match self {
            Self::Catalogue => (0, 0),
            Self::Block(number) => (1, number),
            Self::Group(number) => (2, number),
        };
        let mut bytes = [kind; 9];
        if let Some(rest) = bytes.last_chunk_mut() {
            *rest = number.to_le_bytes();
        }
        bytes
    }
}

/// Hashes the pieces of a copy. In a sealed store the hash depends on the store's key, so pieces
/// cannot be forged. In an encrypted store the content is encrypted too.
#[derive(Clone)]
pub(super) struct CopySeal {
    key: Option<[u8; 32]>,
    cipher: Option<Cipher>,
}

impl CopySeal {
    /// Creates the seal for the copy of a store with this key and cipher.
    pub(super) fn new(key: Option<&SealKey>, cipher: Option<&Cipher>) -> Self {
        Self { key: key.map(|key| *key.copies()), cipher: cipher.cloned() }
    }

    fn hash(&self, owner: &[u8], place: u64, content: &[u8]) -> blake3::Hash {
        let mut hasher =
            self.key.as_ref().map_or_else(blake3::Hasher::new, blake3::Hasher::new_keyed);
        hasher.update(owner).update(&place.to_le_bytes()).update(content);
        hasher.finalize()
    }

    /// Appends a piece to `out`.
    pub(super) fn put(&self, owner: PieceOwner, place: u64, content: Vec<u8>, out: &mut Vec<u8>) {
        let owner = owner.bytes();
        let content = match &self.cipher {
            Some(cipher) => cipher.seal(EncryptionContext::TextCopy(&owner, place), &content),
            None => content,
        };
        out.extend_from_slice(&(content.len() as u32).to_le_bytes());
        let hash = self.hash(&owner, place, &content);
        out.extend_from_slice(hash.as_bytes().get(..16).unwrap_or_default());
        out.extend_from_slice(&content);
    }

    /// Returns the content of the first piece of these bytes, and the bytes after the piece; `None`
    /// if the piece is not valid.
    pub(super) fn open<'b>(
        &self,
        owner: PieceOwner,
        place: u64,
        bytes: &'b [u8],
    ) -> Option<(Cow<'b, [u8]>, &'b [u8])> {
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
        let (content, rest) = rest.split_at_checked(length_of(head)?)?;
        let owner = owner.bytes();
        if !self.hash(&owner, place, content).as_bytes().starts_with(head.get(4..)?) {
            return None;
        }
        let content = match &self.cipher {
            Some(cipher) => {
                Cow::Owned(cipher.open(EncryptionContext::TextCopy(&owner, place), content).ok()?)
            }
            None => Cow::Borrowed(content),
        };
        Some((content, rest))
    }
}

/// Returns the bytes after the first piece, without checking the piece; `None` if it is cut off.
pub(super) fn skip(bytes: &[u8]) -> Option<&[u8]> {
    bytes.get(HEAD_BYTES.checked_add(length_of(bytes)?)?..)
}

fn length_of(head: &[u8]) -> Option<usize> {
    head.first_chunk().map(|bytes| u32::from_le_bytes(*bytes) as usize)
}

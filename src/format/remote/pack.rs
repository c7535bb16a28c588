//! Packs: the bytes of a bundle, encrypted in frames.

use super::{PackKey, RemoteFormatError, SessionPlace, after_magic, check_limit};
use crate::backend::{CIPHER_BYTES, ContentKey};
use crate::model::PackId;

const MAGIC: &[u8; 4] = b"fPk1";
const WHAT: &str = "pack";
/// Bytes of plaintext in each frame except the last.
const FRAME_BYTES: usize = 1 << 20;
const SEALED_FRAME_BYTES: usize = FRAME_BYTES + CIPHER_BYTES;
/// Maximum size of the bundle in a pack, in bytes.
pub const MAX_PACK_BYTES: usize = 127 << 20;
/// Maximum size of a pack as stored, in bytes.
pub const MAX_SEALED_PACK_BYTES: usize =
    MAGIC.len() + MAX_PACK_BYTES + MAX_PACK_BYTES / FRAME_BYTES * CIPHER_BYTES;

/// Encrypts the bytes of a bundle as the pack with this id.
///
/// # Errors
/// [`RemoteFormatError::TooLarge`] if there are more than [`MAX_PACK_BYTES`].
pub fn seal_pack(
    place: &SessionPlace,
    pack: &PackId,
    key: &PackKey,
    bytes: &[u8],
) -> Result<Vec<u8>, RemoteFormatError> {
    check_limit("pack in bytes", bytes.len(), MAX_PACK_BYTES)?;
    let content = ContentKey::new(*key.as_bytes());
    let place = place.associated_data(pack.as_bytes());
    let count = bytes.len().div_ceil(FRAME_BYTES).max(1);
    let mut sealed = Vec::with_capacity(MAGIC.len() + bytes.len() + count * CIPHER_BYTES);
    sealed.extend_from_slice(MAGIC);
    let mut rest = bytes;
    for number in 0..count {
        let (frame, after) = rest.split_at(FRAME_BYTES.min(rest.len()));
        let nonce = frame_nonce(number, number + 1 == count);
        sealed.extend(content.seal(nonce, &place, frame));
        rest = after;
    }
    Ok(sealed)
}

/// Decrypts a pack, and checks that it is whole and is the pack with this id.
///
/// # Errors
/// [`RemoteFormatError::Damaged`] if it was altered or cut, or is another pack;
/// [`RemoteFormatError::LaterVersion`]; [`RemoteFormatError::TooLarge`].
pub fn open_pack(
    place: &SessionPlace,
    pack: &PackId,
    key: &PackKey,
    sealed: &[u8],
) -> Result<Vec<u8>, RemoteFormatError> {
    check_limit("pack as stored, in bytes", sealed.len(), MAX_SEALED_PACK_BYTES)?;
    let frames = after_magic(WHAT, MAGIC, sealed)?;
    let content = ContentKey::new(*key.as_bytes());
    let place = place.associated_data(pack.as_bytes());
    let count = frames.len().div_ceil(SEALED_FRAME_BYTES);
    let mut bytes = Vec::with_capacity(frames.len().saturating_sub(count * CIPHER_BYTES));
    for (number, frame) in frames.chunks(SEALED_FRAME_BYTES).enumerate() {
        let is_last = number + 1 == count;
        let plain = content.open(frame_nonce(number, is_last), &place, frame);
        // Only an empty pack has an empty frame, so that each content has one division into frames.
        let plain = plain.filter(|plain| !plain.is_empty() || count == 1);
        let reason = || format!("frame {number} does not open with its key");
        bytes.extend(plain.ok_or_else(|| RemoteFormatError::damaged(WHAT, reason()))?);
    }
    if count == 0 {
        return Err(RemoteFormatError::damaged(WHAT, "it has no frame"));
    }
    Ok(bytes)
}

/// Returns the nonce of a frame. No other frame under the same key has this nonce: each pack has
/// its own key.
fn frame_nonce(number: usize, is_last: bool) -> [u8; 12] {
    let mut nonce = [0; 12];
    let bytes = (number as u64).to_le_bytes().into_iter().chain([u8::from(is_last)]);
    nonce.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
    nonce
}

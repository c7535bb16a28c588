//! The format of a remote: its marker, the refs and packs of its sessions, notices of purges, and
//! their names. Also what is kept outside of the remote: its keys, its key file and grants, and
//! what a machine has seen of it. Specified in `docs/format.md`, "Remotes".
//!
//! Others can write to a remote too. So every limit is checked when something is read and when it
//! is written, and no stored length is trusted.

mod foreign;
mod grant;
mod key_file;
mod keys;
mod marker;
mod names;
mod notice;
mod pack;
mod reference;
mod seen;
mod track;

pub use foreign::ForeignOperations;
pub use grant::RemoteGrant;
pub use key_file::{EarlierSecret, RemoteKeyFile, RotatedKey};
pub use keys::{PackKey, RemoteKeys, SessionKey};
pub use marker::{MAX_REMOTE_MARKER_BYTES, REMOTE_VERSION, RemoteMarker};
pub use names::{
    PACKS_PREFIX, REFS_PREFIX, REMOTE_MARKER_NAME, handle_in, notice_name, pack_in, pack_name,
    packs_prefix, ref_name,
};
pub use notice::{
    MAX_NOTICE_BYTES, MAX_NOTICE_LENGTHS, MAX_NOTICE_SECRETS, MAX_NOTICE_SESSIONS, PurgeNotice,
    PurgeTrack, ReplacedPacks, notice_parts,
};
pub use pack::{MAX_PACK_BYTES, MAX_SEALED_PACK_BYTES, open_pack, seal_pack};
pub use reference::{
    MAX_INLINE_BYTES, MAX_INLINE_PACK_BYTES, MAX_REF_BYTES, MAX_REF_LINKS, MAX_REF_PACKS,
    OpenedRef, RefPack, RefRelation, RefSummary, RemoteRef, SealedRef,
};
pub use seen::{SeenRef, SeenRefs};
pub use track::RefTrack;

use crate::format::codec;
use crate::model::{RemoteId, SessionHandle};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The length of the nonce before the ciphertext of a ref or notice.
const NONCE_BYTES: usize = 12;

/// Why something on a remote cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteFormatError {
    /// The key that was given is not the key of the remote.
    #[error("the key is not the key of this remote: ask for a key file from a place that uses it")]
    WrongKey,
    /// The bytes were altered or cut, belong to another place, or break a rule of the format.
    #[error("the {what} of the remote is damaged: {reason}")]
    Damaged {
        /// What is damaged: `marker`, `ref`, `pack`, `notice`, `key file` or `grant`.
        what: &'static str,
        /// How the damage was detected.
        reason: String,
    },
    /// A later version of forge wrote the bytes.
    #[error("the {what} of the remote needs {needs}: use a later version of forge")]
    LaterVersion {
        /// What has the version: `marker`, `ref`, `pack`, `notice`, `key file` or `grant`.
        what: &'static str,
        /// The version or feature that this version of forge lacks.
        needs: String,
    },
    /// The content or its encoding exceeds a limit of the format.
    #[error("the {what} is too large: {has}, and at most {most} are permitted")]
    TooLarge {
        /// What is counted, with its unit.
        what: &'static str,
        /// How much there is.
        has: u64,
        /// The limit.
        most: u64,
    },
}

impl RemoteFormatError {
    fn damaged(what: &'static str, reason: impl Into<String>) -> Self {
        Self::Damaged { what, reason: reason.into() }
    }
}

/// Rejects a number that exceeds a limit. `what` names what is counted, with its unit.
fn check_limit(what: &'static str, has: usize, most: usize) -> Result<(), RemoteFormatError> {
    if has <= most {
        return Ok(());
    }
    Err(RemoteFormatError::TooLarge { what, has: has as u64, most: most as u64 })
}

/// Encodes content that the caller then encrypts. Rejects more than `most` bytes; `counted` names
/// them in the error.
fn encode_content(
    counted: &'static str,
    content: &impl Serialize,
    most: usize,
) -> Result<Vec<u8>, RemoteFormatError> {
    let content = codec::pack(content);
    check_limit(counted, content.len(), most)?;
    Ok(content)
}

/// Decodes bytes from [`encode_content`].
fn decode_content<T: DeserializeOwned>(
    what: &'static str,
    counted: &'static str,
    content: &[u8],
    most: usize,
) -> Result<T, RemoteFormatError> {
    check_limit(counted, content.len(), most)?;
    codec::unpack(what, content)
        .map_err(|error| RemoteFormatError::damaged(what, error.to_string()))
}

/// Returns the nonce and the ciphertext of an object that begins with this magic.
fn nonce_and_ciphertext<'a>(
    what: &'static str,
    magic: &[u8; 4],
    bytes: &'a [u8],
) -> Result<(&'a [u8; NONCE_BYTES], &'a [u8]), RemoteFormatError> {
    let cut = || RemoteFormatError::damaged(what, "it ends too early");
    after_magic(what, magic, bytes)?.split_first_chunk().ok_or_else(cut)
}

/// Returns the bytes after a magic of four bytes, whose last byte is the version.
fn after_magic<'a>(
    what: &'static str,
    magic: &[u8; 4],
    bytes: &'a [u8],
) -> Result<&'a [u8], RemoteFormatError> {
    let damaged = || RemoteFormatError::damaged(what, "it does not begin as one");
    let (found, rest) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
    let [name @ .., ours] = magic;
    match found {
        found if found == magic => Ok(rest),
        [begin @ .., version] if begin == name && version.is_ascii_digit() && version > ours => {
            let needs = format!("version {}", char::from(*version));
            Err(RemoteFormatError::LaterVersion { what, needs })
        }
        _ => Err(damaged()),
    }
}

/// The place of a session on a remote. The ref and the packs of the session can be decrypted only
/// with the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionPlace {
    /// The remote.
    pub remote: RemoteId,
    /// The session on it.
    pub handle: SessionHandle,
}

impl SessionPlace {
    /// Returns the associated data for encrypting an object at this place.
    fn associated_data(&self, object: &[u8]) -> Vec<u8> {
        [self.remote.as_bytes(), self.handle.as_bytes(), object].concat()
    }
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a test may panic")]
mod tests;

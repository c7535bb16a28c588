//! Notices of purges. With them each clone finds what was purged elsewhere, without knowing the
//! secret. A store keeps the notices that it knows in a file for each remote.

use super::{
    NONCE_BYTES, RemoteFormatError, check_limit, decode_content, encode_content,
    nonce_and_ciphertext,
};
use crate::backend::{CIPHER_BYTES, ContentKey};
use crate::format::codec::packed;
use crate::model::{
    CloneId, MAX_HASHED_BYTES, MIN_HASHED_BYTES, NoticeSalt, PackId, RemoteId, SecretHash,
    SessionHandle, SessionId, Timestamp,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Maximum size of a notice as stored, in bytes.
pub const MAX_NOTICE_BYTES: usize = 512 << 10;
/// Maximum number of hashes in a notice.
pub const MAX_NOTICE_SECRETS: usize = 4096;
/// Maximum number of different lengths in a notice: each length takes one pass over all texts.
pub const MAX_NOTICE_LENGTHS: usize = 256;
/// Maximum number of sessions in a notice.
pub const MAX_NOTICE_SESSIONS: usize = 4096;

const MAGIC: &[u8; 4] = b"fPu1";
const WHAT: &str = "notice";
const COUNTED: &str = "notice in bytes";
/// Maximum size of a notice before it is encrypted.
const MAX_CONTENT_BYTES: usize = MAX_NOTICE_BYTES - MAGIC.len() - NONCE_BYTES - CIPHER_BYTES;

/// The content of a notice of a purge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PurgeNotice {
    /// The multiplier of the rolling hashes, an odd number.
    pub multiplier: u64,
    /// The key of the keyed hashes. The notices of one purge share it; each purge has another one.
    pub salt: NoticeSalt,
    /// The hashes of each form of the secrets; at most [`MAX_NOTICE_SECRETS`], of at most
    /// [`MAX_NOTICE_LENGTHS`] lengths.
    pub secrets: Vec<SecretHash>,
    /// The sessions that the clone had pushed with the secrets, as far as it knows; at most
    /// [`MAX_NOTICE_SESSIONS`].
    pub sessions: Vec<SessionHandle>,
    /// Why they were purged.
    pub reason: Option<String>,
    /// The clone that purged them.
    pub by: CloneId,
    /// When they were purged.
    pub time: Timestamp,
}

impl PurgeNotice {
    /// Encodes the content, without encryption.
    ///
    /// # Errors
    /// [`RemoteFormatError::TooLarge`] if it exceeds a limit; [`RemoteFormatError::Damaged`] if it
    /// breaks a rule of the format.
    pub fn encode(&self) -> Result<Vec<u8>, RemoteFormatError> {
        self.check()?;
        encode_content(COUNTED, self, MAX_CONTENT_BYTES)
    }

    /// Decodes what [`PurgeNotice::encode`] has returned.
    ///
    /// # Errors
    /// See [`PurgeNotice::encode`].
    pub fn decode(content: &[u8]) -> Result<Self, RemoteFormatError> {
        let decoded: Self = decode_content(WHAT, COUNTED, content, MAX_CONTENT_BYTES)?;
        decoded.check()?;
        Ok(decoded)
    }

    /// Encrypts the notice with this number of a remote.
    ///
    /// # Errors
    /// See [`PurgeNotice::encode`].
    pub fn seal(
        &self,
        (remote, number): (RemoteId, u64),
        key: &[u8; 32],
    ) -> Result<Vec<u8>, RemoteFormatError> {
        let content = self.encode()?;
        let place = place_bytes(remote, number);
        let nonce = nonce_of(key, &place, &content);
        let hidden = content_key(key).seal(nonce, &place, &content);
        Ok([&MAGIC[..], &nonce, &hidden].concat())
    }

    /// Decrypts a notice and checks that it is the one with this number of the remote.
    ///
    /// # Errors
    /// [`RemoteFormatError::Damaged`] if it was altered or cut, is another notice, or was written
    /// with another key; [`RemoteFormatError::LaterVersion`]; [`RemoteFormatError::TooLarge`].
    pub fn open(
        (remote, number): (RemoteId, u64),
        key: &[u8; 32],
        bytes: &[u8],
    ) -> Result<Self, RemoteFormatError> {
        check_limit("notice as stored, in bytes", bytes.len(), MAX_NOTICE_BYTES)?;
        let (nonce, hidden) = nonce_and_ciphertext(WHAT, MAGIC, bytes)?;
        let place = place_bytes(remote, number);
        let content = content_key(key).open(*nonce, &place, hidden);
        let content = content.ok_or_else(|| damaged("it does not open with the key of notices"))?;
        if *nonce != nonce_of(key, &place, &content) {
            return Err(damaged("its nonce does not match its content"));
        }
        Self::decode(&content)
    }

    fn check(&self) -> Result<(), RemoteFormatError> {
        check_limit("list of hashes of a notice", self.secrets.len(), MAX_NOTICE_SECRETS)?;
        check_limit("list of sessions of a notice", self.sessions.len(), MAX_NOTICE_SESSIONS)?;
        if self.multiplier.is_multiple_of(2) {
            return Err(damaged("its multiplier is even"));
        }
        let lengths: BTreeSet<u32> = self.secrets.iter().map(|secret| secret.length).collect();
        check_limit("list of lengths of a notice", lengths.len(), MAX_NOTICE_LENGTHS)?;
        if lengths.first().is_some_and(|length| (*length as usize) < MIN_HASHED_BYTES) {
            return Err(damaged("it names a text that is too short to be a secret"));
        }
        if lengths.last().is_some_and(|length| *length as usize > MAX_HASHED_BYTES) {
            return Err(damaged("it names a text that is too long to be a secret"));
        }
        Ok(())
    }
}

/// Divides the hashes of the secrets of a purge into parts that fit into one notice each.
#[must_use]
pub fn notice_parts(mut hashes: Vec<SecretHash>) -> Vec<Vec<SecretHash>> {
    hashes.sort_unstable();
    let mut parts: Vec<Vec<SecretHash>> = Vec::new();
    let (mut part, mut lengths) = (Vec::new(), BTreeSet::new());
    for hash in hashes {
        lengths.insert(hash.length);
        if part.len() == MAX_NOTICE_SECRETS || lengths.len() > MAX_NOTICE_LENGTHS {
            parts.push(std::mem::take(&mut part));
            lengths = BTreeSet::from([hash.length]);
        }
        part.push(hash);
    }
    parts.extend((!part.is_empty()).then_some(part));
    parts
}

/// Returns the associated data of a notice.
fn place_bytes(remote: RemoteId, number: u64) -> Vec<u8> {
    [&remote.as_bytes()[..], &number.to_le_bytes(), WHAT.as_bytes()].concat()
}

fn content_key(key: &[u8; 32]) -> ContentKey {
    ContentKey::new(blake3::derive_key("forge content of a notice, version 1", key))
}

/// Returns the nonce of a content: the beginning of a keyed hash, different for each content.
fn nonce_of(key: &[u8; 32], place: &[u8], content: &[u8]) -> [u8; NONCE_BYTES] {
    let key = blake3::derive_key("forge nonce of a notice, version 1", key);
    let mut hasher = blake3::Hasher::new_keyed(&key);
    hasher.update(place).update(content);
    *hasher.finalize().as_bytes().first_chunk().expect("12 of 32 bytes")
}

fn damaged(reason: impl Into<String>) -> RemoteFormatError {
    RemoteFormatError::damaged(WHAT, reason)
}

/// Packs that a session had before it was rewritten, and that must be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplacedPacks {
    /// The session.
    pub handle: SessionHandle,
    /// The names of the packs.
    pub packs: Vec<PackId>,
}

/// What a store knows of the notices of a remote, and what it still has to do because of purges.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PurgeTrack {
    /// The notices on the remote that were read, from number 0 on.
    pub notices: Vec<PurgeNotice>,
    /// How many of them the store was searched for.
    pub searched: u64,
    /// The notices that are to be written.
    pub pending: Vec<PurgeNotice>,
    /// Sessions that must be rewritten although their operations do not show it.
    pub rewrites: Vec<SessionId>,
    /// The packs that must be removed.
    pub replaced: Vec<ReplacedPacks>,
    /// Sessions that contain something that was purged elsewhere and cannot be purged here. A push
    /// searches the whole of such a session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<SessionId>,
}

packed!(PurgeTrack, "list of notices of purges", magic = b"fPt1");

//! The ref of a session on a remote: the session's only object that changes. It names the session's
//! packs.

use super::{
    MAX_SEALED_PACK_BYTES, NONCE_BYTES, PackKey, RemoteFormatError, SeenRef, SessionKey,
    SessionPlace, check_limit, decode_content, encode_content, nonce_and_ciphertext,
};
use crate::backend::{CIPHER_BYTES, ContentKey};
use crate::format::record::RecordBytes;
use crate::model::{
    CloneId, PackHash, PackId, RefLink, RefNonce, RevisionId, SessionMetadata, Timestamp,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Maximum size of a ref as stored, in bytes.
pub const MAX_REF_BYTES: usize = 64 << 10;
/// Maximum number of packs in a ref.
pub const MAX_REF_PACKS: usize = 64;
/// Maximum number of links in a ref.
pub const MAX_REF_LINKS: usize = 32;
/// Maximum size of a pack inside a ref, in bytes.
pub const MAX_INLINE_PACK_BYTES: usize = 16 << 10;
/// Maximum size of all packs inside a ref, in bytes.
pub const MAX_INLINE_BYTES: usize = 32 << 10;

const MAGIC: &[u8; 4] = b"fRm1";
const WHAT: &str = "ref";
const COUNTED: &str = "ref in bytes";
/// Maximum size of a ref before it is encrypted.
const MAX_CONTENT_BYTES: usize = MAX_REF_BYTES - MAGIC.len() - NONCE_BYTES - CIPHER_BYTES;

/// The content of a ref.
///
/// No two refs have equal contents, since each has its own [`nonce`](Self::nonce).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteRef {
    /// The number of this version of the ref: 1 for the first one, and 1 more with each write.
    pub version: u64,
    /// The links of the versions directly before this one, oldest first; at most
    /// [`MAX_REF_LINKS`].
    pub links: Vec<RefLink>,
    /// The clone that wrote this version.
    pub by: CloneId,
    /// Random bytes, by which a writer recognises its own version.
    pub nonce: RefNonce,
    /// The metadata of the session.
    pub info: SessionMetadata,
    /// The clone that began the session.
    pub home: CloneId,
    /// The number of notices of purges that this version takes into account.
    pub purges: u64,
    /// The packs, oldest first; at most [`MAX_REF_PACKS`].
    pub packs: Vec<RefPack>,
    /// Figures for lists of sessions.
    pub summary: RefSummary,
}

/// A pack of a session, as its ref names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefPack {
    /// The name of the pack.
    pub name: PackId,
    /// The first version of the ref whose changes it holds.
    pub first: u64,
    /// The last version of the ref whose changes it holds.
    pub last: u64,
    /// The size of the pack as stored, in bytes.
    pub bytes: u64,
    /// The hash of the pack as stored.
    pub hash: PackHash,
    /// The key of the pack.
    pub key: PackKey,
    /// The number of operations in it.
    pub operations: u64,
    /// The clone that pushed the content of the pack; [`CloneId::SEVERAL`] if more than one did.
    pub by: CloneId,
    /// When it was written.
    pub time: Timestamp,
    /// The stored form of the pack, if it is kept here instead of in an object of its own; at most
    /// [`MAX_INLINE_PACK_BYTES`], and [`MAX_INLINE_BYTES`] for all packs together.
    pub inline: Option<RecordBytes>,
}

/// Figures about a session, so that a list needs no packs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefSummary {
    /// The head of the current branch.
    pub head: Option<RevisionId>,
    /// The current branch.
    pub branch: String,
    /// The number of branches.
    pub branches: u64,
    /// The number of revisions and checkpoints.
    pub last_sequence: u64,
    /// The number of checkpoints.
    pub checkpoints: u64,
    /// The number of claims on the current branch.
    pub claims: u64,
    /// The number of facts.
    pub facts: u64,
    /// The time of the latest revision, checkpoint or fact.
    pub last_event: Option<Timestamp>,
}

/// A ref as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedRef {
    /// The bytes of the object.
    pub bytes: Vec<u8>,
    /// The link of this version.
    pub link: RefLink,
}

/// A ref that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedRef {
    /// The content.
    pub content: RemoteRef,
    /// The link of this version: a keyed hash of the content, and so of the link before it.
    pub link: RefLink,
}

/// How a ref relates to the version of it that was seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefRelation {
    /// It is the version that was seen.
    Same,
    /// It follows the version that was seen.
    Later,
    /// It is later by more versions than it has links, so it may or may not follow the version that
    /// was seen.
    LaterUnlinked,
    /// It is older than the version that was seen.
    SetBack,
    /// It belongs to another history: the link of the version that was seen is not in it.
    Replaced,
}

impl RemoteRef {
    /// Encodes the content, without encryption.
    ///
    /// # Errors
    /// [`RemoteFormatError::TooLarge`] if it exceeds a limit; [`RemoteFormatError::Damaged`] if it
    /// breaks a rule of the format.
    pub fn encode(&self) -> Result<Vec<u8>, RemoteFormatError> {
        self.check()?;
        encode_content(COUNTED, self, MAX_CONTENT_BYTES)
    }

    /// Decodes what [`RemoteRef::encode`] has returned.
    ///
    /// # Errors
    /// See [`RemoteRef::encode`].
    pub fn decode(content: &[u8]) -> Result<Self, RemoteFormatError> {
        let decoded: Self = decode_content(WHAT, COUNTED, content, MAX_CONTENT_BYTES)?;
        decoded.check()?;
        Ok(decoded)
    }

    /// Encrypts the ref for the place where it is stored.
    ///
    /// # Errors
    /// See [`RemoteRef::encode`].
    pub fn seal(
        &self,
        place: &SessionPlace,
        key: &SessionKey,
    ) -> Result<SealedRef, RemoteFormatError> {
        let content = self.encode()?;
        let place = place.associated_data(WHAT.as_bytes());
        let link = link_of(key, &place, &content);
        let nonce = nonce_of(&link);
        let hidden = ContentKey::new(key.content()).seal(nonce, &place, &content);
        Ok(SealedRef { bytes: [&MAGIC[..], &nonce, &hidden].concat(), link })
    }

    /// Decrypts a ref and checks that it was written for its place.
    ///
    /// # Errors
    /// [`RemoteFormatError::Damaged`] if it was altered or cut, is the ref of another session, or
    /// was written with another key; [`RemoteFormatError::LaterVersion`];
    /// [`RemoteFormatError::TooLarge`].
    pub fn open(
        place: &SessionPlace,
        key: &SessionKey,
        bytes: &[u8],
    ) -> Result<OpenedRef, RemoteFormatError> {
        check_limit("ref as stored, in bytes", bytes.len(), MAX_REF_BYTES)?;
        let (nonce, hidden) = nonce_and_ciphertext(WHAT, MAGIC, bytes)?;
        let place = place.associated_data(WHAT.as_bytes());
        let content = ContentKey::new(key.content()).open(*nonce, &place, hidden);
        let unopened = || damaged("it does not open with the key of its session");
        let content = content.ok_or_else(unopened)?;
        let link = link_of(key, &place, &content);
        if *nonce != nonce_of(&link) {
            return Err(damaged("its nonce does not match its content"));
        }
        Ok(OpenedRef { content: Self::decode(&content)?, link })
    }

    fn check(&self) -> Result<(), RemoteFormatError> {
        check_limit("list of links of a ref", self.links.len(), MAX_REF_LINKS)?;
        check_limit("list of packs of a ref", self.packs.len(), MAX_REF_PACKS)?;
        // The next version must have a number too.
        if self.version == 0 || self.version == u64::MAX {
            return Err(damaged("its version is out of range"));
        }
        if self.links.len() as u64 >= self.version {
            return Err(damaged("it has more links than earlier versions"));
        }
        let mut covered = 0;
        for pack in &self.packs {
            pack.check()?;
            if pack.first <= covered || pack.last < pack.first || pack.last > self.version {
                return Err(damaged("its packs are not in the order of their versions"));
            }
            covered = pack.last;
        }
        let names: BTreeSet<_> = self.packs.iter().map(|pack| pack.name).collect();
        if names.len() < self.packs.len() {
            return Err(damaged("it names a pack twice"));
        }
        let inline = self.packs.iter().filter_map(|pack| pack.inline.as_ref());
        let inline = inline.map(|bytes| bytes.0.len()).sum();
        check_limit("size of all packs in a ref, in bytes", inline, MAX_INLINE_BYTES)
    }
}

impl RefPack {
    fn check(&self) -> Result<(), RemoteFormatError> {
        if self.bytes > MAX_SEALED_PACK_BYTES as u64 {
            let most = MAX_SEALED_PACK_BYTES as u64;
            let what = "pack as stored, in bytes";
            return Err(RemoteFormatError::TooLarge { what, has: self.bytes, most });
        }
        if let Some(inline) = &self.inline {
            check_limit("pack in a ref, in bytes", inline.0.len(), MAX_INLINE_PACK_BYTES)?;
            self.check_stored(&inline.0)?;
        }
        Ok(())
    }

    /// Checks that these bytes are the pack as it was stored, without opening it: see
    /// [`open_pack`](super::open_pack).
    ///
    /// # Errors
    /// [`RemoteFormatError::Damaged`].
    pub fn check_stored(&self, sealed: &[u8]) -> Result<(), RemoteFormatError> {
        let hash = blake3::hash(sealed);
        if sealed.len() as u64 == self.bytes && hash.as_bytes() == self.hash.as_bytes() {
            return Ok(());
        }
        let reason = "it is not the one that its ref names";
        Err(RemoteFormatError::damaged("pack", reason))
    }
}

impl OpenedRef {
    /// Returns the part of this version that a witness keeps.
    #[must_use]
    pub const fn seen(&self) -> SeenRef {
        SeenRef { version: self.content.version, link: self.link }
    }

    /// Returns the links for the version after this one.
    #[must_use]
    pub fn next_links(&self) -> Vec<RefLink> {
        let before = &self.content.links;
        let kept = before.len().min(MAX_REF_LINKS - 1);
        before.iter().skip(before.len() - kept).chain([&self.link]).copied().collect()
    }

    /// Returns the version after this one with the same content, by this clone.
    #[must_use]
    pub fn rewritten(&self, by: CloneId, nonce: RefNonce) -> RemoteRef {
        let (version, links) = (self.content.version + 1, self.next_links());
        RemoteRef { version, links, by, nonce, ..self.content.clone() }
    }

    /// Returns how this ref relates to the version of it that was seen before.
    #[must_use]
    pub fn relation(&self, seen: &SeenRef) -> RefRelation {
        let same = |link: &RefLink, if_same| {
            if *link == seen.link { if_same } else { RefRelation::Replaced }
        };
        let Some(ahead) = self.content.version.checked_sub(seen.version) else {
            return RefRelation::SetBack;
        };
        if ahead == 0 {
            return same(&self.link, RefRelation::Same);
        }
        let ahead = usize::try_from(ahead).unwrap_or(usize::MAX);
        match self.content.links.iter().rev().nth(ahead - 1) {
            Some(link) => same(link, RefRelation::Later),
            None => RefRelation::LaterUnlinked,
        }
    }
}

/// Returns the link of a version: a keyed hash of the content, which contains the links before it.
fn link_of(key: &SessionKey, place: &[u8], content: &[u8]) -> RefLink {
    let mut hasher = blake3::Hasher::new_keyed(&key.links());
    hasher.update(place).update(content);
    RefLink::from_bytes(hasher.finalize().into())
}

/// Returns the nonce of a content: the beginning of its link, which is different for each content.
fn nonce_of(link: &RefLink) -> [u8; NONCE_BYTES] {
    *link.as_bytes().first_chunk().expect("12 of 32 bytes")
}

fn damaged(reason: impl Into<String>) -> RemoteFormatError {
    RemoteFormatError::damaged(WHAT, reason)
}

//! Encrypts the content that an encrypted store writes to disk. `docs/encryption.md` lists what is
//! hidden.
//!
//! AES-256-GCM-SIV (RFC 8452). The nonce is derived from the place of the data, so it is not stored
//! and needs no random numbers. Writing to the same place twice, also in two copies of a store,
//! reuses a nonce. The construction is resistant to nonce misuse: a reused nonce reveals only
//! whether the two plaintexts are equal.

use super::{Error, IntegrityBreach, LogPosition, TableId};
use aes_gcm_siv::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm_siv::{Aes256GcmSiv, Key};
use std::fmt;
use std::sync::Arc;

/// Bytes that encryption adds to a plaintext.
pub const CIPHER_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;

/// The place of encrypted data. It is the associated data of the encryption, so a ciphertext can be
/// decrypted only at its own place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EncryptionContext<'a> {
    /// The payload of the journal record at a position.
    Record(LogPosition),
    /// The value of a row, under its key on disk.
    Row(TableId, &'a [u8]),
    /// A spooled write, by its name.
    Spooled(&'a str),
    /// A piece of the text copy for searching: its owner, and its place among the owner's pieces.
    TextCopy(&'a [u8], u64),
}

impl EncryptionContext<'_> {
    /// Returns the associated data, which is unique for each place.
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Record(position) => [&[1][..], &position.to_le_bytes()].concat(),
            Self::Row(table, key) => [&[2, table.0], key].concat(),
            Self::Spooled(name) => [&[3], name.as_bytes()].concat(),
            Self::TextCopy(session, at) => [&[4], &at.to_le_bytes()[..], session].concat(),
        }
    }
}

impl fmt::Display for EncryptionContext<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Record(position) => write!(out, "the record at position {position}"),
            Self::Row(table, _) => write!(out, "a row of table {} of the index", table.0),
            Self::Spooled(name) => write!(out, "the write '{name}' in the spool"),
            Self::TextCopy(_, place) => {
                write!(out, "a piece of the copy of texts, at place {place}")
            }
        }
    }
}

/// Implements `Debug` for types that hold secrets, are large, or have fields without `Debug`: it
/// shows no more than the name of the type, or the name and some of the fields.
macro_rules! debug_by_name {
    ($($name:ident),+) => {
        $(impl std::fmt::Debug for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str(stringify!($name))
            }
        })+
    };
    ($name:ident { $($field:ident),+ }) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut shown = out.debug_struct(stringify!($name));
                $(shown.field(stringify!($field), &self.$field);)+
                shown.finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use debug_by_name;

/// AES-256-GCM-SIV under one key. The caller chooses nonces and associated data.
pub(crate) struct ContentKey(Aes256GcmSiv);

impl ContentKey {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        Self(Aes256GcmSiv::new(&Key::<Aes256GcmSiv>::from(key)))
    }

    /// Returns the encrypted bytes, which are [`CIPHER_BYTES`] longer.
    pub(crate) fn seal(&self, nonce: [u8; NONCE_BYTES], aad: &[u8], plain: &[u8]) -> Vec<u8> {
        let hidden = self.0.encrypt(&nonce.into(), Payload { msg: plain, aad });
        hidden.expect("the cipher refuses only data of more than 64 GiB")
    }

    /// Returns the decrypted bytes; `None` if they were not encrypted with this key, nonce and
    /// associated data.
    pub(crate) fn open(
        &self,
        nonce: [u8; NONCE_BYTES],
        aad: &[u8],
        hidden: &[u8],
    ) -> Option<Vec<u8>> {
        self.0.decrypt(&nonce.into(), Payload { msg: hidden, aad }).ok()
    }
}

/// The keys of an encrypted store. Cheap to clone.
#[derive(Clone)]
pub struct Cipher(Arc<CipherKeys>);

struct CipherKeys {
    content: ContentKey,
    nonces: [u8; 32],
    names: [u8; 32],
}

impl Cipher {
    /// Derives the keys from the store's encryption secret.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        let derive = |purpose: &str| blake3::derive_key(purpose, secret);
        let content = derive("forge content of an encrypted store, version 1");
        Self(Arc::new(CipherKeys {
            content: ContentKey::new(content),
            nonces: derive("forge nonces of an encrypted store, version 1"),
            names: derive("forge names of an encrypted store, version 1"),
        }))
    }

    fn nonce(&self, place: &[u8]) -> [u8; NONCE_BYTES] {
        let hash = blake3::keyed_hash(&self.0.nonces, place);
        *hash.as_bytes().first_chunk().expect("12 of 32 bytes")
    }

    /// Encrypts the data of a place.
    #[must_use]
    pub(crate) fn seal(&self, place: EncryptionContext<'_>, plain: &[u8]) -> Vec<u8> {
        let aad = place.bytes();
        self.0.content.seal(self.nonce(&aad), &aad, plain)
    }

    /// Decrypts the data of a place and checks that it was encrypted for that place.
    ///
    /// # Errors
    /// [`Error::Breach`] if the data does not decrypt there.
    pub(crate) fn open(
        &self,
        place: EncryptionContext<'_>,
        hidden: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let aad = place.bytes();
        let plain = self.0.content.open(self.nonce(&aad), &aad, hidden);
        plain.ok_or_else(|| {
            let what = format!("{place} cannot be decrypted with the store's key");
            Error::Breach { breach: IntegrityBreach::Altered, what }
        })
    }

    /// Returns a keyed hash of these parts in a row. It replaces a name or hash that must not be
    /// readable on disk.
    pub(crate) fn name(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0.names);
        parts.iter().for_each(|part| {
            hasher.update(part);
        });
        hasher.finalize().into()
    }
}

debug_by_name!(Cipher);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::hex;

    const PLACES: [EncryptionContext<'_>; 6] = [
        EncryptionContext::Record(7),
        EncryptionContext::Record(8),
        EncryptionContext::Row(TableId(7), b"key"),
        EncryptionContext::Row(TableId(8), b"key"),
        EncryptionContext::Spooled("key"),
        EncryptionContext::TextCopy(b"key", 7),
    ];

    #[test]
    fn encrypted_bytes_open_only_with_their_key_in_their_context() {
        let cipher = Cipher::new(&[1; 32]);
        for place in PLACES {
            let hidden = cipher.seal(place, b"forge");
            assert_eq!(hidden.len(), 5 + CIPHER_BYTES);
            assert_eq!(cipher.open(place, &hidden).unwrap(), b"forge");
            let other = Cipher::new(&[2; 32]);
            assert!(matches!(other.open(place, &hidden), Err(Error::Breach { .. })));
            for elsewhere in PLACES.into_iter().filter(|other| *other != place) {
                assert!(cipher.open(elsewhere, &hidden).is_err(), "{place} at {elsewhere}");
            }
            for bit in 0..hidden.len() * 8 {
                let mut wrong = hidden.clone();
                wrong[bit / 8] ^= 1 << (bit % 8);
                assert!(cipher.open(place, &wrong).is_err(), "bit {bit}");
            }
            assert!(cipher.open(place, &hidden[..CIPHER_BYTES - 1]).is_err());
        }
        assert_eq!(format!("{cipher:?}"), "Cipher");
    }

    /// The bytes were computed by other implementations of AES-GCM-SIV and BLAKE3, following
    /// `docs/format.md`.
    #[test]
    fn encrypted_bytes_are_the_golden_bytes() {
        let cipher = Cipher::new(&[1; 32]);
        assert_eq!(
            hex(&cipher.seal(EncryptionContext::Record(0x1122), b"forge")),
            "1a4abb14a74207546baa0cf2b7178674147ca81ba5"
        );
        assert_eq!(
            hex(&cipher.seal(EncryptionContext::Row(TableId(2), b"key"), b"forge")),
            "126afd9d643af101dcbce3487dcdff23e803b3bf34"
        );
        assert_eq!(hex(&cipher.name(&[b"na", b"me"])[..8]), "901ea5bffe02ab2a");
    }

    #[test]
    fn equal_texts_encrypt_equally_in_one_context_and_differently_in_two() {
        let cipher = Cipher::new(&[1; 32]);
        let [first, second] = [7, 8].map(|at| cipher.seal(EncryptionContext::Record(at), &[0; 64]));
        assert_eq!(first, cipher.seal(EncryptionContext::Record(7), &[0; 64]));
        assert!(first.iter().zip(&second).filter(|(a, b)| a == b).count() < 16);
    }
}

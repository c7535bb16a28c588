//! Seals: what only the holder of a store's key can have written. The key stays outside the store.

use super::RecordHash;
use std::fmt;

/// Bytes of a seal.
pub(crate) const SEAL_BYTES: usize = 28;

/// What the seals of a store are made with: keys of one store, derived from a secret that is kept outside of it.
#[derive(Clone)]
pub struct SealKey {
    records: [u8; 32],
    generations: [u8; 32],
    spool: [u8; 32],
    copies: [u8; 32],
}

impl SealKey {
    /// The key of a store: of a secret, and of what its `FORMAT` says of the store.
    #[must_use]
    pub fn new(secret: &[u8; 32], store: &[u8; 16], hash_key: &[u8; 32]) -> Self {
        let derive = |purpose: &str| {
            let mut hasher = blake3::Hasher::new_derive_key(purpose);
            hasher.update(secret).update(store).update(hash_key);
            hasher.finalize().into()
        };
        Self {
            records: derive("forge seal of a record, version 1"),
            generations: derive("forge seal of a generation, version 1"),
            spool: derive("forge seal of a waiting write, version 1"),
            copies: derive("forge seal of a derived copy, version 1"),
        }
    }

    /// The seal of a record: its hash says what it holds, where it stands and what stands before it.
    #[must_use]
    pub(crate) fn record(&self, hash: &RecordHash) -> [u8; SEAL_BYTES] {
        short(&self.records, hash)
    }

    /// The seal of a generation of the index, of what is said of its files.
    #[must_use]
    pub(crate) fn generation(&self, said: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(&self.generations, said)
    }

    /// The seal of a write that waits in the spool.
    #[must_use]
    pub(crate) fn spooled(&self, bytes: &[u8]) -> [u8; SEAL_BYTES] {
        short(&self.spool, bytes)
    }

    /// What a derived copy of texts is keyed with.
    #[must_use]
    pub(crate) const fn copies(&self) -> &[u8; 32] {
        &self.copies
    }
}

fn short(key: &[u8; 32], bytes: &[u8]) -> [u8; SEAL_BYTES] {
    *blake3::keyed_hash(key, bytes).as_bytes().first_chunk().expect("28 of 32 bytes")
}

impl fmt::Debug for SealKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("SealKey")
    }
}

/// What is known of the seals of a store.
#[derive(Clone, Debug, Default)]
pub enum SealMode {
    /// It has none.
    #[default]
    Absent,
    /// It has some, and the key is not here: they cannot be checked, nor any made.
    Unknown,
    /// They are checked and made with this key.
    Keyed(SealKey),
}

impl SealMode {
    /// The key, if it is here.
    #[must_use]
    pub const fn key(&self) -> Option<&SealKey> {
        match self {
            Self::Keyed(key) => Some(key),
            Self::Absent | Self::Unknown => None,
        }
    }
}

/// How a store was found not to be what the holder of its key has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegrityBreach {
    /// Something bears a seal that does not fit: it was altered, forged, or brought from another place.
    Altered,
    /// Something bears no seal: it was not written with the key.
    Unsealed,
    /// Something that was sealed is missing.
    Missing,
    /// The store ends before what its witness saw: it was cut short, or an older copy was put in its place.
    RolledBack,
    /// The store is not the one that its witness saw.
    Replaced,
}

impl IntegrityBreach {
    /// Its name in answers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Altered => "altered",
            Self::Unsealed => "unsealed",
            Self::Missing => "missing",
            Self::RolledBack => "set_back",
            Self::Replaced => "replaced",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Made by another implementation of blake3, from what `docs/format.md` says.
    #[test]
    fn seals_have_the_golden_bytes() {
        let key = SealKey::new(&[1; 32], &[2; 16], &[3; 32]);
        let mut hash = [0; 32];
        let digits = "2ce6c74798babf52eed96ae1c1851011722d91ec63b8c5bea6e9d4865360fa05";
        for (place, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).unwrap();
        }
        assert_eq!(
            hex(&key.record(&hash)),
            "29390831fd233f55e98d3200b67c2d0c4358341614a446b21411a599"
        );
        assert_eq!(
            hex(&key.spooled(b"namebytes")),
            "8a65e034a20c3c1662ebd5e083512ca4a1dbfc2844f79d709f4cc8e7"
        );
    }

    #[test]
    fn a_key_seals_for_one_store_and_one_purpose() {
        let key = SealKey::new(&[1; 32], &[2; 16], &[3; 32]);
        let others = [
            SealKey::new(&[9; 32], &[2; 16], &[3; 32]),
            SealKey::new(&[1; 32], &[9; 16], &[3; 32]),
            SealKey::new(&[1; 32], &[2; 16], &[9; 32]),
        ];
        for other in others {
            assert_ne!(key.record(&[7; 32]), other.record(&[7; 32]));
        }
        assert_ne!(key.record(&[7; 32]), key.spooled(&[7; 32]));
        assert_ne!(key.record(&[7; 32])[..], key.generation(&[7; 32]).as_bytes()[..SEAL_BYTES]);
        assert_eq!(format!("{key:?}"), "SealKey");
    }
}

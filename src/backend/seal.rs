//! Seals: keyed hashes that only the holder of a store's key can compute. The key is kept outside
//! the store.

use super::{RecordHash, TableId, debug_by_name};

pub(crate) const SEAL_BYTES: usize = 28;
pub(crate) const ROW_SEAL_BYTES: usize = 16;

/// The keys of a store's seals, derived from a secret that is kept outside the store.
#[derive(Clone)]
pub struct SealKey {
    records: [u8; 32],
    generations: [u8; 32],
    spool: [u8; 32],
    copies: [u8; 32],
    rows: [u8; 32],
}

impl SealKey {
    /// Derives the keys of a store from its secret and the identity in its `FORMAT`.
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
            rows: derive("forge seal of a row, version 1"),
        }
    }

    /// Returns the seal of a record with this hash, which covers the record's content, its position
    /// and the previous record.
    #[must_use]
    pub(crate) fn record(&self, hash: &RecordHash) -> [u8; SEAL_BYTES] {
        short(&self.records, hash)
    }

    /// Returns the seal of a generation of the index: a hash of the list of its files.
    #[must_use]
    pub(crate) fn generation(&self, content: &[u8]) -> blake3::Hash {
        blake3::keyed_hash(&self.generations, content)
    }

    /// Returns the seal of a spooled write: a hash of its name and its content.
    #[must_use]
    pub(crate) fn spooled(&self, bytes: &[u8]) -> [u8; SEAL_BYTES] {
        short(&self.spool, bytes)
    }

    /// Returns the seal of a row of an index.
    #[must_use]
    pub(crate) fn row(&self, table: TableId, key: &[u8], value: &[u8]) -> [u8; ROW_SEAL_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.rows);
        let length = u32::try_from(key.len()).unwrap_or(u32::MAX);
        hasher.update(&[table.0]).update(&length.to_le_bytes()).update(key).update(value);
        *hasher.finalize().as_bytes().first_chunk().expect("16 of 32 bytes")
    }

    /// Returns the key for derived copies of texts.
    #[must_use]
    pub(crate) const fn copies(&self) -> &[u8; 32] {
        &self.copies
    }
}

fn short(key: &[u8; 32], bytes: &[u8]) -> [u8; SEAL_BYTES] {
    *blake3::keyed_hash(key, bytes).as_bytes().first_chunk().expect("28 of 32 bytes")
}

debug_by_name!(SealKey);

/// What is known about the seals of a store.
#[derive(Clone, Debug, Default)]
pub enum SealMode {
    /// The store has no seals.
    #[default]
    Absent,
    /// The store has seals, but the key is not available: they can be neither checked nor made.
    Unknown,
    /// Seals are checked and made with this key.
    Keyed(SealKey),
}

impl SealMode {
    /// Returns the key, if it is available.
    #[must_use]
    pub const fn key(&self) -> Option<&SealKey> {
        match self {
            Self::Keyed(key) => Some(key),
            Self::Absent | Self::Unknown => None,
        }
    }
}

/// The way in which a store differs from what the holder of its key wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntegrityBreach {
    /// A seal does not match: the data was altered, forged, or moved from another place.
    Altered,
    /// A seal is missing: the data was not written with the key.
    Unsealed,
    /// Sealed data is missing.
    Missing,
    /// The store ends before the position that its witness saw: it was truncated, or replaced by an
    /// older copy.
    RolledBack,
    /// The store is not the one that its witness saw.
    Replaced,
}

impl IntegrityBreach {
    /// Returns the name used in output.
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
    use crate::model::{hex, unhex};

    /// The bytes were computed by another implementation of BLAKE3, following `docs/format.md`.
    #[test]
    fn seals_have_the_golden_bytes() {
        let key = SealKey::new(&[1; 32], &[2; 16], &[3; 32]);
        let digits = "2ce6c74798babf52eed96ae1c1851011722d91ec63b8c5bea6e9d4865360fa05";
        let hash = unhex(digits).unwrap();
        assert_eq!(
            hex(&key.record(&hash)),
            "29390831fd233f55e98d3200b67c2d0c4358341614a446b21411a599"
        );
        assert_eq!(
            hex(&key.spooled(b"namebytes")),
            "8a65e034a20c3c1662ebd5e083512ca4a1dbfc2844f79d709f4cc8e7"
        );
        assert_eq!(hex(&key.row(TableId(3), b"key", b"value")), "08ece3a2e857717e1ffff4cba3cdd4c9");
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

//! Hashes by which a secret is recognised without being known.

use super::SecretDigest;
use serde::{Deserialize, Serialize};

/// Minimum length of a secret that is hashed, in bytes: shorter ones occur in texts by chance.
pub const MIN_HASHED_BYTES: usize = 6;
/// Maximum length of a secret that is purged, in bytes.
pub const MAX_PURGED_BYTES: usize = 64 << 10;
/// Maximum length of a form of a secret, in bytes: JSON in JSON in JSON writes a byte as at most 9.
pub const MAX_HASHED_BYTES: usize = 9 * MAX_PURGED_BYTES;

/// The length and hashes of a form of a secret: the secret as it may be written in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretHash {
    /// The length of the form in bytes.
    pub length: u32,
    /// The upper 24 bits of its rolling hash. More of them would help to guess the secret.
    pub first: u32,
    /// Its keyed hash.
    pub strong: SecretDigest,
}

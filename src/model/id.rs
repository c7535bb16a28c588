//! Identifiers: fixed byte strings, written as lower-case hexadecimal.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// The error for a text that is not a complete identifier in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not an identifier of {expected} hexadecimal digits")]
pub struct ParseIdError {
    text: String,
    expected: usize,
}

/// Encodes bytes as lower-case hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes exactly `N` bytes from hex digits; `None` if the text has any other length or character.
pub(crate) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $length:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $length]);

        impl $name {
            /// Length of this identifier in bytes.
            pub const LENGTH: usize = $length;

            /// Creates the identifier from these bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; $length]) -> Self {
                Self(bytes)
            }

            /// Returns the bytes of this identifier.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; $length] {
                &self.0
            }

            /// Returns the first 10 digits, as shown to people.
            #[must_use]
            pub fn short(&self) -> String {
                self.to_string().chars().take(10).collect()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "{}({self})", stringify!($name))
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let wrong = || ParseIdError { text: text.to_owned(), expected: 2 * $length };
                unhex(text).map(Self).ok_or_else(wrong)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(self)
                } else {
                    serializer.serialize_bytes(&self.0)
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;
                impl de::Visitor<'_> for Visitor {
                    type Value = $name;
                    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(out, "an identifier of {} bytes", $length)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<$name, E> {
                        bytes.try_into().map($name).map_err(|_| E::invalid_length(bytes.len(), &self))
                    }
                }
                if deserializer.is_human_readable() {
                    deserializer.deserialize_str(Visitor)
                } else {
                    deserializer.deserialize_bytes(Visitor)
                }
            }
        }
    };
}

id!(
    /// Identifies an object: the blake3 hash of its uncompressed bytes as first written.
    ObjectId, 32
);
id!(
    /// Identifies a revision: the blake3 hash of its header.
    RevisionId, 32
);
id!(
    /// Identifies a checkpoint.
    CheckpointId, 16
);
id!(
    /// Identifies an operation: everything that one verb did.
    OperationId, 16
);
id!(
    /// Identifies a session.
    SessionId, 16
);
id!(
    /// Identifies a remote.
    RemoteId, 16
);
id!(
    /// Identifies a clone: a store that exchanges sessions with a remote.
    CloneId, 16
);
id!(
    /// Names a session on a remote. It does not reveal the session's id.
    SessionHandle, 16
);
id!(
    /// Identifies a pack on a remote.
    PackId, 16
);
id!(
    /// Identifies a pack's bytes as stored: their blake3 hash.
    PackHash, 32
);
id!(
    /// Identifies one attempt to write a ref.
    RefNonce, 16
);
id!(
    /// Identifies a version of a ref with all versions before it: a keyed hash.
    RefLink, 32
);
id!(
    /// Random bytes that make the hashes in each purge notice different.
    NoticeSalt, 32
);
id!(
    /// Identifies a form of a secret: its hash, keyed with the salt of the purge notice.
    SecretDigest, 16
);

impl CloneId {
    /// A placeholder for an id, where several clones pushed something.
    pub const SEVERAL: Self = Self::from_bytes([0; 16]);
}

/// The sum of the hashes of all entries of a state: equal states have equal digests.
///
/// To update it for a change takes two hashes, whatever the size of the state. A digest detects
/// faults, not forgery: an attacker who chooses entries freely can build two states with one digest
/// (D. Wagner, "A Generalized Birthday Problem", 2002).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateDigest([u64; 4]);

impl StateDigest {
    /// The digest of the empty state.
    pub const EMPTY: Self = Self([0; 4]);

    /// Returns the digest with the entry of this hash added.
    #[must_use]
    pub fn plus(self, entry_hash: &[u8; 32]) -> Self {
        Self(zip(self.0, lanes(entry_hash), u64::wrapping_add))
    }

    /// Returns the digest with the entry of this hash removed.
    #[must_use]
    pub fn minus(self, entry_hash: &[u8; 32]) -> Self {
        Self(zip(self.0, lanes(entry_hash), u64::wrapping_sub))
    }

    /// Returns the digest as bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (eight, lane) in bytes.chunks_mut(8).zip(self.0) {
            eight.copy_from_slice(&lane.to_le_bytes());
        }
        bytes
    }

    /// Creates a digest from these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(lanes(bytes))
    }
}

fn lanes(bytes: &[u8; 32]) -> [u64; 4] {
    let mut lanes = [0; 4];
    for (lane, eight) in lanes.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *lane = u64::from_le_bytes(*eight);
    }
    lanes
}

fn zip(left: [u64; 4], right: [u64; 4], combine: fn(u64, u64) -> u64) -> [u64; 4] {
    let mut result = left;
    for (lane, other) in result.iter_mut().zip(right) {
        *lane = combine(*lane, other);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_id_is_parsed_back() {
        let id = SessionId::from_bytes(*b"0123456789abcdef");
        assert_eq!(id.to_string().parse(), Ok(id));
        for wrong in
            ["", "30", "zz313233343536373839616263646566", "+1313233343536373839616263646566"]
        {
            assert!(wrong.parse::<SessionId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_digest_does_not_depend_on_the_order_of_additions_and_removals() {
        let (a, b) = (blake3::hash(b"a"), blake3::hash(b"b"));
        let both = StateDigest::EMPTY.plus(a.as_bytes()).plus(b.as_bytes());
        assert_eq!(both, StateDigest::EMPTY.plus(b.as_bytes()).plus(a.as_bytes()));
        assert_eq!(both.minus(a.as_bytes()).minus(b.as_bytes()), StateDigest::EMPTY);
        assert_eq!(StateDigest::from_bytes(&both.to_bytes()), both);
    }
}

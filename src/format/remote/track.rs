//! The file in which a store records how much of a session is on a remote. It is never sent.

use crate::format::ExportMark;
use crate::format::record::RecordBytes;
use crate::model::{OperationId, SessionNumber};
use serde::{Deserialize, Serialize};

/// Implements the encoding of a file that a store keeps beside its data.
macro_rules! local_file {
    ($name:ident, $magic:literal, $what:literal) => {
        impl $name {
            /// Encodes the content of the file.
            #[must_use]
            pub fn encode(&self) -> Vec<u8> {
                $crate::format::row::wrap_as($magic, &$crate::format::codec::pack(self))
            }

            /// Decodes the content of the file.
            ///
            /// # Errors
            /// [`DecodeError`](crate::format::DecodeError) if it is damaged.
            pub fn decode(bytes: &[u8]) -> Result<Self, $crate::format::DecodeError> {
                let content = $crate::format::row::unwrap_as($magic, $what, bytes)?;
                $crate::format::codec::unpack($what, content)
            }
        }
    };
}
pub(super) use local_file;

/// The version of a ref that a store last pushed or pulled, and how much of the session is on the
/// remote. A store that has lost its track reads the packs again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefTrack {
    /// The number of the session in this store. The track does not apply to a session that has
    /// replaced this one.
    pub session: SessionNumber,
    /// The tag of the ref in the depot.
    pub tag: String,
    /// The ref as stored.
    pub stored: RecordBytes,
    /// The mark in this store at which each pack of the ref begins. An export from there contains
    /// the pack and all later ones.
    pub begins: Vec<ExportMark>,
    /// The mark up to which the session is on the remote. Operations that others pushed may also be
    /// after it.
    pub end: ExportMark,
    /// The last sequence number that is on the remote; `u64::MAX` if it is not known.
    pub last: u64,
    /// The operations before `end` that are not on the remote, if a join with another remote gave
    /// the session another order. Then the session must be joined with this remote too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unshared: Option<Vec<OperationId>>,
}

local_file!(RefTrack, b"fRt1", "track of a ref");

//! What a store knows of a session on a remote: a file of its own, never sent.

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

/// The version of a ref that a store last pushed or pulled, and up to where its session is on the
/// remote. A store that has lost it reads the packs again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefTrack {
    /// The number of the session in this store. The rest says nothing of a session that has
    /// replaced it.
    pub session: SessionNumber,
    /// The tag of the ref in the depot.
    pub tag: String,
    /// The ref as stored.
    pub stored: RecordBytes,
    /// Where each pack of the ref begins in this store. An export from there holds it and all later
    /// ones.
    pub begins: Vec<ExportMark>,
    /// Up to where the session is on the remote. What others pushed may also be after it.
    pub end: ExportMark,
    /// The last sequence number that is on the remote; the greatest one if that is not known.
    pub last: u64,
    /// The operations before `end` that are not on the remote, if a join with another remote has
    /// given the session another order. It must be joined with this remote too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unshared: Option<Vec<OperationId>>,
}

local_file!(RefTrack, b"fRt1", "track of a ref");

//! What a store knows of a session on a remote: a file of its own, never sent.

use crate::format::codec::{pack, unpack};
use crate::format::record::RecordBytes;
use crate::format::row::{unwrap_as, wrap_as};
use crate::format::{DecodeError, ExportMark};
use serde::{Deserialize, Serialize};

const MAGIC: &[u8; 4] = b"fRt1";

/// The version of a ref that a store last pushed or pulled, and up to where its session is on the
/// remote. A store that has lost it reads the packs again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefTrack {
    /// The tag of the ref in the depot.
    pub tag: String,
    /// The ref as stored.
    pub stored: RecordBytes,
    /// Where each pack of the ref begins in this store. An export from there holds it and all later
    /// ones.
    pub begins: Vec<ExportMark>,
    /// Up to where the session is on the remote.
    pub end: ExportMark,
}

impl RefTrack {
    /// Encodes the content of the file.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        wrap_as(MAGIC, &pack(self))
    }

    /// Decodes the content of the file.
    ///
    /// # Errors
    /// [`DecodeError`] if it is damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        unpack("track of a ref", unwrap_as(MAGIC, "track of a ref", bytes)?)
    }
}

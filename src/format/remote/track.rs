//! The file in which a store records how much of a session is on a remote. It is never sent.

use crate::format::ExportMark;
use crate::format::codec::packed;
use crate::format::record::RecordBytes;
use crate::model::{OperationId, SessionNumber};
use serde::{Deserialize, Serialize};

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

packed!(RefTrack, "track of a ref", magic = b"fRt1");

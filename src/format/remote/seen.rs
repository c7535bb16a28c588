//! What was seen of a ref, kept outside of the store and of the remote.

use crate::format::DecodeError;
use crate::format::codec::{pack, unpack};
use crate::format::row::{unwrap_as, wrap_as};
use crate::model::{RefLink, SessionHandle};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const MAGIC: &[u8; 4] = b"fRs1";
const WHAT: &str = "witness of a ref";

/// What was seen of the refs of a remote.
pub type SeenRefs = BTreeMap<SessionHandle, SeenRef>;

/// The latest version of a ref that was seen. A remote that has an earlier one was set back; one
/// that has another link for it was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenRef {
    /// The version.
    pub version: u64,
    /// Its link.
    pub link: RefLink,
}

impl SeenRef {
    /// Encodes the content of the file that keeps it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        wrap_as(MAGIC, &pack(self))
    }

    /// Decodes the content of the file.
    ///
    /// # Errors
    /// [`DecodeError`] if it is damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        unpack(WHAT, unwrap_as(MAGIC, WHAT, bytes)?)
    }
}

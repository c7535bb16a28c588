//! What was seen of a ref, kept outside of the store and of the remote.

use super::track::local_file;
use crate::model::{RefLink, SessionHandle};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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

local_file!(SeenRef, b"fRs1", "witness of a ref");

//! The witness of refs: which version of each ref of a remote was seen last. It is kept outside of
//! the store and of the remote.

use crate::format::codec::packed;
use crate::model::{RefLink, SessionHandle};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The versions of a remote's refs that were seen last.
pub type SeenRefs = BTreeMap<SessionHandle, SeenRef>;

/// The latest version of a ref that was seen. A remote that has an earlier version was set back. A
/// remote that has another link for this version was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenRef {
    /// The version.
    pub version: u64,
    /// Its link.
    pub link: RefLink,
}

packed!(SeenRef, "witness of a ref", magic = b"fRs1");

//! The names of objects on a remote.

use crate::model::{PackId, SessionHandle};

/// The name of the marker.
pub const REMOTE_MARKER_NAME: &str = "forge";
/// The folder of all refs.
pub const REFS_PREFIX: &str = "refs/";
/// The folder of all packs.
pub const PACKS_PREFIX: &str = "packs/";

/// Returns the name of a session's ref.
#[must_use]
pub fn ref_name(handle: &SessionHandle) -> String {
    spread(REFS_PREFIX, handle)
}

/// Returns the folder of a session's packs, with a `/` at its end.
#[must_use]
pub fn packs_prefix(handle: &SessionHandle) -> String {
    format!("{}/", spread(PACKS_PREFIX, handle))
}

/// Returns the name of a pack.
#[must_use]
pub fn pack_name(handle: &SessionHandle, pack: &PackId) -> String {
    format!("{}{pack}", packs_prefix(handle))
}

/// Returns the name of the notice of a purge with this number, from 0 on.
#[must_use]
pub fn notice_name(number: u64) -> String {
    format!("purges/{number}")
}

/// Returns the handle of the session whose ref has this name; `None` if it is not the name of a
/// ref.
#[must_use]
pub fn handle_in(name: &str) -> Option<SessionHandle> {
    let handle = name.rsplit('/').next()?.parse().ok()?;
    (ref_name(&handle) == name).then_some(handle)
}

/// Returns the handle of the session and the id of the pack that has this name; `None` if it is not
/// the name of a pack.
#[must_use]
pub fn pack_in(name: &str) -> Option<(SessionHandle, PackId)> {
    let (folder, pack) = name.rsplit_once('/')?;
    let (handle, pack) = (folder.rsplit('/').next()?.parse().ok()?, pack.parse().ok()?);
    (pack_name(&handle, &pack) == name).then_some((handle, pack))
}

/// Returns a name that is spread over 256 folders by the first byte of the handle.
fn spread(prefix: &str, handle: &SessionHandle) -> String {
    let [first, ..] = handle.as_bytes();
    format!("{prefix}{first:02x}/{handle}")
}

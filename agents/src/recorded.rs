//! Recorded sessions for tests. They are not part of the project: without them, a test prints a
//! note and passes.

use std::path::PathBuf;

/// Reads a file of an agent's recorded sessions, from the folder `FORGE_DATA` or else from
/// `../shared/data` next to the workspace. `None`, with a note, if it cannot be read.
pub(crate) fn read(agent: &str, file: &str) -> Option<Vec<u8>> {
    let folder = std::env::var_os("FORGE_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data")),
        PathBuf::from,
    );
    let path = folder.join(agent).join(file);
    let bytes = std::fs::read(&path).ok();
    if bytes.is_none() {
        let why = format_args!("no {}; set FORGE_DATA", path.display());
        forge_testkit::skip::skipped("recorded sessions", why);
    }
    bytes
}

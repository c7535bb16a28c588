//! Recorded sessions for tests: not part of the project, so a test that has none says so and passes.

use std::io::Write;
use std::path::PathBuf;

/// This file of the recorded data: in `FORGE_DATA`, else in `../shared/data` beside the workspace.
pub(crate) fn read(agent: &str, file: &str) -> Option<Vec<u8>> {
    let folder = std::env::var_os("FORGE_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data")),
        PathBuf::from,
    );
    let path = folder.join(agent).join(file);
    let bytes = std::fs::read(&path).ok();
    if bytes.is_none() {
        // Not `eprintln!`: the test harness would keep it to itself.
        let mut stderr = std::io::stderr();
        writeln!(stderr, "SKIPPED: no {}; set FORGE_DATA", path.display()).unwrap();
    }
    bytes
}

//! Reports tests that cannot run on this machine, also outside the output of the test.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

/// The environment variable with the file that gets one line per skipped test. `scripts/test` sets
/// it, and prints the lines at its end.
pub const FILE: &str = "FORGE_SKIPPED";

/// Reports that the running test, or a part of it, is skipped, and why. `what` names the test if
/// its thread has no name.
///
/// # Panics
/// If the file cannot be written.
pub fn skipped(what: &str, why: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().filter(|name| *name != "main").unwrap_or(what);
    let line = format!("SKIPPED {test}: {why}\n");
    // Not `eprint!`: the harness captures the output of a test that passes.
    let _ = std::io::stderr().write_all(line.as_bytes());
    let Some(file) = std::env::var_os(FILE) else { return };
    // In one write, because other tests write to the file at the same time.
    let noted = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&file)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = noted {
        panic!("cannot write to {} that a test is skipped: {error}", file.display());
    }
}

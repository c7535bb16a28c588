//! What cannot be tested on this machine is said, and not only to whoever looks at what a test that passed has printed.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;

/// Names the file that gets a line for each test that is skipped. `scripts/test` sets it, and prints those lines at its end.
pub const FILE: &str = "FORGE_SKIPPED";

/// Says that the running test, or a part of it, is skipped, and why. `what` names it where the harness gives no name.
///
/// # Panics
/// If it cannot be noted where it is to be.
pub fn skipped(what: &str, why: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().filter(|name| *name != "main").unwrap_or(what);
    let line = format!("SKIPPED {test}: {why}\n");
    // Not `eprint!`: the harness keeps what a test that passes prints to itself.
    let _ = std::io::stderr().write_all(line.as_bytes());
    let Some(file) = std::env::var_os(FILE) else { return };
    // In one piece, since other tests write there at the same time.
    let noted = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&file)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = noted {
        panic!("cannot note in {} what is skipped: {error}", file.display());
    }
}

//! The names of remotes on the command line.

/// The name of a remote if none is given.
pub const DEFAULT_NAME: &str = "origin";

/// Returns the part of a command that names a remote, after `before`; nothing for
/// [`DEFAULT_NAME`].
pub fn named(before: &str, remote: &str) -> String {
    if remote == DEFAULT_NAME { String::new() } else { format!("{before}{remote}") }
}

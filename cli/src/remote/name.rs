//! The names of remotes on the command line.

/// The name of a remote if none is given.
pub const DEFAULT_NAME: &str = "origin";

/// Returns the name of a remote after `prefix`, as an argument of a suggested command. Empty for
/// [`DEFAULT_NAME`], which a command uses by default.
pub fn remote_argument(prefix: &str, remote: &str) -> String {
    if remote == DEFAULT_NAME { String::new() } else { format!("{prefix}{remote}") }
}

//! Programs: where the path finds them, and what their file says.

use crate::context::Environment;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The first program of this name on the path.
#[must_use]
pub fn on_path(environment: &Environment, name: &str) -> Option<PathBuf> {
    let path = environment.value("PATH")?;
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| is_program(file))
}

/// Whether there is a file that may be run.
#[must_use]
pub fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

//! Finds the processes that hold old files open, from the lists of open files in `/proc`.

use crate::backend::LockHolder;
use std::fs;
use std::path::{Path, PathBuf};

/// The suffix that the system adds to the name of a removed file.
const REMOVED: &str = " (deleted)";

/// Returns the processes that hold a file in one of these folders, or a removed file of the store.
/// Processes of other users are only visible on some systems.
pub(super) fn holders(store: &Path, held: &[PathBuf]) -> Vec<LockHolder> {
    let Ok(store) = store.canonicalize() else { return Vec::new() };
    let held: Vec<_> = held.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    let own = std::process::id();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let open = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        let mut targets = open.filter_map(|file| fs::read_link(file.path()).ok());
        let holds = targets.any(|target| {
            let text = target.to_string_lossy();
            let removed = text.ends_with(REMOVED) && target.starts_with(&store) && pid != own;
            removed
                || held.iter().any(|folder| target.starts_with(folder) || is_lease(&target, folder))
        });
        if holds {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words: Vec<_> = line
                .split(|byte| *byte == 0)
                .filter(|word| !word.is_empty())
                .take(3)
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect();
            found.push(LockHolder { pid, command: words.join(" ") });
        }
    }
    found.sort_by_key(|holder| holder.pid);
    found
}

/// Returns whether a file is the lease of a generation.
fn is_lease(file: &Path, folder: &Path) -> bool {
    file.with_extension("") == folder && file.extension().is_some_and(|ending| ending == "lease")
}

//! Finds the processes that hold old files open, from the lists of open files in `/proc`. Finds
//! none on a system without `/proc`.

use crate::backend::LockHolder;
use std::fs;
use std::path::{Path, PathBuf};

/// The suffix that the system adds to the path of an open file that was removed.
const REMOVED: &str = " (deleted)";

/// Returns the processes that hold open a file in one of these folders, or the lease of one, and
/// the other processes that hold open a removed file of the store. Processes of other users are
/// visible only if the system permits it.
pub(super) fn holders(store: &Path, folders: &[PathBuf]) -> Vec<LockHolder> {
    let Ok(store) = store.canonicalize() else { return Vec::new() };
    let folders: Vec<_> = folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
    let own_pid = std::process::id();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let files = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        let holds = targets.any(|target| {
            let text = target.to_string_lossy();
            let removed = text.ends_with(REMOVED) && target.starts_with(&store) && pid != own_pid;
            removed
                || folders
                    .iter()
                    .any(|folder| target.starts_with(folder) || is_lease(&target, folder))
        });
        if holds {
            let command_line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words: Vec<_> = command_line
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

/// Returns whether a file is the lease of the generation in this folder.
fn is_lease(file: &Path, folder: &Path) -> bool {
    file.with_extension("") == folder && file.extension().is_some_and(|ending| ending == "lease")
}

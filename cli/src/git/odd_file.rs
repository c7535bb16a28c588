//! Finds pipes, sockets and devices in the place of files that git reads: git would wait for them
//! until its time limit.

use super::repository::GitRepository;
use crate::error::CommandError;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Files that git reads in the checkout's own folder of the repository and in the shared one.
const FILES: [&str; 15] = [
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "index",
    "packed-refs",
    "shallow",
    "info/attributes",
    "info/exclude",
    "info/grafts",
    "info/sparse-checkout",
    "objects/info/alternates",
    "objects/info/commit-graph",
    "objects/pack/multi-pack-index",
];
/// Files that git reads in the top folder of a checkout.
const TOP_FILES: [&str; 3] = [".gitattributes", ".gitignore", ".gitmodules"];
/// The maximum size of a HEAD that is read here, in bytes.
const MAX_HEAD_BYTES: u64 = 4 << 10;

/// Refuses a repository in which one of these files is a pipe, a socket or a device. Files in other
/// folders are not checked: a git that waits for one of them is ended by the time limit for idle
/// processes.
///
/// # Errors
///
/// Invalid, with the path.
pub(super) fn check(git: &GitRepository) -> Result<(), CommandError> {
    let folders =
        if git.folder == git.common { vec![&git.folder] } else { vec![&git.folder, &git.common] };
    for folder in &folders {
        FILES.iter().try_for_each(|name| check_file(&folder.join(name)))?;
    }
    TOP_FILES.iter().try_for_each(|name| check_file(&git.top.join(name)))?;
    if let Some(branch) = branch_file(&git.folder.join("HEAD")) {
        folders.iter().try_for_each(|folder| check_file(&folder.join(&branch)))?;
    }
    for file in fs::read_dir(git.common.join("objects/pack")).into_iter().flatten().flatten() {
        // The directory itself has the type, so thousands of packs need no look-up each.
        if file.file_type().is_ok_and(|kind| !kind.is_file() && !kind.is_dir()) {
            check_file(&file.path())?;
        }
    }
    Ok(())
}

/// Returns the file of the branch that is checked out, relative to the repository's folder.
fn branch_file(head: &Path) -> Option<PathBuf> {
    if fs::metadata(head).ok()?.len() > MAX_HEAD_BYTES {
        return None;
    }
    let text = fs::read_to_string(head).ok()?;
    let name = text.strip_prefix("ref:")?.trim();
    (name.starts_with("refs/") && !name.contains("..")).then(|| PathBuf::from(name))
}

fn check_file(path: &Path) -> Result<(), CommandError> {
    let Ok(about) = fs::metadata(path) else { return Ok(()) };
    let kind = about.file_type();
    // A link to /dev/null is a common way to write an empty list.
    let is_null =
        |one: &fs::Metadata| fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == one.rdev());
    let what = match kind {
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_char_device() && is_null(&about) => return Ok(()),
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => return Ok(()),
    };
    let text = format!("'{}' is {what} instead of a file", path.display());
    Err(CommandError::invalid(text).hinted("git would wait for it: remove it"))
}

//! The worktrees of a git repository.

use std::fs;
use std::path::{Path, PathBuf};

/// The other checkouts of the repository that `project` is a checkout of: its linked worktrees, and the main checkout if
/// `project` is linked itself. Empty if `project` is not the top of a checkout.
///
/// The repository's own directory holds a folder `worktrees/NAME` for each linked one, with the path of its `.git` in a
/// file `gitdir` (gitrepository-layout).
pub(crate) fn others(project: &Path) -> Vec<PathBuf> {
    let Some(common) = common_directory(project) else { return Vec::new() };
    let linked = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let linked = linked.filter_map(|entry| {
        let folder = entry.path();
        let dot_git = folder.join(line(&folder.join("gitdir"))?);
        let checkout = dot_git.parent()?;
        Some(fs::canonicalize(checkout).unwrap_or_else(|_| checkout.to_owned()))
    });
    // The repository of bare ones has no checkout around it.
    let main = common.parent().filter(|_| common.ends_with(".git")).map(Path::to_owned);
    linked.chain(main).filter(|checkout| checkout != project).collect()
}

/// The directory that all checkouts of the repository share.
fn common_directory(project: &Path) -> Option<PathBuf> {
    let dot_git = project.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let own = project.join(line(&dot_git)?.strip_prefix("gitdir:")?.trim());
    let common = own.join(line(&own.join("commondir"))?);
    fs::canonicalize(common).ok()
}

/// The text of a file that holds a line.
fn line(path: &Path) -> Option<String> {
    const MOST_BYTES: u64 = 64 * 1024;
    let about = fs::metadata(path).ok()?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return None;
    }
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

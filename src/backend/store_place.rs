//! Where the store of a project is: in the folder `.forge` of the project. The checkouts of a git
//! repository are one project, whose folder is the main checkout.

use super::plain_file;
use std::fs;
use std::iter;
use std::path::{Component, Path, PathBuf};

/// The name of the folder of a store.
pub const STORE_FOLDER: &str = ".forge";

/// A `.git` file leads to a repository that does not list it as a linked worktree: what is recorded
/// here would go into another project's store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{}' leads to '{}', which has no worktree here", dot_git.display(), common.display())]
pub struct UnlistedWorktree {
    dot_git: PathBuf,
    common: PathBuf,
}

impl UnlistedWorktree {
    /// What to do next.
    pub const HINT: &str =
        "if the worktree was moved, run 'git worktree repair'; otherwise remove the file";
}

/// Returns where the store for this folder can be: in the folder or in one above it, nearest first.
/// From a linked worktree, the search continues in the main checkout, so that all worktrees share
/// one store.
pub fn candidates(start: &Path) -> impl Iterator<Item = Result<PathBuf, UnlistedWorktree>> {
    let mut next = Some(start.to_owned());
    // A second main checkout could be a cycle.
    let mut jumped = false;
    iter::from_fn(move || {
        let mut here = next.take()?;
        let main = if jumped { Ok(None) } else { main_checkout(&here) };
        if let Ok(Some(main)) = &main {
            jumped = true;
            here.clone_from(main);
        }
        next = here.parent().map(Path::to_owned);
        Some(main.map(|_| here.join(STORE_FOLDER)))
    })
}

/// Returns where to create a store for the project that contains this folder: next to `.git` in a
/// checkout (the main one), or else in this folder.
#[must_use]
pub fn new_store_path(start: &Path) -> PathBuf {
    let top = start.ancestors().find(|folder| is_checkout_top(folder));
    let main = top.and_then(|top| main_checkout(top).ok().flatten());
    main.unwrap_or_else(|| top.unwrap_or(start).to_owned()).join(STORE_FOLDER)
}

/// Returns the target of a store's folder if the folder is a link out of its project.
#[must_use]
pub fn outward_target(store: &Path) -> Option<PathBuf> {
    fs::symlink_metadata(store).ok().filter(fs::Metadata::is_symlink)?;
    let project = store.parent()?.canonicalize().ok()?;
    let target = store.canonicalize().ok().or_else(|| {
        // A target that does not exist yet could be created later.
        let target = fs::read_link(store).ok()?;
        Some(missing_target(&project, &target).unwrap_or(target))
    })?;
    (!target.starts_with(project)).then_some(target)
}

/// Resolves the target of a link in this folder, if some of the path does not exist. `None` if it
/// leads to another link without a target.
fn missing_target(folder: &Path, target: &Path) -> Option<PathBuf> {
    let mut path = folder.to_owned();
    for part in target.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
        if let Ok(existing) = path.canonicalize() {
            path = existing;
        } else if path.is_symlink() {
            return None;
        }
    }
    Some(path)
}

/// Returns the linked worktrees of the repository that this folder is in, and its main checkout.
///
/// The repository's own folder contains a folder `worktrees/NAME` for each linked one, with the
/// path of its `.git` in a file `gitdir` (gitrepository-layout).
#[must_use]
pub fn checkouts(start: &Path) -> Vec<PathBuf> {
    let Some(top) = start.ancestors().find(|folder| is_checkout_top(folder)) else {
        return Vec::new();
    };
    let Some(common) = common_folder(top) else { return vec![top.to_owned()] };
    let linked = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let linked = linked.filter_map(|entry| {
        let dot_git = path_in(&entry.path().join("gitdir"), "")?;
        let checkout = dot_git.parent()?;
        Some(fs::canonicalize(checkout).unwrap_or_else(|_| checkout.to_owned()))
    });
    linked.chain(checkout_around(&common)).collect()
}

/// Returns whether this folder is the top of a git checkout.
#[must_use]
pub fn is_checkout_top(folder: &Path) -> bool {
    folder.join(".git").exists()
}

/// Returns the main checkout, if this folder is the top of one of its linked worktrees.
///
/// There `.git` is a file with `gitdir: DIR`; DIR contains a file `commondir` with the repository's
/// own folder (gitrepository-layout). A submodule has the file `.git` but no `commondir`, and is
/// a project of its own.
///
/// # Errors
/// If the repository does not list this worktree.
fn main_checkout(folder: &Path) -> Result<Option<PathBuf>, UnlistedWorktree> {
    let dot_git = folder.join(".git");
    if !fs::symlink_metadata(&dot_git).is_ok_and(|about| about.is_file()) {
        return Ok(None);
    }
    let Some(common) = common_folder(folder) else { return Ok(None) };
    if is_worktree_of(&common, &dot_git) {
        return Ok(checkout_around(&common));
    }
    Err(UnlistedWorktree { dot_git, common })
}

/// Whether the repository with this folder lists the worktree with this `.git` file. If so, the
/// file names a folder in `worktrees` of the repository, and that folder names the file.
fn is_worktree_of(common: &Path, dot_git: &Path) -> bool {
    let known = || {
        let own = path_in(dot_git, "gitdir:")?.canonicalize().ok()?;
        let back = path_in(&own.join("gitdir"), "")?.canonicalize().ok()?;
        let is_there = own.parent() == Some(&*common.join("worktrees").canonicalize().ok()?);
        Some(is_there && back == dot_git.canonicalize().ok()?)
    };
    known().unwrap_or(false)
}

/// Returns the folder that all checkouts of a repository share, from the top of one of them.
fn common_folder(top: &Path) -> Option<PathBuf> {
    let dot_git = top.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let own = path_in(&dot_git, "gitdir:")?;
    path_in(&own.join("commondir"), "")?.canonicalize().ok()
}

/// Returns the main checkout for the folder that all checkouts share. A bare repository has
/// none.
fn checkout_around(common: &Path) -> Option<PathBuf> {
    common.parent().filter(|_| common.ends_with(".git")).map(Path::to_owned)
}

/// Returns the path that follows this prefix in a file of git. A relative path begins at the folder
/// of the file. `None` if the file cannot be read, is larger than 64 KiB, is not UTF-8 or does not
/// begin with the prefix.
fn path_in(file: &Path, prefix: &str) -> Option<PathBuf> {
    let line = plain_file::read_text(file, 64 << 10).ok()?;
    Some(file.parent()?.join(line.strip_prefix(prefix)?.trim()))
}

//! Where the store is: said outright, or the nearest `.forge` above, as git finds its repository.
//!
//! In a linked git worktree the search goes on from the main checkout, so that all worktrees share one store.

use crate::error::CommandError;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The name of the directory a store lives in.
pub const STORE_DIRECTORY: &str = ".forge";

/// The store that holds for this directory.
///
/// # Errors
///
/// Not found if there is none above; invalid if what should be the store is no directory.
pub fn find(start: &Path) -> Result<PathBuf, CommandError> {
    for directory in Ancestry::of(start) {
        let candidate = directory.join(STORE_DIRECTORY);
        match fs::metadata(&candidate) {
            Ok(found) if found.is_dir() => return Ok(candidate),
            Ok(_) => {
                let path = candidate.display();
                return Err(CommandError::invalid(format!("'{path}' is not a directory"))
                    .hinted("a store is a directory; move that file away"));
            }
            Err(error) if is_absence(&error) => {}
            Err(error) => {
                let what = format!("cannot look at '{}'", candidate.display());
                return Err(CommandError::io(&what, error));
            }
        }
    }
    let start = start.display();
    Err(CommandError::not_found(format!("no store in '{start}' or any directory above it"))
        .hinted("'forge init' makes one")
        .hinted("'--store PATH' or FORGE_STORE names one elsewhere"))
}

/// The store that somebody named: the directory itself, or the `.forge` in it.
///
/// # Errors
///
/// Not found if it does not exist; invalid if it is no directory.
pub fn named(path: &Path) -> Result<PathBuf, CommandError> {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            let inside = path.join(STORE_DIRECTORY);
            Ok(if inside.is_dir() { inside } else { path.to_owned() })
        }
        Ok(_) => Err(CommandError::invalid(format!("the store '{shown}' is not a directory"))),
        Err(error) if is_absence(&error) => {
            Err(CommandError::not_found(format!("there is no store '{shown}'"))
                .hinted("'forge init' with the same '--store' makes it"))
        }
        Err(error) => Err(CommandError::io(&format!("cannot look at the store '{shown}'"), error)),
    }
}

/// Where `forge init` makes a store for the project that holds this directory: beside `.git` if it is in a checkout
/// (the main one's), else right here.
#[must_use]
pub fn place_for(start: &Path) -> PathBuf {
    let project = Ancestry::of(start).find(|directory| is_top(directory));
    project.unwrap_or_else(|| start.to_owned()).join(STORE_DIRECTORY)
}

/// The linked worktrees of the repository that this directory is in, and its main checkout.
///
/// The repository's own directory holds a folder `worktrees/NAME` for each linked one, with the path of its `.git` in a
/// file `gitdir` (gitrepository-layout).
#[must_use]
pub fn checkouts(start: &Path) -> Vec<PathBuf> {
    let Some(top) = start.ancestors().find(|directory| is_top(directory)) else {
        return Vec::new();
    };
    let Some(common) = common_directory(top) else { return vec![top.to_owned()] };
    let linked = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let linked = linked.filter_map(|entry| {
        let dot_git = entry.path().join(read_small(&entry.path().join("gitdir"))?.trim());
        let checkout = dot_git.parent()?;
        Some(fs::canonicalize(checkout).unwrap_or_else(|_| checkout.to_owned()))
    });
    linked.chain(checkout_of(&common)).collect()
}

/// Whether this directory is the top of a git checkout.
#[must_use]
pub fn is_top(directory: &Path) -> bool {
    directory.join(".git").exists()
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A directory and those above it; a linked worktree is replaced by its main checkout.
struct Ancestry {
    next: Option<PathBuf>,
    /// Whether the main checkout was gone to already: a second time would be a circle.
    jumped: bool,
}

impl Ancestry {
    fn of(start: &Path) -> Self {
        Self { next: Some(start.to_owned()), jumped: false }
    }
}

impl Iterator for Ancestry {
    type Item = PathBuf;

    fn next(&mut self) -> Option<PathBuf> {
        let mut here = self.next.take()?;
        if !self.jumped
            && let Some(main) = main_checkout(&here)
        {
            self.jumped = true;
            here = main;
        }
        self.next = here.parent().map(Path::to_owned);
        Some(here)
    }
}

/// The main checkout, if this directory is the top of a linked worktree of it.
///
/// There `.git` is a file that says `gitdir: DIR`; DIR holds a file `commondir` with the repository's own directory
/// (gitrepository-layout). A submodule has the first but not the second and is a project of its own.
fn main_checkout(directory: &Path) -> Option<PathBuf> {
    let is_file = fs::symlink_metadata(directory.join(".git")).ok()?.is_file();
    checkout_of(&common_directory(directory).filter(|_| is_file)?)
}

/// The directory that all checkouts of a repository share, by the top of one of them.
fn common_directory(top: &Path) -> Option<PathBuf> {
    let dot_git = top.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let own = top.join(read_small(&dot_git)?.strip_prefix("gitdir:")?.trim());
    fs::canonicalize(own.join(read_small(&own.join("commondir"))?.trim())).ok()
}

/// The main checkout around the directory that all checkouts share. A bare repository has none.
fn checkout_of(common: &Path) -> Option<PathBuf> {
    common.parent().filter(|_| common.ends_with(".git")).map(Path::to_owned)
}

/// The text of a file that ought to be a line; nothing if it is not.
fn read_small(path: &Path) -> Option<String> {
    const MOST_BYTES: u64 = 64 * 1024;
    let found = fs::metadata(path).ok()?;
    if !found.is_file() || found.len() > MOST_BYTES {
        return None;
    }
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use tempfile::TempDir;

    fn tree(directories: &[&str], files: &[(&str, &str)]) -> (TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(root.path()).unwrap();
        for directory in directories {
            fs::create_dir_all(path.join(directory)).unwrap();
        }
        for (name, text) in files {
            fs::write(path.join(name), text).unwrap();
        }
        (root, path)
    }

    const LINKED: &[&str] =
        &["home/main/.git/worktrees/w", "elsewhere/w/src/deep", "elsewhere/.forge"];

    #[test]
    fn the_nearest_store_above_is_found() {
        let (_root, path) = tree(&["a/.forge", "a/b/.forge", "a/b/c/d", "a/e"], &[]);
        assert_eq!(find(&path.join("a/b/c/d")).unwrap(), path.join("a/b/.forge"));
        assert_eq!(find(&path.join("a/e")).unwrap(), path.join("a/.forge"));
    }

    #[test]
    fn without_any_store_the_error_says_how_to_make_one() {
        let (_root, path) = tree(&["a"], &[]);
        let error = find(&path.join("a")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.hints()[0].contains("forge init"));
    }

    #[test]
    fn a_file_in_the_place_of_a_store_is_named() {
        let (_root, path) = tree(&["a/b"], &[("a/.forge", "")]);
        let error = find(&path.join("a/b")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }

    #[test]
    fn a_linked_worktree_uses_the_main_checkout_and_what_is_above_that() {
        let (_root, path) = tree(LINKED, &[("home/main/.git/worktrees/w/commondir", "../..\n")]);
        let gitdir = path.join("home/main/.git/worktrees/w");
        fs::write(path.join("elsewhere/w/.git"), format!("gitdir: {}\n", gitdir.display()))
            .unwrap();
        let inside = path.join("elsewhere/w/src/deep");
        assert_eq!(place_for(&inside), path.join("home/main/.forge"));
        fs::create_dir(path.join("home/.forge")).unwrap();
        assert_eq!(find(&inside).unwrap(), path.join("home/.forge"));
        fs::create_dir(path.join("home/main/.forge")).unwrap();
        assert_eq!(find(&inside).unwrap(), path.join("home/main/.forge"));
    }

    #[test]
    fn the_checkouts_of_a_repository_are_found_from_each_of_them() {
        let linked = "home/main/.git/worktrees/w";
        let (_root, path) = tree(LINKED, &[("home/main/.git/worktrees/w/commondir", "../..\n")]);
        let worktree = path.join("elsewhere/w");
        let gitdir = format!("gitdir: {}\n", path.join(linked).display());
        fs::write(worktree.join(".git"), gitdir).unwrap();
        let back = format!("{}\n", worktree.join(".git").display());
        fs::write(path.join(linked).join("gitdir"), back).unwrap();
        let expected = [worktree.clone(), path.join("home/main")];
        assert_eq!(checkouts(&worktree.join("src/deep")), expected);
        assert_eq!(checkouts(&path.join("home/main")), expected);
        assert_eq!(checkouts(&path.join("home")), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_relative_gitdir_is_relative_to_the_worktree() {
        let (_root, path) = tree(
            LINKED,
            &[
                ("home/main/.git/worktrees/w/commondir", "../.."),
                ("elsewhere/w/.git", "gitdir: ../../home/main/.git/worktrees/w"),
            ],
        );
        assert_eq!(place_for(&path.join("elsewhere/w")), path.join("home/main/.forge"));
    }

    #[test]
    fn a_submodule_and_a_broken_link_are_projects_of_their_own() {
        let (_root, path) = tree(
            &["top/.git/modules/sub", "top/sub", "top/broken", "top/.forge"],
            &[
                ("top/sub/.git", "gitdir: ../.git/modules/sub\n"),
                ("top/broken/.git", "gitdir: /nowhere/at/all\n"),
            ],
        );
        assert_eq!(place_for(&path.join("top/sub")), path.join("top/sub/.forge"));
        assert_eq!(find(&path.join("top/sub")).unwrap(), path.join("top/.forge"));
        assert_eq!(find(&path.join("top/broken")).unwrap(), path.join("top/.forge"));
    }

    #[test]
    fn a_named_store_is_the_directory_or_the_forge_in_it() {
        let (_root, path) = tree(&["a/.forge", "b"], &[("f", "")]);
        assert_eq!(named(&path.join("a")).unwrap(), path.join("a/.forge"));
        assert_eq!(named(&path.join("a/.forge")).unwrap(), path.join("a/.forge"));
        assert_eq!(named(&path.join("b")).unwrap(), path.join("b"));
        assert_eq!(named(&path.join("f")).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(named(&path.join("g")).unwrap_err().kind(), ErrorKind::NotFound);
    }
}

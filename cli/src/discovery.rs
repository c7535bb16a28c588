//! Finds the store: the given one, or the nearest `.forge` in this directory or above, as git finds
//! its repository.
//!
//! In a linked git worktree the search continues from the main checkout, so that all worktrees
//! share one store.

use crate::config::trust;
use crate::context::Environment;
use crate::error::CommandError;
use forge_store::plain_file;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

/// The name of the directory of a store.
pub const STORE_DIRECTORY: &str = ".forge";

/// Finds the store for this directory.
///
/// # Errors
///
/// Not found if there is no `.forge` in the directory or above; invalid if `.forge` is not a
/// directory, or is a link out of the project.
pub fn find_store(start: &Path, environment: &Environment) -> Result<PathBuf, CommandError> {
    for step in AncestorDirectories::starting_at(start) {
        let candidate = step?.join(STORE_DIRECTORY);
        check_link(&candidate, environment)?;
        match fs::metadata(&candidate) {
            Ok(found) if found.is_dir() => return Ok(candidate),
            Ok(_) => {
                let path = candidate.display();
                return Err(CommandError::invalid(format!("'{path}' is not a directory"))
                    .hinted("a store is a directory; move that file away"));
            }
            Err(error) if is_missing(&error) => {}
            Err(error) => return Err(CommandError::io_at("cannot look at", &candidate, error)),
        }
    }
    let start = start.display();
    Err(CommandError::not_found(format!("no store in '{start}' or any directory above it"))
        .hinted("'forge init' makes one")
        .hinted("'--store PATH' or FORGE_STORE names one elsewhere"))
}

/// Finds the store at a given path: the `.forge` in the directory, or else the directory itself.
pub fn named_store(path: &Path, environment: &Environment) -> Result<PathBuf, CommandError> {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            let inside = path.join(STORE_DIRECTORY);
            check_link(&inside, environment)?;
            Ok(if inside.is_dir() { inside } else { path.to_owned() })
        }
        Ok(_) => Err(CommandError::invalid(format!("the store '{shown}' is not a directory"))),
        Err(error) if is_missing(&error) => {
            Err(CommandError::not_found(format!("there is no store '{shown}'"))
                .hinted("'forge init' with the same '--store' makes it"))
        }
        Err(error) => Err(CommandError::io_at("cannot look at the store", path, error)),
    }
}

/// Returns the target of a store's folder if the folder is a link out of its project.
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

/// Returns the path and the target of the `.forge` for this directory, if it is a link out of its
/// project.
pub fn outward_link(start: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut places = AncestorDirectories::starting_at(start)
        .flatten()
        .map(|folder| folder.join(STORE_DIRECTORY));
    let store = places.find(|place| fs::symlink_metadata(place).is_ok())?;
    outward_target(&store).map(|target| (store, target))
}

/// Refuses a store's folder that is a link out of its project, unless the user allowed it: what is
/// recorded here would go into the store of another project.
///
/// # Errors
///
/// Invalid; names both paths.
pub fn check_link(store: &Path, environment: &Environment) -> Result<(), CommandError> {
    let Some(target) = outward_target(store) else { return Ok(()) };
    if trust::allows_link(environment, store, &target) {
        return Ok(());
    }
    let (store, target) = (store.display(), target.display());
    Err(CommandError::invalid(format!("'{store}' is a link that leads out of its project, to '{target}'"))
        .hinted("remove it, if it came with the project; 'forge config trust' allows it, '--store' names a store"))
}

/// Returns where `forge init` creates a store for the project that contains this directory: next to
/// `.git` in a checkout (the main one), or else in this directory.
pub fn new_store_path(start: &Path) -> PathBuf {
    let top = start.ancestors().find(|directory| is_checkout_top(directory));
    let main = top.and_then(|top| main_checkout(top).ok().flatten());
    main.unwrap_or_else(|| top.unwrap_or(start).to_owned()).join(STORE_DIRECTORY)
}

/// Returns the linked worktrees of the repository that this directory is in, and its main checkout.
///
/// The repository's own directory contains a folder `worktrees/NAME` for each linked one, with the
/// path of its `.git` in a file `gitdir` (gitrepository-layout).
pub fn checkouts(start: &Path) -> Vec<PathBuf> {
    let Some(top) = start.ancestors().find(|directory| is_checkout_top(directory)) else {
        return Vec::new();
    };
    let Some(common) = common_directory(top) else { return vec![top.to_owned()] };
    let linked = fs::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let linked = linked.filter_map(|entry| {
        let dot_git = entry.path().join(read_one_line(&entry.path().join("gitdir"))?.trim());
        let checkout = dot_git.parent()?;
        Some(fs::canonicalize(checkout).unwrap_or_else(|_| checkout.to_owned()))
    });
    linked.chain(checkout_around(&common)).collect()
}

/// Whether this directory is the top of a git checkout.
pub fn is_checkout_top(directory: &Path) -> bool {
    directory.join(".git").exists()
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Iterates over a directory and those above it; a linked worktree is replaced by its main
/// checkout.
struct AncestorDirectories {
    next: Option<PathBuf>,
    /// Whether the search already continued in the main checkout: a second time could be a cycle.
    jumped: bool,
}

impl AncestorDirectories {
    fn starting_at(start: &Path) -> Self {
        Self { next: Some(start.to_owned()), jumped: false }
    }
}

impl Iterator for AncestorDirectories {
    type Item = Result<PathBuf, CommandError>;

    fn next(&mut self) -> Option<Result<PathBuf, CommandError>> {
        let mut here = self.next.take()?;
        if !self.jumped {
            match main_checkout(&here) {
                Ok(None) => {}
                Ok(Some(main)) => {
                    self.jumped = true;
                    here = main;
                }
                Err(error) => {
                    self.next = here.parent().map(Path::to_owned);
                    return Some(Err(error));
                }
            }
        }
        self.next = here.parent().map(Path::to_owned);
        Some(Ok(here))
    }
}

/// Returns the main checkout, if this directory is the top of one of its linked worktrees.
///
/// There `.git` is a file with `gitdir: DIR`; DIR contains a file `commondir` with the repository's
/// own directory (gitrepository-layout). A submodule has the file `.git` but no `commondir`, and is
/// a project of its own.
///
/// # Errors
///
/// Invalid if the repository does not list this worktree: what is recorded here would go into
/// another project's store.
fn main_checkout(directory: &Path) -> Result<Option<PathBuf>, CommandError> {
    let dot_git = directory.join(".git");
    if !fs::symlink_metadata(&dot_git).is_ok_and(|about| about.is_file()) {
        return Ok(None);
    }
    let Some(common) = common_directory(directory) else { return Ok(None) };
    if is_worktree_of(&common, &dot_git) {
        return Ok(checkout_around(&common));
    }
    let (dot_git, common) = (dot_git.display(), common.display());
    let text = format!("'{dot_git}' leads to '{common}', which has no worktree here");
    Err(CommandError::invalid(text)
        .hinted("if the worktree was moved, run 'git worktree repair'; otherwise remove the file"))
}

/// Whether the repository with this directory lists the worktree with this `.git` file. If so, the
/// file names a folder in `worktrees` of the repository, and that folder names the file.
fn is_worktree_of(common: &Path, dot_git: &Path) -> bool {
    let known = || {
        let top = dot_git.parent()?;
        let own = top.join(read_one_line(dot_git)?.strip_prefix("gitdir:")?.trim());
        let own = own.canonicalize().ok()?;
        let back = own.join(read_one_line(&own.join("gitdir"))?.trim()).canonicalize().ok()?;
        let is_there = own.parent() == Some(&*common.join("worktrees").canonicalize().ok()?);
        Some(is_there && back == dot_git.canonicalize().ok()?)
    };
    known().unwrap_or(false)
}

/// Returns the directory that all checkouts of a repository share, from the top of one of them.
fn common_directory(top: &Path) -> Option<PathBuf> {
    let dot_git = top.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    let own = top.join(read_one_line(&dot_git)?.strip_prefix("gitdir:")?.trim());
    fs::canonicalize(own.join(read_one_line(&own.join("commondir"))?.trim())).ok()
}

/// Returns the main checkout for the directory that all checkouts share. A bare repository has
/// none.
fn checkout_around(common: &Path) -> Option<PathBuf> {
    common.parent().filter(|_| common.ends_with(".git")).map(Path::to_owned)
}

/// Reads a file that should contain one short line; `None` if it cannot be read, is larger than
/// 64 KiB or is not UTF-8.
fn read_one_line(path: &Path) -> Option<String> {
    plain_file::read_text(path, 64 << 10).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::CommandErrorKind;
    use tempfile::TempDir;

    fn found(start: &Path) -> Result<PathBuf, CommandError> {
        find_store(start, &Environment::default())
    }

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
        assert_eq!(found(&path.join("a/b/c/d")).unwrap(), path.join("a/b/.forge"));
        assert_eq!(found(&path.join("a/e")).unwrap(), path.join("a/.forge"));
    }

    #[test]
    fn without_any_store_the_error_says_how_to_make_one() {
        let (_root, path) = tree(&["a"], &[]);
        let error = found(&path.join("a")).unwrap_err();
        assert_eq!(error.kind(), CommandErrorKind::NotFound);
        assert!(error.hints()[0].contains("forge init"));
    }

    #[test]
    fn a_file_in_the_place_of_a_store_is_named() {
        let (_root, path) = tree(&["a/b"], &[("a/.forge", "")]);
        let error = found(&path.join("a/b")).unwrap_err();
        assert_eq!(error.kind(), CommandErrorKind::Invalid);
    }

    #[test]
    fn a_linked_worktree_uses_the_store_of_the_main_checkout_or_of_a_folder_above() {
        let (_root, path) = tree(LINKED, &[("home/main/.git/worktrees/w/commondir", "../..\n")]);
        let gitdir = path.join("home/main/.git/worktrees/w");
        fs::write(path.join("elsewhere/w/.git"), format!("gitdir: {}\n", gitdir.display()))
            .unwrap();
        let back = path.join("elsewhere/w/.git");
        fs::write(gitdir.join("gitdir"), back.display().to_string()).unwrap();
        let inside = path.join("elsewhere/w/src/deep");
        assert_eq!(new_store_path(&inside), path.join("home/main/.forge"));
        fs::create_dir(path.join("home/.forge")).unwrap();
        assert_eq!(found(&inside).unwrap(), path.join("home/.forge"));
        fs::create_dir(path.join("home/main/.forge")).unwrap();
        assert_eq!(found(&inside).unwrap(), path.join("home/main/.forge"));
    }

    #[test]
    fn all_checkouts_of_a_repository_are_found_from_each_checkout() {
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
                ("home/main/.git/worktrees/w/gitdir", "../../../../../elsewhere/w/.git"),
            ],
        );
        assert_eq!(new_store_path(&path.join("elsewhere/w")), path.join("home/main/.forge"));
    }

    /// With a forged `.git` file, what is recorded would go into another project's store.
    #[test]
    fn a_worktree_that_its_repository_does_not_know_is_refused() {
        for back in ["", "home/main/.git", "elsewhere/other/.git"] {
            let (_root, path) = tree(
                &["home/main/.git/worktrees/w", "home/main/.forge", "elsewhere/w/fake"],
                &[
                    ("home/main/.git/worktrees/w/commondir", "../.."),
                    ("elsewhere/w/.git", "gitdir: ../../home/main/.git/worktrees/w"),
                    ("elsewhere/w/fake/commondir", "../../../home/main/.git"),
                    ("elsewhere/w/fake/gitdir", "../.git"),
                ],
            );
            let gitdir = path.join("home/main/.git/worktrees/w/gitdir");
            fs::write(gitdir, path.join(back).display().to_string()).unwrap();
            let worktree = path.join("elsewhere/w");
            assert_eq!(found(&worktree).unwrap_err().kind(), CommandErrorKind::Invalid, "{back}");
            assert_eq!(new_store_path(&worktree), worktree.join(".forge"));
            // The same with a folder outside the repository, which does name the file.
            fs::write(worktree.join(".git"), "gitdir: fake").unwrap();
            assert_eq!(found(&worktree).unwrap_err().kind(), CommandErrorKind::Invalid, "{back}");
        }
    }

    #[test]
    fn a_link_out_of_the_project_is_refused_and_one_within_it_followed() {
        use std::os::unix::fs::symlink;
        let (_root, path) = tree(&["a/.forge", "b/kept", "c"], &[]);
        symlink("../a/.forge", path.join("c/.forge")).unwrap();
        symlink("kept", path.join("b/.forge")).unwrap();
        let error = found(&path.join("c")).unwrap_err();
        assert_eq!(error.kind(), CommandErrorKind::Invalid);
        let names = |name: &str| error.message().contains(path.join(name).to_str().unwrap());
        assert!(names("a/.forge") && names("c/.forge"), "{error}");
        assert_eq!(found(&path.join("b")).unwrap(), path.join("b/.forge"));
        // A target that does not exist yet could be created later.
        fs::remove_file(path.join("c/.forge")).unwrap();
        symlink("../a/none", path.join("c/.forge")).unwrap();
        assert_eq!(found(&path.join("c")).unwrap_err().kind(), CommandErrorKind::Invalid);
    }

    /// A relative link within its project was called a link out of it until its target existed.
    #[test]
    fn a_link_within_the_project_may_lead_to_a_folder_that_does_not_exist_yet() {
        use std::os::unix::fs::symlink;
        let (_root, path) = tree(&["a/deep", "b"], &[]);
        symlink("../b", path.join("a/out")).unwrap();
        symlink("../b/none", path.join("a/broken")).unwrap();
        let link = path.join("a/.forge");
        let leads_out = |target: &Path| {
            symlink(target, &link).unwrap();
            let outward = outward_target(&link);
            fs::remove_file(&link).unwrap();
            outward
        };
        for within in ["none", "./none/more", "deep/../none", "none/../other", "../a/none"] {
            assert_eq!(leads_out(Path::new(within)), None, "{within}");
        }
        assert_eq!(leads_out(&path.join("a/none")), None);
        let outside = path.join("b/none");
        for without in ["../b/none", "out/none", "none/../../b/none", "deep/../../b/none"] {
            assert_eq!(leads_out(Path::new(without)).as_ref(), Some(&outside), "{without}");
        }
        assert_eq!(leads_out(&outside).as_ref(), Some(&outside));
        // What another link without a target leads to is not followed.
        for unknown in ["broken", "broken/more"] {
            let unknown = Path::new(unknown);
            assert_eq!(leads_out(unknown).as_deref(), Some(unknown));
        }
    }

    #[test]
    fn a_submodule_and_a_folder_with_a_broken_git_link_are_separate_projects() {
        let (_root, path) = tree(
            &["top/.git/modules/sub", "top/sub", "top/broken", "top/.forge"],
            &[
                ("top/sub/.git", "gitdir: ../.git/modules/sub\n"),
                ("top/broken/.git", "gitdir: /nowhere/at/all\n"),
            ],
        );
        assert_eq!(new_store_path(&path.join("top/sub")), path.join("top/sub/.forge"));
        assert_eq!(found(&path.join("top/sub")).unwrap(), path.join("top/.forge"));
        assert_eq!(found(&path.join("top/broken")).unwrap(), path.join("top/.forge"));
    }

    #[test]
    fn a_named_store_is_the_directory_or_its_folder_dot_forge() {
        let (_root, path) = tree(&["a/.forge", "b"], &[("f", "")]);
        assert_eq!(
            named_store(&path.join("a"), &Environment::default()).unwrap(),
            path.join("a/.forge")
        );
        assert_eq!(
            named_store(&path.join("a/.forge"), &Environment::default()).unwrap(),
            path.join("a/.forge")
        );
        assert_eq!(named_store(&path.join("b"), &Environment::default()).unwrap(), path.join("b"));
        assert_eq!(
            named_store(&path.join("f"), &Environment::default()).unwrap_err().kind(),
            CommandErrorKind::Invalid
        );
        assert_eq!(
            named_store(&path.join("g"), &Environment::default()).unwrap_err().kind(),
            CommandErrorKind::NotFound
        );
    }
}

//! Finds the store: the given one, or the nearest `.forge` in this directory or above, as git finds
//! its repository.
//!
//! In a linked git worktree the search continues from the main checkout, so that all worktrees
//! share one store.

use crate::config::trust;
use crate::context::Environment;
use crate::error::CommandError;
use forge_store::store_place::{STORE_FOLDER, UnlistedWorktree, candidates, outward_target};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Finds the store for this directory.
///
/// # Errors
///
/// Not found if there is no `.forge` in the directory or above; invalid if `.forge` is not a
/// directory, or is a link out of the project.
pub fn find_store(start: &Path, environment: &Environment) -> Result<PathBuf, CommandError> {
    for candidate in candidates(start) {
        let candidate = candidate.map_err(|error| {
            CommandError::invalid(error.to_string()).hinted(UnlistedWorktree::HINT)
        })?;
        check_link(&candidate, environment)?;
        match fs::metadata(&candidate) {
            Ok(found) if found.is_dir() => return Ok(candidate),
            Ok(_) => return Err(not_a_directory(&candidate)),
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
            let inside = path.join(STORE_FOLDER);
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

/// Returns the path and the target of the `.forge` for this directory, if it is a link out of its
/// project.
pub fn outward_link(start: &Path) -> Option<(PathBuf, PathBuf)> {
    let mut places = candidates(start).flatten();
    let store = places.find(|place| fs::symlink_metadata(place).is_ok())?;
    outward_target(&store).map(|target| (store, target))
}

/// Refuses a store's folder that is a link out of its project, unless the user allowed it: what is
/// recorded here would go into the store of another project.
///
/// # Errors
///
/// Invalid; names both paths.
fn check_link(store: &Path, environment: &Environment) -> Result<(), CommandError> {
    let Some(target) = outward_target(store) else { return Ok(()) };
    if trust::allows_link(environment, store, &target) {
        return Ok(());
    }
    let (store, target) = (store.display(), target.display());
    Err(CommandError::invalid(format!("'{store}' is a link that leads out of its project, to '{target}'"))
        .hinted("remove it, if it came with the project; 'forge config trust' allows it, '--store' names a store"))
}

/// Refuses a place for a new store that is a file, or a link out of its project.
///
/// # Errors
///
/// Invalid.
pub fn check_new_store(store: &Path, environment: &Environment) -> Result<(), CommandError> {
    check_link(store, environment)?;
    match fs::metadata(store) {
        Ok(found) if !found.is_dir() => Err(not_a_directory(store)),
        _ => Ok(()),
    }
}

fn not_a_directory(path: &Path) -> CommandError {
    CommandError::invalid(format!("'{}' is not a directory", path.display()))
        .hinted("a store is a directory; move that file away")
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::CommandErrorKind;
    use forge_store::store_place::{checkouts, new_store_path};
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

//! Finds the folder of a store, and the keyring, in the same places as the command `forge`.

use forge_store::plain_file;
use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const STORE_FOLDER: &str = ".forge";
const MAX_LINE_BYTES: u64 = 64 << 10;

/// Why a store was not found: what is wrong, and what to do next.
pub(crate) enum PlaceError {
    /// There is no store.
    Missing(String, &'static str),
    /// The folder that was found cannot be used.
    Refused(String, &'static str),
    /// The system reported an error.
    Io(String, io::Error),
}

/// The folder of a store.
pub(crate) struct StoreFolder {
    pub(crate) path: PathBuf,
    /// Whether the caller or the environment named it. Otherwise a search found it.
    pub(crate) is_named: bool,
}

/// Returns the keyring: the folder with the keys of stores. `None` if the environment names no
/// place for it.
pub(crate) fn keyring() -> Option<PathBuf> {
    absolute("FORGE_KEYRING").or_else(|| {
        let state =
            absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
        Some(state.join("forge/keyring"))
    })
}

/// Returns the folder of the store: the given one, else the one that `FORGE_STORE` names, else the
/// nearest `.forge` in the working directory or above. Instead of a folder that contains a
/// `.forge`, that `.forge` is returned. If there is no store and `create` is set, returns where to
/// create it.
pub(crate) fn store_folder(
    given: Option<PathBuf>,
    create: bool,
) -> Result<StoreFolder, PlaceError> {
    let named = given.or_else(|| {
        env::var_os("FORGE_STORE").filter(|value| !value.is_empty()).map(PathBuf::from)
    });
    if let Some(path) = named {
        let inside = path.join(STORE_FOLDER);
        let path = if inside.is_dir() { inward(inside)? } else { path };
        if path.is_file() {
            let what = format!("'{}' is not a directory", path.display());
            return Err(PlaceError::Refused(what, "a store is a directory; name another path"));
        }
        return Ok(StoreFolder { path, is_named: true });
    }
    Ok(StoreFolder { path: nearest_folder(create)?, is_named: false })
}

fn nearest_folder(create: bool) -> Result<PathBuf, PlaceError> {
    let start = env::current_dir()
        .map_err(|error| PlaceError::Io("cannot find the working directory".to_owned(), error))?;
    let mut next = Some(start.clone());
    let mut jumped = false;
    while let Some(mut here) = next {
        if !jumped && let Some(main) = main_checkout(&here)? {
            jumped = true;
            here = main;
        }
        let candidate = here.join(STORE_FOLDER);
        match fs::metadata(&candidate) {
            Ok(found) if found.is_dir() => return inward(candidate),
            Ok(_) => {
                let what = format!("'{}' is not a directory", candidate.display());
                let next = "a store is a directory; move that file away";
                return Err(PlaceError::Refused(what, next));
            }
            Err(error) if is_missing(&error) => {}
            Err(error) => {
                let what = format!("cannot look at '{}'", candidate.display());
                return Err(PlaceError::Io(what, error));
            }
        }
        next = here.parent().map(Path::to_owned);
    }
    if !create {
        let what = format!("there is no store in '{}' or any folder above it", start.display());
        let next = "name its path, set FORGE_STORE, or make one with create=True";
        return Err(PlaceError::Missing(what, next));
    }
    let top = start.ancestors().find(|folder| folder.join(".git").exists());
    let main = top.map(main_checkout).transpose()?.flatten();
    Ok(main.unwrap_or_else(|| top.unwrap_or(&start).to_owned()).join(STORE_FOLDER))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Refuses a link that leads out of its project, because this project would be recorded in the
/// store of another one.
fn inward(store: PathBuf) -> Result<PathBuf, PlaceError> {
    if !fs::symlink_metadata(&store).is_ok_and(|about| about.is_symlink()) {
        return Ok(store);
    }
    let target = store.canonicalize().unwrap_or_default();
    let project = store.parent().and_then(|folder| folder.canonicalize().ok());
    if project.is_some_and(|project| target.starts_with(project)) {
        return Ok(store);
    }
    let what = format!(
        "'{}' is a link that leads out of its project, to '{}'",
        store.display(),
        target.display()
    );
    Err(PlaceError::Refused(what, "if you want this store, name the target itself as the path"))
}

/// Returns the main checkout, if this folder is the top of a linked worktree: all worktrees of a
/// repository share one store. In a linked worktree `.git` is a file, which names a folder with a
/// file `commondir` (gitrepository-layout).
///
/// # Errors
/// If the repository does not list this worktree.
fn main_checkout(folder: &Path) -> Result<Option<PathBuf>, PlaceError> {
    let dot_git = folder.join(".git");
    let Some(own) = worktree_folder(&dot_git, folder) else { return Ok(None) };
    let Some(common) =
        one_line(&own.join("commondir")).and_then(|line| own.join(line).canonicalize().ok())
    else {
        return Ok(None);
    };
    let back = one_line(&own.join("gitdir")).and_then(|line| own.join(line).canonicalize().ok());
    let is_listed = own.parent() == Some(&*common.join("worktrees"))
        && back.is_some()
        && back == dot_git.canonicalize().ok();
    if !is_listed {
        let (dot_git, common) = (dot_git.display(), common.display());
        let what = format!("'{dot_git}' leads to '{common}', which has no worktree here");
        let next =
            "if the worktree was moved, run 'git worktree repair'; otherwise remove the file";
        return Err(PlaceError::Refused(what, next));
    }
    Ok(common.parent().filter(|_| common.ends_with(".git")).map(Path::to_owned))
}

/// Returns the folder that a `.git` file names.
fn worktree_folder(dot_git: &Path, folder: &Path) -> Option<PathBuf> {
    fs::symlink_metadata(dot_git).ok().filter(fs::Metadata::is_file)?;
    let line = one_line(dot_git)?;
    folder.join(line.strip_prefix("gitdir:")?.trim()).canonicalize().ok()
}

fn one_line(path: &Path) -> Option<String> {
    plain_file::read_text(path, MAX_LINE_BYTES).ok().map(|text| text.trim().to_owned())
}

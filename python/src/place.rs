//! Finds the folder of a store, and the keyring, in the same places as the command `forge`.

use forge_store::store_place::{self, STORE_FOLDER, UnlistedWorktree};
use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;

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
        if path.as_os_str().is_empty() {
            return Err(PlaceError::Refused("the path is empty".to_owned(), "name a folder"));
        }
        if path.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(PlaceError::Refused(
                "the path has a NUL in it".to_owned(),
                "name a folder",
            ));
        }
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
    for candidate in store_place::candidates(&start) {
        let candidate = candidate
            .map_err(|error| PlaceError::Refused(error.to_string(), UnlistedWorktree::HINT))?;
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
    }
    if !create {
        let what = format!("there is no store in '{}' or any folder above it", start.display());
        let next = "name its path, set FORGE_STORE, or make one with create=True";
        return Err(PlaceError::Missing(what, next));
    }
    Ok(store_place::new_store_path(&start))
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
    let Some(target) = store_place::outward_target(&store) else { return Ok(store) };
    let (store, target) = (store.display(), target.display());
    let what = format!("'{store}' is a link that leads out of its project, to '{target}'");
    Err(PlaceError::Refused(what, "if you want this store, name the target itself as the path"))
}

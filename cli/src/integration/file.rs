//! Reads and writes the files of an agent: completely, atomically, and only inside the expected
//! folder.

use crate::error::CommandError;
use crate::private_files;
use forge_store::plain_file;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The maximum size of a settings file.
const MOST_BYTES: u64 = 64 << 20;

/// The current state of a file of an agent.
#[derive(Clone, Debug)]
pub struct AgentFile {
    /// Its real path, with links resolved.
    pub path: PathBuf,
    /// Its content; `None` if there is no such file.
    pub text: Option<String>,
}

/// Reads a file of an agent. A link is followed if it stays in `within`.
///
/// # Errors
///
/// If it is not a regular file with one name, is too large, is not UTF-8, or leads out of `within`.
pub fn read(file: &Path, within: &Path) -> Result<AgentFile, CommandError> {
    let failed = |error| CommandError::io_at("cannot look at", file, error);
    let (path, about) = match fs::canonicalize(file) {
        Ok(path) => {
            let about = fs::metadata(&path).map_err(failed)?;
            (path, about)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if fs::symlink_metadata(file).is_ok() {
                return Err(refused(file, "is a link to a file that is not there"));
            }
            return missing(file, within);
        }
        Err(error) => return Err(failed(error)),
    };
    let real = within.canonicalize().unwrap_or_else(|_| within.to_owned());
    if !path.starts_with(&real) {
        let target = path.display();
        return Err(refused(file, &format!("leads to '{target}', out of '{}'", within.display())));
    }
    if !about.is_file() {
        return Err(refused(file, "is not a plain file"));
    }
    if about.len() > MOST_BYTES {
        return Err(refused(file, "is larger than 64 MiB"));
    }
    if about.nlink() > 1 {
        return Err(refused(
            file,
            "has several names (hard links), and only one of them would change",
        ));
    }
    let bytes = plain_file::read(&path, MOST_BYTES)
        .map_err(|error| CommandError::io_at("cannot read", file, error))?;
    let text = String::from_utf8(bytes).map_err(|_| refused(file, "is not UTF-8"))?;
    Ok(AgentFile { path, text: Some(text) })
}

/// Returns the real path of a file that does not exist yet. Its nearest existing directory must be
/// inside `within`, or above it if `within` does not exist yet.
fn missing(file: &Path, within: &Path) -> Result<AgentFile, CommandError> {
    let real = within.canonicalize();
    let is_allowed = |found: &Path| match &real {
        Ok(real) => found.starts_with(real),
        Err(_) => within.starts_with(found),
    };
    let mut above = file.parent();
    while let Some(folder) = above {
        match fs::canonicalize(folder) {
            Ok(found) if !found.is_dir() => {
                return Err(refused(folder, "is not a directory"));
            }
            Ok(found) if !is_allowed(&found) => {
                let target = found.display();
                return Err(refused(
                    folder,
                    &format!("leads to '{target}', out of '{}'", within.display()),
                ));
            }
            Ok(found) => {
                let rest = file.strip_prefix(folder).unwrap_or(file);
                return Ok(AgentFile { path: found.join(rest), text: None });
            }
            Err(_) if fs::symlink_metadata(folder).is_ok() => {
                return Err(refused(folder, "is a link to a directory that is not there"));
            }
            Err(_) => above = folder.parent(),
        }
    }
    Ok(AgentFile { path: file.to_owned(), text: None })
}

fn refused(file: &Path, why: &str) -> CommandError {
    CommandError::invalid(format!("'{}' {why}: it is left alone", file.display())).hinted(
        "nothing was changed; correct this, or choose another of --local, --project, --user",
    )
}

/// Replaces the content of a file, or removes the file, if it has not changed since it was read.
pub fn replace(settings: &AgentFile, text: Option<&str>) -> Result<(), CommandError> {
    let path = &settings.path;
    let failed = |error| CommandError::io_at("cannot write", path, error);
    let now = match plain_file::read(path, MOST_BYTES) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(CommandError::io_at("cannot read", path, error)),
    };
    if now.as_deref() != settings.text.as_deref().map(str::as_bytes) {
        return Err(CommandError::new(
            crate::error::CommandErrorKind::Conflict,
            format!("'{}' was changed by another program just now", path.display()),
        )
        .hinted("try again"));
    }
    let Some(text) = text else {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(()),
        };
    };
    if let Some(folder) = path.parent() {
        private_files::create_directories(folder).map_err(failed)?;
    }
    // An existing file keeps its permissions; a new one is private to the user.
    let mode = fs::metadata(path).map_or(0o600, |about| about.permissions().mode() & 0o7777);
    private_files::replace_file_with(path, text.as_bytes(), mode).map_err(failed)
}

/// Returns the missing parent directories of a file, outermost first.
pub fn missing_directories(path: &Path) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> = path
        .ancestors()
        .skip(1)
        .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
        .map(Path::to_owned)
        .collect();
    missing.reverse();
    missing
}

/// Removes these directories, innermost first, up to the first that is not empty.
pub fn remove_empty(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        // A directory that is not empty is in use.
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

//! Files and folders that only their owner sees, and names that survive a power cut.

use super::Error;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Makes a new file that only its owner may read or write, whatever the umask.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Makes a folder that only its owner may enter, whatever the umask; one that is there is taken.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        other => other?,
    }
    std::fs::set_permissions(path, Permissions::from_mode(0o700))?;
    File::open(folder_of(path))?.sync_all()
}

/// Makes names that were added or removed in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Error> {
    File::open(folder).and_then(|file| file.sync_all()).map_err(Error::io("sync", folder))
}

/// Puts a file with these bytes in the place of another as one step, by way of `new`; what is there of that name goes. Its
/// bytes are durable, its name is once the folder is synced.
pub(crate) fn replace(path: &Path, new: &Path, bytes: &[u8]) -> Result<(), Error> {
    remove(new)?;
    let written = || {
        let mut file = create_private(new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(new, path)
    };
    written().map_err(Error::io("write", path))
}

/// The folder that a file stands in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes a file if it is there; whether it was.
pub(crate) fn remove(path: &Path) -> Result<bool, Error> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("remove", path)(error)),
    }
}

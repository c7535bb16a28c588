//! Files and directories that are private to the user, whatever the umask.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Creates this directory and the missing ones above it, each with mode 0700.
pub fn create_directories(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        create_directories(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        // The umask may have removed permissions.
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o700)),
        // Another process has created it in the meantime.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Opens this file for appending. If it is missing, creates it with mode 0600, and the missing
/// directories above it.
pub fn open_to_append(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        create_directories(folder)?;
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Replaces the contents of this file atomically, with mode 0600; readers see the old or the new
/// text.
pub fn replace_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    replace_file_with(path, contents, 0o600)
}

/// Replaces a file as [`replace_file`] does, but with this mode, for files that others may read.
pub fn replace_file_with(path: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    // A link stays a link: its target is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = target.with_file_name(name);
    let written =
        write_new(&temporary, contents, mode).and_then(|()| fs::rename(&temporary, &target));
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_new(path: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    let mut file: File =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(contents)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn created_files_and_folders_are_private() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        create_directories(&folder).unwrap();
        create_directories(&folder).unwrap();
        let file = folder.join("c");
        replace_file(&file, b"1").unwrap();
        replace_file(&file, b"2").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(&root.path().join("a")), mode(&folder), mode(&file)),
            (0o700, 0o700, 0o600)
        );
        assert_eq!(fs::read(&file).unwrap(), b"2");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }
}

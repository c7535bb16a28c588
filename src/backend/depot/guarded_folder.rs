//! Folders that are opened without following links below a root.

use rustix::fs::{AtFlags, Dir, Mode, OFlags, fchmod, mkdirat, open, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Without `NONBLOCK`, opening a pipe would block until its other end is opened.
const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const LOCK: OFlags = OFlags::RDWR.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW: OFlags = LOCK.union(OFlags::CREATE).union(OFlags::EXCL);

/// An open folder. Files and folders that it opens by name are inside it, whatever other users of
/// the folder do meanwhile: a link is an error. New files and folders get the permissions of the
/// root.
#[derive(Debug)]
pub(super) struct GuardedFolder {
    folder: File,
    /// The permission bits of the root.
    mode: u32,
}

impl GuardedFolder {
    /// Opens a root, which may be a link.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let folder = File::from(open(root, FOLDER, Mode::empty())?);
        let mode = folder.metadata()?.permissions().mode();
        Ok(Self { folder, mode })
    }

    /// Opens a folder in this one, and creates it if `create` is set. `None` if there is none.
    pub(super) fn inside(&self, name: &str, create: bool) -> io::Result<Option<Self>> {
        let opened = || openat(&self.folder, name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
        let made = |folder: OwnedFd| Some(Self { folder: folder.into(), mode: self.mode });
        match opened() {
            Ok(folder) => return Ok(made(folder)),
            Err(Errno::NOENT) if create => {}
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let mode = Mode::from_raw_mode((self.mode & 0o2777) as _);
        match mkdirat(&self.folder, name, mode) {
            // Another writer created the folder meanwhile.
            Err(Errno::EXIST) => Ok(made(opened()?)),
            Err(error) => Err(error.into()),
            Ok(()) => {
                let folder = opened()?;
                fchmod(&folder, mode)?;
                self.sync()?;
                Ok(made(folder))
            }
        }
    }

    /// Makes additions and removals of names in this folder durable.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.folder.sync_all()
    }

    /// Opens a file or anything else with this name for reading. A link is an error. `None` if
    /// there is nothing.
    pub(super) fn read(&self, name: &str) -> io::Result<Option<File>> {
        match openat(&self.folder, name, READ, Mode::empty()) {
            Ok(file) => Ok(Some(file.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a file, which must not exist.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        let mode = Mode::from_raw_mode((self.mode & 0o666) as _);
        let file = openat(&self.folder, name, NEW, mode)?;
        // The umask may have removed permissions.
        fchmod(&file, mode)?;
        Ok(file.into())
    }

    /// Opens a file that is used only as a lock, and creates it if there is none.
    pub(super) fn lock_file(&self, name: &str) -> io::Result<File> {
        let opened = || openat(&self.folder, name, LOCK, Mode::empty());
        match opened() {
            Err(Errno::NOENT) => {}
            opened => return Ok(opened?.into()),
        }
        match self.create(name) {
            // Another writer created the file meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(opened()?.into()),
            created => created,
        }
    }

    /// Moves a file of this folder to the folder `to` under the name `new`. Replaces a file that
    /// has that name.
    pub(super) fn rename(&self, name: &str, to: &Self, new: &str) -> io::Result<()> {
        Ok(renameat(&self.folder, name, &to.folder, new)?)
    }

    /// Removes a file. Returns whether there was one.
    pub(super) fn remove(&self, name: &str) -> io::Result<bool> {
        match unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the names in this folder that are UTF-8, unsorted.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.folder)? {
            names.extend(entry?.file_name().to_str().ok().map(str::to_owned));
        }
        Ok(names)
    }
}

//! Private files and folders, file locks, and removal in pieces.

use super::Error;
use std::fs::{DirBuilder, DirEntry, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::ops::Deref;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Interval between two attempts to take a contended lock.
const PARK: Duration = Duration::from_millis(20);

/// Creates a file that only its owner may read or write, whatever the umask.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Durably creates a folder that only its owner may enter, whatever the umask. An existing folder
/// is left as it is.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        other => other?,
    }
    std::fs::set_permissions(path, Permissions::from_mode(0o700))?;
    File::open(folder_of(path))?.sync_all()
}

/// Creates a folder that only its owner may enter, and the missing folders above it. Existing
/// folders are left as they are.
pub(crate) fn make_private_folders(path: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(Error::io("make", path))
}

/// Makes names that were added or removed in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Error> {
    File::open(folder).and_then(|file| file.sync_all()).map_err(Error::io("sync", folder))
}

/// Replaces a file atomically by one with these bytes, via the temporary file `new`, which is
/// overwritten. The bytes are durable on return; the name is once the folder is synced.
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

/// A file that is locked until this is dropped, which unlocks it. Closing the file would not
/// suffice: a child process between fork and exec has a copy of the descriptor, and shares its
/// lock.
#[derive(Debug)]
pub(crate) struct LockedFile(File);

impl LockedFile {
    /// Takes an exclusive lock. `None` if the file is locked already.
    pub(crate) fn exclusive(file: File) -> io::Result<Option<Self>> {
        Ok(Self::had(file.try_lock())?.then(|| Self(file)))
    }

    /// Takes an exclusive lock like [`exclusive`](Self::exclusive), but waits up to `timeout`;
    /// returns the file on timeout.
    pub(crate) fn exclusive_within(
        file: File,
        timeout: Duration,
    ) -> io::Result<Result<Self, File>> {
        let since = Instant::now();
        loop {
            if Self::had(file.try_lock())? {
                return Ok(Ok(Self(file)));
            }
            let left = timeout.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Ok(Err(file));
            }
            thread::park_timeout(PARK.min(left));
        }
    }

    /// Takes an exclusive lock of the file at this path, which is created if it is missing. `None`
    /// if it stays locked for longer than `timeout`.
    pub(crate) fn at(path: &Path, timeout: Duration) -> Result<Option<Self>, Error> {
        let file = File::options().create(true).truncate(false).write(true).open(path);
        let locked = file.and_then(|file| Self::exclusive_within(file, timeout));
        Ok(locked.map_err(Error::io("lock", path))?.ok())
    }

    /// Takes a shared lock. `None` if another holder has an exclusive one.
    pub(crate) fn shared(file: File) -> io::Result<Option<Self>> {
        Ok(Self::had(file.try_lock_shared())?.then(|| Self(file)))
    }

    /// Returns whether the lock was taken.
    fn had(locked: Result<(), TryLockError>) -> io::Result<bool> {
        match locked {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Unlocking fails only for a file that is not open.
        let _ = self.0.unlock();
    }
}

/// Turns the error that there is no such file or folder into `None`.
pub(crate) fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Returns the folder that contains a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the entries of a folder.
pub(crate) fn entries(folder: &Path) -> Result<Vec<DirEntry>, Error> {
    let entries = folder.read_dir().and_then(Iterator::collect::<io::Result<_>>);
    entries.map_err(Error::io("list", folder))
}

/// Returns the entries of a folder; none if there is no such folder.
pub(crate) fn entries_if_there(folder: &Path) -> Result<Vec<DirEntry>, Error> {
    match entries(folder) {
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed,
    }
}

/// Returns the names in a folder, sorted; none if there is no such folder. Names that are not UTF-8
/// are left out.
pub(crate) fn names_in(folder: &Path) -> Result<Vec<String>, Error> {
    let entries = entries_if_there(folder)?.into_iter();
    let mut names: Vec<_> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    Ok(names)
}

/// Removes a file if it exists. Returns whether it did.
pub(crate) fn remove(path: &Path) -> Result<bool, Error> {
    let removed = if_there(std::fs::remove_file(path)).map_err(Error::io("remove", path))?;
    Ok(removed.is_some())
}

/// Removes a folder with everything in it, if it exists.
pub(crate) fn remove_folder(folder: &Path) -> Result<(), Error> {
    if_there(std::fs::remove_dir_all(folder)).map(drop).map_err(Error::io("remove", folder))
}

/// The number of bytes after which a background write is synced: a concurrent sync of records waits
/// for one such piece, not for the whole write.
pub(crate) const PIECE_BYTES: u64 = 64 << 10;
/// Bytes by which a large file is truncated at a time.
const FREED_BYTES: u64 = 128 << 10;

/// Removes a file like [`remove`], but frees a large file in pieces. While a kernel without
/// preemption frees space, it does nothing else on this core, and syncs on other cores may wait.
///
/// A reader that has the file open sees it shrink, so it must check whether the file still has a
/// name.
pub(crate) fn remove_large(path: &Path) -> Result<bool, Error> {
    // After the removal, the file could not be opened.
    let file = OpenOptions::new().write(true).open(path);
    let removed = remove(path)?;
    if let (true, Ok(file)) = (removed, file) {
        give_back(&file);
    }
    Ok(removed)
}

/// Removes a folder with its files, large ones in pieces like [`remove_large`]. Errors are ignored.
pub(crate) fn remove_large_in(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let _ = remove_large(&entry.path());
        }
    }
    let _ = std::fs::remove_dir_all(folder);
}

fn give_back(file: &File) {
    // A file with another name (hard link) belongs to another generation too.
    let Ok(metadata) = file.metadata() else { return };
    if metadata.nlink() > 0 {
        return;
    }
    let mut left = metadata.len();
    while left > FREED_BYTES {
        left = (left - 1) / FREED_BYTES * FREED_BYTES;
        if file.set_len(left).is_err() {
            return;
        }
        thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_is_removed_in_pieces_unless_it_has_another_link() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("folder");
        create_private_folder(&inside).unwrap();
        let (one, other) = (inside.join("one"), folder.path().join("other"));
        let bytes: Vec<u8> = (0..300_001_u32).map(|number| number as u8).collect();
        std::fs::write(&one, &bytes).unwrap();
        std::fs::hard_link(&one, &other).unwrap();
        let held = File::open(&one).unwrap();
        remove_large_in(&inside);
        assert!(!inside.exists());
        assert_eq!(std::fs::read(&other).unwrap(), bytes);
        assert!(remove_large(&other).unwrap() && !other.exists());
        assert_eq!(held.metadata().unwrap().nlink(), 0);
        assert!(held.metadata().unwrap().len() <= FREED_BYTES);
        assert!(!remove_large(&other).unwrap());
    }

    /// Regression test: while other threads started programs, a generation could not be applied or
    /// removed for a moment, because each child had the lock files open until its program began.
    #[test]
    fn a_released_lock_is_free_although_a_child_process_has_its_file_open() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let open = || OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        for lock in [LockedFile::exclusive, LockedFile::shared] {
            let held = lock(open().unwrap()).unwrap().expect("nobody has it");
            let inherited = held.try_clone().unwrap();
            assert!(LockedFile::exclusive(open().unwrap()).unwrap().is_none());
            drop(held);
            assert!(LockedFile::exclusive(open().unwrap()).unwrap().is_some());
            drop(inherited);
        }
    }
}

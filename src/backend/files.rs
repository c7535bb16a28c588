//! Files and folders that only their owner sees, and names that survive a power cut.

use super::Error;
use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::ops::Deref;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks of who waits for a lock that others hold for long.
const PARK: Duration = Duration::from_millis(20);

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

/// A file that is locked until this is dropped. To close it would not do: a child of this process that has not begun its own
/// program yet has it open too, and the lock is of all who have.
#[derive(Debug)]
pub(crate) struct LockedFile(File);

impl LockedFile {
    /// For nobody else. `None` if somebody else has it.
    pub(crate) fn exclusive(file: File) -> io::Result<Option<Self>> {
        Ok(Self::had(file.try_lock())?.then(|| Self(file)))
    }

    /// As [`alone`](Self::alone), waiting for it, at most `timeout`: then the file comes back.
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

    /// With others who share it. `None` if somebody has it alone.
    pub(crate) fn shared(file: File) -> io::Result<Option<Self>> {
        Ok(Self::had(file.try_lock_shared())?.then(|| Self(file)))
    }

    /// Whether a lock could be had.
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
        // Only a file that is not open cannot be unlocked.
        let _ = self.0.unlock();
    }
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

/// Of what is written beside those who sync records so much goes to the disk at once: who syncs one meanwhile waits for that, not for
/// all of it.
pub(crate) const PIECE_BYTES: u64 = 64 << 10;
/// Of a file so much is given back at once.
const FREED_BYTES: u64 = 128 << 10;

/// As [`remove`], for what may be large: it is given back in pieces. A kernel that does not displace itself does nothing else on
/// this core meanwhile, what another core's sync waits for included: 3 MB at once, and the syncs beside took 1.1 ms, not 0.2.
///
/// Whoever has it open reads on to where it ends by then, so a reader must look whether the file still has a name.
pub(crate) fn remove_large(path: &Path) -> Result<bool, Error> {
    // Once its last name is gone nobody can open it.
    let file = OpenOptions::new().write(true).open(path);
    let removed = remove(path)?;
    if let (true, Ok(file)) = (removed, file) {
        give_back(&file);
    }
    Ok(removed)
}

/// Removes a folder with its files, large ones as [`remove_large`] does. What stays, stays.
pub(crate) fn remove_large_in(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let _ = remove_large(&entry.path());
        }
    }
    let _ = std::fs::remove_dir_all(folder);
}

fn give_back(file: &File) {
    // What has another name is another generation's as well.
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
    fn what_is_removed_in_pieces_is_gone_and_what_has_another_name_stays_whole() {
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

    /// Where other threads started programs, a generation could not be applied or removed for a moment: each child had the
    /// locks' files open until its program began.
    #[test]
    fn a_lock_that_was_given_back_is_free_though_a_child_has_its_file_open() {
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

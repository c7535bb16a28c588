//! A depot in a folder, such as one on a disk that several machines mount.

use super::guarded_folder::GuardedFolder;
use super::{
    DEPOT_LIST_ENTRIES, Depot, DepotEntry, DepotError, DepotRead, DepotTag, DepotWrite,
    MAX_DEPOT_OBJECT_BYTES, check_depot_name, check_depot_object, check_depot_prefix,
};
use crate::backend::files::LockedFile;
use crate::backend::plain_file;
use crate::model::Timestamp;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The lock of all writes. Names of objects never begin with a `.`.
const LOCK: &str = ".lock";
/// The folder of files that are being written.
const UNFINISHED: &str = ".unfinished";
/// Age in microseconds after which an unfinished file is removed: its writer was killed.
const ABANDONED_MICROS: i64 = 24 * 3_600 * 1_000_000;
/// How long a write waits for the lock.
const PATIENCE: Duration = Duration::from_secs(10);
/// Size in bytes of the largest object that a list reads to compute its tag.
const TAGGED_BYTES: u64 = 64 << 10;

/// A [`Depot`] in a folder. An object is a file of the same name.
///
/// A tag is the hash of the contents, because two writes within a clock tick give a file the same
/// time. Contents that are written again therefore have their old tag; see [`Depot::swap`]. The
/// depot's clock is the clock that sets the times of files: on a network file system, the server's.
#[derive(Clone, Debug)]
pub struct FolderDepot {
    root: PathBuf,
}

impl FolderDepot {
    /// Opens the depot in this folder.
    ///
    /// # Errors
    /// [`DepotError::Unavailable`] if there is no such folder.
    pub fn open(root: &Path) -> Result<Self, DepotError> {
        let depot = Self { root: root.to_owned() };
        depot.root()?;
        Ok(depot)
    }

    fn root(&self) -> Result<GuardedFolder, DepotError> {
        GuardedFolder::open(&self.root).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                let root = self.root.display();
                let what =
                    format!("there is no folder {root}: create or mount it, or name another");
                DepotError::Unavailable { what, source: Some(Box::new(error)) }
            }
            _ => self.failed("open", "")(error),
        })
    }

    /// Returns a function that converts an I/O error of an action on an object.
    fn failed(&self, verb: &str, name: &str) -> impl Fn(io::Error) -> DepotError {
        let path = self.root.join(name);
        move |error| {
            let action = format!("{verb} {}", path.display());
            match error.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    DepotError::Refused { action, source: Box::new(error) }
                }
                _ => {
                    let what = format!("cannot {action}");
                    DepotError::Unavailable { what, source: Some(Box::new(error)) }
                }
            }
        }
    }

    /// Converts an I/O error about an object. An object that is too large or not a file, such as a
    /// link, is damaged.
    fn object_error(&self, name: &str, error: io::Error) -> DepotError {
        let is_link = is_link(&error);
        if is_link || plain_file::is_no_file(&error) {
            let what = if is_link { "it is a link".to_owned() } else { error.to_string() };
            let reason = format!("{what} ({})", self.root.join(name).display());
            return DepotError::Damaged { name: name.to_owned(), reason };
        }
        self.failed("use", name)(error)
    }

    /// Opens the folder of an object; `None` if the folder does not exist and `create` is false.
    fn folder_of(&self, name: &str, create: bool) -> Result<Option<GuardedFolder>, DepotError> {
        let mut folder = self.root()?;
        let (parents, _) = split_last(name);
        for part in parents.split_terminator('/') {
            let inside =
                folder.inside(part, create).map_err(|error| self.object_error(name, error))?;
            match inside {
                Some(inside) => folder = inside,
                None => return Ok(None),
            }
        }
        Ok(Some(folder))
    }

    /// Reads an object; `None` if it does not exist.
    fn read(
        &self,
        folder: &GuardedFolder,
        name: &str,
    ) -> Result<Option<(Vec<u8>, DepotTag)>, DepotError> {
        let read = || {
            let Some(file) = folder.read(split_last(name).1)? else { return Ok(None) };
            let bytes = plain_file::read_opened(file, MAX_DEPOT_OBJECT_BYTES as u64)?;
            let tag = tag_of(&bytes);
            Ok(Some((bytes, tag)))
        };
        read().map_err(|error| self.object_error(name, error))
    }

    /// Writes an object if its tag is `expected`, or if it does not exist and `expected` is `None`.
    fn write(
        &self,
        name: &str,
        expected: Option<&DepotTag>,
        bytes: &[u8],
    ) -> Result<DepotWrite, DepotError> {
        check_depot_name(name)?;
        check_depot_object(bytes)?;
        let failed = self.failed("write", name);
        let Some(folder) = self.folder_of(name, expected.is_none())? else {
            return Ok(DepotWrite::Conflict);
        };
        let unfinished = self.prepare(bytes).map_err(&failed)?;
        let _lock = self.lock()?;
        let found = self.read(&folder, name)?.map(|(_, tag)| tag);
        if found.as_ref() != expected {
            return Ok(DepotWrite::Conflict);
        }
        let renamed = unfinished.folder.rename(&unfinished.name, &folder, split_last(name).1);
        renamed.map_err(&failed)?;
        folder.sync().map_err(|error| DepotError::Unsure {
            name: name.to_owned(),
            source: Box::new(error),
        })?;
        Ok(DepotWrite::Done(tag_of(bytes)))
    }

    /// Creates an unfinished file.
    fn begin(&self) -> io::Result<(UnfinishedFile, File)> {
        let root = GuardedFolder::open(&self.root)?;
        let folder = root.inside(UNFINISHED, true)?.ok_or(io::ErrorKind::NotFound)?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = format!("{:016x}", u64::from_le_bytes(random));
        let file = folder.create(&name)?;
        Ok((UnfinishedFile { folder, name }, file))
    }

    /// Writes an unfinished file, durably.
    fn prepare(&self, bytes: &[u8]) -> io::Result<UnfinishedFile> {
        let (unfinished, mut file) = self.begin()?;
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(unfinished)
    }

    fn lock(&self) -> Result<LockedFile, DepotError> {
        let locked = |file| LockedFile::exclusive_within(file, PATIENCE);
        let lock = self.root()?.lock_file(LOCK).and_then(locked);
        lock.map_err(self.failed("lock", LOCK))?.map_err(|_| DepotError::Busy { after: None })
    }

    /// Adds the objects in a folder and below whose names are after `after`, until the list is
    /// full. `path` is the name of the folder with a `/` at its end, or empty.
    fn walk(
        &self,
        folder: &GuardedFolder,
        path: &str,
        after: &str,
        found: &mut Vec<DepotEntry>,
    ) -> io::Result<()> {
        let mut names = Vec::new();
        for name in folder.names()?.into_iter().filter(|name| check_depot_name(name).is_ok()) {
            let Some(file) = read_unless_link(folder, &name)? else { continue };
            let about = file.metadata()?;
            if about.is_dir() {
                names.push((format!("{path}{name}/"), name));
            } else if about.is_file() && *after < *format!("{path}{name}") {
                names.push((format!("{path}{name}"), name));
            }
        }
        names.sort_unstable();
        for (full, name) in names {
            if found.len() == DEPOT_LIST_ENTRIES {
                break;
            }
            if !full.ends_with('/') {
                let Some(file) = read_unless_link(folder, &name)? else { continue };
                found.extend(entry(full, file)?);
            } else if *after < *full || after.starts_with(&full) {
                let Some(inside) = folder.inside(&name, false)? else { continue };
                self.walk(&inside, &full, after, found)?;
            }
        }
        Ok(())
    }

    /// Removes files that killed writers left. Ignores errors: the next list tries again.
    fn sweep(&self, root: &GuardedFolder) {
        let Ok(Some(folder)) = root.inside(UNFINISHED, false) else { return };
        let names = folder.names().unwrap_or_default();
        let mut now = None;
        for name in names.into_iter().filter(|name| !name.starts_with('.')) {
            let Ok(Some(file)) = folder.read(&name) else { continue };
            let Ok(about) = file.metadata() else { continue };
            if now.is_none() {
                now = self.now().ok();
            }
            let Some(now) = now else { return };
            if now.micros_since(changed(&about)) > ABANDONED_MICROS {
                let _ = folder.remove(&name);
            }
        }
    }
}

/// A file that is being written. Dropping it removes it, unless it was renamed.
struct UnfinishedFile {
    folder: GuardedFolder,
    name: String,
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        let _ = self.folder.remove(&self.name);
    }
}

impl Depot for FolderDepot {
    fn get(&self, name: &str, known: Option<&DepotTag>) -> Result<DepotRead, DepotError> {
        check_depot_name(name)?;
        let Some(folder) = self.folder_of(name, false)? else { return Ok(DepotRead::Absent) };
        Ok(DepotRead::of(self.read(&folder, name)?, known))
    }

    fn put_new(&self, name: &str, bytes: &[u8]) -> Result<DepotWrite, DepotError> {
        self.write(name, None, bytes)
    }

    fn swap(
        &self,
        name: &str,
        expected: &DepotTag,
        bytes: &[u8],
    ) -> Result<DepotWrite, DepotError> {
        self.write(name, Some(expected), bytes)
    }

    fn list(&self, prefix: &str, after: &str) -> Result<Vec<DepotEntry>, DepotError> {
        check_depot_prefix(prefix)?;
        self.sweep(&self.root()?);
        let mut found = Vec::new();
        if let Some(folder) = self.folder_of(prefix, false)? {
            let walked = self.walk(&folder, prefix, after, &mut found);
            walked.map_err(self.failed("list", prefix))?;
        }
        Ok(found)
    }

    fn remove(&self, name: &str) -> Result<(), DepotError> {
        check_depot_name(name)?;
        let Some(folder) = self.folder_of(name, false)? else { return Ok(()) };
        let _lock = self.lock()?;
        let removed = folder.remove(split_last(name).1).and_then(|_| folder.sync());
        removed.map_err(self.failed("remove", name))
    }

    fn now(&self) -> Result<Timestamp, DepotError> {
        self.root()?;
        let begun = self.begin().and_then(|(_unfinished, file)| file.metadata());
        begun.map(|about| changed(&about)).map_err(self.failed("write", UNFINISHED))
    }
}

/// Splits a name into its folder, with a `/` at its end, and its last part.
fn split_last(name: &str) -> (&str, &str) {
    name.split_at(name.rfind('/').map_or(0, |at| at + 1))
}

fn tag_of(bytes: &[u8]) -> DepotTag {
    DepotTag::new(blake3::hash(bytes).to_hex().as_str())
}

/// Returns the time at which a file was last written.
fn changed(about: &std::fs::Metadata) -> Timestamp {
    let micros = about.mtime().saturating_mul(1_000_000);
    Timestamp::from_micros(micros.saturating_add(about.mtime_nsec() / 1_000))
}

/// Whether a file was not opened because it is a link.
fn is_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Opens a file or folder; `None` if it is a link or no longer exists.
fn read_unless_link(folder: &GuardedFolder, name: &str) -> io::Result<Option<File>> {
    match folder.read(name) {
        Err(error) if is_link(&error) => Ok(None),
        opened => opened,
    }
}

/// Returns the entry of an object in a list; `None` if it is not a file.
fn entry(name: String, file: File) -> io::Result<Option<DepotEntry>> {
    let about = file.metadata()?;
    if !about.is_file() {
        return Ok(None);
    }
    let bytes = about.len();
    let is_small = bytes <= TAGGED_BYTES;
    let tag = is_small.then(|| plain_file::read_opened(file, TAGGED_BYTES)).transpose()?;
    let tag = tag.map(|bytes| tag_of(&bytes));
    Ok(Some(DepotEntry { name, tag, bytes, changed: changed(&about) }))
}

#[cfg(test)]
mod tests;

//! The folder of an index: its files, and the rules for removing them.
//!
//! ```text
//! apply.lock                   held by the writer of the next generation; never removed
//! published                    shows that a generation exists, even if a listing has none
//! work/                        the next generation, not finished
//! 7-00000000000003e8/          generation 7, at position 1000; never changed
//! 7-00000000000003e8.lease     lock file: shared for readers, exclusive for removal
//! retired-6-00000000000001f4/  being removed
//! ```

use super::generation_seal::SEAL;
use super::manifest;
use crate::backend::files::{self, LockedFile};
use crate::backend::{Error, INDEX_LOCK, LockHolder, LogPosition};
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LEASE: &str = ".lease";
const LOCK: &str = "apply.lock";
const PUBLISHED: &str = "published";
const WORK: &str = "work";
const RETIRED: &str = "retired-";
/// Maximum number of listings while the folder keeps changing.
const LOOKS: usize = 1_000;

/// The name of a generation: an increasing number and the position of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GenerationId {
    pub(super) number: u64,
    pub(super) position: LogPosition,
}

impl fmt::Display for GenerationId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{:016x}", self.number, self.position)
    }
}

impl GenerationId {
    /// Parses exactly what `Display` writes.
    fn parse(name: &str) -> Option<Self> {
        let (number, position) = name.split_once('-')?;
        let position = LogPosition::from_str_radix(position, 16).ok()?;
        let generation = Self { number: number.parse().ok()?, position };
        (generation.to_string() == name).then_some(generation)
    }
}

/// The folder of an index. It need not exist.
#[derive(Clone, Debug)]
pub(super) struct IndexFolder {
    path: PathBuf,
}

impl IndexFolder {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self, name: impl fmt::Display) -> PathBuf {
        self.path.join(name.to_string())
    }

    pub(super) fn work(&self) -> PathBuf {
        self.path(WORK)
    }

    /// Returns the path of the file that exists once a generation was published.
    pub(super) fn published(&self) -> PathBuf {
        self.path(PUBLISHED)
    }

    fn lease(&self, generation: GenerationId) -> PathBuf {
        self.path(format_args!("{generation}{LEASE}"))
    }

    /// Returns the newest generation, if there has ever been one.
    pub(super) fn newest(&self) -> Result<Option<GenerationId>, Error> {
        for _ in 0..LOOKS {
            if let Some(newest) = newest_of(&files::names_in(&self.path)?) {
                return Ok(Some(newest));
            }
            // A listing that began before a generation was published and ended after its
            // predecessor was removed shows neither. Nothing is removed before `published` exists.
            let published = self.published();
            if !published.try_exists().map_err(Error::io("look for", &published))? {
                return Ok(None);
            }
        }
        let what = "all its generations are missing".to_owned();
        Err(Error::DamagedIndex { what })
    }

    /// Takes a lease that keeps a generation's files from being removed. `None` if it is removed or
    /// being removed.
    pub(super) fn hold(&self, generation: GenerationId) -> Result<Option<GenerationLease>, Error> {
        let path = self.lease(generation);
        let folder = self.path(generation);
        let present = || folder.try_exists().map_err(Error::io("look for", &folder));
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if !present()? {
                    return Ok(None);
                }
                // The folder was copied without its lease files.
                match private(&path) {
                    Ok(file) => file,
                    // A folder in which no lease can be created is taken to be read-only: nothing
                    // is removed there.
                    Err(_) => return Ok(Some(GenerationLease { _file: None })),
                }
            }
            Err(error) => return Err(Error::io("open", &path)(error)),
        };
        let Some(file) = LockedFile::shared(file).map_err(Error::io("lock", &path))? else {
            return Ok(None);
        };
        Ok(if present()? { Some(GenerationLease { _file: Some(file) }) } else { None })
    }

    /// Takes the write lock if it is free. Creates the folder.
    pub(super) fn try_lock(&self) -> Result<Option<LockedFile>, Error> {
        let (path, file) = self.lock_file()?;
        LockedFile::exclusive(file).map_err(Error::io("lock", &path))
    }

    /// Takes the write lock like [`try_lock`](Self::try_lock), but waits up to `timeout`.
    pub(super) fn lock(&self, timeout: Duration) -> Result<LockedFile, Error> {
        let since = Instant::now();
        let (path, file) = self.lock_file()?;
        let locked =
            LockedFile::exclusive_within(file, timeout).map_err(Error::io("lock", &path))?;
        locked.map_err(|file| {
            let (holder, waited) = (LockHolder::of(&file), since.elapsed());
            Error::Busy { lock: INDEX_LOCK, holder, waited }
        })
    }

    fn lock_file(&self) -> Result<(PathBuf, File), Error> {
        self.create()?;
        let path = self.path(LOCK);
        let file = private(&path).map_err(Error::io("open", &path))?;
        Ok((path, file))
    }

    fn create(&self) -> Result<(), Error> {
        if self.path.is_dir() {
            return Ok(());
        }
        private_folder(&self.path).map_err(Error::io("create", &self.path))?;
        sync(files::folder_of(&self.path))
    }

    /// Turns the finished working copy into a generation, sealed by `seal`. The caller holds the
    /// lock.
    pub(super) fn publish<T>(
        &self,
        generation: GenerationId,
        seal: impl FnOnce(&Path) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (work, folder, lease) = (self.work(), self.path(generation), self.lease(generation));
        settle(&work)?;
        let sealed = seal(&work)?;
        sync(&work)?;
        private(&lease).map_err(Error::io("create", &lease))?;
        fs::rename(&work, &folder).map_err(Error::io("rename", &work))?;
        if let Err(error) = sync(&self.path) {
            // The name is not known to be durable, so it must be undone: older generations may be
            // removed soon.
            fs::rename(&folder, &work).map_err(Error::io("rename", &folder))?;
            return Err(error);
        }
        // Without this file nothing is removed; that is the only consequence.
        let _ = private(&self.published());
        Ok(sealed)
    }

    /// Removes generations older than the newest that have no readers, and leftovers of crashes.
    /// The caller holds the lock. What cannot be removed now is left for the next call.
    pub(super) fn tidy(&self) -> Result<(), Error> {
        let names = files::names_in(&self.path)?;
        let newest = newest_of(&names);
        for name in &names {
            let path = self.path(name);
            if name.starts_with(RETIRED) || name == WORK {
                files::remove_large_in(&path);
            } else if let Some(generation) = GenerationId::parse(name) {
                if newest != Some(generation) {
                    self.retire(generation);
                }
            } else if let Some(generation) = name.strip_suffix(LEASE).and_then(GenerationId::parse)
                && !names.contains(&generation.to_string())
            {
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }

    /// Returns the size in bytes of the tables of a generation.
    pub(super) fn table_bytes(&self, generation: GenerationId) -> Result<u64, Error> {
        let folder = self.path(generation);
        let mut bytes = 0;
        for entry in files::entries(&folder)? {
            if is_table(&entry.path()) {
                bytes += entry.metadata().map_err(Error::io("look at", &entry.path()))?.len();
            }
        }
        Ok(bytes)
    }

    /// Returns the folders of generations older than the newest, and of those being removed.
    pub(super) fn older(&self) -> Result<Vec<PathBuf>, Error> {
        let names = files::names_in(&self.path)?;
        let newest = newest_of(&names);
        let is_older = |name: &&String| {
            let generation = GenerationId::parse(name);
            name.starts_with(RETIRED) || generation.is_some_and(|one| Some(one) != newest)
        };
        Ok(names.iter().filter(is_older).map(|name| self.path(name)).collect())
    }

    /// Removes a generation without readers. It is renamed first, so that a folder with a
    /// generation's name is always complete.
    fn retire(&self, generation: GenerationId) {
        let lease = self.lease(generation);
        let Ok(file) = private(&lease) else { return };
        let Ok(Some(_alone)) = LockedFile::exclusive(file) else { return };
        if !self.published().exists() {
            return;
        }
        let retired = self.path(format_args!("{RETIRED}{generation}"));
        if fs::rename(self.path(generation), &retired).is_ok() {
            let _ = fs::remove_file(&lease);
            files::remove_large_in(&retired);
        }
    }

    /// Makes `work/` a copy of a generation without its seal; an empty folder without a generation.
    /// Tables never change, so they are hard-linked if possible; other files are copied. The caller
    /// holds the lock.
    pub(super) fn copy_to_work(&self, generation: Option<GenerationId>) -> Result<(), Error> {
        let work = self.work();
        // Leftovers of a crash would become a part of the next generation.
        files::remove_folder(&work)?;
        private_folder(&work).map_err(Error::io("create", &work))?;
        let Some(generation) = generation else { return Ok(()) };
        for entry in files::entries(&self.path(generation))? {
            if entry.file_name() == SEAL {
                continue;
            }
            let (from, to) = (entry.path(), work.join(entry.file_name()));
            let table = is_table(&from);
            if table && fs::hard_link(&from, &to).is_ok() {
                continue;
            }
            fs::copy(&from, &to).map_err(Error::io("copy", &from))?;
            // `settle` syncs all files but tables with mode 0600, so a copied table is synced here.
            if table {
                sync(&to)?;
            }
        }
        Ok(())
    }
}

/// Returns whether a name in an index's folder belongs to the index.
pub(crate) fn is_own(name: &str) -> bool {
    let generation = name.strip_suffix(LEASE).unwrap_or(name);
    let generation = generation.strip_prefix(RETIRED).unwrap_or(generation);
    GenerationId::parse(generation).is_some() || [LOCK, PUBLISHED, WORK].contains(&name)
}

/// Keeps a generation from being removed while it exists.
pub(super) struct GenerationLease {
    _file: Option<LockedFile>,
}

pub(super) fn is_table(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "sst")
}

/// Returns whether a file is a part of a generation.
fn is_part(path: &Path, name: &str) -> bool {
    is_table(path) || name == "CURRENT" || name.starts_with(manifest::NAME)
}

/// Rejects a generation that contains foreign files.
pub(super) fn check_names(generation: &Path) -> Result<(), Error> {
    for entry in files::entries(generation)? {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !is_part(&entry.path(), &name) && name != SEAL {
            let source = format!("{} is not one of its files: remove it", entry.path().display());
            return Err(Error::Index { action: "seal", source: source.into() });
        }
    }
    Ok(())
}

/// Removes files that readers do not need, and makes the others private and durable. The caller
/// must sync the folder to make their names durable.
fn settle(work: &Path) -> Result<(), Error> {
    let mut changed = Vec::new();
    for entry in files::entries(work)? {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let needed = is_part(&path, &name);
        if !needed {
            // Options, lock, identity and the empty log of a closed database: RocksDB creates them
            // again when it opens one for writing.
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
            continue;
        }
        let mode = entry.metadata().map_err(Error::io("look at", &path))?.permissions().mode();
        // A table with mode 0600 needs no sync: RocksDB synced its content, and its mode stays.
        if mode & 0o777 != 0o600 || !is_table(&path) {
            fs::set_permissions(&path, Permissions::from_mode(0o600))
                .map_err(Error::io("set the mode of", &path))?;
            changed.push(path);
        }
    }
    // All files are synced at the end: the first sync commits the metadata of all of them.
    changed.iter().try_for_each(|path| sync(path))
}

fn sync(path: &Path) -> Result<(), Error> {
    File::open(path).and_then(|file| file.sync_all()).map_err(Error::io("sync", path))
}

/// Returns the newest of the generations with these names.
fn newest_of(names: &[String]) -> Option<GenerationId> {
    names.iter().filter_map(|name| GenerationId::parse(name)).max()
}

/// Creates a folder for its owner only, whatever the umask.
fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o700))
}

/// Opens or creates a file for its owner only, whatever the umask.
fn private(path: &Path) -> io::Result<File> {
    let mut open = OpenOptions::new();
    open.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = open.open(path)?;
    if file.metadata()?.permissions().mode() & 0o777 != 0o600 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

//! The file `SYNCED`: how far the journal is known to be durable. It may lag behind the journal,
//! but is never ahead of it. A witness contains a mark of the same form.

use super::layout::{MARK_BYTES, SyncMark};
use super::segment;
use crate::backend::{Error, LogPosition, files, plain_file};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub(super) const NAME: &str = "SYNCED";
/// Maximum number of attempts to read a mark that another process may be overwriting.
const READS: usize = 4;

/// An open file with a mark; without the file, nothing is known to be durable.
#[derive(Debug)]
pub(crate) struct SyncMarkFile {
    file: Option<File>,
    path: PathBuf,
    /// The offset of the mark in the file.
    offset: u64,
    /// Excludes other threads of this process: they share the lock on the file.
    turn: Mutex<()>,
}

impl SyncMarkFile {
    /// Opens `SYNCED`. A writer creates a missing file; for a reader, a missing file has no mark.
    pub(crate) fn open(folder: &Path, write: bool) -> Result<Self, Error> {
        let path = folder.join(NAME);
        let options = OpenOptions::new().read(true).write(write).clone();
        let opened = files::if_there(plain_file::open_with(&path, &options));
        let file = match opened.map_err(Error::io("open", &path))? {
            None if write => Self::make(&path)?,
            opened => opened,
        };
        Ok(Self::of(file, path, 0))
    }

    /// Wraps the mark at an offset of an open file; without a file, nothing is known to be durable.
    pub(crate) const fn of(file: Option<File>, path: PathBuf, offset: u64) -> Self {
        Self { file, path, offset, turn: Mutex::new(()) }
    }

    fn make(path: &Path) -> Result<Option<File>, Error> {
        let made = segment::create_private(path).and_then(|file| {
            file.write_all_at(&[0; MARK_BYTES], 0)?;
            file.sync_all()?;
            Ok(file)
        });
        match made {
            // Another process has just created it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let file = OpenOptions::new().read(true).write(true).open(path);
                file.map(Some).map_err(Error::io("open", path))
            }
            made => made.map(Some).map_err(Error::io("create", path)),
        }
    }

    /// Reads the mark; `None` if there is no valid one.
    pub(crate) fn read(&self) -> Result<Option<SyncMark>, Error> {
        let Some(file) = &self.file else { return Ok(None) };
        let mut bytes = [0; MARK_BYTES];
        for _ in 0..READS {
            match file.read_exact_at(&mut bytes, self.offset) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                Err(error) => return Err(Error::io("read", &self.path)(error)),
            }
            if let Some(mark) = SyncMark::decode(&bytes) {
                return Ok(Some(mark));
            }
            if bytes == [0; MARK_BYTES] {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// Moves the mark forward, unless another thread or process is doing so. Returns whether it
    /// moved; correctness does not depend on it.
    pub(crate) fn note(&self, mark: &SyncMark) -> bool {
        let (Some(file), Ok(_turn)) = (&self.file, self.turn.try_lock()) else { return false };
        if file.try_lock().is_err() {
            return false;
        }
        let behind =
            |found: Option<SyncMark>| found.is_none_or(|found| found.position < mark.position);
        let moved =
            self.read().is_ok_and(behind) && file.write_all_at(&mark.encode(), self.offset).is_ok();
        let _ = file.unlock();
        moved
    }

    /// Makes the mark durable; errors are ignored.
    pub(crate) fn sync(&self) {
        if let Some(file) = &self.file {
            let _ = file.sync_data();
        }
    }

    /// Returns the position of the mark, 0 if there is none.
    pub(crate) fn position(&self) -> Result<LogPosition, Error> {
        Ok(self.read()?.map_or(0, |mark| mark.position))
    }
}

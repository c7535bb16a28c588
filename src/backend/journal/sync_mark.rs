//! The file `SYNCED`: how far the journal is known to be durable. It may lag, never lead.

use super::layout::{MARK_BYTES, SyncMark};
use super::segment;
use crate::backend::{Error, LogPosition};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

pub(super) const NAME: &str = "SYNCED";
/// How often a mark is read that somebody is overwriting just then.
const READS: usize = 4;

/// The open file `SYNCED`; without it nothing is known.
#[derive(Debug)]
pub(crate) struct SyncMarkFile {
    file: Option<File>,
    path: PathBuf,
    /// Where in the file it stands.
    offset: u64,
    /// Threads of one process share the lock on the file, so they need one of their own.
    turn: Mutex<()>,
}

impl SyncMarkFile {
    /// Opens the file; one that is missing knows nothing. A writer makes it again.
    pub(crate) fn open(folder: &Path, write: bool) -> Result<Self, Error> {
        let path = folder.join(NAME);
        let file = match OpenOptions::new().read(true).write(write).open(&path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound && write => Self::make(&path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io("open", &path)(error)),
        };
        Ok(Self::of(file, path, 0))
    }

    /// The mark that stands at an offset of an open file; without the file nothing is known.
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
            // Another process made it just now.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let file = OpenOptions::new().read(true).write(true).open(path);
                file.map(Some).map_err(Error::io("open", path))
            }
            made => made.map(Some).map_err(Error::io("create", path)),
        }
    }

    /// What it says; `None` if it says nothing whole.
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

    /// Moves the mark forward, unless somebody else is at it. Nothing depends on its success. Says whether it moved.
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

    /// Makes what it says durable.
    pub(crate) fn sync(&self) {
        if let Some(file) = &self.file {
            let _ = file.sync_data();
        }
    }

    /// The position it names, 0 if none.
    pub(crate) fn position(&self) -> Result<LogPosition, Error> {
        Ok(self.read()?.map_or(0, |mark| mark.position))
    }
}

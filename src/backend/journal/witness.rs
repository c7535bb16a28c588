//! The witness: how far the journal was seen to be durable, noted outside the store, where nobody who changes the store
//! reaches it. It moves forward only; it may lag behind the journal, and never leads.

use super::layout::{MARK_BYTES, Mark};
use super::mark::MarkFile;
use crate::backend::{Error, files};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The store's id stands before the mark.
const ID_BYTES: usize = 16;
/// So long what it says may wait to become durable, if the system goes down before it is closed.
const SYNC_EVERY: Duration = Duration::from_secs(5);

/// The open witness of a store.
#[derive(Debug)]
pub(crate) struct Witness {
    mark: MarkFile,
    /// Since when something of it is not durable; `None` if all of it is.
    unsynced: Mutex<Option<Instant>>,
}

impl Witness {
    /// The witness of this store in a file; `None` if there is none, or one of another store.
    pub(crate) fn open(path: &Path, store: &[u8; 16]) -> Result<Option<Self>, Error> {
        let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if absent(&error) => return Ok(None),
            // Where it cannot be written it lags, and goes on to be looked at.
            Err(_) => match File::open(path) {
                Ok(file) => file,
                Err(error) if absent(&error) => return Ok(None),
                Err(error) => return Err(Error::io("open", path)(error)),
            },
        };
        let mut id = [0; ID_BYTES];
        if file.read_exact_at(&mut id, 0).is_err() || id != *store {
            return Ok(None);
        }
        let mark = MarkFile::of(Some(file), path.to_owned(), ID_BYTES as u64);
        let witness = Self { mark, unsynced: Mutex::new(None) };
        Ok(witness.read()?.is_some().then_some(witness))
    }

    /// Makes the witness of a store that has seen it reach this far; one that is there is replaced.
    pub(crate) fn create(path: &Path, store: &[u8; 16], seen: &Mark) -> Result<(), Error> {
        let mut bytes = [0; ID_BYTES + MARK_BYTES];
        bytes[..ID_BYTES].copy_from_slice(store);
        bytes[ID_BYTES..].copy_from_slice(&seen.encode());
        files::replace(path, &path.with_extension("new"), &bytes)?;
        files::sync_folder(files::folder_of(path))
    }

    /// What it has seen.
    pub(crate) fn read(&self) -> Result<Option<Mark>, Error> {
        self.mark.read()
    }

    /// Notes what is durable in the journal by now. Nothing depends on its success.
    pub(crate) fn note(&self, mark: &Mark) {
        if !self.mark.note(mark) {
            return;
        }
        let Ok(mut unsynced) = self.unsynced.lock() else { return };
        match *unsynced {
            Some(since) if since.elapsed() >= SYNC_EVERY => {
                self.mark.sync();
                *unsynced = None;
            }
            Some(_) => {}
            None => *unsynced = Some(Instant::now()),
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        if self.unsynced.get_mut().is_ok_and(|since| since.take().is_some()) {
            self.mark.sync();
        }
    }
}

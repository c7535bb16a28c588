//! The witness: how far the journal was seen to be durable, noted outside the store, where nobody who changes the store
//! reaches it. It moves forward only; it may lag behind the journal, and never leads.

use super::layout::{MARK_BYTES, SyncMark};
use super::sync_mark::SyncMarkFile;
use crate::backend::{Error, files, plain_file};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The store's id stands before the mark.
const ID_BYTES: usize = 16;
/// So long what it says may wait to become durable.
const SYNC_AFTER: Duration = Duration::from_secs(5);
/// A thread that waits needs no more.
const STACK_BYTES: usize = 64 << 10;

/// The open witness of a store.
#[derive(Debug)]
pub(crate) struct JournalWitness {
    mark: Arc<SyncMarkFile>,
    /// While something of it is not durable: a thread waits for its time, or for this to be dropped.
    unsynced: Arc<Mutex<Option<Sender<()>>>>,
    sync_after: Duration,
}

impl JournalWitness {
    /// The witness of this store in a file; `None` if there is none, or one of another store.
    pub(crate) fn open(path: &Path, store: &[u8; 16]) -> Result<Option<Self>, Error> {
        let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if absent(&error) => return Ok(None),
            // Where it cannot be written it lags, and goes on to be looked at.
            Err(_) => match plain_file::open(path) {
                Ok(file) => file,
                Err(error) if absent(&error) => return Ok(None),
                Err(error) => return Err(Error::io("open", path)(error)),
            },
        };
        let mut id = [0; ID_BYTES];
        if file.read_exact_at(&mut id, 0).is_err() || id != *store {
            return Ok(None);
        }
        let mark = SyncMarkFile::of(Some(file), path.to_owned(), ID_BYTES as u64);
        let witness =
            Self { mark: Arc::new(mark), unsynced: Arc::default(), sync_after: SYNC_AFTER };
        Ok(witness.read()?.is_some().then_some(witness))
    }

    /// Makes the witness of a store that has seen it reach this far; one that is there is replaced.
    pub(crate) fn create(path: &Path, store: &[u8; 16], seen: &SyncMark) -> Result<(), Error> {
        let mut bytes = [0; ID_BYTES + MARK_BYTES];
        bytes[..ID_BYTES].copy_from_slice(store);
        bytes[ID_BYTES..].copy_from_slice(&seen.encode());
        files::replace(path, &path.with_extension("new"), &bytes)?;
        files::sync_folder(files::folder_of(path))
    }

    /// What it has seen.
    pub(crate) fn read(&self) -> Result<Option<SyncMark>, Error> {
        self.mark.read()
    }

    /// Notes what is durable in the journal by now. Nothing depends on its success.
    pub(crate) fn note(&self, mark: &SyncMark) {
        if !self.mark.note(mark) {
            return;
        }
        let mut unsynced = self.unsynced.lock().unwrap_or_else(PoisonError::into_inner);
        if unsynced.is_none() {
            *unsynced = self.sync_later();
        }
    }

    /// Begins a thread that makes it durable in time, also if nothing else is written. Where there can be none it is at once.
    fn sync_later(&self) -> Option<Sender<()>> {
        let (waiting, closed) = channel();
        let (mark, unsynced) = (Arc::clone(&self.mark), Arc::clone(&self.unsynced));
        let sync_after = self.sync_after;
        let sync = move || {
            if closed.recv_timeout(sync_after) == Err(RecvTimeoutError::Timeout) {
                // What is noted from here on has its own time.
                unsynced.lock().unwrap_or_else(PoisonError::into_inner).take();
                mark.sync();
            }
        };
        let began =
            thread::Builder::new().name("witness".to_owned()).stack_size(STACK_BYTES).spawn(sync);
        if began.is_err() {
            self.mark.sync();
        }
        began.ok().map(|_| waiting)
    }
}

impl Drop for JournalWitness {
    fn drop(&mut self) {
        if self.unsynced.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            self.mark.sync();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: [u8; 16] = [7; 16];

    fn seen(position: u64) -> SyncMark {
        SyncMark { position, hash: [1; 32] }
    }

    fn is_durable(unsynced: &Mutex<Option<Sender<()>>>) -> bool {
        unsynced.lock().unwrap().is_none()
    }

    fn witness(folder: &Path) -> JournalWitness {
        let path = folder.join("witness");
        JournalWitness::create(&path, &STORE, &seen(1)).unwrap();
        JournalWitness::open(&path, &STORE).unwrap().unwrap()
    }

    /// It was made durable only when something else was noted later: whoever wrote once and then waited left it to the system.
    #[test]
    fn what_is_noted_once_becomes_durable_while_nothing_else_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut witness = witness(folder.path());
        witness.sync_after = Duration::from_millis(20);
        for position in [2, 3] {
            witness.note(&seen(position));
            while !is_durable(&witness.unsynced) {
                thread::yield_now();
            }
        }
        assert_eq!(witness.read().unwrap(), Some(seen(3)));
    }

    #[test]
    fn what_is_noted_is_durable_at_the_latest_when_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let witness = witness(folder.path());
        let unsynced = Arc::clone(&witness.unsynced);
        witness.note(&seen(1));
        assert!(is_durable(&unsynced), "nothing was noted");
        witness.note(&seen(2));
        assert!(!is_durable(&unsynced));
        drop(witness);
        assert!(is_durable(&unsynced));
        // The thread that waited for its time ends.
        while Arc::strong_count(&unsynced) > 1 {
            thread::yield_now();
        }
    }
}

//! The witness: how far the journal was seen to be durable, recorded outside the store, out of
//! reach of a process that can only change the store. It only moves forward; it may lag behind the
//! journal, but is never ahead of it.

use super::layout::{MARK_BYTES, SyncMark};
use super::sync_mark::SyncMarkFile;
use crate::backend::{Error, files, locked, plain_file};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Bytes of the store's id, which precedes the mark.
const ID_BYTES: usize = 16;
/// Maximum time before a new mark is synced.
const SYNC_AFTER: Duration = Duration::from_secs(5);
/// Stack size of the thread that waits to sync.
const STACK_BYTES: usize = 64 << 10;

/// The open witness of a store.
#[derive(Debug)]
pub(crate) struct JournalWitness {
    mark: Arc<SyncMarkFile>,
    /// Set while the mark is unsynced. A thread syncs it after a delay, and exits if the sender is
    /// dropped.
    unsynced: Arc<Mutex<Option<Sender<()>>>>,
    sync_after: Duration,
}

impl JournalWitness {
    /// Opens the witness of this store; `None` if the file is missing, belongs to another store, or
    /// has no valid mark.
    pub(crate) fn open(path: &Path, store: &[u8; 16]) -> Result<Option<Self>, Error> {
        let opened = files::if_there(OpenOptions::new().read(true).write(true).open(path));
        // A witness that cannot be written lags, but is still checked.
        let opened = opened.or_else(|_| files::if_there(plain_file::open(path)));
        let Some(file) = opened.map_err(Error::io("open", path))? else { return Ok(None) };
        let mut id = [0; ID_BYTES];
        if file.read_exact_at(&mut id, 0).is_err() || id != *store {
            return Ok(None);
        }
        let mark = SyncMarkFile::of(Some(file), path.to_owned(), ID_BYTES as u64);
        let witness =
            Self { mark: Arc::new(mark), unsynced: Arc::default(), sync_after: SYNC_AFTER };
        Ok(witness.read()?.is_some().then_some(witness))
    }

    /// Creates or replaces the witness of a store whose journal is durable up to `seen`.
    pub(crate) fn create(path: &Path, store: &[u8; 16], seen: &SyncMark) -> Result<(), Error> {
        let mut bytes = [0; ID_BYTES + MARK_BYTES];
        bytes[..ID_BYTES].copy_from_slice(store);
        bytes[ID_BYTES..].copy_from_slice(&seen.encode());
        files::replace(path, &path.with_extension("new"), &bytes)?;
        files::sync_folder(files::folder_of(path))
    }

    /// Returns the recorded mark.
    pub(crate) fn read(&self) -> Result<Option<SyncMark>, Error> {
        self.mark.read()
    }

    /// Records how far the journal is durable, if the file can be written. Correctness does not
    /// depend on that.
    pub(crate) fn note(&self, mark: &SyncMark) {
        if !self.mark.note(mark) {
            return;
        }
        let mut unsynced = locked(&self.unsynced);
        if unsynced.is_none() {
            *unsynced = self.sync_later();
        }
    }

    /// Starts a thread that syncs the mark after a delay, even if nothing else is written. If no
    /// thread can be started, syncs at once.
    fn sync_later(&self) -> Option<Sender<()>> {
        let (waiting, closed) = channel();
        let (mark, unsynced) = (Arc::clone(&self.mark), Arc::clone(&self.unsynced));
        let sync_after = self.sync_after;
        let sync = move || {
            if closed.recv_timeout(sync_after) == Err(RecvTimeoutError::Timeout) {
                // Marks recorded from here on start a new delay.
                locked(&unsynced).take();
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
        if locked(&self.unsynced).take().is_some() {
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

    /// The last mark must not wait for another one to become durable.
    #[test]
    fn the_last_position_noted_by_a_witness_becomes_durable_without_another_write() {
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
    fn a_position_noted_by_a_witness_is_durable_after_closing() {
        let folder = tempfile::tempdir().unwrap();
        let witness = witness(folder.path());
        let unsynced = Arc::clone(&witness.unsynced);
        witness.note(&seen(1));
        assert!(is_durable(&unsynced), "nothing was noted");
        witness.note(&seen(2));
        assert!(!is_durable(&unsynced));
        drop(witness);
        assert!(is_durable(&unsynced));
        // The waiting thread exits.
        while Arc::strong_count(&unsynced) > 1 {
            thread::yield_now();
        }
    }
}

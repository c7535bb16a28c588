//! What a store knows of the refs on a remote: a file for each session in the folder of the store,
//! or in memory for a store in memory.

use super::Remote;
use crate::backend::files::{self, LockedFile};
use crate::backend::{self, plain_file};
use crate::error::{Error, Result};
use crate::format::remote::{MAX_REF_BYTES, RefTrack};
use crate::model::SessionHandle;
use crate::store::Store;
use crate::store::folder::REMOTES_FOLDER;
use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The extension of a file that is being written.
const NEW: &str = "new";
/// A larger file is not a track: a ref, and some bytes for each of its packs.
const MAX_TRACK_BYTES: u64 = MAX_REF_BYTES as u64 + (64 << 10);
/// How long a push or pull waits for another one of the same store.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The tracks of a store in memory.
#[derive(Default)]
pub(super) struct Tracks(Mutex<HashMap<SessionHandle, RefTrack>>);

impl Remote {
    /// Returns what the store knows of the ref of a session. What is damaged, or of another history
    /// of the store, counts as nothing: it is made again from the packs.
    pub(super) fn track(&self, store: &Store, handle: &SessionHandle) -> Result<Option<RefTrack>> {
        let track = self.stored_track(store, handle)?;
        let is_known = track.as_ref().map(|track| store.has_export_mark(&track.end)).transpose()?;
        Ok(track.filter(|_| is_known == Some(true)))
    }

    fn stored_track(&self, store: &Store, handle: &SessionHandle) -> Result<Option<RefTrack>> {
        let Some(path) = self.track_path(store, handle) else {
            let tracks = self.tracks.0.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(tracks.get(handle).cloned());
        };
        match plain_file::read(&path, MAX_TRACK_BYTES) {
            Ok(bytes) => Ok(RefTrack::decode(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(backend::Error::io("read", &path)(error).into()),
        }
    }

    /// Keeps what the store knows of the ref of a session.
    pub(super) fn set_track(
        &self,
        store: &Store,
        handle: &SessionHandle,
        track: RefTrack,
    ) -> Result<()> {
        let Some(path) = self.track_path(store, handle) else {
            let mut tracks = self.tracks.0.lock().unwrap_or_else(PoisonError::into_inner);
            tracks.insert(*handle, track);
            return Ok(());
        };
        // It may be lost in a power cut: then it is made again from the packs.
        files::replace(&path, &path.with_extension(NEW), &track.encode())?;
        Ok(())
    }

    /// Waits until no other process pushes or pulls with this store. Released when it is dropped.
    pub(super) fn lock(&self, store: &Store) -> Result<Option<LockedFile>> {
        let Some(folder) = self.folder(store) else { return Ok(None) };
        for folder in folder.parent().into_iter().chain([folder.as_path()]) {
            if let Err(error) = files::create_private_folder(folder)
                && error.kind() != io::ErrorKind::AlreadyExists
            {
                return Err(backend::Error::io("create", folder)(error).into());
            }
        }
        let path = folder.join("lock");
        let wrong = |error| Error::from(backend::Error::io("lock", &path)(error));
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(false).write(true).open(&path).map_err(wrong)?;
        match LockedFile::exclusive_within(file, LOCK_TIMEOUT).map_err(wrong)? {
            Ok(locked) => Ok(Some(locked)),
            Err(_) => Err(Error::Conflict(
                "another push or pull of this store is running: try again when it has ended"
                    .to_owned(),
            )),
        }
    }

    fn folder(&self, store: &Store) -> Option<PathBuf> {
        Some(store.path()?.join(REMOTES_FOLDER).join(self.id().to_string()))
    }

    fn track_path(&self, store: &Store, handle: &SessionHandle) -> Option<PathBuf> {
        self.folder(store).map(|folder| folder.join(Path::new(&handle.to_string())))
    }
}

//! What a store knows of the refs on a remote: a file for each session in the folder of the store,
//! or in memory for a store in memory.

use super::{DepotTag, ReadRef, Remote};
use crate::backend::files::{self, LockedFile};
use crate::backend::{self, plain_file};
use crate::error::{Error, Result};
use crate::format::remote::{MAX_REF_BYTES, RefTrack};
use crate::format::{ExportMark, RecordBytes};
use crate::model::{RemoteId, SessionHandle};
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

/// A ref that the store has pushed or pulled.
pub(super) struct KnownRef {
    pub(super) read: ReadRef,
    /// Where each pack of the ref begins in this store.
    pub(super) begins: Vec<ExportMark>,
    /// Up to where the session is on the remote.
    pub(super) end: ExportMark,
}

/// The tracks of a store in memory.
#[derive(Default)]
pub(super) struct Tracks(Mutex<HashMap<SessionHandle, RefTrack>>);

impl Remote {
    /// Returns what the store knows of the ref of a session. What is damaged, or of another history
    /// of the store, counts as nothing: it is made again from the packs.
    pub(super) fn known_ref(
        &self,
        store: &Store,
        handle: &SessionHandle,
    ) -> Result<Option<KnownRef>> {
        let Some(track) = self.stored_track(store, handle)? else { return Ok(None) };
        if !store.has_export_mark(&track.end)? {
            return Ok(None);
        }
        let RefTrack { tag, stored, begins, end } = track;
        let read = self.opened(handle, stored.0, DepotTag::new(tag))?;
        // A session that was removed here is pulled whole again.
        if store.shared_session(read.opened.content.info.id)?.is_none() {
            return Ok(None);
        }
        Ok(Some(KnownRef { read, begins, end }))
    }

    fn stored_track(&self, store: &Store, handle: &SessionHandle) -> Result<Option<RefTrack>> {
        let Some(path) = self.track_path(store, handle) else {
            let tracks = self.tracks.0.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(tracks.get(handle).cloned());
        };
        read_track(&path)
    }

    /// Keeps what the store knows of the ref of a session.
    pub(super) fn keep_ref(
        &self,
        store: &Store,
        handle: &SessionHandle,
        (tag, stored): (&DepotTag, Vec<u8>),
        (begins, end): (Vec<ExportMark>, ExportMark),
    ) -> Result<()> {
        let (tag, stored) = (tag.as_str().to_owned(), RecordBytes(stored));
        let track = RefTrack { tag, stored, begins, end };
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
        let Some(folder) = store.track_folder(self.id) else { return Ok(None) };
        for folder in folder.parent().into_iter().chain([folder.as_path()]) {
            files::create_private_folder(folder).map_err(backend::Error::io("create", folder))?;
        }
        let path = folder.with_file_name("lock");
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

    fn track_path(&self, store: &Store, handle: &SessionHandle) -> Option<PathBuf> {
        Some(store.track_folder(self.id)?.join(handle.to_string()))
    }
}

impl Store {
    /// Returns the folder of the tracks of a remote; `None` for a store in memory.
    pub(super) fn track_folder(&self, remote: RemoteId) -> Option<PathBuf> {
        Some(self.path()?.join(REMOTES_FOLDER).join(remote.to_string()))
    }
}

/// Reads the file of a track. `None` if there is none, or if it is damaged.
pub(super) fn read_track(path: &Path) -> Result<Option<RefTrack>> {
    match plain_file::read(path, MAX_TRACK_BYTES) {
        Ok(bytes) => Ok(RefTrack::decode(&bytes).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(backend::Error::io("read", path)(error).into()),
    }
}

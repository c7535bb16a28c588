//! Room that is kept for the day on which the disk is full: who frees bytes needs some first.

use super::Store;
use super::folder::{INDEX_FOLDER, RESERVE_FILE, UNFINISHED_RESERVE_FILE};
use crate::backend::{self, files};
use crate::error::Result;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// There is none beside an index that takes less: pruning it would free too little.
const MIN_INDEX_BYTES: u64 = 1 << 20;
/// It takes this part of what the index takes, but as much as writing anything takes, and no more than is ever needed.
const SHARE: u64 = 32;
const MIN_BYTES: u64 = 256 << 10;
const MAX_BYTES: u64 = 16 << 20;

impl Store {
    /// Keeps a file of zeros in the store's folder, a 32nd of what its index takes (256 KiB at least, 16 MiB at most; none beside an
    /// index below 1 MiB), to be [given up](Store::give_up_reserve) where a pruning finds the disk full. To be called by who maintains the store. Where
    /// there is no room for it there is none.
    ///
    /// # Errors
    /// [`crate::error::Error::Backend`] if the store's files cannot be looked at.
    pub fn keep_reserve(&self) -> Result<()> {
        let Some(path) = self.path() else { return Ok(()) };
        if self.engine.check_writable().is_err() {
            return Ok(());
        }
        let index = path.join(INDEX_FOLDER);
        let mut known = HashMap::new();
        if index.exists() {
            sizes(&index, &mut known).map_err(backend::Error::io("look at", &index))?;
        }
        let bytes = known.values().sum::<u64>();
        let wanted = (bytes / SHARE).clamp(MIN_BYTES, MAX_BYTES);
        let held = fs::metadata(path.join(RESERVE_FILE)).map_or(0, |about| about.len());
        // It follows by doubling, and goes with the store.
        if bytes < MIN_INDEX_BYTES {
            self.give_up_reserve()?;
        } else if wanted >= 2 * held || wanted < held / 4 {
            let unfinished = path.join(UNFINISHED_RESERVE_FILE);
            files::remove(&unfinished)?;
            let written = zeros(&unfinished, wanted);
            let written = written.and_then(|()| fs::rename(&unfinished, path.join(RESERVE_FILE)));
            if let Err(error) = written {
                tracing::debug!(%error, "no room is kept for a full disk");
                files::remove(&unfinished)?;
            }
        }
        Ok(())
    }

    /// Gives up the room that was kept. Returns whether there was any.
    ///
    /// # Errors
    /// [`crate::error::Error::Backend`] if it cannot be removed.
    pub fn give_up_reserve(&self) -> Result<bool> {
        let Some(path) = self.path() else { return Ok(false) };
        files::remove(&path.join(UNFINISHED_RESERVE_FILE))?;
        Ok(files::remove(&path.join(RESERVE_FILE))?)
    }
}

/// Zeros that take room: a file with holes would not.
fn zeros(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = files::create_private(path)?;
    io::copy(&mut io::repeat(0).take(bytes), &mut file)?;
    file.sync_all()
}

/// The sizes of the files in a folder, each file once: generations share theirs.
fn sizes(folder: &Path, known: &mut HashMap<u64, u64>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(about) if about.is_dir() => sizes(&entry.path(), known)?,
            Ok(about) => drop(known.insert(about.ino(), about.len())),
            // Somebody tidies up.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

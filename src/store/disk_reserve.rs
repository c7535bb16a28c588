//! The reserve: a file of zeros that pruning deletes on a full disk, because freeing space needs
//! some space first.

use super::Store;
use super::folder::{INDEX_FOLDER, RESERVE_FILE, UNFINISHED_RESERVE_FILE};
use crate::backend::{self, files};
use crate::error::Result;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A smaller index has no reserve: pruning it would free too little.
const MIN_INDEX_BYTES: u64 = 1 << 20;
/// The reserve is the index size divided by this, within the limits below.
const SHARE: u64 = 32;
const MIN_BYTES: u64 = 256 << 10;
const MAX_BYTES: u64 = 16 << 20;

impl Store {
    /// Keeps a file of zeros in the store's folder, to be [deleted](Store::give_up_reserve) when
    /// pruning finds the disk full. Its size is a 32nd of the index, but at least 256 KiB and at
    /// most 16 MiB; an index below 1 MiB has no reserve. The process that maintains the store calls
    /// this. On a full disk no reserve is made.
    ///
    /// # Errors
    /// [`crate::error::Error::Backend`] if the store's files cannot be read.
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
        // The reserve grows if it should be at least twice as large, and shrinks if it should be
        // less than a quarter as large.
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

    /// Deletes the reserve. Returns whether there was one.
    pub fn give_up_reserve(&self) -> Result<bool> {
        let Some(path) = self.path() else { return Ok(false) };
        files::remove(&path.join(UNFINISHED_RESERVE_FILE))?;
        Ok(files::remove(&path.join(RESERVE_FILE))?)
    }
}

/// Writes zeros that occupy disk blocks; a sparse file would not.
fn zeros(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = files::create_private(path)?;
    io::copy(&mut io::repeat(0).take(bytes), &mut file)?;
    file.sync_all()
}

/// Collects the sizes of the files in a folder by inode, since generations share files.
fn sizes(folder: &Path, known: &mut HashMap<u64, u64>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(about) if about.is_dir() => sizes(&entry.path(), known)?,
            Ok(about) => drop(known.insert(about.ino(), about.len())),
            // Another process may remove files meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

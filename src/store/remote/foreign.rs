//! What others wrote to the sessions of a store, and the tag that ends the new ids which this store
//! chooses in a session of others.
//!
//! A file for each session that was pulled lists the operations of others. `undo` and the choice of
//! new ids use it: if it is lost, all operations count as written by this store.

use crate::backend::{self, files, plain_file};
use crate::error::{Error, Result};
use crate::format::remote::ForeignOperations;
use crate::model::{CloneId, OperationId, SessionId};
use crate::store::Store;
use crate::store::folder::REMOTES_FOLDER;
use std::collections::HashSet;
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;

/// The number of digits of a tag: the first ones of the store's id.
pub(in crate::store) const TAG_DIGITS: usize = 4;
const FOREIGN_FOLDER: &str = "foreign";
/// The extension of a file that is being written.
const NEW: &str = "new";
/// The maximum size of a file that is read, in bytes: more than the operations of a session need.
const MAX_FILE_BYTES: u64 = 1 << 30;

impl Store {
    /// Returns the tag of this store.
    pub(in crate::store) fn clone_tag(&self) -> String {
        let id = CloneId::from_bytes(self.engine.marker.id).to_string();
        id.chars().take(TAG_DIGITS).collect()
    }

    /// Returns the tag for new ids in a session, if another store began it.
    pub(in crate::store) fn id_tag(&self, session: SessionId) -> Option<String> {
        let mut header = [0; ForeignOperations::HEADER_BYTES];
        File::open(self.foreign_path(session)?).ok()?.read_exact(&mut header).ok()?;
        let known = ForeignOperations::decode(&header).ok()?;
        known.begun_by_others.then(|| self.clone_tag())
    }

    /// Returns the operations of a session that were pulled from others.
    pub(in crate::store) fn foreign_operations(
        &self,
        session: SessionId,
    ) -> Result<HashSet<OperationId>> {
        let Some(path) = self.foreign_path(session) else { return Ok(HashSet::new()) };
        let bytes = plain_file::read_if_there(&path, MAX_FILE_BYTES)?;
        let known = bytes.and_then(|bytes| ForeignOperations::decode(&bytes).ok());
        let known = known.unwrap_or_default();
        Ok(known.operations.into_iter().collect())
    }

    /// Adds operations of others in a session to its file. The first note also says whether another
    /// store began the session. A store without a folder keeps nothing.
    pub(super) fn note_foreign(&self, session: SessionId, new: &ForeignOperations) -> Result<()> {
        let Some(path) = self.foreign_path(session) else { return Ok(()) };
        let Some(folder) = path.parent() else { return Ok(()) };
        files::create_private_folder(folder).map_err(backend::Error::io("create", folder))?;
        let known = path.metadata().map_or(0, |file| file.len());
        if known < ForeignOperations::HEADER_BYTES as u64 {
            return Ok(files::replace(&path, &path.with_extension(NEW), &new.encode())?);
        }
        let wrong = |error| Error::from(backend::Error::io("write", &path)(error));
        let mut file = File::options().append(true).open(&path).map_err(wrong)?;
        file.set_len(ForeignOperations::whole_bytes(known)).map_err(wrong)?;
        file.write_all(&ForeignOperations::encode_ids(&new.operations)).map_err(wrong)
    }

    fn foreign_path(&self, session: SessionId) -> Option<PathBuf> {
        let folder = self.path()?.join(REMOTES_FOLDER).join(FOREIGN_FOLDER);
        Some(folder.join(session.to_string()))
    }
}

//! The tag of a store: the end of what it names in a session that another store began, so that two
//! stores do not choose one name.

use crate::backend::{self, files};
use crate::error::Result;
use crate::model::{CloneId, SessionId};
use crate::store::Store;
use crate::store::folder::REMOTES_FOLDER;
use std::path::PathBuf;

/// The number of digits of a tag: the first ones of the store's id.
const TAG_DIGITS: usize = 4;
/// The folder with an empty file for each session that another store began.
const FOREIGN_FOLDER: &str = "foreign";

impl Store {
    /// Returns the tag of this store.
    pub(in crate::store) fn clone_tag(&self) -> String {
        let id = CloneId::from_bytes(self.engine.marker.id).to_string();
        id.chars().take(TAG_DIGITS).collect()
    }

    /// Notes that another store began a session. A store in memory does not keep it.
    pub(super) fn note_foreign(&self, session: SessionId) -> Result<()> {
        let Some(path) = self.foreign_path(session) else { return Ok(()) };
        for folder in path.ancestors().skip(1).take(2).collect::<Vec<_>>().into_iter().rev() {
            files::create_private_folder(folder).map_err(backend::Error::io("create", folder))?;
        }
        files::replace(&path, &path.with_extension("new"), b"")?;
        Ok(())
    }

    /// Returns the tag for new ids in a session, if another store began it.
    pub(in crate::store) fn id_tag(&self, session: SessionId) -> Option<String> {
        let is_foreign = self.foreign_path(session)?.exists();
        is_foreign.then(|| self.clone_tag())
    }

    fn foreign_path(&self, session: SessionId) -> Option<PathBuf> {
        let folder = self.path()?.join(REMOTES_FOLDER).join(FOREIGN_FOLDER);
        Some(folder.join(session.to_string()))
    }
}

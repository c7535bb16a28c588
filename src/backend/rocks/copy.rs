//! Copying the newest generation while it is in use.

use super::folder::IndexFolder;
use super::manifest;
use crate::backend::{Error, LogPosition, files};
use std::fs::File;
use std::io;
use std::path::Path;

/// Copies the newest generation of the index in `from` durably into the new folder `to`. Returns
/// its position; 0 if there is no generation yet.
///
/// # Errors
/// [`Error::Io`]; [`Error::DamagedIndex`] if its list of files is too large to be one, or if all
/// generations are missing.
pub fn copy(from: &Path, to: &Path) -> Result<LogPosition, Error> {
    let (folder, copy) = (IndexFolder::new(from.to_owned()), IndexFolder::new(to.to_owned()));
    files::create_private_folder(to).map_err(Error::io("create", to))?;
    loop {
        let Some(generation) = folder.newest()? else { return Ok(0) };
        // Without a lease, the generation was removed meanwhile: there is a newer one.
        let Some(_lease) = folder.hold(generation)? else { continue };
        let (source, target) = (folder.path(generation), copy.path(generation));
        files::create_private_folder(&target).map_err(Error::io("create", &target))?;
        for entry in files::entries(&source)? {
            if entry.file_name().to_string_lossy().starts_with(manifest::NAME) {
                manifest::check_size(&entry.path())?;
            }
            let copied = file(&entry.path(), &target.join(entry.file_name()));
            copied.map_err(Error::io("copy", &entry.path()))?;
        }
        files::sync_folder(&target)?;
        let published = copy.published();
        files::create_private(&published).map_err(Error::io("create", &published))?;
        files::sync_folder(to)?;
        return Ok(generation.position);
    }
}

fn file(from: &Path, to: &Path) -> io::Result<()> {
    let mut copy = files::create_private(to)?;
    io::copy(&mut File::open(from)?, &mut copy)?;
    copy.sync_all()
}

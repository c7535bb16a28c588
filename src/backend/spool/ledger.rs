//! The ledger of a spool: which writes were acknowledged and still wait, and which were appended to
//! the journal.

use super::{is_name, writes};
use crate::backend::{Error, files, plain_file};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// The name of the list of appended writes, one per line.
pub(super) const APPENDED_LIST: &str = "BROUGHT";
/// The maximum size of the list: 33 bytes for each write that ever waited.
const MAX_BYTES: u64 = 1 << 30;

/// The folder of a ledger: an empty file for each acknowledged write that waits, and a list of the
/// appended writes. There is no lock on it, so a stopped process blocks nothing.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    folder: PathBuf,
}

impl Ledger {
    pub(super) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Returns the writes that were acknowledged and still wait.
    pub(super) fn acknowledged(&self) -> Result<Vec<String>, Error> {
        writes(&self.folder)
    }

    /// Returns whether a write was acknowledged and not appended since.
    pub(super) fn is_acknowledged(&self, name: &str) -> bool {
        self.folder.join(name).exists()
    }

    /// Records that a write is being acknowledged. Errors are ignored: without the record, only the
    /// loss of both files of the write is not noticed.
    pub(super) fn acknowledge(&self, name: &str) {
        let _ = files::create_private_folder(&self.folder)
            .and_then(|()| files::create_private(&self.folder.join(name)));
    }

    /// Removes the record of a waiting write.
    pub(super) fn forget(&self, name: &str) {
        let _ = files::remove(&self.folder.join(name));
    }

    /// Returns the appended writes.
    pub(super) fn appended(&self) -> Result<BTreeSet<String>, Error> {
        let path = self.folder.join(APPENDED_LIST);
        let bytes = plain_file::read_if_there(&path, MAX_BYTES)?.unwrap_or_default();
        // A truncated or damaged line is ignored.
        let text = String::from_utf8_lossy(&bytes);
        Ok(text.lines().filter(|line| is_name(line)).map(str::to_owned).collect())
    }

    /// Records durably that writes were appended.
    pub(super) fn record_appended(&self, names: &[String]) -> Result<(), Error> {
        let path = self.folder.join(APPENDED_LIST);
        let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
        let write = || {
            files::create_private_folder(&self.folder)?;
            let mut options = OpenOptions::new();
            let mut file = options.append(true).create(true).mode(0o600).open(&path)?;
            // In one call, so that lines of two processes never mix.
            file.write_all(lines.as_bytes())?;
            file.sync_data()
        };
        write().map_err(Error::io("write", &path))
    }
}

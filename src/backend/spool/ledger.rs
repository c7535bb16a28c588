//! What is noted of writes in a spool: which were acknowledged and still wait, and which were brought into the journal.

use super::{is_name, writes};
use crate::backend::{Error, files, plain_file};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// The list of the writes that were brought in, a line each.
pub(super) const BROUGHT: &str = "BROUGHT";
/// The longest list that is read: 33 bytes for each write that ever waited.
const MAX_BYTES: u64 = 1 << 30;

/// A folder of notes about the writes of a spool: an empty file for each that was acknowledged and waits, and a list of
/// those that were brought in. Nobody holds a lock on it, so a process that is stopped keeps nobody waiting.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    folder: PathBuf,
}

impl Ledger {
    pub(super) const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The writes that were acknowledged.
    pub(super) fn acknowledged(&self) -> Result<Vec<String>, Error> {
        writes(&self.folder)
    }

    /// Whether a write was acknowledged and has not been brought in since.
    pub(super) fn is_acknowledged(&self, name: &str) -> bool {
        self.folder.join(name).exists()
    }

    /// Notes that a write is being acknowledged. Nothing depends on its success.
    pub(super) fn acknowledge(&self, name: &str) {
        let _ = files::create_private_folder(&self.folder)
            .and_then(|()| files::create_private(&self.folder.join(name)));
    }

    /// Forgets that a write waits.
    pub(super) fn forget(&self, name: &str) {
        let _ = files::remove(&self.folder.join(name));
    }

    /// The writes that were brought in.
    pub(super) fn brought(&self) -> Result<BTreeSet<String>, Error> {
        let path = self.folder.join(BROUGHT);
        match plain_file::read(&path, MAX_BYTES) {
            // A line that was cut, or that is damaged, names nothing.
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes)
                .lines()
                .filter(|line| is_name(line))
                .map(str::to_owned)
                .collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    /// Notes durably that writes were brought in.
    pub(super) fn bring(&self, names: &[String]) -> Result<(), Error> {
        let path = self.folder.join(BROUGHT);
        let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
        let write = || {
            files::create_private_folder(&self.folder)?;
            let mut options = OpenOptions::new();
            let mut file = options.append(true).create(true).mode(0o600).open(&path)?;
            // In one call: lines of two processes never mix.
            file.write_all(lines.as_bytes())?;
            file.sync_data()
        };
        write().map_err(Error::io("write", &path))
    }
}

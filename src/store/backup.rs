//! Backup of a whole store while it is in use.

use super::folder::{
    FORMAT_FILE, INDEX_FOLDER, JOURNAL_FOLDER, MAX_MARKER_BYTES, check_empty, marker_of, private,
    write_marker,
};
use super::in_database::check_in_files;
use super::keyring::StoreTrust;
use super::verify::VerifyOutcome;
use super::{Options, Store};
use crate::backend::spool::SpoolFolder;
use crate::backend::{self, LogPosition, Spool, files, journal, plain_file, rocks};
use crate::engine::spool;
use crate::engine::verify::VerifyDepth;
use crate::error::{Error, Result};
use crate::format::FormatMarker;
use crate::model::Timestamp;
use serde::Serialize;
use std::path::Path;

/// What a backup copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BackupReport {
    /// The end of the copied journal. Everything acknowledged before the backup began is before
    /// this position.
    pub position: LogPosition,
    /// How many revisions of the copy were checked.
    pub revisions: u64,
    /// How many writes are in the copied spool.
    pub waiting: u64,
}

impl Store {
    /// Copies the store in `from` to the folder `to`, which must not exist yet or be empty, while
    /// other processes write to it. The copy is one consistent moment and contains everything that
    /// was acknowledged before the backup began. It is verified. An encrypted copy uses the same
    /// key in this keyring.
    ///
    /// # Errors
    /// [`Error::NoStore`], [`Error::StoreExists`], [`Error::Invalid`] if the folder is not empty or
    /// is inside the store, [`Error::Encrypted`] if the store is encrypted and its key is not in
    /// this keyring, [`Error::Corrupt`] if it is damaged, [`Error::Backend`].
    pub fn backup(
        from: &Path,
        to: &Path,
        now: Timestamp,
        keyring: Option<&Path>,
    ) -> Result<BackupReport> {
        let instead = "export a bundle of all sessions, or back up the database";
        check_in_files(from, "a copy", instead)?;
        let marker = marker_of(from)?;
        let format = plain_file::read(&from.join(FORMAT_FILE), MAX_MARKER_BYTES);
        let format = format.map_err(backend::Error::io("read", &from.join(FORMAT_FILE)))?;
        check_empty(to, "copy")?;
        if is_inside(to, from) {
            return Err(Error::invalid(format!(
                "{} is inside the store: name a folder outside it for the copy",
                to.display()
            )));
        }
        if keyring_lacks(from, &marker, keyring)? {
            return Err(Error::Encrypted);
        }
        check_spool(from, keyring)?;
        files::make_private_folders(to)?;
        private(to, 0o700)?;
        // Copy the spool first: a write that is appended to the journal meanwhile is in both
        // copies, which is harmless.
        let waiting = copy_spool(from, to)?;
        let position = copy_moment(from, to)?;
        // FORMAT makes the folder a store, so it comes last.
        write_marker(to, &format)?;
        let verified = Self::verify_with(to, VerifyDepth::Quick, now, (keyring, false))?;
        if verified.outcome != VerifyOutcome::Clean
            && let Some(first) = verified.findings.first()
        {
            let what = format!("the copy ({})", first.place);
            return Err(Error::Corrupt { what, source: first.problem.clone().into() });
        }
        Ok(BackupReport { position, waiting, revisions: verified.checked.revisions })
    }
}

/// Returns whether a folder, which need not exist, is inside the store or is the store's own.
fn is_inside(folder: &Path, store: &Path) -> bool {
    let folder = Path::new(".").join(folder);
    let existing = folder.ancestors().find_map(|above| above.canonicalize().ok());
    let store = store.canonicalize();
    existing.zip(store.ok()).is_some_and(|(folder, store)| folder.starts_with(store))
}

/// Returns whether the store is encrypted and its key is not in the keyring.
fn keyring_lacks(from: &Path, marker: &FormatMarker, keyring: Option<&Path>) -> Result<bool> {
    let options = Options { keyring: keyring.map(Path::to_owned), ..Options::default() };
    match StoreTrust::unverified(from, marker, &options) {
        Err(Error::Encrypted) => Ok(true),
        trust => trust.map(|_| false),
    }
}

/// Refuses a store if an acknowledged write in its spool cannot be read, because the copy would
/// lack that write. Other damage is found in the copy.
fn check_spool(from: &Path, keyring: Option<&Path>) -> Result<()> {
    let keyring = keyring.map(Path::to_owned);
    let options = Options { read_only: true, keyring, ..Options::default() };
    let Ok(store) = Store::open(from, options) else { return Ok(()) };
    match store.spool_status()?.damaged.into_iter().next() {
        Some((name, problem)) => {
            let what = format!("the write '{name}' in the spool");
            Err(Error::Corrupt { what, source: problem.into() })
        }
        None => Ok(()),
    }
}

/// Copies a generation, and the journal from its position on. Begins again if a newer generation
/// replaces the copied one. Returns the end of the copied journal.
fn copy_moment(from: &Path, to: &Path) -> Result<LogPosition> {
    const ATTEMPTS: usize = 100;
    let (index, log) = (to.join(INDEX_FOLDER), to.join(JOURNAL_FOLDER));
    let mut before = None;
    for _ in 0..ATTEMPTS {
        let position = rocks::copy(&from.join(INDEX_FOLDER), &index)?;
        match journal::copy(&from.join(JOURNAL_FOLDER), &log, position) {
            // No new generation was published: the journal really lacks what follows the
            // generation.
            Err(backend::Error::Gone { start, .. }) if before == Some(position) => {
                let what =
                    format!("it ends at position {position}, and the journal begins at {start}");
                return Err(backend::Error::DamagedIndex { what }.into());
            }
            // A newer generation replaced the one that was being copied.
            Err(backend::Error::Gone { .. }) => {
                before = Some(position);
                files::remove_folder(&index)?;
                files::remove_folder(&log)?;
            }
            end => return Ok(end?),
        }
    }
    Err(Error::Internal("generations are published faster than they can be copied".to_owned()))
}

/// Copies the writes in the spool. Returns how many there are.
fn copy_spool(from: &Path, to: &Path) -> Result<u64> {
    let (spool, copy) = (SpoolFolder::new(from), SpoolFolder::new(to));
    let mut waiting = 0;
    for name in spool.names()? {
        if let Some(bytes) = spool.read(&name, &|bytes| spool::is_whole(&name, bytes))? {
            copy.put(&name, &bytes)?;
            waiting += 1;
        }
    }
    Ok(waiting)
}

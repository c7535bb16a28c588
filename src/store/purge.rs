//! Purging secrets that are known: out of the store, and what the files of the store still hold of them.

mod file_holders;
mod file_scan;

use super::Store;
use super::event_stream::TextResolver;
use super::folder::{NOTE_FOLDERS, SEARCH_FOLDER, foreign};
use super::write_context::WriteContext;
use crate::backend::spool::{copies_in, folder_in};
use crate::backend::{self, LockHolder, files};
use crate::engine::purge::{PurgeOutcome, PurgeTask};
use crate::error::Result;
use crate::redact::{KnownSecrets, SecretCollector, SecretDetector};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use crate::engine::purge::PurgeKind;
pub use file_scan::FileScanReport;

/// A place where secrets stand, or stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeFinding {
    /// The name of the session; `None`: no session names it.
    pub session: Option<String>,
    /// What it is.
    pub kind: PurgeKind,
    /// Which one. Without secrets.
    pub name: String,
    /// How many secrets stood there, parts of one at an end of a text too.
    pub count: u64,
}

/// What a purge has found and done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Where secrets stood; by a preview, where they stand.
    pub places: Vec<PurgeFinding>,
    /// Files that were removed: copies of texts, and writes that could not be read. By a preview, those that would be.
    pub removed: Vec<PathBuf>,
    /// Files that others keep beside it, such as the log of hooks, and that were written over in place.
    pub overwritten: Vec<PathBuf>,
    /// What stands in the store's folder and is not forge's: looked through as it is, and left.
    pub foreign: Vec<PathBuf>,
    /// Writes in the spool without the store's seal: nobody takes anything out of those before the store is taken over.
    pub unsealed: Vec<PathBuf>,
    /// Folders of older generations of the index that are still read.
    pub held: Vec<PathBuf>,
    /// The processes that hold files of before, as far as the system tells.
    pub holders: Vec<LockHolder>,
    /// Whether others went on writing secrets that they had read before.
    pub comes_back: bool,
    /// The files of the store, looked through byte by byte.
    pub searched: FileScanReport,
}

impl PurgeReport {
    /// Whether nothing of the secrets is left where forge can reach it; else purge again once what holds it is gone.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.unsealed.is_empty()
            && self.held.is_empty()
            && self.holders.is_empty()
            && !self.comes_back
            && self.searched.found.is_empty()
    }
}

impl Store {
    /// The secrets that are found so in all that is stored, as they are meant: what is to be purged. Those shorter than
    /// [`MIN_SECRET_BYTES`](crate::redact::MIN_SECRET_BYTES) cannot be: [`KnownSecrets::new`] refuses them.
    ///
    /// # Errors
    /// As every read.
    pub fn secrets(&self, act: &WriteContext, seek: &SecretDetector) -> Result<BTreeSet<String>> {
        let collector = SecretCollector { seek, found: Default::default() };
        let (operation, resolve) = (act.operation()?, &|_: &[u8], _: &str| None);
        self.engine.find_secrets(&PurgeTask {
            mask: &collector,
            resolve,
            operation,
            reason: None,
        })?;
        Ok(collector.found.into_inner())
    }

    /// Where secrets stand in all sessions. Changes nothing. `resolve` reads long texts of imported sources.
    ///
    /// # Errors
    /// As every read; [`crate::error::Error::Invalid`] where a purge would refuse.
    pub fn purge_preview(
        &self,
        act: &WriteContext,
        known: &KnownSecrets,
        resolve: TextResolver<'_>,
    ) -> Result<PurgeReport> {
        let task = PurgeTask { mask: known, resolve, operation: act.operation()?, reason: None };
        let found = self.engine.find_secrets(&task)?;
        let removed = self.path().map(removable).transpose()?.unwrap_or_default();
        let foreign = self.path().map(foreign).transpose()?.unwrap_or_default();
        let searched = self.scan_store_files(known, &[])?;
        let unsealed = self.unsealed()?;
        Ok(PurgeReport { removed, foreign, unsealed, searched, ..purge_report(found) })
    }

    /// Puts something else in place of secrets, wherever they stand: in every session, revision, checkpoint, fact, source and
    /// operation. No id and no digest changes. Nothing takes this back. What is found is written anew, and the files of before are
    /// removed, but for those that somebody still reads: see [`PurgeReport::is_done`]. Takes about as much memory as the index has on
    /// disk, and other writers wait meanwhile.
    ///
    /// # Errors
    /// [`crate::error::Error::Invalid`] if two names would become one, or if a secret is a word of forge's own records: then nothing
    /// has changed. As every write.
    pub fn purge(
        &self,
        act: &WriteContext,
        known: &KnownSecrets,
        reason: Option<&str>,
        resolve: TextResolver<'_>,
    ) -> Result<PurgeReport> {
        let reason = reason.map(|reason| match known.mask(reason.as_bytes()) {
            Some((masked, _)) => String::from_utf8_lossy(&masked).into_owned(),
            None => reason.to_owned(),
        });
        let task = PurgeTask { mask: known, resolve, operation: act.operation()?, reason };
        let purging = self.engine.purge(&task)?;
        let held = purging.held.clone();
        let mut purged = purge_report(purging);
        let Some(path) = self.path() else { return Ok(purged) };
        if let Some(spool) = &self.engine.follower.spool {
            spool.sweep()?;
        }
        purged.removed = removable(path)?;
        for file in &purged.removed {
            files::remove(file)?;
        }
        for (file, _) in file_scan::search(&self.noted(), known, &[])?.found {
            file_scan::overwrite(&file, known)?;
            purged.overwritten.push(file);
        }
        purged.foreign = foreign(path)?;
        purged.unsealed = self.unsealed()?;
        purged.holders = file_holders::holders(path, &held);
        purged.searched = self.scan_store_files(known, &held)?;
        purged.held = held;
        Ok(purged)
    }

    /// The writes in the spool that do not bear the store's seal.
    fn unsealed(&self) -> Result<Vec<PathBuf>> {
        let (Some(path), Some(spool)) = (self.path(), &self.engine.follower.spool) else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for name in spool.names()? {
            let bytes = spool.read(&name, &|_| true);
            if matches!(bytes, Err(backend::Error::Breach { .. })) {
                let files = [folder_in(path), copies_in(path)].map(|folder| folder.join(&name));
                found.extend(files.into_iter().filter(|file| file.exists()));
            }
        }
        Ok(found)
    }

    /// What others note about it: the log of hooks, and which process works in which session.
    fn noted(&self) -> Vec<PathBuf> {
        let folders = |notes: PathBuf| NOTE_FOLDERS.map(|name| notes.join(name)).to_vec();
        self.notes().map(folders).unwrap_or_default()
    }

    /// Looks through its folder, and what is noted elsewhere.
    fn scan_store_files(&self, known: &KnownSecrets, passed: &[PathBuf]) -> Result<FileScanReport> {
        let Some(path) = self.path() else { return Ok(FileScanReport::default()) };
        let mut folders = vec![path.to_owned()];
        folders.extend(self.noted().into_iter().filter(|noted| !noted.starts_with(path)));
        file_scan::search(&folders, known, passed)
    }
}

fn purge_report(purging: PurgeOutcome) -> PurgeReport {
    let sessions = purging.sessions;
    let place = |place: crate::engine::purge::PurgePlace| PurgeFinding {
        session: place.session.and_then(|number| sessions.get(number as usize).cloned()),
        kind: place.kind,
        name: place.name,
        count: place.count,
    };
    let comes_back = purging.comes_back;
    PurgeReport {
        places: purging.places.into_iter().map(place).collect(),
        comes_back,
        ..PurgeReport::default()
    }
}

/// What is derived, or was put aside since nobody can read it: no secret can be taken out of it.
fn removable(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found = BTreeSet::new();
    for (folder, wanted) in [(path.join(SEARCH_FOLDER), ""), (folder_in(path), ".damaged")] {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(backend::Error::io("list", &folder))?,
        };
        for entry in entries {
            let entry = entry.map_err(backend::Error::io("list", &folder))?;
            if entry.file_name().to_string_lossy().contains(wanted) {
                found.insert(entry.path());
            }
        }
    }
    Ok(found.into_iter().collect())
}

#[cfg(test)]
mod tests;

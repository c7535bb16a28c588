//! Purging known secrets from the store, and finding what its files still contain of them.

mod file_holders;
mod file_scan;

use super::Store;
use super::event_stream::TextResolver;
use super::folder::{NOTE_FOLDERS, SEARCH_FOLDER, foreign};
use super::write_context::WriteContext;
use crate::backend::spool::{copies_in, folder_in};
use crate::backend::{self, LockHolder, files};
use crate::engine::purge::{PurgeOutcome, PurgeTask};
use crate::error::{Error, Result};
use crate::model::{Kind, RemoteId, claim};
use crate::redact::{KnownSecrets, SecretCollector, SecretDetector, TextMasker as _};
use serde::Serialize;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

pub use crate::engine::purge::PurgeKind;
pub use file_scan::FileScanReport;

/// A place that contains secrets, or contained them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PurgeFinding {
    /// The name of the session; `None` if no session refers to it.
    pub session: Option<String>,
    /// The type of the place.
    pub kind: PurgeKind,
    /// The name of the place, without secrets.
    pub name: String,
    /// How many secrets it contained, including a secret that the end of a text cuts off.
    pub count: u64,
}

/// What a purge found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// Where secrets were; for a preview, where they are.
    pub places: Vec<PurgeFinding>,
    /// What was removed: the folder of the search copy, and spool writes that could not be read.
    /// For a preview, what would be removed.
    pub removed: Vec<PathBuf>,
    /// Files of notes about the store, such as the log of hooks, that were overwritten in place.
    pub overwritten: Vec<PathBuf>,
    /// Files in the store's folder that do not belong to forge: searched, but not changed.
    pub foreign: Vec<PathBuf>,
    /// Spool writes without the store's seal: they cannot be changed before the store is adopted.
    pub unsealed: Vec<PathBuf>,
    /// Folders of older generations of the index that are still in use.
    pub held: Vec<PathBuf>,
    /// The processes that hold old files open, as far as the system reports them.
    pub holders: Vec<LockHolder>,
    /// Whether other processes wrote the secrets again from what they had read before.
    pub comes_back: bool,
    /// Whether the files of the database may still contain what was purged, until its tables are
    /// vacuumed completely; see [`Database::vacuum`](super::database::Database::vacuum).
    pub unvacuumed: bool,
    /// The byte-by-byte search of the store's files.
    pub searched: FileScanReport,
}

impl PurgeReport {
    /// Returns whether no secrets are left where forge can reach them. If some are left, the other
    /// fields say why: remove the causes and purge again.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.unsealed.is_empty()
            && self.held.is_empty()
            && self.holders.is_empty()
            && !self.comes_back
            && !self.unvacuumed
            && self.searched.found.is_empty()
    }
}

impl Store {
    /// Returns the secrets that `detector` finds in all stored data: the candidates for a purge.
    /// [`KnownSecrets::new`] refuses secrets shorter than
    /// [`MIN_SECRET_BYTES`](crate::redact::MIN_SECRET_BYTES). `progress` receives the number of
    /// bytes read.
    pub fn secrets(
        &self,
        act: &WriteContext,
        detector: &SecretDetector,
        progress: &dyn Fn(u64),
    ) -> Result<BTreeSet<String>> {
        let collector = SecretCollector { detector, found: Default::default() };
        let (operation, resolve) = (act.operation()?, &|_: &[u8], _: &str| None);
        self.engine.find_secrets(&PurgeTask {
            mask: &collector,
            resolve,
            operation,
            reason: None,
            progress: &summed(progress),
        })?;
        Ok(collector.found.into_inner())
    }

    /// Returns where secrets are in all sessions. Changes nothing. `resolve` reads long texts of
    /// imported sources; `progress` receives the number of bytes read. Sources are read in pieces.
    ///
    /// # Errors
    /// [`crate::error::Error::Invalid`] if a purge would be refused; also if the store cannot be
    /// read or is damaged.
    pub fn purge_preview(
        &self,
        act: &WriteContext,
        known: &KnownSecrets,
        resolve: TextResolver<'_>,
        progress: &dyn Fn(u64),
    ) -> Result<PurgeReport> {
        check_own_words(known)?;
        let progress = &summed(progress);
        let operation = act.operation()?;
        let task = PurgeTask { mask: known, resolve, operation, reason: None, progress };
        let found = self.engine.find_secrets(&task)?;
        let removed = self.path().map(removable).transpose()?.unwrap_or_default();
        let foreign = self.path().map(foreign).transpose()?.unwrap_or_default();
        let searched = self.scan_store_files(known, &[], progress)?;
        let unsealed = self.unsealed()?;
        Ok(PurgeReport { removed, foreign, unsealed, searched, ..purge_report(found) })
    }

    /// Replaces secrets everywhere: in every session, revision, checkpoint, fact, source and
    /// operation. Ids and digests do not change. This cannot be undone. The affected data is
    /// rewritten and the old files are removed, except those still in use: see
    /// [`PurgeReport::is_done`]. Takes about as much memory as the index has on disk; other writers
    /// wait meanwhile. `progress` receives the number of bytes read.
    ///
    /// The next exchange with each remote that this store pushed to or pulled from writes a purge
    /// notice there, so that other clones purge the same. A store without a folder knows its
    /// remotes only as long as it is open.
    ///
    /// # Errors
    /// [`crate::error::Error::Invalid`] if two names would become equal, or if a secret is a word
    /// of forge's own records: then nothing has changed. [`crate::error::Error::Conflict`] if a
    /// push or pull is running. Fails if the store cannot be written.
    pub fn purge(
        &self,
        act: &WriteContext,
        known: &KnownSecrets,
        reason: Option<&str>,
        resolve: TextResolver<'_>,
        progress: &dyn Fn(u64),
    ) -> Result<PurgeReport> {
        check_own_words(known)?;
        let _locked = self.lock_remotes()?;
        self.purge_with_notices(act, known, reason, (resolve, progress), &|_| Ok(true))
    }

    /// Replaces secrets like [`Store::purge`], and adds pending notices for the remotes that `to`
    /// accepts. The caller has locked the remotes. A purge that changed nothing leaves no notice.
    pub(super) fn purge_with_notices(
        &self,
        act: &WriteContext,
        known: &KnownSecrets,
        reason: Option<&str>,
        (resolve, progress): (TextResolver<'_>, &dyn Fn(u64)),
        to: &dyn Fn(RemoteId) -> Result<bool>,
    ) -> Result<PurgeReport> {
        let purges = || Ok::<_, Error>(self.engine.follower.written_refs()?.0.purges);
        let (mut noted, before) = (Vec::new(), purges().ok());
        let purged = self
            .note_purge(act, (known, reason), to, &mut noted)
            .and_then(|()| self.purge_here(act, known, reason, resolve, progress));
        let changed_nothing = match &purged {
            Ok(purged) => purged.places.is_empty(),
            // A purge that has begun is counted in the head of the store.
            Err(_) => before.is_some() && purges().ok() == before,
        };
        if changed_nothing {
            self.forget_purge(&noted)?;
        }
        purged
    }

    /// Replaces secrets like [`Store::purge`], without notices for remotes.
    fn purge_here(
        &self,
        act: &WriteContext,
        known: &KnownSecrets,
        reason: Option<&str>,
        resolve: TextResolver<'_>,
        progress: &dyn Fn(u64),
    ) -> Result<PurgeReport> {
        check_own_words(known)?;
        let progress = &summed(progress);
        let reason = reason.map(|reason| known.masked_text(reason));
        let operation = act.operation()?;
        let task = PurgeTask { mask: known, resolve, operation, reason, progress };
        let kept_before = self.keeps_purged()?;
        self.set_keeps_purged(true)?;
        let purging = self.engine.purge(&task)?;
        if !purging.places.is_empty() {
            // A vacuum may have rewritten the tables meanwhile. The mark is about their present
            // files.
            self.set_keeps_purged(true)?;
        } else if !kept_before {
            // No row that was replaced contained a secret.
            self.set_keeps_purged(false)?;
        }
        let held = purging.held.clone();
        let mut purged = purge_report(purging);
        purged.unvacuumed = self.keeps_purged()?;
        let Some(path) = self.path() else { return Ok(purged) };
        if let Some(spool) = &self.engine.follower.spool {
            spool.sweep()?;
        }
        purged.removed = removable(path)?;
        for file in &purged.removed {
            if file.is_dir() {
                fs::remove_dir_all(file).map_err(backend::Error::io("remove", file))?;
            } else {
                files::remove(file)?;
            }
        }
        for (file, _) in file_scan::search(&self.note_folders(), known, &[], progress)?.found {
            file_scan::overwrite(&file, known)?;
            purged.overwritten.push(file);
        }
        purged.foreign = foreign(path)?;
        purged.unsealed = self.unsealed()?;
        purged.holders = file_holders::holders(path, &held);
        purged.searched = self.scan_store_files(known, &held, progress)?;
        purged.held = held;
        Ok(purged)
    }

    /// Returns the spool writes without the store's seal.
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

    /// Returns the folders of notes about the store: the log of hooks, and which process works in
    /// which session.
    fn note_folders(&self) -> Vec<PathBuf> {
        let folders = |notes: PathBuf| NOTE_FOLDERS.map(|name| notes.join(name)).to_vec();
        self.notes().map(folders).unwrap_or_default()
    }

    /// Searches the store's folder, except in the folders `passed`, and the notes kept elsewhere.
    fn scan_store_files(
        &self,
        known: &KnownSecrets,
        passed: &[PathBuf],
        progress: &dyn Fn(u64),
    ) -> Result<FileScanReport> {
        let Some(path) = self.path() else { return Ok(FileScanReport::default()) };
        let mut folders = vec![path.to_owned()];
        folders.extend(self.note_folders().into_iter().filter(|noted| !noted.starts_with(path)));
        file_scan::search(&folders, known, passed, progress)
    }
}

/// Returns a function that adds up its arguments and calls `progress` with each new sum.
fn summed(progress: &dyn Fn(u64)) -> impl Fn(u64) {
    let sum = Cell::new(0);
    move |more| {
        sum.set(sum.get() + more);
        progress(sum.get());
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
    PurgeReport {
        places: purging.places.into_iter().map(place).collect(),
        comes_back: purging.comes_back,
        ..PurgeReport::default()
    }
}

/// Returns the folder of the search copy, which is derived, and the spool files that were set aside
/// because they cannot be read. No secret can be replaced inside such a file.
fn removable(path: &Path) -> Result<Vec<PathBuf>> {
    let copy = path.join(SEARCH_FOLDER);
    let mut found: BTreeSet<PathBuf> = copy.exists().then_some(copy).into_iter().collect();
    for entry in files::entries_if_there(&folder_in(path))? {
        if entry.file_name().to_string_lossy().contains(".damaged") {
            found.insert(entry.path());
        }
    }
    Ok(found.into_iter().collect())
}

#[cfg(test)]
mod tests;

/// Refuses secrets that occur in the names of fields, or in their fixed values: the names would be
/// replaced too, and what has another name or value is not read as that field any more.
pub(super) fn check_own_words(known: &KnownSecrets) -> Result<()> {
    let fields = Kind::ALL.iter().flat_map(|kind| claim::fields(*kind)).map(|field| field.name);
    let values = claim::VOCABULARIES.iter().flat_map(|one| one.words.iter().copied());
    match fields.chain(values).find(|word| known.mask(word.as_bytes()).is_some()) {
        None => Ok(()),
        Some(word) => Err(Error::invalid(format!(
            "it occurs in '{word}', a word that forge's own fields are made of: give more of the text around it"
        ))),
    }
}

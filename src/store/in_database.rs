//! Stores whose journal and index are in a database. Their folder, if they have one, names the
//! database and holds what belongs to the machine: settings, the spool, copies for searching.

use super::folder::{FORMAT_FILE, check_unfinished, clear, private, read_marker, write_marker};
use super::keyring::{Keyring, StoreTrust};
use super::repair::KnownKeys;
use super::verify::{VerifyReport, add_spool_findings, outcome};
use super::{Options, SealStatus, Store, new_marker};
use crate::backend::database::{Database, DatabasePlace};
use crate::backend::encrypted::EncryptedIndex;
use crate::backend::framed_log::FramedLog;
use crate::backend::journal::SyncMark;
use crate::backend::sealed_index::SealedIndex;
use crate::backend::{self, Index, files};
use crate::engine::maintain::head_record;
use crate::engine::verify::{VerifyDepth, VerifyFindings};
use crate::error::{Error, Result};
use crate::format::{FormatMarker, StoreHead, key};
use crate::model::claim;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Store {
    /// Creates a store in a database, without a folder on this machine. If the options name a
    /// keyring, the key and the witness of the store are in it.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the database has a store of this name; [`Error::Invalid`] if the
    /// store is to be encrypted and the options name no keyring; [`Error::Backend`] if the database
    /// cannot be read or written.
    pub fn create_at(database: &Arc<dyn Database>, options: Options) -> Result<Self> {
        let marker = create_marker(&**database, &options)?;
        let marker = marker.ok_or_else(|| {
            Error::Conflict(format!("there is a store {} already", database.place()))
        })?;
        Self::open_in_database(Arc::clone(database), marker, options, None)
    }

    /// Opens a store in a database.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the database has no store of this name; otherwise see
    /// [`Store::open`].
    pub fn at(database: &Arc<dyn Database>, options: Options) -> Result<Self> {
        let marker = marker_in(&**database)?.ok_or_else(|| no_store(database.place()))?;
        Self::open_in_database(Arc::clone(database), marker, options, None)
    }

    /// Opens a store in a database, or creates it if there is none of this name.
    ///
    /// # Errors
    /// See [`Store::at`] and [`Store::create_at`].
    pub fn open_or_create_at(database: &Arc<dyn Database>, options: Options) -> Result<Self> {
        let known = marker_in(&**database)?;
        if known.is_none() && options.read_only {
            return Err(no_store(database.place()));
        }
        let (marker, _) = marker_or_new(&**database, known, &options)?;
        Self::open_in_database(Arc::clone(database), marker, options, None)
    }

    /// Makes a folder the place of a store in a database. The folder must be empty or not exist. If
    /// the database has no store of this name, the store is created. Returns the store, and whether
    /// it was created.
    ///
    /// # Errors
    /// [`Error::StoreExists`] if the folder has a store; [`Error::Invalid`] if the folder has
    /// something else, or if an encrypted store is wanted and the store in the database is not
    /// encrypted; otherwise see [`Store::create_at`].
    pub fn create_in_database(
        path: &Path,
        database: &Arc<dyn Database>,
        options: Options,
    ) -> Result<(Self, bool)> {
        if path.join(FORMAT_FILE).exists() {
            return Err(Error::StoreExists { path: path.to_owned() });
        }
        if path.exists() {
            check_unfinished(path)?;
        }
        let known = marker_in(&**database)?;
        let (marker, is_new) = marker_or_new(&**database, known, &options)?;
        if options.encrypted && !marker.is_encrypted() {
            return Err(Error::invalid(format!(
                "the store {} is there already, and is not encrypted",
                database.place()
            )));
        }
        // Fails before the folder is made if a key is missing.
        StoreTrust::for_database(None, database.place(), &marker, &options)?;
        files::make_private_folders(path)?;
        clear(path).map_err(backend::Error::io("remove what was left unfinished in", path))?;
        private(path, 0o700)?;
        let marker = marker.in_database(database.place().clone());
        if let Some(keyring) = Keyring::of(&options).filter(|_| is_new && marker.is_sealed()) {
            keyring.note_place(path, &marker.id);
        }
        write_marker(path, marker.encode().as_bytes())?;
        let store = Self::open_in_database(Arc::clone(database), marker, options, Some(path))?;
        Ok((store, is_new))
    }

    /// Returns the address and name of the store that this folder is a place of; `None` if the
    /// store is in files.
    ///
    /// # Errors
    /// [`Error::NoStore`] if the folder has no store; [`Error::Corrupt`] or [`Error::Marker`] if
    /// its file `FORMAT` is not valid; [`Error::Backend`] if this file cannot be read.
    pub fn database_of(path: &Path) -> Result<Option<DatabasePlace>> {
        read_marker(path).map(|marker| marker.database)
    }

    /// Returns the database of this store; `None` if the store is in files or in memory.
    #[must_use]
    pub fn database(&self) -> Option<&Arc<dyn Database>> {
        self.database.as_ref()
    }

    /// Returns whether the files of the database may still contain what a purge has removed from
    /// this store; `false` if the store is not in a database.
    ///
    /// # Errors
    /// Fails if the database cannot be read.
    pub fn keeps_purged(&self) -> Result<bool> {
        match &self.database {
            Some(database) => Ok(database.keeps_purged(&self.engine.marker.id)?),
            None => Ok(false),
        }
    }

    pub(super) fn set_keeps_purged(&self, keeps: bool) -> Result<()> {
        match &self.database {
            Some(database) => Ok(database.set_keeps_purged(&self.engine.marker.id, keeps)?),
            None => Ok(()),
        }
    }

    /// Opens the store of a folder whose marker names a database.
    pub(super) fn open_by_place(
        path: &Path,
        marker: FormatMarker,
        place: &DatabasePlace,
        options: Options,
    ) -> Result<Self> {
        let database = connect(path, place, &options)?;
        Self::open_in_database(database, marker, options, Some(path))
    }

    fn open_in_database(
        database: Arc<dyn Database>,
        marker: FormatMarker,
        options: Options,
        path: Option<&Path>,
    ) -> Result<Self> {
        let trust = StoreTrust::for_database(path, database.place(), &marker, &options)?;
        let log = FramedLog::new(database.frames(&marker.id))
            .with_seals(trust.seals.clone(), trust.witness)
            .with_cipher(trust.cipher.clone());
        let index = database.index(&marker.id);
        let index: Arc<dyn Index> = match trust.cipher.clone() {
            // Encryption also shows that rows were written with the key, so no seals are needed.
            Some(cipher) => Arc::new(EncryptedIndex::new(index, cipher, key::hidden)),
            None if marker.is_sealed() => {
                Arc::new(SealedIndex::new(index, trust.seals.key().cloned()))
            }
            None => Arc::from(index),
        };
        let about = (trust.seal_status, trust.seals, trust.cipher);
        let mut store = Self::assemble(Arc::new(log), index, marker, options, about, path);
        store.database = Some(database);
        Ok(store)
    }

    /// Verifies an open store that is in a database, with its seals if its key is known.
    ///
    /// # Errors
    /// Fails if the database cannot be read. Damage is not an error here.
    pub fn verify_in_database(&self, depth: VerifyDepth) -> Result<VerifyReport> {
        let mut findings = VerifyFindings::default();
        self.engine.verify(depth, &mut findings);
        // What could not be read may be whole.
        if let Err(error @ backend::Error::Database { .. }) = self.engine.follower.log.start() {
            return Err(error.into());
        }
        let waiting = self.spool_status()?;
        if let Some(path) = self.path() {
            let keyring = self.engine.options.keyring.as_deref();
            let (seals, cipher) = (&self.engine.seals, self.engine.cipher.as_ref());
            let known = KnownKeys { seals, cipher, keyring, store: self.engine.marker.id };
            add_spool_findings(&known.spool(path), &waiting, &mut findings)?;
        }
        let VerifyFindings { found, checked, lost_before, forged } = findings;
        let is_derived = found.iter().all(|finding| finding.derived);
        Ok(VerifyReport {
            outcome: outcome(&found, &forged, is_derived),
            findings: found,
            lost: Vec::new(),
            checked,
            lost_before,
            lost_in_repair: None,
            waiting,
            seal_status: self.seal_status(),
            encrypted: self.is_encrypted(),
        })
    }
}

/// Connects to the database that a folder names.
pub(super) fn connect(
    path: &Path,
    place: &DatabasePlace,
    options: &Options,
) -> Result<Arc<dyn Database>> {
    let Some(connector) = &options.connector else {
        return Err(Error::invalid(format!(
            "the store {} is in a database ({place}), and this program does not connect to \
            databases",
            path.display()
        )));
    };
    Ok(connector.connect(place, path)?)
}

/// Refuses an operation that is only for stores in files if the folder names a database.
pub(super) fn check_in_files(path: &Path, what: &str, instead: &str) -> Result<()> {
    match read_marker(path) {
        Ok(FormatMarker { database: Some(place), .. }) => Err(Error::invalid(format!(
            "{what} is for stores in files, and this one is in a database ({place}): {instead}"
        ))),
        // The caller reports an invalid marker.
        _ => Ok(()),
    }
}

fn no_store(place: &DatabasePlace) -> Error {
    Error::not_found("store", place.to_string())
}

/// Reads the marker of a store from its database.
fn marker_in(database: &dyn Database) -> Result<Option<FormatMarker>> {
    let text = database.marker()?;
    Ok(text.as_deref().map(FormatMarker::decode).transpose()?)
}

/// Returns the marker of a known store, or creates the store. Also returns whether the store was
/// created.
fn marker_or_new(
    database: &dyn Database,
    known: Option<FormatMarker>,
    options: &Options,
) -> Result<(FormatMarker, bool)> {
    if let Some(marker) = known {
        return Ok((marker, false));
    }
    match create_marker(database, options)? {
        Some(marker) => Ok((marker, true)),
        // Another process has created it meanwhile.
        None => {
            let marker = marker_in(database)?.ok_or_else(|| no_store(database.place()))?;
            Ok((marker, false))
        }
    }
}

/// Creates a store in a database: its marker, its key and its first record. `None` if the database
/// has a store of this name already.
fn create_marker(database: &dyn Database, options: &Options) -> Result<Option<FormatMarker>> {
    let name = claim::check_id(&database.place().name);
    name.map_err(|error| Error::invalid(format!("the name of the store: {error}")))?;
    let marker = new_marker(options)?;
    let trust = StoreTrust::for_database(None, database.place(), &marker, options)?;
    let log = FramedLog::new(database.frames(&marker.id))
        .with_seals(trust.seals, None)
        .with_cipher(trust.cipher);
    let first = log.first_frame(&head_record(StoreHead::default()).encode())?;
    let created = database.create(&marker.id, &marker.encode(), Some(&first));
    let needs_no_key =
        matches!(created, Ok(false) | Err(backend::Error::Database { unsure: false, .. }));
    if needs_no_key && let Some(keyring) = Keyring::of(options) {
        keyring.forget(&marker.id);
    }
    Ok(created?.then_some(marker))
}

impl StoreTrust {
    /// Makes the trust of a store in a database. `path` is the folder that is its place, if any.
    /// With a keyring, even a store without seals has a witness: a database can lose what it
    /// acknowledged, for example if a standby that lags takes over.
    ///
    /// # Errors
    /// See [`StoreTrust::for_store`].
    fn for_database(
        path: Option<&Path>,
        place: &DatabasePlace,
        marker: &FormatMarker,
        options: &Options,
    ) -> Result<Self> {
        let shown = PathBuf::from(place.to_string());
        let mut trust = Self::for_store(path.unwrap_or(&shown), marker, options)?;
        if trust.seal_status == SealStatus::Unsealed
            && let Some(keyring) = Keyring::of(options)
        {
            trust.witness = keyring.witness(&marker.id)?;
            if trust.witness.is_none() && !options.read_only {
                keyring.begin_witness(&marker.id, &SyncMark { position: 0, hash: [0; 32] })?;
                trust.witness = keyring.witness(&marker.id)?;
            }
        }
        Ok(trust)
    }
}

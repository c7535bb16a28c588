//! Adopting a store, and moving its key from one machine to another.

use super::folder::{FORMAT_FILE, JOURNAL_FOLDER, SEARCH_FOLDER, marker_of, private, raw_index};
use super::in_database::connect;
use super::keyring::{Keyring, StoreTrust, cipher_of, write_private};
use super::remote::copy_remotes;
use super::{Options, SealStatus, Store};
use crate::backend::database::DatabasePlace;
use crate::backend::framed_log::FramedLog;
use crate::backend::journal::{Journal, SyncMark};
use crate::backend::spool::{SpoolFolder, folder_in};
use crate::backend::{self, Cipher, SealKey, SealMode, Spool, files};
use crate::engine::commit::check_version;
use crate::engine::random::random;
use crate::engine::spool;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{FormatMarker, KeyFile};
use crate::model::{Timestamp, hex};
use std::path::{Path, PathBuf};

/// What [`Store::adopt`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptReport {
    /// The seal status before.
    pub before: SealStatus,
    /// Whether the whole store was resealed: it has a new id and a new key. Otherwise its seals, if
    /// it has any, were valid, and only the unsealed writes in the spool were accepted.
    pub resealed: bool,
    /// The end of its journal, in bytes; if it was not resealed, the position up to which its
    /// witness has seen the journal.
    pub position: u64,
    /// How many unsealed writes in the spool were sealed.
    pub waiting: u64,
}

/// The state of a store's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyState {
    /// The seal status.
    pub seal_status: SealStatus,
    /// Whether the store is encrypted.
    pub encrypted: bool,
    /// Whether a later version of forge wrote the store, so that this one only reads it.
    pub read_only: bool,
    /// The store's id, 32 hex digits.
    pub id: String,
    /// The end of its journal when it was adopted, and the time of that, if it was adopted.
    pub adopted: Option<(u64, Timestamp)>,
    /// The position up to which its witness has seen the journal.
    pub witnessed: Option<u64>,
}

impl Store {
    /// Adopts a store as it is: it gets a new id and a new key, and everything in it is sealed with
    /// that key. The earlier content is checked for damage. Whether it was changed without the key
    /// stays unknown; the key file records up to which position.
    ///
    /// Use it for a store whose key or witness is lost, for a copy of a store that is to be used
    /// separately, for a store without seals, and for a store that was changed without its key and
    /// is to be kept all the same. If all seals are valid, it only accepts the unsealed writes in
    /// the spool. A store in a database keeps its id and its seals, which must be valid. Its
    /// witness begins again at the present end, because the database may have lost acknowledged
    /// writes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the options name no keyring, [`Error::Encrypted`] if the store is
    /// encrypted and its key is not here, [`Error::Backend`] if another process holds a lock for
    /// longer than [`Options::lock_timeout`], or if something is damaged: repair it first;
    /// [`Error::ReadOnly`] if a later version of forge wrote the store; [`Error::Unkeyed`] if the
    /// store is in a database and its key is not here. A failure changes no content; the next
    /// attempt continues.
    pub fn adopt(path: &Path, options: &Options, now: Timestamp) -> Result<AdoptReport> {
        let keyring = Keyring::required(options)?;
        let marker = marker_of(path)?;
        if let Some(place) = &marker.database {
            return adopt_in_database(path, &marker, place, options, &keyring);
        }
        check_version(&marker)?;
        let before = match StoreTrust::for_store(path, &marker, options) {
            Ok(trust) => trust.seal_status,
            Err(error) if error.kind() == ErrorKind::Forged => SealStatus::NoKey,
            Err(error) => return Err(error),
        };
        if before == SealStatus::Sealed
            && let Some(key) = keyring.usable_key(&marker)?
            && has_valid_seals(path, options)?
        {
            let seals = SealMode::Keyed(SealKey::new(&key.secret, &marker.id, &marker.key));
            let cipher = cipher_of(path, &marker, &key)?;
            let witness = Some(keyring.spool(&marker.id));
            let waiting = seal_waiting(path, &seals, cipher.as_ref(), witness)?;
            let position = keyring.witnessed_mark(&marker.id)?.map_or(0, |mark| mark.position);
            return Ok(AdoptReport { before, resealed: false, position, waiting });
        }
        // The cipher is kept: only the seals are replaced.
        let known = keyring.usable_key(&marker)?;
        let (shared, cipher) = match &known {
            Some(file) => (file.cipher, cipher_of(path, &marker, file)?),
            None if marker.is_encrypted() => return Err(Error::Encrypted),
            None => (None, None),
        };
        let id = random()?;
        let secret = random()?;
        let seals = SealMode::Keyed(SealKey::new(&secret, &id, &marker.key));
        // Lock the index first: if that fails, the journal still has its old seals.
        let index = raw_index(path, &seals, None);
        let lock = index.lock(options.lock_timeout)?;
        let journal =
            Journal::open(&path.join(JOURNAL_FOLDER))?.with_seals(SealMode::Unknown, None);
        let end = journal.reseal(options.lock_timeout, &seals)?;
        drop(journal);
        index.reseal(&lock)?;
        drop(lock);
        let waiting = seal_waiting(path, &seals, cipher.as_ref(), None)?;
        // A later search makes the search copies again.
        files::remove_folder(&path.join(SEARCH_FOLDER))?;
        let position = end.position;
        let adopted = Some((position, now));
        let file = KeyFile { store: id, secret, cipher: shared, adopted, witness: None };
        copy_remotes(&keyring, &marker.id, &id)?;
        keyring.add(&file, &end)?;
        // FORMAT makes it a different store. Note its place only afterwards: a store that still
        // has the old id would be refused at a place with the new one.
        let marker = FormatMarker { id, ..marker }.sealed();
        write_private(&path.join(FORMAT_FILE), marker.encode().as_bytes())?;
        keyring.note_place(path, &id);
        Ok(AdoptReport { before, resealed: true, position, waiting })
    }

    /// Returns the state of the key of the store in a folder.
    ///
    /// # Errors
    /// [`Error::NoStore`], [`Error::Marker`]; [`backend::Error::Breach`] if another store was at
    /// this path before.
    pub fn key_state(path: &Path, options: &Options) -> Result<KeyState> {
        let marker = marker_of(path)?;
        let seal_status = match StoreTrust::for_store(path, &marker, options) {
            Err(Error::Encrypted) => SealStatus::NoKey,
            trust => trust?.seal_status,
        };
        let id = hex(&marker.id);
        let (mut adopted, mut witnessed) = (None, None);
        if let Some(keyring) = Keyring::of(options) {
            adopted = keyring.usable_key(&marker)?.and_then(|file| file.adopted);
            witnessed = keyring.witnessed_mark(&marker.id)?.map(|mark| mark.position);
        }
        let (encrypted, read_only) = (marker.is_encrypted(), !marker.is_writable());
        Ok(KeyState { seal_status, encrypted, read_only, id, adopted, witnessed })
    }

    /// Returns the key of the store in a folder, with what its witness has seen, as a text for
    /// another machine.
    ///
    /// # Errors
    /// [`Error::Unkeyed`] if the key or the witness is not here; [`Error::Invalid`] if the store
    /// has no seals.
    pub fn export_key(path: &Path, options: &Options) -> Result<String> {
        let marker = marker_of(path)?;
        let keyring = Keyring::of(options).ok_or(Error::Unkeyed { missing: "key" })?;
        match (keyring.read_key(&marker.id)?, keyring.witnessed_mark(&marker.id)?) {
            (Some(file), Some(seen)) => {
                let witness = Some((seen.position, seen.hash));
                Ok(KeyFile { witness, ..file }.encode())
            }
            (Some(_), None) => Err(Error::Unkeyed { missing: "witness" }),
            (None, _) if marker.is_sealed() => Err(Error::Unkeyed { missing: "key" }),
            (None, _) => Err(Error::invalid("the store has no seals: 'forge adopt' gives it some")),
        }
    }

    /// Imports the key of a store that was exported on another machine. Returns the store's id.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the text is not an exported key; [`Error::Conflict`] if the key and
    /// its witness are already here.
    pub fn import_key(text: &str, options: &Options) -> Result<String> {
        let keyring = Keyring::required(options)?;
        let file = KeyFile::decode(text).and_then(|file| Some((file.witness?, file)));
        let Some(((position, hash), file)) = file else {
            return Err(Error::invalid("this is not a key file of 'forge key export'"));
        };
        let known = match keyring.read_key(&file.store) {
            // The imported key replaces the damaged one.
            Err(Error::DamagedKey { .. }) => None,
            known => known?,
        };
        if known.is_some() && keyring.witnessed_mark(&file.store)?.is_some() {
            return Err(Error::Conflict("the key of this store is here already".to_owned()));
        }
        let id = hex(&file.store);
        keyring.add(&KeyFile { witness: None, ..file }, &SyncMark { position, hash })?;
        Ok(id)
    }
}

/// Returns whether every record and every index file has a valid seal.
fn has_valid_seals(path: &Path, options: &Options) -> Result<bool> {
    let options = Options { read_only: true, ..options.clone() };
    let read = Store::open(path, options).and_then(|store| {
        store.engine.follower.written_refs()?;
        store.engine.check_spool()
    });
    match read {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.kind(), ErrorKind::Forged | ErrorKind::Corrupt) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Seals the unsealed writes in the spool; writes that cannot be read stay as they are.
fn seal_waiting(
    path: &Path,
    seals: &SealMode,
    cipher: Option<&Cipher>,
    witness: Option<PathBuf>,
) -> Result<u64> {
    let spool = |seals| SpoolFolder::new(path).with_seals(seals).with_cipher(cipher.cloned());
    let (read, sealed) = (spool(SealMode::Unknown), spool(seals.clone()).with_witness(witness));
    let mut count = 0;
    for name in read.names()? {
        let is_whole = |bytes: &[u8]| spool::is_whole(&name, bytes);
        let bytes = match read.read(&name, &is_whole) {
            Err(backend::Error::Breach { .. }) => continue,
            bytes => bytes?,
        };
        let Some(bytes) = bytes.filter(|bytes| is_whole(bytes)) else { continue };
        let as_sealed = sealed.read(&name, &is_whole);
        if !as_sealed.is_ok_and(|bytes| bytes.is_some_and(|bytes| is_whole(&bytes))) {
            sealed.put(&name, &bytes)?;
            count += 1;
        }
    }
    if count > 0 {
        private(&folder_in(path), 0o700)?;
    }
    Ok(count)
}

/// Accepts a store in a database as it is: its witness begins again at the end of the journal, and
/// the unsealed writes in the spool are sealed.
fn adopt_in_database(
    path: &Path,
    marker: &FormatMarker,
    place: &DatabasePlace,
    options: &Options,
    keyring: &Keyring,
) -> Result<AdoptReport> {
    let trust = StoreTrust::for_store(path, marker, options)?;
    if trust.seal_status == SealStatus::NoKey {
        return Err(Error::Unkeyed { missing: "key" });
    }
    let database = connect(path, place, options)?;
    let log = FramedLog::new(database.frames(&marker.id))
        .with_seals(trust.seals.clone(), None)
        .with_cipher(trust.cipher.clone());
    let end = log.verified_end()?;
    keyring.begin_witness(&marker.id, &end)?;
    let waiting = match trust.seals.key() {
        Some(_) => {
            let witness = Some(keyring.spool(&marker.id));
            seal_waiting(path, &trust.seals, trust.cipher.as_ref(), witness)?
        }
        None => 0,
    };
    Ok(AdoptReport { before: trust.seal_status, resealed: false, position: end.position, waiting })
}

//! Taking a store over, and carrying its key from one machine to another.

use super::folder::{FORMAT_FILE, JOURNAL_FOLDER, SEARCH_FOLDER, marker_of, private, raw_index};
use super::keyring::{Keyring, StoreTrust, cipher_of, write_private};
use super::{Options, SealStatus, Store};
use crate::backend::journal::{Journal, SyncMark};
use crate::backend::spool::{SpoolFolder, folder_in};
use crate::backend::{self, Cipher, SealKey, SealMode, Spool};
use crate::engine::commit::random;
use crate::engine::spool;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{FormatMarker, KeyFile, hex};
use crate::model::Timestamp;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What was taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdoptReport {
    /// What was known of its seals before.
    pub before: SealStatus,
    /// Whether the whole store was: it has a new id and a new key. Otherwise its seals were right, and only what waited
    /// without a seal was taken in.
    pub resealed: bool,
    /// Where its journal ended.
    pub position: u64,
    /// How many writes that waited without the store's seal have it now.
    pub waiting: u64,
}

/// What is known of a store's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyState {
    /// What is known of its seals.
    pub standing: SealStatus,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// The store's id, 32 hex digits.
    pub id: String,
    /// Where it ended, and when, as it was taken over.
    pub adopted: Option<(u64, Timestamp)>,
    /// How far its witness has seen it.
    pub witnessed: Option<u64>,
}

impl Store {
    /// Takes a store over as it is: it gets an id and a key of its own, and everything in it is sealed with that. What it
    /// held before is vouched for by nobody, which its key's file keeps; that it is whole is checked.
    ///
    /// For a store whose key or witness is lost, for a copy of a store that is to go on by itself, for one that has no
    /// seals yet, and for one that was changed without its key and that is to be kept all the same. Where all seals are
    /// right, only the writes that wait without one are taken in.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the options name no keyring, [`Error::Encrypted`] if it is and its key is not here, [`Error::Backend`] if somebody else is at it for longer than
    /// [`Options::lock_timeout`], with who, or if something is damaged: repair it first. A failure changes nothing that is read; another attempt goes on.
    pub fn adopt(path: &Path, options: &Options, now: Timestamp) -> Result<AdoptReport> {
        let Some(keyring) = Keyring::of(options) else {
            return Err(Error::invalid("there is no folder to keep the key in"));
        };
        let marker = marker_of(path)?;
        if !marker.is_writable() {
            let reason = "a later version of forge wrote it; this one only reads it".to_owned();
            return Err(Error::ReadOnly { reason });
        }
        let before = match StoreTrust::for_store(path, &marker, options) {
            Ok(trust) => trust.standing,
            Err(error) if error.kind() == ErrorKind::Forged => SealStatus::NoKey,
            Err(error) => return Err(error),
        };
        if before == SealStatus::Sealed
            && let Some(key) = keyring.key_of(&marker)?
            && is_right(path, options)?
        {
            let seals = SealMode::Keyed(SealKey::new(&key.secret, &marker.id, &marker.key));
            let cipher = cipher_of(path, &marker, &key)?;
            let witness = Some(keyring.spool(&marker.id));
            let waiting = seal_waiting(path, &seals, cipher.as_ref(), witness)?;
            let position = keyring.seen(&marker.id)?.map_or(0, |mark| mark.position);
            return Ok(AdoptReport { before, resealed: false, position, waiting });
        }
        // What it is encrypted with goes over: it stays as it is, and only its seals are made anew.
        let known = keyring.key_of(&marker)?;
        let (shared, cipher) = match &known {
            Some(file) => (file.cipher, cipher_of(path, &marker, file)?),
            None if marker.is_encrypted() => return Err(Error::Encrypted),
            None => (None, None),
        };
        let id = random()?;
        let secret = random()?;
        let seals = SealMode::Keyed(SealKey::new(&secret, &id, &marker.key));
        // Whoever is at the index is waited for first: where that is in vain, the journal bears the seals that it bore.
        let index = raw_index(path, &seals, None);
        let lock = index.lock(options.lock_timeout)?;
        let journal =
            Journal::open(&path.join(JOURNAL_FOLDER))?.with_seals(SealMode::Unknown, None);
        let end = journal.reseal(options.lock_timeout, &seals)?;
        drop(journal);
        index.reseal(&lock)?;
        drop(lock);
        let waiting = seal_waiting(path, &seals, cipher.as_ref(), None)?;
        // A copy of texts is made anew where it is needed.
        let copies = path.join(SEARCH_FOLDER);
        match fs::remove_dir_all(&copies) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(backend::Error::io("remove", &copies)(error).into());
            }
            _ => {}
        }
        let position = end.position;
        let adopted = Some((position, now));
        let file = KeyFile { store: id, secret, cipher: shared, adopted, witness: None };
        keyring.add(&file, &end)?;
        // From here on it is another store. Its place is noted behind that: what stands there before is refused.
        let marker = FormatMarker { id, ..marker }.sealed();
        write_private(&path.join(FORMAT_FILE), marker.encode().as_bytes())?;
        keyring.note_place(path, &id);
        Ok(AdoptReport { before, resealed: true, position, waiting })
    }

    /// What is known here of the key of the store in a folder.
    ///
    /// # Errors
    /// [`Error::NoStore`], [`Error::Marker`]; [`backend::Error::Breach`] if the store is not the one that stood there.
    pub fn key_state(path: &Path, options: &Options) -> Result<KeyState> {
        let marker = marker_of(path)?;
        let standing = match StoreTrust::for_store(path, &marker, options) {
            Err(Error::Encrypted) => SealStatus::NoKey,
            trust => trust?.standing,
        };
        let id = hex(&marker.id);
        let (mut adopted, mut witnessed) = (None, None);
        if let Some(keyring) = Keyring::of(options) {
            adopted = keyring.key_of(&marker)?.and_then(|file| file.adopted);
            witnessed = keyring.seen(&marker.id)?.map(|mark| mark.position);
        }
        Ok(KeyState { standing, encrypted: marker.is_encrypted(), id, adopted, witnessed })
    }

    /// The key of the store in a folder, with what its witness has seen, as a text to be taken elsewhere.
    ///
    /// # Errors
    /// [`Error::Unkeyed`] if it is not here; [`Error::Invalid`] if the store has no seals.
    pub fn export_key(path: &Path, options: &Options) -> Result<String> {
        let marker = marker_of(path)?;
        let Some(keyring) = Keyring::of(options) else {
            return Err(Error::Unkeyed { missing: "key" });
        };
        match (keyring.key(&marker.id)?, keyring.seen(&marker.id)?) {
            (Some(file), Some(seen)) => {
                let witness = Some((seen.position, seen.hash));
                Ok(KeyFile { witness, ..file }.encode())
            }
            (Some(_), None) => Err(Error::Unkeyed { missing: "witness" }),
            (None, _) if marker.is_sealed() => Err(Error::Unkeyed { missing: "key" }),
            (None, _) => Err(Error::invalid("the store has no seals: 'forge adopt' gives it some")),
        }
    }

    /// Takes in the key of a store that was exported elsewhere. Gives the store's id.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the text is no exported key; [`Error::Conflict`] if the store's key is here already.
    pub fn import_key(text: &str, options: &Options) -> Result<String> {
        let Some(keyring) = Keyring::of(options) else {
            return Err(Error::invalid("there is no folder to keep the key in"));
        };
        let file = KeyFile::decode(text).and_then(|file| Some((file.witness?, file)));
        let Some(((position, hash), file)) = file else {
            return Err(Error::invalid("this is no key that 'forge key export' wrote"));
        };
        let known = match keyring.key(&file.store) {
            // This one takes its place.
            Err(Error::DamagedKey { .. }) => None,
            known => known?,
        };
        if known.is_some() && keyring.seen(&file.store)?.is_some() {
            return Err(Error::Conflict("the key of this store is here already".to_owned()));
        }
        let id = hex(&file.store);
        keyring.add(&KeyFile { witness: None, ..file }, &SyncMark { position, hash })?;
        Ok(id)
    }
}

/// Whether every record and every file of the index bears its seal.
fn is_right(path: &Path, options: &Options) -> Result<bool> {
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

/// Gives what waits in the spool the store's seal; what cannot be read stays as it is.
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
        let said = sealed.read(&name, &is_whole);
        if !said.is_ok_and(|bytes| bytes.is_some_and(|bytes| is_whole(&bytes))) {
            sealed.put(&name, &bytes)?;
            count += 1;
        }
    }
    if count > 0 {
        private(&folder_in(path), 0o700)?;
    }
    Ok(count)
}

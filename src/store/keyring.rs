//! The keyring: a folder outside the stores, with their keys and witnesses by store id.
//!
//! ```text
//! 6d1f.../key        the key of the store with this id
//! 6d1f.../witness    up to which position its journal was seen
//! 6d1f.../checked    which of its index files were verified
//! 6d1f.../spool/     which writes of its spool were acknowledged, and which are in the journal
//! 6d1f.../remotes/   the remotes that it knows: for each name the URL and the key
//! remotes/02a7.../   which version of each ref of the remote with this id was seen
//! places/09ab...     the id of the store that was last at the path with this hash
//! ```

use crate::backend::journal::{JournalWitness, SyncMark};
use crate::backend::{self, Cipher, IntegrityBreach, SealKey, SealMode, files, plain_file};
use crate::engine::commit::{Options, SealStatus};
use crate::error::{Error, Result};
use crate::format::{FormatMarker, KeyFile, repair_bit};
use crate::model::{RemoteId, hex, unhex};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A keyring, which need not exist yet.
#[derive(Clone, Debug)]
pub(super) struct Keyring {
    folder: PathBuf,
}

/// The keys of an open store, and its seal status.
pub(super) struct StoreTrust {
    pub(super) seal_status: SealStatus,
    pub(super) seals: SealMode,
    /// The cipher, if the store is encrypted.
    pub(super) cipher: Option<Cipher>,
    pub(super) witness: Option<JournalWitness>,
    /// The file that lists the verified index files, if the key is here.
    pub(super) checked: Option<PathBuf>,
}

impl StoreTrust {
    /// Returns the trust of a store without the key of its seals and without a cipher.
    const fn without_seal_key(seal_status: SealStatus, seals: SealMode) -> Self {
        Self { seal_status, seals, cipher: None, witness: None, checked: None }
    }

    /// Returns the trust of a store whose key is missing.
    ///
    /// # Errors
    /// [`Error::Encrypted`] if the store is encrypted.
    fn unkeyed(marker: &FormatMarker) -> Result<Self> {
        match (marker.is_encrypted(), marker.is_sealed()) {
            (true, _) => Err(Error::Encrypted),
            (false, true) => Ok(Self::without_seal_key(SealStatus::NoKey, SealMode::Unknown)),
            (false, false) => Ok(Self::without_seal_key(SealStatus::Unsealed, SealMode::Absent)),
        }
    }

    /// Returns the trust of a store whose seals are not checked. Only the cipher of its key is
    /// used.
    ///
    /// # Errors
    /// [`Error::Encrypted`] if the store is encrypted and its key is missing,
    /// [`Error::DamagedKey`], [`backend::Error::Breach`] if the key says that the store is not
    /// encrypted, but it is.
    pub(super) fn unverified(
        path: &Path,
        marker: &FormatMarker,
        options: &Options,
    ) -> Result<Self> {
        let file = Keyring::of(options).map(|keyring| keyring.usable_key(marker)).transpose()?;
        let Some(file) = file.flatten().filter(|_| marker.is_encrypted()) else {
            return Self::unkeyed(marker);
        };
        Ok(Self::with_cipher_only(cipher_of(path, marker, &file)?))
    }

    /// Returns the trust of a store with this cipher and without the key of its seals. Without a
    /// cipher, the store counts as unsealed.
    pub(super) fn with_cipher_only(cipher: Option<Cipher>) -> Self {
        match cipher {
            Some(_) => {
                Self { cipher, ..Self::without_seal_key(SealStatus::NoKey, SealMode::Unknown) }
            }
            None => Self::without_seal_key(SealStatus::Unsealed, SealMode::Absent),
        }
    }

    /// Returns the trust of the store at this path.
    ///
    /// # Errors
    /// [`backend::Error::Breach`] if the key is missing and another, sealed store was at this path
    /// before, or if the store has a key but no seals, or if the key and the store disagree about
    /// encryption; [`Error::Encrypted`] if the store is encrypted and its key is missing;
    /// [`Error::DamagedKey`].
    pub(super) fn for_store(path: &Path, marker: &FormatMarker, options: &Options) -> Result<Self> {
        let unkeyed = Self::unkeyed(marker);
        let Some(keyring) = Keyring::of(options) else { return unkeyed };
        let Some(file) = keyring.usable_key(marker)? else {
            keyring.check_place(path, &marker.id)?;
            return unkeyed;
        };
        if !marker.is_sealed() {
            let what = format!(
                "the store at {} has no seals, but its key says that it had seals",
                path.display()
            );
            return Err(backend::Error::Breach { breach: IntegrityBreach::Unsealed, what }.into());
        }
        let cipher = cipher_of(path, marker, &file)?;
        if !options.read_only {
            keyring.note_place(path, &marker.id);
        }
        let key = SealKey::new(&file.secret, &marker.id, &marker.key);
        let witness = keyring.witness(&marker.id)?;
        let seal_status =
            if witness.is_some() { SealStatus::Sealed } else { SealStatus::NoWitness };
        let checked = Some(keyring.folder_of(&marker.id).join(CHECKED));
        Ok(Self { seal_status, seals: SealMode::Keyed(key), cipher, witness, checked })
    }
}

/// Returns the cipher of a store, if it is encrypted.
///
/// # Errors
/// [`backend::Error::Breach`] if its key file and its marker disagree about that.
pub(super) fn cipher_of(
    path: &Path,
    marker: &FormatMarker,
    file: &KeyFile,
) -> Result<Option<Cipher>> {
    match (&file.cipher, marker.is_encrypted()) {
        (Some(secret), true) => Ok(Some(Cipher::new(secret))),
        (None, false) => Ok(None),
        (known, _) => {
            let (is, was) = if known.is_some() { ("not ", "") } else { ("", "not ") };
            let what = format!(
                "the store at {} is {is}encrypted, and its key says that it was {was}so",
                path.display()
            );
            Err(backend::Error::Breach { breach: IntegrityBreach::Replaced, what }.into())
        }
    }
}

/// The maximum size, in bytes, of a key or place file.
const MAX_BYTES: u64 = 64 << 10;

// The names of files and folders in a keyring.
const KEY: &str = "key";
const WITNESS: &str = "witness";
const CHECKED: &str = "checked";
const PLACES: &str = "places";
const SPOOL: &str = "spool";
const REMOTES: &str = "remotes";

impl Keyring {
    /// Returns the keyring that these options name, if they name one.
    pub(super) fn of(options: &Options) -> Option<Self> {
        options.keyring.as_deref().map(Self::new)
    }

    /// Like [`Self::of`], but it is an error if the options name no keyring.
    pub(super) fn required(options: &Options) -> Result<Self> {
        Self::of(options).ok_or_else(|| Error::invalid("there is no directory for the key"))
    }

    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Returns the folder of a store. It is also the folder for notes about an encrypted store,
    /// whose own folder must not show them.
    pub(super) fn folder_of(&self, store: &[u8; 16]) -> PathBuf {
        self.folder.join(hex(store))
    }

    /// Returns the folder that records which spool writes were acknowledged, and which were
    /// appended to the journal.
    pub(super) fn spool(&self, store: &[u8; 16]) -> PathBuf {
        self.folder_of(store).join(SPOOL)
    }

    /// Returns the folder of the remotes that a store knows by name.
    pub(super) fn remotes(&self, store: &[u8; 16]) -> PathBuf {
        self.folder_of(store).join(REMOTES)
    }

    /// Returns the folder that records which versions of the refs of a remote were seen.
    pub(super) fn refs_seen(&self, remote: &RemoteId) -> PathBuf {
        self.folder.join(REMOTES).join(remote.to_string())
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads the key file of a store, if it exists. A single wrong bit is corrected in what is
    /// returned, not in the file.
    ///
    /// # Errors
    /// [`Error::DamagedKey`] if the file is not the valid key file of this store.
    pub(super) fn read_key(&self, store: &[u8; 16]) -> Result<Option<KeyFile>> {
        let path = self.folder_of(store).join(KEY);
        let mut bytes = match plain_file::read(&path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if plain_file::is_odd(&error) => {
                return Err(Error::DamagedKey { path, reason: Some(error.to_string()) });
            }
            // A key file that this user may not read counts as missing.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(backend::Error::io("read", &path)(error).into()),
        };
        let file = |bytes: &[u8]| {
            let text = std::str::from_utf8(bytes).ok()?;
            KeyFile::decode(text).filter(|file| file.store == *store)
        };
        if file(&bytes).is_none() {
            repair_bit(&mut bytes, &|bytes| file(bytes).is_some());
        }
        file(&bytes).map(Some).ok_or(Error::DamagedKey { path, reason: None })
    }

    /// Reads the key file of a store, if it exists. If the store is sealed and not encrypted, a
    /// damaged key file counts as missing, because the store can be read without it. Otherwise a
    /// damaged one is an error: an encrypted store cannot be read, and an unsealed one with a key
    /// lost its seals.
    pub(super) fn usable_key(&self, marker: &FormatMarker) -> Result<Option<KeyFile>> {
        match self.read_key(&marker.id) {
            Err(Error::DamagedKey { .. }) if marker.is_sealed() && !marker.is_encrypted() => {
                Ok(None)
            }
            key => key,
        }
    }

    /// Returns the ciphers of all encrypted stores whose keys are in this keyring and not damaged.
    pub(super) fn ciphers(&self) -> Result<Vec<Cipher>> {
        let mut found = Vec::new();
        for name in files::names_in(&self.folder)? {
            let key = unhex(&name).map(|store| self.read_key(&store));
            let file = key.and_then(|key| key.ok().flatten());
            found.extend(file.and_then(|file| file.cipher).as_ref().map(Cipher::new));
        }
        Ok(found)
    }

    /// Opens the witness of a store, if there is one.
    pub(super) fn witness(&self, store: &[u8; 16]) -> Result<Option<JournalWitness>> {
        Ok(JournalWitness::open(&self.folder_of(store).join(WITNESS), store)?)
    }

    /// Reads the mark up to which the witness of a store has seen its journal, if there is one.
    pub(super) fn witnessed_mark(&self, store: &[u8; 16]) -> Result<Option<SyncMark>> {
        let witness = self.witness(store)?;
        Ok(witness.map(|witness| witness.read()).transpose()?.flatten())
    }

    /// Writes the key file of a store, and a witness that has seen the journal up to `seen`.
    /// Replaces an earlier key and witness.
    pub(super) fn add(&self, file: &KeyFile, seen: &SyncMark) -> Result<()> {
        let folder = self.folder_of(&file.store);
        files::make_private_folders(&folder)?;
        super::private(&folder, 0o700)?;
        JournalWitness::create(&folder.join(WITNESS), &file.store, seen)?;
        // Write the key last: if it exists, the witness exists too.
        write_private(&folder.join(KEY), file.encode().as_bytes())?;
        Ok(files::sync_folder(&self.folder)?)
    }

    /// Creates or replaces the witness of a store in a database, without a key.
    pub(super) fn begin_witness(&self, store: &[u8; 16], seen: &SyncMark) -> Result<()> {
        let folder = self.folder_of(store);
        files::make_private_folders(&folder)?;
        Ok(JournalWitness::create(&folder.join(WITNESS), store, seen)?)
    }

    /// Removes the folder of a store that was not created after all: its key and its witness.
    /// Ignores errors.
    pub(super) fn forget(&self, store: &[u8; 16]) {
        let _ = fs::remove_dir_all(self.folder_of(store));
    }

    /// Returns the file that records which store was last at a path.
    fn place(&self, path: &Path) -> PathBuf {
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let hash = blake3::hash(path.as_os_str().as_bytes());
        let name = hash.as_bytes().first_chunk::<16>().expect("16 of 32 bytes");
        self.folder.join(PLACES).join(hex(name))
    }

    /// Refuses a store without a key if another store is recorded at its path: an attacker without
    /// the key may have replaced that store.
    fn check_place(&self, path: &Path, store: &[u8; 16]) -> Result<()> {
        let Ok(known) = plain_file::read_text(&self.place(path), MAX_BYTES) else { return Ok(()) };
        if known.trim() == hex(store) {
            return Ok(());
        }
        let what = format!(
            "the store at {} is not the sealed store that was at this path before, and its key is \
            missing",
            path.display()
        );
        Err(backend::Error::Breach { breach: IntegrityBreach::Replaced, what }.into())
    }

    /// Records which store is at a path, if a store was recorded there before. Returns whether a
    /// store was recorded before. Ignores write errors.
    pub(super) fn replace_place(&self, path: &Path, store: &[u8; 16]) -> bool {
        let was_known = self.place(path).exists();
        if was_known {
            self.note_place(path, store);
        }
        was_known
    }

    /// Records which store is at a path. Ignores write errors.
    pub(super) fn note_place(&self, path: &Path, store: &[u8; 16]) {
        let (file, id) = (self.place(path), hex(store));
        if plain_file::read_text(&file, MAX_BYTES).is_ok_and(|known| known == id) {
            return;
        }
        if files::make_private_folders(&self.folder.join(PLACES)).is_ok() {
            let _ = write_private(&file, id.as_bytes());
        }
    }
}

/// Replaces a file atomically and durably by one that only its owner can read.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let new = path.with_extension(format!("{}.new", std::process::id()));
    files::replace(path, &new, bytes)?;
    Ok(files::sync_folder(files::folder_of(path))?)
}

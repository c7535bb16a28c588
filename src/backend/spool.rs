//! The spool as a folder: one file for each write that waits for the append lock, and a copy of
//! each in another folder, so that damage to or loss of a single file loses no write. See
//! `docs/format.md`, "Spool".

mod ledger;
#[cfg(test)]
mod tests;

use super::files::{self, LockedFile};
use super::journal::BitRepair;
use super::seal::SEAL_BYTES;
use super::{
    Cipher, EncryptionContext, Error, IntegrityBreach, SealKey, SealMode, Spool, plain_file,
};
use ledger::Ledger;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Hex digits of an operation id.
const NAME_DIGITS: usize = 32;
/// The mark at the start of the trailer of a sealed write.
const SEAL_MARK: &[u8; 4] = b"fSe1";
const TRAILER_BYTES: usize = SEAL_MARK.len() + SEAL_BYTES;
/// The maximum size of a spool file; a record is at most half of it.
const MAX_BYTES: u64 = 128 << 20;
const SET_ASIDE: &str = "damaged";
const UNFINISHED: &str = "new";
/// Maximum number of unfinished files with one name before writing fails.
const ATTEMPTS: u32 = 100;

/// The folder of waiting writes, and the folder of their copies. The first write creates both.
#[derive(Clone, Debug)]
pub struct SpoolFolder {
    folder: PathBuf,
    copies: PathBuf,
    /// The ledger outside the store of acknowledged writes.
    witness: Option<Ledger>,
    seals: SealMode,
    cipher: Option<Cipher>,
}

impl SpoolFolder {
    /// Creates a handle for the spool in a store's folder.
    #[must_use]
    pub fn new(store: &Path) -> Self {
        let (folder, copies) = (store.join(FOLDER), store.join(COPIES));
        Self { folder, copies, witness: None, seals: SealMode::Absent, cipher: None }
    }

    /// Sets a folder outside the store that records which writes were acknowledged and which were
    /// appended.
    #[must_use]
    pub fn with_witness(self, folder: Option<PathBuf>) -> Self {
        Self { witness: folder.map(Ledger::new), ..self }
    }

    /// Sets the seals.
    #[must_use]
    pub fn with_seals(self, seals: SealMode) -> Self {
        Self { seals, ..self }
    }

    /// Sets the cipher of the writes.
    #[must_use]
    pub fn with_cipher(self, cipher: Option<Cipher>) -> Self {
        Self { cipher, ..self }
    }

    /// Checks the seal of a file with this name and decrypts its content.
    fn shown(&self, name: &str, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let bytes = self.unsealed(name, bytes)?;
        let Some(cipher) = &self.cipher else { return Ok(bytes) };
        cipher.open(EncryptionContext::Spooled(name), &bytes)
    }

    /// Returns the bytes of an unreadable write that an earlier repair kept.
    pub(crate) fn read_aside(&self, name: &str) -> Result<Vec<u8>, Error> {
        let path = self.folder.join(format!("{name}.{SET_ASIDE}"));
        read_own(&path).map_err(Error::io("read", &path))
    }

    /// Returns the files of a write, the copy last, each with its bytes as stored.
    pub(crate) fn stored(&self, name: &str) -> Result<Vec<(PathBuf, Vec<u8>)>, Error> {
        let mut found = Vec::new();
        for path in self.places(name) {
            match read_own(&path) {
                Ok(bytes) => found.push((path, bytes)),
                // Anything but a file of an acceptable size contains no write.
                Err(error) if plain_file::is_no_file(&error) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::io("read", &path)(error)),
            }
        }
        Ok(found)
    }

    /// Returns the waiting writes like [`Spool::names`], for a repair: ignores a file in the place
    /// of a folder, and a list of appended writes that cannot be read.
    pub(crate) fn kept_names(&self) -> Result<Vec<String>, Error> {
        let mut names = BTreeSet::new();
        let is_folder = |path: &&PathBuf| path.symlink_metadata().is_ok_and(|one| one.is_dir());
        for folder in [&self.folder, &self.copies].into_iter().filter(is_folder) {
            names.extend(writes(folder)?);
        }
        if let Some(witness) = &self.witness {
            names.extend(witness.acknowledged()?);
        }
        // A write that was appended is also known from the journal.
        let appended = self.appended_names().unwrap_or_default();
        names.retain(|name| !appended.contains(name));
        Ok(names.into_iter().collect())
    }

    /// Returns what is wrong with the files of a write that is still readable from its other file.
    pub(crate) fn flaws(
        &self,
        name: &str,
        is_whole: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Vec<(&'static str, &'static str)>, Error> {
        let mut found = Vec::new();
        // A write by an earlier version, or by a process that was killed, has no copy.
        for (place, folder) in [(FOLDER, &self.folder), (COPIES, &self.copies)] {
            let is_right = match plain_file::read(&folder.join(name), MAX_BYTES) {
                Ok(bytes) => self.shown(name, bytes).is_ok_and(|bytes| is_whole(&bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound && place == COPIES => true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    found.push((place, "it is missing, and its copy is whole"));
                    continue;
                }
                Err(_) => false,
            };
            if !is_right {
                found.push((place, "it cannot be read, and its other file is whole"));
            }
        }
        Ok(found)
    }

    /// Reads a write without an intact file by flipping one bit of a file so that it is whole;
    /// `None` if that is impossible. In a sealed store, the seal proves that the result is
    /// authentic.
    ///
    /// # Errors
    /// [`Error::Io`]; with a key, the errors of decryption.
    pub(crate) fn repaired(
        &self,
        name: &str,
        repair: BitRepair<'_>,
        is_whole: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Option<Vec<u8>>, Error> {
        let is_right =
            |bytes: &[u8]| self.shown(name, bytes.to_vec()).is_ok_and(|bytes| is_whole(&bytes));
        for (_, mut bytes) in self.stored(name)? {
            if repair(&mut bytes, &is_right) {
                return self.shown(name, bytes).map(Some);
            }
        }
        Ok(None)
    }

    /// Keeps the bytes of an unreadable write under a name that nothing else reads.
    pub(crate) fn keep_aside(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        files::create_private_folder(&self.folder).map_err(Error::io("make", &self.folder))?;
        let path = self.folder.join(format!("{name}.{SET_ASIDE}"));
        files::replace(&path, &path.with_extension(UNFINISHED), bytes)?;
        files::sync_folder(&self.folder)
    }

    /// Returns the paths of the files of a write, the copy last.
    fn places(&self, name: &str) -> [PathBuf; 2] {
        [&self.folder, &self.copies].map(|folder| folder.join(name))
    }

    /// Returns the writes recorded as appended: in the ledger outside the store, which a process
    /// that can only change the store cannot forge, or without one, in the ledger inside.
    fn appended_names(&self) -> Result<BTreeSet<String>, Error> {
        match &self.witness {
            Some(witness) => witness.appended(),
            None => Ledger::new(self.copies.clone()).appended(),
        }
    }

    /// Removes the seal from the bytes of a write. With a key, checks it first.
    fn unsealed(&self, name: &str, mut bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let at = bytes.len().checked_sub(TRAILER_BYTES);
        let Some(at) = at.filter(|at| bytes[*at..].starts_with(SEAL_MARK)) else {
            if self.seals.key().is_none() {
                return Ok(bytes);
            }
            let what = format!("the write '{name}' in the spool has no seal");
            return Err(Error::Breach { breach: IntegrityBreach::Unsealed, what });
        };
        let trailer = bytes.split_off(at);
        match self.seals.key() {
            Some(key) if trailer != trailer_of(key, name, &bytes) => Err(Error::Breach {
                breach: IntegrityBreach::Altered,
                what: format!("the write '{name}' in the spool does not have the store's seal"),
            }),
            _ => Ok(bytes),
        }
    }

    /// Writes a file with this name durably in one of the folders: all bytes or nothing.
    fn write(&self, folder: &Path, name: &str, bytes: &[u8]) -> Result<(), Error> {
        files::create_private_folder(folder).map_err(Error::io("make", folder))?;
        // The lock is released at the end.
        let (unfinished, _locked) = write_unfinished(folder, name, bytes)?;
        let path = folder.join(name);
        if let Err(error) = std::fs::rename(&unfinished, &path) {
            let _ = std::fs::remove_file(&unfinished);
            return Err(Error::io("rename", &path)(error));
        }
        files::sync_folder(folder)
    }
}

/// Reads a file whose bytes are to be copied. Links are rejected: they lead to other files.
fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    if path.symlink_metadata()?.is_symlink() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a link, not a file"));
    }
    plain_file::read(path, MAX_BYTES)
}

/// Returns the results of `take` for the names in a folder, in the order of the names.
fn list(folder: &Path, take: impl Fn(&str) -> Option<&str>) -> Result<Vec<String>, Error> {
    let names = files::names_in(folder)?;
    Ok(names.iter().filter_map(|name| take(name)).map(str::to_owned).collect())
}

/// Returns the names of the writes in a folder, sorted.
fn writes(folder: &Path) -> Result<Vec<String>, Error> {
    list(folder, |name| is_name(name).then_some(name))
}

/// Writes the bytes durably to a new unfinished file. Returns its path, and the file locked.
fn write_unfinished(
    folder: &Path,
    name: &str,
    bytes: &[u8],
) -> Result<(PathBuf, LockedFile), Error> {
    for attempt in 0..ATTEMPTS {
        let path = folder.join(format!("{name}.{attempt}.{UNFINISHED}"));
        let file = match files::create_private(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made.map_err(Error::io("create", &path))?,
        };
        // A concurrent sweep may have been faster: then it has the lock, or the file has no name
        // any more.
        let named = |file: &File| file.metadata().is_ok_and(|metadata| metadata.nlink() > 0);
        let Ok(Some(file)) = LockedFile::exclusive(file) else { continue };
        if !named(&file) {
            continue;
        }
        if let Err(error) = (&*file).write_all(bytes).and_then(|()| file.sync_all()) {
            let _ = std::fs::remove_file(&path);
            return Err(Error::io("write", &path)(error));
        }
        return Ok((path, file));
    }
    let path = folder.join(name);
    Err(Error::io("write", &path)(io::ErrorKind::AlreadyExists.into()))
}

/// Returns the trailer of a sealed write.
fn trailer_of(key: &SealKey, name: &str, bytes: &[u8]) -> [u8; TRAILER_BYTES] {
    let mut trailer = [0; TRAILER_BYTES];
    let (mark, seal) = trailer.split_at_mut(SEAL_MARK.len());
    mark.copy_from_slice(SEAL_MARK);
    seal.copy_from_slice(&key.spooled(&[name.as_bytes(), bytes].concat()));
    trailer
}

fn is_name(name: &str) -> bool {
    name.len() == NAME_DIGITS && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns whether a name in the spool's folder belongs to the spool.
pub(crate) fn is_own(name: &str) -> bool {
    is_name(name.split_once('.').map_or(name, |(id, _)| id))
}

/// Returns whether a name in the folder of copies belongs to the spool.
pub(crate) fn is_own_copy(name: &str) -> bool {
    is_own(name) || name == ledger::APPENDED_LIST
}

impl Spool for SpoolFolder {
    fn names(&self) -> Result<Vec<String>, Error> {
        let mut names: BTreeSet<String> = writes(&self.folder)?.into_iter().collect();
        names.extend(writes(&self.copies)?);
        if let Some(witness) = &self.witness {
            names.extend(witness.acknowledged()?);
        }
        if !names.is_empty() {
            let appended = self.appended_names()?;
            names.retain(|name| !appended.contains(name));
        }
        Ok(names.into_iter().collect())
    }

    fn set_aside(&self) -> Result<Vec<String>, Error> {
        list(&self.folder, |name| {
            let (id, ending) = name.split_once('.')?;
            (is_name(id) && ending == SET_ASIDE).then_some(id)
        })
    }

    fn is_acknowledged(&self, name: &str) -> bool {
        self.witness.as_ref().is_some_and(|witness| witness.is_acknowledged(name))
    }

    fn read(&self, name: &str, is_whole: &dyn Fn(&[u8]) -> bool) -> Result<Option<Vec<u8>>, Error> {
        let mut first = None;
        for path in self.places(name) {
            let shown = match plain_file::read(&path, MAX_BYTES) {
                Ok(bytes) => self.shown(name, bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => Err(Error::io("read", &path)(error)),
            };
            match shown {
                Ok(bytes) if is_whole(&bytes) => return Ok(Some(bytes)),
                other => drop(first.get_or_insert(other)),
            }
        }
        match first {
            Some(first) => first.map(Some),
            // A write is recorded as appended before its files are removed.
            None if self.is_acknowledged(name) && !self.appended_names()?.contains(name) => {
                let what = format!(
                    "the write '{name}', which waited in the spool, is missing: both of its files were removed"
                );
                Err(Error::Breach { breach: IntegrityBreach::Missing, what })
            }
            None => Ok(None),
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let mut bytes = match &self.cipher {
            Some(cipher) => cipher.seal(EncryptionContext::Spooled(name), bytes),
            None => bytes.to_vec(),
        };
        if let Some(key) = self.seals.key() {
            bytes.extend(trailer_of(key, name, &bytes));
        }
        let mut folders = [&self.folder, &self.copies].into_iter();
        if let Err(error) = folders.try_for_each(|folder| self.write(folder, name, &bytes)) {
            // The write is not acknowledged, so it should not be appended. A file may have its name
            // already if syncing its folder failed.
            for path in self.places(name) {
                let _ = std::fs::remove_file(path);
            }
            return Err(error);
        }
        // Like the witness of the journal, the ledger may lag but is never ahead.
        if let Some(witness) = &self.witness {
            witness.acknowledge(name);
        }
        Ok(())
    }

    fn record_appended(&self, names: &[String]) -> Result<(), Error> {
        if names.is_empty() {
            return Ok(());
        }
        Ledger::new(self.copies.clone()).record_appended(names)?;
        if let Some(witness) = &self.witness {
            // If it cannot be written, the journal still shows that they were appended.
            let _ = witness.record_appended(names);
        }
        for name in names {
            for path in self.places(name).iter().rev() {
                files::remove(path)?;
            }
            if let Some(witness) = &self.witness {
                witness.forget(name);
            }
        }
        Ok(())
    }

    fn sweep(&self) -> Result<(), Error> {
        let mut there = Vec::new();
        for folder in [&self.folder, &self.copies] {
            let names = list(folder, |name| is_own(name).then_some(name))?;
            there.extend(names.into_iter().map(|name| (folder.join(&name), name)));
        }
        if there.is_empty() {
            return Ok(());
        }
        let appended = self.appended_names()?;
        for (path, name) in there {
            if appended.contains(&name) {
                files::remove(&path)?;
            }
            // A file that cannot be opened was finished or removed meanwhile.
            if name.ends_with(UNFINISHED)
                && let Ok(file) = plain_file::open(&path)
                && let Ok(Some(_alone)) = LockedFile::exclusive(file)
            {
                files::remove(&path)?;
            }
        }
        Ok(())
    }
}

/// The name of the spool's folder in a store's folder.
pub(crate) const FOLDER: &str = "spool";
/// The name of the folder of copies.
pub(crate) const COPIES: &str = "spool.copy";

/// Returns the path of the spool's folder in a store's folder.
#[must_use]
pub fn folder_in(store: &Path) -> PathBuf {
    store.join(FOLDER)
}

/// Returns the path of the folder of copies in a store's folder.
#[must_use]
pub fn copies_in(store: &Path) -> PathBuf {
    store.join(COPIES)
}

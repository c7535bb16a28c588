//! The remotes that a store knows by name: files in the keyring, outside of the store, because they
//! have the secrets of the remotes.

use super::RemoteAccess;
use crate::backend::files::{self, LockedFile};
use crate::backend::{self, plain_file};
use crate::error::{Error, Result};
use crate::format::remote::{EarlierSecret, RemoteKeyFile, RotatedKey, SeenRefs};
use crate::model::{RemoteId, unhex};
use crate::store::Store;
use crate::store::keyring::{Keyring, write_private};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum length of a name in bytes.
const MAX_NAME_BYTES: usize = 64;
/// A larger file is not the file of a remote.
const MAX_FILE_BYTES: u64 = 16 << 10;
/// How long a process waits for another one that replaces a key.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// A remote that a store knows by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRemote {
    /// The name: ASCII letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Where the remote is, in the notation of the program. The library does not use it.
    pub url: String,
    /// Its key. A grant cannot be kept.
    pub access: RemoteAccess,
}

impl KnownRemote {
    fn encode(&self) -> Result<String> {
        let key = self.access.key().ok_or_else(|| Error::invalid("a grant is not kept"))?;
        let &RemoteKeyFile { remote, secret, rotated, .. } = key;
        let url = Some(self.url.clone());
        Ok(RemoteKeyFile { remote, secret, url, seen: SeenRefs::new(), rotated }.encode())
    }

    fn decode(name: &str, text: &str) -> Option<Self> {
        let mut key = RemoteKeyFile::decode(text).ok()?;
        let (name, url) = (name.to_owned(), key.url.take()?);
        Some(Self { name, url, access: key.into() })
    }
}

impl Store {
    /// Returns the remotes that this store knows, sorted by name; an empty list if it has no
    /// keyring.
    ///
    /// # Errors
    /// [`Error::DamagedKey`] if the file of a remote is damaged.
    pub fn known_remotes(&self) -> Result<Vec<KnownRemote>> {
        match Keyring::of(&self.engine.options) {
            Some(keyring) => remotes_in(&keyring.remotes(&self.engine.marker.id)),
            None => Ok(Vec::new()),
        }
    }

    /// Returns whether this store knows a remote of this name. Its file is not read.
    #[must_use]
    pub fn has_remote(&self, name: &str) -> bool {
        let folder = self.remotes_folder();
        check_name(name).is_ok() && folder.is_ok_and(|folder| folder.join(name).exists())
    }

    /// Keeps a remote under its name, with the versions of refs that its key file names as seen. If
    /// the remote is known under this name with another key, the new key replaces that key in all
    /// stores of the keyring. Returns whether a key was replaced. Durable on return.
    ///
    /// # Errors
    /// [`Error::Duplicate`] if this store has a remote of this name, with this key or with another
    /// id; [`Error::Invalid`] if the name or the URL is not valid, if there is no keyring, if it is
    /// opened with a grant, or if the key gives the sessions other handles than the key before;
    /// [`Error::Conflict`] if the key is being rotated.
    pub fn keep_remote(&self, remote: &KnownRemote) -> Result<bool> {
        check_name(&remote.name)?;
        if remote.url.is_empty() || !remote.url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::invalid("the URL of a remote must be ASCII text without spaces"));
        }
        let text = remote.encode()?;
        let folder = self.remotes_folder()?;
        let path = folder.join(&remote.name);
        if path.exists() {
            return match self.replace_known_key(remote)? {
                true => Ok(true),
                false => Err(Error::Duplicate { kind: "remote", id: remote.name.clone() }),
            };
        }
        // From the first pull on, an older state is refused.
        self.note_seen_in(&remote.access);
        write_entry(&folder, &remote.name, text.as_bytes())?;
        Ok(false)
    }

    /// Replaces the key that is known under the name of a remote, if it is another key of the same
    /// remote. Returns whether it was replaced.
    fn replace_known_key(&self, remote: &KnownRemote) -> Result<bool> {
        let Some(new) = remote.access.key() else { return Ok(false) };
        let _locked = self.lock_key(new.remote)?;
        let known = self.known_remotes()?.into_iter().find(|known| known.name == remote.name);
        let Some(old) = known.as_ref().and_then(|known| known.access.key()) else {
            return Ok(false);
        };
        if old.remote != new.remote || old.secret == new.secret {
            return Ok(false);
        }
        if old.keys().names() != new.keys().names() {
            let reason =
                "the key gives the sessions of the remote other handles than the previous key";
            return Err(Error::invalid(reason));
        }
        let secret = match old.earlier() {
            Some(EarlierSecret::Leaving(secret)) => secret,
            _ => old.secret,
        };
        let names = *new.keys().names();
        let rotated = Some(RotatedKey { names, earlier: Some(EarlierSecret::Left(secret)) });
        let key = RemoteKeyFile { rotated, ..new.clone() };
        self.note_seen_in(&remote.access);
        self.replace_key(old, &key)?;
        let own = KnownRemote { access: key.into(), ..remote.clone() };
        write_entry(&self.remotes_folder()?, &remote.name, own.encode()?.as_bytes())?;
        Ok(true)
    }

    /// Replaces a key of a remote for all stores of the keyring that have it. Durable on return. A
    /// process that is killed before leaves an entry of this store which says that the rotation has
    /// not ended: of all entries, it is the first to be marked as rotating, and the last to be
    /// marked as rotated.
    pub(super) fn replace_key(&self, old: &RemoteKeyFile, new: &RemoteKeyFile) -> Result<()> {
        let Some(keyring) = Keyring::of(&self.engine.options) else { return Ok(()) };
        let begins = new.is_rotating();
        let (old, new) = (RemoteAccess::from(old.clone()), RemoteAccess::from(new.clone()));
        let mut stores = keyring.stores()?;
        stores.sort_by_key(|store| (*store == self.engine.marker.id) != begins);
        for store in stores {
            let folder = keyring.remotes(&store);
            let names = files::names_in(&folder)?.into_iter();
            // A damaged file keeps no key.
            let known = names.filter_map(|name| remote_in(&folder, &name).ok());
            for one in known.filter(|one| is_same_key(&one.access, &old)) {
                let kept = KnownRemote { access: new.clone(), ..one };
                write_entry(&folder, &kept.name, kept.encode()?.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Locks the key of a remote in the keyring, so that no other process replaces it. Waits at
    /// most 10 seconds. The lock is released when the value is dropped.
    pub(super) fn lock_key(&self, remote: RemoteId) -> Result<LockedFile> {
        let folder = Keyring::required(&self.engine.options)?.refs_seen(&remote);
        files::make_private_folders(&folder)?;
        LockedFile::at(&folder.join("lock"), LOCK_TIMEOUT)?.ok_or_else(|| {
            Error::Conflict("the key of the remote is being changed: try again later".to_owned())
        })
    }

    /// Forgets the remote of this name with its key. The remote stays as it is.
    ///
    /// # Errors
    /// [`Error::NotFound`] if this store knows no remote of this name; [`Error::Invalid`] if the
    /// name is not valid or there is no keyring.
    pub fn forget_remote(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let folder = self.remotes_folder()?;
        if !files::remove(&folder.join(name))? {
            return Err(Error::not_found("remote", name));
        }
        Ok(files::sync_folder(&folder)?)
    }

    /// Returns whether the keyring has the key of a remote for another store, or for this one under
    /// another name.
    ///
    /// # Errors
    /// If the keyring cannot be read.
    pub fn keeps_key_elsewhere(&self, remote: &KnownRemote) -> Result<bool> {
        let Some(keyring) = Keyring::of(&self.engine.options) else { return Ok(false) };
        for store in keyring.stores()? {
            let is_here = store == self.engine.marker.id;
            // A damaged file keeps no key.
            let known = remotes_in(&keyring.remotes(&store)).unwrap_or_default();
            if known.iter().any(|one| {
                is_same_key(&one.access, &remote.access) && !(is_here && one.name == remote.name)
            }) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn remotes_folder(&self) -> Result<PathBuf> {
        Ok(Keyring::required(&self.engine.options)?.remotes(&self.engine.marker.id))
    }
}

/// Copies the files of the remotes of a store that gets another id.
pub(in crate::store) fn copy_remotes(
    keyring: &Keyring,
    from: &[u8; 16],
    to: &[u8; 16],
) -> Result<()> {
    let (old, new) = (keyring.remotes(from), keyring.remotes(to));
    for name in files::names_in(&old)?.into_iter().filter(|name| check_name(name).is_ok()) {
        let path = old.join(&name);
        let bytes = plain_file::read(&path, MAX_FILE_BYTES);
        write_entry(&new, &name, &bytes.map_err(backend::Error::io("read", &path))?)?;
    }
    Ok(())
}

/// Writes or replaces a private file in a folder. Makes the folder if it is missing.
pub(super) fn write_entry(folder: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    files::make_private_folders(folder)?;
    write_private(&folder.join(name), bytes)
}

impl Keyring {
    /// Returns the ids of the stores that have something in the keyring.
    fn stores(&self) -> Result<Vec<[u8; 16]>> {
        Ok(files::names_in(self.folder())?.iter().filter_map(|name| unhex(name)).collect())
    }
}

fn is_same_key(one: &RemoteAccess, other: &RemoteAccess) -> bool {
    let secret = |access: &RemoteAccess| access.key().map(|key| key.secret);
    one.remote() == other.remote() && secret(one) == secret(other)
}

fn remotes_in(folder: &Path) -> Result<Vec<KnownRemote>> {
    let names = files::names_in(folder)?.into_iter().filter(|name| check_name(name).is_ok());
    names.map(|name| remote_in(folder, &name)).collect()
}

/// Reads the file of the remote of this name in a folder.
fn remote_in(folder: &Path, name: &str) -> Result<KnownRemote> {
    check_name(name)?;
    let path = folder.join(name);
    let damaged = |reason| Error::DamagedKey { path: path.clone(), reason };
    let read = plain_file::read_text(&path, MAX_FILE_BYTES);
    let text = read.map_err(|error| damaged(Some(error.to_string())))?;
    KnownRemote::decode(name, &text).ok_or_else(|| damaged(None))
}

fn check_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    // An unfinished file ends with `.new`.
    let is_file = !name.starts_with('.') && !name.ends_with(".new");
    if is_file && (1..=MAX_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "'{name}' cannot be the name of a remote: it has 1 to {MAX_NAME_BYTES} ASCII letters, \
         digits, '-', '_' and '.', does not begin with '.' and does not end with '.new'"
    )))
}

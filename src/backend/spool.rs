//! The spool in a folder: one file for each write that waits for the append lock. See `docs/format.md`, "Spool".

use super::files::{self, Locked};
use super::journal::Mender;
use super::seal::SEAL_BYTES;
use super::{Breach, Cipher, Error, Place, SealKey, Seals, Spool, plain_file};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Digits of an operation's id.
const NAME_DIGITS: usize = 32;
/// Begins what stands behind a sealed write.
const SEAL_MARK: &[u8; 4] = b"fSe1";
const TRAILER_BYTES: usize = SEAL_MARK.len() + SEAL_BYTES;
/// The largest file of a waiting write that is read; a record is at most half of it.
const MAX_BYTES: u64 = 128 << 20;
const SET_ASIDE: &str = "damaged";
const UNFINISHED: &str = "new";
/// How many unfinished files of one name may lie about before that is an error.
const ATTEMPTS: u32 = 100;

/// A folder of waiting writes. Made when the first of them comes.
#[derive(Clone, Debug)]
pub struct SpoolFolder {
    folder: PathBuf,
    seals: Seals,
    cipher: Option<Cipher>,
}

impl SpoolFolder {
    /// The spool in this folder.
    #[must_use]
    pub const fn new(folder: PathBuf) -> Self {
        Self { folder, seals: Seals::Absent, cipher: None }
    }

    /// With these seals.
    #[must_use]
    pub fn with_seals(self, seals: Seals) -> Self {
        Self { seals, ..self }
    }

    /// With writes that are encrypted.
    #[must_use]
    pub fn with_cipher(self, cipher: Option<Cipher>) -> Self {
        Self { cipher, ..self }
    }

    /// What a file of this name says, if it bears the seal it must.
    fn shown(&self, name: &str, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let bytes = self.unsealed(name, bytes)?;
        let Some(cipher) = &self.cipher else { return Ok(bytes) };
        cipher.open(Place::Waiting(name), &bytes)
    }

    /// What was put aside, as far as it can be shown; else its bytes as they are.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn read_aside(&self, name: &str) -> Result<Vec<u8>, Error> {
        let path = self.folder.join(format!("{name}.{SET_ASIDE}"));
        let bytes = plain_file::read(&path, MAX_BYTES).map_err(Error::io("read", &path))?;
        let shown = self.cipher.as_ref().and_then(|_| self.shown(name, bytes.clone()).ok());
        Ok(shown.unwrap_or(bytes))
    }

    /// What a write says that does not bear its seal but would if one bit of it were another, so that nobody else has written it.
    ///
    /// # Errors
    /// [`Error::Io`]; with a key, those of decryption.
    pub(crate) fn mended(&self, name: &str, mend: Mender<'_>) -> Result<Option<Vec<u8>>, Error> {
        let path = self.folder.join(name);
        let mut bytes = plain_file::read(&path, MAX_BYTES).map_err(Error::io("read", &path))?;
        if mend(&mut bytes, &|bytes| self.unsealed(name, bytes.to_vec()).is_ok()) {
            self.shown(name, bytes).map(Some)
        } else {
            Ok(None)
        }
    }

    /// The bytes of a write without its seal, if that is as it must be.
    fn unsealed(&self, name: &str, mut bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        let Some(at) = bytes.len().checked_sub(TRAILER_BYTES) else {
            return self.bare(name, bytes);
        };
        if bytes[at..at + SEAL_MARK.len()] != *SEAL_MARK {
            return self.bare(name, bytes);
        }
        let trailer = bytes.split_off(at);
        match self.seals.key() {
            Some(key) if trailer != trailer_of(key, name, &bytes) => Err(Error::Breach {
                breach: Breach::Altered,
                what: format!("the write '{name}' in the spool does not bear the store's seal"),
            }),
            _ => Ok(bytes),
        }
    }

    fn bare(&self, name: &str, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        if self.seals.key().is_none() {
            return Ok(bytes);
        }
        let what = format!("the write '{name}' in the spool bears no seal");
        Err(Error::Breach { breach: Breach::Unsealed, what })
    }

    fn list(&self, take: impl Fn(&str) -> Option<&str>) -> Result<Vec<String>, Error> {
        let entries = match self.folder.read_dir() {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("list", &self.folder)(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(Error::io("list", &self.folder))?.file_name();
            names.extend(name.to_str().and_then(&take).map(str::to_owned));
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Writes the bytes to an unfinished file of its own, durably.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(PathBuf, Locked), Error> {
        for attempt in 0..ATTEMPTS {
            let path = self.folder.join(format!("{name}.{attempt}.{UNFINISHED}"));
            let file = match files::create_private(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.map_err(Error::io("create", &path))?,
            };
            // Whoever sweeps may have been faster: then it has the lock, or the file has lost its name.
            let named = |file: &File| file.metadata().is_ok_and(|metadata| metadata.nlink() > 0);
            let Ok(Some(file)) = Locked::alone(file) else { continue };
            if !named(&file) {
                continue;
            }
            if let Err(error) = (&*file).write_all(bytes).and_then(|()| file.sync_all()) {
                let _ = std::fs::remove_file(&path);
                return Err(Error::io("write", &path)(error));
            }
            return Ok((path, file));
        }
        let path = self.folder.join(name);
        Err(Error::io("write", &path)(io::ErrorKind::AlreadyExists.into()))
    }
}

/// What stands behind a sealed write.
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

/// Whether a file of this name in a spool's folder is one of its own.
pub(crate) fn is_own(name: &str) -> bool {
    is_name(name.split_once('.').map_or(name, |(id, _)| id))
}

impl Spool for SpoolFolder {
    fn names(&self) -> Result<Vec<String>, Error> {
        self.list(|name| is_name(name).then_some(name))
    }

    fn set_aside(&self) -> Result<Vec<String>, Error> {
        self.list(|name| {
            let (id, ending) = name.split_once('.')?;
            (is_name(id) && ending == SET_ASIDE).then_some(id)
        })
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.folder.join(name);
        match plain_file::read(&path, MAX_BYTES) {
            Ok(bytes) => self.shown(name, bytes).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", &path)(error)),
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        files::create_private_folder(&self.folder).map_err(Error::io("make", &self.folder))?;
        // The lock on the file goes with it, at the end.
        let mut bytes = match &self.cipher {
            Some(cipher) => cipher.seal(Place::Waiting(name), bytes),
            None => bytes.to_vec(),
        };
        if let Some(key) = self.seals.key() {
            bytes.extend(trailer_of(key, name, &bytes));
        }
        let (unfinished, _locked) = self.write(name, &bytes)?;
        let path = self.folder.join(name);
        if let Err(error) = std::fs::rename(&unfinished, &path) {
            let _ = std::fs::remove_file(&unfinished);
            return Err(Error::io("rename", &path)(error));
        }
        files::sync_folder(&self.folder)
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        files::remove(&self.folder.join(name)).map(|_| ())
    }

    fn put_aside(&self, name: &str) -> Result<(), Error> {
        let path = self.folder.join(name);
        match std::fs::rename(&path, self.folder.join(format!("{name}.{SET_ASIDE}"))) {
            Ok(()) => files::sync_folder(&self.folder),
            // Somebody else did.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(Error::io("rename", &path)(error)),
        }
    }

    fn sweep(&self) -> Result<(), Error> {
        let unfinished = self.list(|name| {
            let (id, ending) = name.split_once('.')?;
            (is_name(id) && ending.ends_with(UNFINISHED)).then_some(name)
        })?;
        for name in unfinished {
            let path = self.folder.join(name);
            // One that cannot be opened has been finished or swept meanwhile.
            if let Ok(file) = plain_file::open(&path)
                && let Ok(Some(_alone)) = Locked::alone(file)
            {
                files::remove(&path)?;
            }
        }
        Ok(())
    }
}

/// What the folder of the spool in a store's folder is called.
pub(crate) const FOLDER: &str = "spool";

/// The folder of the spool in a store's folder.
#[must_use]
pub fn folder_in(store: &Path) -> PathBuf {
    store.join(FOLDER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "00112233445566778899aabbccddeeff";

    fn spool() -> (tempfile::TempDir, SpoolFolder) {
        let folder = tempfile::tempdir().unwrap();
        let spool = SpoolFolder::new(folder_in(folder.path()));
        (folder, spool)
    }

    #[test]
    fn what_is_put_is_listed_and_read_until_it_is_removed() {
        let (_folder, spool) = spool();
        assert_eq!(spool.names().unwrap(), Vec::<String>::new());
        spool.put(NAME, b"waits").unwrap();
        assert_eq!(spool.names().unwrap(), [NAME]);
        assert_eq!(spool.read(NAME).unwrap().unwrap(), b"waits");
        spool.remove(NAME).unwrap();
        spool.remove(NAME).unwrap();
        assert_eq!(spool.read(NAME).unwrap(), None);
        assert_eq!(spool.names().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_is_put_aside_keeps_its_bytes_under_another_name() {
        let (folder, spool) = spool();
        spool.put(NAME, b"broken").unwrap();
        spool.put_aside(NAME).unwrap();
        spool.put_aside(NAME).unwrap();
        assert_eq!(spool.names().unwrap(), Vec::<String>::new());
        assert_eq!(spool.set_aside().unwrap(), [NAME]);
        let kept = folder_in(folder.path()).join(format!("{NAME}.damaged"));
        assert_eq!(std::fs::read(kept).unwrap(), b"broken");
    }

    #[test]
    fn unfinished_and_foreign_files_are_no_waiting_writes_and_hold_nobody_up() {
        let (folder, spool) = spool();
        spool.put(NAME, b"first").unwrap();
        let inside = folder_in(folder.path());
        std::fs::write(inside.join(format!("{NAME}.0.new")), b"half").unwrap();
        std::fs::write(inside.join("README"), b"hello").unwrap();
        spool.put(NAME, b"second").unwrap();
        assert_eq!(spool.names().unwrap(), [NAME]);
        assert_eq!(spool.read(NAME).unwrap().unwrap(), b"second");
    }

    #[test]
    fn what_a_killed_writer_left_is_swept_and_what_is_being_written_is_not() {
        let (folder, spool) = spool();
        spool.put(NAME, b"whole").unwrap();
        let inside = folder_in(folder.path());
        let [left, open] = ["0", "7"].map(|n| inside.join(format!("{NAME}.{n}.new")));
        std::fs::write(&left, b"half").unwrap();
        let file = File::create(&open).unwrap();
        file.lock().unwrap();
        spool.sweep().unwrap();
        assert!(!left.exists() && open.exists());
        drop(file);
        spool.sweep().unwrap();
        assert!(!open.exists() && inside.join(NAME).exists());
    }

    #[test]
    fn a_sealed_write_is_read_with_its_key_and_only_under_its_name() {
        const OTHER: &str = "ff112233445566778899aabbccddeeff";
        let (folder, plain) = spool();
        let keyed = |secret| Seals::Keyed(SealKey::new(&[secret; 32], &[2; 16], &[3; 32]));
        let sealed = plain.clone().with_seals(keyed(1));
        sealed.put(NAME, b"waits").unwrap();
        assert_eq!(sealed.read(NAME).unwrap().unwrap(), b"waits");
        let unknown = plain.clone().with_seals(Seals::Unknown);
        assert_eq!(unknown.read(NAME).unwrap().unwrap(), b"waits");
        let breach = |spool: &SpoolFolder, name| match spool.read(name) {
            Err(Error::Breach { breach, .. }) => breach,
            other => panic!("{other:?}"),
        };
        assert_eq!(breach(&plain.clone().with_seals(keyed(9)), NAME), Breach::Altered);
        let inside = folder_in(folder.path());
        std::fs::copy(inside.join(NAME), inside.join(OTHER)).unwrap();
        assert_eq!(breach(&sealed, OTHER), Breach::Altered);
        plain.put(OTHER, b"forged").unwrap();
        assert_eq!(breach(&sealed, OTHER), Breach::Unsealed);
    }

    #[test]
    fn files_and_folder_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, spool) = spool();
        spool.put(NAME, b"waits").unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        let inside = folder_in(folder.path());
        assert_eq!((mode(&inside), mode(&inside.join(NAME))), (0o700, 0o600));
    }

    #[test]
    fn an_encrypted_write_is_hidden_and_opens_under_its_name_with_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let cipher = |secret| Some(Cipher::new(&[secret; 32]));
        let spool = |secret| SpoolFolder::new(folder.path().to_owned()).with_cipher(cipher(secret));
        spool(1).put(NAME, b"what was meant").unwrap();
        assert_eq!(spool(1).read(NAME).unwrap().unwrap(), b"what was meant");
        let path = folder.path().join(NAME);
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(4).any(|four| four == b"what"));
        assert!(matches!(spool(2).read(NAME), Err(Error::Breach { .. })));
        let other = NAME.replace('0', "1");
        std::fs::rename(&path, folder.path().join(&other)).unwrap();
        assert!(matches!(spool(1).read(&other), Err(Error::Breach { .. })));
        std::fs::rename(folder.path().join(&other), &path).unwrap();
        spool(1).put_aside(NAME).unwrap();
        assert_eq!(spool(1).read_aside(NAME).unwrap(), b"what was meant");
        assert_eq!(spool(2).read_aside(NAME).unwrap(), bytes);
    }
}

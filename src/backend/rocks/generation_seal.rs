//! The seal of a generation: a list of its files with their hashes, in the file `SEAL`,
//! authenticated with the store's key.
//!
//! A generation never changes, so its files can be checked as a whole. Reading all of them at every
//! opening would take too long, so verified files are recorded outside the store, each by its inode
//! and the times of its last change. Only files without a matching entry are read. See
//! `docs/integrity.md` for what this does not detect.

use super::folder::GenerationId;
use super::sst_blocks;
use crate::backend::{Error, IntegrityBreach, SealKey, files, plain_file};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, Metadata};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The name of the file with the list.
pub(super) const SEAL: &str = "SEAL";
/// The name of a list while it is written.
const UNFINISHED: &str = "SEAL.new";
const MAGIC: &[u8; 4] = b"fIs1";
const CHECKED_MAGIC: &[u8; 8] = b"forgeCk1";
const HASH_BYTES: usize = 32;
/// The maximum size of the cache of verified files.
const MAX_CHECKED_BYTES: u64 = 64 << 20;

/// Seals and checks the generations of a sealed store.
#[derive(Clone, Debug)]
pub(super) struct IndexSealer {
    key: SealKey,
    /// The file that lists verified files; `None`: all files are read every time.
    checked: Option<PathBuf>,
}

/// The size and hash of a file when it was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SealedFile {
    size: u64,
    hash: [u8; HASH_BYTES],
}

/// The files of a generation by name.
pub(super) type SealedFileList = BTreeMap<String, SealedFile>;

/// The repaired contents of files with wrong bits, by name.
pub(super) type RepairedFiles = BTreeMap<String, Vec<u8>>;

/// The size and times of a file. If they are unchanged, the file was not written to, and its times
/// were not set back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    fn of(about: &Metadata) -> Self {
        Self {
            size: about.size(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        }
    }
}

/// The cache of verified file hashes, by device and inode.
type VerifiedFiles = HashMap<(u64, u64), (FileStamp, [u8; HASH_BYTES])>;

impl IndexSealer {
    pub(super) const fn new(key: SealKey, checked: Option<PathBuf>) -> Self {
        Self { key, checked }
    }

    /// Checks that a generation is exactly what was sealed: all its files and no others, with this
    /// number and position. Returns the sealed files.
    pub(super) fn check(
        &self,
        folder: &Path,
        generation: GenerationId,
    ) -> Result<SealedFileList, Error> {
        let path = folder.join(SEAL);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && folder.exists() => {
                let what = format!("the generation {generation} of the index has no seal");
                return Err(Error::Breach { breach: IntegrityBreach::Unsealed, what });
            }
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        let list = decode(&bytes, generation, &self.key).ok_or_else(|| Error::Breach {
            breach: IntegrityBreach::Altered,
            what: format!(
                "the generation {generation} of the index does not have the store's seal"
            ),
        })?;
        let flawed = |breach, name: &str, how: &str| {
            let what = format!("the file {name} of the generation {generation} of the index {how}");
            Error::Breach { breach, what }
        };
        let mut known = self.known();
        let mut fresh = false;
        let mut missing: BTreeSet<&String> = list.keys().collect();
        for entry in files::entries(folder)? {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == SEAL {
                continue;
            }
            let Some(sealed) = list.get(&name) else {
                return Err(flawed(IntegrityBreach::Unsealed, &name, "was not sealed with it"));
            };
            missing.remove(&name);
            fresh |= self.check_file(&entry.path(), *sealed, &mut known).map_err(|failed| {
                let how = "is not the one that was sealed";
                failed.unwrap_or_else(|| flawed(IntegrityBreach::Altered, &name, how))
            })?;
        }
        if let Some(name) = missing.first() {
            return Err(flawed(IntegrityBreach::Missing, name, "is missing"));
        }
        if fresh {
            self.keep(&list, folder, &known);
        }
        Ok(list)
    }

    /// Returns the original contents of the files of a generation that have one wrong bit each. The
    /// file's hash identifies the bit. `None` if more than that is wrong.
    pub(super) fn repaired_files(
        &self,
        folder: &Path,
        generation: GenerationId,
    ) -> Result<Option<RepairedFiles>, Error> {
        let mut repaired = RepairedFiles::default();
        let path = folder.join(SEAL);
        let list = files::if_there(fs::read(&path)).map_err(Error::io("read", &path))?;
        let Some(mut list) = list else { return Ok(None) };
        let is_sealed = |bytes: &[u8]| decode(bytes, generation, &self.key).is_some();
        if !is_sealed(&list) {
            let bits = 0..list.len();
            if sst_blocks::turn_right(&mut list, 0, bits, is_sealed).is_none() {
                return Ok(None);
            }
            repaired.insert(SEAL.to_owned(), list.clone());
        }
        let Some(list) = decode(&list, generation, &self.key) else { return Ok(None) };
        for entry in files::entries(folder)? {
            let name = entry.file_name();
            if name != SEAL && name.to_str().is_none_or(|name| !list.contains_key(name)) {
                return Ok(None);
            }
        }
        for (name, sealed) in list {
            let path = folder.join(&name);
            let right = blake3::Hash::from_bytes(sealed.hash);
            let about = files::if_there(fs::symlink_metadata(&path));
            let about = about.map_err(Error::io("look at", &path))?;
            if about.is_none_or(|about| !about.is_file() || about.len() != sealed.size) {
                return Ok(None);
            }
            if hash(&path)? == sealed.hash {
                continue;
            }
            let mut bytes = read(&path)?;
            if !sst_blocks::repair_file(&mut bytes, &right) {
                return Ok(None);
            }
            repaired.insert(name, bytes);
        }
        Ok(Some(repaired))
    }

    /// Checks a file, and returns whether it had to be read. Fails with `None` if it is not the
    /// file that was sealed.
    fn check_file(
        &self,
        path: &Path,
        sealed: SealedFile,
        known: &mut VerifiedFiles,
    ) -> Result<bool, Option<Error>> {
        let about =
            fs::symlink_metadata(path).map_err(|error| Some(Error::io("look at", path)(error)))?;
        if !about.is_file() || about.len() != sealed.size {
            return Err(None);
        }
        let place = (about.dev(), about.ino());
        if known.get(&place) == Some(&(FileStamp::of(&about), sealed.hash)) {
            return Ok(false);
        }
        if hash(path).map_err(Some)? != sealed.hash {
            return Err(None);
        }
        known.insert(place, (FileStamp::of(&about), sealed.hash));
        Ok(true)
    }

    /// Removes the unfinished list of a process that was killed while it sealed a generation.
    pub(super) fn tidy(folder: &Path) -> Result<(), Error> {
        files::remove(&folder.join(UNFINISHED)).map(drop)
    }

    /// Seals a generation: lists its files with their hashes, and writes the list. The list is
    /// durable once the folder is synced. The hashes of files that are hard-linked from the
    /// generation `base` are taken from the list of `base`.
    pub(super) fn seal(
        &self,
        folder: &Path,
        generation: GenerationId,
        base: Option<(&Path, &SealedFileList)>,
    ) -> Result<SealedFileList, Error> {
        let mut list = SealedFileList::new();
        for entry in files::entries(folder)? {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if name == SEAL {
                continue;
            }
            let about = entry.metadata().map_err(Error::io("look at", &path))?;
            let linked = base.and_then(|(base, list)| {
                let known = fs::symlink_metadata(base.join(&name)).ok()?;
                let same = (known.dev(), known.ino()) == (about.dev(), about.ino());
                list.get(&name).filter(|sealed| same && sealed.size == about.len()).copied()
            });
            let sealed = match linked {
                Some(sealed) => sealed,
                None => SealedFile { size: about.len(), hash: hash(&path)? },
            };
            list.insert(name, sealed);
        }
        let bytes = encode(generation, &list, &self.key);
        files::replace(&folder.join(SEAL), &folder.join(UNFINISHED), &bytes)?;
        Ok(list)
    }

    /// Records the files of a generation as verified. This must be repeated after hard links to
    /// them were created or removed, which changes their times.
    pub(super) fn note(&self, list: &SealedFileList, folder: &Path) {
        let mut known = VerifiedFiles::new();
        for (name, sealed) in list {
            if let Ok(about) = fs::symlink_metadata(folder.join(name))
                && about.len() == sealed.size
            {
                known.insert((about.dev(), about.ino()), (FileStamp::of(&about), sealed.hash));
            }
        }
        self.keep(list, folder, &known);
    }

    /// Runs a change that adds or removes hard links of a generation's files, which changes their
    /// times. Files that were recorded as verified stay recorded, unless they were written to.
    pub(super) fn with_links_changed<T>(&self, folder: &Path, change: impl FnOnce() -> T) -> T {
        let known = self.known();
        let mut verified = Vec::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(about) = fs::symlink_metadata(entry.path()) else { continue };
            let stamp = FileStamp::of(&about);
            if let Some((noted, hash)) = known.get(&(about.dev(), about.ino()))
                && *noted == stamp
            {
                let sealed = SealedFile { size: stamp.size, hash: *hash };
                verified.push((entry, stamp, sealed));
            }
        }
        let done = change();
        let mut is_same = true;
        let mut list = SealedFileList::new();
        for (entry, before, sealed) in verified {
            let Ok(about) = fs::symlink_metadata(entry.path()) else { continue };
            let after = FileStamp::of(&about);
            is_same &= after == before;
            if (after.size, after.modified) == (before.size, before.modified) {
                list.insert(entry.file_name().to_string_lossy().into_owned(), sealed);
            }
        }
        if !is_same {
            self.note(&list, folder);
        }
        done
    }

    fn known(&self) -> VerifiedFiles {
        let bytes =
            self.checked.as_deref().and_then(|path| plain_file::read(path, MAX_CHECKED_BYTES).ok());
        bytes.and_then(|bytes| decode_checked(&bytes)).unwrap_or_default()
    }

    /// Replaces the list of verified files by the known files of one generation. If that fails,
    /// they are read again next time.
    fn keep(&self, list: &SealedFileList, folder: &Path, known: &VerifiedFiles) {
        let Some(path) = &self.checked else { return };
        let of = |name: &String| {
            let about = fs::symlink_metadata(folder.join(name)).ok()?;
            let place = (about.dev(), about.ino());
            Some((place, *known.get(&place)?))
        };
        let bytes = encode_checked(list.keys().filter_map(of));
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let written = || -> std::io::Result<()> {
            let _ = fs::remove_file(&new);
            files::create_private(&new)?.write_all(&bytes)?;
            fs::rename(&new, path)
        };
        if let Err(error) = written() {
            tracing::debug!(%error, "the list of verified files could not be written");
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    plain_file::read_written(path).map_err(Error::io("read", path))
}

fn hash(path: &Path) -> Result<[u8; HASH_BYTES], Error> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file).map_err(Error::io("read", path))?;
    Ok(hasher.finalize().into())
}

fn encode(generation: GenerationId, list: &SealedFileList, key: &SealKey) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(generation.number.to_le_bytes());
    out.extend(generation.position.to_le_bytes());
    out.extend((list.len() as u32).to_le_bytes());
    for (name, sealed) in list {
        out.push(name.len() as u8);
        out.extend(name.as_bytes());
        out.extend(sealed.size.to_le_bytes());
        out.extend(sealed.hash);
    }
    let seal = key.generation(&out);
    out.extend(seal.as_bytes());
    out
}

/// Decodes a list, if it was sealed with this key for this generation.
fn decode(bytes: &[u8], generation: GenerationId, key: &SealKey) -> Option<SealedFileList> {
    let (content, seal) = bytes.split_at_checked(bytes.len().checked_sub(HASH_BYTES)?)?;
    // `blake3::Hash` compares in constant time.
    if key.generation(content) != blake3::Hash::from_bytes(seal.try_into().ok()?) {
        return None;
    }
    let mut rest = content.strip_prefix(MAGIC)?;
    let number = u64::from_le_bytes(take(&mut rest)?);
    let position = u64::from_le_bytes(take(&mut rest)?);
    if (GenerationId { number, position }) != generation {
        return None;
    }
    let count = u32::from_le_bytes(take(&mut rest)?);
    let mut list = SealedFileList::new();
    for _ in 0..count {
        let [length] = take(&mut rest)?;
        let (name, after) = rest.split_at_checked(usize::from(length))?;
        rest = after;
        let name = std::str::from_utf8(name).ok()?.to_owned();
        let size = u64::from_le_bytes(take(&mut rest)?);
        list.insert(name, SealedFile { size, hash: take(&mut rest)? });
    }
    rest.is_empty().then_some(list)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*first)
}

fn encode_checked(
    known: impl Iterator<Item = ((u64, u64), (FileStamp, [u8; HASH_BYTES]))>,
) -> Vec<u8> {
    let mut out = CHECKED_MAGIC.to_vec();
    for ((device, inode), (stamp, hash)) in known {
        out.extend(device.to_le_bytes());
        out.extend(inode.to_le_bytes());
        out.extend(stamp.size.to_le_bytes());
        for number in [stamp.modified.0, stamp.modified.1, stamp.changed.0, stamp.changed.1] {
            out.extend(number.to_le_bytes());
        }
        out.extend(hash);
    }
    out
}

fn decode_checked(bytes: &[u8]) -> Option<VerifiedFiles> {
    let mut rest = bytes.strip_prefix(CHECKED_MAGIC)?;
    let mut known = VerifiedFiles::new();
    while !rest.is_empty() {
        let place = (u64::from_le_bytes(take(&mut rest)?), u64::from_le_bytes(take(&mut rest)?));
        let size = u64::from_le_bytes(take(&mut rest)?);
        let mut number = || take(&mut rest).map(i64::from_le_bytes);
        let modified = (number()?, number()?);
        let changed = (number()?, number()?);
        known.insert(place, (FileStamp { size, modified, changed }, take(&mut rest)?));
    }
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(secret: u8) -> SealKey {
        SealKey::new(&[secret; 32], &[2; 16], &[3; 32])
    }

    const SEVENTH: GenerationId = GenerationId { number: 7, position: 1000 };

    struct Place {
        root: tempfile::TempDir,
        sealer: IndexSealer,
    }

    impl Place {
        /// Creates a sealed generation of two files.
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let sealer = IndexSealer::new(key(1), Some(root.path().join("checked")));
            let place = Self { root, sealer };
            fs::create_dir(place.folder()).unwrap();
            fs::write(place.folder().join("CURRENT"), b"current").unwrap();
            fs::write(place.folder().join("000004.sst"), b"many rows").unwrap();
            place.sealer.seal(&place.folder(), SEVENTH, None).unwrap();
            place
        }

        fn folder(&self) -> PathBuf {
            self.root.path().join("generation")
        }

        fn breach(&self) -> Option<IntegrityBreach> {
            match self.sealer.check(&self.folder(), SEVENTH) {
                Ok(_) => None,
                Err(Error::Breach { breach, .. }) => Some(breach),
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    /// The bytes were computed by another implementation of BLAKE3, following `docs/format.md`.
    #[test]
    fn a_list_has_the_golden_bytes() {
        let list =
            SealedFileList::from([("CURRENT".to_owned(), SealedFile { size: 3, hash: [9; 32] })]);
        let bytes = encode(SEVENTH, &list, &key(1));
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "664973310700000000000000e803000000000000010000000743555252454e54\
             0300000000000000090909090909090909090909090909090909090909090909\
             0909090909090909bf62560f6ec0bca414366a5c8504d286a2d6fd8480090ee1\
             21cac5aeafdececd"
        );
        assert_eq!(decode(&bytes, SEVENTH, &key(1)), Some(list));
    }

    #[test]
    fn sealed_files_are_verified_and_remembered_as_verified() {
        let place = Place::new();
        assert_eq!(place.breach(), None);
        assert_eq!(place.sealer.known().len(), 2);
        assert_eq!(place.breach(), None);
    }

    /// Removing an older generation changes the times of the files that the newest one shares with
    /// it. The next opening must not read them again.
    #[test]
    fn a_verified_file_stays_verified_when_its_links_change_but_not_when_its_bytes_change() {
        let place = Place::new();
        let table = place.folder().join("000004.sst");
        let link = place.root.path().join("link");
        fs::hard_link(&table, &link).unwrap();
        assert_eq!(place.breach(), None);
        let known = place.sealer.known();
        place.sealer.with_links_changed(&place.folder(), || fs::remove_file(&link).unwrap());
        let again = place.sealer.known();
        assert_ne!(known, again, "the time of the last change is another one");
        let about = fs::symlink_metadata(&table).unwrap();
        assert_eq!(again[&(about.dev(), about.ino())].0, FileStamp::of(&about));
        assert_eq!(again.len(), 2);
        // A file that is changed before or meanwhile is read again.
        for is_before in [true, false] {
            let change = || fs::write(&table, b"other row").unwrap();
            if is_before {
                change();
            }
            place.sealer.with_links_changed(&place.folder(), || {
                fs::hard_link(&table, &link).unwrap();
                if !is_before {
                    change();
                }
            });
            fs::remove_file(&link).unwrap();
            assert_eq!(place.breach(), Some(IntegrityBreach::Altered));
            fs::write(&table, b"many rows").unwrap();
            assert_eq!(place.breach(), None);
        }
    }

    #[test]
    fn a_changed_file_of_the_same_length_and_time_is_found_although_it_was_verified() {
        let place = Place::new();
        assert_eq!(place.breach(), None);
        let table = place.folder().join("000004.sst");
        let time = fs::metadata(&table).unwrap().modified().unwrap();
        fs::write(&table, b"other row").unwrap();
        File::options().write(true).open(&table).unwrap().set_modified(time).unwrap();
        assert_eq!(place.breach(), Some(IntegrityBreach::Altered));
    }

    #[test]
    fn added_and_missing_files_and_a_foreign_list_are_refused() {
        let place = Place::new();
        let log = place.folder().join("000009.log");
        fs::write(&log, b"forged rows").unwrap();
        assert_eq!(place.breach(), Some(IntegrityBreach::Unsealed));
        fs::remove_file(log).unwrap();
        assert_eq!(place.breach(), None);
        let other = GenerationId { number: 8, position: 1000 };
        let renamed = place.sealer.check(&place.folder(), other);
        assert!(matches!(renamed, Err(Error::Breach { breach: IntegrityBreach::Altered, .. })));
        let stranger = IndexSealer::new(key(9), None).check(&place.folder(), SEVENTH);
        assert!(matches!(stranger, Err(Error::Breach { breach: IntegrityBreach::Altered, .. })));
        fs::remove_file(place.folder().join("000004.sst")).unwrap();
        assert_eq!(place.breach(), Some(IntegrityBreach::Missing));
        fs::remove_file(place.folder().join(SEAL)).unwrap();
        assert_eq!(place.breach(), Some(IntegrityBreach::Unsealed));
    }

    #[test]
    fn a_list_with_any_wrong_byte_is_refused() {
        let place = Place::new();
        let path = place.folder().join(SEAL);
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_eq!(decode(&other, SEVENTH, &key(1)), None, "byte {at}");
            assert_eq!(decode(&bytes[..at], SEVENTH, &key(1)), None, "cut at {at}");
        }
    }
}

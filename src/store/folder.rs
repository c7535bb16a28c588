//! The folder of a store: its files, the marker that makes it a store, and the files that an
//! interrupted creation leaves.

use crate::backend::encrypted::EncryptedIndex;
use crate::backend::journal::Journal;
use crate::backend::rocks::{ClusteredTables, RocksIndex};
use crate::backend::{
    self, CIPHER_BYTES, Cipher, Index, SealMode, WriteAheadLog, files, plain_file, spool,
};
use crate::engine::maintain::head_record;
use crate::error::{Error, Result};
use crate::format::{FormatMarker, MarkerError, StoreHead, key};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(super) const FORMAT_FILE: &str = "FORMAT";
pub(super) const JOURNAL_FOLDER: &str = "journal";
/// The file that says how much a repair could not save, until a person acknowledges the loss.
pub(super) const LOST_FILE: &str = "LOST";
pub(super) const INDEX_FOLDER: &str = "index";
/// The folder of text copies for searching.
pub(super) const SEARCH_FOLDER: &str = "search";
/// The folders in which the command line keeps notes about the store: texts that may be overwritten
/// in place.
pub(super) const NOTE_FOLDERS: [&str; 2] = ["log", "agents"];
pub(super) const CONFIG_FILE: &str = "config.toml";
/// The folder of the marks of imports of bundles that have begun and not ended.
pub(super) const BUNDLE_MARKS_FOLDER: &str = "bundles";
/// The folder of what is known about remotes.
pub(super) const REMOTES_FOLDER: &str = "remotes";
/// The reserve for pruning on a full disk.
pub(super) const RESERVE_FILE: &str = "reserve";
pub(super) const UNFINISHED_RESERVE_FILE: &str = "reserve.new";
const IGNORE_FILE: &str = ".gitignore";
/// The temporary name of `FORMAT` or `.gitignore` while it is written.
pub(super) const UNFINISHED_FILE: &str = "FORMAT.new";

/// Opens the index in the folder of a store, without decryption.
pub(super) fn raw_index(path: &Path, seals: &SealMode, checked: Option<PathBuf>) -> RocksIndex {
    // The rows of a session are stored together, because a read is usually about one session.
    let clustered = ClusteredTables::new(key::begins_with_session);
    RocksIndex::new(path.join(INDEX_FOLDER)).with_clustered(clustered).with_seals(seals, checked)
}

/// Opens the index in the folder of a store; with a cipher, rows are encrypted and decrypted.
pub(super) fn open_index(
    path: &Path,
    seals: &SealMode,
    cipher: Option<Cipher>,
    checked: Option<PathBuf>,
) -> Arc<dyn Index> {
    let index = raw_index(path, seals, checked);
    match cipher {
        Some(cipher) => Arc::new(EncryptedIndex::new(Box::new(index), cipher, key::hidden)),
        None => Arc::new(index),
    }
}

pub(super) fn write_first_record(log: &dyn WriteAheadLog) -> Result<()> {
    let first = head_record(StoreHead::default()).encode();
    let appended = log.append(0, Duration::from_secs(5), &mut |_| Some(first.clone()))?;
    if let Some(appended) = appended {
        log.sync(appended.end)?;
    }
    Ok(())
}

pub(super) fn private(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
        .map_err(backend::Error::io("set the mode of", path))
        .map_err(Error::from)
}

/// The largest FORMAT file that is read.
pub(super) const MAX_MARKER_BYTES: u64 = 64 << 10;

/// The mode bits that let the group or all users write.
const OTHERS_WRITE: u32 = 0o022;
/// The depth of the deepest files below the folder of a store: the files of an index generation.
const DEPTH: u32 = 2;

/// Refuses a store that other users may write to: its content cannot be trusted, and may change
/// during a read.
pub(super) fn check_others(store: &Path) -> Result<()> {
    // A link to the store's folder is accepted: it is the owner's choice.
    let about =
        files::if_there(fs::metadata(store)).map_err(backend::Error::io("look at", store))?;
    let Some(about) = about else { return Ok(()) };
    let (mode, owner) = (about.mode() & 0o7777, about.uid());
    if mode & OTHERS_WRITE != 0 {
        let place = store.display();
        let why = format!(
            "others may write to it (mode {mode:o}): prevent this with 'chmod go-w {place}'"
        );
        return Err(refused(store, why));
    }
    if is_anothers(owner) {
        let why = format!(
            "it belongs to another user (uid {owner}), who can change it: copy it to a directory \
            of your own"
        );
        return Err(refused(store, why));
    }
    Ok(())
}

/// Returns whether a file with this owner belongs to another user. Files of root are accepted. If
/// this process runs as root, as in a container, any owner is accepted.
#[cfg(target_os = "linux")]
fn is_anothers(owner: u32) -> bool {
    let own = rustix::process::geteuid();
    !own.is_root() && owner != 0 && owner != own.as_raw()
}

#[cfg(not(target_os = "linux"))]
const fn is_anothers(_owner: u32) -> bool {
    false
}

fn refused(store: &Path, why: String) -> Error {
    Error::Corrupt { what: format!("the store at {}", store.display()), source: why.into() }
}

/// Refuses a store that other users may write to, or that has an entry that is neither a file nor a
/// folder. Through a link in a downloaded project, forge would write to other files, or truncate
/// them like the tail of a journal. Opening a pipe would block.
pub(super) fn check_files(store: &Path) -> Result<()> {
    check_others(store)?;
    check_below(store, store, DEPTH)
}

/// Checks a folder like [`check_files`], but no folders in it except the folders of notes. The
/// folder need not be a store that can be opened.
pub(super) fn check_notes(store: &Path) -> Result<()> {
    check_others(store)?;
    check_below(store, store, 0)?;
    let folders = NOTE_FOLDERS.map(|name| store.join(name));
    folders
        .iter()
        .filter(|folder| folder.exists())
        .try_for_each(|folder| check_below(store, folder, 0))
}

fn check_below(store: &Path, folder: &Path, depth: u32) -> Result<()> {
    visit_odd(folder, depth, &mut |path, kind| {
        let why = format!("{} is {kind}, which forge does not use: remove it", path.display(),);
        Err(refused(store, why))
    })
}

/// Calls `visit` with each entry that is neither a file nor a folder, and with a description of
/// what the entry is.
fn visit_odd(
    folder: &Path,
    depth: u32,
    visit: &mut dyn FnMut(&Path, &'static str) -> Result<()>,
) -> Result<()> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        listed => listed.map_err(backend::Error::io("list", folder))?,
    };
    for entry in listed {
        let entry = entry.map_err(backend::Error::io("list", folder))?;
        let kind = match entry.file_type() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            kind => kind.map_err(backend::Error::io("look at", &entry.path()))?,
        };
        if !kind.is_file() && !kind.is_dir() {
            visit(&entry.path(), plain_file::kind_of(kind))?;
        }
        if kind.is_dir() && depth > 0 {
            match visit_odd(&entry.path(), depth - 1, visit) {
                // It was removed meanwhile.
                Err(Error::Backend(backend::Error::Io { source, .. }))
                    if source.kind() == io::ErrorKind::NotFound => {}
                visited => visited?,
            }
        }
    }
    Ok(())
}

/// The parts of a store that a repair reads, and whether each is a folder.
const PARTS: [(&str, bool); 5] = [
    (JOURNAL_FOLDER, true),
    ("journal/SYNCED", false),
    (INDEX_FOLDER, true),
    (spool::FOLDER, true),
    (spool::COPIES, true),
];

/// Lists the entries of a store that a repair does not read, one line each: pipes, links and
/// devices; files in place of folders and the reverse; files that were mostly never written.
pub(super) fn list_odd(store: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    visit_odd(store, DEPTH, &mut |path, kind| {
        let name = path.strip_prefix(store).unwrap_or(path);
        found.push(format!("'{}', which is {kind}", name.display()));
        Ok(())
    })?;
    list_hollow(&store.join(JOURNAL_FOLDER), &mut found);
    for generation in fs::read_dir(store.join(INDEX_FOLDER)).into_iter().flatten().flatten() {
        list_hollow(&generation.path(), &mut found);
    }
    for (name, is_folder) in PARTS {
        match fs::symlink_metadata(store.join(name)) {
            Ok(about) if about.is_dir() && !is_folder => {
                found.push(format!("'{name}', which is a directory"));
            }
            Ok(about) if about.is_file() && is_folder => {
                found.push(format!("'{name}', which is a file"));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Lists the files of a folder that were mostly never written. A repair does not read them.
fn list_hollow(folder: &Path, found: &mut Vec<String>) {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let hollow =
        files.filter(|file| file.metadata().is_ok_and(|about| plain_file::is_hollow(&about)));
    for file in hollow {
        let path = file.path();
        let name = path.strip_prefix(folder.parent().unwrap_or(folder)).unwrap_or(&path);
        found.push(format!("'{}', which is large and almost empty", name.display()));
    }
}

/// Returns whether a path is a folder, or does not exist. A path that cannot be examined counts as
/// missing.
pub(super) fn is_folder_or_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).map_or(true, |about| about.is_dir())
}

/// Reads the file `FORMAT` of a store, after a check of all its files and folders. Nothing else of
/// the store is opened before.
pub(super) fn marker_of(path: &Path) -> Result<FormatMarker> {
    if path.join(FORMAT_FILE).symlink_metadata().is_ok() {
        check_files(path)?;
    }
    read_marker(path)
}

/// Reads the file `FORMAT` of a store without a check of the other files.
pub(super) fn read_marker(path: &Path) -> Result<FormatMarker> {
    let file = path.join(FORMAT_FILE);
    let bytes = match plain_file::read(&file, MAX_MARKER_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let missing = missing_marker_error(path);
            // Another process may have completed the store meanwhile.
            return if file.exists() { read_marker(path) } else { Err(missing) };
        }
        Err(error) if plain_file::is_odd(&error) => {
            return Err(refused(path, format!("its file FORMAT cannot be read: {error}")));
        }
        Err(error) => return Err(backend::Error::io("read", &file)(error).into()),
    };
    // A text with replaced bytes does not match its checksum.
    match FormatMarker::decode(&String::from_utf8_lossy(&bytes)) {
        // A folder with records of a journal is a store whose FORMAT was overwritten. A folder of
        // another program has no journal.
        Err(MarkerError::Foreign(reason)) if holds_records(path) => {
            let what = format!("the store at {}", path.display());
            let source = format!("its file FORMAT, which says how to read it, {reason}");
            Err(Error::Corrupt { what, source: source.into() })
        }
        marker => Ok(marker?),
    }
}

/// Returns the error for a folder without `FORMAT`: the folder is no store, or a store that has
/// lost this file.
pub(super) fn missing_marker_error(path: &Path) -> Error {
    if holds_records(path) {
        let what = format!("the store at {}", path.display());
        let source = "its file FORMAT, which says how to read it, is gone".into();
        return Error::Corrupt { what, source };
    }
    Error::NoStore { path: path.to_owned() }
}

/// Returns whether a folder has more of a journal than an interrupted [`Store::create`] leaves.
///
/// [`Store::create`]: super::Store::create
pub(super) fn holds_records(path: &Path) -> bool {
    path.join(JOURNAL_FOLDER).exists() && !is_unfinished(path).unwrap_or(false)
}

/// Writes `.gitignore`, and the marker that makes a folder a store. All other files must exist
/// before. If this is interrupted, the folder has the whole marker or none.
pub(super) fn write_marker(path: &Path, marker: &[u8]) -> Result<()> {
    let unfinished = path.join(UNFINISHED_FILE);
    files::replace(&path.join(IGNORE_FILE), &unfinished, b"*\n")?;
    files::replace(&path.join(FORMAT_FILE), &unfinished, marker)?;
    Ok(files::sync_folder(path)?)
}

/// Returns the files and folders that do not belong to forge. A person writes `config.toml`, but it
/// counts as forge's.
pub(super) fn foreign(path: &Path) -> Result<Vec<PathBuf>> {
    const OWN: [&str; 14] = [
        FORMAT_FILE,
        LOST_FILE,
        UNFINISHED_FILE,
        IGNORE_FILE,
        CONFIG_FILE,
        RESERVE_FILE,
        UNFINISHED_RESERVE_FILE,
        JOURNAL_FOLDER,
        INDEX_FOLDER,
        spool::FOLDER,
        spool::COPIES,
        SEARCH_FOLDER,
        BUNDLE_MARKS_FOLDER,
        REMOTES_FOLDER,
    ];
    type IsOwn = fn(&str) -> bool;
    let kinds: [(PathBuf, IsOwn); 5] = [
        (path.to_owned(), |name| OWN.contains(&name) || NOTE_FOLDERS.contains(&name)),
        (path.join(JOURNAL_FOLDER), backend::journal::is_own),
        (path.join(INDEX_FOLDER), backend::rocks::is_own),
        (spool::folder_in(path), spool::is_own),
        (spool::copies_in(path), spool::is_own_copy),
    ];
    let mut found = Vec::new();
    for (folder, is_own) in kinds {
        for entry in files::entries_if_there(&folder)? {
            if !entry.file_name().to_str().is_some_and(is_own) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Removes everything in a folder: the caller has checked that it has only what an interrupted
/// creation leaves.
pub(super) fn clear(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Refuses a folder that is not empty. `copy` says what was to be written there.
pub(super) fn check_empty(path: &Path, copy: &str) -> Result<()> {
    if path.join(FORMAT_FILE).exists() {
        return Err(Error::StoreExists { path: path.to_owned() });
    }
    if fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Error::invalid(format!(
            "{} is not empty: name another folder for the {copy}",
            path.display()
        )));
    }
    Ok(())
}

/// Refuses a folder that has more than an interrupted [`Store::create`] leaves.
///
/// [`Store::create`]: super::Store::create
pub(super) fn check_unfinished(path: &Path) -> Result<()> {
    if is_unfinished(path).map_err(backend::Error::io("read", path))? {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{} is not empty and is not a forge store: name another folder",
        path.display()
    )))
}

/// Returns whether a folder has at most what an interrupted [`Store::create`] leaves: a journal
/// with at most its first record, `.gitignore`, and an unfinished `FORMAT`. A store that lost its
/// `FORMAT` has more.
///
/// [`Store::create`]: super::Store::create
pub(super) fn is_unfinished(path: &Path) -> io::Result<bool> {
    let first = (head_record(StoreHead::default()).encode().len() + CIPHER_BYTES) as u64;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        // Another process may have renamed the file meanwhile.
        let empty = |size: u64| {
            let about = files::if_there(entry.metadata());
            about.map(|about| about.is_none_or(|about| about.len() <= size))
        };
        let own = match name.to_str() {
            Some(IGNORE_FILE | UNFINISHED_FILE) => empty(4096)?,
            Some(JOURNAL_FOLDER) => Journal::is_at_most(&entry.path(), first)?,
            _ => false,
        };
        if !own {
            return Ok(false);
        }
    }
    Ok(true)
}

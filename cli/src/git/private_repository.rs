//! A private repository in the store's folder, in which git works on the files of a checkout.
//!
//! Git reads only the configuration of this repository: nothing that the checkout's repository
//! configures is run.

use super::process::{self, FinishedProcess, GitTimeLimit};
use super::repository::{GitRepository, GitSettings};
use crate::error::CommandError;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder in a store that contains these repositories while they are in use.
const FOLDER: &str = "git";
/// The prefix of their names.
const PREFIX: &str = "work-";
/// The file that is locked while a repository is in use.
const LOCK_FILE: &str = "lock";
/// The name of that file until it is locked.
const NEW_LOCK_FILE: &str = "lock.new";
/// The maximum number of attempts to create a folder.
const MAX_TRIES: u32 = 100;
/// The maximum size of a list of ignored files or attributes, in bytes.
const MAX_INFO_BYTES: u64 = 1 << 20;
/// The maximum size of an index that is copied, in bytes.
const MAX_INDEX_BYTES: u64 = 1 << 30;
/// The settings of `core` about comparing files, which are copied. None of them names a program.
const TAKEN: [&str; 8] = [
    "autocrlf", "eol", "filemode", "ignorecase", "symlinks", "trustctime", "checkstat",
    "precomposeunicode",
];

/// A private repository; dropping it removes it.
pub struct PrivateRepository {
    folder: PathBuf,
    top: PathBuf,
    index: PathBuf,
    limit: GitTimeLimit,
    settings: GitSettings,
    _lock: File,
}

impl PrivateRepository {
    /// Creates a private repository with the objects and the index of another one.
    ///
    /// # Errors
    ///
    /// If the repository's settings cannot be read, or the store's folder cannot be written.
    pub fn new(git: &GitRepository, store: &Path) -> Result<Self, CommandError> {
        remove_leftovers(store);
        let settings = git.settings()?;
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| {
            CommandError::internal("no random numbers").caused_by(error.to_string())
        })?;
        let folder =
            store.join(FOLDER).join(format!("{PREFIX}{:016x}", u64::from_be_bytes(random)));
        let failed = |error| CommandError::io("cannot prepare a private git repository", error);
        let lock = make_folder(store, &folder).map_err(failed)?;
        let (top, index) = (git.top.clone(), folder.join("index"));
        let private = Self { folder, top, index, limit: git.limit, settings, _lock: lock };
        private.fill(git).map_err(failed)?;
        Ok(private)
    }

    fn fill(&self, git: &GitRepository) -> io::Result<()> {
        for name in ["objects", "objects/info", "refs", "info"] {
            DirBuilder::new().mode(0o700).create(self.folder.join(name))?;
        }
        fs::write(self.folder.join("HEAD"), "ref: refs/heads/none\n")?;
        fs::write(self.folder.join("config"), configuration(&self.settings))?;
        let objects = quoted(git.common.join("objects").as_os_str());
        fs::write(self.folder.join("objects/info/alternates"), objects)?;
        for name in ["exclude", "attributes"] {
            let to = self.folder.join("info").join(name);
            copy_file(&git.common.join("info").join(name), &to, MAX_INFO_BYTES)?;
        }
        // The index contains what git remembers about unchanged files, so that it need not read
        // them again.
        copy_file(&git.folder.join("index"), &self.index, MAX_INDEX_BYTES)?;
        for entry in fs::read_dir(&git.folder)?.flatten() {
            if entry.file_name().as_bytes().starts_with(b"sharedindex.") {
                copy_file(&entry.path(), &self.folder.join(entry.file_name()), MAX_INDEX_BYTES)?;
            }
        }
        Ok(())
    }

    /// Switches to the files of another checkout with this index file.
    pub fn work_at(&mut self, top: &Path, index: &Path) {
        self.top = top.to_owned();
        self.index = index.to_owned();
    }

    /// Returns the settings of the checkout's repository.
    pub const fn settings(&self) -> &GitSettings {
        &self.settings
    }

    /// Returns a git command in this repository.
    pub fn command(&self, args: &[&str]) -> Result<Command, CommandError> {
        let mut command = process::git_command(&self.top)?;
        command
            .env("GIT_DIR", &self.folder)
            .env("GIT_WORK_TREE", &self.top)
            .env("GIT_INDEX_FILE", &self.index)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .args(args);
        Ok(command)
    }

    /// Runs git in this repository with this input, and returns its output.
    pub fn output(&self, args: &[&str], input: Option<Vec<u8>>) -> Result<Vec<u8>, CommandError> {
        process::git_output(self.command(args)?, input, self.limit)
    }

    /// Runs git in this repository, and returns at most `most + 1` bytes of its output, and how it
    /// ended.
    pub fn limited_output(
        &self,
        args: &[&str],
        most: u64,
    ) -> Result<FinishedProcess, CommandError> {
        process::run_git(self.command(args)?, None, most, self.limit)
    }

    /// Returns the paths among these (each ends with NUL) that have a configured filter.
    pub fn filtered(&self, paths: Vec<u8>) -> Result<Vec<String>, CommandError> {
        if paths.is_empty() || !self.settings.has_filters() {
            return Ok(Vec::new());
        }
        let listed = self.output(&["check-attr", "-z", "--stdin", "filter"], Some(paths))?;
        let listed = String::from_utf8_lossy(&listed);
        let words: Vec<&str> = listed.split('\0').collect();
        let rows = words.chunks_exact(3);
        let found =
            rows.filter(|row| row.get(2).is_some_and(|name| self.settings.has_filter(name)));
        Ok(found.filter_map(|row| row.first()).map(|path| (*path).to_owned()).collect())
    }
}

impl Drop for PrivateRepository {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
        // This fails while another repository is in use next to it.
        let _ = self.folder.parent().map(fs::remove_dir);
    }
}

/// Creates a private folder and locks it.
fn make_folder(store: &Path, folder: &Path) -> io::Result<File> {
    let above = store.join(FOLDER);
    // Another process that ends may remove the parent folder in between.
    let mut tries = MAX_TRIES;
    loop {
        tries -= 1;
        match make_in_parent(&above, folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries > 0 => {}
            done => break done?,
        }
    }
    let (lock_file, new) = (folder.join(LOCK_FILE), folder.join(NEW_LOCK_FILE));
    let lock = File::options().write(true).create_new(true).mode(0o600).open(&new)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    // A lock file without a lock is what a killed process leaves, so it is locked before it has
    // its name.
    fs::rename(new, lock_file)?;
    Ok(lock)
}

/// Creates a private folder in a parent folder, which is created if it is missing.
fn make_in_parent(above: &Path, folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(above) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if !above.symlink_metadata()?.is_dir() {
        return Err(io::Error::other("'git' in the store's directory is not a directory"));
    }
    DirBuilder::new().mode(0o700).create(folder)
}

/// Removes what killed processes left in a store's folder.
pub fn remove_leftovers(store: &Path) {
    let above = store.join(FOLDER);
    // A link could lead to folders of other users.
    if !above.symlink_metadata().is_ok_and(|about| about.is_dir()) {
        return;
    }
    let Ok(entries) = fs::read_dir(&above) else { return };
    let is_ours =
        |entry: &fs::DirEntry| entry.file_name().as_bytes().starts_with(PREFIX.as_bytes());
    for entry in entries.flatten().filter(is_ours).map(|entry| entry.path()) {
        // A folder has no lock for a moment after its creation.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let is_free = match open(entry.join(LOCK_FILE), flags | OFlags::WRONLY, Mode::empty()) {
            Ok(lock) => flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
            Err(_) => is_old(&entry),
        };
        if is_free {
            let _ = fs::remove_dir_all(&entry);
        }
    }
    let _ = fs::remove_dir(&above);
}

/// Whether a folder was last changed more than a minute ago.
fn is_old(folder: &Path) -> bool {
    let made = folder.symlink_metadata().and_then(|about| about.modified()).ok();
    let age = made.and_then(|made| made.elapsed().ok());
    age.is_some_and(|age| age.as_secs() > 60)
}

/// Returns the configuration of a private repository.
fn configuration(settings: &GitSettings) -> String {
    let has_format = settings.get("extensions.objectformat").is_some();
    let mut text = format!("[core]\n\trepositoryformatversion = {}\n", u8::from(has_format));
    text.push_str("\tbare = false\n\tquotePath = false\n\tfsmonitor = false\n");
    text.push_str("\thooksPath = /dev/null\n\tsafecrlf = false\n");
    let mut set = |name: &str, value: &str| {
        let value = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
        let _ = writeln!(text, "\t{name} = \"{value}\"");
    };
    for name in TAKEN {
        if let Some(value) = settings.get(&format!("core.{name}")) {
            set(name, value);
        }
    }
    for (name, key) in
        [("excludesFile", "core.excludesfile"), ("attributesFile", "core.attributesfile")]
    {
        if let Some(file) = settings.get(key).filter(|file| is_list(file)) {
            set(name, file);
        }
    }
    if has_format {
        text.push_str("[extensions]\n");
        let format = if settings.is_sha256() { "sha256" } else { "sha1" };
        let _ = writeln!(text, "\tobjectFormat = {format}");
    }
    text.push_str("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[protocol]\n\tallow = never\n");
    text
}

/// Whether this is a file with an acceptable size for a list of ignored files or attributes.
fn is_list(file: &str) -> bool {
    let path = match (file.strip_prefix("~/"), std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(file),
    };
    path.is_absolute()
        && fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= MAX_INFO_BYTES)
}

/// Quotes a path for `objects/info/alternates`: in double quotes with C escapes.
fn quoted(path: &OsStr) -> Vec<u8> {
    let mut text = vec![b'"'];
    for byte in path.as_bytes() {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            b'\n' => text.extend(b"\\n"),
            _ => text.push(*byte),
        }
    }
    text.extend(b"\"\n");
    text
}

/// Copies a regular file of at most `most` bytes with its time. A larger one is an error; a missing
/// file, or one that is not regular, is skipped. Git trusts that a file of the same size and time
/// is unchanged only if the index was written later than that (`racy-git` in its documentation), so
/// a copy with a later time would hide changes within the same second.
fn copy_file(from: &Path, to: &Path, most: u64) -> io::Result<()> {
    match fs::metadata(from) {
        Ok(about) if about.is_file() && about.len() <= most => {}
        Ok(about) if about.is_file() => return Err(io::ErrorKind::FileTooLarge.into()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => return Ok(()),
    }
    let mut from = File::open(from)?;
    let mut to = File::options().write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(&mut from, &mut to)?;
    to.set_modified(from.metadata()?.modified()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Processes that remove leftovers at the same time must spare the new folder and its parent.
    #[test]
    fn a_new_folder_is_never_taken_for_a_leftover() {
        let store = tempfile::tempdir().unwrap();
        let has_ended = AtomicBool::new(false);
        let failed = std::thread::scope(|threads| {
            threads.spawn(|| {
                while !has_ended.load(Ordering::Relaxed) {
                    remove_leftovers(store.path());
                }
            });
            let failed = (0..2000).find_map(|number| {
                let folder = store.path().join(FOLDER).join(format!("{PREFIX}{number}"));
                let lock = match make_folder(store.path(), &folder) {
                    Ok(lock) => lock,
                    Err(error) => return Some(error.to_string()),
                };
                let is_there = folder.join(LOCK_FILE).exists();
                let removed = fs::remove_dir_all(&folder);
                drop(lock);
                if is_there {
                    removed.err().map(|error| error.to_string())
                } else {
                    Some("removed".to_owned())
                }
            });
            has_ended.store(true, Ordering::Relaxed);
            failed
        });
        assert_eq!(failed, None);
    }
}

//! Finds the repository of a checkout: its folders, what is checked out, and the settings that
//! forge uses.

use super::odd_file;
use super::process::{self, GitTimeLimit};
use crate::error::CommandError;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The maximum size of a file that contains a path, in bytes.
const MAX_LINK_BYTES: u64 = 8 << 10;
/// Settings that are disabled for commands in which git reads the repository's configuration.
const OFF: [&str; 19] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.editor=:",
    "core.askPass=",
    "core.sshCommand=false",
    "core.attributesFile=/dev/null",
    "core.quotePath=false",
    "core.alternateRefsCommand=",
    "credential.helper=",
    "gpg.program=false",
    "protocol.allow=never",
    "protocol.ext.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "safe.bareRepository=explicit",
    "uploadpack.packObjectsHook=",
    "diff.external=",
];

#[derive(Debug)]
pub struct GitRepository {
    /// The top folder of the checkout.
    pub top: PathBuf,
    /// The folder with the checkout's own index and HEAD.
    pub folder: PathBuf,
    /// The folder with the objects and branches, which all worktrees share.
    pub common: PathBuf,
    pub limit: GitTimeLimit,
}

impl GitRepository {
    /// Finds the repository around this directory. Unlike git, it does not accept a bare repository
    /// among the files.
    ///
    /// # Errors
    ///
    /// Not found if there is none; invalid if a link leads to the repository of another checkout,
    /// or if a file that git reads is a pipe or a device.
    pub fn around(directory: &Path, limit: GitTimeLimit) -> Result<Self, CommandError> {
        let shown = directory.display();
        let directory = directory
            .canonicalize()
            .map_err(|error| CommandError::io_at("cannot use", directory, error))?;
        for top in directory.ancestors() {
            let dot = top.join(".git");
            let Ok(about) = fs::metadata(&dot) else { continue };
            let is_folder = about.is_dir();
            let folder = if is_folder {
                dot.canonicalize().ok()
            } else {
                read_link_file(&dot, "gitdir: ", top)
            };
            let Some(folder) = folder else { continue };
            let common = read_link_file(&folder.join("commondir"), "", &folder);
            let common = common.unwrap_or_else(|| folder.clone());
            let is_there = folder.join("HEAD").symlink_metadata().is_ok()
                && common.join("objects").is_dir()
                && common.join("refs").is_dir();
            if !is_there {
                continue;
            }
            let git = Self { top: top.to_owned(), folder, common, limit };
            git.check_owner()?;
            odd_file::check(&git)?;
            return Ok(git);
        }
        Err(CommandError::not_found(format!("'{shown}' is in no git checkout"))
            .hinted("'git init' begins a repository; 'forge note add' writes a state down"))
    }

    /// Refuses links that lead to the repository of another checkout: a `.git` file or link, a
    /// `commondir` file, links in the place of the objects and refs. A worktree's folder names the
    /// `.git` file that belongs to it, and is in the repository that it shares; the folder of a
    /// submodule is not named `.git`.
    fn check_owner(&self) -> Result<(), CommandError> {
        let dot = self.top.join(".git");
        let is_repository = |folder: &Path| folder.file_name() == Some(OsStr::new(".git"));
        if self.common != self.folder {
            let is_shared = self.folder.parent() == Some(&self.common.join("worktrees"));
            if !is_shared {
                return Err(another(&self.folder.join("commondir")));
            }
            let back = read_link_file(&self.folder.join("gitdir"), "", &self.folder);
            if back.and_then(|back| back.canonicalize().ok()) != dot.canonicalize().ok() {
                return Err(another(&dot));
            }
        } else if self.folder != dot && is_repository(&self.folder) {
            return Err(another(&dot));
        }
        for name in ["objects", "refs"] {
            let path = self.common.join(name);
            let leads_away = path.canonicalize().is_ok_and(|target| {
                !target.starts_with(&self.common) && target.ancestors().any(is_repository)
            });
            if leads_away {
                return Err(another(&path));
            }
        }
        Ok(())
    }

    /// Returns a git command in the repository itself, with everything that its configuration could
    /// run disabled.
    pub fn command(&self, args: &[&str]) -> Result<Command, CommandError> {
        let mut command = process::git_command(&self.top)?;
        OFF.iter().for_each(|setting| {
            command.args(["-c", setting]);
        });
        command.env("GIT_DIR", &self.folder).env("GIT_COMMON_DIR", &self.common);
        command.env("GIT_WORK_TREE", &self.top).args(args);
        Ok(command)
    }

    /// Runs git in the repository itself, and returns its output.
    pub fn run(&self, args: &[&str]) -> Result<String, CommandError> {
        let bytes = process::git_output(self.command(args)?, None, self.limit)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the only line that a command prints; `None` if it ends with exit code 1.
    ///
    /// # Errors
    ///
    /// Unavailable if git fails otherwise.
    pub fn line(&self, args: &[&str]) -> Result<Option<String>, CommandError> {
        let ended = process::run_git(self.command(args)?, None, MAX_LINK_BYTES, self.limit)?;
        let line = String::from_utf8_lossy(&ended.stdout).trim().to_owned();
        match ended.status.code() {
            Some(0) => Ok(Some(line)),
            Some(1) => Ok(None),
            _ => Err(CommandError::new(
                crate::error::CommandErrorKind::Unavailable,
                "git cannot read what is checked out",
            )
            .caused_by(ended.stderr)),
        }
    }

    /// Returns the commit and the branch that are checked out. The commit is `None` before the
    /// first one; the branch is `None` if no branch is checked out.
    ///
    /// # Errors
    ///
    /// Unavailable if git cannot read them.
    pub fn head(&self) -> Result<(Option<String>, Option<String>), CommandError> {
        let both = self.command(&["rev-parse", "HEAD", "--abbrev-ref=loose", "HEAD"])?;
        let both = process::run_git(both, None, MAX_LINK_BYTES, self.limit)?;
        let text = String::from_utf8_lossy(&both.stdout);
        if both.status.success()
            && let Some((commit, branch)) = text.trim().split_once('\n')
        {
            let branch = Some(branch).filter(|branch| *branch != "HEAD");
            return Ok((Some(commit.to_owned()), branch.map(str::to_owned)));
        }
        // That command fails before the first commit.
        let commit = self.line(&["rev-parse", "--verify", "--quiet", "HEAD"])?;
        Ok((commit, self.line(&["symbolic-ref", "--quiet", "--short", "HEAD"])?))
    }

    /// Reads the settings of the user and of the repository; the last of several values counts.
    pub fn settings(&self) -> Result<GitSettings, CommandError> {
        let listed = self.run(&["config", "--list", "--includes", "--show-scope", "-z"])?;
        let words: Vec<&str> = listed.split('\0').collect();
        // The scope `command` contains only what forge itself sets on the command line of git.
        let pairs = words.chunks_exact(2).filter_map(|pair| match pair {
            [scope, entry] if *scope != "command" => {
                Some(entry.split_once('\n').unwrap_or((*entry, "true")))
            }
            _ => None,
        });
        Ok(GitSettings(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()))
    }
}

/// Returns the error about a path that leads to the repository of another checkout.
fn another(path: &Path) -> CommandError {
    let text = format!("'{}' leads to the repository of another checkout", path.display());
    CommandError::invalid(text)
        .hinted("if the worktree was moved, run 'git worktree repair'; otherwise remove the file")
}

/// The ids of the empty objects of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyObjectIds {
    pub blob: &'static str,
    pub tree: &'static str,
}

/// The ids in a repository whose object format is SHA-1.
const EMPTY_SHA1: EmptyObjectIds = EmptyObjectIds {
    blob: "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    tree: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
};
/// The ids in a repository whose object format is SHA-256.
const EMPTY_SHA256: EmptyObjectIds = EmptyObjectIds {
    blob: "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
    tree: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
};

/// The configuration of a repository, by key.
#[derive(Debug)]
pub struct GitSettings(BTreeMap<String, String>);

impl GitSettings {
    /// Returns the value of a key, which is in lower case.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Whether the ids of objects are SHA-256, not SHA-1.
    #[must_use]
    pub fn is_sha256(&self) -> bool {
        self.get("extensions.objectformat") == Some("sha256")
    }

    /// Returns the ids of the empty objects.
    #[must_use]
    pub fn empty_ids(&self) -> EmptyObjectIds {
        if self.is_sha256() { EMPTY_SHA256 } else { EMPTY_SHA1 }
    }

    /// Whether a filter of this name is configured.
    #[must_use]
    pub fn has_filter(&self, name: &str) -> bool {
        ["clean", "smudge", "process"]
            .iter()
            .any(|verb| self.get(&format!("filter.{name}.{verb}")).is_some_and(|v| !v.is_empty()))
    }

    /// Whether any filter is configured.
    #[must_use]
    pub fn has_filters(&self) -> bool {
        self.0.keys().any(|key| key.starts_with("filter."))
    }
}

/// Reads the path that a file such as `.git` or `commondir` has after this prefix. A relative path
/// begins at `base`. `None` if there is no such file or no such path.
pub fn read_link_file(file: &Path, prefix: &str, base: &Path) -> Option<PathBuf> {
    if !fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    File::open(file).ok()?.take(MAX_LINK_BYTES).read_to_end(&mut text).ok()?;
    let path = text.strip_prefix(prefix.as_bytes())?.trim_ascii_end();
    base.join(OsStr::from_bytes(path)).canonicalize().ok()
}

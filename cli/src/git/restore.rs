//! Restores a recorded state of the code as a commit on a branch of its own, without touching what
//! is checked out.

use super::path_rules::{link_escapes, refusal};
use super::private_repository::PrivateRepository;
use super::process::{self, GitTimeLimit};
use super::repository::{GitRepository, read_link_file};
use super::{PATIENCE, patch_path};
use crate::error::{CommandError, CommandErrorKind};
use forge_store::model::Timestamp;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A state of the code to restore.
#[derive(Clone, Debug, Default)]
pub struct CodeToRestore {
    /// The commit that it is based on; `None` if it begins without files.
    pub base: Option<String>,
    /// The patches on top of it, in order.
    pub patches: Vec<CodePatch>,
    /// The time of the state.
    pub time: Timestamp,
    /// The commit message.
    pub message: String,
}

/// A patch of one file.
#[derive(Clone, Debug)]
pub struct CodePatch {
    /// The path of the file, for error messages.
    pub name: String,
    /// The patch as `git apply` reads it, or why it cannot be applied.
    pub text: Result<String, &'static str>,
}

/// A file that differs from the base commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RestoredFile {
    /// `added`, `modified` or `deleted`.
    pub change: &'static str,
    /// Its path relative to the top of the checkout.
    pub path: String,
}

/// Something that could not be restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnrestoredFile {
    pub path: String,
    /// The reason.
    pub why: String,
}

/// The result of restoring a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoredCommit {
    /// The commit of the state.
    pub commit: String,
    /// The files that differ from the base commit.
    pub files: Vec<RestoredFile>,
    /// What could not be restored.
    pub left: Vec<UnrestoredFile>,
}

/// Where new objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectDestination {
    /// Into a private repository that is removed afterwards, for a preview.
    Discarded,
    /// Into the repository of the checkout.
    Repository,
}

/// A repository in which states are restored.
pub struct RestoreRepository {
    git: GitRepository,
    store: PathBuf,
}

#[derive(Debug)]
pub struct NewWorktree {
    pub path: PathBuf,
    /// The files for which the repository has a filter, which was not applied.
    pub unfiltered: Vec<String>,
}

/// The author and committer of the commit, because no person made it.
const NAME: &str = "forge";
const ADDRESS: &str = "forge@localhost";

impl CodePatch {
    /// Reads a patch of a captured state, which changes one file.
    #[must_use]
    pub fn captured(text: &str) -> Self {
        let name = patch_path(text.as_bytes());
        let text = refusal(name.trim_matches('"')).map_or_else(|| Ok(text.to_owned()), Err);
        Self { name, text }
    }

    /// Reads the patch of an edit of this file. Tools write paths and heads differently, so a new
    /// head is made. Of the old one only `/dev/null` matters: the edit creates or deletes the file.
    #[must_use]
    pub fn edit(path: &str, text: &str) -> Self {
        let name = path.to_owned();
        if let Some(why) = refusal(path) {
            return Self { name, text: Err(why) };
        }
        let is_hunk = |line: &&str| line.starts_with("@@ ");
        let head: Vec<&str> = text.lines().take_while(|line| !is_hunk(line)).collect();
        let start = text.lines().take(head.len()).map(|line| line.len() + 1).sum::<usize>();
        let Some(hunks) = text.get(start..).filter(|hunks| hunks.starts_with("@@ ")) else {
            return Self { name, text: Err("its patch is in a form that git does not read") };
        };
        let is_absent =
            |sign: &str| head.iter().any(|line| line.trim_end() == format!("{sign} /dev/null"));
        let (old, new) = (format!("a/{path}"), format!("b/{path}"));
        let mut patch = format!("diff --git {old} {new}\n");
        patch.push_str(match (is_absent("---"), is_absent("+++")) {
            (true, _) => "new file mode 100644\n",
            (_, true) => "deleted file mode 100644\n",
            _ => "",
        });
        let side =
            |gone: bool, name: &str| if gone { "/dev/null".to_owned() } else { name.to_owned() };
        let (old, new) = (side(is_absent("---"), &old), side(is_absent("+++"), &new));
        patch.push_str(&format!("--- {old}\n+++ {new}\n{hunks}"));
        if !patch.ends_with('\n') {
            patch.push('\n');
        }
        Self { name, text: Ok(patch) }
    }
}

impl RestoreRepository {
    /// Finds the repository around this directory; temporary files go to this store's folder.
    pub fn around(directory: &Path, store: &Path) -> Result<Self, CommandError> {
        let git = GitRepository::around(directory, GitTimeLimit::Each(PATIENCE))?;
        Ok(Self { git, store: store.to_owned() })
    }

    #[must_use]
    pub fn top(&self) -> &Path {
        &self.git.top
    }

    /// Restores a state as a commit. It works in an index of its own, so that nothing that is
    /// checked out changes.
    pub fn restore(
        &self,
        wanted: &CodeToRestore,
        destination: ObjectDestination,
    ) -> Result<RestoredCommit, CommandError> {
        let private = PrivateRepository::new(&self.git, &self.store)?;
        let work = RestoreBuilder { private, git: &self.git, destination };
        let base = wanted.base.as_ref().map(|commit| work.commit(commit)).transpose()?;
        work.run(&["read-tree", base.as_deref().unwrap_or("--empty")])?;
        let before = work.run(&["write-tree", "--missing-ok"])?;
        let mut left = work.apply(&wanted.patches);
        let files = work.changed_files(before.trim(), &mut left)?;
        let tree = work.run(&["write-tree", "--missing-ok"])?;
        let mut command = work.command(&[])?;
        let date = format!("@{} +0000", wanted.time.as_micros().div_euclid(1_000_000));
        command.args(["commit-tree", tree.trim(), "-m", &wanted.message]);
        if let Some(base) = &base {
            command.args(["-p", base]);
        }
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), NAME).env(format!("GIT_{who}_EMAIL"), ADDRESS);
            command.env(format!("GIT_{who}_DATE"), &date);
        }
        let commit = process::git_output(command, None, self.git.limit)?;
        let commit = String::from_utf8_lossy(&commit).trim().to_owned();
        Ok(RestoredCommit { commit, files, left })
    }

    /// Creates this branch at a commit, unless it exists there already. Returns whether the branch
    /// is new.
    ///
    /// # Errors
    ///
    /// Invalid if the name is not valid; conflict if the branch exists at another commit.
    pub fn branch(&self, name: &str, commit: &str) -> Result<bool, CommandError> {
        let checked = self.git.run(&["check-ref-format", "--branch", name]);
        if name.starts_with('-') || name.starts_with('@') || checked.is_err() {
            let text = format!("'{}' is not a name for a branch of git", name.escape_debug());
            return Err(CommandError::invalid(text));
        }
        let full = format!("refs/heads/{name}");
        match self.git.line(&["rev-parse", "--verify", "--quiet", &full])? {
            Some(known) if known == commit => return Ok(false),
            Some(_) => {
                return Err(CommandError::new(
                    CommandErrorKind::Conflict,
                    format!("there is a branch '{name}' in git already"),
                )
                .hinted("choose another with '--branch NAME'"));
            }
            None => {}
        }
        let nothing = "0".repeat(commit.len());
        self.git.run(&["update-ref", "-m", "forge recover", &full, commit, &nothing])?;
        Ok(true)
    }

    /// Removes a branch that was just created.
    pub fn delete_branch(&self, name: &str, commit: &str) {
        // The caller reports the error that made this necessary.
        let full = format!("refs/heads/{name}");
        let _ = self.git.run(&["update-ref", "-d", &full, commit]);
    }

    /// Checks out a branch in a new worktree. The worktree is made next to its final place, and
    /// moved there when it is complete.
    ///
    /// # Errors
    ///
    /// Invalid if the path exists, or is inside the checkout; unavailable if git fails: then the
    /// unfinished worktree is removed.
    pub fn worktree(&self, path: &Path, branch: &str) -> Result<NewWorktree, CommandError> {
        let shown = path.display();
        let top = &self.git.top;
        let Some((parent, name)) = path.parent().zip(path.file_name()) else {
            return Err(CommandError::invalid(format!("'{shown}' is not a place for a worktree")));
        };
        let parent = parent
            .canonicalize()
            .map_err(|error| CommandError::io_at("cannot use", parent, error))?;
        let path = parent.join(name);
        if path.symlink_metadata().is_ok() {
            return Err(CommandError::invalid(format!("'{shown}' is there already"))
                .hinted("name a path that does not exist yet"));
        }
        if path.starts_with(top) {
            let text = format!("'{shown}' is inside the checkout, which is left alone");
            return Err(CommandError::invalid(text)
                .hinted(format!("name a place beside '{}'", top.display())));
        }
        let mut begin = OsString::from(".");
        begin.push(name);
        begin.push(".forge-");
        self.remove_leftovers(&parent, &begin);
        let mut beside = begin;
        beside.push(std::process::id().to_string());
        let beside = parent.join(beside);
        let made = self.with_path(
            &["worktree", "add", "--quiet", "--no-checkout"],
            &[&beside, branch.as_ref()],
        );
        let made = made.and_then(|()| self.fill(&beside, branch)).and_then(|unfiltered| {
            self.with_path(&["worktree", "move"], &[&beside, &path])?;
            Ok(NewWorktree { path, unfiltered })
        });
        if made.is_err() {
            let _ = self.with_path(&["worktree", "remove", "--force"], &[&beside]);
        }
        made
    }

    fn with_path(&self, args: &[&str], paths: &[&Path]) -> Result<(), CommandError> {
        let mut command = self.git.command(args)?;
        command.args(paths);
        process::git_output(command, None, self.git.limit).map(drop)
    }

    /// Writes the files of a branch to an empty worktree as they are in the repository, without
    /// filters. Returns the files that have a filter.
    fn fill(&self, worktree: &Path, branch: &str) -> Result<Vec<String>, CommandError> {
        let Some(folder) = read_link_file(&worktree.join(".git"), "gitdir: ", worktree) else {
            return Err(CommandError::new(CommandErrorKind::Unavailable, "git made no worktree"));
        };
        let full = format!("refs/heads/{branch}");
        let commit = self.git.line(&["rev-parse", "--verify", "--quiet", &full])?;
        let commit = commit.unwrap_or_default();
        let mut private = PrivateRepository::new(&self.git, &self.store)?;
        private.work_at(worktree, &folder.join("index"));
        private.output(&["read-tree", &commit], None)?;
        private.output(&["checkout-index", "--all", "--force", "--index", "--quiet"], None)?;
        let files = private.output(&["ls-files", "-z"], None)?;
        private.filtered(files)
    }

    /// Removes the unfinished worktrees of killed processes in this folder. While they exist, git
    /// neither checks out their branches elsewhere nor deletes them.
    fn remove_leftovers(&self, parent: &Path, begin: &OsStr) {
        let Ok(listed) = self.git.run(&["worktree", "list", "--porcelain", "-z"]) else {
            return;
        };
        let worktrees = listed.split('\0').filter_map(|line| line.strip_prefix("worktree "));
        for path in worktrees.map(Path::new).filter(|path| path.parent() == Some(parent)) {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            let Some(maker) = begin.to_str().and_then(|begin| name.strip_prefix(begin)) else {
                continue;
            };
            let is_running = || Path::new("/proc").join(maker).exists();
            if maker.parse::<u32>().is_ok() && !is_running() {
                // `--force` twice, because a worktree that git itself had not finished is locked.
                // If a worktree cannot be removed, the next step reports it.
                let _ = self.with_path(&["worktree", "remove", "--force", "--force"], &[path]);
            }
        }
    }
}

/// A state that is being restored.
struct RestoreBuilder<'a> {
    private: PrivateRepository,
    git: &'a GitRepository,
    destination: ObjectDestination,
}

impl RestoreBuilder<'_> {
    fn command(&self, args: &[&str]) -> Result<Command, CommandError> {
        let mut command = self.private.command(args)?;
        if self.destination == ObjectDestination::Repository {
            command.env("GIT_OBJECT_DIRECTORY", self.git.common.join("objects"));
        }
        Ok(command)
    }

    fn run(&self, args: &[&str]) -> Result<String, CommandError> {
        self.with_input(args, None)
    }

    fn with_input(&self, args: &[&str], input: Option<Vec<u8>>) -> Result<String, CommandError> {
        let bytes = process::git_output(self.command(args)?, input, self.git.limit)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the full id of a commit, from at least 7 digits of it; not found if it is missing.
    fn commit(&self, commit: &str) -> Result<String, CommandError> {
        let is_id =
            (7..=64).contains(&commit.len()) && commit.bytes().all(|b| b.is_ascii_hexdigit());
        let found = if is_id {
            self.run(&["rev-parse", "--verify", "--quiet", &format!("{commit}^{{commit}}")]).ok()
        } else {
            None
        };
        found.map(|found| found.trim().to_owned()).ok_or_else(|| {
            let shown: String = commit.chars().take(64).collect();
            CommandError::not_found(format!("the commit '{shown}' is not in this repository"))
                .hinted("fetch it, or go to the repository that it was made in")
        })
    }

    /// Applies patches: all at once, or one by one if several are of one file or one cannot be
    /// applied. Returns the patches that were not applied.
    fn apply(&self, patches: &[CodePatch]) -> Vec<UnrestoredFile> {
        let mut left = Vec::new();
        let mut good = Vec::new();
        for patch in patches {
            match &patch.text {
                Ok(text) => good.push((patch, text)),
                Err(why) => {
                    left.push(UnrestoredFile { path: patch.name.clone(), why: (*why).to_owned() });
                }
            }
        }
        let all: String = good.iter().map(|(_, text)| text.as_str()).collect();
        if good.is_empty() || (are_of_different_files(&good) && self.apply_patch(&all).is_ok()) {
            return left;
        }
        for (patch, text) in good {
            if let Err(why) = self.apply_patch(text) {
                left.push(UnrestoredFile { path: patch.name.clone(), why });
            }
        }
        left
    }

    fn apply_patch(&self, text: &str) -> Result<(), String> {
        let failed = |error: CommandError| error.message().to_owned();
        let command = self.command(&["apply", "--cached", "--whitespace=nowarn", "-"]);
        let text = Some(text.as_bytes().to_vec());
        let ended = command.and_then(|command| process::run_git(command, text, 0, self.git.limit));
        let ended = ended.map_err(failed)?;
        if ended.status.success() {
            return Ok(());
        }
        let mut lines = ended.stderr.lines();
        let first = lines.find(|line| line.starts_with("error:")).unwrap_or("it does not fit");
        Err(first.trim_start_matches("error: ").to_owned())
    }

    /// Returns the files that differ from the tree `before`. A file that must not be written is
    /// reset to its content in `before`, and added to `left`.
    fn changed_files(
        &self,
        before: &str,
        left: &mut Vec<UnrestoredFile>,
    ) -> Result<Vec<RestoredFile>, CommandError> {
        let listed = self.run(&[
            "diff-index", "--cached", "--raw", "-z", "--no-renames", "--abbrev=64", before,
        ])?;
        let mut files = Vec::new();
        let mut parts = listed.split('\0').filter(|part| !part.is_empty());
        while let (Some(about), Some(path)) = (parts.next(), parts.next()) {
            let about: Vec<&str> = about.trim_start_matches(':').split(' ').collect();
            let [old_mode, mode, old, new, status] = about.as_slice() else { continue };
            if let Some(why) = self.refusal(path, mode, new)? {
                left.push(UnrestoredFile { path: path.to_owned(), why: why.to_owned() });
                self.restore_entry(path, old_mode, old)?;
                continue;
            }
            let change = match *status {
                "A" => "added",
                "D" => "deleted",
                _ => "modified",
            };
            files.push(RestoredFile { change, path: path.to_owned() });
        }
        Ok(files)
    }

    fn refusal(
        &self,
        path: &str,
        mode: &str,
        object: &str,
    ) -> Result<Option<&'static str>, CommandError> {
        if let Some(why) = refusal(path) {
            return Ok(Some(why));
        }
        Ok(match mode {
            "120000" => {
                let target = self.run(&["cat-file", "blob", object])?;
                link_escapes(path, &target).then_some("it is a link that leads elsewhere")
            }
            "160000" => Some("it is another repository"),
            _ => None,
        })
    }

    fn restore_entry(&self, path: &str, mode: &str, object: &str) -> Result<(), CommandError> {
        let mode = if mode == "000000" { "0" } else { mode };
        let line = format!("{mode} {object}\t{path}\0").into_bytes();
        self.with_input(&["update-index", "-z", "--index-info"], Some(line)).map(drop)
    }
}

/// Whether no two patches change the same file. Patches of one file must be applied one after the
/// other.
fn are_of_different_files(patches: &[(&CodePatch, &String)]) -> bool {
    let mut names: Vec<&str> = patches.iter().map(|(patch, _)| patch.name.as_str()).collect();
    names.sort_unstable();
    names.windows(2).all(|two| two.first() != two.last())
}

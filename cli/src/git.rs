//! Reads the state of a git checkout, with the `git` command. Nothing in the user's repository is
//! changed, and no program that it configures is run: git works in a private repository, whose
//! configuration runs nothing.

#[cfg(target_os = "linux")]
pub mod guard;
mod idle_watch;
mod odd_file;
pub mod path_rules;
pub mod private_repository;
pub mod process;
pub mod repository;
pub mod restore;

use crate::error::{CommandError, CommandErrorKind};
use forge_store::model::Value;
use private_repository::PrivateRepository;
use process::GitTimeLimit;
use repository::GitRepository;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The time limit of each git process if a person waits for it. A git that does nothing is ended
/// much earlier.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// The time limit for git to say whether a file is tracked, which hooks wait for.
const TRACKED_PATIENCE: Duration = Duration::from_secs(4);
/// The message about changed files for which the repository has a filter.
pub const UNFILTERED: &str = "filters of this repository were not applied";
/// The maximum size of a new file whose content is stored, in bytes.
const MAX_NEW_BYTES: u64 = 32 << 20;
/// The maximum size of all patches, in bytes.
const MAX_PATCH_BYTES: u64 = 8 << 20;
/// The maximum size of the patch of one file, in bytes.
const MAX_FILE_BYTES: usize = 512 << 10;

/// The state of a checkout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedCheckout {
    /// The commit that is checked out; `None` before the first one.
    pub commit: Option<String>,
    /// The branch that is checked out, if any.
    pub branch: Option<String>,
    /// The changes on top of the commit, with new files, one patch per file.
    pub patches: Vec<String>,
    /// The files git does not track yet.
    pub untracked: Vec<String>,
    /// The files whose changes are too large to be stored. If the diff was cut, the last entry is a
    /// sentence about the files after the cut.
    pub left_out: Vec<String>,
    /// The changed files for which the repository has a filter, which was not applied.
    pub unfiltered: Vec<String>,
}

impl CapturedCheckout {
    /// Whether there are no changes on top of the commit.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.patches.is_empty() && self.left_out.is_empty()
    }

    /// Returns the fields of a fact about it.
    #[must_use]
    pub fn value(&self, description: Option<&str>) -> Value {
        let some = |texts: &[String]| Value::from((!texts.is_empty()).then(|| texts.to_vec()));
        Value::from([
            ("commit", self.commit.clone().into()),
            ("branch", self.branch.clone().into()),
            ("patches", self.patches.clone().into()),
            ("untracked", some(&self.untracked)),
            ("left_out", some(&self.left_out)),
            ("description", description.map(str::to_owned).into()),
        ])
    }
}

/// Captures the checkout around this directory, with a private index in the store's folder. No git
/// object is written.
///
/// # Errors
///
/// Not found if there is no checkout, or no git; invalid if the checkout has links or special files
/// that [`GitRepository::around`] refuses; unavailable if git fails or takes too long.
pub fn capture_checkout(
    directory: &Path,
    store: &Path,
    limit: GitTimeLimit,
) -> Result<CapturedCheckout, CommandError> {
    let git = GitRepository::around(directory, limit)?;
    let private = PrivateRepository::new(&git, store)?;
    let (commit, branch) = git.head()?;
    let untracked = private
        .output(&["ls-files", "--others", "--exclude-standard", "-z", "--full-name"], None)?;
    let empty = private.settings().empty_ids();
    let (added, mut left_out) = untracked_entries(&untracked, &git.top, empty.blob);
    if !added.is_empty() {
        private.output(&["update-index", "--add", "-z", "--index-info"], Some(added))?;
    }
    let base = commit.as_deref().unwrap_or(empty.tree);
    let (diff, is_cut) = diff_to_base(&private, base)?;
    let untracked = String::from_utf8_lossy(&untracked);
    let untracked: Vec<String> =
        untracked.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let (patches, too_large) = split_patches(&diff, is_cut);
    left_out.extend(too_large);
    let mut unfiltered = Vec::new();
    if private.settings().has_filters() {
        let changed = ["diff", "--name-only", "-z", "--ignore-submodules=dirty", base];
        unfiltered = private.filtered(private.output(&changed, None)?)?;
    }
    Ok(CapturedCheckout { commit, branch, patches, untracked, left_out, unfiltered })
}

/// Returns the lines that add the untracked files to the index, and the files that are too large. A
/// line enters its file as empty and without a time, so that git reads the file and finds the
/// difference. `empty` is the id of an empty file.
fn untracked_entries(untracked: &[u8], top: &Path, empty: &str) -> (Vec<u8>, Vec<String>) {
    let (mut lines, mut left_out) = (Vec::new(), Vec::new());
    for name in untracked.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        // Git lists a folder only if that is another repository.
        if name.ends_with(b"/") {
            continue;
        }
        let size = top.join(OsStr::from_bytes(name)).symlink_metadata().map(|about| about.len());
        if size.is_ok_and(|size| size > MAX_NEW_BYTES) {
            left_out.push(String::from_utf8_lossy(name).into_owned());
            continue;
        }
        lines.extend(format!("100644 {empty}\t").as_bytes());
        lines.extend(name);
        lines.push(0);
    }
    (lines, left_out)
}

/// Returns all differences of the files from this commit or tree, and whether they were cut.
fn diff_to_base(private: &PrivateRepository, base: &str) -> Result<(Vec<u8>, bool), CommandError> {
    let args = ["diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"];
    let more = ["--ignore-submodules=dirty", "--submodule=short"];
    let prefixes = ["--src-prefix=a/", "--dst-prefix=b/", base];
    let mut ended =
        private.limited_output(&[&args[..], &more, &prefixes].concat(), MAX_PATCH_BYTES)?;
    let is_cut = ended.stdout.len() as u64 > MAX_PATCH_BYTES;
    // The pipe is closed after the maximum, so a git that had more to write fails.
    if !ended.status.success() && !is_cut {
        let text = format!("git diff failed: {}", ended.status);
        return Err(CommandError::new(CommandErrorKind::Unavailable, text)
            .caused_by(ended.stderr)
            .hinted("forge fetches nothing: where git misses an object, 'git fetch' brings it"));
    }
    Ok((std::mem::take(&mut ended.stdout), is_cut))
}

/// Whether git ignores this file of a checkout; `None` if git does not say.
#[must_use]
pub fn is_ignored(directory: &Path, file: &Path) -> Option<bool> {
    let git = GitRepository::around(directory, GitTimeLimit::Each(PATIENCE)).ok()?;
    let mut command = git.command(&["check-ignore", "-q", "--"]).ok()?;
    // check-ignore takes no pathspecs, and refuses options about them.
    command.arg(file).env_remove("GIT_LITERAL_PATHSPECS");
    match process::run_git(command, None, 0, git.limit).ok()?.status.code() {
        Some(0) => Some(true),
        Some(1) => Some(false),
        _ => None,
    }
}

/// Whether git tracks this file of a checkout, and so may have brought it; false outside of a
/// checkout, `None` if git does not say.
#[must_use]
pub fn is_tracked(directory: &Path, file: &Path) -> Option<bool> {
    let git = match GitRepository::around(directory, GitTimeLimit::Each(TRACKED_PATIENCE)) {
        Ok(git) => git,
        Err(error) if error.kind() == CommandErrorKind::NotFound => return Some(false),
        Err(_) => return None,
    };
    let mut command = git.command(&["ls-files", "--error-unmatch", "--"]).ok()?;
    command.arg(file);
    match process::run_git(command, None, u64::MAX - 1, git.limit).ok()?.status.code() {
        Some(0) => Some(true),
        Some(1) => Some(false),
        _ => None,
    }
}

/// Splits a diff into the patch of each file, and the files whose patches are too large.
fn split_patches(diff: &[u8], is_cut: bool) -> (Vec<String>, Vec<String>) {
    const BEGIN: &[u8] = b"diff --git ";
    let mut starts = Vec::new();
    let mut at_line_start = true;
    for (place, byte) in diff.iter().enumerate() {
        if at_line_start && diff[place..].starts_with(BEGIN) {
            starts.push(place);
        }
        at_line_start = *byte == b'\n';
    }
    let ends = starts.iter().skip(1).copied().chain([diff.len()]);
    let (mut patches, mut left_out) = (Vec::new(), Vec::new());
    for (number, (start, end)) in starts.iter().zip(ends).enumerate() {
        let patch = &diff[*start..end];
        let is_last = number + 1 == starts.len();
        if patch.len() > MAX_FILE_BYTES || (is_cut && is_last) {
            left_out.push(patch_path(patch));
        } else {
            patches.push(String::from_utf8_lossy(patch).into_owned());
        }
    }
    if is_cut {
        left_out.push("all files after that".to_owned());
    }
    (patches, left_out)
}

/// Returns the file of a patch, from its line `diff --git a/PATH b/PATH` with equal paths.
fn patch_path(patch: &[u8]) -> String {
    let line = patch.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let both = line.strip_prefix("diff --git ").unwrap_or(&line);
    let half = both.get(both.len() / 2 + 1..).unwrap_or(both);
    half.strip_prefix("b/").unwrap_or(half).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_is_split_by_file() {
        let diff = "diff --git a/a b b/a b\n+diff --git\ndiff --git a/c b/c\n+x\n";
        let (patches, left_out) = split_patches(diff.as_bytes(), false);
        assert_eq!(patches.concat(), diff);
        assert_eq!((patches.len(), left_out.len()), (2, 0));
        assert_eq!(split_patches(b"", false), (Vec::new(), Vec::new()));
    }

    #[test]
    fn files_with_too_large_patches_are_left_out_and_named() {
        let big = format!("diff --git a/big one b/big one\n{}\n", "x".repeat(MAX_FILE_BYTES));
        let diff = format!("{big}diff --git a/s b/s\n+x\n");
        let (patches, left_out) = split_patches(diff.as_bytes(), false);
        assert_eq!((patches.len(), left_out), (1, vec!["big one".to_owned()]));
        let (patches, left_out) = split_patches(b"diff --git a/s b/s\n+x", true);
        assert_eq!((patches.len(), left_out[0].as_str(), left_out.len()), (0, "s", 2));
    }
}

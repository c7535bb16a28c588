//! The state of a git checkout, by the `git` command. Nothing of the user's changes: index and new objects are private.

pub mod path;
pub mod restore;

use crate::error::CommandError;
use forge_store::model::Value;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::{fs, process};

/// How many bytes of patches are kept in all.
const MAX_PATCH_BYTES: u64 = 8 << 20;
/// How many bytes of the patch of one file are kept.
const MAX_FILE_BYTES: usize = 512 << 10;

/// The state of a checkout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The commit checked out; nothing before the first.
    pub commit: Option<String>,
    /// The branch checked out, if one is.
    pub branch: Option<String>,
    /// What stands on top of the commit, new files included, a patch for each file.
    pub patches: Vec<String>,
    /// The files git does not track yet.
    pub untracked: Vec<String>,
    /// The files whose changes are too large to be kept.
    pub left_out: Vec<String>,
}

impl Captured {
    /// Whether nothing stands on top of the commit.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.patches.is_empty() && self.left_out.is_empty()
    }

    /// As the fields of a fact.
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

/// Captures the checkout around this directory.
///
/// # Errors
///
/// Not found if there is none, or no git; unavailable if git fails.
pub fn capture(directory: &Path) -> Result<Captured, CommandError> {
    let git = Git::at(directory)?;
    // These take their time beside each other and beside what follows.
    let commit = git.start(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?;
    let branch = git.start(&["symbolic-ref", "--quiet", "--short", "HEAD"])?;
    let untracked = git.start(&["ls-files", "--others", "--exclude-standard", "-z"])?;
    let bench = Bench::new(&git)?;
    bench.git(&["add", "--all", "--", "."], &git.top)?;
    let (commit, branch) = (line(commit), line(branch));
    let base = match &commit {
        Some(commit) => commit.clone(),
        None => bench.git(&["hash-object", "-w", "-t", "tree", "/dev/null"], &git.top)?,
    };
    let (diff, is_cut) = bench.diff(base.trim(), &git.top)?;
    let untracked = finished("ls-files", untracked.wait_with_output())?;
    let untracked: Vec<String> =
        untracked.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let (patches, left_out) = split(&diff, is_cut);
    Ok(Captured { commit, branch, patches, untracked, left_out })
}

/// Whether git leaves this file of a checkout alone; nothing if it does not say.
#[must_use]
pub fn ignores(directory: &Path, file: &Path) -> Option<bool> {
    let mut command = plain(directory);
    command.args(["check-ignore", "-q", "--"]).arg(file);
    match command.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?.code() {
        Some(0) => Some(true),
        Some(1) => Some(false),
        _ => None,
    }
}

/// A checkout.
struct Git {
    top: PathBuf,
    index: PathBuf,
    objects: PathBuf,
}

impl Git {
    fn at(directory: &Path) -> Result<Self, CommandError> {
        let mut command = plain(directory);
        command.args(["rev-parse", "--path-format=absolute", "--show-toplevel"]);
        command.args(["--git-path", "index", "--git-path", "objects"]);
        let output = command.output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => CommandError::not_found("there is no git command here")
                .hinted("the state of the code is captured by git: install it"),
            _ => CommandError::io("cannot run git", error),
        })?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let places: Vec<&str> = text.trim_end_matches('\n').split('\n').collect();
        let ([top, index, objects], true) = (places.as_slice(), output.status.success()) else {
            let shown = directory.display();
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let error = CommandError::not_found(format!("'{shown}' is in no git checkout"));
            return Err(error
                .caused_by(said)
                .hinted("'git init' begins a repository; 'forge note add' writes a state down"));
        };
        Ok(Self { top: top.into(), index: index.into(), objects: objects.into() })
    }

    fn start(&self, args: &[&str]) -> Result<Child, CommandError> {
        let mut command = plain(&self.top);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| CommandError::io("cannot run git", error))
    }
}

/// The one line a command prints; nothing if it fails or prints none.
fn line(child: Child) -> Option<String> {
    let output = child.wait_with_output().ok()?;
    let line = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}

/// A private index and a private place for objects, gone when dropped.
struct Bench {
    folder: PathBuf,
    objects: PathBuf,
}

impl Bench {
    fn new(git: &Git) -> Result<Self, CommandError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| {
            CommandError::internal("no random numbers").caused_by(error.to_string())
        })?;
        let name = format!("forge-{}-{:016x}", process::id(), u64::from_be_bytes(random));
        let folder = std::env::temp_dir().join(name);
        let bench = Self { folder, objects: git.objects.clone() };
        let make = || {
            use std::os::unix::fs::DirBuilderExt;
            fs::DirBuilder::new().mode(0o700).create(&bench.folder)?;
            fs::create_dir(bench.folder.join("objects"))?;
            // With the index comes what git remembers of unchanged files, so that it need not read them again.
            match copy_index(&git.index, &bench.folder.join("index")) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        };
        make().map_err(|error| CommandError::io("cannot prepare a private git index", error))?;
        Ok(bench)
    }

    fn command(&self, top: &Path) -> Command {
        let mut command = plain(top);
        command
            .env("GIT_INDEX_FILE", self.folder.join("index"))
            .env("GIT_OBJECT_DIRECTORY", self.folder.join("objects"))
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.objects);
        command
    }

    fn git(&self, args: &[&str], top: &Path) -> Result<String, CommandError> {
        run(self.command(top).args(args))
    }

    /// All differences to this commit or tree, and whether they were cut.
    fn diff(&self, base: &str, top: &Path) -> Result<(Vec<u8>, bool), CommandError> {
        let mut command = self.command(top);
        command.args(["diff", "--cached", "--binary", "--no-color", "--no-ext-diff"]);
        command.args(["--no-textconv", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/", base]);
        let failed = |error| CommandError::io("cannot run git diff", error);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(failed)?;
        let mut text = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            stdout.take(MAX_PATCH_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
        }
        let is_cut = text.len() as u64 > MAX_PATCH_BYTES;
        // The pipe is closed by now, so it ends by itself even if it had more to say.
        let status = child.wait().map_err(failed)?;
        if !status.success() && !is_cut {
            return Err(CommandError::new(
                crate::error::ErrorKind::Unavailable,
                format!("git diff failed: {status}"),
            ));
        }
        Ok((text, is_cut))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Copies an index, its time included. Git believes that a file of the same size and time is unchanged only if the index was written
/// later than that (`racy-git` in its documentation), so a copy that looks younger hides what was changed since in the same second.
fn copy_index(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = File::open(from)?;
    let mut to = File::create_new(to)?;
    io::copy(&mut from, &mut to)?;
    to.set_modified(from.metadata()?.modified()?)
}

/// `git` that starts no programs of the repository's choosing and takes no locks it need not take.
fn plain(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"])
        .args(["-c", "core.quotePath=false", "-c", "advice.addEmbeddedRepo=false"])
        .current_dir(directory)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> Result<String, CommandError> {
    let verb = command.get_args().filter_map(OsStr::to_str).nth(8).unwrap_or_default().to_owned();
    finished(&verb, command.output())
}

/// What a command printed, as it must have gone well.
fn finished(verb: &str, output: io::Result<Output>) -> Result<String, CommandError> {
    let output = output.map_err(|error| CommandError::io("cannot run git", error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(CommandError::new(crate::error::ErrorKind::Unavailable, format!("git {verb} failed"))
        .caused_by(said))
}

/// The patch of each file, and the files whose patches are too large.
fn split(diff: &[u8], is_cut: bool) -> (Vec<String>, Vec<String>) {
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
            left_out.push(path_of(patch));
        } else {
            patches.push(String::from_utf8_lossy(patch).into_owned());
        }
    }
    if is_cut {
        left_out.push("all files after that".to_owned());
    }
    (patches, left_out)
}

/// The file a patch is of: `diff --git a/PATH b/PATH`, where both are the same.
fn path_of(patch: &[u8]) -> String {
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
        let (patches, left_out) = split(diff.as_bytes(), false);
        assert_eq!(patches.concat(), diff);
        assert_eq!((patches.len(), left_out.len()), (2, 0));
        assert_eq!(split(b"", false), (Vec::new(), Vec::new()));
    }

    #[test]
    fn what_is_too_large_is_named() {
        let big = format!("diff --git a/big one b/big one\n{}\n", "x".repeat(MAX_FILE_BYTES));
        let diff = format!("{big}diff --git a/s b/s\n+x\n");
        let (patches, left_out) = split(diff.as_bytes(), false);
        assert_eq!((patches.len(), left_out), (1, vec!["big one".to_owned()]));
        let (patches, left_out) = split(b"diff --git a/s b/s\n+x", true);
        assert_eq!((patches.len(), left_out[0].as_str(), left_out.len()), (0, "s", 2));
    }
}

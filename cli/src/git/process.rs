//! Runs one `git` process with a time limit, in an environment in which it asks nothing and fetches
//! nothing.

use super::idle_watch::IdleWatch;
use crate::error::{CommandError, CommandErrorKind};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How many bytes of git's error output are kept.
const MAX_STDERR_BYTES: u64 = 64 << 10;
/// How long a guard may take to end the processes that git started.
const GUARD_PATIENCE: Duration = Duration::from_millis(500);
/// How long git may be idle. A pipe in the place of a file makes git wait for ever.
const IDLE_PATIENCE: Duration = Duration::from_secs(10);
/// Variables that make git ask no questions, fetch nothing and take no optional locks.
const QUIET: [(&str, &str); 14] = [
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", ":"),
    ("GIT_SEQUENCE_EDITOR", ":"),
    ("LC_ALL", "C"),
];

#[derive(Clone, Copy, Debug)]
pub enum GitTimeLimit {
    /// All processes together must end by this time.
    Until(Instant),
    /// Each process must end within this time.
    Each(Duration),
}

impl GitTimeLimit {
    fn deadline(self) -> Instant {
        match self {
            Self::Until(time) => time,
            Self::Each(time) => Instant::now() + time,
        }
    }
}

/// The output and the status of a process that has ended.
#[derive(Debug)]
pub struct FinishedProcess {
    pub status: ExitStatus,
    /// Its standard output, up to one byte more than the limit.
    pub stdout: Vec<u8>,
    /// Its error output.
    pub stderr: String,
}

/// Why a process was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overdue {
    /// It ran until its time limit.
    Deadline,
    /// It did nothing for this long.
    Idle(Duration),
}

/// Returns a `git` command without arguments. Variables that redirect git are removed, and so are
/// the relative entries of `PATH`, which would lead into the checkout.
pub fn git_command(directory: &Path) -> Result<Command, CommandError> {
    let (program, path) = program()?;
    let mut command = Command::new(program);
    command.current_dir(directory).env("PATH", path);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            command.env_remove(name);
        }
    }
    command.envs(QUIET).stdin(Stdio::null());
    Ok(command)
}

/// The absolute path of git, and the absolute entries of `PATH`.
fn program() -> Result<(PathBuf, OsString), CommandError> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let folders: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    let found = folders.iter().map(|folder| folder.join("git")).find(|file| file.is_file());
    let path = std::env::join_paths(&folders).unwrap_or_default();
    found.map(|program| (program, path)).ok_or_else(|| {
        CommandError::not_found("there is no git command here")
            .hinted("the state of the code is captured by git: install it")
    })
}

/// Runs git to its end and returns at most `most + 1` bytes of its output.
///
/// # Errors
///
/// Unavailable if it takes too long, or does nothing for ten seconds: then git and every process
/// that it started are killed.
pub fn run_git(
    command: Command,
    input: Option<Vec<u8>>,
    most: u64,
    limit: GitTimeLimit,
) -> Result<FinishedProcess, CommandError> {
    run_watched(command, input, most, limit, IDLE_PATIENCE)
}

fn run_watched(
    mut command: Command,
    input: Option<Vec<u8>>,
    most: u64,
    limit: GitTimeLimit,
    idle: Duration,
) -> Result<FinishedProcess, CommandError> {
    let deadline = limit.deadline();
    let verb = verb(&command);
    #[cfg(target_os = "linux")]
    {
        command = super::guard::guarded_command(command);
        command.stdin(Stdio::null());
    }
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let failed = |error| CommandError::io("cannot run git", error);
    let mut child = command.spawn().map_err(failed)?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        // If git ends before it has read everything, its error output says why.
        thread::spawn(move || stdin.write_all(&input));
    }
    let stdout = read_pipe(child.stdout.take(), most.saturating_add(1), false);
    let stderr = read_pipe(child.stderr.take(), MAX_STDERR_BYTES, true);
    let overdue = match wait_until(&mut child, &stdout, &stderr, deadline, idle) {
        Ok(ended) => return ended.map_err(failed),
        Err(overdue) => overdue,
    };
    kill_group(&mut child);
    let (text, hint) = match overdue {
        Overdue::Deadline => (format!("git {verb} took too long"), None),
        Overdue::Idle(time) => (
            format!("git {verb} did nothing for {} seconds", time.as_secs()),
            Some("look for a pipe in the place of a file, in '.git' or named '.gitignore'"),
        ),
    };
    let error = CommandError::new(CommandErrorKind::Unavailable, text)
        .caused_by("it was ended, with every process that it had started");
    Err(hint.into_iter().fold(error, CommandError::hinted))
}

/// Reads a pipe in a thread of its own. With `all`, the rest is read too, and discarded.
fn read_pipe(
    pipe: Option<impl Read + Send + 'static>,
    most: u64,
    all: bool,
) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let Some(mut pipe) = pipe else { return };
        let mut done = pipe.by_ref().take(most).read_to_end(&mut bytes).map(drop);
        if all && done.is_ok() {
            done = io::copy(&mut pipe, &mut io::sink()).map(drop);
        }
        drop(pipe);
        // The receiver is dropped after the time limit.
        let _ = sender.send(done.map(|()| bytes));
    });
    receiver
}

/// Waits for the end of a process. Gives up at the deadline, or when the process is idle for too
/// long.
fn wait_until(
    child: &mut Child,
    stdout: &Receiver<io::Result<Vec<u8>>>,
    stderr: &Receiver<io::Result<Vec<u8>>>,
    deadline: Instant,
    idle: Duration,
) -> Result<io::Result<FinishedProcess>, Overdue> {
    let mut watch = IdleWatch::new(child, idle);
    let stdout = wait_for(stdout, deadline, &mut watch)?;
    let stderr = wait_for(stderr, deadline, &mut watch)?;
    wait_for(&watch_exit(child), deadline, &mut watch)?;
    let status = child.wait();
    Ok(status.and_then(|status| {
        let stderr = without_attribute_lines(&String::from_utf8_lossy(&stderr?));
        Ok(FinishedProcess { status, stdout: stdout?, stderr })
    }))
}

/// Returns git's error output without warnings about lines that are no attributes. A setting can
/// name any file as the attributes file, and the warnings would show the content of that file.
fn without_attribute_lines(stderr: &str) -> String {
    let is_kept = |line: &&str| !line.contains("is not a valid attribute name");
    stderr.lines().filter(is_kept).collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn wait_for<T>(
    receiver: &Receiver<T>,
    deadline: Instant,
    watch: &mut IdleWatch,
) -> Result<T, Overdue> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left.min(watch.interval())) {
            Ok(message) => return Ok(message),
            Err(_) if Instant::now() >= deadline => return Err(Overdue::Deadline),
            Err(_) if watch.is_idle() => return Err(Overdue::Idle(watch.patience())),
            // The thread ended without a message, so a further wait would return at once.
            Err(RecvTimeoutError::Disconnected) => return Err(Overdue::Deadline),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Returns a channel that receives a message once the process has ended. The process is not reaped
/// here, so its id stays valid until the caller reaps it.
fn watch_exit(child: &Child) -> Receiver<()> {
    let (sender, receiver) = mpsc::channel();
    let process = Pid::from_child(child);
    thread::spawn(move || {
        let _ = waitid(WaitId::Pid(process), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        // The receiver is dropped after the time limit.
        let _ = sender.send(());
    });
    receiver
}

/// Kills a process with its whole group. A guard gets SIGTERM first, so that it kills processes
/// that left the group.
fn kill_group(child: &mut Child) {
    let ended = watch_exit(child);
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
    let _ = ended.recv_timeout(GUARD_PATIENCE);
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Returns the output of a command that must succeed.
pub fn git_output(
    command: Command,
    input: Option<Vec<u8>>,
    limit: GitTimeLimit,
) -> Result<Vec<u8>, CommandError> {
    let verb = verb(&command);
    let ended = run_git(command, input, u64::MAX, limit)?;
    if ended.status.success() {
        return Ok(ended.stdout);
    }
    Err(CommandError::new(CommandErrorKind::Unavailable, format!("git {verb} failed"))
        .caused_by(ended.stderr))
}

/// The verb of a git command: its first argument that is neither an option nor the value of one.
fn verb(command: &Command) -> String {
    let mut is_value = false;
    let mut arguments = command.get_args().map(|argument| argument.to_string_lossy());
    let found = arguments.find(|argument| {
        let is_option = argument.starts_with('-');
        let is_verb = !is_option && !is_value;
        is_value = argument == "-c";
        is_verb
    });
    found.unwrap_or_default().into_owned()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn output_of(script: &str) -> Result<FinishedProcess, CommandError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let limit = GitTimeLimit::Each(Duration::from_secs(600));
        run_watched(command, None, 1 << 20, limit, Duration::from_millis(500))
    }

    #[test]
    fn a_process_that_waits_for_a_pipe_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut command = git_command(folder.path()).unwrap();
        command.args(["config", "--list", "--file"]).arg(&pipe);
        let limit = GitTimeLimit::Each(Duration::from_secs(600));
        let waited = run_watched(command, None, 1 << 20, limit, Duration::from_millis(500));
        let error = waited.unwrap_err();
        assert!(error.message().contains("did nothing"), "{error:?}");
    }

    #[test]
    fn a_process_that_computes_for_longer_is_not_ended() {
        let script = "i=0; while [ $i -lt 1000000 ]; do i=$((i + 1)); done; echo done";
        assert_eq!(output_of(script).unwrap().stdout, b"done\n");
    }
}

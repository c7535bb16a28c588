//! A process between forge and git. When forge ends, is killed, or reaches its time limit, the
//! guard kills git with everything that git started, even processes that left git's group or lost
//! their parent. It is this program, called with `WORD`.

use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_child_subreaper,
    set_parent_process_death_signal, wait,
};
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, process};

/// The first argument of a guard. The second is the id of the process that it works for, followed
/// by the program and its arguments.
const WORD: &str = "__git-guard";
/// The guard's exit code if the program cannot be run.
const NOT_RUN: u8 = 127;
/// The exit code for a program that a signal ended is this plus the number of the signal.
const SIGNAL_CODE_BASE: i32 = 128;

/// How long the guard waits for git to remove its locks, counted from the last signal; then it
/// kills git.
const GRACE: Duration = Duration::from_millis(100);
/// The maximum number of signals after which the guard waits again.
const SIGNALS: u32 = 8;

/// Whether this process is forge, so that it can be called as a guard. A test of the library is
/// another program.
static IS_FORGE: AtomicBool = AtomicBool::new(false);

/// Notes that this process is forge. If these are the arguments of a guard, runs as one and
/// returns its exit code.
#[must_use]
pub fn run_if_guard(arguments: &[OsString]) -> Option<u8> {
    IS_FORGE.store(true, Ordering::Relaxed);
    let [_, word, master, program, rest @ ..] = arguments else { return None };
    if word != WORD {
        return None;
    }
    let master = master.to_str()?.parse().ok().and_then(Pid::from_raw)?;
    Some(guard(master, Command::new(program).args(rest)).unwrap_or(NOT_RUN))
}

/// Wraps the command in a guard; returns the command itself if this process is not forge.
#[must_use]
pub fn guarded_command(command: Command) -> Command {
    if !IS_FORGE.load(Ordering::Relaxed) {
        return command;
    }
    let mut guard = Command::new("/proc/self/exe");
    guard.arg(WORD).arg(process::id().to_string());
    guard.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => guard.env(name, value),
            None => guard.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        guard.current_dir(directory);
    }
    guard
}

/// Runs the command until it ends, `master` ends, or this process gets SIGTERM. Then ends all
/// processes that are left of it.
fn guard(master: Pid, command: &mut Command) -> io::Result<u8> {
    let (mut woken, waker) = UnixStream::pair()?;
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&stop))?;
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGCHLD] {
        signal_hook::low_level::pipe::register(signal, waker.try_clone()?)?;
    }
    // A process that loses its parent becomes a child of this process, so that it is found.
    set_child_subreaper(Some(getpid()))?;
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if getppid() != Some(master) {
        return Ok(NOT_RUN);
    }
    let mut child = command.spawn()?;
    let status = loop {
        if stop.load(Ordering::Relaxed) {
            break None;
        }
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        // Also returns for a signal that came before this call.
        woken.read_exact(&mut [0])?;
    };
    if status.is_none() {
        // Git removes its locks on SIGTERM.
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        woken.set_read_timeout(Some(GRACE))?;
        for _ in 0..SIGNALS {
            if child.try_wait()?.is_some() || woken.read_exact(&mut [0]).is_err() {
                break;
            }
        }
    }
    end_children();
    let code = status.and_then(|status| {
        status.code().or_else(|| status.signal().map(|signal| SIGNAL_CODE_BASE + signal))
    });
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_RUN))
}

/// Kills the children of this process until there are none. The children of a killed process become
/// children of this one.
fn end_children() {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => {
                children().into_iter().for_each(|child| {
                    let _ = kill_process(child, Signal::KILL);
                });
                let _ = wait(WaitOptions::empty());
            }
            Err(_) => return,
        }
    }
}

/// Returns the processes whose parent is this one.
fn children() -> Vec<Pid> {
    let own = process::id().to_string();
    let is_child = |name: &str| {
        // NUMBER (NAME) STATE PARENT ...; the name may hold anything.
        let stat = fs::read_to_string(format!("/proc/{name}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
        parent == Some(&own)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.parse::<u32>().is_ok() && is_child(name))
        .filter_map(|name| Pid::from_raw(name.parse().ok()?))
        .collect()
}

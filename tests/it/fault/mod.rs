//! Fault injection for the tests here: kills at system calls, signals, private file systems, and
//! property tests.

#![allow(clippy::print_stderr, reason = "a seed must be seen")]

mod disk;

pub(crate) use disk::{Breaker, Disk};
pub(crate) use forge_testkit::fault::{
    SeededNumbers, can_inject_faults, copy, copy_in_use, count, run,
};

use forge_testkit::skip::skipped;
use proptest::test_runner::{Config, RngSeed};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Makes a folder on a file system in memory, if there is one, for tests that do not depend on the
/// disk.
pub(crate) fn scratch_folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Runs a test of this binary with a variable, and kills it at its n-th call of this kind. Returns
/// whether there were that many.
pub(crate) fn killed_at(test: &str, variable: (&str, &Path), call: &str, nth: usize) -> bool {
    struck_at(test, variable, (call, "signal=KILL"), nth).0
}

/// Runs a test of this binary with a variable, and injects a fault at its n-th call of this kind.
/// Returns whether there were that many, and the output.
pub(crate) fn struck_at(
    test: &str,
    variable: (&str, &Path),
    (call, what): (&str, &str),
    nth: usize,
) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let output = Command::new("strace")
        .args(["-f", "-qq", "-o"])
        .arg(&trace)
        .args(["-e", &format!("trace={call}")])
        .args(["-e", &format!("inject={call}:{what}:when={nth}")])
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(variable.0, variable.1)
        .stderr(Stdio::null())
        .output();
    let stdout = String::from_utf8_lossy(&output.unwrap().stdout).into_owned();
    let trace = fs::read_to_string(&trace).unwrap();
    (trace.contains("killed by SIGKILL") || trace.contains("INJECTED"), stdout)
}

/// Sends a signal to a process of this test.
pub(crate) fn signal(name: &str, pid: u32) {
    assert!(run("sh", &["-c", &format!("kill -{name} {pid}")]), "cannot send {name} to {pid}");
}

/// The configuration of a property test: the number of cases that the environment variable gives, or
/// the usual one, and `FORGE_SEED` or a random seed. Prints both; `scripts/soak` counts properties
/// and their cases by that line.
pub(crate) fn law(name: &str, variable: &str, usual: u64) -> Config {
    let seed = count("FORGE_SEED", getrandom::u64().unwrap());
    let cases = u32::try_from(count(variable, usual)).unwrap_or(u32::MAX);
    eprintln!("law, {name}: {cases} cases, FORGE_SEED={seed}");
    // With one seed for all of them, properties with the same generators would all get the same
    // cases.
    let own = name.bytes().fold(seed, |mixed, byte| SeededNumbers(mixed ^ u64::from(byte)).next());
    let rng_seed = RngSeed::Fixed(own);
    Config { cases, rng_seed, failure_persistence: None, ..Config::default() }
}

/// A private file system, which is unmounted when it is dropped.
pub(crate) struct Mount<'a>(&'a Path);

impl<'a> Mount<'a> {
    /// Reports a skip and returns `None` if this is not allowed.
    pub(crate) fn new(test: &str, arguments: &[&str], place: &'a Path) -> Option<Self> {
        let place_text = place.to_str().unwrap();
        let mounted = run("mount", &[arguments, &[place_text]].concat());
        if !mounted {
            skipped(test, format_args!("cannot mount (needs root): mount {arguments:?}"));
        }
        mounted.then_some(Self(place))
    }

    pub(crate) fn remount(&self, options: &str) -> bool {
        run("mount", &["-o", &format!("remount,{options}"), self.0.to_str().unwrap()])
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let place = self.0.to_str().unwrap();
        if !run("umount", &[place]) && !run("umount", &["-l", place]) {
            eprintln!("cannot unmount {place}");
        }
    }
}

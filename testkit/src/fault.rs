//! Helpers for fault injection in several test binaries: programs, copies of a store, and seeded
//! random numbers.

#![expect(clippy::unwrap_used, reason = "a test fails if its fault cannot be made")]
#![expect(clippy::print_stderr, reason = "the seed is needed to repeat a failure")]

use crate::skip::skipped;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::Command;

/// Returns the number in an environment variable, which longer runs set; `usual` if it has none.
pub fn count(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Runs a program and returns whether it succeeded.
pub fn run(program: &str, arguments: &[&str]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

/// Copies a folder with its content.
///
/// # Panics
/// If the copy fails.
pub fn copy(from: &Path, to: &Path) {
    copy_ignoring(from, to, &|_| false);
}

/// Copies a folder like [`copy`] while other processes change it: skips a file that no longer
/// exists.
///
/// # Panics
/// If the copy fails.
pub fn copy_in_use(from: &Path, to: &Path) {
    copy_ignoring(from, to, &|error| error.kind() == ErrorKind::NotFound);
}

fn copy_ignoring(from: &Path, to: &Path, is_ignored: &dyn Fn(&io::Error) -> bool) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_ignoring(&entry.path(), &target, is_ignored);
        } else if let Err(error) = fs::copy(entry.path(), target) {
            assert!(is_ignored(&error), "{}: {error}", entry.path().display());
        }
    }
}

/// Returns whether faults can be injected into system calls here. If not, reports the test as
/// skipped.
pub fn can_inject_faults(test: &str) -> bool {
    let can = run("strace", &["-qq", "-e", "trace=none", "true"]);
    if !can {
        skipped(test, "no strace, or no right to use it");
    }
    can
}

/// Pseudo-random numbers from a seed (splitmix64).
#[derive(Debug)]
pub struct SeededNumbers(pub u64);

impl SeededNumbers {
    /// Creates numbers from the seed in `FORGE_SEED`, or from a random seed, and prints the seed.
    ///
    /// # Panics
    /// If the system has no random numbers.
    pub fn from_environment(test: &str) -> Self {
        let seed = count("FORGE_SEED", getrandom::u64().unwrap());
        eprintln!("{test}: FORGE_SEED={seed}");
        Self(seed)
    }

    /// Returns the next number.
    #[expect(clippy::should_implement_trait, reason = "there always is one")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns the next number modulo `end`, so that it is less than `end`.
    ///
    /// # Panics
    /// If `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

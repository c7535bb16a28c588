//! Finding the process that holds a lock on a file.

use serde::Serialize;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

/// Maximum number of bytes of the command line in a message.
const COMMAND_BYTES: usize = 80;
/// Number of attempts to find the holder.
const LOOKS: u32 = 8;

/// The process that holds a lock. Used for messages only, never for decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockHolder {
    /// The process id.
    pub pid: u32,
    /// The beginning of the command line.
    pub command: String,
}

impl LockHolder {
    /// Returns the holder of the lock on a file, where the system reports it.
    #[must_use]
    pub fn of(file: &File) -> Option<Self> {
        let metadata = file.metadata().ok()?;
        // If the list changes while it is read, a line may be missing.
        let look = |_| holder_in(&list_of_locks().ok()?, metadata.ino());
        let pid = (0..LOOKS).find_map(look)?;
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        Some(Self { pid, command: command_in(&line) })
    }
}

impl fmt::Display for LockHolder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "process {}", self.pid)?;
        // A process that has ended has no command line. Another one may have inherited its lock.
        if self.command.is_empty() { Ok(()) } else { write!(out, " ({})", self.command) }
    }
}

/// Returns the text of `/proc/locks`, in as few reads as possible: it may change between two reads.
fn list_of_locks() -> io::Result<String> {
    let mut file = File::open("/proc/locks")?;
    let (mut text, mut piece) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
            count => text.extend_from_slice(&piece[..count]),
        }
    }
}

/// Finds the process that holds the `flock` on an inode in the text of `/proc/locks`.
fn holder_in(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        // "1: FLOCK ADVISORY WRITE 4711 fe:00:1234 0 EOF"; a "->" as second word marks a waiter.
        let ["FLOCK", _, _, pid, place, ..] = words.get(1..)? else { return None };
        let found = place.rsplit(':').next()?.parse::<u64>().ok()?;
        (found == inode).then(|| pid.parse().ok()).flatten()
    })
}

/// Returns the beginning of a command line from `/proc/PID/cmdline`, without control characters.
fn command_in(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(COMMAND_BYTES)]);
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim_end_matches('\0').chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_by_inode_and_waiters_are_not() {
        let locks = "1: POSIX  ADVISORY  WRITE 10 fe:00:77 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 11 fe:00:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 12 fe:00:76 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 13 fe:00:77 0 EOF\n";
        assert_eq!(holder_in(locks, 77), Some(13));
        assert_eq!(holder_in(locks, 78), None);
        assert_eq!(holder_in("garbage\n\n1:", 77), None);
    }

    #[test]
    fn a_command_line_when_shown_has_no_control_characters() {
        assert_eq!(command_in(b"forge\0note\0a\x1b[2Jb\0"), "forge note a [2Jb");
        assert_eq!(command_in(&[b'x'; 500]).len(), COMMAND_BYTES);
    }

    /// The message about a lock that a process had left to its child was "process 7 () holds it".
    #[test]
    fn a_holder_without_a_command_line_is_shown_by_its_id() {
        let shown = |command: &str| LockHolder { pid: 7, command: command.to_owned() }.to_string();
        assert_eq!(
            (shown("forge tui"), shown("")),
            ("process 7 (forge tui)".into(), "process 7".into())
        );
    }
}

//! A disk whose power can be cut: ext4 on a loop device, shut down so that nothing more is written
//! to it.

use super::{Mount, run};
use forge_testkit::skip::skipped;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Waits for a line, shuts the file system down without flushing its log, and prints a line.
const SHUTDOWN: &str = "\
import fcntl, os, struct, sys
place = os.open(sys.argv[1], os.O_RDONLY)
print('ready', flush=True)
sys.stdin.readline()
fcntl.ioctl(place, 0x8004587d, struct.pack('I', 2))
print('down', flush=True)
";

/// A process that cuts the power on request.
pub(crate) struct Breaker(Child, BufReader<std::process::ChildStdout>);

impl Breaker {
    /// Creates one for the mounted file system; reports a skip and returns `None` if that is not
    /// possible.
    pub(crate) fn new(test: &str, place: &Path) -> Option<Self> {
        let begin = || {
            let mut child = Command::new("python3")
                .args(["-c", SHUTDOWN, place.to_str()?])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .ok()?;
            let mut out = BufReader::new(child.stdout.take()?);
            let mut line = String::new();
            out.read_line(&mut line).ok()?;
            (line == "ready\n").then_some(Self(child, out))
        };
        let breaker = begin();
        if breaker.is_none() {
            skipped(test, "no python3 for the ioctl");
        }
        breaker
    }

    /// Cuts the power: nothing is written to the disk any more.
    pub(crate) fn cut(mut self) {
        self.0.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        assert_eq!(line, "down\n", "the file system did not shut down");
        self.0.wait().unwrap();
    }
}

/// An ext4 image and its mount point.
pub(crate) struct Disk {
    image: PathBuf,
    pub(crate) place: PathBuf,
    _root: tempfile::TempDir,
}

impl Disk {
    /// Creates an image of this size; reports a skip and returns `None` without `mkfs.ext4`.
    pub(crate) fn new(test: &str, bytes: u64) -> Option<Self> {
        let root = tempfile::tempdir().unwrap();
        let (image, place) = (root.path().join("image"), root.path().join("place"));
        File::create(&image).unwrap().set_len(bytes).unwrap();
        fs::create_dir(&place).unwrap();
        if !run("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()]) {
            skipped(test, "no mkfs.ext4");
            return None;
        }
        Some(Self { image, place, _root: root })
    }

    /// Mounts the image until the result is dropped; reports a skip and returns `None` if that is
    /// not allowed.
    pub(crate) fn mount(&self, test: &str) -> Option<Mount<'_>> {
        Mount::new(test, &["-o", "loop", self.image.to_str().unwrap()], &self.place)
    }
}

//! Power cuts: ext4 on a loop device, shut down in the middle so that nothing more reaches it.

use super::child::{Role, spawn_writer};
use super::oracle::{Oracle, read_all};
use super::{Mount, Numbers, WAIT, add, count, run};
use forge_store::backend::journal::Journal;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;

const IMAGE_BYTES: u64 = 48 << 20;
const WRITERS: u64 = 2;

/// Waits for a line, then shuts the file system down without flushing its log, then says so.
const SHUTDOWN: &str = "\
import fcntl, os, struct, sys
place = os.open(sys.argv[1], os.O_RDONLY)
print('ready', flush=True)
sys.stdin.readline()
fcntl.ioctl(place, 0x8004587d, struct.pack('I', 2))
print('down', flush=True)
";

/// A process that cuts the power on request.
struct Breaker(Child, BufReader<std::process::ChildStdout>);

impl Breaker {
    fn new(place: &Path) -> Option<Self> {
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
    }

    fn cut(mut self) {
        self.0.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        assert_eq!(line, "down\n", "the file system did not shut down");
        self.0.wait().unwrap();
    }
}

/// An ext4 image and a place to mount it.
struct Disk {
    image: PathBuf,
    place: PathBuf,
    _root: tempfile::TempDir,
}

impl Disk {
    fn new(test: &str) -> Option<Self> {
        let root = tempfile::tempdir().unwrap();
        let (image, place) = (root.path().join("image"), root.path().join("place"));
        File::create(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
        fs::create_dir(&place).unwrap();
        if !run("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()]) {
            eprintln!("SKIPPED {test}: no mkfs.ext4");
            return None;
        }
        Some(Self { image, place, _root: root })
    }

    fn mount(&self, test: &str) -> Option<Mount<'_>> {
        Mount::new(test, &["-o", "loop", self.image.to_str().unwrap()], &self.place)
    }

    fn folder(&self) -> PathBuf {
        self.place.join("journal")
    }

    /// Lets writers run and cuts the power; `None` if that cannot be done here. What they said
    /// before the cut began is in the oracle; what they said later is in doubt.
    fn cut(
        &self,
        test: &str,
        role: Role,
        numbers: &mut Numbers,
        oracle: &mut Oracle,
        writers: std::ops::Range<u64>,
    ) -> Option<()> {
        let mount = self.mount(test)?;
        let Some(breaker) = Breaker::new(&self.place) else {
            eprintln!("SKIPPED {test}: no python3 for the ioctl");
            return None;
        };
        let (sender, lines) = channel();
        let mut running: Vec<Child> =
            writers.map(|writer| spawn_writer(role, &self.folder(), writer, &sender)).collect();
        drop(sender);
        let wanted = 1 + numbers.below(60);
        let mut heard = 0;
        while heard < wanted {
            let (writer, line) = lines.recv_timeout(WAIT).expect("the writers go on");
            heard += u64::from(oracle.hear(writer, &line));
        }
        // Half of the cuts hit killed writers, half hit running ones.
        let kill_first = numbers.below(2) == 0;
        let kill = |running: &mut Vec<Child>| {
            for mut child in running.drain(..) {
                let _ = child.kill();
                child.wait().unwrap();
            }
        };
        if kill_first {
            kill(&mut running);
        }
        while let Ok((writer, line)) = lines.try_recv() {
            oracle.hear(writer, &line);
        }
        breaker.cut();
        kill(&mut running);
        drop(mount);
        Some(())
    }
}

#[test]
fn acknowledged_records_survive_power_cuts() {
    let test = "power";
    let mut numbers = Numbers::announced(test);
    let cuts = count("FORGE_CUTS", 12);
    let Some(disk) = Disk::new(test) else { return };
    let Some(mount) = disk.mount(test) else { return };
    add(&Journal::create(&disk.folder()).unwrap(), 0, b"begin");
    drop(mount);
    let mut oracle = Oracle::default();
    for cut in 0..cuts {
        let writers = cut * WRITERS..(cut + 1) * WRITERS;
        if disk.cut(test, Role::Write, &mut numbers, &mut oracle, writers).is_none() {
            return;
        }
        let mount = disk.mount(test).expect("it could be mounted before");
        oracle.check(&Journal::open_read_only(&disk.folder()).unwrap());
        let journal = Journal::open(&disk.folder()).unwrap();
        let end = super::kill::end_of(&journal);
        // The next cut begins with a small journal.
        let begun = super::rotate(&journal, end, b"begin");
        oracle.check(&journal);
        forge_store::backend::Log::remove_before(&journal, begun.position).unwrap();
        oracle.forget_before(begun.position);
        drop(journal);
        drop(mount);
    }
    eprintln!("power: {cuts} cuts, {} acknowledged, 0 lost", oracle.heard);
}

/// Without syncs the same test must lose something, or it could not see a loss.
#[test]
fn records_whose_sync_was_left_out_are_lost_in_power_cuts() {
    let test = "power canary";
    let mut numbers = Numbers::announced(test);
    let Some(disk) = Disk::new(test) else { return };
    let (mut lost, cuts) = (0, 4);
    for _ in 0..cuts {
        let Some(mount) = disk.mount(test) else { return };
        let _ = fs::remove_dir_all(disk.folder());
        add(&Journal::create(&disk.folder()).unwrap(), 0, b"begin");
        assert!(run("sync", &["-f", disk.place.to_str().unwrap()]));
        drop(mount);
        let mut oracle = Oracle::default();
        if disk.cut(test, Role::WriteUnsynced, &mut numbers, &mut oracle, 0..WRITERS).is_none() {
            return;
        }
        let mount = disk.mount(test).expect("it could be mounted before");
        let read = Journal::open(&disk.folder()).and_then(|journal| read_all(&journal));
        lost += usize::from(read.map_or(true, |frames| oracle.lost(&frames) > 0));
        drop(mount);
    }
    eprintln!("power canary: {lost} of {cuts} cuts lost acknowledged records");
    assert!(lost > 0, "the power cuts lose nothing: they prove nothing");
}

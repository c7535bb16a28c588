//! Full disks with more or less free space: no acknowledged write is lost, reading continues, and
//! writing continues once there is space.

use super::child::Task;
use super::create;
use super::kill::IN_DOUBT;
use super::oracle::Oracle;
use super::work::Planted;
use crate::fault::{Mount, SeededNumbers, count};
use forge_store::store::{Options, Store, VerifyDepth};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::channel;

/// Fills a disk except for this many bytes.
fn fill(ballast: &Path, left: u64) {
    let mut file = File::create(ballast).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(left)).unwrap();
}

#[test]
fn a_full_disk_loses_nothing_and_writing_continues_once_there_is_space() {
    let test = "crash full disk";
    let mut numbers = SeededNumbers::from_environment(test);
    let mut refused = 0;
    let tries = count("FORGE_CRASH_FULL", 10);
    for number in 0..tries {
        let root = tempfile::tempdir().unwrap();
        let options = ["-t", "tmpfs", "-o", "size=16m", "tmpfs"];
        let Some(_mount) = Mount::new(test, &options, root.path()) else { return };
        let path = root.path().join(".forge");
        create(&path);
        let mut oracle = Oracle::default();
        let ballast = root.path().join("ballast");
        for task in 0..5 {
            if task == 2 {
                fill(&ballast, numbers.below(600_000));
            }
            let (sender, lines) = channel();
            let seed = numbers.next();
            let second = 1000 * task + 1;
            let task = Task { writer: 0, seed, second, planted: Planted::Nothing, once: true };
            let mut child = task.spawn(&path, &sender);
            drop(sender);
            for line in lines {
                refused += u64::from(line == "refused");
                oracle.hear(&line);
            }
            child.wait().unwrap();
        }
        let options = Options::default().read_only(true);
        let store = Store::open(&path, options).unwrap();
        for session in store.sessions().unwrap() {
            let session = store.session(&session.info.name).unwrap();
            session.state(&session.head().unwrap()).unwrap();
        }
        drop(store);
        std::fs::remove_file(&ballast).unwrap();
        let found = oracle.audit(&path, 100 * IN_DOUBT, VerifyDepth::ReadData);
        assert_eq!(found, Ok(()), "disk {number}");
    }
    eprintln!("{test}: {tries} disks, {refused} writes refused, 0 lost");
    assert!(refused > 0, "no disk was full");
}

//! Disks that are full, at several sizes: nothing that was said is lost, reading goes on, and so does writing once there
//! is room.

use super::child::Task;
use super::create;
use super::kill::IN_DOUBT;
use super::oracle::Oracle;
use super::work::Planted;
use crate::fault::{Mount, Numbers, count};
use forge_store::store::{Depth, Options, Store};
use std::sync::mpsc::channel;

#[test]
fn a_full_disk_loses_nothing_and_is_read_and_goes_on_with_room() {
    let test = "crash full disk";
    let mut numbers = Numbers::announced(test);
    let mut filled = 0;
    let tries = count("FORGE_CRASH_FULL", 10);
    for number in 0..tries {
        let root = tempfile::tempdir().unwrap();
        let size = format!("size={}k", 700 + numbers.below(6000));
        let options = ["-t", "tmpfs", "-o", &size, "tmpfs"];
        let Some(mount) = Mount::new(test, &options, root.path()) else { return };
        let path = root.path().join(".forge");
        create(&path);
        let mut oracle = Oracle::default();
        for second in 0..12 {
            let (sender, lines) = channel();
            let seed = numbers.next();
            let second = 1000 * second + 1;
            let task = Task { writer: 0, seed, second, planted: Planted::Nothing, once: true };
            let mut child = task.spawn(&path, &sender);
            drop(sender);
            for line in lines {
                oracle.hear(&line);
            }
            child.wait().unwrap();
        }
        // Full or not, what is there can be read.
        let options = Options { read_only: true, ..Options::default() };
        let store = Store::open(&path, options).unwrap_or_else(|error| panic!("{size}: {error}"));
        for session in store.sessions().unwrap() {
            let session = store.session(&session.info.name).unwrap();
            session.state(&session.head().unwrap()).unwrap();
        }
        drop(store);
        let ballast = root.path().join("ballast");
        filled += u64::from(std::fs::write(&ballast, vec![1; 600_000]).is_err());
        let _ = std::fs::remove_file(&ballast);
        assert!(mount.remount("size=64m"));
        let found = oracle.audit(&path, 100 * IN_DOUBT, Depth::ReadData);
        assert_eq!(found, Ok(()), "disk {number} of {size}");
    }
    eprintln!("crash full disk: {filled} of {tries} disks were full, 0 lost");
    assert!(filled > 0, "no disk was full");
}

//! Power cuts: ext4 on a loop device, shut down so that nothing more is written to it.

use super::child::{Role, spawn_writer};
use super::oracle::{Oracle, read_all};
use super::{SeededNumbers, WAIT, add, count, run};
use crate::fault::{Breaker, Disk};
use forge_store::backend::journal::Journal;
use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc::channel;

const IMAGE_BYTES: u64 = 48 << 20;
const WRITERS: u64 = 2;

fn folder(disk: &Disk) -> PathBuf {
    disk.place.join("journal")
}

/// Lets writers run and cuts the power; `None` if that is not possible here. Acknowledgements
/// before the beginning of the cut go to the oracle; later ones are in doubt.
fn cut(
    disk: &Disk,
    test: &str,
    role: Role,
    numbers: &mut SeededNumbers,
    oracle: &mut Oracle,
    writers: std::ops::Range<u64>,
) -> Option<()> {
    let mount = disk.mount(test)?;
    let breaker = Breaker::new(test, &disk.place)?;
    let (sender, lines) = channel();
    let mut running: Vec<Child> =
        writers.map(|writer| spawn_writer(role, &folder(disk), writer, &sender)).collect();
    drop(sender);
    let wanted = 1 + numbers.below(60);
    let mut heard = 0;
    while heard < wanted {
        let (writer, line) = lines.recv_timeout(WAIT).expect("the writers go on");
        heard += u64::from(oracle.hear(writer, &line));
    }
    // Half of the cuts happen after the writers are killed, half while they run.
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

#[test]
fn acknowledged_records_survive_power_cuts() {
    let test = "power";
    let mut numbers = SeededNumbers::from_environment(test);
    let cuts = count("FORGE_CUTS", 12);
    let Some(disk) = Disk::new(test, IMAGE_BYTES) else { return };
    let Some(mount) = disk.mount(test) else { return };
    add(&Journal::create(&folder(&disk)).unwrap(), 0, b"begin");
    drop(mount);
    let mut oracle = Oracle::default();
    for number in 0..cuts {
        let writers = number * WRITERS..(number + 1) * WRITERS;
        if cut(&disk, test, Role::Write, &mut numbers, &mut oracle, writers).is_none() {
            return;
        }
        let mount = disk.mount(test).expect("it could be mounted before");
        oracle.check(&Journal::open_read_only(&folder(&disk)).unwrap());
        let journal = Journal::open(&folder(&disk)).unwrap();
        let end = super::kill::end_of(&journal);
        // The next cut starts with a small journal.
        let begun = super::rotate(&journal, end, b"begin");
        oracle.check(&journal);
        forge_store::backend::WriteAheadLog::remove_before(&journal, begun.position).unwrap();
        oracle.forget_before(begun.position);
        drop(journal);
        drop(mount);
    }
    eprintln!("power: {cuts} cuts, {} acknowledged, 0 lost", oracle.heard);
}

/// Without syncs the same test must find a loss, or it could not detect one.
#[test]
fn records_whose_sync_was_left_out_are_lost_in_power_cuts() {
    let test = "power canary";
    let mut numbers = SeededNumbers::from_environment(test);
    let Some(disk) = Disk::new(test, IMAGE_BYTES) else { return };
    let (mut lost, cuts) = (0, 4);
    for _ in 0..cuts {
        let Some(mount) = disk.mount(test) else { return };
        let _ = fs::remove_dir_all(folder(&disk));
        add(&Journal::create(&folder(&disk)).unwrap(), 0, b"begin");
        assert!(run("sync", &["-f", disk.place.to_str().unwrap()]));
        drop(mount);
        let mut oracle = Oracle::default();
        if cut(&disk, test, Role::WriteUnsynced, &mut numbers, &mut oracle, 0..WRITERS).is_none() {
            return;
        }
        let mount = disk.mount(test).expect("it could be mounted before");
        let read = Journal::open(&folder(&disk)).and_then(|journal| read_all(&journal));
        lost += usize::from(read.map_or(true, |frames| oracle.lost(&frames) > 0));
        drop(mount);
    }
    eprintln!("power canary: {lost} of {cuts} cuts lost acknowledged records");
    assert!(lost > 0, "no cut lost records, so the other test proves nothing");
}

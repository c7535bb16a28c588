//! Power cuts: ext4 on a loop device, shut down in the middle.

use super::child::Task;
use super::kill::{kill_group, listen};
use super::oracle::Oracle;
use super::work::Planted;
use super::{WAIT, create};
use crate::fault::{Breaker, Disk, Numbers, can_strike, count, run};
use forge_store::store::Depth;
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc::channel;

const IMAGE_BYTES: u64 = 192 << 20;
const WRITERS: u64 = 2;
/// A new store is begun after so many cuts.
const CUTS_A_STORE: u64 = 8;

fn folder(disk: &Disk) -> PathBuf {
    disk.place.join(".forge")
}

/// Begins a store, all of it on the disk.
fn begin(test: &str, disk: &Disk) -> Option<()> {
    let mount = disk.mount(test)?;
    let _ = std::fs::remove_dir_all(folder(disk));
    create(&folder(disk));
    assert!(run("sync", &["-f", disk.place.to_str().unwrap()]));
    drop(mount);
    Some(())
}

/// Lets writers run and cuts the power; `None` if that cannot be done here. What they said before the cut began is in the
/// oracle; what they said later is in doubt. `lying`: calls that sync do nothing.
fn cut(
    disk: &Disk,
    test: &str,
    lying: bool,
    second: u64,
    numbers: &mut Numbers,
    oracle: &mut Oracle,
) -> Option<()> {
    let mount = disk.mount(test)?;
    let breaker = Breaker::new(test, &disk.place)?;
    let (sender, lines) = channel();
    let lies = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"];
    let lies = lies.into_iter().chain(["-e", "inject=fsync,fdatasync:retval=0"]);
    let lies: Vec<&str> = lies.collect();
    let mut running: Vec<Child> = (0..WRITERS)
        .map(|writer| {
            let seed = numbers.next();
            let task = Task { writer, seed, second, planted: Planted::Nothing, once: false };
            match lying {
                true => task.traced(&lies, &folder(disk), &sender),
                false => task.spawn(&folder(disk), &sender),
            }
        })
        .collect();
    drop(sender);
    assert!(listen(&lines, 1 + numbers.below(30), oracle), "a writer stopped by itself");
    let mut kill_all = || running.drain(..).for_each(|mut child| kill_group(&mut child));
    // Half of the cuts hit killed writers, half hit running ones.
    if numbers.below(2) == 0 {
        kill_all();
        // Without anybody to speak the lines end: all of them count.
        while let Ok(line) = lines.recv_timeout(WAIT) {
            oracle.hear(&line);
        }
    } else {
        while let Ok(line) = lines.try_recv() {
            oracle.hear(&line);
        }
    }
    breaker.cut();
    kill_all();
    // Of what is in doubt this much counts: what a pruning that was begun may have folded.
    for line in lines.iter().filter(|line| line.starts_with("pruning")) {
        oracle.hear(&line);
    }
    drop(mount);
    Some(())
}

#[test]
fn what_was_said_before_a_power_cut_is_there_whatever_was_going_on() {
    let test = "crash power";
    let mut numbers = Numbers::announced(test);
    let cuts = count("FORGE_CRASH_CUTS", 60);
    let Some(disk) = Disk::new(test, IMAGE_BYTES) else { return };
    let mut heard = 0;
    for first in (0..cuts).step_by(CUTS_A_STORE as usize) {
        let mut oracle = Oracle::default();
        if begin(test, &disk).is_none() {
            return;
        }
        for number in first..(first + CUTS_A_STORE).min(cuts) {
            let second = 1000 * (number - first) + 1;
            if cut(&disk, test, false, second, &mut numbers, &mut oracle).is_none() {
                return;
            }
            let mount = disk.mount(test).expect("it could be mounted before");
            let found = oracle.audit(&folder(&disk), u64::MAX, Depth::Quick);
            assert_eq!(found, Ok(()), "cut {number}");
            drop(mount);
        }
        heard += oracle.heard;
    }
    eprintln!("crash power: {cuts} cuts, {heard} acknowledged, 0 lost");
}

/// On a disk that lies about its syncs the same test must lose something, or it could not see a loss.
#[test]
fn a_disk_that_lies_loses_something_in_power_cuts() {
    let test = "crash power canary";
    if !can_strike(test) {
        return;
    }
    let mut numbers = Numbers::announced(test);
    let Some(disk) = Disk::new(test, IMAGE_BYTES) else { return };
    let (mut lost, cuts) = (0, 4);
    for _ in 0..cuts {
        let mut oracle = Oracle::default();
        if begin(test, &disk).is_none()
            || cut(&disk, test, true, 1, &mut numbers, &mut oracle).is_none()
        {
            return;
        }
        let mount = disk.mount(test).expect("it could be mounted before");
        let found = oracle.audit(&folder(&disk), u64::MAX, Depth::Quick);
        lost += usize::from(found.is_err());
        drop(mount);
    }
    eprintln!("crash power canary: {lost} of {cuts} cuts on a lying disk lost something");
    assert!(lost > 0, "the power cuts lose nothing: they prove nothing");
}

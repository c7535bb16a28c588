//! Power cuts: ext4 on a loop device, shut down in the middle.

use super::child::Task;
use super::kill::{kill_group, listen};
use super::oracle::Oracle;
use super::work::Planted;
use super::{WAIT, create, open};
use crate::fault::{Breaker, Disk, SeededNumbers, can_inject_faults, copy_in_use, count, run};
use forge_store::store::{SealStatus, VerifyDepth};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc::channel;

pub(super) const IMAGE_BYTES: u64 = 192 << 20;
const WRITERS: u64 = 2;
/// A new store is begun after so many cuts.
const CUTS_A_STORE: u64 = 8;

pub(super) fn folder(disk: &Disk) -> PathBuf {
    disk.place.join(".forge")
}

/// Where the key and the witness of a store lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Keys {
    /// It has none.
    None,
    /// On its disk: a cut may set the witness back behind the journal.
    Beside,
    /// On one that keeps its power: all that the witness was told until the cut is in it after that, so that it would
    /// lead if it were told anything before that is durable.
    Elsewhere,
}

/// The folder of keys on the disk that keeps its power, and what it held when the cut began.
fn elsewhere(disk: &Disk) -> [PathBuf; 2] {
    ["keyring", "keyring.then"].map(|name| disk.place.with_file_name(name))
}

/// Begins a store, all of it on the disk but for its keys.
pub(super) fn begin(test: &str, disk: &Disk, keys: Keys) -> Option<()> {
    let mount = disk.mount(test)?;
    let (keyring, [elsewhere, _]) = (disk.place.join("keyring"), elsewhere(disk));
    for earlier in [&folder(disk), &keyring, &elsewhere] {
        let _ = std::fs::remove_dir_all(earlier);
    }
    match keys {
        Keys::None => {}
        Keys::Beside => std::fs::create_dir(&keyring).unwrap(),
        Keys::Elsewhere => {
            std::fs::create_dir(&elsewhere).unwrap();
            symlink(&elsewhere, &keyring).unwrap();
        }
    }
    create(&folder(disk));
    let wanted = if keys == Keys::None { SealStatus::Unsealed } else { SealStatus::Sealed };
    assert_eq!(open(&folder(disk)).unwrap().seal_status(), wanted);
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
    numbers: &mut SeededNumbers,
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
    let [keys, then] = elsewhere(disk);
    if keys.exists() {
        copy_in_use(&keys, &then);
    }
    breaker.cut();
    kill_all();
    // A sync that is under way while the file system goes down may say that it is done and be not: a process that has
    // no power hears nothing of it, and tells no witness.
    if keys.exists() {
        std::fs::remove_dir_all(&keys).unwrap();
        std::fs::rename(&then, &keys).unwrap();
    }
    // Of what is in doubt this much counts: what a pruning that was begun may have folded.
    for line in lines.iter().filter(|line| line.starts_with("pruning")) {
        oracle.hear(&line);
    }
    drop(mount);
    Some(())
}

/// Cuts the power so many times; each store has its keys at the next of these places.
fn cuts(test: &str, cuts: u64, keys: &[Keys]) {
    let mut numbers = SeededNumbers::from_environment(test);
    let Some(disk) = Disk::new(test, IMAGE_BYTES) else { return };
    let mut heard = 0;
    let stores = (0..cuts).step_by(CUTS_A_STORE as usize).zip(keys.iter().cycle());
    for (first, keys) in stores {
        let mut oracle = Oracle::default();
        if begin(test, &disk, *keys).is_none() {
            return;
        }
        for number in first..(first + CUTS_A_STORE).min(cuts) {
            let second = 1000 * (number - first) + 1;
            if cut(&disk, test, false, second, &mut numbers, &mut oracle).is_none() {
                return;
            }
            let mount = disk.mount(test).expect("it could be mounted before");
            let found = oracle.audit(&folder(&disk), u64::MAX, VerifyDepth::Quick);
            assert_eq!(found, Ok(()), "cut {number}, keys: {keys:?}");
            drop(mount);
        }
        heard += oracle.heard;
    }
    eprintln!("{test}: {cuts} cuts, {heard} acknowledged, 0 lost");
}

/// Of all power cuts those of stores with seals, or without.
fn half() -> u64 {
    count("FORGE_CRASH_CUTS", 150).div_ceil(2)
}

#[test]
fn what_was_said_before_a_power_cut_is_there_whatever_was_going_on() {
    cuts("crash power", half(), &[Keys::None]);
}

/// The audit opens the store with its key and witness: a witness that leads would have it refused.
#[test]
fn what_was_said_before_a_power_cut_is_there_in_a_sealed_store_too_and_its_witness_does_not_lead() {
    cuts("crash power, sealed", half(), &[Keys::Elsewhere, Keys::Beside]);
}

/// On a disk that lies about its syncs the same test must lose something, or it could not see a loss; and a witness elsewhere must
/// say that more was there.
#[test]
fn a_disk_that_lies_loses_something_in_power_cuts_and_a_witness_elsewhere_says_so() {
    let test = "crash power canary";
    if !can_inject_faults(test) {
        return;
    }
    let mut numbers = SeededNumbers::from_environment(test);
    let Some(disk) = Disk::new(test, IMAGE_BYTES) else { return };
    const CUTS: usize = 4;
    let (mut lost, mut told) = (0, 0);
    for keys in [[Keys::None; CUTS], [Keys::Elsewhere; CUTS]].concat() {
        let mut oracle = Oracle::default();
        if begin(test, &disk, keys).is_none()
            || cut(&disk, test, true, 1, &mut numbers, &mut oracle).is_none()
        {
            return;
        }
        let mount = disk.mount(test).expect("it could be mounted before");
        let found = oracle.audit(&folder(&disk), u64::MAX, VerifyDepth::Quick);
        match keys {
            Keys::None => lost += usize::from(found.is_err()),
            _ => told += usize::from(found.is_err_and(|said| said.contains("its witness saw"))),
        }
        drop(mount);
    }
    eprintln!(
        "{test}: {lost} of {CUTS} cuts on a lying disk lost something, {told} of {CUTS} were told by the witness"
    );
    assert!(lost > 0, "the power cuts lose nothing: they prove nothing");
    assert!(told > 0, "the witness says nothing: that it did not lead proves nothing");
}

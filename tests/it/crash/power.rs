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
/// A new store is created after this many cuts.
const CUTS_A_STORE: u64 = 8;

pub(super) fn folder(disk: &Disk) -> PathBuf {
    disk.place.join(".forge")
}

/// Where the key and the witness of a store are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Keys {
    /// The store has none.
    None,
    /// On the store's disk: a cut may reset the witness to a state older than the journal.
    Beside,
    /// On a disk that keeps its power: it holds everything that the witness recorded before the
    /// cut, so that the witness would be ahead if it recorded anything before that is durable.
    Elsewhere,
}

/// The folder of keys on the disk that keeps its power, and a copy of its content at the beginning
/// of the cut.
fn elsewhere(disk: &Disk) -> [PathBuf; 2] {
    ["keyring", "keyring.then"].map(|name| disk.place.with_file_name(name))
}

/// Creates a store, completely on the disk except for its keys.
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

/// Lets writers run and cuts the power; `None` if that is not possible here. Acknowledgements
/// before the beginning of the cut go to the oracle; later ones are in doubt. `lying`: sync calls
/// do nothing.
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
    // Half of the cuts happen after the writers are killed, half while they run.
    if numbers.below(2) == 0 {
        kill_all();
        // When no writer is left, the lines end: all of them count.
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
    // A sync during the shutdown of the file system may report success without being durable. A
    // process without power would not see that result, and would not update a witness.
    if keys.exists() {
        std::fs::remove_dir_all(&keys).unwrap();
        std::fs::rename(&then, &keys).unwrap();
    }
    // Of the later lines, only the start of a pruning counts, because it may have folded revisions.
    for line in lines.iter().filter(|line| line.starts_with("pruning")) {
        oracle.hear(&line);
    }
    drop(mount);
    Some(())
}

/// Cuts the power this many times; the stores have their keys at these places in turn.
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

/// The number of power cuts for stores with seals, or without.
fn half() -> u64 {
    count("FORGE_CRASH_CUTS", 150).div_ceil(2)
}

#[test]
fn acknowledged_data_survives_a_power_cut() {
    cuts("crash power", half(), &[Keys::None]);
}

/// The audit opens the store with its key and witness, and would be refused if the witness were
/// ahead.
#[test]
fn acknowledged_data_survives_a_power_cut_in_a_sealed_store_and_its_witness_is_not_ahead() {
    cuts("crash power, sealed", half(), &[Keys::Elsewhere, Keys::Beside]);
}

/// On a disk that ignores syncs the same test must find a loss, or it could not detect one; and a
/// witness elsewhere must report that records are missing.
#[test]
fn a_disk_that_ignores_syncs_loses_data_and_a_witness_elsewhere_reports_it() {
    let test = "crash power canary";
    if !can_inject_faults(test) {
        return;
    }
    let mut numbers = SeededNumbers::from_environment(test);
    let Some(disk) = Disk::new(test, IMAGE_BYTES) else { return };
    const CUTS: usize = 4;
    let (mut lost, mut noticed) = (0, 0);
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
            _ => {
                let is_noticed = found.is_err_and(|error| error.contains("its witness saw"));
                noticed += usize::from(is_noticed);
            }
        }
        drop(mount);
    }
    eprintln!(
        "{test}: {lost} of {CUTS} cuts on a lying disk lost something, {noticed} of {CUTS} were noticed by the witness"
    );
    assert!(lost > 0, "no cut lost data, so the other tests prove nothing");
    assert!(noticed > 0, "the witness reported nothing, so the other tests of it prove nothing");
}

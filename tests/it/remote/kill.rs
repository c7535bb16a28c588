//! kill -9 at system calls that change a file, while a pull joins what both sides wrote.
#![allow(clippy::print_stderr, reason = "a skipped test must be seen")]

use super::{Machine, SECRET};
use crate::bundle::{act, note};
use crate::fault::{can_inject_faults, copy, killed_at};
use forge_store::store::remote::{Depot, FolderDepot, Remote};
use forge_store::store::{NewSession, Options, Store, VerifyDepth, VerifyOutcome};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FOLDER: &str = "FORGE_JOIN_FOLDER";

/// The machine whose store and remote are in a folder.
fn machine(folder: &Path) -> Machine {
    let depot: Arc<dyn Depot> = Arc::new(FolderDepot::open(&folder.join("remote")).unwrap());
    let store = Store::open(&folder.join("store"), Options::default()).unwrap();
    Machine { store, remote: Remote::open(depot, &SECRET).unwrap() }
}

/// Not a test of its own: the body of the processes that are killed.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let machine = machine(Path::new(&folder));
    machine.pull().unwrap();
    machine.store.maintain(0).unwrap();
}

/// A machine that has a session in which it and another one wrote something.
fn diverged(folder: &Path) {
    fs::create_dir_all(folder.join("remote")).unwrap();
    let depot: Arc<dyn Depot> = Arc::new(FolderDepot::open(&folder.join("remote")).unwrap());
    Remote::create(Arc::clone(&depot), &SECRET).unwrap();
    let other = Machine::new(&depot);
    other.store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    note(&other.session(), "A", "first");
    other.push().unwrap();
    drop(Store::create(&folder.join("store"), Options::default()).unwrap());
    let own = machine(folder);
    own.pull().unwrap();
    for number in 0..4 {
        note(&own.session(), &format!("O{number}"), "here");
        note(&other.session(), &format!("T{number}"), "there");
    }
    own.store.maintain(0).unwrap();
    note(&own.session(), "O4", "not indexed");
    other.push().unwrap();
}

/// The ids of the claims, in the order in which they were added.
fn claims(machine: &Machine) -> Vec<String> {
    let session = machine.session();
    let last = session.summary().unwrap().last_sequence;
    let point = |number| session.at_sequence(number).unwrap();
    let changed = (1..=last).flat_map(|number| {
        let changes = session.state(&point(number)).unwrap().changes_of(number).unwrap();
        changes.into_iter().map(|change| change.key.id)
    });
    changed.collect()
}

#[test]
fn a_join_killed_anywhere_happened_whole_or_not_at_all() {
    if !can_inject_faults("killed while joining") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first");
    diverged(&first);
    let own = ["A", "O0", "O1", "O2", "O3", "O4"];
    let joined = ["A", "T0", "T1", "T2", "T3", "O0", "O1", "O2", "O3", "O4"];
    assert_eq!(claims(&machine(&first)), own);
    let (mut struck, mut before, mut after) = (0, 0, 0);
    for call in ["pwrite64", "fdatasync", "rename", "unlink"] {
        for nth in [1, 2, 3, 5, 8, 12, 16, 20, 24, 28, 40] {
            let context = format!("{call}, {nth}");
            let place: PathBuf = folder.path().join(format!("{call}-{nth}"));
            copy(&first, &place);
            let killed = killed_at("remote::kill::child", (FOLDER, &place), call, nth);
            let path = place.join("store");
            let check = || {
                let found = Store::verify(&path, VerifyDepth::ReadData, crate::bundle::NOW, None);
                let found = found.unwrap();
                assert_eq!(found.outcome, VerifyOutcome::Clean, "{context}: {:?}", found.findings);
            };
            check();
            let known = claims(&machine(&place));
            assert!(known == own || known == joined, "{context}: {known:?}");
            before += usize::from(known == own);
            after += usize::from(known == joined);
            // What is left of an unfinished join may also be in the index.
            machine(&place).store.maintain(0).unwrap();
            check();
            let again = machine(&place);
            again.pull().expect(&context);
            assert_eq!(claims(&again), joined, "{context}");
            assert_eq!(again.push().expect(&context).operations, 5, "{context}");
            drop(again);
            check();
            fs::remove_dir_all(&place).unwrap();
            if !killed {
                break;
            }
            struck += 1;
        }
    }
    eprintln!("killed while joining: {struck} times");
    assert!(struck > 10 && before > 3 && after > 3, "{struck} kills, {before} before the end");
}

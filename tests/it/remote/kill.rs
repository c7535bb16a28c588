//! kill -9 at system calls that change a file, while a store exchanges a session with a remote.
#![allow(clippy::print_stderr, reason = "a skipped test must be seen")]

use super::{Machine, SECRET};
use crate::bundle::law::session_contents;
use crate::bundle::{act, note};
use crate::fault::{can_inject_faults, copy, killed_at};
use forge_store::redact::KnownSecrets;
use forge_store::store::remote::{Depot, FinishedPurges, FolderDepot, Remote};
use forge_store::store::{
    NewSession, Options, Store, UnfinishedImport, VerifyDepth, VerifyOutcome,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FOLDER: &str = "FORGE_REMOTE_FOLDER";
/// What is purged.
const WORD: &str = "correct horse battery staple";

fn depot(folder: &Path) -> Arc<dyn Depot> {
    Arc::new(FolderDepot::open(&folder.join("remote")).unwrap())
}

/// The machine whose store and remote are in a folder.
fn machine(folder: &Path) -> Machine {
    let store = Store::open(&folder.join("store"), Options::default()).unwrap();
    Machine { store, remote: Remote::open(depot(folder), &SECRET).unwrap() }
}

fn purge(machine: &Machine) {
    let known = KnownSecrets::new([WORD]).unwrap();
    machine.store.purge(&act("purge"), &known, None, &|_, _| None, &|_| ()).unwrap();
}

fn finish_purges(machine: &Machine) -> FinishedPurges {
    let (finished, done) = machine.store.finish_purges(&act("finish"), &machine.remote);
    done.unwrap();
    finished
}

/// Not a test: the body of the processes that are killed.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let folder = Path::new(&folder);
    let machine = machine(folder);
    match fs::read_to_string(folder.join("work")).unwrap().as_str() {
        "pull" => drop(machine.pull().unwrap()),
        "push" => drop(machine.push().unwrap()),
        "purge" => {
            purge(&machine);
            finish_purges(&machine);
        }
        other => panic!("{other}"),
    }
    machine.store.maintain(0).unwrap();
}

fn check_whole(folder: &Path, context: &str) {
    let path = folder.join("store");
    let found = Store::verify(&path, VerifyDepth::ReadData, crate::bundle::NOW, None).unwrap();
    assert_eq!(found.outcome, VerifyOutcome::Clean, "{context}: {:?}", found.findings);
}

/// Kills a process that does this work in copies of a folder, at many calls, and checks what is left
/// of each.
fn killed_anywhere(what: &str, (first, work): (&Path, &str), check: &mut dyn FnMut(&Path, &str)) {
    fs::write(first.join("work"), work).unwrap();
    let mut struck = 0;
    for call in ["pwrite64", "fdatasync", "rename", "renameat", "fsync", "unlink", "unlinkat"] {
        for nth in [1, 2, 3, 5, 8, 12, 16, 20, 24, 28, 40] {
            let context = format!("{call}, {nth}");
            let place: PathBuf = first.with_file_name(format!("{call}-{nth}"));
            copy(first, &place);
            let killed = killed_at("remote::kill::child", (FOLDER, &place), call, nth);
            check_whole(&place, &context);
            check(&place, &context);
            check_whole(&place, &context);
            fs::remove_dir_all(&place).unwrap();
            if !killed {
                break;
            }
            struck += 1;
        }
    }
    eprintln!("killed while {what}: {struck} times");
    assert!(struck > 10, "{struck} kills");
}

/// A remote with a session that has a claim, and a machine that made it.
fn begun(folder: &Path) -> Machine {
    fs::create_dir_all(folder.join("remote")).unwrap();
    Remote::create(depot(folder), &SECRET).unwrap();
    let other = Machine::new(&depot(folder));
    other.store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    note(&other.session(), "A", "first");
    other.push().unwrap();
    drop(Store::create(&folder.join("store"), Options::default()).unwrap());
    other
}

/// A machine that has a session in which it and another one wrote something.
fn diverged(folder: &Path) {
    let other = begun(folder);
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
    let moment = |number| session.at_sequence(number).unwrap();
    let changed = (1..=last).flat_map(|number| {
        let changes = session.state(&moment(number)).unwrap().changes_of(number).unwrap();
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
    let (mut before, mut after) = (0, 0);
    killed_anywhere("joining", (&first, "pull"), &mut |place, context| {
        let known = claims(&machine(place));
        assert!(known == own || known == joined, "{context}: {known:?}");
        before += usize::from(known == own);
        after += usize::from(known == joined);
        // What is left of an unfinished join may also be in the index.
        machine(place).store.maintain(0).unwrap();
        check_whole(place, context);
        let again = machine(place);
        again.pull().expect(context);
        assert_eq!(claims(&again), joined, "{context}");
        assert_eq!(again.push().expect(context).operations, 5, "{context}");
    });
    assert!(before > 3 && after > 3, "{before} before the end, {after} after it");
}

/// More than fits into a ref.
fn long_text() -> String {
    let mut noise = vec![0; 30_000];
    blake3::Hasher::new().finalize_xof().fill(&mut noise);
    format!("{noise:?}")
}

#[test]
fn a_push_killed_anywhere_pushed_all_or_nothing_and_is_finished_by_the_next_one() {
    if !can_inject_faults("killed while pushing") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first");
    drop(begun(&first));
    let own = machine(&first);
    own.pull().unwrap();
    note(&own.session(), "B", &long_text());
    note(&own.session(), "C", "more");
    drop(own);
    let (mut before, mut after) = (0, 0);
    killed_anywhere("pushing", (&first, "push"), &mut |place, context| {
        let other = Machine::new(&depot(place));
        other.pull().expect(context);
        let there = claims(&other);
        assert!(there == ["A"] || there == ["A", "B", "C"], "{context}: {there:?}");
        before += usize::from(there.len() == 1);
        after += usize::from(there.len() == 3);
        let pushed = machine(place).push().expect(context);
        assert_eq!((pushed.version, pushed.pulled), (2, 0), "{context}");
        other.pull().expect(context);
        assert_eq!(claims(&other), ["A", "B", "C"], "{context}");
    });
    assert!(before > 0 && after > 0, "{before} before the end, {after} after it");
}

#[test]
fn a_first_pull_killed_anywhere_is_finished_by_the_next_one() {
    if !can_inject_faults("killed while cloning") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first");
    let other = begun(&first);
    note(&other.session(), "B", &long_text());
    other.push().unwrap();
    note(&other.session(), "C", "more");
    other.push().unwrap();
    let mut named = 0;
    killed_anywhere("cloning", (&first, "pull"), &mut |place, context| {
        let own = machine(place);
        let unfinished = own.store.unfinished_imports().unwrap();
        assert!(unfinished.is_empty() || unfinished == [of_a_pull()], "{context}: {unfinished:?}");
        named += unfinished.len();
        own.pull().expect(context);
        assert_eq!(own.store.unfinished_imports().unwrap(), [], "{context}");
        assert_eq!(claims(&own), ["A", "B", "C"], "{context}");
        assert_eq!(own.push().expect(context).operations, 0, "{context}");
    });
    assert!(named > 0, "unfinished pulls are never there");
}

fn of_a_pull() -> UnfinishedImport {
    UnfinishedImport { session: "s".to_owned(), source: "pull:".to_owned() }
}

/// A pull was killed, and its packs were then combined or rewritten on the remote: the next pull
/// read other packs, and the session was reported as unfinished for ever.
#[test]
fn a_pull_ends_what_an_interrupted_pull_of_other_packs_left() {
    let folder = tempfile::tempdir().unwrap();
    let other = begun(folder.path());
    let own = machine(folder.path());
    own.pull().unwrap();
    let id = own.session().summary().unwrap().info.id;
    let marks = folder.path().join("store/bundles");
    fs::write(marks.join("0".repeat(64)), format!("\n{id}\n")).unwrap();
    fs::write(marks.join("1".repeat(64)), format!("a.bundle\n{id}\n")).unwrap();
    let of_a_file =
        UnfinishedImport { session: "s".to_owned(), source: "bundle:a.bundle".to_owned() };
    assert_eq!(own.store.unfinished_imports().unwrap(), [of_a_file.clone(), of_a_pull()]);
    note(&other.session(), "B", "more");
    other.push().unwrap();
    own.pull().unwrap();
    assert_eq!(own.store.unfinished_imports().unwrap(), [of_a_file]);
}

#[test]
fn a_purge_killed_anywhere_is_finished_by_the_next_contact() {
    if !can_inject_faults("killed while purging") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first");
    let other = begun(&first);
    note(&other.session(), "B", &format!("{WORD} {}", long_text()));
    other.push().unwrap();
    machine(&first).pull().unwrap();
    let mut finished = 0;
    killed_anywhere("purging", (&first, "purge"), &mut |place, context| {
        let own = machine(place);
        finish_purges(&own);
        // If the kill came before the purge was noted, nothing has happened, and the command is
        // given again.
        if session_contents(&own.store).contains(WORD) {
            purge(&own);
            finish_purges(&own);
        } else {
            finished += 1;
        }
        let known = KnownSecrets::new([WORD]).unwrap();
        let found = own.store.purge_preview(&act("see"), &known, &|_, _| None, &|_| ()).unwrap();
        assert!(found.places.is_empty() && found.searched.found.is_empty(), "{context}");
        assert_eq!(finish_purges(&own), FinishedPurges::default(), "{context}");
        let new = Machine::new(&depot(place));
        new.pull().expect(context);
        assert!(!session_contents(&new.store).contains(WORD), "{context}");
        assert!(new.remote.take_purge_activity().replaced.is_empty(), "{context}");
    });
    assert!(finished > 3, "{finished} were finished by the next contact");
}

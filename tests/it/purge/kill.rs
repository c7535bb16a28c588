//! A kill or an error at system calls that change or read a file, while a store is purged. The
//! store is sound, and equals the store before or after the purge. If the purge reported success,
//! the secret is nowhere, and the next purge finishes an interrupted one.
#![allow(clippy::print_stderr, reason = "a skipped test must be seen")]
#![allow(clippy::print_stdout, reason = "a child process reports to its test")]

use super::{
    MASK, SECRET, comparable, in_files, known, planted, resolve, store_contents, time, try_purge,
};
use crate::bundle::law::same;
use crate::fault::{can_inject_faults, copy, count, struck_at};
use forge_store::store::{Options, Store, VerifyDepth, VerifyOutcome};
use std::path::{Path, PathBuf};

const FOLDER: &str = "FORGE_PURGE_FOLDER";
const DONE: &str = "it is gone";

/// A folder with a store and, if that is encrypted, a keyring.
struct Place(PathBuf);

impl Place {
    fn path(&self) -> PathBuf {
        self.0.join("store")
    }

    fn keyring(&self) -> Option<PathBuf> {
        Some(self.0.join("keyring")).filter(|keyring| keyring.exists())
    }

    fn options(&self) -> Options {
        Options::default().keyring(self.keyring())
    }

    fn open(&self) -> Store {
        Store::open(&self.path(), self.options()).unwrap()
    }

    fn assert_whole(&self, context: &str) {
        let keyring = self.keyring();
        let verified =
            Store::verify(&self.path(), VerifyDepth::ReadData, time(99), keyring.as_deref())
                .unwrap();
        let found = (verified.outcome, verified.findings);
        assert_eq!(found, (VerifyOutcome::Clean, vec![]), "{context}");
    }

    /// Checks that nothing of the secret is left, and no old file that may contain it in encoded
    /// form.
    fn assert_clean(&self, context: &str) {
        assert_eq!(in_files(&self.0, SECRET), 0, "{context}");
        let act = super::act(98);
        let left = self.open().purge_preview(&act, &known(), &resolve, &|_| ()).unwrap();
        assert_eq!((left.places, left.removed), (vec![], vec![]), "{context}");
        let names = |folder: &str| -> Vec<String> {
            let entries = std::fs::read_dir(self.path().join(folder)).into_iter().flatten();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        let folders = names("index").into_iter().filter(|name| {
            let own = ["apply.lock", "published"].contains(&name.as_str());
            !own && !name.ends_with(".lease")
        });
        assert_eq!(folders.count(), 1, "{context}: {:?}", names("index"));
        let segments = names("journal").into_iter().filter(|name| name.ends_with(".log"));
        assert_eq!(segments.count(), 1, "{context}: {:?}", names("journal"));
        let unfinished = [names("journal"), names("spool")].concat();
        assert!(unfinished.iter().all(|name| !name.ends_with(".new")), "{context}: {unfinished:?}");
    }
}

/// Not a test: the body of the processes with faults.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let place = Place(PathBuf::from(folder));
    let purged =
        Store::open(&place.path(), place.options()).and_then(|store| try_purge(&store, 31));
    match purged {
        Ok(purged) if purged.is_done() => println!("{DONE}"),
        Ok(purged) => println!("not yet: {purged:?}"),
        Err(error) => println!("{error}"),
    }
}

fn strike(test: &str, faults: &[(&str, &str)], usual: u64) {
    if !can_inject_faults(test) {
        return;
    }
    let step = count("FORGE_CRASH_STEP", usual).max(1) as usize;
    let folder = tempfile::tempdir().unwrap();
    let firsts = [false, true].map(|encrypted| {
        let first = Place(folder.path().join(format!("first-{encrypted}")));
        std::fs::create_dir_all(&first.0).unwrap();
        if encrypted {
            std::fs::create_dir(first.0.join("keyring")).unwrap();
        }
        planted(&first.path(), first.options().encrypted(encrypted));
        first
    });
    let cut = format!("purged{}", "x".repeat(6));
    let masked = |text: &str| comparable(&text.replace(SECRET, MASK).replace(&SECRET[..12], &cut));
    let wanted = firsts.each_ref().map(|first| masked(&store_contents(&first.open())));
    let (mut struck, mut done) = (0, 0);
    for fault in faults {
        for nth in (1..6).chain((6..).step_by(step)) {
            // The plain store and the encrypted one alternately.
            let which = nth % 2;
            let place = Place(folder.path().join("struck"));
            copy(&firsts[which].0, &place.0);
            let (met, output) = struck_at("purge::kill::child", (FOLDER, &place.0), *fault, nth);
            let context = format!("{fault:?} at {nth}, encrypted: {}: {output}", which == 1);
            place.assert_whole(&context);
            if output.contains(DONE) {
                place.assert_clean(&context);
                done += 1;
            }
            let store = place.open();
            // Before or after the purge: the texts are the old ones or the new ones.
            same(&masked(&store_contents(&store)), &wanted[which], &context);
            let purged = super::purge(&store, 40);
            assert!(purged.is_done(), "{context}: {purged:#?}");
            same(&comparable(&store_contents(&store)), &wanted[which], &context);
            drop(store);
            place.assert_clean(&context);
            place.assert_whole(&context);
            remove(&place.0);
            if !met {
                assert!(output.contains(DONE), "{context}");
                break;
            }
            struck += 1;
        }
    }
    eprintln!("{test}: {struck} faults, {done} said to be done");
    assert!(struck > 2 * faults.len(), "the faults hardly struck");
}

fn remove(folder: &Path) {
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_process_killed_anywhere_while_purging_leaves_a_sound_store_and_the_next_finishes() {
    let calls = [
        "pwrite64", "write", "fdatasync", "fsync", "rename", "unlink", "unlinkat", "ftruncate",
        "mkdir",
    ];
    strike("killed while purging", &calls.map(|call| (call, "signal=KILL")), 61);
}

#[test]
fn a_failing_call_during_a_purge_leaves_a_sound_store_and_no_false_report() {
    let faults = [
        ("pwrite64", "error=ENOSPC"),
        ("write", "error=ENOSPC"),
        ("fdatasync", "error=EIO"),
        ("fsync", "error=EIO"),
        ("rename", "error=EDQUOT"),
        ("unlink", "error=EIO"),
        ("unlinkat", "error=EIO"),
        ("openat", "error=EMFILE"),
        ("mkdir", "error=EACCES"),
        ("pread64", "error=EIO"),
        ("getdents64", "error=EIO"),
        ("ftruncate", "error=EIO"),
    ];
    strike("calls failing while purging", &faults, 97);
}

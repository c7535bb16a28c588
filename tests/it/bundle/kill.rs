//! kill -9 at system calls that change a file, while a bundle is imported.
#![allow(clippy::print_stderr, reason = "a skipped test must be seen")]

use super::{act, everything, rich};
use crate::fault::{can_inject_faults, killed_at};
use forge_store::store::{Options, Store, VerifyDepth, VerifyOutcome};
use std::fs::File;
use std::path::PathBuf;

const FOLDER: &str = "FORGE_BUNDLE_FOLDER";

/// Not a test: the body of the processes that are killed.
#[test]
#[ignore = "the body of a process that a test starts"]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let folder = PathBuf::from(folder);
    let store = Store::open(&folder.join("store"), Options::default()).unwrap();
    let mut bundle = File::open(folder.join("../bundle")).unwrap();
    store.import_bundle(&act("import"), &mut bundle, None).unwrap();
    store.maintain(0).unwrap();
}

#[test]
fn an_import_killed_anywhere_leaves_a_sound_store_and_continues() {
    if !can_inject_faults("killed while importing") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("first");
    let (_, bytes) = rich(&first);
    let wanted = everything(&first);
    std::fs::write(folder.path().join("bundle"), &bytes).unwrap();
    let (mut struck, mut named) = (0, 0);
    for call in ["pwrite64", "fdatasync", "rename", "unlink"] {
        // The first calls, then some of the others: each record is one call, and most of the others
        // are RocksDB's.
        for nth in [1, 2, 3, 7, 17, 29, 41, 67, 97] {
            let context = format!("{call}, {nth}");
            let place = folder.path().join(format!("{call}-{nth}"));
            let path = place.join("store");
            std::fs::create_dir(&place).unwrap();
            drop(Store::create(&path, Options::default()).unwrap());
            let killed = killed_at("bundle::kill::child", (FOLDER, &place), call, nth);

            let verified = Store::verify(&path, VerifyDepth::Quick, super::NOW, None).unwrap();
            assert_eq!(
                verified.outcome,
                VerifyOutcome::Clean,
                "{context}: {:?}",
                verified.findings
            );
            let store = Store::open(&path, Options::default()).unwrap();
            let sessions = store.every_session().unwrap();
            let unfinished = store.unfinished_imports().unwrap();
            // A kill after the last record may leave the mark as well.
            if unfinished.is_empty() {
                let is_whole = everything(&path) == wanted;
                assert!(sessions.is_empty() || is_whole, "{context}: half a session is not named");
            }
            named += usize::from(!unfinished.is_empty());
            for session in sessions {
                session.state(&session.head().unwrap()).expect(&context);
            }
            let mut bundle = File::open(folder.path().join("bundle")).unwrap();
            store.import_bundle(&act("import"), &mut bundle, None).expect(&context);
            assert_eq!(store.unfinished_imports().unwrap(), [], "{context}");
            store.maintain(0).unwrap();
            drop(store);
            assert_eq!(everything(&path), wanted, "{context}");
            std::fs::remove_dir_all(&place).unwrap();
            if !killed {
                break;
            }
            struck += 1;
        }
    }
    eprintln!("killed while importing: {struck} times");
    assert!(struck > 10, "the kills hardly struck");
    assert!(named > 3, "unfinished imports are hardly ever there");
}

//! A journal whose files are missing, renamed or emptied: data that still exists elsewhere is
//! saved, the rest is reported by its positions, and no repair claims that nothing was lost.

#![allow(clippy::print_stderr, reason = "counts must be seen")]

use super::act;
use crate::fault::scratch_folder;
use forge_store::error::ErrorKind;
use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::{ClaimChange, NewSession, Options, Store, VerifyDepth, VerifyOutcome};
use std::fs;
use std::path::Path;

const TIME: Timestamp = super::TIME;
const NOTES: usize = 12;

fn make(path: &Path, options: &Options, applied: usize) -> Store {
    let store = Store::create(path, options.clone()).unwrap();
    let session = store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    for number in 1..=NOTES {
        let key = Key::new(Kind::Note, format!("N{number}"));
        let note = Value::from([("description", format!("note {number}").into())]);
        session.write(&act("note")).change(ClaimChange::add(key, note)).commit().unwrap();
        if number == applied {
            store.maintain(0).unwrap();
        }
    }
    store
}

fn notes(path: &Path, options: &Options, what: &str) -> usize {
    let store = Store::open(path, options.clone()).unwrap();
    match store.session("s") {
        Ok(session) => {
            let state = session.head().and_then(|head| session.state(&head));
            state.unwrap_or_else(|error| panic!("{what}: {error:?}")).claims().len()
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            0
        }
    }
}

/// What is done to the newest segment, or to the whole folder.
const WAYS: [&str; 9] = [
    "deleted", "renamed above", "renamed below", "renamed to a copy", "cut to nothing", "emptied",
    "gone", "FORMAT too", "a stranger",
];

fn strike(path: &Path, how: &str) {
    let journal = path.join("journal");
    let segments = || {
        let names = fs::read_dir(&journal).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<_> =
            names.filter(|name| name.extension().is_some_and(|ending| ending == "log")).collect();
        all.sort();
        all
    };
    let newest = segments().pop().unwrap();
    match how {
        "deleted" => fs::remove_file(newest).unwrap(),
        "renamed above" => fs::rename(newest, journal.join("00000000002e76b3.log")).unwrap(),
        "renamed below" => fs::rename(newest, journal.join("0000000000000001.log")).unwrap(),
        "renamed to a copy" => fs::rename(&newest, newest.with_extension("log.bak")).unwrap(),
        "cut to nothing" => fs::write(newest, b"").unwrap(),
        "emptied" | "FORMAT too" => {
            fs::remove_dir_all(&journal).unwrap();
            fs::create_dir(&journal).unwrap();
            if how == "FORMAT too" {
                fs::remove_file(path.join("FORMAT")).unwrap();
            }
        }
        "gone" => fs::remove_dir_all(&journal).unwrap(),
        _ => {
            // A segment of another store, with the same start and longer.
            let other = scratch_folder();
            let path = other.path().join("other");
            drop(make(&path, &Options::default(), 0));
            let stranger = path.join("journal/0000000000000000.log");
            fs::rename(&newest, newest.with_extension("log.old")).unwrap();
            fs::copy(stranger, journal.join("0000000000000002.log")).unwrap();
        }
    }
}

#[test]
fn a_repair_of_a_store_without_its_journal_reports_lost_notes() {
    let (mut whole, mut named) = (0_u64, 0_u64);
    for sort in ["unsealed", "sealed", "encrypted"] {
        for applied in [0, 5, NOTES] {
            for how in WAYS {
                let what = format!("{sort}, {applied} in the index, {how}");
                let folder = scratch_folder();
                let path = folder.path().join(".forge");
                let keyring = (sort != "unsealed").then(|| folder.path().join("keyring"));
                let options = Options::default().keyring(keyring).encrypted(sort == "encrypted");
                drop(make(&path, &options, applied));
                strike(&path, how);
                let keyring = options.keyring.as_deref();
                let opened = Store::open(&path, options.clone());
                let read = opened.and_then(|store| store.sessions());
                let kind = read.map(drop).unwrap_err().kind();
                let is_no_store = how == "FORMAT too" && kind == ErrorKind::NotFound;
                let is_said = matches!(kind, ErrorKind::Corrupt | ErrorKind::Forged);
                assert!(is_said || is_no_store, "{what}: {kind:?}");
                let verified = Store::verify(&path, VerifyDepth::ReadData, TIME, keyring);
                let to = folder.path().join("repaired");
                let repaired = Store::repair(&path, &to, TIME, keyring);
                let (verified, repaired) = match (verified, repaired) {
                    (Ok(verified), Ok(repaired)) => (verified, repaired),
                    // Nothing shows that this was a store, or that it was encrypted.
                    (verified, repaired) => {
                        assert_eq!(how, "FORMAT too", "{what}: {verified:?} {repaired:?}");
                        continue;
                    }
                };
                let held = notes(&to, &options, &format!("{what}: {repaired:?}"));
                assert!(held <= NOTES, "{what}");
                assert!(held == NOTES || !repaired.lost.is_empty(), "{what}: {held} {repaired:?}");
                assert_eq!(verified.lost.is_empty(), repaired.lost.is_empty(), "{what}");
                match verified.outcome {
                    VerifyOutcome::Clean => panic!("{what}: {verified:?}"),
                    VerifyOutcome::Repairable => assert_eq!(held, NOTES, "{what}"),
                    VerifyOutcome::Loss => assert!(!repaired.lost.is_empty(), "{what}"),
                    VerifyOutcome::Forged => assert_ne!(sort, "unsealed", "{what}"),
                }
                let is_there = how.starts_with("renamed") || how == "a stranger";
                if is_there {
                    assert_eq!(held, NOTES, "{what}: {repaired:?}");
                } else if applied < NOTES {
                    assert_eq!(held, applied, "{what}");
                    let named = |what: &str| repaired.lost.iter().any(|line| line.contains(what));
                    assert!(named("position"), "{what}: {repaired:?}");
                    assert!(applied == 0 || named("'s' after #5"), "{what}: {repaired:?}");
                }
                whole += u64::from(held == NOTES);
                named += u64::from(held < NOTES);
                let again = Store::verify(&to, VerifyDepth::ReadData, TIME, keyring).unwrap();
                assert_eq!(again.outcome, VerifyOutcome::Clean, "{what}: {again:?}");
            }
        }
    }
    eprintln!("torn journals: {whole} saved whole, {named} with what is lost named, 0 silent");
}

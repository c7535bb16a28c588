//! Keys and witnesses: missing, on another machine, adopted; and the permissions of their files.

use super::frame::{frames, write};
use super::{Place, act, add, breach_of, copy, new_note, read, time};
use forge_store::backend::IntegrityBreach;
use forge_store::error::{Error, ErrorKind};
use forge_store::store::{NewSession, Options, SealStatus, Store, VerifyDepth, VerifyOutcome};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

impl Place {
    /// Options of a machine that knows nothing about the store.
    fn elsewhere(&self) -> Options {
        Options::default().keyring(self.root.path().join("elsewhere"))
    }

    /// The folder of the store's key.
    fn key_folder(&self) -> PathBuf {
        let folders = fs::read_dir(self.keyring()).unwrap().map(|entry| entry.unwrap().path());
        folders.into_iter().find(|folder| folder.join("key").exists()).unwrap()
    }
}

fn verified(place: &Place, keyring: &Path) -> (VerifyOutcome, SealStatus) {
    let found =
        Store::verify(&place.store(), VerifyDepth::ReadData, time(0), Some(keyring)).unwrap();
    assert_eq!(found.findings, []);
    (found.outcome, found.seal_status)
}

#[test]
fn a_store_without_a_keyring_has_no_seals() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("store");
    let store = Store::create(&path, Options::default()).unwrap();
    assert_eq!(store.seal_status(), SealStatus::Unsealed);
    store.create_session(&act(0), NewSession::named("s")).unwrap();
    drop(store);
    assert!(!fs::read_to_string(path.join("FORMAT")).unwrap().contains("sealed"));
    // Opening the store with a keyring does not give it seals.
    let options = Options::default().keyring(root.path().join("keys"));
    assert_eq!(Store::open(&path, options).unwrap().seal_status(), SealStatus::Unsealed);
}

#[test]
fn a_store_without_its_key_is_readable_and_spools_writes() {
    for place in [Place::new(), Place::applied()] {
        let content = place.read().unwrap();
        for options in [place.elsewhere(), Options::default()] {
            let store = Store::open(&place.store(), options).unwrap();
            assert_eq!(store.seal_status(), SealStatus::NoKey);
            assert_eq!(read(&store).unwrap(), content);
            let error = store.create_session(&act(9), NewSession::named("new")).map(drop);
            assert_eq!(error.unwrap_err().kind(), ErrorKind::Unkeyed);
            assert!(!store.maintain(0).unwrap());
        }
        let elsewhere = place.root.path().join("elsewhere");
        assert_eq!(verified(&place, &elsewhere), (VerifyOutcome::Clean, SealStatus::NoKey));
    }
}

#[test]
fn writes_without_the_key_stay_spooled_until_the_adoption() {
    let place = Place::new();
    let store = Store::open(&place.store(), place.elsewhere()).unwrap();
    let session = store.session("first").unwrap();
    let done = session.write(&act(60)).change(new_note("waits")).commit().unwrap();
    assert!(done.spooled);
    assert_eq!(read(&store).unwrap().len(), 21);
    drop((session, store));
    // A reader with the key does not believe it, and reports it.
    let store = place.open();
    assert_eq!(read(&store).unwrap().len(), 20);
    assert_eq!(store.spool_status().unwrap().unsealed.len(), 1);
    add(&store.session("first").unwrap(), 61, "more");
    assert_eq!(store.spool_status().unwrap().unsealed.len(), 1);
    drop(store);
    let keyring = place.keyring();
    let found = Store::verify(&place.store(), VerifyDepth::Quick, time(0), Some(&keyring)).unwrap();
    assert_eq!(found.outcome, VerifyOutcome::Forged);
    let done = Store::adopt(&place.store(), &place.options(), time(70)).unwrap();
    assert_eq!((done.resealed, done.waiting), (false, 1));
    let store = place.open();
    store.drain().unwrap();
    assert_eq!(read(&store).unwrap().len(), 23);
    assert_eq!(verified(&place, &keyring), (VerifyOutcome::Clean, SealStatus::Sealed));
}

#[test]
fn a_store_can_be_adopted_without_its_key() {
    for place in [Place::new(), Place::applied()] {
        let content = place.read().unwrap();
        let options = place.elsewhere();
        let done = Store::adopt(&place.store(), &options, time(70)).unwrap();
        assert_eq!((done.before, done.resealed), (SealStatus::NoKey, true));
        let store = Store::open(&place.store(), options.clone()).unwrap();
        assert_eq!((store.seal_status(), read(&store).unwrap()), (SealStatus::Sealed, content));
        add(&store.session("first").unwrap(), 71, "goes on");
        assert!(store.maintain(0).unwrap());
        drop(store);
        let elsewhere = place.root.path().join("elsewhere");
        assert_eq!(verified(&place, &elsewhere), (VerifyOutcome::Clean, SealStatus::Sealed));
        let state = Store::key_state(&place.store(), &options).unwrap();
        assert_eq!(state.adopted, Some((done.position, time(70))));
        assert!(state.witnessed.unwrap() > done.position);
        // For the keyring with the old key, the adopted store is another one.
        assert_eq!(breach_of(&place.read().unwrap_err()), IntegrityBreach::Replaced);
    }
}

#[test]
fn an_adoption_gives_seals_to_a_store_without_them() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("store");
    let store = Store::create(&path, Options::default()).unwrap();
    let session = store.create_session(&act(0), NewSession::named("first")).unwrap();
    add(&session, 1, "one");
    assert!(store.maintain(0).unwrap());
    add(&session, 2, "two");
    drop((session, store));
    let options = Options::default().keyring(root.path().join("keys"));
    let done = Store::adopt(&path, &options, time(3)).unwrap();
    assert_eq!((done.before, done.resealed), (SealStatus::Unsealed, true));
    let store = Store::open(&path, options).unwrap();
    assert_eq!((store.seal_status(), read(&store).unwrap().len()), (SealStatus::Sealed, 4));
}

#[test]
fn a_writer_is_refused_after_the_adoption_of_its_open_store() {
    let place = Place::new();
    let before = place.open();
    let session = before.session("first").unwrap();
    Store::adopt(&place.store(), &place.elsewhere(), time(70)).unwrap();
    let done = session.write(&act(71)).change(new_note("late")).commit();
    assert!(done.is_err() || done.unwrap().spooled);
    let store = Store::open(&place.store(), place.elsewhere()).unwrap();
    assert_eq!(read(&store).unwrap().len(), 20);
}

#[test]
fn a_forged_store_can_be_used_only_after_an_adoption() {
    let place = Place::new();
    let segment = place.segment();
    let mut all = frames(&segment);
    let at = all.iter().position(|frame| frame.holds("first-3")).unwrap();
    all.truncate(at);
    write(&segment, &all);
    assert_eq!(place.refusal(), IntegrityBreach::RolledBack);
    // A write that a refused writer left in the spool stays there.
    let done = Store::adopt(&place.store(), &place.options(), time(70)).unwrap();
    assert!(done.resealed);
    assert_eq!(read(&place.open()).unwrap().iter().filter(|it| it.starts_with("first")).count(), 4);
}

#[test]
fn an_adopted_copy_and_the_store_continue_independently() {
    let place = Place::new();
    let backup = place.root.path().join("backup");
    copy(&place.store(), &backup);
    add(&place.open().session("first").unwrap(), 60, "newest");
    let error = Store::open(&backup, place.options()).and_then(|store| read(&store)).unwrap_err();
    assert_eq!(breach_of(&error), IntegrityBreach::RolledBack);
    Store::adopt(&backup, &place.options(), time(70)).unwrap();
    let copy = Store::open(&backup, place.options()).unwrap();
    add(&copy.session("first").unwrap(), 71, "by itself");
    assert_eq!((read(&copy).unwrap().len(), place.read().unwrap().len()), (22, 22));
    assert_eq!(verified(&place, &place.keyring()), (VerifyOutcome::Clean, SealStatus::Sealed));
}

#[test]
fn a_moved_store_keeps_its_key() {
    let place = Place::new();
    let text = Store::export_key(&place.store(), &place.options()).unwrap();
    let options = place.elsewhere();
    let id = Store::import_key(&text, &options).unwrap();
    assert_eq!(id, Store::key_state(&place.store(), &options).unwrap().id);
    let store = Store::open(&place.store(), options.clone()).unwrap();
    assert_eq!((store.seal_status(), read(&store).unwrap().len()), (SealStatus::Sealed, 20));
    drop(store);
    assert_eq!(Store::import_key(&text, &options).unwrap_err().kind(), ErrorKind::Conflict);
    let broken = text.replace("secret", "Secret");
    assert_eq!(Store::import_key(&broken, &options).unwrap_err().kind(), ErrorKind::Invalid);
    // The state of its witness is exported too: an older copy is refused there as well.
    let segment = place.segment();
    let mut all = frames(&segment);
    all.pop();
    write(&segment, &all);
    let error = Store::open(&place.store(), options).and_then(|store| read(&store)).unwrap_err();
    assert_eq!(breach_of(&error), IntegrityBreach::RolledBack);
}

#[test]
fn a_missing_witness_is_reported_and_prevents_writes_until_adoption() {
    let place = Place::new();
    fs::remove_file(place.key_folder().join("witness")).unwrap();
    let store = place.open();
    assert_eq!((store.seal_status(), read(&store).unwrap().len()), (SealStatus::NoWitness, 20));
    let error = store.create_session(&act(9), NewSession::named("new")).map(drop).unwrap_err();
    assert!(matches!(error, Error::Unkeyed { missing: "witness" }));
    drop(store);
    assert!(Store::adopt(&place.store(), &place.options(), time(70)).unwrap().resealed);
    assert_eq!(place.open().seal_status(), SealStatus::Sealed);
}

#[test]
fn another_store_in_place_of_a_sealed_one_is_refused() {
    let place = Place::new();
    let forged = place.root.path().join("forged");
    Store::create(&forged, Options::default()).unwrap();
    fs::remove_dir_all(place.store()).unwrap();
    copy(&forged, &place.store());
    assert_eq!(breach_of(&place.read().unwrap_err()), IntegrityBreach::Replaced);
    // Claiming that there were no seals does not help either, whether the key can be read or not.
    let place = Place::new();
    let file = place.store().join("FORMAT");
    let text = fs::read_to_string(&file).unwrap().replace("optional sealed", "optional ");
    let (before, _) = text.split_at(text.rfind("check ").unwrap());
    let check = &blake3::hash(before.as_bytes()).to_hex()[..16];
    fs::write(&file, format!("{before}check {check}\n")).unwrap();
    assert_eq!(breach_of(&place.read().unwrap_err()), IntegrityBreach::Unsealed);
    fs::write(place.key_folder().join("key"), "torn").unwrap();
    assert!(matches!(place.read().unwrap_err(), Error::DamagedKey { .. }));
}

#[test]
fn keys_and_witnesses_are_private() {
    let place = Place::new();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let kept = place.key_folder();
    assert_eq!((mode(&place.keyring()), mode(&kept)), (0o700, 0o700));
    assert_eq!((mode(&kept.join("key")), mode(&kept.join("witness"))), (0o600, 0o600));
}

/// Regression: a damaged key locked its owner out of opening, repairing and adopting the store; a
/// missing key does not.
#[test]
fn a_damaged_key_counts_as_missing_and_one_wrong_bit_in_it_is_repaired() {
    let place = Place::applied();
    let key = place.key_folder().join("key");
    let (right, content) = (fs::read(&key).unwrap(), place.read().unwrap());
    let exported = Store::export_key(&place.store(), &place.options()).unwrap();
    for bit in (0..right.len() * 8).step_by(11) {
        let mut wrong = right.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        fs::write(&key, wrong).unwrap();
        assert_eq!(place.open().seal_status(), SealStatus::Sealed, "bit {bit}");
    }
    for damaged in [&[], &right[..right.len() / 2], &vec![0; right.len()]] {
        fs::write(&key, damaged).unwrap();
        let store = place.open();
        assert_eq!(store.seal_status(), SealStatus::NoKey);
        let damaged = store.damaged_key().expect("its key is damaged");
        assert!(matches!(&damaged, Error::DamagedKey { path, .. } if *path == key), "{damaged}");
        assert_eq!(read(&store).unwrap(), content);
        let error = store.create_session(&act(9), NewSession::named("new")).map(drop);
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Unkeyed);
        assert_eq!(verified(&place, &place.keyring()), (VerifyOutcome::Clean, SealStatus::NoKey));
        let error = Store::export_key(&place.store(), &place.options()).unwrap_err();
        assert!(matches!(error, Error::DamagedKey { .. }), "{error}");
    }
    // An exported key replaces it, and without one the store can be adopted.
    Store::import_key(&exported, &place.options()).unwrap();
    assert_eq!((place.open().seal_status(), fs::read(&key).unwrap()), (SealStatus::Sealed, right));
    fs::write(&key, "").unwrap();
    assert!(Store::adopt(&place.store(), &place.options(), time(70)).unwrap().resealed);
    assert_eq!((place.open().seal_status(), place.read().unwrap()), (SealStatus::Sealed, content));
}

#[test]
fn a_repaired_store_has_the_same_key_and_no_forged_record() {
    let place = Place::new();
    let segment = place.segment();
    let mut all = frames(&segment);
    let at = all.iter().position(|frame| frame.holds("other-5")).unwrap();
    all[at].replace("other-5", "FORGED!");
    write(&segment, &all);
    let (to, keyring) = (place.root.path().join("repaired"), place.keyring());
    let done = Store::repair(&place.store(), &to, time(80), Some(&keyring)).unwrap();
    assert!(!done.lost.is_empty(), "{done:?}");
    fs::remove_dir_all(place.store()).unwrap();
    copy(&to, &place.store());
    let store = place.open();
    assert_eq!(store.seal_status(), SealStatus::Sealed);
    assert!(read(&store).unwrap().iter().all(|text| !text.contains("FORGED")));
}

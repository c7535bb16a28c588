//! The key of an encrypted store: missing, wrong, moved to another machine; and a store that is
//! adopted, copied or repaired.

use super::{MARK, Place, act, note, plant, search, time};
use forge_store::error::{Error, ErrorKind};
use forge_store::store::{
    NewCheckpoint, NewSession, Options, SealStatus, Session, Store, VerifyDepth, VerifyOutcome,
};
use forge_testkit::files::files_below;
use std::fs;
use std::path::{Path, PathBuf};

/// An encrypted store with data in its index, its journal and its spool.
pub(super) fn place() -> Place {
    let place = Place::new(true);
    let store = place.open();
    let session = plant(&store);
    assert!(store.maintain(0).unwrap());
    session.write(&act(50)).change(note("zebra-late", "behind the index")).commit().unwrap();
    drop((session, store));
    place
}

impl Place {
    fn elsewhere(&self) -> Options {
        Options::default().keyring(self.root.path().join("elsewhere"))
    }

    fn key(&self) -> PathBuf {
        let folders = fs::read_dir(self.keyring()).unwrap().map(|entry| entry.unwrap().path());
        folders.into_iter().map(|folder| folder.join("key")).find(|key| key.exists()).unwrap()
    }
}

/// Reads all claims.
fn read(session: &Session) -> Result<String, Error> {
    let moment = session.head()?;
    session.check_digest(&moment)?;
    let state = session.state(&moment)?;
    let entries = state.claims().entries().collect::<Result<Vec<_>, _>>()?;
    Ok(format!("{entries:?}"))
}

fn content_of(path: &Path, options: Options) -> Result<String, Error> {
    read(&Store::open(path, options)?.session("zebra-session")?)
}

fn assert_clean(path: &Path, keyring: &Path) {
    let found = Store::verify(path, VerifyDepth::ReadData, time(0), Some(keyring)).unwrap();
    assert_eq!((found.findings, found.outcome), (vec![], VerifyOutcome::Clean));
    assert!(found.encrypted);
}

#[test]
fn an_encrypted_store_needs_a_keyring_and_reports_its_type() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("store");
    let options = Options::default().encrypted(true);
    assert!(Store::create(&path, options).is_err());
    assert!(!path.exists());
    let place = place();
    assert!(place.open().is_encrypted());
    let format = fs::read_to_string(place.path().join("FORMAT")).unwrap();
    assert!(format.contains("\nrequired encrypted\noptional sealed\n"), "{format}");
    let state = Store::key_state(&place.path(), &place.options()).unwrap();
    assert!(state.encrypted && state.seal_status == SealStatus::Sealed);
    assert!(!Place::new(false).open().is_encrypted());
}

#[test]
fn without_its_key_nothing_is_readable_and_every_error_says_why() {
    let place = place();
    let before: Vec<_> =
        files_below(&place.path()).iter().map(|path| fs::read(path).unwrap()).collect();
    for options in [place.elsewhere(), Options::default()] {
        let keyring = options.keyring.as_deref();
        let to = place.root.path().join("to");
        let errors = [
            Store::open(&place.path(), options.clone()).map(drop),
            Store::verify(&place.path(), VerifyDepth::Quick, time(0), keyring).map(drop),
            Store::backup(&place.path(), &to, time(0), keyring).map(drop),
            Store::repair(&place.path(), &to, time(0), keyring).map(drop),
            Store::adopt(&place.path(), &place.elsewhere(), time(0)).map(drop),
            Store::export_key(&place.path(), &options).map(drop),
        ];
        for (number, error) in errors.into_iter().enumerate() {
            let error = error.expect_err(&number.to_string());
            assert_eq!(error.kind(), ErrorKind::Unkeyed, "{number}: {error}");
        }
        assert!(!to.exists());
        let state = Store::key_state(&place.path(), &options).unwrap();
        assert_eq!((state.seal_status, state.encrypted), (SealStatus::NoKey, true));
    }
    let after: Vec<_> =
        files_below(&place.path()).iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(before == after);
}

/// Regression: this was reported as damage of the store, with advice to repair it, which failed in
/// the same way.
#[test]
fn with_a_damaged_key_nothing_is_readable_and_every_error_names_the_file() {
    let place = place();
    let known = content_of(&place.path(), place.options()).unwrap();
    let right = fs::read(place.key()).unwrap();
    fs::write(place.key(), &right[1..]).unwrap();
    let (options, to) = (place.options(), place.root.path().join("to"));
    let keyring = options.keyring.as_deref();
    let errors = [
        Store::open(&place.path(), options.clone()).map(drop),
        Store::verify(&place.path(), VerifyDepth::Quick, time(0), keyring).map(drop),
        Store::backup(&place.path(), &to, time(0), keyring).map(drop),
        Store::repair(&place.path(), &to, time(0), keyring).map(drop),
        Store::adopt(&place.path(), &options, time(0)).map(drop),
        Store::export_key(&place.path(), &options).map(drop),
        Store::key_state(&place.path(), &options).map(drop),
    ];
    for (number, error) in errors.into_iter().enumerate() {
        let error = error.expect_err(&number.to_string());
        assert!(
            matches!(&error, Error::DamagedKey { path, .. } if *path == place.key()),
            "{error}"
        );
        assert_eq!(error.kind(), ErrorKind::Unkeyed);
    }
    fs::write(place.key(), right).unwrap();
    assert_eq!(content_of(&place.path(), options).unwrap(), known);
}

#[test]
fn the_key_can_be_moved_to_another_machine_with_the_store() {
    let place = place();
    let known = content_of(&place.path(), place.options()).unwrap();
    let text = Store::export_key(&place.path(), &place.options()).unwrap();
    Store::import_key(&text, &place.elsewhere()).unwrap();
    assert_eq!(content_of(&place.path(), place.elsewhere()).unwrap(), known);
    assert_clean(&place.path(), place.elsewhere().keyring.as_deref().unwrap());
}

#[test]
fn an_adopted_store_is_readable_with_its_earlier_key() {
    let place = place();
    let known = content_of(&place.path(), place.options()).unwrap();
    let copy = place.root.path().join("copy");
    let backed = Store::backup(&place.path(), &copy, time(60), Some(&place.keyring())).unwrap();
    assert!(backed.revisions > 10);
    // After the original has continued, the copy is an older one.
    Store::open(&place.path(), place.options())
        .unwrap()
        .create_session(&act(61), NewSession::named("zebra-later"))
        .unwrap();
    assert_eq!(content_of(&copy, place.options()).unwrap_err().kind(), ErrorKind::Forged);
    let done = Store::adopt(&copy, &place.options(), time(62)).unwrap();
    assert!(done.resealed);
    assert_eq!(content_of(&copy, place.options()).unwrap(), known);
    let session = Store::open(&copy, place.options()).unwrap().session("zebra-session").unwrap();
    session.write(&act(63)).change(note("zebra-more", "it goes on")).commit().unwrap();
    assert!(session.store().maintain(0).unwrap());
    assert!(search(session.store()) > 0);
    drop(session);
    for path in [place.path(), copy] {
        assert_clean(&path, &place.keyring());
    }
}

#[test]
fn data_of_hooks_next_to_a_refused_store_is_encrypted_and_adopted_with_it() {
    let place = place();
    let copy = place.root.path().join("copy");
    Store::backup(&place.path(), &copy, time(60), Some(&place.keyring())).unwrap();
    place.open().create_session(&act(61), NewSession::named("zebra-later")).unwrap();
    assert_eq!(content_of(&copy, place.options()).unwrap_err().kind(), ErrorKind::Forged);
    let refused = Store::open_unverified(&copy, place.options()).unwrap();
    let hook = act(62);
    let aside = refused.spooled_write(&hook, NewSession::imported("zebra-kept")).unwrap();
    aside.checkpoint(NewCheckpoint::manual("zebra-aside")).save().unwrap();
    drop(refused);
    let waiting = fs::read_dir(copy.join("spool")).unwrap().next().unwrap().unwrap();
    let bytes = fs::read(waiting.path()).unwrap();
    assert!(!bytes.windows(MARK.len()).any(|part| part == MARK.as_bytes()));
    assert!(Store::open_unverified(&copy, place.elsewhere()).is_err());
    let done = Store::adopt(&copy, &place.options(), time(63)).unwrap();
    assert_eq!((done.resealed, done.waiting), (true, 1));
    let store = Store::open(&copy, place.options()).unwrap();
    store.drain().unwrap();
    assert_eq!(store.session("zebra-kept").unwrap().summary().unwrap().checkpoints, 1);
}

#[test]
fn a_repaired_store_is_encrypted_again() {
    let place = place();
    let known = content_of(&place.path(), place.options()).unwrap();
    // One wrong bit in the index, in one of the first rows, in its key or its lengths.
    let table = files_below(&place.path())
        .into_iter()
        .find(|path| path.extension().is_some_and(|it| it == "sst"));
    let table = table.unwrap();
    let whole = fs::read(&table).unwrap();
    let repaired = (300..700).step_by(40).map(|at| {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        fs::write(&table, bytes).unwrap();
        assert_eq!(
            content_of(&place.path(), place.options()).unwrap_err().kind(),
            ErrorKind::Forged
        );
        let to = place.root.path().join(format!("to {at}"));
        let done = Store::repair(&place.path(), &to, time(60), Some(&place.keyring())).unwrap();
        (to, done)
    });
    let repaired: Vec<_> = repaired.collect();
    // The repaired data keeps its seals.
    for (to, done) in &repaired {
        assert_eq!((&done.lost[..], done.mended), (&[][..], 1));
        assert_eq!(content_of(to, place.options()).unwrap(), known);
    }
    let (to, _) = repaired.last().unwrap();
    assert_clean(to, &place.keyring());
    for file in files_below(to) {
        let bytes = fs::read(file).unwrap();
        assert!(!bytes.windows(MARK.len()).any(|part| part == MARK.as_bytes()));
    }
}

#[test]
fn a_wrong_key_and_a_changed_marker_are_refused_by_name() {
    let place = place();
    let text = fs::read_to_string(place.key()).unwrap();
    let file = |from: &str, to: String| {
        let before = text.split("check ").next().unwrap().replace(from, &to);
        let check = &blake3::hash(before.as_bytes()).to_hex()[..16];
        fs::write(place.key(), format!("{before}check {check}\n")).unwrap();
    };
    let line = text.lines().find(|line| line.starts_with("cipher ")).unwrap();
    file(line, format!("cipher {}", "7".repeat(64)));
    let error = content_of(&place.path(), place.options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forged);
    assert!(error.to_string().contains("cannot be decrypted with the store's key"), "{error}");
    file(&format!("{line}\n"), String::new());
    let error = content_of(&place.path(), place.options()).unwrap_err();
    assert!(error.to_string().contains("its key says that it was not so"), "{error}");
    fs::write(place.key(), &text).unwrap();
    // Without the feature flag, the next writes would be in plain text.
    let path = place.path().join("FORMAT");
    let marker = fs::read_to_string(&path).unwrap();
    let before = marker.split("check ").next().unwrap().replace("required encrypted", "required ");
    let check = &blake3::hash(before.as_bytes()).to_hex()[..16];
    fs::write(&path, format!("{before}check {check}\n")).unwrap();
    let error = content_of(&place.path(), place.options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forged);
    assert!(error.to_string().contains("not encrypted, and its key says that it was"), "{error}");
}

//! A store that the first program with this format wrote, and its expected content; and sessions of
//! the previous format, which are imported from a bundle.

use super::manifest::manifest;
use crate::fault::copy;
use forge_store::error::ErrorKind;
use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::{ClaimChange, Options, Store, WriteContext};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The folder of the golden store.
const FIXTURE: &str = "v2";

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), found);
        }
    }
}

/// The files and folders, with the content of the files.
fn contents(folder: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    files(folder, &mut found);
    found.sort();
    found.into_iter().map(|path| (path.clone(), fs::read(path).ok())).collect()
}

fn expected(file: &str) -> serde_json::Value {
    let text = fs::read_to_string(fixture(file)).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn import_sessions_of_format_1(store: &Store) {
    let act = WriteContext::asked("import", Timestamp::from_micros(1_767_285_700_000_000));
    let mut bundle = fs::File::open(fixture("v1.forge")).unwrap();
    store.import_bundle(&act, &mut bundle, None).unwrap();
}

/// Forgets what depends on the store and not on its sessions.
fn without_store(mut manifest: serde_json::Value) -> serde_json::Value {
    for session in manifest["sessions"].as_array_mut().unwrap() {
        for field in ["full_states", "current"] {
            session.as_object_mut().unwrap().remove(field);
        }
    }
    manifest.as_object_mut().unwrap().remove("id");
    manifest
}

#[test]
fn sessions_of_the_previous_format_are_imported_from_a_bundle() {
    let store = Store::in_memory().unwrap();
    import_sessions_of_format_1(&store);
    let found = without_store(manifest(&store).unwrap());
    assert_eq!(found, without_store(expected("v1.json")));
}

fn assert_says(store: &Store, expected: &serde_json::Value) {
    let found = manifest(store).unwrap();
    // Compares session by session and moment by moment: a whole manifest is too long for an error
    // message.
    let pairs = found["sessions"].as_array().unwrap().iter();
    for (found, expected) in pairs.zip(expected["sessions"].as_array().unwrap()) {
        for (name, value) in expected.as_object().unwrap() {
            let moments = value.as_array().into_iter().flatten();
            for (place, moment) in moments.enumerate() {
                assert_eq!(&found[name][place], moment, "{name} {place}");
            }
            assert_eq!(&found[name], value, "{name}");
        }
    }
    assert_eq!(&found, expected);
}

#[test]
fn the_golden_store_has_its_content_and_can_be_continued() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    copy(&fixture(FIXTURE).join("store"), &path);
    let store = Store::open(&path, Options::default()).unwrap();
    let expected = expected("v2/manifest.json");
    assert_says(&store, &expected);
    let full = &expected["sessions"][0]["full_states"];
    assert!(!full.as_array().unwrap().is_empty(), "a full state is part of it");
    let session = store.session("debug").unwrap();
    let before = session.summary().unwrap();
    let act = WriteContext::asked("go on", Timestamp::from_micros(1_767_361_600_000_000));
    let value = Value::from([("description", "written by a later version".into())]);
    let change = ClaimChange::add(Key::new(Kind::Note, "new"), value);
    session.write(&act).change(change).commit().unwrap();
    store.maintain(0).unwrap();
    let store = Store::open(&path, Options::default()).unwrap();
    let session = store.session("debug").unwrap();
    let head = session.head().unwrap();
    session.check_digest(&head).unwrap();
    assert_eq!(session.summary().unwrap().claims, before.claims + 1);
    session.undo(&act, None).unwrap();
    assert_eq!(session.summary().unwrap().claims, before.claims);
    // An operation of an older version can be undone too.
    session.undo(&act, None).unwrap();
    assert_eq!(session.summary().unwrap().claims, before.claims - 1);
}

/// The positions of full states depend on the version that rebuilds them.
#[test]
fn the_golden_store_with_a_rebuilt_index_has_its_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    copy(&fixture(FIXTURE).join("store"), &path);
    Store::open(&path, Options::default()).unwrap().rebuild().unwrap();
    let store = Store::open(&path, Options::default()).unwrap();
    let found = without_store(manifest(&store).unwrap());
    assert_eq!(found, without_store(expected("v2/manifest.json")));
}

#[test]
fn the_golden_store_is_readable_in_a_read_only_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    copy(&fixture(FIXTURE).join("store"), &path);
    let mut all = vec![path.clone()];
    files(&path, &mut all);
    let allow = |writing: bool| {
        for path in &all {
            let mode = if path.is_dir() { 0o500 } else { 0o400 } | if writing { 0o200 } else { 0 };
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
    };
    let before = contents(&path);
    allow(false);
    let store = Store::open(&path, Options::default().read_only(true)).unwrap();
    assert_says(&store, &expected("v2/manifest.json"));
    let session = store.session("debug").unwrap();
    let act = WriteContext::asked("write", Timestamp::from_micros(1_767_361_600_000_000));
    let error = session.schedule(&act, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert_eq!(contents(&path), before, "reading changes nothing");
    allow(true);
}

//! A store that somebody else made, in a project that was fetched: it is data, and leads nowhere.

use crate::fault::run;
use forge_store::error::ErrorKind;
use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::{Act, ClaimChange, Depth, NewSession, Options, Store};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const TIME: Timestamp = Timestamp::from_micros(1_767_261_600_000_000);

fn make(path: &Path) -> Store {
    let store = Store::create(path, Options::default()).unwrap();
    let act = Act::asked("test", TIME);
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    let change = ClaimChange::put(Key::new(Kind::Note, "N1"), Value::from([("says", "x".into())]));
    session.write(&act).change(change).commit().unwrap();
    store.maintain(0).unwrap();
    store
}

fn segment(store: &Path) -> PathBuf {
    let entries = fs::read_dir(store.join("journal")).unwrap().map(|entry| entry.unwrap().path());
    entries.into_iter().find(|path| path.extension().is_some_and(|it| it == "log")).unwrap()
}

/// No way to use the store goes through what stands there.
fn refused(path: &Path, why: &str) {
    for read_only in [false, true] {
        let error = Store::open(path, Options { read_only, ..Options::default() }).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains(why), "{source}");
        assert!(source.ends_with("remove it"), "{source}");
        assert!(
            error.to_string().contains(&format!("the store at {} ", path.display())),
            "{error}"
        );
    }
    assert!(Store::verify(path, Depth::ReadData, TIME, None).is_err());
    assert!(Store::repair(path, &path.with_extension("to"), TIME, None).is_err());
}

/// The end of a journal that is no record is cut off by whoever writes next: through a link that was somebody's own file.
#[test]
fn a_link_in_a_store_is_refused_and_what_it_leads_to_stays_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own");
    for name in ["SYNCED", "append.lock", "segment", "next.room", "hooks.jsonl", "FORMAT", "log"] {
        let path = folder.path().join(format!("store {name}"));
        drop(make(&path));
        fs::write(&own, "what is mine").unwrap();
        let place = match name {
            "segment" => segment(&path),
            "hooks.jsonl" => path.join("log/hooks.jsonl"),
            "FORMAT" | "log" => path.join(name),
            _ => path.join("journal").join(name),
        };
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&place);
        symlink(&own, &place).unwrap();
        refused(&path, "is a link");
        assert_eq!(fs::read(&own).unwrap(), b"what is mine", "{name}");
    }
}

#[test]
fn a_pipe_in_a_store_keeps_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    for name in
        ["FORMAT", "journal/SYNCED", "spool/0123456789abcdef0123456789abcdef", "index/published"]
    {
        let path = folder.path().join(name.replace('/', " "));
        drop(make(&path));
        let place = path.join(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&place);
        assert!(run("mkfifo", &[place.to_str().unwrap()]));
        refused(&path, "is no file");
    }
}

/// A store that lies elsewhere is its owner's own affair.
#[test]
fn a_link_to_a_store_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    drop(make(&folder.path().join("store")));
    let link = folder.path().join("link");
    symlink(folder.path().join("store"), &link).unwrap();
    let store = Store::open(&link, Options::default()).unwrap();
    assert_eq!(store.session("s").unwrap().head().unwrap().revision(), Some(1));
}

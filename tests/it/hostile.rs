//! A malicious store in a downloaded project: it is treated as data, and its links are not
//! followed.

use crate::fault::run;
use forge_store::error::ErrorKind;
use forge_store::model::{Key, Kind, Timestamp, Value};
use forge_store::store::{
    ClaimChange, NewSession, Options, Session, Store, VerifyDepth, WriteContext,
};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const TIME: Timestamp = Timestamp::from_micros(1_767_261_600_000_000);

fn make(path: &Path) -> Store {
    let store = Store::create(path, Options::default()).unwrap();
    let act = WriteContext::asked("test", TIME);
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

/// Checks that opening and verifying the store are refused, and that a repair lists the reason.
fn refused(path: &Path, why: &str) {
    for read_only in [false, true] {
        let error = Store::open(path, Options::default().read_only(read_only)).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains(why), "{source}");
        assert!(source.ends_with("remove it"), "{source}");
        assert!(
            error.to_string().contains(&format!("the store at {} ", path.display())),
            "{error}"
        );
    }
    assert!(Store::verify(path, VerifyDepth::ReadData, TIME, None).is_err());
    // A repair lists it, and saves the rest.
    let done = Store::repair(path, &path.with_extension("to"), TIME, None).unwrap();
    assert!(done.lost.iter().any(|line| line.contains(why)), "{:?}", done.lost);
}

/// Regression: a writer cuts an incomplete end of the journal; through a link, it cut a file of the
/// user.
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
fn a_pipe_in_a_store_is_refused_without_waiting() {
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
        refused(&path, "is a pipe");
    }
}

/// The owner of a project may place the store elsewhere.
#[test]
fn a_link_to_a_store_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    drop(make(&folder.path().join("store")));
    let link = folder.path().join("link");
    symlink(folder.path().join("store"), &link).unwrap();
    let store = Store::open(&link, Options::default()).unwrap();
    assert_eq!(store.session("s").unwrap().head().unwrap().revision(), Some(1));
}

/// Runs on a small stack: code that recurses once per revision or branch would overflow it.
fn on_little_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(192 << 10).spawn(work).unwrap();
    thread.join().unwrap()
}

#[test]
fn a_hundred_thousand_revisions_are_read_without_recursion() {
    const LENGTH: u64 = 100_000;
    on_little_stack(|| {
        // Without an index there is no keyframe: every state is replayed from the beginning.
        let store = Store::in_memory().unwrap();
        let act =
            |second: u64| WriteContext::asked("test", TIME.plus_micros(second as i64 * 1_000_000));
        let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
        for number in 1..=LENGTH {
            let value = Value::from([("says", format!("x{number}").into())]);
            let change = ClaimChange::put(Key::new(Kind::Note, "N1"), value);
            session.write(&act(number)).change(change).commit().unwrap();
        }
        let says = |number: u64| {
            let state = session.state(&session.at_sequence(number).unwrap()).unwrap();
            let claims = state.claims_of(Kind::Note).unwrap();
            assert_eq!(claims.len(), 1);
            claims[0].1.value.clone()
        };
        for number in [1, LENGTH / 2, LENGTH] {
            assert_eq!(says(number), Value::from([("says", format!("x{number}").into())]));
        }
        let moment = session.at_time(TIME.plus_micros(77_777_500_000)).unwrap();
        assert_eq!(moment.revision(), Some(77_777));
        let mut lines = 0;
        session
            .export_events(&|_, _| None, &mut |_| {
                lines += 1;
                Ok::<_, forge_store::error::Error>(())
            })
            .unwrap();
        assert_eq!(lines, 1 + LENGTH);
        session.restore(&act(LENGTH + 1), &session.at_sequence(1).unwrap()).unwrap();
        assert_eq!(says(LENGTH + 1), Value::from([("says", "x1".into())]));
    });
}

#[test]
fn thousands_of_nested_branches_are_read_without_recursion() {
    const DEPTH: u64 = 3000;
    on_little_stack(|| {
        let store = Store::in_memory().unwrap();
        let act =
            |second: u64| WriteContext::asked("test", TIME.plus_micros(second as i64 * 1_000_000));
        let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
        let change =
            ClaimChange::put(Key::new(Kind::Note, "N1"), Value::from([("says", "x".into())]));
        session.write(&act(0)).change(change).commit().unwrap();
        for number in 1..=DEPTH {
            let name = format!("b{number}");
            session.create_branch(&act(number), &name, None, Default::default()).unwrap();
            session.switch_branch(&act(number), &name, false).unwrap();
        }
        // Only the last branch has a revision.
        let change =
            ClaimChange::put(Key::new(Kind::Note, "N2"), Value::from([("says", "y".into())]));
        session.write(&act(DEPTH + 1)).change(change).commit().unwrap();
        let count =
            |session: &Session| session.state(&session.head().unwrap()).unwrap().claims().len();
        assert_eq!(count(&session), 2);
        let mut text = Vec::new();
        session
            .export_events(&|_, _| None, &mut |line| {
                text.extend_from_slice(line);
                Ok::<_, forge_store::error::Error>(())
            })
            .unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.matches("\"switch\":").count() as u64, DEPTH);
    });
}

use super::*;
use crate::model::{Key, Kind, Timestamp, Value};
use std::path::Path;

fn note(session: &Session, id: &str) {
    let act = Act::asked("test", Timestamp::default());
    let change = ClaimChange::put(Key::new(Kind::Note, id), Value::from([("says", id.into())]));
    session.write(&act).change(change).commit().unwrap();
}

fn generations(path: &Path) -> usize {
    let entries = fs::read_dir(path.join(folder::INDEX_FOLDER)).unwrap();
    entries.filter(|entry| entry.as_ref().unwrap().path().join("CURRENT").exists()).count()
}

/// The generation before stayed until the next apply: after everything was written anew half of the store was waste, and on a
/// full disk the room that was made was not there.
#[test]
fn the_index_of_before_goes_as_soon_as_nobody_reads_it() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("store");
    let store = Store::create(&path, Options::default()).unwrap();
    let act = Act::asked("test", Timestamp::default());
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    let read = || session.state(&session.head().unwrap()).unwrap();
    note(&session, "N1");
    assert!(store.maintain(0).unwrap());
    note(&session, "N2");
    read();
    assert!(store.maintain(0).unwrap());
    assert_eq!(generations(&path), 1, "after an apply");
    read();
    assert!(store.compact().unwrap());
    assert_eq!(generations(&path), 1, "after a compaction");
    read();
    store.rebuild().unwrap().unwrap();
    assert_eq!(generations(&path), 1, "after a rebuild");
    // What somebody reads stays, and goes with the next.
    let other = Store::open(&path, Options::default()).unwrap();
    let reading = other.session("s").unwrap();
    let state = reading.state(&reading.head().unwrap()).unwrap();
    assert!(store.compact().unwrap());
    assert_eq!(generations(&path), 2);
    assert_eq!(state.claims().entries().count(), 2);
    drop((state, reading, other));
    assert!(store.compact().unwrap());
    assert_eq!(generations(&path), 1);
}

/// Who appended after another thread had published a generation took in what came since from nothing.
#[test]
fn what_is_taken_in_after_all_was_forgotten_stands_on_the_whole_store() {
    let store = Store::in_memory().unwrap();
    let act = Act::asked("test", Timestamp::default());
    let session = store.create_session(&act, NewSession::named("s")).unwrap();
    let live = &store.engine.live;
    let (_, from) = live.refs().unwrap();
    session.schedule(&act, Some(7_000_000)).unwrap();
    let tail = live.log.read(from, u64::MAX).unwrap();
    live.forget();
    let refs = live.take_in(&tail).unwrap();
    assert_eq!(refs.sessions.first().and_then(|session| session.schedule), Some(7_000_000));
}

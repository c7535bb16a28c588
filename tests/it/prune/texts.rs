//! Long texts in the bodies of checkpoints, which are stored as separate objects. Regression: they
//! were never swept, because only the objects of removed deltas, facts and sessions were examined.

use super::{act, bare, create, open, revise, time};
use forge_store::error::Error;
use forge_store::model::{CheckpointId, Fact, FactOrigin, Kind, RetentionPolicy, TextRef, Value};
use forge_store::store::{
    BundleRange, NewCheckpoint, NewSession, Options, Session, Store, VerifyDepth, VerifyOutcome,
};
use std::io::Cursor;
use std::path::Path;

/// A text that is long enough for a separate object.
fn long(about: &str) -> String {
    format!("{about} ").repeat(3000)
}

/// A checkpoint whose body refers to a long text; returns the reference.
fn checkpoint(session: &Session, minutes: i64, about: &str) -> (CheckpointId, TextRef) {
    named(session, minutes, about, NewCheckpoint::manual(about))
}

fn named(
    session: &Session,
    minutes: i64,
    about: &str,
    wanted: NewCheckpoint,
) -> (CheckpointId, TextRef) {
    let act = act(minutes);
    let mut write = session.write(&act);
    let text = write.text(&long(about));
    let reference = TextRef::from_value(&text).expect("it is long");
    let wanted = NewCheckpoint { body: Value::from([("summary", text)]), ..wanted };
    let made = write.checkpoint(wanted).commit().unwrap().checkpoint.unwrap();
    (made.id, reference)
}

fn fact(session: &Session, minutes: i64, about: &str) {
    let act = act(minutes);
    let mut write = session.write(&act);
    let text = write.text(&long(about));
    let (at, id) = (act.now, format!("f{minutes}"));
    let value = Value::from([("text", text)]);
    let (kind, origin) = (Kind::Message, FactOrigin::Recorded);
    write.fact(Fact { kind, id, at, origin, place: 0, recorded_at: at, value }).commit().unwrap();
}

fn is_there(session: &Session, text: &TextRef, about: &str) -> bool {
    match session.text(None, text, &|_, _| None) {
        Ok(found) => {
            assert_eq!(found, long(about));
            true
        }
        Err(Error::Corrupt { .. }) => false,
        Err(other) => panic!("{other:?}"),
    }
}

fn objects(path: &Path) -> u64 {
    let verified = Store::verify(path, VerifyDepth::ReadData, time(9000), None).unwrap();
    assert_eq!(verified.outcome, VerifyOutcome::Clean, "{:?}", verified.findings);
    verified.checked.objects
}

/// Drops every checkpoint except the newest, and folds nothing.
fn drops() -> RetentionPolicy {
    RetentionPolicy { revisions: i64::MAX / 4, ..bare() }
}

fn export(store: &Store, session: &Session) -> Vec<u8> {
    let mut bundle = Vec::new();
    let mut write = |bytes: &[u8]| {
        bundle.extend_from_slice(bytes);
        Ok::<_, Error>(())
    };
    let range = BundleRange { session: session.clone(), from: 0, to: None };
    store.export_bundle(&[range], &mut write).unwrap();
    bundle
}

#[test]
fn a_sweep_removes_the_text_of_a_pruned_checkpoint_unless_something_else_refers_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = create(&path);
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    revise(&session, 1, &[("n", Some("a note".to_owned()))]);
    let (_, own) = checkpoint(&session, 2, "own");
    let (_, of_fact) = checkpoint(&session, 3, "fact");
    let (_, of_other) = checkpoint(&session, 4, "other");
    fact(&session, 5, "fact");
    let other = store.create_session(&act(6), NewSession::named("other")).unwrap();
    checkpoint(&other, 7, "other");
    let (_, newest) = checkpoint(&session, 8, "newest");
    let texts = [(&own, "own"), (&of_fact, "fact"), (&of_other, "other"), (&newest, "newest")];
    let there = |session: &Session| texts.map(|(text, about)| is_there(session, text, about));
    store.maintain(0).unwrap();
    let full = objects(&path);

    let looked = session.prune_preview(&drops(), time(20)).unwrap();
    let pruned = session.prune(&act(20), &drops()).unwrap();
    assert_eq!((pruned.dropped_checkpoints(), pruned.folded_revisions()), (3, 0));
    assert_eq!(looked.bytes, pruned.bytes);
    store.maintain(0).unwrap();
    assert_eq!(there(&session), [true; 4], "it can be taken back");
    session.undo(&act(21), None).unwrap();
    assert_eq!(there(&session), [true; 4]);
    // A redone pruning is not swept before its time.
    let redone = session.redo(&act(22)).unwrap();
    assert_eq!(store.sweep(time(30), time(10)).unwrap().prunings, 0, "its time is not over");
    assert_eq!(there(&session), [true; 4]);

    let swept = store.sweep(time(30), time(30)).unwrap();
    assert_eq!((swept.prunings, swept.values), (1, 1));
    assert_eq!(there(&session), [false, true, true, true]);
    store.maintain(0).unwrap();
    store.compact().unwrap();
    assert_eq!(objects(&path), full - 1, "its bytes are gone");
    // A checkpoint whose text was swept cannot be restored. The redone operation had a copy of it.
    let again = session.undo(&act(31), Some(&redone.operation.to_string()));
    assert!(matches!(again, Err(Error::Conflict(_))), "{again:?}");

    drop((store, session, other));
    let store = open(&path);
    assert_eq!(there(&store.session("s").unwrap()), [false, true, true, true]);
    store.rebuild().unwrap();
    objects(&path);
    let bundle = export(&store, &store.session("s").unwrap());
    let into = Store::create(&folder.path().join("into"), Options::default()).unwrap();
    into.import_bundle(&act(40), &mut Cursor::new(&bundle), None).unwrap();
    assert_eq!(there(&into.session("s").unwrap()), [false, true, false, true]);
    into.maintain(0).unwrap();
    objects(&folder.path().join("into"));
}

#[test]
fn an_undone_pruning_removes_no_text() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let (id, text) = checkpoint(&session, 1, "first");
    checkpoint(&session, 2, "newest");
    assert_eq!(session.prune(&act(3), &drops()).unwrap().dropped_checkpoints(), 1);
    session.undo(&act(4), None).unwrap();
    // Another pruning dropped it again, which can still be undone.
    assert_eq!(session.prune(&act(5), &drops()).unwrap().dropped_checkpoints(), 1);
    assert_eq!(store.sweep(time(6), time(3)).unwrap().prunings, 1);
    assert!(is_there(&session, &text, "first"));
    session.undo(&act(7), None).unwrap();
    assert!(session.checkpoints(&Default::default()).unwrap().iter().any(|one| one.id == id));
    assert_eq!(store.sweep(time(8), time(8)).unwrap().prunings, 1);
    assert!(is_there(&session, &text, "first"), "it is in sight");
}

/// The texts that a checkpoint had before it was completed are removed with it too.
#[test]
fn earlier_texts_of_a_completed_checkpoint_are_removed_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = create(&path);
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let event = |minutes| NewCheckpoint {
        at: Some(time(minutes)),
        key: Some("compaction 1".to_owned()),
        ..NewCheckpoint::manual("a compaction")
    };
    let (id, before) = named(&session, 1, "before", event(1));
    let (same, after) = named(&session, 2, "after", event(1));
    assert_eq!(id, same);
    checkpoint(&session, 3, "newest");
    session.prune(&act(4), &drops()).unwrap();
    assert_eq!(store.sweep(time(5), time(5)).unwrap().values, 2);
    assert!(!is_there(&session, &before, "before") && !is_there(&session, &after, "after"));
    let bundle = export(&store, &session);
    let into = Store::in_memory().unwrap();
    into.import_bundle(&act(6), &mut Cursor::new(&bundle), None).unwrap();
    assert_eq!(into.session("s").unwrap().checkpoints(&Default::default()).unwrap().len(), 1);
    store.maintain(0).unwrap();
    objects(&path);
}

/// When a whole session is dropped, the texts of its pruned checkpoints are removed too.
#[test]
fn texts_of_pruned_checkpoints_are_removed_with_their_session() {
    let store = Store::in_memory().unwrap();
    let old = store.create_session(&act(0), NewSession::named("old")).unwrap();
    let (_, pruned) = checkpoint(&old, 1, "pruned");
    let (_, seen) = checkpoint(&old, 2, "seen");
    assert_eq!(old.prune(&act(3), &drops()).unwrap().dropped_checkpoints(), 1);
    let work = store.create_session(&act(600), NewSession::named("work")).unwrap();
    revise(&work, 600, &[("n", Some("at work".to_owned()))]);
    let rules = RetentionPolicy { sessions: Some(60_000_000), ..RetentionPolicy::none() };
    assert_eq!(work.prune(&act(601), &rules).unwrap().sessions.len(), 1);
    store.sweep(time(602), time(602)).unwrap();
    assert!(!is_there(&work, &pruned, "pruned") && !is_there(&work, &seen, "seen"));
}

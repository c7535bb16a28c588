//! Sessions that ended: their transcripts and outputs are dropped and their facts stay, or the
//! whole session is dropped.

use super::{act, all, bare, create, disk_bytes, history, open, revise, time};
use forge_store::error::Error;
use forge_store::model::{BranchMetadata, Fact, FactOrigin, Kind, RetentionPolicy, Value};
use forge_store::redact::{PartEnding, TextForm};
use forge_store::store::{
    BundleRange, NewCheckpoint, NewSession, Options, Session, SourceChunk, Store, UNDO_MICROS,
    VerifyDepth, VerifyOutcome,
};
use std::io::Cursor;
use std::path::Path;

const HOUR: i64 = 3_600_000_000;

/// Bytes that hardly compress.
pub(super) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Takes these bytes as the next part of a session's source, with a fact.
pub(super) fn take(
    session: &Session,
    store: &Store,
    minutes: i64,
    known: &mut Vec<u8>,
    bytes: &[u8],
) {
    let act = act(minutes);
    let bookmark = session.bookmark("log").unwrap().unwrap_or_default();
    let open = known[usize::try_from(bookmark.open_block()).unwrap()..].to_vec();
    let fact = Fact {
        kind: Kind::Message,
        id: format!("f{minutes}"),
        at: act.now,
        origin: FactOrigin::Imported,
        place: bookmark.bytes,
        recorded_at: act.now,
        value: Value::from([("text", "said".into())]),
    };
    let taken = SourceChunk {
        bytes: store.redact_source(bytes, TextForm::Plain, PartEnding::End),
        bookmark,
        open: &open,
        lines: 1,
        keep: true,
        facts: vec![fact],
        ..SourceChunk::default()
    };
    let operation = store.new_operation().unwrap();
    session.import_chunk(&act, operation, "log", taken).unwrap();
    store.sync().unwrap();
    known.extend_from_slice(bytes);
}

/// A session that ended long ago, with its source, and an active one in the same store.
fn ended(path: &Path) -> (Store, Session, Session, Vec<u8>) {
    let store = create(path);
    let old = store.create_session(&act(0), NewSession::named("old")).unwrap();
    let mut source = Vec::new();
    // Also beyond the position at which a new part begins.
    for (minutes, length) in [(1, 300_000), (2, 9_000_000), (3, 40_000)] {
        take(&old, &store, minutes, &mut source, &noise(minutes as u64, length));
    }
    let new = store.create_session(&act(600), NewSession::named("new")).unwrap();
    (store, old, new, source)
}

fn rules() -> RetentionPolicy {
    RetentionPolicy { texts: Some(HOUR), ..RetentionPolicy::none() }
}

fn assert_clean(path: &Path) {
    for depth in [VerifyDepth::Quick, VerifyDepth::ReadData] {
        let verified = Store::verify(path, depth, time(700), None).unwrap();
        assert_eq!(verified.outcome, VerifyOutcome::Clean, "{:?}", verified.findings);
    }
}

fn facts(session: &Session) -> usize {
    session.state(&session.head().unwrap()).unwrap().facts_of(Kind::Message).unwrap().len()
}

/// A read continues where the one before ended, unless that would keep too much.
#[test]
fn parts_of_a_source_are_read_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let (_, old, _, source) = ended(&folder.path().join(".forge"));
    let all = source.len() as u64;
    let restart = 8 << 20;
    for (offset, length) in [
        (10, 20),
        (5_000_000, 100),
        (2_200_000, 3_000_000),
        (restart - 7, 14),
        (restart, 1),
        (restart + 500_000, 9),
        (0, 1),
        (restart + 900_000, 0),
        (all - 3, 3),
        (0, all),
        (4_000_000, 5_000_000),
    ] {
        let begin = usize::try_from(offset).unwrap();
        let expected = &source[begin..begin + usize::try_from(length).unwrap()];
        let read = old.source_bytes("log", offset, length).unwrap();
        assert!(read == expected, "{length} bytes from {offset}");
    }
    assert!(old.source_bytes("log", all - 3, 4).is_err());
}

#[test]
fn a_transcript_is_dropped_restored_and_swept_while_its_facts_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let (store, old, new, mut source) = ended(&path);
    let all = source.len() as u64;
    let preview = new.prune_preview(&rules(), time(600)).unwrap();
    let of: Vec<_> =
        preview.transcripts.iter().map(|text| (&*text.session, &*text.source)).collect();
    assert_eq!(of, [("old", "log")]);
    assert!(preview.bytes > 9_000_000, "{}", preview.bytes);
    // The session that prunes is active; so is one that ended more recently.
    assert_eq!(old.prune_preview(&rules(), time(600)).unwrap().transcripts, []);
    assert_eq!(new.prune_preview(&rules(), time(60)).unwrap().transcripts, []);

    let pruned = new.prune(&act(601), &rules()).unwrap();
    assert_eq!(pruned.transcripts, preview.transcripts);
    let old_bytes = |length| old.source_bytes("log", 0, length);
    assert!(matches!(old_bytes(1), Err(Error::TextRemoved { .. })), "{:?}", old_bytes(1));
    assert_eq!(facts(&old), 3);
    store.maintain(0).unwrap();
    assert_clean(&path);
    assert!(disk_bytes(&path) > 9_000_000);

    // Later parts are independent, whether the drop is undone or not.
    take(&old, &store, 602, &mut source, &noise(9, 70_000));
    let later = || old.source_bytes("log", all, 70_000).unwrap();
    assert_eq!(later(), &source[all as usize..]);
    new.undo(&act(603), None).unwrap();
    assert_eq!(old.source_bytes("log", 0, source.len() as u64).unwrap(), source);
    new.redo(&act(604)).unwrap();
    assert!(matches!(old_bytes(1), Err(Error::TextRemoved { .. })));
    assert_eq!(later(), &source[all as usize..]);

    let due = time(604).plus_micros(UNDO_MICROS);
    assert_eq!(store.sweep(due, time(604)).unwrap().prunings, 1);
    store.maintain(0).unwrap();
    store.compact().unwrap();
    assert!(disk_bytes(&path) < 1_000_000, "{}", disk_bytes(&path));
    assert_clean(&path);
    let store = open(&path);
    let (old, new) = (store.session("old").unwrap(), store.session("new").unwrap());
    assert!(matches!(old.source_bytes("log", 5, 9), Err(Error::TextRemoved { .. })));
    assert!(matches!(old.source_bytes("log", all - 1, 9), Err(Error::TextRemoved { .. })));
    assert_eq!(old.source_bytes("log", all, 70_000).unwrap(), &source[all as usize..]);
    assert_eq!(facts(&old), 4);
    let again = new.undo(&act(605), pruned.operation.map(|id| id.to_string()).as_deref());
    assert!(matches!(again, Err(Error::Conflict(_))), "{again:?}");

    // The later part is dropped in its turn, and an undo restores it from where the first one
    // ended.
    take(&old, &store, 606, &mut source, &noise(10, 1000));
    let now = time(2000);
    let second = new.prune(&act(2000), &rules()).unwrap();
    assert_eq!(second.transcripts.len(), 1);
    assert_eq!(new.prune_preview(&rules(), now).unwrap().transcripts, [], "nothing is left of it");
    new.undo(&act(2001), None).unwrap();
    assert!(matches!(old.source_bytes("log", all - 1, 9), Err(Error::TextRemoved { .. })));
    assert_eq!(old.source_bytes("log", all, 71_000).unwrap(), &source[all as usize..]);
    store.maintain(0).unwrap();
    assert_clean(&path);
}

#[test]
fn a_store_with_dropped_transcripts_can_be_rebuilt_repaired_and_exported() {
    for swept in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".forge");
        let (store, old, new, mut source) = ended(&path);
        let all = source.len() as u64;
        new.prune(&act(601), &rules()).unwrap();
        if swept {
            store.sweep(time(602), time(602)).unwrap();
        }
        take(&old, &store, 603, &mut source, &noise(9, 70_000));
        store.rebuild().unwrap();
        let same = |old: &Session| {
            let dropped = old.source_bytes("log", all - 1, 2);
            assert!(matches!(dropped, Err(Error::TextRemoved { .. })), "{dropped:?}");
            assert_eq!(old.source_bytes("log", all, 70_000).unwrap(), &source[all as usize..]);
            assert_eq!(facts(old), 4);
        };
        same(&old);
        assert_clean(&path);

        let repaired = folder.path().join("repaired");
        let done = Store::repair(&path, &repaired, time(700), None).unwrap();
        assert_eq!(done.lost, Vec::<String>::new());
        same(&open(&repaired).session("old").unwrap());
        assert_clean(&repaired);

        let mut bundle = Vec::new();
        let range = |session: &Session| BundleRange { session: session.clone(), from: 0, to: None };
        let mut write = |bytes: &[u8]| {
            bundle.extend_from_slice(bytes);
            Ok::<_, Error>(())
        };
        store.export_bundle(&[range(&old), range(&new)], &mut write).unwrap();
        assert!(bundle.len() < 200_000, "{}", bundle.len());
        let other = folder.path().join("other");
        let into = Store::create(&other, Options::default()).unwrap();
        into.import_bundle(&act(800), &mut Cursor::new(&bundle), None).unwrap();
        same(&into.session("old").unwrap());
        into.maintain(0).unwrap();
        assert_clean(&other);
        let twice = into.import_bundle(&act(801), &mut Cursor::new(&bundle), None).unwrap();
        assert_eq!(twice.records, 0, "{twice:?}");
        // Here the bytes are still known, or are dropped too.
        store.import_bundle(&act(802), &mut Cursor::new(&bundle), None).unwrap();
        same(&old);
    }
}

/// A store with three sessions: `s`, which ended long ago and has data of every kind, one that
/// ended at the same time and shares a large value, and an active one.
fn three(path: &Path) -> (Store, Session, Session, Session) {
    let store = create(path);
    let old = history(&store);
    let mut source = Vec::new();
    take(&old, &store, 41, &mut source, &noise(1, 2_000_000));
    old.create_branch(&act(42), "try", None, BranchMetadata::default()).unwrap();
    old.switch_branch(&act(42), "try", true).unwrap();
    let shared = "shared ".repeat(2000);
    revise(&old, 43, &[("big", Some(shared.clone()))]);
    old.prune(&act(44), &bare()).unwrap();
    revise(&old, 45, &[("n1", None)]);
    let other = store.create_session(&act(600), NewSession::named("other")).unwrap();
    revise(&other, 600, &[("big", Some(shared))]);
    let work = store.create_session(&act(601), NewSession::named("work")).unwrap();
    revise(&work, 601, &[("n", Some("at work".to_owned()))]);
    store.maintain(0).unwrap();
    (store, old, other, work)
}

fn names(store: &Store) -> Vec<String> {
    store.sessions().unwrap().into_iter().map(|one| one.info.name).collect()
}

#[test]
fn a_session_is_dropped_restored_and_swept_while_the_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let (store, old, other, work) = three(&path);
    let before = (all(&old), all(&other), all(&work));
    let log = old.records(1, usize::MAX).unwrap();
    let mut bundle = Vec::new();
    let mut write = |bytes: &[u8]| {
        bundle.extend_from_slice(bytes);
        Ok::<_, Error>(())
    };
    let range = BundleRange { session: old.clone(), from: 0, to: None };
    store.export_bundle(&[range], &mut write).unwrap();

    let rules =
        RetentionPolicy { sessions: Some(HOUR), texts: Some(HOUR), ..RetentionPolicy::none() };
    let preview = work.prune_preview(&rules, time(605)).unwrap();
    let going: Vec<_> = preview.sessions.iter().map(|one| &*one.session).collect();
    assert_eq!((going, preview.transcripts.len()), (vec!["s"], 0));
    let pruned = work.prune(&act(605), &rules).unwrap();
    assert_eq!(names(&store), ["other", "work"]);
    assert!(matches!(store.session("s"), Err(Error::NotFound { .. })));
    // A handle from before cannot continue in it.
    let late = act(606);
    let late = old.write(&late).checkpoint(NewCheckpoint::manual("late")).commit();
    assert!(matches!(late, Err(Error::Conflict(_))), "{late:?}");
    assert_clean(&path);
    store.maintain(0).unwrap();
    assert_clean(&path);

    work.undo(&act(607), None).unwrap();
    let again = store.session("s").unwrap();
    assert_eq!(all(&again), before.0);
    assert_eq!(again.records(1, usize::MAX).unwrap(), log);
    assert_eq!(again.source_bytes("log", 0, 2_000_000).unwrap(), noise(1, 2_000_000));
    work.redo(&act(608)).unwrap();
    assert_eq!(names(&store), ["other", "work"]);
    // The name is free, and another session takes it.
    let heir = store.create_session(&act(609), NewSession::named("s")).unwrap();
    revise(&heir, 609, &[("n", Some("another".to_owned()))]);
    let refused = work.undo(&act(610), pruned.operation.map(|id| id.to_string()).as_deref());
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");

    let swept = store.sweep(time(700), time(700)).unwrap();
    assert!(swept.prunings >= 1 && swept.values > 0, "{swept:?}");
    store.maintain(0).unwrap();
    store.compact().unwrap();
    assert!(disk_bytes(&path) < 600_000, "{}", disk_bytes(&path));
    assert_clean(&path);
    drop(store);
    let store = open(&path);
    assert_eq!(names(&store), ["other", "work", "s"]);
    let state = |name: &str| all(&store.session(name).unwrap());
    assert_eq!((state("other"), state("work")), (before.1.clone(), before.2.clone()));
    store.rebuild().unwrap();
    assert_clean(&path);
    let repaired = folder.path().join("repaired");
    let done = Store::repair(&path, &repaired, time(800), None).unwrap();
    assert_eq!(done.lost, Vec::<String>::new());
    assert_clean(&repaired);
    assert_eq!(names(&open(&repaired)), ["other", "work", "s"]);

    // Importing a copy restores it under another name.
    store.import_bundle(&act(900), &mut Cursor::new(&bundle), Some("s-again")).unwrap();
    assert_eq!(all(&store.session("s-again").unwrap()), before.0);
    assert_clean(&path);
}

#[test]
fn an_active_session_and_one_kept_by_rules_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (store, old, ..) = three(&folder.path().join(".forge"));
    let rules = |age| RetentionPolicy { sessions: Some(age), ..RetentionPolicy::none() };
    // The session that prunes, and the current one.
    let going = old.prune_preview(&rules(HOUR), time(2000)).unwrap().sessions;
    assert_eq!(going.iter().map(|one| &*one.session).collect::<Vec<_>>(), ["other"]);
    let young = store.session("work").unwrap().prune_preview(&rules(24 * HOUR), time(602));
    assert_eq!(young.unwrap().sessions, []);
}

/// Regression: the message did not say what to do next.
#[test]
fn a_pruning_is_not_redone_after_its_session_was_used_again() {
    let store = Store::in_memory().unwrap();
    let begin = |name: &str| store.create_session(&act(0), NewSession::named(name)).unwrap();
    let (old, work) = (begin("old"), begin("work"));
    revise(&old, 1, &[("n", Some("first".to_owned()))]);
    revise(&work, 600, &[("n", Some("first".to_owned()))]);
    let rules = RetentionPolicy { sessions: Some(HOUR), ..RetentionPolicy::none() };
    work.prune(&act(601), &rules).unwrap();
    work.undo(&act(602), None).unwrap();
    revise(&old, 603, &[("n", Some("second".to_owned()))]);
    let refused = work.redo(&act(604)).unwrap_err();
    let expected = "the session 'old' is in use again: prune or drop it again";
    assert!(refused.to_string().contains(expected), "{refused}");
}

//! Bundles that contain only what was written since an export.

use super::law::{follow, same, session_contents, step};
use super::{act, note, whole};
use forge_store::model::{BranchMetadata, Fact, FactOrigin, Kind, Timestamp, Value};
use forge_store::redact::{PartEnding, TextForm};
use forge_store::store::{ExportMark, NewSession, Options, Session, SourceChunk, Store};
use forge_store::{Error, ErrorKind};
use std::io::Cursor;

fn session_in(store: &Store) -> Session {
    store.create_session(&act("begin"), NewSession::named("s")).unwrap()
}

pub(crate) fn command(id: &str) -> Fact {
    let at = Timestamp::from_micros(1_767_300_000_000_000);
    Fact {
        kind: Kind::Command,
        id: id.to_owned(),
        at,
        origin: FactOrigin::Recorded,
        place: 0,
        recorded_at: at,
        value: Value::from([("command", "make".into())]),
    }
}

/// Exports what was written since a mark. Returns the number of records, and the bundle.
fn since(store: &Store, session: &Session, mark: &ExportMark) -> Result<(u64, Vec<u8>), Error> {
    let mut bytes = Vec::new();
    let written = store.export_bundle_since(session, mark, &mut |part: &[u8]| {
        bytes.extend_from_slice(part);
        Ok::<_, Error>(())
    })?;
    Ok((written.records, bytes))
}

#[test]
fn an_increment_has_only_what_was_written_since() {
    let (store, copy) = (Store::in_memory().unwrap(), Store::in_memory().unwrap());
    let session = session_in(&store);
    for number in 0..50 {
        note(&session, &format!("N{number}"), "known");
        session.write(&act("run")).fact(command(&format!("c{number}"))).commit().unwrap();
    }
    let mut mark = None;
    follow(&store, &session, &mut mark, &copy);
    let mark = mark.unwrap();
    assert_eq!(since(&store, &session, &mark).unwrap().0, 0);
    // Earlier facts with the same sequence number are not in the increment.
    session.write(&act("run")).fact(command("last")).commit().unwrap();
    let (records, bytes) = since(&store, &session, &mark).unwrap();
    assert_eq!(records, 1);
    let import = |into: &Store| into.import_bundle(&act("import"), &mut Cursor::new(&bytes), None);
    assert_eq!(import(&copy).unwrap().records, 1);
    assert_eq!(import(&copy).unwrap().known, 1);
    assert_eq!(whole(&copy), whole(&store));
    // Without what came before, nothing is written.
    let other = Store::in_memory().unwrap();
    assert_eq!(import(&other).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(other.every_session().unwrap().is_empty());
}

#[test]
fn a_session_without_revisions_is_continued() {
    let (store, copy) = (Store::in_memory().unwrap(), Store::in_memory().unwrap());
    let session = session_in(&store);
    session.create_branch(&act("branch"), "other", None, BranchMetadata::default()).unwrap();
    let mut mark = None;
    follow(&store, &session, &mut mark, &copy);
    assert_eq!(mark.unwrap().sequence, 0);
    session.switch_branch(&act("switch"), "other", false).unwrap();
    session.write(&act("run")).fact(command("first")).commit().unwrap();
    follow(&store, &session, &mut mark, &copy);
    note(&session, "A", "on the branch");
    follow(&store, &session, &mut mark, &copy);
    assert_eq!(whole(&copy), whole(&store));
}

#[test]
fn an_operation_that_spans_several_exports_is_imported_completely() {
    let (store, copy) = (Store::in_memory().unwrap(), Store::in_memory().unwrap());
    let session = session_in(&store);
    let operation = store.new_operation().unwrap();
    let mut mark = None;
    for line in 1..5 {
        let bookmark = session.bookmark("log").unwrap().unwrap_or_default();
        let begin = bookmark.open_block();
        let open = match bookmark.bytes {
            0 => Vec::new(),
            bytes => session.source_bytes("log", begin, bytes - begin).unwrap(),
        };
        let text = format!("{{\"line\":{line}}}\n");
        let chunk = SourceChunk {
            bookmark,
            open: &open,
            bytes: store.redact_source(text.as_bytes(), TextForm::Json, PartEnding::End),
            lines: 1,
            keep: true,
            facts: vec![command(&format!("c{line}"))],
            ..SourceChunk::default()
        };
        session.import_chunk(&act("import"), operation, "log", chunk).unwrap();
        if line > 1 {
            follow(&store, &session, &mut mark, &copy);
        }
        note(&session, &format!("N{line}"), "between");
    }
    follow(&store, &session, &mut mark, &copy);
    same(&session_contents(&copy), &session_contents(&store), "continued");
    store.maintain(0).unwrap();
    assert_eq!(since(&store, &session, &mark.unwrap()).unwrap().0, 0);
}

#[test]
fn a_mark_of_another_history_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, backup) = (folder.path().join("store"), folder.path().join("backup"));
    let store = Store::create(&path, Options::default()).unwrap();
    let session = session_in(&store);
    note(&session, "A", "before the backup");
    store.maintain(0).unwrap();
    Store::backup(&path, &backup, Timestamp::from_micros(1), None).unwrap();
    note(&session, "B", "lost");
    let mut mark = None;
    follow(&store, &session, &mut mark, &Store::in_memory().unwrap());
    let mark = mark.unwrap();
    since(&store, &session, &mark).unwrap();
    // The backup has fewer records, and continues with other records at the same position.
    let restored = Store::open(&backup, Options::default()).unwrap();
    let session = restored.session("s").unwrap();
    for text in ["", "other, and with a longer text", "more"] {
        if !text.is_empty() {
            note(&session, "C", text);
        }
        let refused = since(&restored, &session, &mark).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        assert!(refused.to_string().contains("export the whole session"), "{refused}");
    }
}

/// Regression: a replaced checkpoint came back with its first content, and the sweep of a pruning
/// that had been undone repeated its folds.
#[test]
fn retention_after_an_export_is_continued() {
    let replaced: Vec<_> = [(22, 61)].into_iter().chain([(0, 0); 8]).chain([(22, 157)]).collect();
    let swept = vec![(0, 0), (5, 0), (12, 0), (9, 0), (21, 28), (9, 0), (12, 0), (14, 0)];
    for steps in [replaced, swept] {
        let (store, copy) = (Store::in_memory().unwrap(), Store::in_memory().unwrap());
        let session = session_in(&store);
        let mut mark = None;
        for (minute, one) in (1..).zip(steps) {
            step(&store, &session, minute, one, "");
            follow(&store, &session, &mut mark, &copy);
        }
        same(&session_contents(&copy), &session_contents(&store), "step by step");
    }
}

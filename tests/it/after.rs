//! Writes after a given revision, and writes that begin their session.

use crate::store::{act, note, time};
use forge_store::diff::ClaimMap;
use forge_store::error::{Error, ErrorKind};
use forge_store::model::{Key, Kind, RetentionPolicy, SessionKind, Value};
use forge_store::store::{
    BundleRange, CheckpointFilter, ClaimChange, NewCheckpoint, NewSession, Options, ResolvedMoment,
    Session, Store,
};
use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Barrier;
use std::thread;

fn claims(session: &Session, moment: &ResolvedMoment) -> ClaimMap {
    session.state(moment).unwrap().claims().entries().map(Result::unwrap).collect()
}

fn ids(session: &Session, moment: &ResolvedMoment) -> Vec<String> {
    claims(session, moment).into_keys().map(|key| key.id).collect()
}

/// A session with the revisions #1 (claim a) and #2 (claims a and b).
fn two(store: &Store) -> Session {
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    session.write(&act(1)).change(note("a", "1")).commit().unwrap();
    session.write(&act(2)).change(note("b", "2")).commit().unwrap();
    session
}

fn stores() -> [(Store, Option<tempfile::TempDir>); 2] {
    let folder = tempfile::tempdir().unwrap();
    let files = Store::create(&folder.path().join(".forge"), Options::default()).unwrap();
    [(Store::in_memory().unwrap(), None), (files, Some(folder))]
}

#[test]
fn a_write_after_a_head_continues_its_branch_and_after_an_earlier_revision_begins_another() {
    for (store, folder) in stores() {
        let session = two(&store);
        let (first, second) = (session.at_sequence(1).unwrap(), session.at_sequence(2).unwrap());
        let done = session.write(&act(3)).after(&second).change(note("c", "3")).commit().unwrap();
        assert_eq!((done.branch.as_str(), done.new_branch), ("main", false));
        assert_eq!(done.revision.unwrap().0, 3);
        let syncs = store.journal_syncs();
        let context = act(4);
        let write = session.write(&context).after_or_fork(&first, "fork");
        let named = NewCheckpoint::manual("forked").tags(["t"]);
        let done = write.change(note("d", "4")).checkpoint(named).commit().unwrap();
        assert_eq!(store.journal_syncs() - syncs, u64::from(folder.is_some()), "one record");
        assert_eq!((done.branch.as_str(), done.new_branch), ("fork", true));
        assert_eq!(done.checkpoint.as_ref().unwrap().revision, Some(4));
        let operation = session.operations(1).unwrap().remove(0);
        assert_eq!(operation.id, done.operation);
        assert_eq!(operation.effects.len(), 4, "{:?}", operation.effects);
        for applied in [false, true] {
            if applied {
                store.maintain(0).unwrap();
            }
            assert_eq!(session.summary().unwrap().branch, "fork");
            let head = session.head().unwrap();
            assert_eq!(ids(&session, &head), ["a", "d"]);
            session.check_digest(&head).unwrap();
            assert_eq!(ids(&session, &session.at("main", time(9)).unwrap()), ["a", "b", "c"]);
            let branches = session.branches(&head).unwrap();
            assert_eq!(branches[1].base, Some(("main".to_owned(), Some(1))));
            let then = session.at_time(time(3)).unwrap();
            assert_eq!(session.branch_of(&then).unwrap(), "main");
        }
        // The next write after the fork's revision continues the fork, and a write after the last
        // revision of `main` continues `main`.
        let forked = session.at_checkpoint(done.checkpoint.as_ref().unwrap()).unwrap();
        let next = session.write(&act(5)).after(&forked).change(note("e", "5")).commit().unwrap();
        assert_eq!((next.branch.as_str(), next.new_branch), ("fork", false));
        let third = session.at_sequence(3).unwrap();
        let back = session.write(&act(6)).after(&third).change(note("f", "6")).commit().unwrap();
        assert_eq!((back.branch.as_str(), back.new_branch), ("main", false));
        assert_eq!(session.summary().unwrap().branch, "main");
        // A name that is taken is numbered.
        let write = |minute: i64| {
            let context = act(minute);
            let write = session.write(&context).after_or_fork(&first, "fork");
            write.change(note("g", "7")).commit().unwrap().branch
        };
        assert_eq!([write(7), write(8)], ["fork-2", "fork-3"]);
    }
}

#[test]
fn a_write_after_a_revision_that_another_one_follows_is_refused_without_a_name_for_a_branch() {
    let store = Store::in_memory().unwrap();
    let session = two(&store);
    let first = session.at_sequence(1).unwrap();
    let (before, now) = (store.tail_bytes().unwrap(), act(3));
    let write = || session.write(&now).change(note("c", "3"));
    let error = write().after(&first).commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.to_string().contains("#1"), "{error}");
    for name in ["", "two words", "HEAD"] {
        let error = write().after_or_fork(&first, name).commit().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{name}: {error}");
    }
    let error = write().after(&first).on("main").commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert_eq!(store.tail_bytes().unwrap(), before, "nothing is written");
    assert_eq!(ids(&session, &session.head().unwrap()), ["a", "b"]);
}

#[test]
fn rules_edits_and_conditions_see_the_claims_of_the_preceding_revision() {
    let store = Store::in_memory().unwrap();
    let session = two(&store);
    session.write(&act(3)).change(note("a", "later")).commit().unwrap();
    let first = session.at_sequence(1).unwrap();
    let keys = ["a", "b"].map(|id| Key::new(Kind::Note, id)).to_vec();
    let context = act(4);
    let write = session.write(&context).after_or_fork(&first, "fork").edit(keys, |held| {
        let text = |value: &Value| value.field("text")?.as_text().map(str::to_owned);
        let held: Vec<_> = held.iter().map(|one| one.as_ref().and_then(text)).collect();
        assert_eq!(held, [Some("1".to_owned()), None]);
        Ok(vec![note("b", "forked")])
    });
    let done = write.commit().unwrap();
    assert_eq!(done.changed.len(), 1);
    assert_eq!(ids(&session, &session.head().unwrap()), ["a", "b"]);
    // A claim that only later revisions have can be added.
    let context = act(5);
    let new = ClaimChange::add(Key::new(Kind::Note, "b"), Value::from([("text", "5".into())]));
    let write = session.write(&context).after_or_fork(&first, "fork").change(new);
    assert_eq!(write.commit().unwrap().branch, "fork-2");
    // A rule sees the whole state.
    let context = act(6);
    let write = session.write(&context).after_or_fork(&first, "fork").rule(|held| {
        use forge_store::model::rule::{ClaimLookup, RuleOutcome};
        assert_eq!(held.all(Kind::Note).len(), 1);
        let change = (Key::new(Kind::Note, "c"), Value::from([("text", "6".into())]));
        Ok(RuleOutcome { changes: vec![change], ..RuleOutcome::default() })
    });
    assert_eq!(write.commit().unwrap().branch, "fork-3");
    assert_eq!(ids(&session, &session.head().unwrap()), ["a", "c"]);
}

/// Regression: only the redo was marked as undone, so the next undo took the operation for one in
/// force.
#[test]
fn the_undo_of_a_redo_by_its_id_undoes_the_operation() {
    for (store, _folder) in stores() {
        let session = two(&store);
        session.undo(&act(3), None).unwrap();
        let redo = session.redo(&act(4)).unwrap();
        let undone = session.undo(&act(5), Some(&redo.operation.to_string())).unwrap();
        assert_eq!(undone.target.id, redo.target.id);
        assert_eq!(ids(&session, &session.head().unwrap()), ["a"]);
        let again = session.undo(&act(6), Some(&redo.operation.to_string())).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Conflict);
        session.undo(&act(7), None).unwrap();
        assert!(ids(&session, &session.head().unwrap()).is_empty());
    }
}

#[test]
fn a_fork_is_undone_and_redone_as_a_whole() {
    for (store, _folder) in stores() {
        let session = two(&store);
        let first = session.at_sequence(1).unwrap();
        let context = act(3);
        let write = session.write(&context).after_or_fork(&first, "fork");
        let write = write.change(note("c", "3")).checkpoint(NewCheckpoint::manual("forked"));
        write.commit().unwrap();
        for round in 0..2 {
            let minute = 4 + 2 * round;
            session.undo(&act(minute), None).unwrap();
            assert_eq!(session.summary().unwrap().branch, "main");
            assert_eq!(session.branches(&session.head().unwrap()).unwrap().len(), 1);
            assert_eq!(session.checkpoints(&CheckpointFilter::default()).unwrap(), []);
            assert_eq!(ids(&session, &session.head().unwrap()), ["a", "b"]);
            session.redo(&act(minute + 1)).unwrap();
            assert_eq!(session.summary().unwrap().branch, "fork");
            assert_eq!(ids(&session, &session.head().unwrap()), ["a", "c"]);
            assert_eq!(session.checkpoints(&CheckpointFilter::default()).unwrap().len(), 1);
            store.maintain(0).unwrap();
        }
        // A fork on which a later operation worked is not undone.
        let fork = session.operations(9).unwrap().pop().unwrap();
        session.write(&act(9)).change(note("d", "9")).commit().unwrap();
        let made = session.operations(9).unwrap();
        let made = made.iter().find(|one| one.effects.contains(&"branch fork".to_owned())).unwrap();
        assert_ne!(made.id, fork.id);
        let error = session.undo(&act(10), Some(&made.id.to_string())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert_eq!(ids(&session, &session.head().unwrap()), ["a", "c", "d"]);
    }
}

#[test]
fn a_write_after_the_beginning_starts_without_claims() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let start = session.head().unwrap();
    for (minute, branch) in [(1, "main"), (2, "root"), (3, "root-2")] {
        let context = act(minute);
        let write = session.write(&context).after_or_fork(&start, "root");
        let id = format!("n{minute}");
        let done = write.change(note(&id, "x")).commit().unwrap();
        assert_eq!(done.branch, branch);
        assert_eq!(ids(&session, &session.head().unwrap()), [id]);
    }
}

#[test]
fn a_checkpoint_after_a_revision_is_of_it_although_others_follow_and_another_branch_is_current() {
    let store = Store::in_memory().unwrap();
    let session = two(&store);
    let first = session.at_sequence(1).unwrap();
    session.create_branch(&act(3), "side", Some(&first), Default::default()).unwrap();
    session.switch_branch(&act(3), "side", true).unwrap();
    let mut new = NewCheckpoint::manual("first");
    new.at = first.time();
    let done = session.write(&act(4)).after(&first).checkpoint(new).commit().unwrap();
    let made = done.checkpoint.unwrap();
    assert_eq!((made.revision, made.time), (Some(1), time(1)));
    assert_eq!(session.branch_name(made.branch).unwrap(), "main");
    assert_eq!(session.summary().unwrap().branch, "side");
}

#[test]
fn a_checkpoint_without_a_change_is_one_of_the_revision_and_no_branch_begins() {
    let store = Store::in_memory().unwrap();
    let session = two(&store);
    session.create_branch(&act(3), "side", None, Default::default()).unwrap();
    let first = session.at_sequence(1).unwrap();
    let context = act(4);
    let write = session.write(&context).after_or_fork(&first, "fork").change(note("a", "1"));
    let done = write.checkpoint(NewCheckpoint::manual("same")).commit().unwrap();
    let made = done.checkpoint.unwrap();
    assert_eq!((made.revision, done.revision, done.new_branch), (Some(1), None, false));
    assert_eq!(
        (done.branch.as_str(), session.branch_name(made.branch).unwrap().as_str()),
        ("main", "main")
    );
    assert_eq!(session.branches(&session.head().unwrap()).unwrap().len(), 2);
    assert_eq!(session.summary().unwrap().branch, "main");
    assert_eq!(session.at_checkpoint(&made).unwrap().revision(), Some(1));
    // Nothing to write is nothing written.
    let context = act(5);
    let done = session.write(&context).after_or_fork(&first, "fork").commit().unwrap();
    assert!(done.is_unchanged() && !done.new_branch);
}

#[test]
fn a_branch_that_was_created_at_the_revision_and_checked_out_takes_the_write() {
    let store = Store::in_memory().unwrap();
    let session = two(&store);
    let first = session.at_sequence(1).unwrap();
    session.create_branch(&act(3), "try", Some(&first), Default::default()).unwrap();
    session.switch_branch(&act(3), "try", true).unwrap();
    let done = session.write(&act(4)).after(&first).change(note("c", "4")).commit().unwrap();
    assert_eq!((done.branch.as_str(), done.new_branch), ("try", false));
}

#[test]
fn a_write_after_a_folded_revision_is_refused() {
    let store = Store::in_memory().unwrap();
    let session = two(&store);
    let first = session.at_sequence(1).unwrap();
    let all = RetentionPolicy { revisions: 0, ..RetentionPolicy::none() };
    assert_eq!(session.prune(&act(3), &all).unwrap().folds.len(), 1);
    let context = act(4);
    let write = session.write(&context).after_or_fork(&first, "fork").change(note("c", "4"));
    let error = write.commit().unwrap_err();
    assert!(matches!(error, Error::Folded { sequence: 1, into: 2 }), "{error}");
    assert_eq!(session.branches(&session.head().unwrap()).unwrap().len(), 1);
}

#[test]
fn a_fork_of_a_large_state_is_as_small_as_one_of_a_small_state() {
    let mut sizes = BTreeSet::new();
    for count in [1, 3000] {
        let store = Store::in_memory().unwrap();
        let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
        let many = (0..count).map(|number| note(&format!("n{number:05}"), "one of many"));
        session.write(&act(1)).changes(many).commit().unwrap();
        session.write(&act(2)).change(note("n00000", "changed")).commit().unwrap();
        let first = session.at_sequence(1).unwrap();
        let before = store.tail_bytes().unwrap();
        let context = act(3);
        let write = session.write(&context).after_or_fork(&first, "fork");
        write.change(note("n00000", "otherwise")).commit().unwrap();
        sizes.insert((store.tail_bytes().unwrap() - before) / 100);
        assert_eq!(claims(&session, &session.head().unwrap()).len(), count);
    }
    assert_eq!(sizes.len(), 1, "{sizes:?}");
}

#[test]
fn each_of_many_writers_after_one_revision_gets_its_own_branch() {
    const MANY: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = Store::create(&path, Options::default()).unwrap();
    let session = two(&store);
    let second = session.at_sequence(2).unwrap();
    let gate = Barrier::new(MANY);
    let branches: Vec<String> = thread::scope(|scope| {
        let write = |number: usize| {
            let store = Store::open(&path, Options::default()).unwrap();
            let session = store.session("s").unwrap();
            let moment = session.at_sequence(2).unwrap();
            gate.wait();
            let context = act(3);
            let write = session.write(&context).after_or_fork(&moment, "fork");
            let named = NewCheckpoint::manual(format!("m{number}"));
            write.change(note(&format!("w{number}"), "x")).checkpoint(named).commit()
        };
        let writers: Vec<_> =
            (0..MANY).map(|number| scope.spawn(move || write(number).unwrap().branch)).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let names: BTreeSet<&str> = branches.iter().map(String::as_str).collect();
    assert_eq!(names.len(), MANY, "{branches:?}");
    assert!(names.contains("main"), "the first one goes on there");
    assert_eq!(second.revision(), Some(2));
    for checkpoint in session.checkpoints(&CheckpointFilter::default()).unwrap() {
        let moment = session.at_checkpoint(&checkpoint).unwrap();
        let own = checkpoint.message.replace('m', "w");
        assert_eq!(ids(&session, &moment), ["a".to_owned(), "b".to_owned(), own]);
        session.check_digest(&moment).unwrap();
    }
}

#[test]
fn a_fork_is_the_same_in_a_bundle() {
    let store = Store::in_memory().unwrap();
    let session = two(&store);
    let first = session.at_sequence(1).unwrap();
    for minute in 3..6 {
        let context = act(minute);
        let write = session.write(&context).after_or_fork(&first, "fork");
        let named = NewCheckpoint::manual(format!("m{minute}"));
        write.change(note("c", &format!("{minute}"))).checkpoint(named).commit().unwrap();
    }
    session.undo(&act(6), None).unwrap();
    let mut bytes = Vec::new();
    let ranges = [BundleRange { session: session.clone(), from: 0, to: None }];
    store
        .export_bundle(&ranges, &mut |part: &[u8]| -> Result<(), Error> {
            bytes.extend_from_slice(part);
            Ok(())
        })
        .unwrap();
    let other = Store::in_memory().unwrap();
    other.import_bundle(&act(7), &mut Cursor::new(bytes), None).unwrap();
    let here = other.session("s").unwrap();
    let content = |session: &Session| {
        let summary = session.summary().unwrap();
        let states: Vec<_> = (1..=summary.last_sequence)
            .filter_map(|number| session.at_sequence(number).ok())
            .map(|moment| (moment.clone(), claims(session, &moment)))
            .collect();
        let checkpoints = session.checkpoints(&CheckpointFilter::default()).unwrap();
        (summary.branch, session.branches(&session.head().unwrap()).unwrap(), states, checkpoints)
    };
    assert_eq!(content(&here), content(&session));
    here.redo(&act(8)).unwrap();
    assert_eq!(here.summary().unwrap().branch, "fork-3");
}

#[test]
fn the_first_write_begins_its_session_in_the_same_record() {
    for (store, folder) in stores() {
        let new = || NewSession { kind: SessionKind::Run, ..NewSession::imported("r") };
        let (syncs, context) = (store.journal_syncs(), act(1));
        let write = store.write_to(&context, new()).unwrap();
        let named = NewCheckpoint::manual("first");
        let done = write.add_next(Kind::Note, "N", Value::from([("text", "x".into())]));
        let done = done.change(note("a", "1")).checkpoint(named).commit().unwrap();
        assert_eq!(store.journal_syncs() - syncs, u64::from(folder.is_some()), "one record");
        assert_eq!((done.session.as_str(), done.new_id.as_deref()), ("r", Some("N1")));
        assert_eq!(done.revision.unwrap().0, 1);
        let session = store.session_by_kind(SessionKind::Run, "r").unwrap().unwrap();
        assert_eq!(ids(&session, &session.head().unwrap()), ["N1", "a"]);
        assert_eq!(session.summary().unwrap().info.started_at, time(1));
        // The second one finds it.
        let context = act(2);
        let write = store.write_to(&context, new()).unwrap().change(note("b", "2"));
        assert_eq!(write.commit().unwrap().revision.unwrap().0, 3);
        assert_eq!(store.every_session().unwrap().len(), 1);
        store.maintain(0).unwrap();
        assert_eq!(ids(&session, &session.head().unwrap()), ["N1", "a", "b"]);
        session.check_digest(&session.head().unwrap()).unwrap();
        // A session of another kind can have the same name.
        let context = act(3);
        let other = store.write_to(&context, NewSession::imported("r")).unwrap();
        other.change(note("c", "3")).commit().unwrap();
        assert_eq!(store.every_session().unwrap().len(), 2);
        assert_eq!(ids(&session, &session.head().unwrap()), ["N1", "a", "b"]);
        // A write that changes nothing begins nothing, and neither does one that is refused.
        let context = act(4);
        let empty = store.write_to(&context, NewSession::imported("empty")).unwrap();
        assert!(empty.commit().unwrap().is_unchanged());
        let refused = store.write_to(&context, NewSession::imported("empty")).unwrap();
        let missing = Value::from([("description", "x".into()), ("parent", "H9".into())]);
        let put = ClaimChange::put(Key::new(Kind::Hypothesis, "H1"), missing);
        assert!(matches!(refused.change(put).commit(), Err(Error::Dangling { .. })));
        assert_eq!(store.every_session().unwrap().len(), 2);
        assert!(store.write_to(&context, NewSession::imported("\n")).is_err());
    }
}

#[test]
fn concurrent_first_writes_to_one_name_create_one_session() {
    const MANY: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = Store::create(&path, Options::default()).unwrap();
    let gate = Barrier::new(MANY);
    thread::scope(|scope| {
        for number in 0..MANY {
            let (path, gate) = (&path, &gate);
            scope.spawn(move || {
                let store = Store::open(path, Options::default()).unwrap();
                gate.wait();
                let context = act(1);
                let new = NewSession { kind: SessionKind::Run, ..NewSession::imported("r") };
                let write = store.write_to(&context, new).unwrap();
                write.change(note(&format!("w{number}"), "x")).commit().unwrap();
            });
        }
    });
    assert_eq!(store.every_session().unwrap().len(), 1);
    let session = store.session_by_kind(SessionKind::Run, "r").unwrap().unwrap();
    assert_eq!(claims(&session, &session.head().unwrap()).len(), MANY);
}

//! Pruning: what is dropped, what is kept, what undo restores, and what a kill leaves.

mod ahead;
mod beside;
mod bytes;
mod ended;
mod held;
mod kill;
mod long;
mod texts;

use forge_store::diff::ClaimMap;
use forge_store::error::Error;
use forge_store::model::{Key, Kind, RetentionPolicy, Timestamp, Value};
use forge_store::store::{
    ClaimChange, NewCheckpoint, NewSession, Options, Session, Store, UNDO_MICROS, VerifyDepth,
    WriteContext,
};
use std::collections::BTreeMap;
use std::path::Path;

const MINUTE: i64 = 60_000_000;

fn time(minutes: i64) -> Timestamp {
    Timestamp::from_micros(1_767_261_600_000_000 + minutes * MINUTE)
}

fn act(minutes: i64) -> WriteContext {
    WriteContext::asked("test", time(minutes))
}

/// Makes one revision per minute with these changes.
fn revise(session: &Session, minutes: i64, changes: &[(&str, Option<String>)]) -> u64 {
    let act = act(minutes);
    let mut write = session.write(&act);
    for (id, text) in changes {
        let key = Key::new(Kind::Note, *id);
        write = write.change(match text {
            Some(text) => {
                ClaimChange::put(key, Value::from([("description", text.as_str().into())]))
            }
            None => ClaimChange::remove(key),
        });
    }
    write.commit().unwrap().revision.unwrap().0
}

fn state(session: &Session, sequence: u64) -> ClaimMap {
    let moment = session.at_sequence(sequence).unwrap();
    session.check_digest(&moment).unwrap();
    session.state(&moment).unwrap().claims().entries().map(Result::unwrap).collect()
}

/// All visible revisions, with their states.
fn all(session: &Session) -> BTreeMap<u64, ClaimMap> {
    let last = session.summary().unwrap().last_sequence;
    let seen = (1..=last).filter(|number| match session.at_sequence(*number) {
        Ok(moment) => moment.named_checkpoint().is_none(),
        Err(Error::Folded { .. } | Error::NotFound { .. }) => false,
        Err(error) => panic!("#{number}: {error}"),
    });
    seen.map(|number| (number, state(session, number))).collect()
}

/// Keeps only what is referred to, whatever its age.
fn bare() -> RetentionPolicy {
    RetentionPolicy { manual: false, revisions: 0, ..RetentionPolicy::none() }
}

/// Forty revisions of twenty notes of about 2 KB, every fourth with a checkpoint; every second note
/// sometimes has a value in a separate object.
fn history(store: &Store) -> Session {
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    for minute in 1..=40 {
        let long = format!("{minute} ").repeat(if minute % 8 == 0 { 3000 } else { 700 });
        let id = format!("n{}", minute % 20);
        revise(&session, minute, &[(&id, Some(long)), ("same", Some(format!("{}", minute % 3)))]);
        if minute % 4 == 0 {
            let wanted = NewCheckpoint::manual(format!("c{minute}"));
            session.write(&act(minute)).checkpoint(wanted).commit().unwrap();
        }
    }
    session
}

fn create(path: &Path) -> Store {
    Store::create(path, Options::default()).unwrap()
}

fn open(path: &Path) -> Store {
    Store::open(path, Options::default()).unwrap()
}

fn disk_bytes(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).unwrap().map(Result::unwrap);
    entries
        .map(|entry| match entry.metadata().unwrap() {
            about if about.is_dir() => disk_bytes(&entry.path()),
            about => about.len(),
        })
        .sum()
}

#[test]
fn kept_states_are_unchanged_and_an_undo_restores_the_rest_until_the_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = create(&path);
    let session = history(&store);
    let before = all(&session);
    assert_eq!(before.len(), 40);
    let log = session.records(1, usize::MAX).unwrap();
    let pruned = session.prune(&act(60), &bare()).unwrap();
    assert_eq!(
        (pruned.dropped_checkpoints(), pruned.folded_revisions()),
        (9, 39),
        "the newest checkpoint names the head"
    );
    let after = all(&session);
    assert_eq!(after.len(), 1);
    assert!(after.iter().all(|(number, state)| before[number] == *state));
    assert_eq!(session.prune(&act(61), &bare()).unwrap().operation, None, "nothing is left to do");
    store.maintain(0).unwrap();
    let undone = session.undo(&act(62), None).unwrap();
    assert_eq!(Some(undone.target.id), pruned.operation);
    assert_eq!(all(&session), before);
    assert_eq!(session.records(1, usize::MAX).unwrap(), log, "to the last id");
    session.redo(&act(63)).unwrap();
    assert_eq!(all(&session), after);

    // Not a moment before the undo period ends.
    let due = time(60).plus_micros(UNDO_MICROS);
    let early = due.plus_micros(-1).plus_micros(-UNDO_MICROS);
    assert_eq!(store.sweep(due, early).unwrap().prunings, 0);
    let swept = store.sweep(due, due.plus_micros(-UNDO_MICROS)).unwrap();
    assert_eq!(swept.prunings, 1);
    assert!(swept.values > 0, "large values that nothing names go too");
    let error = session.undo(&act(64), pruned.operation.map(|id| id.to_string()).as_deref());
    assert!(matches!(error, Err(Error::Conflict(_))), "{error:?}");
    assert_eq!(all(&session), after);
}

#[test]
fn bytes_are_free_after_the_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".forge");
    let store = create(&path);
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    // Incompressible data, so that the bytes are those of the values.
    let noise = |seed: i64| -> String {
        let mut hash = blake3::hash(&seed.to_le_bytes());
        (0..100)
            .map(|_| {
                hash = blake3::hash(hash.as_bytes());
                hash.to_hex().to_string()
            })
            .collect()
    };
    for minute in 1..=200 {
        revise(&session, minute, &[("n", Some(noise(minute)))]);
    }
    store.maintain(0).unwrap();
    store.compact().unwrap();
    let full = disk_bytes(&path);
    session.prune(&act(300), &bare()).unwrap();
    store.maintain(0).unwrap();
    store.sweep(time(300), time(300)).unwrap();
    store.maintain(0).unwrap();
    store.compact().unwrap();
    drop((store, session));
    let left = disk_bytes(&path);
    assert!(left * 5 < full, "{left} bytes of {full} are left");
    let session = open(&path).session("s").unwrap();
    assert_eq!(all(&session).len(), 1);
}

#[test]
fn a_value_with_other_references_stays() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let other = store.create_session(&act(0), NewSession::named("other")).unwrap();
    let (shared, own) = ("shared ".repeat(1000), "own ".repeat(2000));
    // The same value at the same time in both sessions: one object.
    revise(&session, 1, &[("a", Some(shared.clone())), ("b", Some(own))]);
    let kept = revise(&other, 1, &[("a", Some(shared))]);
    revise(&session, 2, &[("a", None), ("b", None)]);
    let wanted = state(&other, kept);
    session.prune(&act(3), &bare()).unwrap();
    assert_eq!(store.sweep(time(3), time(3)).unwrap().values, 1);
    assert_eq!(state(&other, kept), wanted);
}

#[test]
fn forks_and_restored_revisions_are_kept() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let put = |minute: i64| revise(&session, minute, &[("n", Some(minute.to_string()))]);
    let numbers: Vec<u64> = (1..=6).map(put).collect();
    let fork = session.at_sequence(numbers[1]).unwrap();
    session.create_branch(&act(7), "side", Some(&fork), Default::default()).unwrap();
    session.restore(&act(8), &session.at_sequence(numbers[3]).unwrap()).unwrap();
    let head = put(9);
    let before = all(&session);
    session.prune(&act(10), &bare()).unwrap();
    // The fork, the restored revision, the one before the restore, the restore, the head.
    let restore = head - 1;
    let wanted = [numbers[1], numbers[3], numbers[5], restore, head];
    let after = all(&session);
    assert_eq!(after.keys().copied().collect::<Vec<_>>(), wanted);
    assert!(after.iter().all(|(number, state)| before[number] == *state));
}

#[test]
fn an_undo_of_a_folded_revision_names_what_to_undo_first() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let mut operations = Vec::new();
    for minute in 1..=3 {
        revise(&session, minute, &[("n", Some(minute.to_string()))]);
        operations.push(session.operations(1).unwrap()[0].id.to_string());
    }
    let before = all(&session);
    let pruned = session.prune(&act(4), &bare()).unwrap().operation.unwrap().to_string();
    for operation in &operations {
        // The last fold contains the changes of the others: undoing it alone would undo theirs too.
        let error = session.undo(&act(5), Some(operation)).unwrap_err();
        assert!(matches!(error, Error::Conflict(_) | Error::Folded { .. }), "{error}");
    }
    session.undo(&act(6), Some(&pruned)).unwrap();
    assert_eq!(all(&session), before);
    session.undo(&act(7), Some(&operations[2])).unwrap();
}

/// Regression: folding into a revision that others had been folded into overwrote its earlier form.
/// Undone, it had the changes of the revisions that stayed folded, and a wrong state.
#[test]
fn undoing_folds_into_one_revision_one_by_one_restores_each_earlier_state() {
    for sweeps in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".forge");
        let store = create(&path);
        let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
        for minute in 1..=6 {
            let texts =
                [("a", Some(format!("a {minute}"))), ("b", Some(format!("b {}", minute % 2)))];
            revise(&session, minute, &texts);
            if minute % 2 == 0 {
                let wanted = NewCheckpoint::manual(format!("c{minute}"));
                session.write(&act(minute)).checkpoint(wanted).commit().unwrap();
            }
        }
        revise(&session, 7, &[("a", None)]);
        let whole = all(&session);
        let keep = |last| RetentionPolicy { last, ..bare() };
        let first = session.prune(&act(60), &keep(2)).unwrap();
        let once = all(&session);
        store.maintain(0).unwrap();
        if sweeps {
            assert_eq!(store.sweep(time(61), time(60)).unwrap().prunings, 1);
        }
        let second = session.prune(&act(62), &keep(1)).unwrap();
        let into = |pruned: &forge_store::store::PruneReport| pruned.folds.last().unwrap().into;
        assert_eq!(into(&first), into(&second), "both fold into the same revision");
        assert!(all(&session).iter().all(|(number, state)| whole[number] == *state));
        let sound = || {
            let verified = Store::verify(&path, VerifyDepth::ReadData, time(70), None).unwrap();
            assert_eq!(verified.findings, []);
        };
        sound();
        let named =
            |pruned: &forge_store::store::PruneReport| pruned.operation.map(|id| id.to_string());
        if !sweeps {
            let early = session.undo(&act(63), named(&first).as_deref());
            assert!(matches!(early, Err(Error::Conflict(_))), "the last one first: {early:?}");
        }
        session.undo(&act(64), named(&second).as_deref()).unwrap();
        assert_eq!(all(&session), once);
        sound();
        if !sweeps {
            session.undo(&act(65), named(&first).as_deref()).unwrap();
            assert_eq!(all(&session), whole);
            sound();
        }
    }
}

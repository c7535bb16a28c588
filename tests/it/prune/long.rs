//! Prunings of any length: folds in several steps can be undone, redone, and undone again.

use super::{act, all, bare, revise, state, time};
use forge_store::model::{Key, Kind, Value};
use forge_store::store::{ClaimChange, NewSession, Session, Store, VerifyDepth, WriteContext};

/// How many revisions one step folds.
const STEP: u64 = 2000;

/// Changes one of three notes, and sometimes adds or removes another one.
fn history(store: &Store, revisions: u64) -> Session {
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    for number in 1..=revisions {
        let minute = i64::try_from(number).unwrap();
        let act = WriteContext::asked("test", time(minute));
        let text = |id: String| {
            let value = Value::from([("description", number.to_string().into())]);
            ClaimChange::put(Key::new(Kind::Note, id), value)
        };
        let mut write = session.write(&act).change(text(format!("n{}", number % 3)));
        if number % 500 == 1 {
            write = write.change(text(format!("kept {number}")));
        }
        write.commit().unwrap();
    }
    session
}

/// The revisions at critical positions.
fn places(revisions: u64) -> Vec<u64> {
    let steps = (1..=revisions / STEP + 1).flat_map(|step| step * STEP - 1..=step * STEP + 2);
    let mut places: Vec<u64> = [1, 2, revisions / 2, revisions - 1, revisions]
        .into_iter()
        .chain(steps)
        .filter(|number| (1..=revisions).contains(number))
        .collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Regression: a pruning that folded more than 2,000 revisions into one could not be undone.
#[test]
fn a_pruning_of_any_size_can_be_undone_and_redone() {
    for folded in [1, 2, 100, STEP, STEP + 1, 5000] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".forge");
        let store = super::create(&path);
        let revisions = folded + 1;
        let session = history(&store, revisions);
        let places = places(revisions);
        let states = || places.iter().map(|number| state(&session, *number)).collect::<Vec<_>>();
        let records = session.records(1, usize::MAX).unwrap();
        let before = states();
        let at = i64::try_from(revisions).unwrap() + 10;
        let pruned = session.prune_unmeasured(&act(at), &bare()).unwrap();
        assert_eq!((pruned.folded_revisions(), pruned.folds.len()), (folded, 1));
        let after = all(&session);
        assert_eq!(after.keys().copied().collect::<Vec<_>>(), [revisions]);
        // The largest takes most of the time.
        let rounds = if folded > STEP + 1 { 1 } else { 2 };
        for round in 1..=rounds {
            let undone = session.undo(&act(at + 3 * round), None).unwrap();
            assert_eq!(Some(undone.target.id), pruned.operation, "{folded}");
            assert!(session.records(1, usize::MAX).unwrap() == records, "{folded}: to the last id");
            assert!(states() == before, "{folded}: every state is what it was");
            // Once in the tail, and once in the index.
            store.maintain(0).unwrap();
            session.redo(&act(at + 3 * round + 1)).unwrap();
            assert!(all(&session) == after, "{folded}: done again it is as it was done first");
        }
        let verified = Store::verify(&path, VerifyDepth::ReadData, time(at + 20), None).unwrap();
        assert_eq!(verified.findings, [], "{folded}");
    }
}

/// Undoing a fold in several steps is complete even if other folds before and after it stay.
#[test]
fn undoing_a_pruning_keeps_earlier_prunings() {
    let store = Store::in_memory().unwrap();
    let session = store.create_session(&act(0), NewSession::named("s")).unwrap();
    let put = |minute: i64| revise(&session, minute, &[("n", Some(minute.to_string()))]);
    for minute in 1..=5 {
        put(minute);
    }
    session.prune(&act(6), &bare()).unwrap();
    let once = all(&session);
    for minute in 7..=9 {
        put(minute);
    }
    let grown = all(&session);
    session.prune(&act(10), &bare()).unwrap();
    session.undo(&act(11), None).unwrap();
    assert_eq!(all(&session), grown);
    assert!(once.iter().all(|(number, state)| grown[number] == *state));
}

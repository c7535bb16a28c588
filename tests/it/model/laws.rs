//! Properties that need no model.

use super::run::{Place, act};
use super::verify::claims;
use forge_store::error::Error;
use forge_store::model::{BranchStatus, Key, Kind, OperationAuthor, RetentionPolicy, Value};
use forge_store::store::{
    BranchSummary, CheckpointFilter, ClaimChange, MergeRequest, MergeResult, NewCheckpoint,
    NewSession, Session, WriteContext,
};

fn note(id: &str, text: &str) -> ClaimChange {
    ClaimChange::put(Key::new(Kind::Note, id), Value::from([("description", text.into())]))
}

/// Regression: an undone checkpoint that was restored by redo was no longer counted.
#[test]
fn a_checkpoint_restored_by_redo_is_counted_again() {
    for place in [Place::memory(), Place::files()] {
        let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
        let checkpoint = NewCheckpoint::manual("one").tags(["red"]);
        session.write(&act(1)).change(note("a", "1")).checkpoint(checkpoint).commit().unwrap();
        session.undo(&act(2), None).unwrap();
        let summary = session.summary().unwrap();
        assert_eq!((summary.checkpoints, summary.last_checkpoint), (0, None));
        session.redo(&act(3)).unwrap();
        let summary = session.summary().unwrap();
        assert_eq!(summary.checkpoints, 1);
        assert_eq!(summary.last_checkpoint, Some(act(1).now));
        let tagged = CheckpointFilter { tag: Some("red".to_owned()), ..Default::default() };
        assert_eq!(session.checkpoints(&tagged).unwrap().len(), 1);
    }
}

/// Regression: a hook created a branch with a name that an undo had freed; redo then restored a
/// second branch of that name.
#[test]
fn a_branch_is_not_restored_if_another_has_its_name() {
    for place in [Place::memory(), Place::files()] {
        let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
        session.create_branch(&act(1), "side", None, Default::default()).unwrap();
        session.undo(&act(2), None).unwrap();
        let hook = WriteContext { author: OperationAuthor::Hook, ..act(3) };
        session.create_branch(&hook, "side", None, Default::default()).unwrap();
        assert!(matches!(session.redo(&act(4)), Err(Error::Conflict(_))));
        let head = session.head().unwrap();
        let named = |one: &BranchSummary| one.name == "side";
        let branches = session.branches(&head).unwrap();
        assert_eq!(branches.iter().filter(|one| named(one)).count(), 1);
    }
}

/// Regression: the newest operation was the one with the latest time. If the clock had been set
/// back, undo undid an older one.
#[test]
fn undo_takes_back_the_last_operation_even_if_the_clock_was_set_back() {
    for place in [Place::memory(), Place::files()] {
        let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
        session.write(&act(1000)).change(note("a", "1")).commit().unwrap();
        session.write(&act(10)).change(note("b", "1")).commit().unwrap();
        session.undo(&act(11), None).unwrap();
        let ids: Vec<_> =
            claims(&session, &session.head().unwrap()).into_keys().map(|key| key.id).collect();
        assert_eq!(ids, ["a"]);
    }
}

/// The branch that was checked out at a time, and its revision then.
fn checked_out(session: &Session, at: i64) -> (String, Option<u64>) {
    let moment = session.at_time(act(at).now).unwrap();
    (session.state(&moment).unwrap().current_branch().unwrap(), moment.revision())
}

/// Regression: the last checkout was the one with the latest time. If the clock had been set back,
/// a branch that had been left was still checked out at every later time.
#[test]
fn a_branch_that_was_left_is_not_checked_out_later_even_if_the_clock_was_set_back() {
    for is_undone in [true, false] {
        for mut place in [Place::memory(), Place::files()] {
            let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
            session.write(&act(10)).change(note("a", "1")).commit().unwrap();
            session.write(&act(20)).change(note("b", "1")).commit().unwrap();
            let first = session.at_sequence(1).unwrap();
            let ahead = act(1000);
            let write = session.write(&ahead).after_or_fork(&first, "fork");
            assert!(write.change(note("c", "1")).commit().unwrap().new_branch);
            assert_eq!(checked_out(&session, 1000), ("fork".to_owned(), Some(3)));
            match is_undone {
                true => drop(session.undo(&act(30), None).unwrap()),
                false => drop(session.switch_branch(&act(30), "main", true).unwrap()),
            }
            let check = |session: &Session| {
                for at in [25, 30, 999, 1000, 1001, 1999] {
                    let expected = ("main".to_owned(), Some(2));
                    assert_eq!(checked_out(session, at), expected, "{is_undone} at {at}");
                }
            };
            check(&session);
            // The checkouts that follow are not before it either.
            session.create_branch(&act(40), "side", None, Default::default()).unwrap();
            session.switch_branch(&act(40), "side", true).unwrap();
            session.undo(&act(50), None).unwrap();
            check(&session);
            session.switch_branch(&act(2000), "side", true).unwrap();
            check(&session);
            drop(session);
            place.store.maintain(0).unwrap();
            place.reopen();
            check(&place.store.session("s").unwrap());
            place.check();
        }
    }
}

/// Regression: an undo that led back to a branch whose creation had been undone checked out its
/// base, but any later checkout made the past show that the branch had been checked out since.
#[test]
fn a_branch_whose_creation_was_undone_is_never_checked_out_after_that() {
    for mut place in [Place::memory(), Place::files()] {
        let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
        session.create_branch(&act(1), "side", None, Default::default()).unwrap();
        session.create_branch(&act(2), "other", None, Default::default()).unwrap();
        let made = session.operations(9).unwrap()[1].id.to_string();
        session.write(&act(3)).change(note("a", "1")).commit().unwrap();
        session.switch_branch(&act(4), "side", true).unwrap();
        session.switch_branch(&act(6), "other", true).unwrap();
        session.undo(&act(8), Some(&made)).unwrap();
        session.undo(&act(10), None).unwrap();
        assert_eq!(session.summary().unwrap().branch, "main");
        let check = |session: &Session, last: &str| {
            let all = [(3, "main"), (5, "side"), (7, "other"), (9, "other"), (11, "main")];
            for (at, branch) in all.into_iter().chain([(99, last)]) {
                assert_eq!(checked_out(session, at).0, branch, "at {at}");
            }
        };
        check(&session, "main");
        session.switch_branch(&act(12), "other", true).unwrap();
        check(&session, "other");
        drop(session);
        place.store.maintain(0).unwrap();
        place.reopen();
        check(&place.store.session("s").unwrap(), "other");
        place.check();
    }
}

/// Regression: undoing the creation of the current branch left a session on a branch that did not
/// exist.
#[test]
fn the_current_branch_is_not_undone() {
    let place = Place::memory();
    let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
    session.create_branch(&act(1), "try", None, Default::default()).unwrap();
    session.switch_branch(&act(2), "try", true).unwrap();
    let made = session.operations(9).unwrap()[1].id.to_string();
    let error = session.undo(&act(3), Some(&made)).unwrap_err();
    assert!(matches!(error, Error::Conflict(_)), "{error}");
    assert_eq!(session.summary().unwrap().branch, "try");
    session.undo(&act(4), None).unwrap();
    session.undo(&act(5), None).unwrap();
    assert_eq!(session.branches(&session.head().unwrap()).unwrap().len(), 1);
}

/// Regression: undoing a redone operation applied the opposite change, as if there had been changes
/// in between, instead of starting from the earlier claims. The branch then seemed to descend from
/// what it had left, a merge took that for the merge base, and later changes of one side were lost
/// on the other.
#[test]
fn an_undo_after_undo_and_redo_returns_to_the_same_revision() {
    for place in [Place::memory(), Place::files()] {
        let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
        session.write(&act(1)).change(note("a", "1")).commit().unwrap();
        let first = session.at_sequence(1).unwrap();
        session.undo(&act(2), None).unwrap();
        session.create_branch(&act(3), "side", Some(&first), Default::default()).unwrap();
        session.switch_branch(&act(4), "side", true).unwrap();
        session.restore(&act(5), &session.at_sequence(2).unwrap()).unwrap();
        session.undo(&act(6), None).unwrap();
        session.redo(&act(7)).unwrap();
        session.undo(&act(8), None).unwrap();
        let merging = |source: &str, target: &str| {
            let (source, target) = (source.to_owned(), Some(target.to_owned()));
            session
                .merge_preview(&MergeRequest { source, target, ..MergeRequest::default() })
                .unwrap()
        };
        // As after the first undo: side has the first revision, which main has undone since.
        let into_side = merging("main", "side");
        assert_eq!((into_side.bases, into_side.result), (vec![1], MergeResult::Merged));
        let into_main = merging("side", "main");
        assert_eq!((into_main.bases, into_main.result), (vec![1], MergeResult::Merged));
    }
}

/// Regression: the references of a change were checked although a later change in the same write
/// replaced it.
#[test]
fn only_the_last_change_of_a_claim_in_a_write_needs_valid_references() {
    let place = Place::memory();
    let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
    let key = || Key::new(Kind::Hypothesis, "H1");
    let dangling = Value::from([("description", "x".into()), ("parent", "H9".into())]);
    let plain = Value::from([("description", "x".into())]);
    let now = act(1);
    let write = session.write(&now);
    let write = write.change(ClaimChange::put(key(), dangling));
    write.change(ClaimChange::put(key(), plain)).commit().unwrap();
    assert_eq!(claims(&session, &session.head().unwrap()).len(), 1);
}

#[test]
fn undo_restores_tags_branches_switches_and_the_schedule() {
    for mut place in [Place::memory(), Place::files()] {
        let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
        let checkpoint = NewCheckpoint::manual("one").tags(["red"]);
        let made = session.write(&act(1)).checkpoint(checkpoint).commit().unwrap();
        let id = made.checkpoint.unwrap().id;
        let all = || session.checkpoints(&CheckpointFilter::default()).unwrap();
        let before = all();
        session.tag(&act(2), &id, &["blue".to_owned()], &["red".to_owned()]).unwrap();
        let tagged = all();
        assert_ne!(before, tagged);
        session.undo(&act(3), None).unwrap();
        assert_eq!(all(), before);
        session.redo(&act(4)).unwrap();
        assert_eq!(all(), tagged);
        session.schedule(&act(5), Some(7_000_000)).unwrap();
        session.undo(&act(6), None).unwrap();
        assert_eq!(session.summary().unwrap().schedule_micros, None);
        session.redo(&act(7)).unwrap();
        assert_eq!(session.summary().unwrap().schedule_micros, Some(7_000_000));
        session.create_branch(&act(8), "try", None, Default::default()).unwrap();
        session
            .update_branch(&act(9), "try", |status, _| *status = BranchStatus::Abandoned)
            .unwrap();
        let status = || session.branches(&session.head().unwrap()).unwrap()[1].status;
        session.undo(&act(10), None).unwrap();
        assert_eq!(status(), BranchStatus::Active);
        session.redo(&act(11)).unwrap();
        assert_eq!(status(), BranchStatus::Abandoned);
        session.switch_branch(&act(12), "try", false).unwrap();
        session.undo(&act(13), None).unwrap();
        assert_eq!(session.summary().unwrap().branch, "main");
        assert_eq!(all(), tagged, "the checkpoint of the switch went with it");
        place.reopen();
        let session = place.store.session("s").unwrap();
        session.redo(&act(14)).unwrap();
        assert_eq!(session.summary().unwrap().branch, "try");
    }
}

#[test]
fn a_second_restore_gives_the_same_state_without_a_revision() {
    for place in [Place::memory(), Place::files()] {
        let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
        session.write(&act(1)).change(note("a", "1")).commit().unwrap();
        session.write(&act(2)).change(note("a", "2")).change(note("b", "2")).commit().unwrap();
        let first = session.at_sequence(1).unwrap();
        let then = claims(&session, &first);
        assert!(session.restore(&act(3), &first).unwrap().revision.is_some());
        assert_eq!(claims(&session, &session.head().unwrap()), then);
        let before = place.store.tail_bytes().unwrap();
        assert_eq!(session.restore(&act(4), &first).unwrap().revision, None);
        assert_eq!(place.store.tail_bytes().unwrap(), before);
    }
}

/// Regression: when a pruning was redone, it folded a revision that an undo had reset to since, and
/// the revisions that depend on it could no longer be read.
#[test]
fn a_pruning_is_not_redone_over_a_revision_that_later_records_refer_to() {
    for place in [Place::memory(), Place::files()] {
        let session = place.store.create_session(&act(0), NewSession::named("s")).unwrap();
        session.write(&act(1)).change(note("a", "1")).commit().unwrap();
        session.write(&act(2)).change(note("a", "2")).commit().unwrap();
        let all = RetentionPolicy {
            manual: false,
            significant: false,
            revisions: 0,
            ..RetentionPolicy::none()
        };
        assert_eq!(session.prune(&act(3), &all).unwrap().folds.len(), 1);
        session.undo(&act(4), None).unwrap();
        session.undo(&act(5), None).unwrap();
        session.redo(&act(6)).unwrap();
        let error = session.redo(&act(7)).unwrap_err();
        assert!(matches!(&error, Error::Conflict(why) if why.contains("#1")), "{error}");
        for number in 1..=4 {
            session.check_digest(&session.at_sequence(number).unwrap()).unwrap();
        }
        // A new pruning keeps it too.
        assert_eq!(session.prune(&act(8), &all).unwrap().folds, []);
    }
}

//! Two machines continue a session separately and exchange it: one test for each row of the table
//! in `docs/remotes.md`, and a property of random histories.

use super::grant::container;
use super::purge::Place;
use super::{Machine, SECRET, command, revisions, shared, step_of};
use crate::bundle::law::{same, session_contents, shared_contents, time};
use crate::bundle::{act, note};
use forge_store::ErrorKind;
use forge_store::model::claim::{Confidence, Evidence, Hypothesis, Note, Strength};
use forge_store::model::{BranchMetadata, Key, Kind, Timestamp, Value};
use forge_store::store::remote::{Depot, MemoryDepot, Remote};
use forge_store::store::{
    ClaimChange, MergeRequest, NewCheckpoint, NewSession, Options, Session, SplitReason, Store,
    VerifyDepth, VerifyOutcome, WriteContext,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Two machines that have the same session.
fn two() -> (Machine, Machine) {
    let (_, first, second) = two_at();
    (first, second)
}

/// Two machines that have the same session, and the depot that it is in.
fn two_at() -> (Arc<dyn Depot>, Machine, Machine) {
    let (_, depot, first) = shared();
    let second = Machine::new(&depot);
    second.pull().unwrap();
    (depot, first, second)
}

/// Two machines that have the same session, with revisions that a pruning folds.
fn two_with_revisions() -> (Machine, Machine) {
    let (first, second) = two();
    for minute in [701, 702] {
        step_of(&first, minute, (0, 0));
    }
    first.push().unwrap();
    second.pull().unwrap();
    (first, second)
}

/// Two machines that have the same session, with a branch `f0` that has a checkpoint.
fn two_with_branch() -> (Machine, Machine) {
    let (first, second) = two_with_revisions();
    step_of(&first, 703, (21, 0));
    first.push().unwrap();
    second.pull().unwrap();
    (first, second)
}

fn at(minute: u64) -> WriteContext {
    WriteContext::asked("at a time", time(minute))
}

/// Puts a note on a branch, which is not checked out afterwards.
fn note_on(machine: &Machine, branch: &str, id: &str) {
    let session = machine.session();
    session.switch_branch(&act("switch"), branch, false).unwrap();
    note(&session, id, "on the branch");
    session.switch_branch(&act("switch"), "main", false).unwrap();
}

/// Pulls at the first machine what the second one pushes, and checks that both are the same.
fn meet(first: &Machine, second: &Machine) {
    second.push().unwrap();
    first.pull().unwrap();
    same(&unordered(&first.store), &unordered(&second.store), "joined");
    for machine in [first, second] {
        assert_eq!(machine.push().unwrap().operations, 0);
    }
}

/// Everything that can be read from the session, with its operations sorted, because each machine
/// lists them in the order in which it got them.
fn unordered(store: &Store) -> String {
    let text = shared_contents(store);
    let (before, rest) = text.split_once("operations: ").unwrap();
    let (operations, after) = rest.split_once("history: ").unwrap();
    let mut operations: Vec<_> = operations.lines().collect();
    operations.sort_unstable();
    format!("{before}{}{after}", operations.join("\n"))
}

fn names(session: &Session) -> Vec<String> {
    session
        .branches(&session.head().unwrap())
        .unwrap()
        .into_iter()
        .map(|branch| branch.name)
        .collect()
}

/// Regression: the join undid the pruning again, and failed because nothing was folded any more.
#[test]
fn a_pruning_that_both_sides_undid_is_joined() {
    let (first, second) = two_with_revisions();
    step_of(&first, 703, (12, 0));
    first.push().unwrap();
    second.pull().unwrap();
    let folded = revisions(&first.session());
    for machine in [&first, &second] {
        let operations = machine.session().operations(9).unwrap();
        let pruning = operations.iter().find(|one| one.verb == "prune").unwrap();
        let pruning = pruning.id.to_string();
        machine.session().undo(&at(705), Some(&pruning)).unwrap();
        assert!(revisions(&machine.session()).len() > folded.len());
    }
    first.push().unwrap();
    meet(&first, &second);
    assert!(revisions(&second.session()).len() > folded.len());
}

/// Regression: the join looked for the branch by its name, but the others had undone its creation.
#[test]
fn a_branch_whose_creation_both_sides_undid_is_joined() {
    let (first, second) = two_with_branch();
    for machine in [&first, &second] {
        step_of(machine, 705, (9, 0));
        assert_eq!(names(&machine.session()), ["main"]);
    }
    first.push().unwrap();
    let pulled = second.pull().unwrap();
    assert!(pulled.joined.split.is_empty(), "{pulled:?}");
    meet(&first, &second);
    assert_eq!(names(&second.session()), ["main"]);
}

#[test]
fn writes_of_others_to_a_branch_stay_visible_if_its_creation_was_undone_here() {
    let (first, second) = two_with_branch();
    note_on(&first, "f0", "B");
    step_of(&second, 705, (9, 0));
    assert_eq!(names(&second.session()), ["main"]);
    first.push().unwrap();
    let pulled = second.pull().unwrap();
    assert!(pulled.joined.split.is_empty(), "{pulled:?}");
    meet(&first, &second);
    assert_eq!(names(&second.session()), ["main", "f0"]);
}

#[test]
fn writes_to_a_branch_whose_creation_others_undid_are_on_a_separate_branch() {
    // The undo changed N0, too.
    for (id, is_taken) in [("N0", false), ("B", false), ("N0", true)] {
        let (first, second) = two_with_branch();
        step_of(&first, 705, (9, 0));
        if is_taken {
            let metadata = BranchMetadata::default();
            first.session().create_branch(&act("branch"), "f0", None, metadata).unwrap();
        }
        note_on(&second, "f0", id);
        first.push().unwrap();
        let pulled = second.pull().unwrap();
        let [split] = pulled.joined.split.as_slice() else { panic!("{pulled:?}") };
        assert_eq!((split.branch.as_str(), split.merged), ("f0", None));
        assert_eq!(split.reason, SplitReason::Undone);
        let taken = is_taken.then_some("f0");
        let all: Vec<_> = ["main"].into_iter().chain(taken).chain([&*split.own]).collect();
        assert_eq!(names(&second.session()), all);
        meet(&first, &second);
    }
}

/// Regression: both branches were visible, and only the first one could be found by its name.
#[test]
fn a_redo_of_a_branch_whose_name_others_took_is_refused_until_it_is_undone() {
    let (first, second) = two_with_branch();
    step_of(&second, 705, (9, 0));
    second.push().unwrap();
    first.pull().unwrap();
    let metadata = BranchMetadata::default();
    first.session().create_branch(&act("branch"), "f0", None, metadata).unwrap();
    first.push().unwrap();
    let redo = second.session().redo(&act("redo")).unwrap();
    let error = second.pull().unwrap_err();
    assert!(error.to_string().contains("until the redo is undone"), "{error}");
    second.session().undo(&act("undo"), Some(&redo.operation.to_string())).unwrap();
    second.pull().unwrap();
    assert_eq!(names(&second.session()), ["main", "f0"]);
    meet(&first, &second);
}

#[test]
fn a_branch_that_is_checked_out_and_whose_creation_others_undid_is_left() {
    for is_pushed in [true, false] {
        let (first, second) = two_with_branch();
        let begun = second.session().operations(1).unwrap()[0].id.to_string();
        second.session().switch_branch(&act("switch"), "f0", false).unwrap();
        if is_pushed {
            second.push().unwrap();
            first.pull().unwrap();
        }
        first.session().undo(&act("undo"), Some(&begun)).unwrap();
        first.push().unwrap();
        second.pull().unwrap();
        let session = second.session();
        assert_eq!(session.summary().unwrap().branch, "main", "{is_pushed}");
        let now = session.at_time(Timestamp::from_micros(i64::MAX / 2)).unwrap();
        let current: Vec<_> = session.branches(&now).unwrap();
        assert!(current.iter().any(|one| one.name == "main" && one.current), "{current:?}");
        meet(&first, &second);
    }
}

/// Regression: the past was guessed from whether another checkout followed, so a later checkout
/// changed which branch had been checked out before.
#[test]
fn the_time_at_which_an_undone_branch_was_left_stays_known() {
    let (_, depot, first) = shared();
    let session = first.session();
    step_of(&first, 701, (0, 0));
    session.create_branch(&at(702), "side", None, BranchMetadata::default()).unwrap();
    step_of(&first, 703, (21, 0));
    let made = session.operations(1).unwrap()[0].id.to_string();
    first.push().unwrap();
    let place = Place::new(&depot);
    let second = &place.machine;
    second.pull().unwrap();
    second.session().switch_branch(&at(705), "main", true).unwrap();
    second.session().switch_branch(&at(710), "f0", true).unwrap();
    // What was not pushed would be put after the undo, with the time of the undo.
    second.push().unwrap();
    first.pull().unwrap();
    session.undo(&at(720), Some(&made)).unwrap();
    first.push().unwrap();
    second.pull().unwrap();
    let check = |last: &str| {
        let session = second.session();
        for (minute, branch) in [(709, "main"), (715, "f0"), (725, "main"), (735, last)] {
            let moment = session.at_time(time(minute)).unwrap();
            let current = session.state(&moment).unwrap().current_branch().unwrap();
            assert_eq!(current, branch, "at {minute}");
        }
        second.store.maintain(0).unwrap();
        place.check_whole("after the branch was left");
    };
    check("main");
    second.session().switch_branch(&at(730), "side", true).unwrap();
    check("side");
    second.store.rebuild().unwrap();
    check("side");
}

#[test]
fn claims_that_only_one_side_changed_are_joined() {
    let (first, second) = two();
    note(&first.session(), "B", "there");
    note(&first.session(), "A", "changed there");
    first.push().unwrap();
    let pushed = revisions(&first.session());
    note(&second.session(), "C", "here");
    note(&second.session(), "D", "here too");
    let pulled = second.pull().unwrap();
    assert_eq!(pulled.operations, 2);
    assert_eq!(pulled.joined.renumbered, [(2, 4), (3, 5)]);
    assert!(pulled.joined.split.is_empty());
    let now = revisions(&second.session());
    assert!(pushed.iter().all(|(number, id)| now.get(number) == Some(id)), "what was pushed stays");
    assert_eq!(second.session().summary().unwrap().claims, 4);
    meet(&first, &second);
}

#[test]
fn a_claim_that_both_sides_changed_gives_a_branch_and_a_merge_that_names_it() {
    let (first, second) = two();
    note(&first.session(), "A", "there");
    first.push().unwrap();
    note(&second.session(), "A", "here");
    let pulled = second.pull().unwrap();
    let [split] = pulled.joined.split.as_slice() else { panic!("{pulled:?}") };
    assert_eq!(split.branch, "main");
    assert!(split.own.starts_with("main."), "{split:?}");
    assert_eq!(split.reason, SplitReason::Changed("note A".to_owned()));
    assert_eq!(split.merged, None);
    let session = second.session();
    let summary = session.summary().unwrap();
    assert_eq!(summary.branch, split.own, "the work here goes on");
    session.switch_branch(&act("switch"), "main", false).unwrap();
    let merging = MergeRequest { source: split.own.clone(), ..MergeRequest::default() };
    let merged = session.merge(&act("merge"), &merging).unwrap();
    assert!(!merged.conflicts.is_empty(), "{merged:?}");
    meet(&first, &second);
}

/// Regression: a pull checked out the branch that others had checked out, and the next writes went
/// there.
#[test]
fn the_branch_that_is_checked_out_here_stays() {
    let (depot, first, second) = two_at();
    let switch = |machine: &Machine, name: &str| {
        machine.session().switch_branch(&act("switch"), name, false).unwrap();
    };
    let checked_out = |machine: &Machine| machine.session().summary().unwrap().branch;
    let session = second.session();
    session.create_branch(&act("x"), "x", None, BranchMetadata::default()).unwrap();
    switch(&second, "x");
    note(&session, "B", "on x");
    second.push().unwrap();
    let pulled = first.pull().unwrap();
    assert_eq!(pulled.joined.checked_out_elsewhere.as_deref(), Some("x"));
    assert_eq!(checked_out(&first), "main");
    let third = Machine::new(&depot);
    third.pull().unwrap();
    assert_eq!(checked_out(&third), "x", "a new clone begins where others are");
    // Also where both sides wrote.
    switch(&second, "main");
    note(&second.session(), "C", "there");
    switch(&second, "x");
    second.push().unwrap();
    note(&first.session(), "D", "here");
    assert_eq!(first.push().unwrap().joined.checked_out_elsewhere, None);
    assert_eq!(checked_out(&first), "main");
    // The own checkouts that were pushed still count, now and in the past.
    switch(&first, "x");
    first.push().unwrap();
    note(&third.session(), "E", "on x too");
    third.push().unwrap();
    note(&first.session(), "F", "here");
    first.push().unwrap();
    assert_eq!(checked_out(&first), "x");
    second.pull().unwrap();
    third.pull().unwrap();
    for machine in [&first, &second, &third] {
        assert_eq!(checked_out(machine), "x");
        assert_eq!(machine.push().unwrap().operations, 0, "no checkout is left to push");
    }
}

/// Regression: two people who found evidence on one hypothesis always got two branches, because its
/// confidence differed.
#[test]
fn evidence_that_both_sides_found_moves_one_confidence() {
    let (first, second) = two();
    let add = |machine: &Machine, id: &str, strength: f64| {
        let strength = Strength::new(strength).unwrap();
        let evidence = Evidence::default().hypothesis("H1").strength(strength);
        machine.session().write(&act("evidence")).add(id, evidence).commit().unwrap();
    };
    let hypothesis = Hypothesis::default().description("a leak").confidence(Confidence::EVEN);
    first.session().write(&act("hypothesis")).add("H1", hypothesis).commit().unwrap();
    first.push().unwrap();
    second.pull().unwrap();
    add(&first, "E1", 0.5);
    first.push().unwrap();
    add(&second, "E2", 0.5);
    let pulled = second.pull().unwrap();
    let [split] = pulled.joined.split.as_slice() else { panic!("{pulled:?}") };
    assert_eq!(split.reason, SplitReason::Changed("hypothesis H1".to_owned()));
    assert!(split.merged.is_some(), "it needs no decision: {split:?}");
    assert_eq!(second.session().summary().unwrap().branch, "main");
    meet(&first, &second);
    for machine in [&first, &second] {
        let session = machine.session();
        let head = session.head().unwrap();
        let value = |key| session.claim(&head, &key).unwrap().unwrap().value;
        let confidence = value(Key::new(Kind::Hypothesis, "H1")).field("confidence").cloned();
        let confidence = confidence.and_then(|value| value.as_f64()).unwrap();
        assert!((confidence - 0.9).abs() < 1e-9, "two of 0.5 are one of 1: {confidence}");
        value(Key::new(Kind::Evidence, "E1"));
        value(Key::new(Kind::Evidence, "E2"));
    }
}

/// The merge of a join is undone like any other: what was written here is on its own branch.
#[test]
fn different_fields_of_one_claim_are_merged_and_that_can_be_undone() {
    let (first, second) = two();
    let write = |machine: &Machine, description: &str, source: &str| {
        let note = Note::default().description(description).source(source);
        let change = ClaimChange::put(Key::new(Kind::Note, "A"), note.to_value());
        machine.session().write(&act("write")).change(change).commit().unwrap();
    };
    write(&first, "x", "y");
    first.push().unwrap();
    second.pull().unwrap();
    write(&first, "there", "y");
    first.push().unwrap();
    write(&second, "x", "here");
    let pulled = second.pull().unwrap();
    let merge = pulled.joined.split.first().and_then(|split| split.merged);
    assert!(merge.is_some(), "{pulled:?}");
    meet(&first, &second);
    let undone = second.session().undo(&act("undo"), None).unwrap();
    assert_eq!(undone.target.verb, format!("branch merge {}", pulled.joined.split[0].own));
    meet(&first, &second);
}

#[test]
fn a_claim_that_refers_to_a_claim_removed_by_others_is_on_a_separate_branch() {
    let (first, second) = two();
    let hypothesis = Key::new(Kind::Hypothesis, "H1");
    let value = Value::from([
        ("statement", "a leak".into()),
        ("status", "active".into()),
        ("confidence", 0.5.into()),
    ]);
    let write = |machine: &Machine, change| {
        machine.session().write(&act("write")).change(change).commit().unwrap();
    };
    write(&first, ClaimChange::put(hypothesis.clone(), value));
    first.push().unwrap();
    second.pull().unwrap();
    write(&first, ClaimChange::remove(hypothesis));
    first.push().unwrap();
    let evidence = Value::from([
        ("hypothesis", "H1".into()),
        ("source", "test".into()),
        ("content", "it grows".into()),
        ("supports", true.into()),
    ]);
    write(&second, ClaimChange::put(Key::new(Kind::Evidence, "E1"), evidence));
    let pulled = second.pull().unwrap();
    let [split] = pulled.joined.split.as_slice() else { panic!("{pulled:?}") };
    assert_eq!(split.reason, SplitReason::Dangling);
    meet(&first, &second);
}

/// The other order: what they wrote refers to what is removed here.
#[test]
fn a_claim_that_others_refer_to_is_removed_on_a_separate_branch() {
    let (first, second) = two();
    let write = |machine: &Machine, change| {
        machine.session().write(&act("write")).change(change).commit().unwrap();
    };
    let key = Key::new(Kind::Hypothesis, "H1");
    let value = Value::from([
        ("statement", "a leak".into()),
        ("status", "active".into()),
        ("confidence", 0.5.into()),
    ]);
    write(&first, ClaimChange::put(key.clone(), value));
    first.push().unwrap();
    second.pull().unwrap();
    let evidence = Value::from([
        ("hypothesis", "H1".into()),
        ("source", "test".into()),
        ("content", "it grows".into()),
        ("supports", true.into()),
    ]);
    write(&first, ClaimChange::put(Key::new(Kind::Evidence, "E1"), evidence));
    first.push().unwrap();
    write(&second, ClaimChange::remove(key));
    let pulled = second.pull().unwrap();
    let [split] = pulled.joined.split.as_slice() else { panic!("{pulled:?}") };
    assert_eq!(split.reason, SplitReason::Dangling);
    meet(&first, &second);
}

/// Regression: the undo of a pruning that others have was left out, although the push reported it
/// as pushed.
#[test]
fn the_undo_of_a_pruning_that_others_have_is_joined() {
    let (first, second) = two();
    for minute in [701, 702] {
        step_of(&first, minute, (0, 0));
    }
    step_of(&first, 703, (12, 0));
    first.push().unwrap();
    second.pull().unwrap();
    note(&second.session(), "B", "there");
    second.push().unwrap();
    step_of(&first, 704, (9, 0));
    assert_eq!(first.push().unwrap().pulled, 1);
    assert!(first.session().at_sequence(2).is_ok(), "it is undone");
    meet(&second, &first);
}

/// Regression: the pruning came after a fact that was not pushed, so it counted as one of this
/// store: the join left it out with its undo.
#[test]
fn the_undo_of_a_pruning_that_was_pulled_after_unpushed_facts_is_joined() {
    let (first, second) = two_with_revisions();
    command(&first.session(), "not pushed");
    step_of(&second, 703, (12, 0));
    second.push().unwrap();
    first.pull().unwrap();
    let pruning = || {
        let operations = first.session().operations(99).unwrap();
        operations.into_iter().find(|one| one.verb == "prune").unwrap()
    };
    first.session().undo(&act("undo"), Some(&pruning().id.to_string())).unwrap();
    assert!(pruning().taken_back);
    note(&second.session(), "B", "there");
    second.push().unwrap();
    assert_eq!(first.push().unwrap().pulled, 1);
    assert!(pruning().taken_back, "it is still undone");
    meet(&second, &first);
}

/// Regression: a pruning that was swept before it was pushed could never be joined.
#[test]
fn a_pruning_that_was_swept_before_it_was_pushed_is_left_to_the_next_one() {
    let (first, second) = two_with_revisions();
    note(&second.session(), "B", "there");
    second.push().unwrap();
    step_of(&first, 703, (12, 0));
    step_of(&first, 704, (14, 0));
    note(&first.session(), "C", "here");
    first.pull().unwrap();
    assert!(first.session().at_sequence(2).is_ok(), "others have it still");
    meet(&second, &first);
}

/// Regression: after a redo, both the pruning and its redo count as in force. The join undid the
/// redo, then found nothing to undo for the pruning, and refused every pull.
#[test]
fn a_pruning_that_was_redone_before_it_was_pushed_is_left_to_the_next_one() {
    for undone in [false, true] {
        let (first, second) = two_with_revisions();
        note(&second.session(), "B", "there");
        second.push().unwrap();
        for (minute, step) in
            [(703, 12), (704, 9), (705, 11), (706, 9)].into_iter().take(3 + usize::from(undone))
        {
            step_of(&first, minute, (step, 0));
        }
        note(&first.session(), "C", "here");
        first.pull().unwrap();
        assert!(first.session().at_sequence(2).is_ok(), "others have it still");
        meet(&second, &first);
    }
}

/// Regression: what is permanently removed cannot be written again, but the error said only that it
/// was folded.
#[test]
fn revisions_that_were_swept_before_they_were_pushed_cannot_be_joined() {
    let depot: Arc<dyn Depot> = Arc::new(MemoryDepot::default());
    Remote::create(Arc::clone(&depot), &SECRET).unwrap();
    let [first, second] = [(); 2].map(|()| Machine::new(&depot));
    first.store.create_session(&act("begin"), NewSession::named("s")).unwrap();
    first.push().unwrap();
    second.pull().unwrap();
    step_of(&first, 1, (0, 0));
    first.push().unwrap();
    for (minute, step) in [(2, 0), (3, 0), (4, 12), (5, 14)] {
        step_of(&second, minute, (step, 0));
    }
    let refused = second.pull().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("was permanently pruned here"), "{refused}");
}

#[test]
fn facts_and_checkpoints_of_both_sides_are_kept() {
    let (first, second) = two();
    let named = |machine: &Machine, message: &str, key: Option<&str>| {
        let key = key.map(str::to_owned);
        let wanted = NewCheckpoint { key, ..NewCheckpoint::manual(message.to_owned()) };
        machine.session().write(&act("checkpoint")).checkpoint(wanted).commit().unwrap();
    };
    named(&first, "there", None);
    named(&first, "one event", Some("event 1"));
    command(&first.session(), "there");
    first.push().unwrap();
    note(&second.session(), "B", "here");
    named(&second, "here", None);
    named(&second, "one event", Some("event 1"));
    command(&second.session(), "here");
    second.pull().unwrap();
    let session = second.session();
    let found = session.checkpoints(&Default::default()).unwrap();
    let mut messages: Vec<_> = found.iter().map(|one| one.message.clone()).collect();
    messages.sort();
    assert_eq!(messages, ["here", "one event", "there"], "one event is recorded once");
    let here = found.iter().find(|one| one.message == "here").unwrap();
    let moment = session.at_sequence(here.revision.unwrap()).unwrap();
    assert_eq!(session.state(&moment).unwrap().facts_of(Kind::Command).unwrap().len(), 2);
    meet(&first, &second);
}

#[test]
fn branches_of_one_name_are_both_kept() {
    let (first, second) = two();
    for machine in [&first, &second] {
        let session = machine.session();
        session.create_branch(&act("x"), "x", None, BranchMetadata::default()).unwrap();
        session.switch_branch(&act("x"), "x", false).unwrap();
    }
    note(&first.session(), "B", "there");
    first.push().unwrap();
    note(&second.session(), "B", "here");
    let pulled = second.pull().unwrap();
    assert!(pulled.joined.split.is_empty(), "each branch has its own claims: {pulled:?}");
    let all = names(&second.session());
    assert_eq!(all.len(), 3);
    assert!(all[2].starts_with("x."), "{all:?}");
    assert_eq!(second.session().summary().unwrap().branch, all[2], "the work here goes on");
    meet(&first, &second);
}

#[test]
fn a_merge_and_an_undo_are_kept_by_a_join() {
    let (first, second) = two();
    note(&first.session(), "B", "there");
    first.push().unwrap();
    let session = second.session();
    session.create_branch(&act("x"), "x", None, BranchMetadata::default()).unwrap();
    session.switch_branch(&act("x"), "x", false).unwrap();
    note(&session, "C", "on x");
    session.switch_branch(&act("x"), "main", false).unwrap();
    note(&session, "D", "on main");
    let merging = MergeRequest { source: "x".to_owned(), ..MergeRequest::default() };
    session.merge(&act("merge"), &merging).unwrap();
    note(&session, "E", "a mistake");
    session.undo(&act("undo"), None).unwrap();
    second.pull().unwrap();
    let session = second.session();
    let state = session.state(&session.head().unwrap()).unwrap();
    let ids: Vec<_> = state.claims().entries().map(|one| one.unwrap().0.id).collect();
    assert_eq!(ids, ["A", "B", "C", "D"]);
    let merging = MergeRequest { source: "x".to_owned(), ..MergeRequest::default() };
    let again = session.merge(&act("merge"), &merging).unwrap();
    assert!(again.revision.is_none(), "it is merged: {again:?}");
    session.redo(&act("redo")).unwrap();
    assert_eq!(session.summary().unwrap().claims, 5);
    meet(&first, &second);
}

#[test]
fn a_purge_that_was_not_pushed_is_never_lost() {
    use forge_store::redact::KnownSecrets;
    let (_, depot, first) = shared();
    note(&first.session(), "C", "correct horse battery staple");
    first.push().unwrap();
    // A machine with a grant writes no notices of its purges.
    let handle = first.remote.handle(&first.session().summary().unwrap().info.id).unwrap();
    let grant = first.store.grant(&first.remote, &handle).unwrap();
    let (second, fourth) = (container(&depot, &grant), Machine::new(&depot));
    second.pull().unwrap();
    fourth.pull().unwrap();
    note(&first.session(), "B", "there");
    first.push().unwrap();
    note(&second.session(), "H", "here");
    let known = KnownSecrets::new(["correct horse battery staple"]).unwrap();
    second.store.purge(&act("purge"), &known, None, &|_, _| None, &|_| ()).unwrap();
    let before = session_contents(&second.store);
    let refused = second.pull().unwrap_err();
    assert!(refused.to_string().contains("a purge here was not pushed yet"), "{refused}");
    same(&session_contents(&second.store), &before, "nothing changed");
    // A purge of data that was not pushed does not prevent a join.
    note(&fourth.session(), "G", "another horse battery staple");
    let other = KnownSecrets::new(["another horse battery staple"]).unwrap();
    fourth.store.purge(&act("purge"), &other, None, &|_, _| None, &|_| ()).unwrap();
    fourth.pull().unwrap();
    let joined = session_contents(&fourth.store);
    assert!(joined.contains("note G") || joined.contains("\"G\""), "{joined}");
    assert!(!joined.contains("another horse"), "{joined}");
    // Nor does a purge that was pushed.
    let third = Machine::new(&depot);
    third.pull().unwrap();
    note(&third.session(), "D", "another horse battery staple");
    third.store.purge(&act("purge"), &other, None, &|_, _| None, &|_| ()).unwrap();
    third.push().unwrap();
    note(&third.session(), "E", "later");
    first.pull().unwrap();
    note(&first.session(), "F", "there");
    first.push().unwrap();
    meet(&first, &third);
}

/// Regression: a purge made the texts of two revisions equal, and the join left out the second one.
#[test]
fn a_revision_that_changes_nothing_after_a_purge_is_kept_by_a_join() {
    let (_, depot, first) = shared();
    let place = Place::new(&depot);
    let second = &place.machine;
    second.pull().unwrap();
    note(&first.session(), "B", "there");
    first.push().unwrap();
    let long = ["correct horse battery staple", "another horse battery staple"];
    for text in long {
        note(&second.session(), "N", text);
    }
    let known = forge_store::redact::KnownSecrets::new(long).unwrap();
    second.store.purge(&act("purge"), &known, None, &|_, _| None, &|_| ()).unwrap();
    let ids = |machine: &Machine| -> Vec<_> {
        machine.session().operations(99).unwrap().into_iter().map(|one| one.id).collect()
    };
    let before = ids(second);
    second.push().unwrap();
    first.pull().unwrap();
    same(&unordered(&first.store), &unordered(&second.store), "joined");
    let written = before.iter().filter(|id| ids(second).contains(id)).count();
    // The purge itself is an operation of this store only.
    assert_eq!((before.len(), written), (4, 3));
    place.check_whole("joined");
}

/// Regression: a checkpoint that one side took back and the other one replaced was pulled as a new
/// one, before the branch that it is on.
#[test]
fn a_checkpoint_undone_by_one_side_and_replaced_by_the_other_is_kept() {
    let (first, second) = two();
    step_of(&first, 1, (22, 1));
    first.push().unwrap();
    second.pull().unwrap();
    step_of(&first, 2, (9, 0));
    first.push().unwrap();
    step_of(&second, 3, (22, 161));
    meet(&first, &second);
    let found = first.session().checkpoints(&Default::default()).unwrap();
    assert_eq!(found.len(), 1);
}

/// Regression: revisions that were swept here and restored there were reported as damaged.
#[test]
fn a_pruning_that_was_swept_here_and_undone_there_is_undone() {
    let (first, second) = two();
    step_of(&first, 1, (0, 0));
    step_of(&first, 2, (0, 0));
    step_of(&first, 3, (12, 0));
    first.push().unwrap();
    second.pull().unwrap();
    step_of(&first, 4, (9, 0));
    first.push().unwrap();
    step_of(&second, 5, (14, 0));
    second.pull().unwrap();
    meet(&first, &second);
}

/// Regression: a branch that was made here from a revision that was not pushed was written over
/// what others had changed in the same claim.
#[test]
fn a_local_branch_is_separated_together_with_the_branch_that_it_begins_on() {
    let (first, second) = two();
    note(&first.session(), "A", "changed there");
    first.push().unwrap();
    let session = second.session();
    note(&session, "B", "on main");
    session.create_branch(&act("x"), "x", None, BranchMetadata::default()).unwrap();
    session.switch_branch(&act("x"), "x", false).unwrap();
    note(&session, "A", "changed here");
    let pulled = second.pull().unwrap();
    let [split] = pulled.joined.split.as_slice() else { panic!("{pulled:?}") };
    assert_eq!(split.branch, "main");
    assert_eq!(split.reason, SplitReason::Changed("note A".to_owned()));
    let session = second.session();
    let main = session.branches(&session.head().unwrap()).unwrap();
    assert_eq!(main.len(), 3, "{main:?}");
    meet(&first, &second);
}

/// Regression: deltas of more than some hundred kilobytes are objects that both sessions share, and
/// they were removed with the session that was replaced.
#[test]
fn a_large_revision_that_both_sides_have_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (_, depot, first) = shared();
    let path = folder.path().join("store");
    let store = Store::create(&path, Options::default()).unwrap();
    let second = Machine { store, remote: Remote::open(depot, &SECRET).unwrap() };
    second.pull().unwrap();
    let (session, act_of) = (second.session(), act("large"));
    let mut large = session.write(&act_of);
    for number in 0..600_u32 {
        let mut text = vec![0; 2_000];
        blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(&mut text);
        let text = text.iter().map(|byte| char::from(b' ' + byte % 90)).collect::<String>();
        let value = Value::from([("description", text.as_str().into()), ("source", "t".into())]);
        let key = Key::new(Kind::Note, format!("L{number}"));
        large = large.change(ClaimChange::put(key, value));
    }
    large.commit().unwrap();
    second.push().unwrap();
    first.pull().unwrap();
    note(&first.session(), "B", "there");
    first.push().unwrap();
    note(&second.session(), "C", "here");
    meet(&first, &second);
    second.store.maintain(0).unwrap();
    let found = Store::verify(&path, VerifyDepth::ReadData, crate::bundle::NOW, None).unwrap();
    assert_eq!(found.outcome, VerifyOutcome::Clean, "{:?}", found.findings);
    assert_eq!(second.session().summary().unwrap().claims, 603);
}

#[test]
fn a_session_that_was_removed_here_is_pulled_again() {
    let (first, second) = two();
    second.store.drop_session(&act("drop"), &second.session()).unwrap();
    let later = Timestamp::from_micros(crate::bundle::NOW.as_micros() + 3_600_000_000);
    second.store.sweep(later, later).unwrap();
    assert_eq!(second.pull().unwrap().operations, 1);
    same(&shared_contents(&first.store), &shared_contents(&second.store), "pulled again");
}

#[test]
fn a_session_opened_before_a_join_refuses_reads_and_writes() {
    let (first, second) = two();
    let before = second.session();
    note(&first.session(), "B", "there");
    first.push().unwrap();
    note(&before, "C", "here");
    second.pull().unwrap();
    assert!(before.is_removed());
    let read = before.checkpoints(&Default::default()).map(drop);
    let value = Value::from([("description", "D".into()), ("source", "test".into())]);
    let change = ClaimChange::put(Key::new(Kind::Note, "D"), value);
    let written = before.write(&act("note")).change(change).commit().map(drop);
    for refused in [read.unwrap_err(), written.unwrap_err()] {
        assert!(refused.to_string().contains("open it again"), "{refused}");
    }
}

/// Regression: after a pull, `undo` took back the last operation of another machine.
#[test]
fn after_a_pull_undo_takes_back_the_last_local_operation() {
    let folder = tempfile::tempdir().unwrap();
    let (_, depot, first) = shared();
    let store = Store::create(&folder.path().join("store"), Options::default()).unwrap();
    let second = Machine { store, remote: Remote::open(depot, &SECRET).unwrap() };
    second.pull().unwrap();
    let nothing = second.session().undo(&act("undo"), None).unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::NotFound, "{nothing}");
    note(&second.session(), "B", "here");
    note(&first.session(), "C", "there");
    first.push().unwrap();
    second.pull().unwrap();
    second.push().unwrap();
    note(&first.session(), "D", "there");
    first.push().unwrap();
    second.pull().unwrap();
    let ids = || {
        let session = second.session();
        let state = session.state(&session.head().unwrap()).unwrap();
        state.claims().entries().map(|one| one.unwrap().0.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(), ["A", "B", "C", "D"]);
    second.session().undo(&act("undo"), None).unwrap();
    assert_eq!(ids(), ["A", "C", "D"]);
    second.session().redo(&act("redo")).unwrap();
    assert_eq!(ids(), ["A", "B", "C", "D"]);
    // By its id, what others did is undone too.
    let operations = second.session().operations(9).unwrap();
    let theirs = operations.iter().find(|one| one.effects == ["revision #4"]).unwrap();
    second.session().undo(&act("undo"), Some(&theirs.id.to_string())).unwrap();
    assert_eq!(ids(), ["A", "B", "C"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// The machines write, pull and push in any order.
    #[test]
    fn machines_that_sync_in_any_order_end_with_the_same_session_and_lose_nothing(
        turns in prop::collection::vec(
            (0_usize..3, 0_u8..4, prop::collection::vec((0_u8..26, any::<u8>()), 0..3)), 1..24),
    ) {
        let depot: Arc<dyn Depot> = Arc::new(MemoryDepot::default());
        Remote::create(Arc::clone(&depot), &SECRET).unwrap();
        let machines = [(); 3].map(|()| Machine::new(&depot));
        machines[0].store.create_session(&act("begin"), NewSession::named("s")).unwrap();
        machines[0].push().unwrap();
        machines[1].pull().unwrap();
        machines[2].pull().unwrap();
        let mut minute = 1;
        let mut pushed: BTreeMap<u64, String> = BTreeMap::new();
        for (which, then, steps) in turns {
            let machine = &machines[which];
            for what in steps {
                minute += 1;
                step_of(machine, minute, what);
            }
            let done = match then {
                0 => Ok(()),
                1 => machine.pull().map(drop),
                _ => machine.push().map(drop),
            };
            // What was deleted for good, and a source that both sides read, cannot be joined.
            if let Err(error) = done {
                prop_assert_eq!(error.kind(), ErrorKind::Conflict);
                prop_assert!(error.to_string().contains("cannot be joined"), "{}", error);
                return Ok(());
            }
            if then > 1 {
                pushed.extend(revisions(&machine.session()));
            }
        }
        for machine in machines.iter().chain(&machines) {
            if let Err(error) = machine.push() {
                prop_assert!(error.to_string().contains("cannot be joined"), "{}", error);
                return Ok(());
            }
        }
        for machine in &machines {
            machine.pull().unwrap();
            same(&unordered(&machine.store), &unordered(&machines[0].store), "at the end");
            prop_assert_eq!(machine.push().unwrap().operations, 0);
        }
        let now = revisions(&machines[0].session());
        for (number, id) in pushed {
            prop_assert!(now.get(&number).is_none_or(|known| *known == id), "#{}", number);
        }
    }
}

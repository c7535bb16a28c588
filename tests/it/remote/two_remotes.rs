//! A machine that shares one session through two remotes.

use super::purge::{Place, WORD, cleaned};
use super::{Machine, SECRET, access_of, judged, shared};
use crate::bundle::law::{same, shared_contents};
use crate::bundle::{act, note};
use forge_store::store::Store;
use forge_store::store::remote::{
    Depot, KnownRemote, MemoryDepot, Remote, RewriteReason, UnpushedWork,
};
use forge_store::{Error, ErrorKind};
use std::fs;
use std::sync::Arc;
use tempfile::TempDir;

/// Makes another remote, and pushes the session of a machine there. Returns the machine as it sees
/// this remote.
fn pushed_to_another(machine: &Machine) -> (MemoryDepot, Arc<dyn Depot>, Machine) {
    let memory = MemoryDepot::default();
    let depot: Arc<dyn Depot> = Arc::new(memory.clone());
    let remote = Remote::create(Arc::clone(&depot), &SECRET).unwrap();
    let there = Machine { store: machine.store.clone(), remote };
    there.push().unwrap();
    (memory, depot, there)
}

fn clone_of(depot: &Arc<dyn Depot>) -> Machine {
    let machine = Machine::new(depot);
    machine.pull().unwrap();
    machine
}

/// Pushes the session to a second remote, to which another machine pushes too. Returns that remote,
/// the machine there, and the other one.
fn shared_there(machine: &Machine) -> (Arc<dyn Depot>, Machine, Machine) {
    let (_, other, there) = pushed_to_another(machine);
    let third = clone_of(&other);
    note(&third.session(), "C", "at the second remote");
    third.push().unwrap();
    there.pull().unwrap();
    (other, there, third)
}

/// Regression: a join with one remote builds the session again. What the machine knew of the other
/// remote counted positions of the session before, so a push there sent the session in an order
/// that no clone could take.
#[test]
fn a_remote_with_one_pushing_machine_adopts_the_operation_order_of_the_other_remote() {
    let (_, depot, first) = shared();
    let place = Place::new(&depot);
    let both = &place.machine;
    both.pull().unwrap();
    let (_, other, both_there) = pushed_to_another(both);
    note(&both.session(), "D", "here");
    both_there.push().unwrap();
    let reader = clone_of(&other);
    note(&first.session(), "B", "at the first remote");
    first.push().unwrap();
    assert_eq!(both.pull().unwrap().joined.renumbered, [(2, 3)]);
    both.push().unwrap();
    let pushed = both_there.push().unwrap();
    assert_eq!((pushed.rewritten, pushed.version), (Some(RewriteReason::Reordered), 3));
    assert_eq!(both_there.push().unwrap().operations, 0);
    reader.pull().unwrap();
    for machine in [&reader, &clone_of(&other)] {
        same(&shared_contents(&machine.store), &shared_contents(&both.store), "the other remote");
    }
}

/// Regression: only what was written after the last push was searched.
#[test]
fn a_session_pushed_in_another_operation_order_is_searched_for_secrets_as_a_whole() {
    let (_, depot, _) = shared();
    let place = Place::new(&depot);
    place.machine.pull().unwrap();
    let (_, other, there) = pushed_to_another(&place.machine);
    note(&place.machine.session(), "D", "here");
    there.push().unwrap();
    // A store that redacts nothing.
    let careless = Machine { store: Store::in_memory().unwrap(), ..Machine::new(&depot) };
    careless.pull().unwrap();
    note(&careless.session(), "B", &format!("ghp_{}", "a1B2c3D4e5F6".repeat(3)));
    careless.push().unwrap();
    assert_eq!(place.machine.pull().unwrap().secrets.len(), 1);
    let refused = there.push().unwrap_err();
    assert!(matches!(refused, Error::UnpushedSecrets { .. }), "{refused}");
    let pushed = there.remote.allowing_secrets();
    let pushed = there.store.push(&act("push"), &pushed, &place.machine.session()).unwrap();
    assert_eq!((pushed.operations, pushed.rewritten), (1, Some(RewriteReason::Reordered)));
    clone_of(&other);
}

#[test]
fn remotes_that_others_push_to_cannot_be_joined_with_each_other() {
    let (_, depot, first) = shared();
    let place = Place::new(&depot);
    let both = &place.machine;
    both.pull().unwrap();
    let (other, both_there, third) = shared_there(both);
    note(&first.session(), "B", "at the first remote");
    first.push().unwrap();
    assert_eq!(both.pull().unwrap().joined.renumbered, [(2, 3)]);
    both.push().unwrap();
    let before = shared_contents(&both.store);
    for refused in [both_there.push().map(drop), {
        note(&third.session(), "E", "more");
        third.push().unwrap();
        both_there.pull().map(drop)
    }] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().contains("joined with another remote"), "{error}");
    }
    same(&shared_contents(&both.store), &before, "refused");
    // Each remote still has one session that new machines get.
    for (depot, machine) in [(&depot, &first), (&other, &third)] {
        machine.pull().unwrap();
        same(&shared_contents(&clone_of(depot).store), &shared_contents(&machine.store), "a clone");
    }
}

/// Regression: the combined packs named only one of the stores that had pushed, so that store
/// rewrote what the others had pushed.
#[test]
fn a_shared_remote_with_combined_packs_is_not_rewritten_in_another_operation_order() {
    for combines in ["the joiner", "the other"] {
        let (_, depot, first) = shared();
        let place = Place::new(&depot);
        let both = &place.machine;
        both.pull().unwrap();
        let (other, both_there, third) = shared_there(both);
        let pusher = if combines == "the other" { &third } else { &both_there };
        for number in 0..20 {
            note(&pusher.session(), &format!("M{number}"), "more");
            pusher.push().unwrap();
        }
        both_there.pull().unwrap();
        note(&first.session(), "B", "at the first remote");
        first.push().unwrap();
        both.pull().unwrap();
        note(&both.session(), "D", "after the join");
        let error = both_there.push().unwrap_err();
        assert!(error.to_string().contains("joined with another remote"), "{combines}: {error}");
        note(&third.session(), "E", "more");
        third.pull().unwrap();
        third.push().unwrap();
        same(&shared_contents(&clone_of(&other).store), &shared_contents(&third.store), "a clone");
    }
}

/// Two remotes that others push one session to, and a store that has pulled from both. It knows
/// the second remote as `other`, and has something of it that the first one has not.
fn between_two() -> (TempDir, Machine, Machine, [Machine; 2]) {
    let (_, depot, first) = shared();
    let folder = tempfile::tempdir().unwrap();
    let options = judged().keyring(folder.path().join("keyring"));
    let store = Store::create(&folder.path().join("store"), options).unwrap();
    let both = Machine { store, remote: Remote::open(depot, &SECRET).unwrap() };
    both.pull().unwrap();
    let (_, other, there) = pushed_to_another(&both);
    let url = "file:///other".to_owned();
    let access = access_of(&there.remote);
    both.store.keep_remote(&KnownRemote { name: "other".to_owned(), url, access }).unwrap();
    let third = clone_of(&other);
    note(&third.session(), "C", "at the second remote");
    third.push().unwrap();
    there.pull().unwrap();
    (folder, both, there, [first, third])
}

/// Regression: the join made the other remote unusable, and nothing warned of it.
#[test]
fn a_join_that_reorders_operations_of_another_shared_remote_is_refused_unchanged() {
    let (_folder, both, there, [first, third]) = between_two();
    note(&first.session(), "B", "at the first remote");
    first.push().unwrap();
    let before = shared_contents(&both.store);
    for refused in [both.pull().map(drop), both.push().map(drop)] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.to_string().contains("the remote 'other' too"), "{error}");
    }
    same(&shared_contents(&both.store), &before, "refused");
    note(&third.session(), "D", "more");
    third.push().unwrap();
    assert_eq!(there.pull().unwrap().operations, 1);
    // Without the other remote, nothing is in the way.
    both.store.forget_remote("other").unwrap();
    assert_eq!(both.pull().unwrap().joined.renumbered, [(2, 3), (3, 4)]);
    both.push().unwrap();
    first.pull().unwrap();
    same(&shared_contents(&first.store), &shared_contents(&both.store), "joined");
}

/// What the other remote has keeps its numbers.
#[test]
fn a_join_that_reorders_only_unshared_operations_is_accepted() {
    let (_folder, both, there, [first, third]) = between_two();
    both.push().unwrap();
    note(&both.session(), "D", "here");
    first.pull().unwrap();
    note(&first.session(), "E", "there");
    first.push().unwrap();
    assert_eq!(both.push().unwrap().joined.renumbered, [(3, 4)]);
    there.push().unwrap();
    third.pull().unwrap();
    same(&shared_contents(&third.store), &shared_contents(&both.store), "the other remote");
}

/// What this store knew of the other remote was lost, or the other remote was set back on purpose.
#[test]
fn a_remote_with_one_pushing_machine_adopts_another_operation_order_without_a_track() {
    for is_accepted in [false, true] {
        let (_, depot, first) = shared();
        let place = Place::new(&depot);
        let both = &place.machine;
        both.pull().unwrap();
        let (_, other, mut there) = pushed_to_another(both);
        note(&both.session(), "D", "here");
        there.push().unwrap();
        note(&first.session(), "B", "at the first remote");
        first.push().unwrap();
        both.pull().unwrap();
        if is_accepted {
            there.remote = there.remote.accepting_history();
        } else {
            let id = there.remote.id().to_string();
            fs::remove_dir_all(place.path().join("remotes").join(id)).unwrap();
            assert_eq!(there.pull().unwrap().operations, 0);
        }
        let pushed = there.push().unwrap();
        assert_eq!(pushed.rewritten, Some(RewriteReason::Reordered), "{is_accepted}");
        same(
            &shared_contents(&clone_of(&other).store),
            &shared_contents(&both.store),
            "the other remote",
        );
    }
}

#[test]
fn work_not_pushed_to_the_other_remote_is_counted_after_a_join() {
    let (_, depot, first) = shared();
    let place = Place::new(&depot);
    place.machine.pull().unwrap();
    let (memory, _, there) = pushed_to_another(&place.machine);
    let access = access_of(&there.remote);
    let unpushed = || there.store.unpushed(&access, &there.session()).unwrap();
    assert_eq!(unpushed(), UnpushedWork::default());
    note(&place.machine.session(), "C", "here");
    there.push().unwrap();
    note(&first.session(), "B", "there");
    first.push().unwrap();
    place.machine.pull().unwrap();
    assert_eq!((unpushed().operations, unpushed().rewrite), (1, None));
    assert_eq!(there.store.preview_push(&access, &there.session()).unwrap().operations, 1);
    // A pull of the other remote has nothing new.
    memory.take_requests();
    assert_eq!(there.pull().unwrap().operations, 0);
    assert_eq!(memory.take_requests().swap, 0);
}

#[test]
fn a_machine_without_changes_adopts_the_operation_order_of_the_remote() {
    let (_, depot, first) = shared();
    let second = clone_of(&depot);
    let (_, other, _) = pushed_to_another(&first);
    let third = clone_of(&other);
    note(&first.session(), "B", "of the first");
    first.push().unwrap();
    let there = Machine { store: second.store.clone(), remote: clone_of(&other).remote };
    there.pull().unwrap();
    note(&second.session(), "C", "of the second");
    there.push().unwrap();
    assert_eq!(second.push().unwrap().joined.renumbered, [(2, 3)]);
    third.pull().unwrap();
    let here = Machine { store: third.store, remote: clone_of(&depot).remote };
    here.pull().unwrap();
    same(&shared_contents(&here.store), &shared_contents(&second.store), "the first remote");
}

#[test]
fn a_purge_leaves_the_other_remote_after_a_join() {
    let (_, depot, first) = shared();
    let place = Place::new(&depot);
    place.machine.pull().unwrap();
    note(&place.machine.session(), "B", &format!("{WORD} {}", "long ".repeat(20_000)));
    place.machine.push().unwrap();
    let (memory, other, there) = pushed_to_another(&place.machine);
    first.pull().unwrap();
    note(&first.session(), "C", "there");
    first.push().unwrap();
    note(&place.machine.session(), "D", "here");
    place.purge().unwrap();
    place.machine.push().unwrap();
    assert_eq!(there.push().unwrap().rewritten, Some(RewriteReason::Purged));
    let text = cleaned(&memory, &other, "the other remote");
    assert!(text.contains("there") && text.contains("here"), "{text}");
    place.check("here");
}

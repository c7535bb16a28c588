//! What a pull reports about branches, pulls that may not join, and sessions that an agent began on
//! two machines.

use super::{Machine, command, shared};
use crate::bundle::law::{same, shared_contents};
use crate::bundle::{act, note};
use forge_store::ErrorKind;
use forge_store::model::{BranchMetadata, Kind};
use forge_store::store::remote::{Depot, MemoryDepot, Remote};
use forge_store::store::{MergeRequest, NewSession, Session, SplitReason, Store};
use std::sync::Arc;

/// Two machines that have the same session.
fn two() -> (Machine, Machine) {
    let (_, depot, first) = shared();
    let second = Machine::new(&depot);
    second.pull().unwrap();
    (first, second)
}

fn make_branch(machine: &Machine, name: &str) {
    let session = machine.session();
    session.create_branch(&act("branch"), name, None, BranchMetadata::default()).unwrap();
    session.switch_branch(&act("switch"), name, false).unwrap();
}

#[test]
fn a_branch_that_a_sync_renames_is_reported() {
    let (first, second) = two();
    make_branch(&first, "try");
    note(&first.session(), "B", "there");
    first.push().unwrap();
    make_branch(&second, "try");
    note(&second.session(), "C", "here");
    let pushed = second.push().unwrap();
    let [(before, now)] = pushed.joined.renamed_branches.as_slice() else { panic!("{pushed:?}") };
    assert_eq!(before, "try");
    assert!(now.starts_with("try."), "{now}");
    assert_eq!(second.session().summary().unwrap().branch, *now);
    // The branch keeps this name on all machines.
    note(&first.session(), "D", "there");
    first.push().unwrap();
    note(&second.session(), "E", "here");
    assert_eq!(second.pull().unwrap().joined.renamed_branches, []);
}

#[test]
fn only_an_active_branch_is_reported_as_checked_out_elsewhere() {
    let (first, second) = two();
    make_branch(&second, "x");
    note(&second.session(), "B", "on x");
    second.push().unwrap();
    assert_eq!(first.pull().unwrap().joined.checked_out_elsewhere.as_deref(), Some("x"));
    make_branch(&second, "y");
    note(&second.session(), "C", "on y");
    let merging = MergeRequest {
        source: "y".to_owned(),
        target: Some("main".to_owned()),
        ..MergeRequest::default()
    };
    second.session().merge(&act("merge"), &merging).unwrap();
    assert_eq!(second.session().summary().unwrap().branch, "y");
    second.push().unwrap();
    assert_eq!(first.pull().unwrap().joined.checked_out_elsewhere, None);
}

#[test]
fn a_pull_that_may_not_join_changes_nothing() {
    let (first, second) = two();
    let second = Machine { remote: second.remote.refusing_joins(), store: second.store };
    note(&first.session(), "B", "there");
    first.push().unwrap();
    assert_eq!(second.pull().unwrap().operations, 1);
    // Facts need no join.
    command(&second.session(), "here");
    note(&first.session(), "C", "there");
    first.push().unwrap();
    assert_eq!(second.pull().unwrap().operations, 1);
    note(&second.session(), "D", "here");
    assert_eq!(second.pull().unwrap().operations, 0, "the remote has nothing new");
    note(&first.session(), "E", "there");
    first.push().unwrap();
    let before = shared_contents(&second.store);
    let refused = second.pull().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("changed here and on the remote"), "{refused}");
    same(&shared_contents(&second.store), &before, "nothing was changed");
}

/// Begins the session of an agent, or returns the one that is there.
fn of_agent(store: &Store, name: &str) -> Session {
    let new = NewSession { agent_session: Some("agent-1".to_owned()), ..NewSession::named(name) };
    store.session_for_agent(&act("begin"), new).unwrap()
}

/// A machine that has pushed the session of an agent, and one where the agent has begun another
/// one.
fn begun_twice() -> (Machine, Machine) {
    let depot: Arc<dyn Depot> = Arc::new(MemoryDepot::default());
    Remote::create(Arc::clone(&depot), &super::SECRET).unwrap();
    let (first, second) = (Machine::new(&depot), Machine::new(&depot));
    of_agent(&first.store, "s");
    note(&first.session(), "N1", "there");
    command(&first.session(), "there");
    first.push().unwrap();
    command(&of_agent(&second.store, "begun"), "here");
    note(&of_agent(&second.store, "begun"), "N2", "here");
    (first, second)
}

fn commands(machine: &Machine) -> Vec<String> {
    let session = machine.session();
    let state = session.state(&session.head().unwrap()).unwrap();
    let facts = state.facts_of(Kind::Command).unwrap();
    let mut ids: Vec<_> = facts.iter().map(|known| known.fact.id.clone()).collect();
    ids.sort();
    ids
}

#[test]
fn a_session_that_an_agent_began_before_the_pull_becomes_part_of_the_pulled_one() {
    let (first, second) = begun_twice();
    let pulled = second.pull().unwrap();
    assert_eq!((pulled.session.as_str(), pulled.operations), ("s", 2));
    assert!(pulled.joined.split.is_empty(), "{pulled:?}");
    assert_eq!(second.store.sessions().unwrap().len(), 1);
    assert_eq!(of_agent(&second.store, "s").summary().unwrap().info.name, "s");
    assert_eq!(commands(&second), ["here", "there"]);
    assert_eq!(second.session().summary().unwrap().claims, 2);
    // The joined session is current, as the session before the pull was.
    assert!(second.session().summary().unwrap().current);
    note(&second.session(), "N3", "later");
    second.push().unwrap();
    first.pull().unwrap();
    assert_eq!(commands(&first), ["here", "there"]);
    assert_eq!(first.session().summary().unwrap().claims, 3);
    assert_eq!(first.push().unwrap().operations, 0);
    assert_eq!(second.pull().unwrap().operations, 0);
}

#[test]
fn a_claim_that_both_sides_created_under_one_id_goes_to_a_separate_branch() {
    let (_, second) = begun_twice();
    note(&of_agent(&second.store, "begun"), "N1", "here too");
    let pulled = second.pull().unwrap();
    let [split] = pulled.joined.split.as_slice() else { panic!("{pulled:?}") };
    assert_eq!(split.reason, SplitReason::Changed("note N1".to_owned()));
    assert_eq!(second.store.sessions().unwrap().len(), 1);
    assert_eq!(second.session().summary().unwrap().branch, split.own);
}

#[test]
fn a_session_that_was_pushed_stays_a_separate_session() {
    let (first, second) = begun_twice();
    let begun = of_agent(&second.store, "begun");
    second.store.push(&act("push"), &second.remote, &begun).unwrap();
    let handle = first.remote.handle(&first.session().summary().unwrap().info.id).unwrap();
    second.store.pull(&act("pull"), &second.remote, &handle, None).unwrap();
    assert_eq!(second.store.sessions().unwrap().len(), 2);
    assert_eq!(commands(&second), ["there"]);
}

#[test]
fn a_pull_that_may_not_join_leaves_what_the_agent_began() {
    let (_, second) = begun_twice();
    let second = Machine { remote: second.remote.refusing_joins(), store: second.store };
    assert_eq!(second.pull().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(second.store.sessions().unwrap().len(), 1);
    assert_eq!(second.store.sessions().unwrap()[0].info.name, "begun");
}

//! Branches, checkpoints that are made and tagged, undo and redo.

use crate::environment::Environment;
use insta::assert_snapshot;

fn project() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["hypothesis", "add", "one"]).success();
    environment
}

#[test]
fn branches_are_created_chosen_and_given_up() {
    let environment = project();
    let create = [
        "branch",
        "create",
        "try",
        "--hypothesis",
        "H1",
        "--approach",
        "bisect",
        "--success",
        "green",
    ];
    assert_snapshot!(environment.forge(create), @"");
    assert_snapshot!(environment.forge(["branch", "switch", "try"]), @"");
    assert_snapshot!(environment.forge(["branch", "switch", "try", "--json"]), @"");
    environment.forge(["note", "add", "here"]).success();
    assert_snapshot!(environment.forge(["branch", "list"]), @"");
    assert_snapshot!(environment.forge(["branch", "show"]), @"");
    assert_snapshot!(environment.forge(["branch", "show", "main", "--json"]), @"");
    assert_snapshot!(environment.forge(["branch", "switch", "main", "--json"]), @"");
    assert_snapshot!(environment.forge(["branch", "abandon", "try", "--reason", "too slow"]), @"");
    assert_snapshot!(environment.forge(["branch", "list"]), @"");
    assert_snapshot!(environment.forge(["branch", "list", "--all", "--json"]), @"");
}

#[test]
fn a_branch_begins_at_a_past_moment() {
    let environment = project();
    environment.forge(["note", "add", "two"]).success();
    let created = environment.forge(["branch", "create", "old", "--from", "#1", "--json"]).json();
    assert_eq!(created["base"]["revision"], 1);
    assert_eq!(created["schema"], "forge.branch.create/1");
}

#[test]
fn what_is_no_branch_is_refused() {
    let environment = project();
    assert_snapshot!(environment.forge(["branch", "create", "main"]), @"");
    assert_snapshot!(environment.forge(["branch", "create", "a b"]), @"");
    assert_snapshot!(environment.forge(["branch", "switch", "nothing"]), @"");
    assert_snapshot!(environment.forge(["branch", "show", "nothing", "--json"]), @"");
    assert_eq!(environment.forge(["branch", "abandon", "nothing"]).code, 3);
    assert_eq!(environment.forge(["branch", "create", "x", "--hypothesis", "H9"]).code, 3);
    assert_eq!(environment.forge(["branch", "create", "x", "--from", "#99"]).code, 3);
}

#[test]
fn checkpoints_are_made_tagged_and_scheduled() {
    let environment = project();
    let create = ["checkpoint", "create", "before the fix", "--tags", "fix,safe"];
    assert_snapshot!(environment.forge(create), @"");
    let past = ["checkpoint", "create", "then", "--at", "#1", "--json"];
    assert_snapshot!(environment.forge(past), @"");
    assert_snapshot!(environment.forge(["checkpoint", "tag", "fix", "--add", "x", "--remove", "safe"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "tag", "#2", "--add", "y", "--json"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "tag", "#1", "--add", "y"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "create", "x", "--tags", "two words"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "schedule"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "schedule", "--every", "2s"]), @"");
    let due = environment.forge(["note", "add", "later", "--json"]).json();
    assert_eq!(due["checkpoint"]["trigger"], "scheduled");
    assert_snapshot!(environment.forge(["checkpoint", "schedule", "--off", "--json"]), @"");
}

#[test]
fn the_last_operation_is_taken_back_and_done_again() {
    let environment = project();
    environment.forge(["hypothesis", "confirm", "H1"]).success();
    assert_snapshot!(environment.forge(["undo"]), @"");
    assert_snapshot!(environment.forge(["redo", "--json"]), @"");
    assert_snapshot!(environment.forge(["redo"]), @"");
    assert_eq!(environment.forge(["undo", "ffffffff"]).code, 3);
    assert_eq!(environment.forge(["undo", "--json"]).json()["schema"], "forge.undo/1");
}

//! Making a store, where it stands, its sessions and its upkeep.

use crate::environment::{Environment, mode};
use insta::assert_snapshot;

#[test]
fn a_store_is_made_once() {
    let environment = Environment::new();
    assert_snapshot!(environment.forge(["init"]), @"");
    assert_snapshot!(environment.forge(["init"]), @"");
    assert_eq!(mode(&environment.path("project/.forge")), 0o700);
    assert_eq!(environment.read("project/.forge/.gitignore"), "*\n");
    assert_snapshot!(environment.forge(["init", "--json", "--store", "../other", "--name", "one"]), @"");
    assert_snapshot!(environment.forge(["init", "sub"]), @"");
    assert!(environment.path("project/sub/.forge/FORMAT").exists());
}

#[test]
fn what_is_in_the_way_of_a_store_stays() {
    let environment = Environment::new();
    environment.write("project/.forge/mine", "text");
    assert_snapshot!(environment.forge(["init"]), @"");
    assert_eq!(environment.read("project/.forge/mine"), "text");
    environment.write("project/file", "text");
    let output = environment.forge(["init", "--store", "file"]);
    assert_ne!(output.code, 0, "{output}");
    assert_eq!(environment.read("project/file"), "text");
}

#[test]
fn status_says_where_things_stand() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    assert_snapshot!(environment.forge(["status"]), @"");
    assert_snapshot!(environment.forge(["status", "--json"]), @"");
    environment.forge(["note", "add", "x"]).success();
    environment.forge(["checkpoint", "create", "here", "--tags", "t"]).success();
    let text = environment.forge(["status"]).success();
    let without_size: Vec<&str> = text.lines().skip(1).collect();
    assert_snapshot!(without_size.join("\n"), @"");
    let mut json = environment.forge(["status", "--json"]).json();
    assert!(json["tail_bytes"].take().as_u64().is_some_and(|bytes| bytes > 0));
    assert_snapshot!(json, @"");
}

#[test]
fn sessions_are_begun_listed_and_chosen() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    assert_snapshot!(environment.forge(["session", "list"]), @"");
    assert_snapshot!(environment.forge(["session", "show"]), @"");
    assert_snapshot!(environment.forge(["session", "new", "slow build", "--agent", "me"]), @"");
    assert_snapshot!(environment.forge(["session", "new", "second", "--json"]), @"");
    environment.forge(["note", "add", "x", "--session", "slow build"]).success();
    assert_snapshot!(environment.forge(["session", "list"]), @"");
    assert_snapshot!(environment.forge(["session", "use", "second"]), @"");
    environment.forge(["note", "add", "y", "--session", "slow build"]).success();
    assert_snapshot!(environment.forge(["session", "show"]), @"");
    assert_snapshot!(environment.forge(["session", "show", "slow build", "--json"]), @"");
    assert_snapshot!(environment.forge(["session", "list", "--limit", "1", "--json"]), @"");
    assert_snapshot!(environment.forge(["session", "new", "third"]), @"");
    assert!(environment.forge(["status"]).success().contains("Session third"));
    assert_snapshot!(environment.forge(["session", "new", "third"]), @"");
    assert_snapshot!(environment.forge(["session", "use", "nothing"]), @"");
    assert_snapshot!(environment.forge(["note", "add", "x", "--session", "nothing"]), @"");
    let named = Environment::new().with("FORGE_SESSION", "mine");
    named.forge(["init", "--name", "mine"]).success();
    named.forge(["session", "new", "other"]).success();
    assert_eq!(named.forge(["note", "add", "x", "--json"]).json()["session"], "mine");
}

#[test]
fn the_settings_schedule_holds_for_new_sessions() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["config", "set", "schedule.every", "10m"]).success();
    environment.forge(["note", "add", "x"]).success();
    let schedule = environment.forge(["checkpoint", "schedule", "--json"]).json();
    assert_eq!(schedule["every_seconds"], 600);
}

#[test]
fn maintain_brings_the_index_up_to_date_and_nothing_changes() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["note", "add", "x".repeat(5000).as_str()]).success();
    let report = environment.forge(["maintain", "--json"]).json();
    assert_eq!(report["schema"], "forge.maintain/1");
    assert_eq!(report["applied"], true);
    assert!(report["tail_bytes"].as_u64() < report["tail_bytes_before"].as_u64());
    assert!(environment.forge(["maintain"]).success().starts_with("Brought the index up to date"));
    let status = environment.forge(["status", "--json"]).json();
    assert_eq!((&status["head"], &status["summary"]["claims"]), (&1.into(), &1.into()));
    assert_eq!(environment.forge(["note", "add", "y", "--json"]).json()["id"], "N2");
}

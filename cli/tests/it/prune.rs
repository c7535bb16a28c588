//! `forge checkpoint prune`: what it says, what it takes to take it back, and when the bytes go.

use crate::environment::{Environment, Output};
use serde_json::json;

#[test]
fn the_page_on_pruning_holds() {
    crate::page::holds("prune.md");
}

/// Five notes, a checkpoint in the middle and one at the end.
fn told() -> Environment {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    for (place, note) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        environment.forge(["note", "add", note]).success();
        if place % 2 == 0 {
            environment.forge(["checkpoint", "create", note]).success();
        }
    }
    environment
}

const BARE: [&str; 6] =
    ["checkpoint", "prune", "--drop-manual", "--keep-last=1", "--keep-revisions=0s", "--json"];

fn bare(environment: &Environment, more: &[&str]) -> Output {
    environment.finished(&mut environment.command(BARE.iter().chain(more)))
}

#[test]
fn a_look_changes_nothing_and_gives_every_reason() {
    let environment = told();
    let log = environment.forge(["log", "--json"]).stdout;
    let looked = bare(&environment, &["--dry-run"]).json();
    let session = &looked["sessions"][0];
    assert_eq!(session["dropped"].as_array().unwrap().len(), 2);
    assert_eq!(session["kept"][0]["kept_by"], json!(["newest", "last"]));
    assert_eq!((&session["folded"], &session["operation"]), (&json!(4), &json!(null)));
    assert_eq!(looked["freed"], json!(null));
    assert_eq!(environment.forge(["log", "--json"]).stdout, log);
    // By the rules that hold without any, all of it stays: it is young, and was asked for.
    let kept = environment.forge(["checkpoint", "prune", "--json"]).json();
    assert_eq!(kept["sessions"][0]["operation"], json!(null));
}

#[test]
fn a_time_inside_a_fold_says_so() {
    let environment = told();
    environment.forge(BARE).success();
    let state = environment.forge(["checkpoint", "at", "2026-02-01T12:00:04Z", "--json"]).json();
    assert_eq!(state["revision"], json!(null));
    let into = state["folded"]["into"].as_u64().unwrap();
    let human = environment.forge(["checkpoint", "at", "2026-02-01T12:00:04Z"]).stdout;
    assert!(human.contains(&format!("were folded into #{into}")), "{human}");
    let head = environment.forge(["checkpoint", "at", "HEAD", "--json"]).json();
    assert_eq!(head["state"]["notes"].as_array().unwrap().len(), 5);
    let folded = environment.forge(["checkpoint", "at", "#1"]);
    assert_eq!(folded.code, 3);
    assert!(folded.stderr.contains(&format!("name '#{into}'")), "{folded}");
}

#[test]
fn what_cannot_be_taken_back_wants_a_yes_and_is_gone() {
    let environment = told();
    let refused = bare(&environment, &["--now"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert_eq!(bare(&environment, &["--dry-run"]).json()["sessions"][0]["folded"], 4);
    let pruned = bare(&environment, &["--now", "--yes"]).json();
    assert_eq!(pruned["freed"]["prunings"], 1);
    let undo = environment.forge(["undo"]);
    assert!(undo.stdout.contains("checkpoint create"), "not what is gone for good: {undo}");
}

#[test]
fn maintaining_drops_what_is_older_than_the_time_to_take_it_back() {
    let environment = told();
    environment.forge(BARE).success();
    assert_eq!(environment.forge(["maintain", "--json"]).json()["swept"], 0);
    let later = environment.with("FORGE_TEST_NOW", "2026-02-16T12:00:00Z");
    assert_eq!(later.forge(["maintain", "--json"]).json()["swept"], 1);
    assert_eq!(later.forge(["maintain", "--json"]).json()["swept"], 0);
}

#[test]
fn maintaining_prunes_by_itself_where_the_settings_say_so() {
    let environment = told();
    let later = environment.with("FORGE_TEST_NOW", "2026-02-16T12:00:00Z");
    let revisions = || {
        let log = later.forge(["log", "--json"]).json();
        log["entries"].as_array().unwrap().len()
    };
    let before = revisions();
    later.forge(["maintain"]).success();
    assert_eq!(revisions(), before, "nobody asked");
    later.forge(["config", "set", "prune.automatic", "true"]).success();
    later.forge(["maintain"]).success();
    // Manual checkpoints stay, and so do their revisions: two of five fold.
    assert_eq!(revisions(), before - 2);
    let undo = later.forge(["undo"]);
    assert!(undo.stdout.contains("checkpoint create"), "a verb of one's own comes first: {undo}");
}

//! Hypotheses, evidence, beliefs, gaps and notes: what is written and what is told of it.

use crate::environment::Environment;
use insta::assert_snapshot;

fn project() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment
}

#[test]
fn the_first_write_begins_a_session_named_after_the_project() {
    let environment = project();
    assert_snapshot!(environment.forge(["hypothesis", "add", "the cache is stale"]), @"");
    let second =
        ["hypothesis", "add", "the clock is wrong", "--confidence", "0.3", "--tags", "a,b"];
    assert_snapshot!(environment.forge(second), @"");
    let part =
        ["hypothesis", "add", "the zone is", "--parent", "H2", "--source", "log:7", "--json"];
    assert_snapshot!(environment.forge(part), @"");
    let chosen = ["hypothesis", "add", "x", "--id", "disk", "--status", "under_test"];
    assert_snapshot!(environment.forge(chosen), @"");
}

#[test]
fn a_hypothesis_is_updated_and_an_equal_update_changes_nothing() {
    let environment = project();
    environment.forge(["hypothesis", "add", "one", "--tags", "a,b"]).success();
    let update = ["hypothesis", "update", "H1", "--add-tags", "c", "--remove-tags", "a", "--json"];
    assert_snapshot!(environment.forge(update), @"");
    assert_snapshot!(environment.forge(update), @"");
    assert_snapshot!(environment.forge(["hypothesis", "update", "H1", "--status", "archived"]), @"");
    assert_snapshot!(environment.forge(["hypothesis", "update", "H1", "--status", "archived"]), @"");
    environment.forge(["hypothesis", "add", "two", "--parent", "H1"]).success();
    assert_snapshot!(environment.forge(["hypothesis", "update", "H1", "--parent", "H2"]), @"");
}

#[test]
fn rejecting_tells_what_follows() {
    let environment = project();
    environment.forge(["hypothesis", "add", "one"]).success();
    environment.forge(["hypothesis", "add", "two", "--parent", "H1"]).success();
    environment.forge(["belief", "add", "so it is", "--hypothesis", "H2"]).success();
    environment.forge(["belief", "add", "and this", "--on", "B1"]).success();
    assert_snapshot!(environment.forge(["hypothesis", "reject", "H1", "--reason", "no"]), @"");
    assert_snapshot!(environment.forge(["hypothesis", "reject", "H1", "--reason", "no"]), @"");
    assert_snapshot!(environment.forge(["hypothesis", "confirm", "H2", "--json"]), @"");
}

#[test]
fn evidence_moves_confidence() {
    let environment = project();
    environment
        .forge(["hypothesis", "add", "one", "--id", "cache", "--confidence", "0.5"])
        .success();
    let for_it =
        ["evidence", "add", "seen", "--hypothesis", "ca", "--strength", "1", "--kind", "log"];
    assert_snapshot!(environment.forge(for_it), @"");
    let against = ["evidence", "add", "no", "--hypothesis", "cache", "--strength", "-1", "--json"];
    assert_snapshot!(environment.forge(against), @"");
    environment.forge(["hypothesis", "confirm", "cache"]).success();
    let late = ["evidence", "add", "but", "--hypothesis", "cache", "--strength", "-0.5"];
    assert_snapshot!(environment.forge(late), @"");
}

#[test]
fn beliefs_rest_on_others_and_contradict_them() {
    let environment = project();
    for text in ["a", "b", "c"] {
        environment.forge(["belief", "add", text]).success();
    }
    let depend = ["belief", "depend", "B1", "B2", "--strength", "0.5"];
    assert_snapshot!(environment.forge(depend), @"");
    assert_snapshot!(environment.forge(depend), @"");
    environment.forge(["belief", "depend", "B2", "B3"]).success();
    assert_snapshot!(environment.forge(["belief", "depend", "B3", "B1"]), @"");
    let json = ["belief", "depend", "B3", "B1", "--type", "supports", "--json"];
    assert_eq!(environment.forge(json).json()["schema"], "forge.belief.depend/1");
    assert_snapshot!(environment.forge(["belief", "contradict", "B1", "B2", "--reason", "x"]), @"");
    assert_snapshot!(environment.forge(["belief", "contradict", "B1", "B1"]), @"");
    let update = ["belief", "update", "B3", "--confidence", "1", "--json"];
    assert_snapshot!(environment.forge(update), @"");
}

#[test]
fn gaps_are_named_and_filled() {
    let environment = project();
    environment.forge(["hypothesis", "add", "one"]).success();
    let add = ["gap", "add", "which", "--blocking", "H1", "--criticality", "high", "--json"];
    assert_snapshot!(environment.forge(add), @"");
    let update = ["gap", "update", "G1", "--status", "filling", "--blocking", "all"];
    assert_snapshot!(environment.forge(update), @"");
    assert_snapshot!(environment.forge(["gap", "fill", "G1", "that one"]), @"");
    assert_snapshot!(environment.forge(["gap", "fill", "G1", "that one"]), @"");
}

#[test]
fn notes_are_written_down() {
    let environment = project();
    let note = ["note", "add", "look\u{1b}[2J here", "--source", "me", "--json"];
    assert_snapshot!(environment.forge(note), @"");
    assert_snapshot!(environment.forge(["note", "add", "and there"]), @"");
}

#[test]
fn two_branches_do_not_use_one_id() {
    let environment = project();
    environment.forge(["note", "add", "one"]).success();
    environment.forge(["branch", "create", "other"]).success();
    environment.forge(["note", "add", "two"]).success();
    environment.forge(["branch", "switch", "other"]).success();
    let added = environment.forge(["note", "add", "three", "--json"]).json();
    assert_eq!(added["id"], "N3");
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let environment = project();
    environment.forge(["hypothesis", "add", "one"]).success();
    environment.forge(["hypothesis", "add", "two", "--id", "H1x"]).success();
    assert_snapshot!(environment.forge(["hypothesis", "add", "again", "--id", "H1"]), @"");
    assert_snapshot!(environment.forge(["hypothesis", "add", "x", "--parent", "H9"]), @"");
    assert_snapshot!(environment.forge(["hypothesis", "confirm", "h1", "--json"]), @"");
    let evidence = ["evidence", "add", "x", "--hypothesis", "nothing", "--strength", "1"];
    assert_snapshot!(environment.forge(evidence), @"");
    assert_snapshot!(environment.forge(["gap", "fill", "G1", "x"]), @"");
    for wrong in [
        ["hypothesis", "add", "x", "--confidence", "1.7"],
        ["hypothesis", "add", "x", "--confidence", "NaN"],
        ["hypothesis", "add", "x", "--status", "maybe"],
        ["hypothesis", "add", "x", "--id", "a\u{1b}b"],
        ["hypothesis", "add", "x", "--id", " a"],
        ["gap", "add", "x", "--criticality", "huge"],
        ["belief", "add", "x", "--confidence", "-0.1"],
    ] {
        assert_eq!(environment.forge(wrong).code, 2, "{wrong:?}");
    }
    let status = environment.forge(["status", "--json"]).json();
    assert_eq!(status["head"], 2);
}

#[test]
fn an_unknown_reference_begins_no_session() {
    let environment = project();
    let evidence = ["evidence", "add", "x", "--hypothesis", "H1", "--strength", "1"];
    assert_eq!(environment.forge(evidence).code, 3);
    assert_eq!(environment.forge(["hypothesis", "add", "x", "--parent", "H1"]).code, 3);
    assert_eq!(environment.forge(["gap", "add", "x", "--blocking", "H1"]).code, 3);
    assert_eq!(environment.forge(["belief", "add", "x", "--on", "B1"]).code, 3);
    assert_eq!(environment.forge(["status", "--json"]).json()["sessions"], 0);
}

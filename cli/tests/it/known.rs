//! Lists and shows of every kind, the brief, the log, blame and why.

use crate::environment::Environment;
use crate::story::told;
use insta::assert_snapshot;

#[test]
fn claims_and_facts_are_listed() {
    let environment = told();
    assert_snapshot!(environment.forge(["hypothesis", "list"]), @"");
    assert_snapshot!(environment.forge(["gap", "list"]), @"");
    assert_snapshot!(environment.forge(["gap", "list", "--limit", "1", "--json"]), @"");
    assert_snapshot!(environment.forge(["verification", "list"]), @"");
    assert_snapshot!(environment.forge(["task", "list"]), @"");
    let lists = [
        ("hypothesis", "hypotheses"),
        ("evidence", "evidence"),
        ("belief", "beliefs"),
        ("gap", "gaps"),
        ("note", "notes"),
        ("verification", "verifications"),
        ("command", "commands"),
        ("code", "code"),
        ("message", "messages"),
        ("prompt", "prompts"),
        ("task", "tasks"),
        ("measurement", "measurements"),
        ("agent", "agents"),
        ("inference", "inferences"),
    ];
    for (kind, plural) in lists {
        let document = environment.forge([kind, "list", "--json"]).json();
        assert_eq!(document["schema"], format!("forge.{kind}.list/1"));
        assert!(document[plural].is_array(), "{document}");
    }
}

#[test]
fn lists_are_narrowed() {
    let environment = told();
    let count = |args: &[&str]| {
        let mut command = environment.command(args.iter().chain(&["--json"]));
        let document = environment.finished(&mut command).json();
        document.as_object().unwrap().values().find_map(|v| v.as_array()).unwrap().len()
    };
    assert_eq!(count(&["hypothesis", "list", "--status", "rejected"]), 0);
    assert_eq!(count(&["hypothesis", "list", "--status", "rejected", "--branch", "alt"]), 1);
    assert_eq!(count(&["hypothesis", "list", "--tag", "x"]), 0);
    assert_eq!(count(&["evidence", "list", "--hypothesis", "H1"]), 1);
    assert_eq!(count(&["belief", "list", "--at", "#3"]), 1);
    assert_eq!(count(&["verification", "list", "--status", "failed"]), 1);
    assert_eq!(count(&["verification", "list", "--at", "baseline"]), 0);
    assert_eq!(count(&["verification", "list", "--since", "2026-02-01T12:10:00Z"]), 0);
    assert_eq!(count(&["verification", "list", "--until", "now"]), 1);
}

#[test]
fn one_is_shown_with_all_its_fields() {
    let environment = told();
    assert_snapshot!(environment.forge(["hypothesis", "show", "H1"]), @"");
    assert_snapshot!(environment.forge(["gap", "show", "G1", "--json"]), @"");
    assert_snapshot!(environment.forge(["note", "show", "N"]), @"");
    assert_snapshot!(environment.forge(["gap", "show", "G"]), @"");
    assert_snapshot!(environment.forge(["belief", "show", "B7"]), @"");
    assert_eq!(environment.forge(["belief", "show", "B2", "--at", "#1"]).code, 3);
}

#[test]
fn the_brief_is_never_empty_and_keeps_to_its_budget() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    assert_snapshot!(environment.forge(["brief"]), @"");
    let environment = told();
    assert_snapshot!(environment.forge(["brief"]), @"");
    assert_snapshot!(environment.forge(["brief", "--at", "alt"]), @"");
    assert_snapshot!(environment.forge(["brief", "--budget", "400"]), @"");
    let document = environment.forge(["brief", "--json"]).json();
    assert_eq!(document["schema"], "forge.brief/1");
    assert_eq!(document["gaps"][0]["criticality"], "critical");
}

#[test]
fn the_log_tells_of_each_change() {
    let environment = told();
    assert_snapshot!(environment.forge(["log", "--limit", "4"]), @"");
    assert_snapshot!(environment.forge(["log", "H1", "--branch", "alt"]), @"");
    assert_snapshot!(environment.forge(["log", "--operations", "--limit", "2"]), @"");
    let document = environment.forge(["log", "--all", "--json"]).json();
    let entries = document["entries"].as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["branch"] == "alt"));
    assert_eq!(entries.last().unwrap()["changes"][0]["change"], "added");
    let until = environment.forge(["log", "--until", "#2", "--json"]).json();
    assert_eq!(until["entries"].as_array().unwrap().len(), 2);
    assert_eq!(environment.forge(["log", "v1"]).code, 2);
}

#[test]
fn blame_names_the_change_behind_each_field() {
    let environment = told();
    assert_snapshot!(environment.forge(["blame", "H1", "--at", "alt"]), @"");
    let document = environment.forge(["blame", "hypothesis:H1", "--json"]).json();
    assert_snapshot!(document["fields"][0], @"");
    assert_snapshot!(environment.forge(["blame", "v1"]), @"");
    assert_snapshot!(environment.forge(["blame", "X1"]), @"");
    assert_snapshot!(environment.forge(["blame", "B"]), @"");
}

#[test]
fn why_says_what_it_rests_on_and_what_rests_on_it() {
    let environment = told();
    assert_snapshot!(environment.forge(["why", "H1", "--at", "alt"]), @"");
    assert_snapshot!(environment.forge(["belief", "why", "B2"]), @"");
    let document = environment.forge(["why", "B2", "--at", "alt", "--json"]).json();
    assert_eq!(document["schema"], "forge.why/1");
    assert_eq!(document["rests_on"][0]["id"], "B1");
    assert_eq!(document["rests_on"][1]["id"], "H1");
    assert_eq!(document["rests_on"][1]["distance"], 2);
    assert!(document["doubt"].as_str().unwrap().contains("H1 was rejected"));
}

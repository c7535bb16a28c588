//! Lists of checkpoints, the timeline, comparisons and going back.

use crate::environment::Environment;
use crate::story::told;
use insta::assert_snapshot;

#[test]
fn checkpoints_are_listed_newest_first() {
    let environment = told();
    assert_snapshot!(environment.forge(["checkpoint", "list"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "list", "--tag", "kept", "--json"]), @"");
    let count = |args: &[&str]| {
        let words = ["checkpoint", "list", "--json"];
        let mut command = environment.command(words.iter().chain(args));
        environment.finished(&mut command).json()["checkpoints"].as_array().unwrap().len()
    };
    let all = count(&[]);
    assert_eq!(count(&["--limit", "2"]), 2);
    assert_eq!(count(&["--since", "baseline"]), all);
    assert_eq!(count(&["--until", "baseline"]), 1);
    assert_eq!(count(&["--since", "2026-02-01T12:30:00Z"]), 0);
    assert_eq!(count(&["--until", "2020-01-01"]), 0);
    environment.forge(["session", "new", "other"]).success();
    environment.forge(["checkpoint", "create", "elsewhere"]).success();
    assert_eq!((count(&[]), count(&["--all"])), (1, all + 1));
    let list = environment.forge(["checkpoint", "list", "--all", "--limit", "1", "--json"]).json();
    assert_eq!(list["checkpoints"][0]["session"], "other");
}

#[test]
fn no_checkpoints_is_said() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    assert_snapshot!(environment.forge(["checkpoint", "list"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "timeline"]), @"");
}

#[test]
fn the_timeline_draws_branches_as_lanes() {
    let environment = told();
    assert_snapshot!(environment.forge(["checkpoint", "timeline"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "timeline", "--all", "--limit", "3"]), @"");
    let document = environment.forge(["checkpoint", "timeline", "--json"]).json();
    assert_eq!(document["branches"][1]["base"], "main");
    assert_eq!(document["entries"][0]["type"], "revision");
}

#[test]
fn two_moments_are_compared() {
    let environment = told();
    assert_snapshot!(environment.forge(["checkpoint", "diff", "baseline", "alt"]), @"");
    assert_snapshot!(environment.forge(["checkpoint", "diff", "alt", "main"]), @"");
    let back = environment.forge(["checkpoint", "diff", "HEAD", "#1", "--json"]).json();
    let mut keys: Vec<_> = back.as_object().unwrap().keys().collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        ["changes", "from", "schema", "session", "summary", "time_delta_seconds", "to"]
    );
    assert_eq!(back["time_delta_seconds"], -12.0);
    let fact = back["changes"].as_array().unwrap().iter().find(|one| one["id"] == "v1").unwrap();
    assert_eq!((&fact["kind"], &fact["change"]), (&"verification".into(), &"removed".into()));
    let only = ["checkpoint", "diff", "baseline", "alt", "--kind", "hypothesis", "--json"];
    assert_snapshot!(environment.forge(only).json()["changes"], @"");
}

#[test]
fn differences_can_be_an_exit_code() {
    let environment = told();
    let code = |from, to| environment.forge(["checkpoint", "diff", from, to, "--exit-code"]).code;
    assert_eq!((code("baseline", "HEAD"), code("HEAD", "HEAD")), (1, 0));
    assert_eq!(environment.forge(["checkpoint", "diff", "baseline"]).code, 0);
}

#[test]
fn a_long_text_is_compared_line_by_line() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    let text = "first line\nsecond line\nthird line";
    environment.forge(["hypothesis", "add", text, "--id", "H"]).success();
    let text = text.replace("second", "changed");
    environment.forge(["hypothesis", "update", "H", "--description", &text]).success();
    assert_snapshot!(environment.forge(["checkpoint", "diff", "HEAD~1"]), @"");
}

#[test]
fn going_back_is_a_new_revision_and_facts_stay() {
    let environment = told();
    let list =
        |environment: &Environment| environment.forge(["hypothesis", "list", "--json"]).json();
    let before = list(&environment)["hypotheses"].clone();
    assert_snapshot!(environment.forge(["checkpoint", "restore", "#1", "--dry-run"]), @"");
    assert_eq!(list(&environment)["hypotheses"], before, "a dry run changes nothing");
    assert_snapshot!(environment.forge(["checkpoint", "restore", "alt"]), @"");
    let document = environment.forge(["checkpoint", "restore", "baseline", "--json"]).json();
    assert_eq!(document["message"], "before the split");
    assert_eq!(document["recovery_complete"], true);
    assert_eq!(document["facts_since"], 1);
    assert_eq!(document["claims_restored"], 7);
    assert!(document["restored_to"].is_string() && document["timestamp"].is_string());
    let again = environment.forge(["checkpoint", "restore", "baseline", "--json"]).json();
    assert!(again["revision"].is_null(), "nothing to do");
    assert_eq!(list(&environment)["hypotheses"], before);
}

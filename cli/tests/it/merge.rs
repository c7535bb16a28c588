//! Merging branches.

use crate::environment::{Environment, Output};
use insta::assert_snapshot;

#[test]
fn examples_of_the_page_work() {
    crate::page::holds("merge.md");
}

fn run(environment: &Environment, args: &[&str]) -> Output {
    environment.finished(&mut environment.command(args))
}

/// Two branches: both changed the description of H1, and only `try` changed its confidence and has
/// evidence.
fn diverged_branches() -> Environment {
    let environment = Environment::new();
    for command in [
        &["init"][..],
        &["hypothesis", "add", "one"],
        &["hypothesis", "add", "two"],
        &["branch", "create", "try"],
        &["hypothesis", "update", "H1", "--description", "one of ours"],
        &["branch", "switch", "try"],
        &["hypothesis", "update", "H1", "--description", "one of theirs", "--confidence", "0.9"],
        &["evidence", "add", "seen", "--hypothesis", "H2", "--strength", "0.5"],
        &["branch", "switch", "main"],
    ] {
        run(&environment, command).success();
    }
    environment
}

#[test]
fn a_conflict_changes_nothing_and_names_what_settles_it() {
    let environment = diverged_branches();
    let before = environment.forge(["log", "--json"]).json();
    assert_snapshot!(environment.forge(["branch", "merge", "try"]), @r"
    Did not merge try into main: both changed one thing differently (session project)
      hypothesis H1 description
        before  one
        ours    one of ours
        theirs  one of theirs

    Nothing was changed. Settle each, or the rest by '--ours' or '--theirs':
      forge branch merge try --resolve hypothesis/H1.description=ours
    with '=ours', '=theirs' or, of a field, '=VALUE'
    [exit 1]
    ");
    assert_snapshot!(environment.forge(["branch", "merge", "try", "--dry-run", "--json"]), @r#"
    {"schema":"forge.branch.merge/1","session":"project","source":"try","target":"main","result":"conflicts","dry_run":true,"bases":[2],"operation":null,"revision":null,"checkpoint":null,"conflicts":[{"name":"hypothesis/H1.description","kind":"hypothesis","id":"H1","field":"description","base":"one","ours":"one of ours","theirs":"one of theirs","needed_by":[],"settled":null}],"changes":[{"kind":"hypothesis","id":"H1","change":"confidence_changed","field":"confidence","old":null,"new":0.9},{"kind":"hypothesis","id":"H2","change":"confidence_changed","field":"confidence","old":null,"new":0.75},{"kind":"evidence","id":"E1","change":"added","new":{"description":"seen","hypothesis":"H2","strength":0.5}}],"summary":"confidence of H1 none → 0.90, confidence of H2 none → 0.75, 1 piece of evidence added"}
    [exit 1]
    "#);
    assert_eq!(environment.forge(["log", "--json"]).json(), before);
    let settle = ["branch", "merge", "try", "--resolve", "hypothesis/H1.description=\"ours\""];
    let merged = run(&environment, &[&settle[..], &["--json"]].concat()).json();
    assert_eq!(merged["conflicts"][0]["settled"], "value");
    let shown = environment.forge(["hypothesis", "show", "H1", "--json"]).json();
    assert_eq!(shown["hypothesis"]["description"], "ours");
    assert_eq!(shown["hypothesis"]["confidence"], 0.9);
    // The merge was undone completely: its claims, its checkpoint and the status of the branch.
    environment.forge(["undo"]).success();
    let again = environment.forge(["branch", "merge", "try", "--theirs", "--json"]).json();
    assert_eq!(again["result"], "merged");
    assert_eq!(again["conflicts"][0]["settled"], "theirs");
    assert_eq!(again["checkpoint"]["tags"], serde_json::json!(["auto", "branch_merged"]));
    environment.forge(["undo"]).success();
    let listed = environment.forge(["branch", "list", "--json"]).json();
    assert_eq!(listed["branches"][1]["status"], "active");
}

#[test]
fn resolving_an_unknown_conflict_is_refused() {
    let environment = diverged_branches();
    let merge =
        |more: &[&str]| run(&environment, &[&["branch", "merge", "try"][..], more].concat());
    assert_snapshot!(merge(&["--resolve", "hypothesis/H1.status=ours"]), @r"
    [stderr]
    error: 'hypothesis/H1.status=ours' names no conflict
    hint: in conflict: hypothesis/H1.description
    [exit 2]
    ");
    assert_eq!(merge(&["--resolve", "H1=ours"]).code, 2);
    assert_eq!(merge(&["--resolve", "hypothesis/H1.description"]).code, 2);
    let twice = "hypothesis/H1.description=ours";
    assert_eq!(merge(&["--resolve", twice, "--resolve", twice]).code, 2);
    assert_eq!(merge(&["--resolve", "hypothesis/H1.description=5", "--ours", "--theirs"]).code, 2);
    assert_eq!(environment.forge(["branch", "merge", "main"]).code, 2);
    assert_snapshot!(environment.forge(["branch", "merge", "nothing"]), @r"
    [stderr]
    error: there is no branch 'nothing'
    hint: the branches are main, try
    [exit 3]
    ");
    assert_eq!(environment.forge(["branch", "merge", "try", "--into", "nothing"]).code, 3);
    // An invalid value is refused as everywhere, and nothing is written.
    let environment = Environment::new();
    for command in [
        &["init"][..],
        &["hypothesis", "add", "one"],
        &["branch", "create", "try"],
        &["hypothesis", "update", "H1", "--confidence", "0.2"],
        &["branch", "switch", "try"],
        &["hypothesis", "update", "H1", "--confidence", "0.3"],
    ] {
        run(&environment, command).success();
    }
    let wrong = ["branch", "merge", "main", "--resolve", "hypothesis/H1.confidence=7"];
    assert_snapshot!(environment.forge(wrong), @r"
    [stderr]
    error: hypothesis 'H1': field 'confidence' of hypothesis is 7: use a number from 0 to 1
    [exit 2]
    ");
    // A percentage was refused, which '--confidence' takes.
    let settled = ["branch", "merge", "main", "--resolve", "hypothesis/H1.confidence=25%"];
    environment.forge(settled).success();
    let list = environment.forge(["hypothesis", "list", "--json"]).json();
    assert_eq!(list["hypotheses"][0]["confidence"], 0.25);
}

/// Regression: the command that a merge suggested after the first resolution was refused.
#[test]
fn a_conflict_that_a_resolution_causes_is_settled_in_the_same_command() {
    let environment = Environment::new();
    for command in [
        &["init"][..],
        &["hypothesis", "add", "one"],
        &["hypothesis", "add", "two"],
        &["hypothesis", "add", "three"],
        &["branch", "create", "try"],
        // H3 is removed on `main`. On `try` it is the parent of H1, so that the merge needs it.
        &["checkpoint", "restore", "#2"],
        &["hypothesis", "update", "H1", "--parent", "H2"],
        &["branch", "switch", "try"],
        &["hypothesis", "update", "H1", "--parent", "H3"],
        &["branch", "switch", "main"],
    ] {
        run(&environment, command).success();
    }
    let merge = |more: &[&str]| {
        let begin = ["branch", "merge", "try", "--resolve", "hypothesis/H1.parent=theirs"];
        run(&environment, &[&begin[..], more].concat())
    };
    let refused = merge(&[]);
    assert_eq!(refused.code, 1, "{refused}");
    assert!(refused.stdout.contains("--resolve hypothesis/H3=ours"), "{refused}");
    for (side, parent) in [("hypothesis/H3=ours", "H2"), ("hypothesis/H3=theirs", "H3")] {
        merge(&["--resolve", side]).success();
        let shown = environment.forge(["hypothesis", "show", "H1", "--json"]).json();
        assert_eq!(shown["hypothesis"]["parent"], parent, "{side}");
        environment.forge(["undo"]).success();
    }
    let unknown = merge(&["--resolve", "hypothesis/H4=ours"]);
    assert!(
        unknown.stderr.contains("in conflict: hypothesis/H1.parent, hypothesis/H3"),
        "{unknown}"
    );
}

#[test]
fn a_branch_is_merged_into_another_than_the_current_one() {
    let environment = diverged_branches();
    environment.forge(["branch", "switch", "try"]).success();
    let merged = environment.forge(["branch", "merge", "try", "--into", "main", "--theirs"]);
    assert_snapshot!(merged, @r"
    Merged try into main (session project, #9)
      checkpoint <id4> #10 merged try into main [auto, branch_merged]
      hypothesis/H1.description settled by theirs
    confidence of H1 none → 0.90, confidence of H2 none → 0.75, 1 piece of evidence added

    Hypotheses
      ~ H1 confidence: none → 0.90
      ~ H1 description: one of ours → one of theirs
      ~ H2 confidence: none → 0.75

    Evidence
      + E1 seen

    'forge undo' reverts this.
    try is still checked out: 'forge branch switch main'
    ");
    assert_snapshot!(environment.forge(["log", "--branch", "main", "--limit", "2"]), @r"
    #10 2026-02-01 13:00:10 +01:00 (1 s ago) checkpoint merged try into main [auto,branch_merged] branc…
    #9 2026-02-01 13:00:10 +01:00 (1 s ago) branch merge of #6 on main
      ~ H1 confidence: none → 0.90
      ~ H1 description: one of ours → one of theirs
      ~ H2 confidence: none → 0.75
      + E1 seen
    ");
    assert_snapshot!(environment.forge(["checkpoint", "timeline"]), @r"
    ── Sun 1 Feb ──
    ◆  #10 13:00 (main) merged try into main
    ●  #9 13:00 merged #6  confidence of H1 none → 0.90, confidence of H2 none → 0.75, 1 piece of evide…
    │ ◆  #8 13:00 (try*, merged) switched from main to try
    ◆ │  #7 13:00 switched from try to main
    │ ●  #6 13:00 H2 0.50 → 0.75  seen
    │ │  … 1 revision
    │ ◆  #4 13:00 switched from main to try
    │ │  … 1 revision
    ├─╯
    ●    #2 13:00 H2 new  two
     … 1 revision
    ");
    let log = environment.forge(["log", "--branch", "main", "--json"]).json();
    assert_eq!(log["entries"][1]["merged"], 6);
}

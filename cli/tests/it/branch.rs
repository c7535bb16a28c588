//! Branches, checkpoints and tags, undo and redo.

use crate::environment::Environment;
use insta::assert_snapshot;

fn project() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["hypothesis", "add", "one"]).success();
    environment
}

#[test]
fn branches_are_created_switched_and_abandoned() {
    let environment = project();
    let create = [
        "branch", "create", "try", "--hypothesis", "H1", "--approach", "bisect", "--success",
        "green",
    ];
    assert_snapshot!(environment.forge(create), @r"
    Created branch try (session project)
      from main #1; switch to it with
      forge branch switch try
    ");
    assert_snapshot!(environment.forge(["branch", "switch", "try"]), @r"
    Switched from main to try (session project, #1)
      checkpoint <id1> #2 switched from main to try [auto]
    ");
    assert_snapshot!(environment.forge(["branch", "switch", "try", "--json"]), @r#"{"schema":"forge.branch.switch/1","session":"project","branch":"try","name":"try","current":true,"status":"active","revision":1,"base":{"branch":"main","revision":1},"created_at":"2026-02-01T12:00:02Z","hypothesis":"H1","approach":"bisect","success_criteria":["green"],"results":[],"left":null,"checkpoint":null}"#);
    environment.forge(["note", "add", "here"]).success();
    assert_snapshot!(environment.forge(["branch", "list"]), @r"
       Branch  Head  From     Status  Approach
       main    #1    -        active
    *  try     #3    main #1  active  bisect
    session project
    ");
    assert_snapshot!(environment.forge(["branch", "show"]), @r"
    try (session project)
      status: active, checked out
      head: #3
      from: main #1
      made: 2026-02-01 13:00:02 +01:00 (5 s ago)
      tests: H1
      approach: bisect
      success: green
    ");
    assert_snapshot!(environment.forge(["branch", "show", "main", "--json"]), @r#"{"schema":"forge.branch.show/1","session":"project","branch":"main","name":"main","current":false,"status":"active","revision":1,"base":null,"created_at":"2026-02-01T12:00:01Z","hypothesis":null,"approach":null,"success_criteria":[],"results":[]}"#);
    assert_snapshot!(environment.forge(["branch", "switch", "main", "--json"]), @r#"{"schema":"forge.branch.switch/1","session":"project","branch":"main","name":"main","current":true,"status":"active","revision":1,"base":null,"created_at":"2026-02-01T12:00:01Z","hypothesis":null,"approach":null,"success_criteria":[],"results":[],"left":"try","checkpoint":{"id":"<id2>","sequence":4,"time":"2026-02-01T12:00:09Z","message":"switched from try to main","tags":["auto"],"trigger":{"automatic":"branch_switch"}}}"#);
    assert_snapshot!(environment.forge(["branch", "abandon", "try", "--reason", "too slow"]), @"Abandoned branch try (session project)");
    assert_snapshot!(environment.forge(["branch", "list"]), @r"
       Branch  Head  From  Status  Approach
    *  main    #1    -     active
    1 more with '--all'
    session project
    ");
    assert_snapshot!(environment.forge(["branch", "list", "--all", "--json"]), @r#"{"schema":"forge.branch.list/1","session":"project","branches":[{"name":"main","current":true,"status":"active","revision":1,"base":null,"created_at":"2026-02-01T12:00:01Z","hypothesis":null,"approach":null,"success_criteria":[],"results":[]},{"name":"try","current":false,"status":"abandoned","revision":3,"base":{"branch":"main","revision":1},"created_at":"2026-02-01T12:00:02Z","hypothesis":"H1","approach":"bisect","success_criteria":["green"],"results":["too slow"]}],"left_out":0}"#);
}

#[test]
fn a_branch_can_begin_at_a_past_moment() {
    let environment = project();
    environment.forge(["note", "add", "two"]).success();
    let created = environment.forge(["branch", "create", "old", "--from", "#1", "--json"]).json();
    assert_eq!(created["base"]["revision"], 1);
    assert_eq!(created["schema"], "forge.branch.create/1");
}

#[test]
fn invalid_branches_are_refused() {
    let environment = project();
    assert_snapshot!(environment.forge(["branch", "create", "main"]), @r"
    [stderr]
    error: there is a branch 'main' already
    hint: use 'forge branch switch main' to continue on it, or choose another name
    [exit 2]
    ");
    assert_snapshot!(environment.forge(["branch", "create", "a b"]), @r"
    [stderr]
    error: 'a b' is not a branch name: begin with a letter, a digit or '_', then use letters, digits, '-', '_', '.' or '/', at most 100 bytes; not 'head'
    [exit 2]
    ");
    assert_snapshot!(environment.forge(["branch", "switch", "nothing"]), @r"
    [stderr]
    error: there is no branch 'nothing'
    hint: the branches are main
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["branch", "show", "nothing", "--json"]), @r#"
    [stderr]
    {"schema":"forge.error/1","error":{"kind":"not_found","message":"there is no branch 'nothing'","causes":[],"hints":["the branches are main"]}}
    [exit 3]
    "#);
    assert_eq!(environment.forge(["branch", "abandon", "nothing"]).code, 3);
    assert_eq!(environment.forge(["branch", "create", "x", "--hypothesis", "H9"]).code, 3);
    assert_eq!(environment.forge(["branch", "create", "x", "--from", "#99"]).code, 3);
    assert_eq!(environment.forge(["branch", "create", "Head"]).code, 2);
    environment.forge(["branch", "create", "_try"]).success();
}

/// Regression: only the time of the moment was used, so a later revision of that time, or one of
/// the branch that was checked out then, got the checkpoint.
#[test]
fn a_checkpoint_at_a_named_revision_or_branch_is_of_that_revision() {
    let environment = project();
    environment.forge(["branch", "create", "side"]).success();
    for text in ["lattice", "quartz"] {
        let mut add = environment.command(["note", "add", text]);
        environment.finished(add.env("FORGE_TEST_NOW", "2026-02-01T12:00:02Z")).success();
    }
    let notes_of = |tag: &str, moment: &str| {
        let create = ["checkpoint", "create", "then", "--tags", tag, "--at", moment];
        environment.forge(create).success();
        let shown = environment.forge(["checkpoint", "show", tag, "--full"]).success();
        (shown.contains("lattice"), shown.contains("quartz"))
    };
    assert_eq!(notes_of("a", "#2"), (true, false));
    assert_eq!(notes_of("b", "side"), (false, false));
    assert_eq!(notes_of("c", "#3"), (true, true));
}

#[test]
fn checkpoints_are_made_tagged_and_scheduled() {
    let environment = project();
    let create = ["checkpoint", "create", "before the fix", "--tags", "fix,safe"];
    assert_snapshot!(environment.forge(create), @r"
    Made a checkpoint (session project, branch main)
      checkpoint <id1> #2 before the fix [fix, safe]
    ");
    let past = ["checkpoint", "create", "then", "--at", "#1", "--json"];
    assert_snapshot!(environment.forge(past), @r#"{"schema":"forge.checkpoint.create/1","session":"project","branch":"main","operation":"<id2>","id":"<id3>","revision":null,"checkpoint":{"id":"<id3>","sequence":3,"time":"2026-02-01T12:00:01Z","message":"then","tags":[],"trigger":"manual"},"at":null,"changed":[],"warnings":[]}"#);
    assert_snapshot!(environment.forge(["checkpoint", "tag", "fix", "--add", "x", "--remove", "safe"]), @r"
    Tagged (session project)
      checkpoint <id1> #2 before the fix [fix, x], 2 s ago
    ");
    assert_snapshot!(environment.forge(["checkpoint", "tag", "#2", "--add", "y", "--json"]), @r#"{"schema":"forge.checkpoint.tag/1","session":"project","branch":"main","checkpoint":{"id":"<id1>","sequence":2,"time":"2026-02-01T12:00:02Z","message":"before the fix","tags":["fix","x","y"],"trigger":"manual"}}"#);
    assert_snapshot!(environment.forge(["checkpoint", "tag", "#1", "--add", "y"]), @r"
    [stderr]
    error: '#1' names a moment, not a checkpoint
    hint: 'forge checkpoint list' names them
    [exit 2]
    ");
    assert_snapshot!(environment.forge(["checkpoint", "create", "x", "--tags", "two words"]), @r"
    [stderr]
    error: 'two words' is not a tag: a tag is one word
    hint: separate tags by commas: '--tags one,two'
    [exit 2]
    ");
    assert_snapshot!(environment.forge(["checkpoint", "schedule"]), @"No checkpoints are scheduled (session project)");
    assert_snapshot!(environment.forge(["checkpoint", "schedule", "--every", "2s"]), @"A checkpoint is due 2 s after the last one, at the next write (session project)");
    let due = environment.forge(["note", "add", "later", "--json"]).json();
    assert_eq!(due["checkpoint"]["trigger"], "scheduled");
    assert_snapshot!(environment.forge(["checkpoint", "schedule", "--off", "--json"]), @r#"{"schema":"forge.checkpoint.schedule/1","session":"project","branch":"main","every_seconds":null,"last_checkpoint":"2026-02-01T12:00:10Z"}"#);
}

/// Regression: the messages said that the branch was abandoned and the checkpoint tagged.
#[test]
fn what_changes_nothing_is_said_to_change_nothing() {
    let environment = project();
    environment.forge(["branch", "create", "try"]).success();
    environment.forge(["branch", "abandon", "try"]).success();
    assert_snapshot!(environment.forge(["branch", "abandon", "try"]), @"Nothing to change: branch try (session project)");
    let again = environment.forge(["branch", "abandon", "try", "--reason", "too slow"]).success();
    assert_eq!(again, "Abandoned branch try (session project)\n");
    environment.forge(["checkpoint", "create", "before", "--tags", "fix"]).success();
    for [name, tag] in [["--remove", "none"], ["--add", "fix"]] {
        let output = environment.forge(["checkpoint", "tag", "fix", name, tag]).success();
        assert!(output.starts_with("Nothing to change (session project)\n"), "{output}");
    }
}

#[test]
fn the_last_operation_is_undone_and_redone() {
    let environment = project();
    environment.forge(["hypothesis", "confirm", "H1"]).success();
    assert_snapshot!(environment.forge(["undo"]), @r"
    Undid 'hypothesis confirm' <id2> (session project, branch main, #4)
      done 1 s ago: revision #2, checkpoint <id1>
    ");
    assert_snapshot!(environment.forge(["redo", "--json"]), @r#"{"schema":"forge.redo/1","session":"project","branch":"main","operation":"<id3>","target":{"id":"<id2>","verb":"hypothesis confirm","time":"2026-02-01T12:00:02Z","effects":["revision #2","checkpoint <id1>"]},"revision":5}"#);
    assert_snapshot!(environment.forge(["redo"]), @r"
    [stderr]
    error: there is nothing to do again: the last thing done was not an undo
    hint: 'forge log --operations' names what was done
    [exit 3]
    ");
    assert_eq!(environment.forge(["undo", "ffffffff"]).code, 3);
    assert_eq!(environment.forge(["undo", ""]).code, 3);
    assert_eq!(environment.forge(["undo", "--json"]).json()["schema"], "forge.undo/1");
}

/// Regression: an undo said 'changed a branch', without its name.
#[test]
fn an_undo_names_the_branch_that_the_operation_changed() {
    let environment = project();
    environment.forge(["branch", "create", "try"]).success();
    environment.forge(["branch", "switch", "try"]).success();
    let undone = environment.forge(["undo"]).success();
    assert!(undone.contains(": checked out branch try"), "{undone}");
    environment.forge(["branch", "abandon", "try"]).success();
    let undone = environment.forge(["undo"]).success();
    assert!(undone.ends_with(": changed branch try\n"), "{undone}");
}

/// Regression: an undo of this import made the store unreadable, and listed a hundred effects.
#[test]
fn an_import_with_several_branches_is_undone_and_redone() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let events = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/example/session.jsonl");
    environment.forge(["import", "events", events]).success();
    let hypotheses = environment.forge(["hypothesis", "list"]).success();
    let undone = environment.forge(["undo"]).success();
    assert!(undone.ends_with(" and 93 more\n"), "{undone}");
    assert!(environment.forge(["hypothesis", "list"]).success().starts_with("No hypotheses"));
    assert_eq!(environment.forge(["verify"]).code, 0);
    environment.forge(["redo"]).success();
    assert_eq!(environment.forge(["hypothesis", "list"]).success(), hypotheses);
    let operations = environment.forge(["log", "--operations"]).success();
    assert!(operations.lines().all(|line| line.len() < 2000), "{operations}");
}

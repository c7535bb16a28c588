//! Lists of checkpoints, the timeline, comparisons and restores.

use crate::environment::Environment;
use crate::story::example_session;
use insta::assert_snapshot;

#[test]
fn checkpoints_are_listed_newest_first() {
    let environment = example_session();
    assert_snapshot!(environment.forge(["checkpoint", "list"]), @"
     No  Time          Message                          Tags           Trigger    Branch
    #12   1 Feb 13:00  unit tests failed                               automatic  main
    #11   1 Feb 13:00  switched from alt to main                       automatic  main
    #10   1 Feb 13:00  H1 rejected: the layout is fine                 automatic  alt
     #8   1 Feb 13:00  switched from main to alt                       automatic  alt
     #7   1 Feb 13:00  before the split                 baseline,kept  manual     main
    ");
    assert_snapshot!(environment.forge(["checkpoint", "list", "--tag", "kept", "--json"]), @r#"{"schema":"forge.checkpoint.list/1","session":"tensor","checkpoints":[{"id":"<id1>","sequence":7,"time":"2026-02-01T12:00:07Z","message":"before the split","tags":["baseline","kept"],"trigger":"manual","branch":"main"}],"unnamed":0}"#);
    let count = |args: &[&str]| {
        let words = ["checkpoint", "list", "--json"];
        let mut command = environment.command(words.iter().chain(args));
        environment.finished(&mut command).json()["checkpoints"].as_array().unwrap().len()
    };
    let all = count(&[]);
    assert_eq!(count(&["--limit", "2"]), 2);
    // Regression: a list that `--limit` made shorter did not say so.
    for (limit, has_more) in [("0", true), ("4", true), ("5", false)] {
        let list = environment.forge(["checkpoint", "list", "--limit", limit]).success();
        assert_eq!(list.ends_with("More with a greater '--limit'\n"), has_more, "{list}");
    }
    assert_eq!(count(&["--since", "baseline"]), all);
    assert_eq!(count(&["--until", "baseline"]), 1);
    assert_eq!(count(&["--since", "now"]), 0);
    assert_eq!(count(&["--until", "2020-01-01"]), 0);
    environment.forge(["session", "new", "other"]).success();
    environment.forge(["checkpoint", "create", "elsewhere"]).success();
    assert_eq!((count(&[]), count(&["--all"])), (1, all + 1));
    let list = environment.forge(["checkpoint", "list", "--all", "--limit", "1", "--json"]).json();
    assert_eq!(list["checkpoints"][0]["session"], "other");
}

/// The list says how many checkpoints without a name were left out among those that it lists. One
/// that is older than the last listed one is left out by the limit, and not counted.
#[test]
fn unnamed_checkpoints_are_counted_only_among_the_listed_ones() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let passed = r#"{"message":"9 minutes since the last checkpoint","trigger":{"automatic":"significant_time_passed"}}"#;
    let mut lines = String::new();
    for (session, hour, messages) in
        [("a", 10, &["", "", "one", "", "two"][..]), ("b", 11, &["three", ""])]
    {
        let mut add = |minute: usize, event: &str| {
            lines += &format!("{{\"at\":\"2026-01-10T{hour}:{minute}0:00Z\",{event}}}\n");
        };
        add(0, &format!("\"session\":{{\"name\":\"{session}\"}}"));
        add(0, r#""put":{"kind":"note","id":"N1","value":{"description":"x"}}"#);
        for (message, number) in messages.iter().zip(0..) {
            let named = format!("{{\"message\":\"{message}\"}}");
            let checkpoint = if message.is_empty() { passed } else { named.as_str() };
            add(number, &format!("\"checkpoint\":{checkpoint}"));
        }
    }
    environment.write("project/events.jsonl", &lines);
    environment.forge(["import", "events", "events.jsonl"]).success();
    let listed = |args: &[&str]| {
        let words = ["checkpoint", "list", "--json"];
        let mut command = environment.command(words.iter().chain(args));
        let list = environment.finished(&mut command).json();
        (list["checkpoints"].as_array().unwrap().len(), list["unnamed"].as_u64().unwrap())
    };
    for (args, expected) in [
        (&["--session", "a", "--limit", "1"][..], (1, 0)),
        (&["--session", "a", "--limit", "2"], (2, 1)),
        (&["--session", "a", "--limit", "3"], (2, 3)),
        (&["--session", "a"], (2, 3)),
        (&["--session", "a", "--unnamed", "--limit", "3"], (3, 0)),
        (&["--all", "--limit", "1"], (1, 1)),
        (&["--all", "--limit", "2"], (2, 1)),
        (&["--all"], (3, 4)),
    ] {
        assert_eq!(listed(args), expected, "{args:?}");
    }
}

#[test]
fn an_empty_list_of_checkpoints_is_reported_as_empty() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "s"]).success();
    assert_snapshot!(environment.forge(["checkpoint", "list"]), @r"
    No checkpoints.
    'forge checkpoint create MESSAGE' makes one.
    ");
    // Facts are not in the timeline, so an empty one does not mean that nothing has happened.
    assert_snapshot!(environment.forge(["checkpoint", "timeline"]), @"The session 's' has no revision and no checkpoint yet. 'forge story' shows what happened.");
    environment.forge(["note", "add", "x"]).success();
    assert_snapshot!(environment.forge(["checkpoint", "timeline", "--limit", "0"]), @"No head, fork, merge or checkpoint of the session 's' is in this part of the timeline.");
}

#[test]
fn the_timeline_draws_branches_as_lanes() {
    let environment = example_session();
    assert_snapshot!(environment.forge(["checkpoint", "timeline"]), @r"
    ── Sun 1 Feb ──
    ●  #13 13:00 (main*) N1  日本語 wide\x1b[2J text
    ◆  #12 13:00 unit tests failed
    ◆  #11 13:00 switched from alt to main
    │ ◆  #10 13:00 (alt) H1 rejected: the layout is fine
    │ ●  #9 13:00 H1 rejected  the layout is fine  and 2 more
    │ ◆  #8 13:00 switched from main to alt
    ◆ │  #7 13:00 before the split [baseline,kept]
    ├─╯
    ●    #6 13:00 G2 open  which version?
     … 5 revisions
    ");
    assert_snapshot!(environment.forge(["checkpoint", "timeline", "--all", "--limit", "3"]), @r"
    ── Sun 1 Feb ──
    ●  #13 13:00 (main*) N1  日本語 wide\x1b[2J text
    ◆  #12 13:00 unit tests failed
    ◆  #11 13:00 switched from alt to main
    and 10 older rows
    ");
    let document = environment.forge(["checkpoint", "timeline", "--json"]).json();
    assert_eq!(document["branches"][1]["base"], "main");
    assert_eq!(document["entries"][0]["type"], "revision");
    assert_eq!(document["entries"][0]["message"], "note add");
    let graph = environment.forge(["log", "--graph", "-n", "2"]).success();
    assert!(graph.contains("●  #13 13:00 (main*) N1"), "{graph}");
}

#[test]
fn two_moments_are_compared() {
    let environment = example_session();
    assert_snapshot!(environment.forge(["checkpoint", "diff", "baseline", "alt"]), @r#"
    from 2026-02-01 13:00:07 +01:00 (7 s ago) on main #6 "before the split"
    to   2026-02-01 13:00:13 +01:00 (1 s ago) on alt #9
    H1 rejected, 2 beliefs put in doubt, 1 verification; 6 s later

    Hypotheses
      ~ H1 reason: none → the layout is fine
      ~ H1 status: active → rejected

    Beliefs
      ~ B1 doubt reason: none → hypothesis H1 was rejected
      ~ B1 in doubt: none → true
      ~ B2 doubt reason: none → rests on belief B1: hypothesis H1 was rejected
      ~ B2 in doubt: none → true

    Verifications
      + v1 unit tests
    "#);
    assert_snapshot!(environment.forge(["checkpoint", "diff", "alt", "main"]), @r"
    from 2026-02-01 13:00:13 +01:00 (2 s ago) on alt #9
    to   2026-02-01 13:00:13 +01:00 (2 s ago) on main #13
    H1 active, 2 beliefs updated, 1 note added; at the same time

    Hypotheses
      ~ H1 reason: the layout is fine → none
      ~ H1 status: rejected → active

    Beliefs
      ~ B1 doubt reason: hypothesis H1 was rejected → none
      ~ B1 in doubt: true → none
      ~ B2 doubt reason: rests on belief B1: hypothesis H1 was rejected → none
      ~ B2 in doubt: true → none

    Notes
      + N1 日本語 wide\x1b[2J\ntext
    ");
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
    assert_snapshot!(environment.forge(only).json()["changes"], @r#"[{"change":"updated","field":"reason","id":"H1","kind":"hypothesis","new":"the layout is fine","old":null},{"change":"status_changed","field":"status","id":"H1","kind":"hypothesis","new":"rejected","old":"active"}]"#);
}

/// Regression: E10 was listed before E2.
#[test]
fn a_diff_lists_ids_in_the_order_of_their_numbers() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    for _ in 1..=11 {
        environment.forge(["note", "one"]).success();
    }
    let diff = environment.forge(["diff", "start", "--kind", "note"]).success();
    let ids: Vec<&str> = diff.lines().filter_map(|line| line.strip_prefix("  + ")).collect();
    assert!(ids[0].starts_with("N2 ") && ids[9].starts_with("N11 "), "{diff}");
    for id in ["zed", "a-longer-id", "H10"] {
        environment.forge(["hypothesis", "add", "x", "--id", id]).success();
    }
    let diff = environment.forge(["diff", "start", "--kind", "hypothesis"]).success();
    assert!(diff.ends_with("\n  + H10 x\n  + a-longer-id x\n  + zed x\n"), "{diff}");
}

/// Regression: a diff listed facts by their ids, which are hashes, and so showed any eight of them.
#[test]
fn a_diff_lists_facts_in_the_order_of_their_times() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["note", "one"]).success();
    for number in 0..10 {
        let text = number.to_string();
        assert_eq!(environment.forge(["command", "record", "--", "echo", &text]).code, 0);
    }
    let diff = environment.forge(["diff", "start", "--kind", "command"]).success();
    let shown: Vec<&str> = diff.lines().filter_map(|line| line.split("echo ").nth(1)).collect();
    assert_eq!(shown, ["0", "1", "2", "3", "4", "5", "6", "7"], "{diff}");
}

#[test]
fn diff_reports_differences_as_exit_code_on_request() {
    let environment = example_session();
    // Regression: a range was an unknown moment.
    let of_range = environment.forge(["diff", "baseline..alt", "--json"]).json();
    assert_eq!(of_range["to"]["branch"], "alt");
    assert_eq!(environment.forge(["diff", "..baseline", "--json"]).json()["to"]["branch"], "main");
    assert_snapshot!(environment.forge(["diff", "#99.."]), @r"
    [stderr]
    error: there is no revision or checkpoint '#99'
    hint: the last is #13
    [exit 3]
    ");
    let with_another = environment.forge(["diff", "baseline..alt", "alt"]);
    assert_ne!(with_another.code, 0);
    assert!(with_another.stderr.contains("leave out the second moment"), "{with_another}");
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
    assert_snapshot!(environment.forge(["checkpoint", "diff", "HEAD~1"]), @r"
    from 2026-02-01 13:00:01 +01:00 (2 s ago) on main #1
    to   2026-02-01 13:00:02 +01:00 (1 s ago) on main #2
    1 hypothesis updated; 1 s later

    Hypotheses
      ~ H description:
            first line
          - second line
          + changed line
            third line
    ");
}

#[test]
fn a_restore_is_a_new_revision_and_keeps_facts() {
    let environment = example_session();
    let list =
        |environment: &Environment| environment.forge(["hypothesis", "list", "--json"]).json();
    let before = list(&environment)["hypotheses"].clone();
    assert_snapshot!(environment.forge(["checkpoint", "restore", "#1", "--dry-run"]), @r##"
    Would go back to "#1", 2026-02-01 13:00:01 +01:00 (14 s ago)
    tensor on main, 1 claim
    1 fact has come since; facts stay.
    confidence of H1 0.79 → 0.40, 1 piece of evidence removed, 2 beliefs removed, 1 dependency removed, 2 gaps removed, 1 note removed

    Hypotheses
      ~ H1 confidence: 0.79 → 0.40

    Evidence
      - E1 strides swap

    Beliefs
      - B1 row major everywhere
      - B2 kernels assume it

    Dependencies
      - B2->B1

    Gaps
      - G1 who sets strides?
      - G2 which version?

    Notes
      - N1 日本語 wide\x1b[2J\ntext
    "##);
    assert_eq!(list(&environment)["hypotheses"], before, "a dry run changes nothing");
    assert_snapshot!(environment.forge(["checkpoint", "restore", "alt"]), @r#"
    Went back to "alt", 2026-02-01 13:00:17 +01:00 (now)
    tensor on main #14, 7 claims
    H1 rejected, 2 beliefs put in doubt, 1 note removed

    Hypotheses
      ~ H1 reason: none → the layout is fine
      ~ H1 status: active → rejected

    Beliefs
      ~ B1 doubt reason: none → hypothesis H1 was rejected
      ~ B1 in doubt: none → true
      ~ B2 doubt reason: none → rests on belief B1: hypothesis H1 was rejected
      ~ B2 in doubt: none → true

    Notes
      - N1 日本語 wide\x1b[2J\ntext

    'forge undo' reverts this.
    "#);
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

#[test]
fn a_restore_of_many_claims_lists_ten_and_the_command_that_lists_all() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["checkpoint", "create", "empty", "--tags", "empty"]).success();
    for number in 0..12 {
        environment.forge(["note", "add", format!("note {number}").as_str()]).success();
    }
    let would = environment.forge(["checkpoint", "restore", "empty", "--dry-run"]).success();
    assert!(would.contains("note 11"), "{would}");
    let done = environment.forge(["checkpoint", "restore", "empty"]).success();
    assert!(done.contains("12 notes removed"), "{done}");
    assert!(done.contains("and 2 more ('forge checkpoint diff HEAD~1 HEAD' has all)"), "{done}");
    assert_eq!(done.matches("  - N").count(), 10, "{done}");
    let all = environment.forge(["checkpoint", "diff", "HEAD~1", "HEAD"]).success();
    assert_eq!(all.matches("  - N").count(), 12, "{all}");
}

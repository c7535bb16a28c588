//! `forge story`: the lines and the document.

use crate::environment::Environment;
use crate::story::example_session;
use insta::assert_snapshot;
use serde_json::json;

#[test]
fn the_story_of_a_session_is_printed_in_lines() {
    let environment = example_session();
    assert_snapshot!(environment.forge(["story"]), @r"
    tensor, 12 s: 13 of 14 items shown
    ── Sun 1 Feb ───────────────────────────────────────────────────────────
    13:00  +   H1 new 0.40  the layout is wrong
           ▲   H1 0.40 → 0.79  strides swap
           +   B1 new  row major everywhere
           +   B2 new  kernels assume it
           ▸   1 change
           ?   G1 open  who sets strides?
           ?   G2 open  which version?
           ★   before the split
           ⑂   branch alt
           ✗   H1 rejected (on alt)  the layout is fine
           ✗   B1 in doubt  hypothesis H1 was rejected
           ✗   B2 in doubt  rests on belief B1: hypothesis H1 was rejected
           ✗   unit tests failed
           ✎   N1 (on main)  日本語 wide\x1b[2J text

    ✗ failing  unit tests  at 13:00
    ");
    assert_snapshot!(environment.forge(["story", "-n", "2", "--all"]), @r"
    tensor, 12 s: 2 of 14 items shown
    … 12 earlier lines
    ── Sun 1 Feb ───────────────────────────────────────────────────────────
    13:00  ✗   unit tests failed
           ✎   N1  日本語 wide\x1b[2J text

    ✗ failing  unit tests  at 13:00
    ");
}

/// Regression: `/forge:story -n 10` failed, because the command of the plugin gives a number too.
#[test]
fn the_last_number_of_lines_counts() {
    let environment = example_session();
    let story = environment.forge(["story", "-n", "2"]).success();
    assert_eq!(environment.forge(["story", "-n", "40", "--limit", "2"]).success(), story);
}

#[test]
fn the_story_of_an_empty_session_reports_that_it_is_empty() {
    let environment = Environment::new();
    environment.forge(["init", "--name", "quiet"]).success();
    assert_snapshot!(environment.forge(["story"]), @"Nothing has happened in the session 'quiet' yet.");
    assert_snapshot!(environment.forge(["story", "nowhere"]), @"
    [stderr]
    error: there is no session 'nowhere'
    hint: 'forge session list' names them, 'forge session new NAME' begins one
    [exit 3]
    ");
}

/// A transcript with a prompt, a command that commits, and an answer.
const TRANSCRIPT: &str = concat!(
    r#"{"type":"user","uuid":"u1","sessionId":"s1","cwd":"/w","timestamp":"2026-01-01T10:00:00Z","message":{"role":"user","content":"Keep the cache after a restart"}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"u2","sessionId":"s1","cwd":"/w","timestamp":"2026-01-01T10:01:00Z","message":{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"git commit -m 'keep the cache'"}}]}}"#,
    "\n",
    r#"{"type":"user","uuid":"u3","sessionId":"s1","cwd":"/w","timestamp":"2026-01-01T10:02:00Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"[main 49f6518] keep the cache\n 1 file changed"}]},"toolUseResult":{"stdout":"[main 49f6518] keep the cache\n 1 file changed","stderr":"","interrupted":false}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"u4","sessionId":"s1","cwd":"/w","timestamp":"2026-01-01T10:03:00Z","message":{"role":"assistant","content":[{"type":"text","text":"Committed. Shall I push it now?"}]}}"#,
    "\n",
    r#"{"type":"user","uuid":"u5","sessionId":"s1","cwd":"/w","timestamp":"2026-01-01T10:04:00Z","message":{"role":"user","content":"yes"}}"#,
    "\n",
);

fn imported() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.write("project/a.jsonl", TRANSCRIPT);
    environment.forge(["import", "claude-code", "a.jsonl"]).success();
    environment
}

#[test]
fn the_story_of_a_transcript_has_its_turns() {
    let environment = imported();
    assert_snapshot!(environment.forge(["story"]), @"
    Keep the cache after a restart, 4 min: 2 prompts, 1 commit; 4 items
    ── Thu 1 Jan ───────────────────────────────────────────────────────────
    11:00 YOU  Keep the cache after a restart
    11:02  ◆   commit 49f6518  keep the cache
    11:03  ⤷   Committed. Shall I push it now?
    11:04 YOU  yes
               to: Shall I push it now?
    ");
}

#[test]
fn the_document_has_turns_and_findings() {
    let environment = imported();
    let document = environment.forge(["story", "--json"]).json();
    assert_eq!(document["schema"], "forge.story/1");
    assert_eq!(document["root"], "/w");
    let turns = document["turns"].as_array().unwrap();
    assert_eq!(turns.len(), 2, "{document}");
    let commit = &turns[0]["items"][0];
    assert_eq!(commit["kind"], "commit", "{commit}");
    assert_eq!(commit["text"], "commit 49f6518");
    assert_eq!(commit["detail"], "keep the cache");
    assert_eq!(commit["refs"], json!(["command:t1"]));
    assert_eq!(turns[1]["prompt"]["text"], "yes");
    assert_eq!(turns[1]["prompt"]["detail"], "Shall I push it now?");
    let findings = &document["findings"];
    assert_eq!(findings["title"], "Keep the cache after a restart");
    assert_eq!(findings["commits"][0]["sha"], "49f6518");
    assert_eq!(findings["uncommitted"], json!([]));
    // An entity that the document refers to can be shown.
    environment.forge(["command", "show", "t1"]).success();
}

/// Regression: the story said that all checks pass although the last run of one had no known result.
#[test]
fn a_check_whose_last_run_has_no_known_result_is_not_said_to_pass() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    for status in ["passed", "unknown"] {
        environment.forge(["verification", "add", "unit tests", "--status", status]).success();
    }
    let story = environment.forge(["story"]);
    assert!(story.stdout.ends_with("\n✓ no check fails, 1 passed\n"), "{story}");
}

#[test]
fn the_log_prints_the_end_of_the_story() {
    let environment = imported();
    assert_snapshot!(environment.forge(["log", "-n", "2"]), @"
    Keep the cache after a restart, 4 min: 2 prompts, 1 commit; 2 of 4 items shown
    … 2 earlier lines
    ── Thu 1 Jan ───────────────────────────────────────────────────────────
    11:03  ⤷   Committed. Shall I push it now?
    11:04 YOU  yes
               to: Shall I push it now?
    ");
    assert_snapshot!(environment.forge(["log", "--oneline"]), @"
    2026-01-01 11:00 YOU Keep the cache after a restart
    2026-01-01 11:02 ◆ commit 49f6518  keep the cache
    2026-01-01 11:03 ⤷ Committed. Shall I push it now?
    2026-01-01 11:04 YOU yes  (to: Shall I push it now?)
    ");
    let document = environment.forge(["log", "--facts", "--json"]).json();
    assert_eq!(document["schema"], "forge.story/1");
    // Without an option of the story, the document is the list of revisions and checkpoints.
    let listed = environment.forge(["log", "--json"]).json();
    assert_eq!(listed["schema"], "forge.log/1");
    assert_eq!(listed["entries"][0]["type"], "checkpoint", "{listed}");
    let refused = environment.forge(["log", "H1", "--patch"]);
    assert_eq!(refused.code, 2, "{refused}");
}

#[test]
fn a_log_without_a_heading_says_what_it_leaves_out() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let mut prompts = String::new();
    for number in 10..33 {
        let prompt = json!({"at": format!("2026-01-01T10:00:{number}Z"), "put": {"kind": "prompt",
            "id": format!("p{number}"), "value": {"text": format!("Ask {number}")}}});
        prompts.push_str(&format!("{prompt}\n"));
    }
    environment.write("project/a.jsonl", &prompts);
    environment.forge(["import", "events", "a.jsonl"]).success();
    let short = environment.forge(["log", "--oneline"]);
    assert_eq!((short.code, short.stdout.lines().count()), (0, 20), "{short}");
    assert_eq!(short.stderr, "3 earlier lines are not shown; '-n 23' shows all.\n");
    // With `-n`, the caller knows that lines are left out.
    for number in ["23", "2"] {
        assert_eq!(environment.forge(["log", "--oneline", "-n", number]).stderr, "");
    }
    assert_eq!(environment.forge(["log", "--oneline", "--quiet"]).stderr, "");
}

#[test]
fn the_heading_counts_the_shown_items() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let command = json!({"at": "2026-01-01T10:00:00Z", "put": {"kind": "command", "id": "c1",
        "value": {"command": "ls", "exit_code": 0, "status": "finished"}}});
    environment.write("project/a.jsonl", &format!("{command}\n"));
    environment.forge(["import", "events", "a.jsonl"]).success();
    assert_snapshot!(environment.forge(["log"]), @"
    a: 0 of 1 item shown
    ── Thu 1 Jan ───────────────────────────────────────────────────────────
           ▸   1 command
    'forge story --all' shows each item.
    ");
    assert_snapshot!(environment.forge(["log", "--facts"]), @"
    a: 1 item
    ── Thu 1 Jan ───────────────────────────────────────────────────────────
    11:00  ·   $ ls
    ");
}

/// Regression: the heading counted the items before `--since` as shown, and with `--until` it and
/// the last lines were about the present.
#[test]
fn the_heading_is_about_the_lines_between_two_times() {
    let environment = imported();
    assert_snapshot!(environment.forge(["log", "--since", "2026-01-01T10:03:00Z"]), @"
    Keep the cache after a restart, 4 min: 2 prompts, 1 commit; 2 of 4 items shown
    ── Thu 1 Jan ───────────────────────────────────────────────────────────
    11:03  ⤷   Committed. Shall I push it now?
    11:04 YOU  yes
               to: Shall I push it now?
    ");
    for (since, expected) in [
        ("2026-01-01T10:04:00Z", "2 prompts, 1 commit; 1 of 4 items shown\n"),
        ("2026-01-01T11:00:00Z", "2 prompts, 1 commit; 0 of 4 items shown\n"),
    ] {
        let story = environment.forge(["story", "--since", since]).success();
        assert!(story.contains(expected), "{story}");
    }
    let until = environment.forge(["log", "--until", "2026-01-01T10:02:00Z"]).success();
    assert_eq!(until, environment.forge(["story", "--at", "2026-01-01T10:02:00Z"]).success());
    assert!(until.contains(", 2 min: 1 prompt, 1 commit; 2 items"), "{until}");
}

#[test]
fn the_log_shows_the_patches_of_edits() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let edit = json!({"at": "2026-01-01T10:00:00Z", "put": {"kind": "code", "id": "e1", "value": {
        "path": "/w/src/a.rs", "patch": "--- a\n+++ b\n@@ -1 +1 @@\n-old\u{1b}[2J\n+new\n"}}});
    environment.write("project/a.jsonl", &format!("{edit}\n"));
    environment.forge(["import", "events", "a.jsonl"]).success();
    assert_snapshot!(environment.forge(["log", "-p"]), @r"
    a: 1 item
    ── Thu 1 Jan ───────────────────────────────────────────────────────────
    11:00  ±   a.rs +1 −1
               @@ -1 +1 @@
               -old\x1b[2J
               +new

    ! not committed  /w/src/a.rs
    ");
    assert_snapshot!(environment.forge(["log", "-p", "--oneline"]), @r"
    2026-01-01 11:00 ± a.rs +1 −1
               @@ -1 +1 @@
               -old\x1b[2J
               +new
    ");
}

#[test]
fn a_changed_line_that_looks_like_the_name_of_a_file_is_shown() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let patch = "--- q\n+++ q\n@@ -1,2 +1,2 @@\n one\n--- a comment\n+++ more\n";
    let edit = json!({"at": "2026-01-01T10:00:00Z", "put": {"kind": "code", "id": "e1", "value": {
        "path": "/w/q.sql", "patch": patch}}});
    environment.write("project/a.jsonl", &format!("{edit}\n"));
    environment.forge(["import", "events", "a.jsonl"]).success();
    assert_snapshot!(environment.forge(["log", "-p"]), @r"
    a: 1 item
    ── Thu 1 Jan ───────────────────────────────────────────────────────────
    11:00  ±   q.sql +1 −1
               @@ -1,2 +1,2 @@
                one
               --- a comment
               +++ more

    ! not committed  /w/q.sql
    ");
}

#[test]
fn show_accepts_ids_of_every_kind_and_moments() {
    let environment = example_session();
    assert_snapshot!(environment.forge(["show", "E1"]), @"
    evidence E1
      hypothesis: H1
      strength: 0.80
      description: strides swap
      created at: 2026-02-01 13:00:02 +01:00 (12 s ago)
    ");
    let hypothesis = environment.forge(["show", "hypothesis:H1"]).success();
    assert!(hypothesis.contains("strides swap"), "{hypothesis}");
    let fact = environment.forge(["show", "v1", "--json"]).json();
    assert_eq!(fact["schema"], "forge.show/1");
    for moment in ["#7", "baseline"] {
        let shown = environment.forge(["show", moment, "--json"]).success();
        let at = environment.forge(["checkpoint", "at", moment, "--json"]).success();
        assert_eq!(shown, at, "{moment}");
    }
    assert_snapshot!(environment.forge(["show", "H9"]), @"
    [stderr]
    error: there is no entity 'H9'
    hint: the nearest is H1
    [exit 3]
    ");
    assert_snapshot!(environment.forge(["show", "#99"]), @"
    [stderr]
    error: there is no revision or checkpoint '#99'
    hint: the last is #13
    [exit 3]
    ");
}

/// Regression: an id that began with `#` was read as a number.
#[test]
fn an_entity_whose_id_begins_with_a_number_sign_is_shown() {
    let environment = example_session();
    for id in ["#5-note", "#todo"] {
        environment.forge(["note", "add", &format!("about {id}"), "--id", id]).success();
        let shown = environment.forge(["show", id]).success();
        assert!(shown.starts_with(&format!("note {id}\n")), "{shown}");
    }
    for moment in ["#5", "#5~", "#5~2"] {
        let shown = environment.forge(["show", moment, "--json"]).success();
        let at = environment.forge(["checkpoint", "at", moment, "--json"]).success();
        assert_eq!(shown, at, "{moment}");
    }
    let unknown = environment.forge(["show", "#5-nothing"]);
    assert_eq!(unknown.code, 3);
    assert!(unknown.stderr.contains("there is no entity '#5-nothing'"), "{unknown}");
}

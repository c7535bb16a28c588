//! Facts: verifications, measurements, commands and captured code.

use crate::environment::{Environment, Output};
use insta::assert_snapshot;
use serde_json::{Value, json};
use std::process::Command;

fn project() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment
}

#[test]
fn verifications_make_checkpoints() {
    let environment = project();
    let add = ["verification", "add", "unit tests", "--status", "failed", "--duration", "90s"];
    assert_snapshot!(environment.forge(add), @"
    Added verification v-<id1> (session project, branch main)
      checkpoint <id2> #1 unit tests failed [auto]
    ");
    let json = [
        "verification", "add", "build", "--status", "passed", "--exit-code", "0", "--output", "ok",
        "--command", "make", "--at", "5m ago", "--id", "build-1", "--json",
    ];
    assert_snapshot!(environment.forge(json), @r#"{"schema":"forge.verification.add/1","session":"project","branch":"main","operation":"<id3>","id":"build-1","revision":null,"checkpoint":{"id":"<id4>","sequence":2,"time":"2026-02-01T12:00:02Z","message":"build passed","tags":["auto"],"trigger":{"automatic":"verification_complete"}},"at":"2026-02-01T11:55:02Z","changed":[{"kind":"verification","id":"build-1","value":{"command":"make","exit_code":0,"name":"build","output":"ok","status":"passed"}}],"warnings":[]}"#);
    assert_snapshot!(environment.forge(json), @r#"
    [stderr]
    {"schema":"forge.error/1","error":{"kind":"invalid","message":"there is a verification 'build-1' already","causes":[],"hints":["update it, or give the new one another id"]}}
    [exit 2]
    "#);
    assert_eq!(environment.forge(["verification", "add", "x", "--status", "good"]).code, 2);
    let future = ["verification", "add", "x", "--status", "passed", "--at", "2030-01-01"];
    assert_eq!(environment.forge(future).code, 2);
}

/// Regression: a check that passed with the exit code of a failure was recorded without a word.
#[test]
fn a_check_that_passed_although_its_command_failed_is_recorded_with_a_warning() {
    let environment = project();
    let warnings = |code: &str| {
        let add = ["verification", "add", "x", "--status", "passed", "--exit-code", code, "--json"];
        environment.forge(add).json()["warnings"].clone()
    };
    assert_eq!(warnings("0"), json!([]));
    let warning = "it is recorded as passed, but its command exited with 101; if that is wrong, \
                   record it again with the right status";
    assert_eq!(warnings("101"), json!([warning]));
}

#[test]
fn an_event_that_is_switched_off_makes_no_checkpoint() {
    let environment = project();
    let off = ["config", "set", "auto_checkpoint.verification_complete", "false"];
    environment.forge(off).success();
    let add = ["verification", "add", "x", "--status", "passed", "--json"];
    assert_eq!(environment.forge(add).json()["checkpoint"], Value::Null);
    environment.forge(["config", "set", "auto_checkpoint.enabled", "false"]).success();
    environment.forge(["hypothesis", "add", "x"]).success();
    let confirmed = environment.forge(["hypothesis", "confirm", "H1", "--json"]).json();
    assert_eq!(confirmed["checkpoint"], Value::Null);
}

#[test]
fn a_long_pause_makes_an_automatic_checkpoint() {
    let environment = project();
    environment.forge(["note", "add", "one"]).success();
    let late = |time: &str, verb: &str, note: &str| {
        let mut command = environment.command(["note", verb, note, "--json"]);
        command.env("FORGE_TEST_NOW", time);
        environment.finished(&mut command).json()["checkpoint"]["trigger"].clone()
    };
    let passed = "significant_time_passed";
    assert_eq!(late("2026-02-01T12:30:00Z", "add", "two")["automatic"], passed);
    assert_eq!(late("2026-02-01T12:30:00Z", "add", "three"), Value::Null);
    // Regression: a command that only removes claims made none.
    assert_eq!(late("2026-02-01T13:00:00Z", "retract", "N1")["automatic"], passed);
}

#[test]
fn measurements_have_a_value_and_a_unit() {
    let environment = project();
    let record = ["measurement", "record", "rss", "12.5", "--unit", "MB", "--json"];
    assert_snapshot!(environment.forge(record), @r#"{"schema":"forge.measurement.record/1","session":"project","branch":"main","operation":"<id1>","id":"m-<id2>","revision":null,"checkpoint":null,"at":"2026-02-01T12:00:01Z","changed":[{"kind":"measurement","id":"m-<id2>","value":{"name":"rss","unit":"MB","value":12.5}}],"warnings":[]}"#);
    assert_snapshot!(environment.forge(["measurement", "record", "delta", "-3"]), @"Recorded measurement m-<id3> (session project, branch main)");
    assert_eq!(environment.forge(["measurement", "record", "x", "NaN"]).code, 2);
}

fn ran(environment: &Environment, script: &str) -> Output {
    environment.forge(["command", "record", "--", "sh", "-c", script])
}

#[test]
fn a_command_passes_through_with_its_exit_code() {
    let environment = project();
    assert_snapshot!(ran(&environment, "echo out; echo err >&2; exit 3"), @r"
    out
    [stderr]
    err
    Recorded command c-<id1> (session project, branch main)
    [exit 3]
    ");
    assert_snapshot!(ran(&environment, "kill -TERM $$"), @r"
    [stderr]
    Recorded command c-<id2> (session project, branch main)
    [exit 143]
    ");
    assert_snapshot!(environment.forge(["command", "record", "--", "no such"]), @r"
    [stderr]
    warning: cannot run 'no such': No such file or directory (os error 2)
    Recorded command c-<id3> (session project, branch main)
    [exit 127]
    ");
    assert_snapshot!(environment.forge(["command", "record", "-q", "--", "echo", "hi"]), @"hi");
}

#[test]
fn a_command_is_recorded_with_all_that_is_known() {
    let environment = project();
    let args = ["command", "record", "--json", "--", "sh", "-c", "echo out; echo err >&2; exit 7"];
    let output = environment.forge(args);
    let mut lines: Vec<&str> = output.stderr.lines().collect();
    // The order of the two streams is not fixed.
    lines.sort_unstable();
    assert_eq!((output.code, lines), (7, vec!["err", "out"]), "{output}");
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    let value = &json["changed"][0]["value"];
    assert_eq!(json["schema"], "forge.command.record/1");
    assert_eq!(value["command"], "sh -c 'echo out; echo err >&2; exit 7'");
    assert_eq!(value["exit_code"], 7);
    assert_ne!(json["at"], value["called_at"], "its time is its end");
    assert_eq!(value["outcome"], "finished");
    assert_eq!(value["working_dir"], "$ROOT/project");
    assert_eq!(value["stdout_preview"], "out\n");
    assert_eq!(value["stderr_preview"], "err\n");
    assert!(value["duration_ms"].is_u64());
}

#[test]
fn a_command_reads_our_input_and_its_bytes_stay_as_they_are() {
    let environment = project();
    environment.write("project/input", "\u{1b}[1mbold\0 é\n");
    let mut command = environment.command(["command", "record", "--", "cat"]);
    command.stdin(std::fs::File::open(environment.path("project/input")).unwrap());
    assert_eq!(environment.finished(&mut command).stdout, "\u{1b}[1mbold\0 é\n");
}

#[test]
fn without_a_store_command_record_runs_nothing() {
    let environment = Environment::new();
    assert_eq!(environment.forge(["command", "record", "--", "touch", "made"]).code, 3);
    assert!(!environment.path("project/made").exists());
    assert_eq!(environment.forge(["command", "record"]).code, 2);
}

#[test]
fn an_interrupt_ends_the_command_and_is_recorded() {
    let environment = project();
    // The command interrupts its parent too, as a terminal interrupts both.
    let script = "kill -INT $PPID; kill -INT $$; sleep 60";
    let output = ran(&environment, script);
    assert_eq!(output.code, 130, "{output}");
    assert!(output.stderr.starts_with("Recorded command"), "{output}");
}

fn git(environment: &Environment, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=trunk"])
        .args(args)
        .current_dir(environment.path("project"))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", environment.path("home"))
        .env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z")
        .env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z");
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn code_is_captured_and_the_checkout_stays_as_it_is() {
    let environment = project();
    assert_snapshot!(environment.forge(["code", "capture"]), @r"
    [stderr]
    error: '$ROOT/project' is in no git checkout
    hint: 'git init' begins a repository; 'forge note add' writes a state down
    [exit 3]
    ");
    git(&environment, &["init", "--quiet"]);
    environment.write("project/a", "one\n");
    let unborn = environment.forge(["code", "capture", "--json"]).json();
    assert_eq!(unborn["changed"][0]["value"]["branch"], "trunk");
    assert_eq!(unborn["changed"][0]["value"]["untracked"][0], "a");
    git(&environment, &["add", "a"]);
    git(&environment, &["commit", "--quiet", "-m", "first"]);
    environment.write("project/a", "one\ntwo\n");
    environment.write("project/b", "staged\n");
    git(&environment, &["add", "b"]);
    environment.write("project/new file", "three\n");
    let before = git(&environment, &["status", "--porcelain=v2"]);
    let objects = || git(&environment, &["count-objects", "-v"]);
    let objects_before = objects();
    let capture = ["code", "capture", "-m", "half done", "--json"];
    assert_snapshot!(environment.forge(capture), @r#"{"schema":"forge.code.capture/1","session":"project","branch":"main","operation":"<id4>","id":"c-<id5>","revision":null,"checkpoint":{"id":"<id6>","sequence":2,"time":"2026-02-01T12:00:03Z","message":"code captured: half done","tags":["auto"],"trigger":{"automatic":"code_modified"}},"at":"2026-02-01T12:00:03Z","changed":[{"kind":"code","id":"c-<id5>","value":{"branch":"trunk","commit":"3e1290e61add091fc2ddbbad3478fd1634acf555","description":"half done","patches":["diff --git a/a b/a\nindex 5626abf..814f4a4 100644\n--- a/a\n+++ b/a\n@@ -1 +1,2 @@\n one\n+two\n","diff --git a/b b/b\nnew file mode 100644\nindex 0000000..19d9cc8\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+staged\n","diff --git a/new file b/new file\nnew file mode 100644\nindex 0000000..2bdf67a\n--- /dev/null\n+++ b/new file\t\n@@ -0,0 +1 @@\n+three\n"],"untracked":["new file"]}}],"warnings":[]}"#);
    // Regression: the list showed only the commit.
    let list = environment.forge(["code", "list"]).success();
    assert!(list.contains(" half done\n"), "{list}");
    assert_eq!(git(&environment, &["status", "--porcelain=v2"]), before);
    assert_eq!(objects(), objects_before);
    let left = std::fs::read_dir(environment.path("tmp")).unwrap().count();
    assert_eq!(left, 0, "nothing stays in the temporary directory");
    git(&environment, &["add", "--all"]);
    git(&environment, &["commit", "--quiet", "-m", "second"]);
    let clean = environment.forge(["code", "capture", "--json"]).json();
    assert_eq!(clean["checkpoint"], Value::Null);
}

#[test]
fn code_is_captured_before_the_first_commit_and_without_a_branch_in_each_object_format() {
    for format in ["sha1", "sha256"] {
        let environment = project();
        git(&environment, &["init", "--quiet", &format!("--object-format={format}")]);
        let captured = || {
            let document = environment.forge(["code", "capture", "--json"]).json();
            document["changed"][0]["value"].clone()
        };
        // Git could also read this file's name as what is checked out.
        environment.write("project/HEAD", "one\n");
        let unborn = captured();
        assert_eq!((&unborn["branch"], &unborn["commit"]), (&"trunk".into(), &Value::Null));
        assert!(unborn["patches"][0].as_str().unwrap().ends_with("+one\n"), "{unborn}");
        git(&environment, &["add", "--all"]);
        git(&environment, &["commit", "--quiet", "-m", "first"]);
        git(&environment, &["checkout", "--quiet", "--detach"]);
        environment.write("project/new", "two\n");
        let detached = captured();
        assert_eq!((&detached["branch"], detached["commit"].is_string()), (&Value::Null, true));
        assert_eq!(detached["untracked"], json!(["new"]));
        assert!(detached["patches"][0].as_str().unwrap().ends_with("+two\n"), "{detached}");
    }
}

/// Regression: a change that kept the size of a file, in the second in which git wrote its index,
/// was not captured later. Git detects these changes by the time of its index, and the private copy
/// of the index was younger.
#[test]
fn a_change_in_the_same_second_as_the_git_index_is_captured() {
    let environment = project();
    let second = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_760_000_000);
    let set = |path: &str| {
        let file = std::fs::File::options().append(true).open(environment.path(path)).unwrap();
        file.set_modified(second).unwrap();
    };
    environment.write("project/a", "one\n");
    set("project/a");
    git(&environment, &["init", "--quiet"]);
    // Git would notice the change by the inode's change time, which a test cannot set.
    git(&environment, &["config", "core.trustctime", "false"]);
    git(&environment, &["add", "a"]);
    git(&environment, &["commit", "--quiet", "-m", "first"]);
    set("project/.git/index");
    environment.write("project/a", "two\n");
    set("project/a");
    let captured = environment.forge(["code", "capture", "--json"]).json();
    let patch = captured["changed"][0]["value"]["patches"][0].as_str().unwrap_or_default();
    assert!(patch.ends_with("-one\n+two\n"), "{captured}");
}

#[test]
fn undone_facts_are_not_counted_until_they_are_redone() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let facts = || environment.forge(["status", "--json"]).json()["summary"]["facts"].as_u64();
    environment.forge(["verification", "add", "one", "--status", "passed"]).success();
    environment.forge(["verification", "add", "two", "--status", "failed"]).success();
    assert_eq!(facts(), Some(2));
    environment.forge(["undo"]).success();
    assert_eq!(facts(), Some(1));
    let listed = environment.forge(["session", "list", "--json"]).json();
    assert_eq!(listed["sessions"][0]["facts"], 1);
    environment.forge(["redo"]).success();
    assert_eq!(facts(), Some(2));
}

#[test]
fn an_export_and_import_gives_the_same_state() {
    let environment = project();
    environment.forge(["hypothesis", "add", "one"]).success();
    environment.forge(["verification", "add", "unit tests", "--status", "passed"]).success();
    let state = |session: &str| {
        let args = ["checkpoint", "at", "now", "--json", "--session", session];
        environment.forge(args).json()["state"].clone()
    };
    let recorded = state("project");
    let stream = environment.forge(["export", "events"]).success();
    let renamed = stream.replacen("\"name\":\"project\"", "\"name\":\"other\"", 1);
    environment.write("project/other.jsonl", &renamed);
    environment.forge(["import", "events", "other.jsonl"]).success();
    assert_eq!(state("other"), recorded);
    assert_eq!(recorded["verifications"][0]["status"], "passed");
}

/// Regression: an id was taken for the name of a new session.
#[test]
fn a_stream_is_imported_into_the_session_with_a_given_id() {
    let environment = project();
    environment.forge(["note", "add", "one"]).success();
    let sessions = environment.finished_raw(["session", "list", "--json"]);
    let sessions: Value = serde_json::from_str(&sessions).unwrap();
    let line = r#"{"at":"2026-01-01T10:00:00Z","put":{"kind":"command","id":"c","value":{}}}"#;
    environment.write("project/more.jsonl", &format!("{line}\n"));
    let args = ["import", "events", "more.jsonl", "--session"];
    let id = sessions["sessions"][0]["id"].as_str().unwrap();
    environment.finished(environment.command(args).arg(id)).success();
    let sessions = environment.forge(["session", "list", "--json"]).json()["sessions"].clone();
    assert_eq!((sessions.as_array().unwrap().len(), &sessions[0]["facts"]), (1, &1.into()));
}

/// Regression: the error named the first line, which has no session.
#[test]
fn a_file_whose_name_cannot_name_a_session_is_imported() {
    let environment = project();
    let line = r#"{"at":"2026-01-01T10:00:00Z","put":{"kind":"note","id":"N1","value":{}}}"#;
    for (file, session) in [("日".repeat(80), "events"), ("a\tb".to_owned(), "events-2")] {
        environment.write(&format!("project/{file}.jsonl"), &format!("{line}\n"));
        let report = environment.forge(["import", "events", &format!("{file}.jsonl")]).success();
        assert!(report.contains(&format!(": {session}\n")), "{report}");
    }
}

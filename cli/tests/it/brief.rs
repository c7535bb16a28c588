//! The brief: the same for a person, an agent and a program.

use crate::environment::Environment;
use crate::story::example_session;
use insta::assert_snapshot;
use serde_json::{Value as Json, json};

/// Lines of a transcript: prompts, an edit, a commit, another edit, and a test that fails.
fn transcript() -> String {
    let mut minute = 0;
    let mut line = |body: Json| {
        minute += 1;
        let mut line = json!({"uuid": format!("u{minute}"), "sessionId": "s1", "cwd": "/home/m/w",
            "timestamp": format!("2026-01-01T10:{minute:02}:00Z")});
        line.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        line.to_string() + "\n"
    };
    let prompt = |text: &str| json!({"type": "user", "message": {"role": "user", "content": text}});
    let used = |id: &str, name: &str, input: Json| {
        json!({"type": "assistant", "message": {"role": "assistant", "content": [
            {"type": "tool_use", "id": id, "name": name, "input": input}]}})
    };
    let ended = |id: &str, text: &str, failed: bool, result: Json| {
        json!({"type": "user", "toolUseResult": result, "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}]}})
    };
    let edit = |path: &str| json!({"file_path": path, "old_string": "a", "new_string": "b"});
    let edited = |path: &str| {
        json!({"filePath": path, "oldString": "a", "newString": "b", "structuredPatch": [
            {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+b"]}]})
    };
    let printed = |out: &str| json!({"stdout": out, "stderr": "", "interrupted": false});
    let commit = "[main 49f6518] keep the cache\n 1 file changed";
    let failure = "Exit code 1\n=== RUN TestStale\n    cache_test.go:12: got 1, want 2\n\
                   --- FAIL: TestStale (0.00s)\nFAIL";
    let mut all = String::new();
    for number in 1..=5 {
        all += &line(prompt(&format!("question number {number}, about the cache?")));
    }
    all += &line(used("t1", "Edit", edit("/home/m/w/src/old.go")));
    all += &line(ended("t1", "done", false, edited("/home/m/w/src/old.go")));
    all += &line(used("t2", "Bash", json!({"command": "git commit -m 'keep the cache'"})));
    all += &line(ended("t2", commit, false, printed(commit)));
    all += &line(prompt("and why only after a restart?"));
    all += &line(prompt("now make the test pass"));
    all += &line(used("t3", "Edit", edit("/home/m/w/src/cache.go")));
    all += &line(ended("t3", "done", false, edited("/home/m/w/src/cache.go")));
    all += &line(used("t4", "Bash", json!({"command": "go test ./..."})));
    all += &line(ended("t4", failure, true, json!(format!("Error: {failure}"))));
    for (id, number) in [("t5", 1), ("t6", 2)] {
        let call = format!("curl --silent https://example.org/comments/{number}");
        all += &line(used(id, "Bash", json!({"command": call})));
        all += &line(ended(id, "ok", false, printed("ok")));
    }
    all
}

fn imported() -> Environment {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.write("project/a.jsonl", &transcript());
    environment.forge(["import", "claude-code", "a.jsonl"]).success();
    environment
}

#[test]
fn after_an_import_the_brief_has_prompts_failures_and_uncommitted_files() {
    let environment = imported();
    assert_snapshot!(environment.forge(["brief"]), @"
    question number 1, about the cache? on main, 2026-01-01 11:19:00 +01:00 (31 d ago)
    checkpoint #3 now make the test pass, 4 min before
    Failing        failed  go test
                   TestStale: cache_test.go:12: got 1, want 2
    You asked      now make the test pass
                   and why only after a restart?
                   question number 5, about the cache?
                   question number 4, about the cache?
                   question number 3, about the cache?
    Not committed  src/cache.go  (1 edit)
    Commands       exit 0    curl --silent https://example.org/comments/2  (1 more like it)
                   exit 1    go test ./...
                   exit 0    git commit -m 'keep the cache'
    Next           look into the failing verification: go test; state a hypothesis: forge hypothesis ad…
    ");
    let document = environment.forge(["brief", "--json"]).json();
    let texts = |list: &str| -> Vec<String> {
        let lines = document[list].as_array().unwrap().iter();
        lines.map(|line| line["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(texts("prompts").len(), 5, "{document}");
    assert_eq!(texts("uncommitted"), ["src/cache.go"]);
    let error = &document["failing"][0]["error"];
    assert_eq!(error, "TestStale: cache_test.go:12: got 1, want 2", "{document}");
    assert_eq!(document["commands"][0]["similar"], 1, "{document}");
}

#[test]
fn forge_without_arguments_prints_the_brief_or_the_help() {
    let environment = example_session();
    let bare = environment.forge([] as [&str; 0]).success();
    assert!(bare.starts_with("tensor on main #13") && bare.contains("Next"), "{bare}");
    let outside = Environment::new().forge([] as [&str; 0]);
    assert_eq!(outside.code, 2, "{outside}");
    assert!(outside.stderr.contains("Record:\n  note "), "in groups: {outside}");
}

#[test]
fn the_brief_proposes_to_confirm_the_parent_of_a_confirmed_hypothesis() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    environment.forge(["hypothesis", "add", "the cache is wrong"]).success();
    environment.forge(["hypothesis", "add", "its key is short", "--parent", "H1"]).success();
    environment.forge(["hypothesis", "confirm", "H2", "--reason", "seen"]).success();
    let document = environment.forge(["brief", "--json"]).json();
    let next = "confirm H1, or say why not: H2, a case of it, is confirmed";
    assert_eq!(document["next"][0], next, "{document}");
}

/// Regression: the next step said that what the belief rests on is in doubt, and named a task by
/// the hash of its text. The rows had that hash, too.
#[test]
fn the_next_steps_name_a_belief_in_doubt_and_the_task_that_was_begun() {
    let environment = Environment::new();
    environment.forge(["init"]).success();
    let todos = json!([{"content": "update the page", "status": "pending"},
        {"content": "add a test", "status": "in_progress"}]);
    let lines = [
        json!({"uuid": "u1", "type": "assistant", "message": {"role": "assistant", "content": [
            {"type": "tool_use", "id": "t1", "name": "TodoWrite", "input": {"todos": todos}}]}}),
        json!({"uuid": "u2", "type": "user", "toolUseResult": {"newTodos": todos},
            "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]}}),
    ];
    let mut transcript = String::new();
    for mut line in lines {
        line["sessionId"] = json!("s1");
        line["timestamp"] = json!("2026-01-01T10:00:00Z");
        transcript += &format!("{line}\n");
    }
    environment.write("project/a.jsonl", &transcript);
    environment.forge(["import", "claude-code", "a.jsonl"]).success();
    for text in ["the cache is on", "the cache is off"] {
        environment.forge(["belief", "add", text]).success();
    }
    assert_eq!(environment.forge(["belief", "contradict", "B1", "B2"]).code, 0);
    let document = environment.forge(["brief", "--json"]).json();
    let next = &document["next"];
    assert_eq!(next[0], "check the belief B1: it is in doubt", "{next}");
    assert_eq!(next[2], "continue the task: add a test", "{next}");
    let page = environment.forge(["brief"]).success();
    assert!(page.contains("     update the page  (pending)\n"), "{page}");
}
